//! Computes what a handler depends on in the source of its script, as a hash, so that an edit restarts only the handlers that it
//! affects.
//!
//! The source is split into the statements of its top level. A handler depends on the statement that declares it, on those that
//! define the names this one mentions, and so on; and on every top-level statement with unknown side effects. White space, comments
//! and line numbers do not count. If the source cannot be split, every handler depends on all of it.
//!
//! Variables that functions change connect handlers, too. A daemon that keeps running does so in its old virtual machine; it would
//! not see what others write to such a variable in the new one. So a handler that mentions such a variable depends on the whole
//! source.

mod declaration;
mod dialect;
mod facts;
mod lua;
mod rhai;
mod scan;
mod statements;
#[cfg(test)]
mod tests;

use self::dialect::Dialect;
use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

pub(in crate::scripting) use self::declaration::DeclarationPart;
pub(crate) use self::scan::{EXPRESSION, STRING_CONTINUES, Token, TokenKind};
use self::{
    facts::{Mention, StatementFacts},
    scan::Scanner,
    statements::Statement,
};
use crate::scripting::terms::Language;

/// The source of a script, split as far as needed.
pub(in crate::scripting) struct Fingerprints<'a> {
    whole: u64,
    /// `None` if the source could not be split.
    regions: Option<Regions<'a>>,
}

struct Regions<'a> {
    all: Vec<Region<'a>>,
    /// The statements that assign to each name.
    definers: Definers<'a>,
    /// The variables that functions change.
    shared: BTreeSet<&'a str>,
    /// The statements with unknown side effects.
    effective: Vec<usize>,
    dialect: &'static Dialect,
    /// Remaining steps before handlers are no longer distinguished: a script may have many handlers with many dependencies.
    left: Cell<usize>,
}

/// A statement with its facts, which are needed for each handler.
struct Region<'a> {
    statement: Statement<'a>,
    facts: StatementFacts<'a>,
    lines: (u32, u32),
    hash: u64,
    /// Whether it may depend on everything.
    is_tied: bool,
}

/// By name and member: the entry of a name precedes those of its members.
type Definers<'a> = BTreeMap<Mention<'a>, Vec<usize>>;

/// Takes less than a second. The remaining handlers then depend on the whole source.
const STEPS_MAX: usize = 10_000_000;

impl<'a> Fingerprints<'a> {
    /// Splits a source into statements, and reads their facts.
    pub(in crate::scripting) fn of(language: Language, text: &'a str) -> Self {
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

    /// Returns the fingerprint of the declarations in this line.
    pub(in crate::scripting) fn of_line(&self, line: u32) -> u64 {
        self.regions.as_ref().and_then(|it| it.of_line(line)).unwrap_or(self.whole)
    }

    /// Returns the fingerprint of a part of the declaration in this line; 0 if the part cannot be separated.
    ///
    /// A fingerprint other than 0 belongs to one handler: the declaration stands alone, and runs once.
    pub(in crate::scripting) fn of_part(&self, line: u32, part: DeclarationPart) -> u64 {
        self.regions.as_ref().and_then(|it| it.of_part(line, part)).unwrap_or_default()
    }

    /// Returns the fingerprint of the whole source.
    pub(in crate::scripting) fn whole(&self) -> u64 {
        self.whole
    }
}

impl<'a> Regions<'a> {
    fn new(statements: Vec<Statement<'a>>, dialect: &'static Dialect) -> Self {
        let mut all: Vec<_> = statements.into_iter().map(|it| Region::of(it, dialect)).collect();
        let mut definers = Definers::new();
        for (index, region) in all.iter().enumerate() {
            for defined in &region.facts.defines {
                definers.entry(*defined).or_default().push(index);
            }
        }
        let shared = shared(&all, &definers);
        // An assignment to a member changes the table under all its names. Only a table that is created here is known to have one
        // name.
        let is_fresh = |name: &'a str| {
            let makers = definers.get(&Mention { name, member: None }).into_iter().flatten();
            let mut makers = makers.filter_map(|index| all.get(*index)).peekable();
            makers.peek().is_some() && makers.all(|it| it.facts.is_fresh)
        };
        let names: BTreeSet<_> = definers.keys().map(|it| it.name).collect();
        let fresh: BTreeSet<_> = names.into_iter().filter(|it| is_fresh(it)).collect();
        for region in &mut all {
            let facts = &mut region.facts;
            let mut defines = facts.defines.iter();
            facts.has_effect |= defines.any(|it| it.member.is_some() && !fresh.contains(it.name));
            region.is_tied = is_tied(facts, &shared);
        }
        let effective = all.iter().enumerate().filter(|(_, it)| it.facts.has_effect);
        let effective = effective.map(|(index, _)| index).collect();
        Regions { all, definers, shared, effective, dialect, left: Cell::new(STEPS_MAX) }
    }

    /// Counts steps. Returns `None` if there were too many.
    fn step(&self, count: usize) -> Option<()> {
        let left = self.left.get().saturating_sub(count);
        self.left.set(left);
        (left > 0).then_some(())
    }

    /// Returns the statements in this line.
    fn here(&self, line: u32) -> Option<Vec<usize>> {
        self.step(self.all.len())?;
        let covers = |it: &Region<'_>| (it.lines.0..=it.lines.1).contains(&line);
        Some(self.all.iter().enumerate().filter(|(_, it)| covers(it)).map(|it| it.0).collect())
    }

    /// Returns `None` if the line may depend on everything.
    fn of_line(&self, line: u32) -> Option<u64> {
        let here = self.here(line).filter(|it| !it.is_empty())?;
        let found = self.needed(here)?;
        Some(hash_of(|hasher| self.hash(&found, hasher)))
    }

    /// Returns `None` if the part may depend on everything, or if the declaration does not stand alone.
    fn of_part(&self, line: u32, part: DeclarationPart) -> Option<u64> {
        let here = self.here(line)?;
        let [index] = here[..] else { return None };
        let statement = &self.all.get(index)?.statement;
        self.step(statement.tokens.len())?;
        let tokens = declaration::part(statement, self.dialect, part)?;
        let excerpt = Statement { tokens };
        let facts = facts::of(&excerpt, self.dialect);
        if is_tied(&facts, &self.shared) {
            return None;
        }
        let needed = facts.mentions.iter().flat_map(|it| self.definers_of(*it)).collect();
        let found = self.needed(needed)?;
        Some(hash_of(|hasher| {
            excerpt.hash(hasher);
            self.hash(&found, hasher);
        }))
    }

    /// Marks these statements, those that they depend on, and all with unknown side effects. Returns `None` if that may be
    /// everything.
    fn needed(&self, mut open: Vec<usize>) -> Option<Vec<bool>> {
        self.step(self.all.len())?;
        open.extend(&self.effective);
        let (mut found, mut seen) = (vec![false; self.all.len()], BTreeSet::new());
        while let Some(index) = open.pop() {
            if std::mem::replace(found.get_mut(index)?, true) {
                continue;
            }
            let region = self.all.get(index)?;
            if region.is_tied {
                return None;
            }
            self.step(region.facts.mentions.len())?;
            for mention in &region.facts.mentions {
                // Many statements may mention a name, and many may define it.
                if seen.insert(*mention) {
                    let before = open.len();
                    open.extend(self.definers_of(*mention));
                    self.step(open.len() - before)?;
                }
            }
        }
        Some(found)
    }

    fn hash(&self, found: &[bool], hasher: &mut DefaultHasher) {
        let found = self.all.iter().zip(found).filter(|(_, is_found)| **is_found);
        found.for_each(|(region, _)| hasher.write_u64(region.hash));
    }

    fn definers_of(&self, mention: Mention<'a>) -> impl Iterator<Item = usize> {
        let Mention { name, member } = mention;
        let whole = Mention { name, member: None };
        let of_member = member.and_then(|_| self.definers.get(&mention));
        let (of_name, of_all) = match member {
            Some(_) => (self.definers.get(&whole), None),
            None => {
                (None, Some(self.definers.range(whole..).take_while(move |it| it.0.name == name)))
            }
        };
        let of_all = of_all.into_iter().flatten().flat_map(|(_, it)| it);
        of_name.into_iter().flatten().chain(of_member.into_iter().flatten()).chain(of_all).copied()
    }
}

impl<'a> Region<'a> {
    fn of(statement: Statement<'a>, dialect: &Dialect) -> Self {
        let facts = facts::of(&statement, dialect);
        let hash = hash_of(|hasher| statement.hash(hasher));
        Region { lines: statement.lines(), facts, hash, is_tied: false, statement }
    }
}

/// Returns whether a statement may depend on everything.
fn is_tied(facts: &StatementFacts<'_>, shared: &BTreeSet<&str>) -> bool {
    facts.is_opaque || facts.mentions.iter().any(|it| shared.contains(it.name))
}

/// Returns the variables that functions change and that others could see.
fn shared<'a>(regions: &[Region<'a>], definers: &Definers<'a>) -> BTreeSet<&'a str> {
    // Methods of plain values return new values.
    let is_plain = |indexes: &[usize]| {
        let mut regions = indexes.iter().filter_map(|it| regions.get(*it));
        regions.all(|it| it.facts.is_plain)
    };
    let tables = definers.iter().filter(|(_, indexes)| !is_plain(indexes));
    let tables: BTreeSet<_> = tables.map(|(defined, _)| defined.name).collect();
    let names: BTreeSet<_> = definers.keys().map(|it| it.name).collect();
    let mut shared = BTreeSet::new();
    for Region { facts, .. } in regions {
        shared.extend(facts.changes.iter().copied());
        shared.extend(facts.changes_own.iter().filter(|it| names.contains(**it)));
        shared.extend(facts.asks.iter().filter(|it| tables.contains(**it)));
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

/// Returns the number of tokens; `None` if the source cannot be read.
pub(in crate::scripting) fn tokens(language: Language, text: &str) -> Option<usize> {
    read(language, Scanner::counting(text))?.counted()
}

/// Returns the tokens of a source; `None` if it cannot be read.
pub(crate) fn lex(language: Language, text: &str) -> Option<Vec<Token<'_>>> {
    read(language, Scanner::new(text))?.finish()
}

fn read(language: Language, scanner: Scanner<'_>) -> Option<Scanner<'_>> {
    match language {
        Language::Lua => lua::lex(scanner),
        Language::Rhai => rhai::lex(scanner),
    }
}

/// Returns a hash that is stable within one process, and never 0: 0 means no fingerprint.
pub(in crate::scripting) fn hash_of(feed: impl FnOnce(&mut DefaultHasher)) -> u64 {
    let mut hasher = DefaultHasher::new();
    feed(&mut hasher);
    hasher.finish().max(1)
}
