//! What a handler depends on in the text of its script, as a number: so that an edit restarts only what it touches.
//!
//! A text is split into the statements of its top level. A handler depends on the statement that declares it, on those that
//! define what this one mentions, and so on; and on all that do something to who knows what when they run. White space,
//! comments and the place in the file do not count. When a text cannot be understood, everything in it depends on everything.
//!
//! One more thing ties handlers together: variables that functions change. A daemon that goes on does so in its old virtual
//! machine, and would wait in vain for what others now write in the new one. So who mentions such a variable depends on the
//! whole text.

mod declaration;
mod facts;
mod lua;
mod rhai;
mod scan;
mod statements;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

pub(super) use self::declaration::Part;
use self::{
    facts::{Facts, Mention},
    statements::Statement,
};

/// The language of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Lua,
    Rhai,
}

/// How a language writes what facts are read from.
struct Dialect {
    /// Begin the declaration of variables.
    declaring: &'static [&'static str],
    assigning: &'static [&'static str],
    /// Between a name and a name in it.
    accessing: &'static [&'static str],
    /// The one of these that calls a method.
    method: &'static str,
    /// The one of these that makes `M.f` worth looking at for itself.
    member: &'static str,
    /// Between a key and its value.
    keyed: &'static str,
    /// Begin a value that is new.
    fresh: &'static [&'static str],
    /// Whether `f "text"` and `f { … }` are calls.
    calls_with_literals: bool,
    /// Whatever is called in or below these changes nothing that another statement has made.
    harmless: &'static [&'static str],
    harmless_members: &'static [&'static str],
    harmless_methods: &'static [&'static str],
    /// Functions that change their first argument.
    changing: &'static [&'static str],
    /// Who mentions these can reach everything.
    opaque: &'static [&'static str],
    /// Makes a function of a text.
    names_functions: Option<&'static str>,
    /// Functions that give back the table they are given.
    wrapping: &'static [&'static str],
}

/// The text of a script, understood as far as needed.
pub(super) struct Fingerprints<'a> {
    whole: u64,
    /// `None` if it is not understood.
    regions: Option<Regions<'a>>,
}

struct Regions<'a> {
    all: Vec<(Statement<'a>, Facts<'a>)>,
    /// Who gives what a value.
    definers: BTreeMap<&'a str, Vec<(Option<&'a str>, usize)>>,
    /// What functions change.
    shared: BTreeSet<&'a str>,
    dialect: &'static Dialect,
}

impl<'a> Fingerprints<'a> {
    /// Reads a text.
    pub(super) fn of(language: Language, text: &'a str) -> Self {
        let (statements, dialect) = match language {
            Language::Lua => (lua::statements(text), &lua::DIALECT),
            Language::Rhai => (rhai::statements(text), &rhai::DIALECT),
        };
        let Some(statements) = statements else {
            return Fingerprints { whole: hash_of(|it| text.hash(it)), regions: None };
        };
        let whole = hash_of(|it| statements.iter().for_each(|statement| statement.hash(it)));
        Fingerprints { whole, regions: Some(Regions::new(statements, dialect)) }
    }

    /// The fingerprint of what is declared in this line.
    pub(super) fn of_line(&self, line: u32) -> u64 {
        self.regions.as_ref().and_then(|it| it.of_line(line)).unwrap_or(self.whole)
    }

    /// The fingerprint of a part of what is declared in this line; 0 if it cannot be told apart from the rest.
    ///
    /// One that is not 0 is of one handler: the declaration stands alone, and runs once.
    pub(super) fn of_part(&self, line: u32, part: Part) -> u64 {
        self.regions.as_ref().and_then(|it| it.of_part(line, part)).unwrap_or_default()
    }

    /// The fingerprint of everything.
    pub(super) fn whole(&self) -> u64 {
        self.whole
    }
}

impl<'a> Regions<'a> {
    fn new(statements: Vec<Statement<'a>>, dialect: &'static Dialect) -> Self {
        let facts = statements.iter().map(|it| facts::of(it, dialect)).collect::<Vec<_>>();
        let mut regions: Vec<_> = statements.into_iter().zip(facts).collect();
        let mut definers = BTreeMap::<_, Vec<_>>::new();
        for (index, (_, facts)) in regions.iter().enumerate() {
            for Mention { name, member } in &facts.defines {
                definers.entry(*name).or_default().push((*member, index));
            }
        }
        let shared = shared(&regions, &definers);
        // Who adds to a table adds to all its names, and only of a table that is made here we know the only one.
        let is_fresh = |name: &str| {
            let makers = definers.get(name).into_iter().flatten().filter(|it| it.0.is_none());
            let mut makers = makers.filter_map(|(_, index)| regions.get(*index)).peekable();
            makers.peek().is_some() && makers.all(|(_, facts)| facts.is_fresh)
        };
        let doubtful: Vec<_> = regions
            .iter()
            .map(|(_, it)| it.defines.iter().any(|it| it.member.is_some() && !is_fresh(it.name)))
            .collect();
        for ((_, facts), is_doubtful) in regions.iter_mut().zip(doubtful) {
            facts.has_effect |= is_doubtful;
        }
        Regions { all: regions, definers, shared, dialect }
    }

    /// `None` if it may depend on everything.
    fn of_line(&self, line: u32) -> Option<u64> {
        let all = self.all.iter().enumerate();
        let here: Vec<_> = all.filter(|(_, it)| it.0.covers(line)).map(|it| it.0).collect();
        if here.is_empty() {
            return None;
        }
        let found = self.needed(here)?;
        Some(hash_of(|hasher| self.hash(&found, hasher)))
    }

    /// `None` if it may depend on everything, or if the declaration does not stand alone.
    fn of_part(&self, line: u32, part: Part) -> Option<u64> {
        let mut here = self.all.iter().filter(|it| it.0.covers(line));
        let (statement, _) = here.next().filter(|_| here.next().is_none())?;
        let tokens = declaration::part(statement, self.dialect, part)?;
        let excerpt = Statement { tokens };
        let facts = facts::of(&excerpt, self.dialect);
        if self.is_tied(&facts) {
            return None;
        }
        let needed = facts.mentions.iter().flat_map(|it| self.definers_of(*it)).collect();
        let found = self.needed(needed)?;
        Some(hash_of(|hasher| {
            excerpt.hash(hasher);
            self.hash(&found, hasher);
        }))
    }

    /// These statements, those that they depend on, and all that do something to who knows what; `None` if that may be everything.
    fn needed(&self, mut open: Vec<usize>) -> Option<BTreeSet<usize>> {
        let effective = self.all.iter().enumerate().filter(|(_, it)| it.1.has_effect);
        open.extend(effective.map(|(index, _)| index));
        let mut found = BTreeSet::new();
        while let Some(index) = open.pop() {
            if !found.insert(index) {
                continue;
            }
            let (_, facts) = self.all.get(index)?;
            if self.is_tied(facts) {
                return None;
            }
            open.extend(facts.mentions.iter().flat_map(|it| self.definers_of(*it)));
        }
        Some(found)
    }

    /// Whether it may have to do with everything.
    fn is_tied(&self, facts: &Facts<'_>) -> bool {
        facts.is_opaque || facts.mentions.iter().any(|it| self.shared.contains(it.name))
    }

    fn hash(&self, statements: &BTreeSet<usize>, hasher: &mut DefaultHasher) {
        let found = statements.iter().filter_map(|it| self.all.get(*it));
        found.for_each(|(statement, _)| statement.hash(hasher));
    }

    fn definers_of(&self, mention: Mention<'a>) -> impl Iterator<Item = usize> {
        let definers = self.definers.get(mention.name).into_iter().flatten();
        let concerned = definers.filter(move |(member, _)| {
            mention.member.is_none() || member.is_none() || mention.member == *member
        });
        concerned.map(|(_, index)| *index)
    }
}

/// The variables that functions change, and that others could see.
fn shared<'a>(
    regions: &[(Statement<'a>, Facts<'a>)],
    definers: &BTreeMap<&'a str, Vec<(Option<&'a str>, usize)>>,
) -> BTreeSet<&'a str> {
    // Of plain values, methods give new ones.
    let is_table = |name: &str| {
        let definers = definers.get(name).into_iter().flatten();
        definers.filter_map(|it| regions.get(it.1)).any(|(_, facts)| !facts.is_plain)
    };
    let mut shared = BTreeSet::new();
    for (_, facts) in regions {
        shared.extend(facts.changes.iter().copied());
        shared.extend(facts.changes_own.iter().filter(|it| definers.contains_key(**it)));
        shared.extend(facts.asks.iter().filter(|it| is_table(it)));
    }
    shared
}

impl Statement<'_> {
    fn hash(&self, hasher: &mut DefaultHasher) {
        for placed in &self.tokens {
            placed.token.kind.hash(hasher);
            placed.token.text.hash(hasher);
        }
        hasher.write_u8(0);
    }
}

/// Equal within one process; 0 is no fingerprint.
pub(super) fn hash_of(feed: impl FnOnce(&mut DefaultHasher)) -> u64 {
    let mut hasher = DefaultHasher::new();
    feed(&mut hasher);
    hasher.finish().max(1)
}
