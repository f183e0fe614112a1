//! How a statement of the top level relates to the others.
//!
//! When in doubt, facts are chosen so that more depends on the statement.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    Dialect,
    scan::{Token, TokenKind},
    statements::{Inside, Placed, Statement},
};
use crate::sorted::CollectSorted as _;

/// A name, optionally with one member: `M.f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mention<'a> {
    pub(super) name: &'a str,
    /// `None`: the whole value.
    pub(super) member: Option<&'a str>,
}

/// How one statement relates to the others.
#[derive(Debug, Default)]
pub(super) struct StatementFacts<'a> {
    /// The names to which it assigns.
    pub(super) defines: BTreeSet<Mention<'a>>,
    /// Whether the value that it defines is a new table, which no other name refers to.
    pub(super) is_fresh: bool,
    /// Whether the value that it defines has no mutable parts.
    pub(super) is_plain: bool,
    /// The names to which it refers.
    pub(super) mentions: BTreeSet<Mention<'a>>,
    /// Whether it has side effects that others may notice when it runs.
    pub(super) has_effect: bool,
    /// Whether it may refer to anything.
    pub(super) is_opaque: bool,
    /// The names that its functions change, except for local variables.
    pub(super) changes: BTreeSet<&'a str>,
    /// The names that its functions change, if they are also names of local variables.
    pub(super) changes_own: BTreeSet<&'a str>,
    /// The names whose methods its functions call.
    pub(super) asks: BTreeSet<&'a str>,
}

/// Reads the facts of a statement.
pub(super) fn of<'a>(statement: &Statement<'a>, dialect: &Dialect) -> StatementFacts<'a> {
    let left = Cell::new(STEPS_PER_TOKEN * (statement.tokens.len() + 1));
    let reading = Reading { tokens: &statement.tokens, dialect, left };
    let mut facts = StatementFacts { defines: reading.defines(), ..StatementFacts::default() };
    let value = reading.value();
    facts.is_fresh = reading.is_fresh(value);
    facts.is_plain = reading.at(value).is_some_and(|it| {
        matches!(it.token.kind, TokenKind::Text | TokenKind::Number)
            || it.token.is_one_of(&["true", "false"])
    });
    facts.has_effect = reading.has_effect();
    reading.mentions(&mut facts);
    reading.without_itself(&mut facts);
    reading.changes(&mut facts);
    facts.is_opaque |= reading.left.get() == 0;
    facts
}

/// Chains of names and brackets are walked from several of their positions. If that takes more steps than this, the statement
/// depends on everything.
const STEPS_PER_TOKEN: usize = 64;

/// A statement that is read. Positions beyond its ends have no token.
struct Reading<'s, 'a> {
    tokens: &'s [Placed<'a>],
    dialect: &'s Dialect,
    /// Remaining steps along chains and to brackets.
    left: Cell<usize>,
}

impl<'s, 'a> Reading<'s, 'a> {
    /// Counts a step. Returns `None` if there were too many.
    fn step(&self) -> Option<()> {
        let left = self.left.get().saturating_sub(1);
        self.left.set(left);
        (left > 0).then_some(())
    }

    fn at(&self, index: usize) -> Option<&'s Placed<'a>> {
        self.tokens.get(index)
    }

    fn is(&self, index: usize, texts: &[&str]) -> bool {
        self.at(index).is_some_and(|it| it.token.is_one_of(texts))
    }

    fn before(&self, index: usize) -> Option<&'s Placed<'a>> {
        index.checked_sub(1).and_then(|it| self.at(it))
    }

    fn is_before(&self, index: usize, texts: &[&str]) -> bool {
        self.before(index).is_some_and(|it| it.token.is_one_of(texts))
    }

    fn name(&self, index: usize) -> Option<&'a str> {
        let placed = self.at(index)?;
        (placed.token.kind == TokenKind::Name).then_some(placed.token.text)
    }

    fn all(&self) -> impl Iterator<Item = (usize, &'s Placed<'a>)> {
        self.tokens.iter().enumerate()
    }

    /// Returns where the assigned value begins; behind the end if the statement assigns nothing.
    fn value(&self) -> usize {
        let is_it = |it: &Placed<'_>| it.inside == Inside::Nothing && it.token.is("=");
        self.tokens.iter().position(is_it).map_or(self.tokens.len(), |it| it + 1)
    }

    fn is_fresh(&self, value: usize) -> bool {
        self.is(value, self.dialect.fresh)
            || self.chain(value).is_some_and(|(path, end)| {
                self.dialect.wrapping.contains(&&*path)
                    && self.is(end, &["("])
                    && self.is(end + 1, self.dialect.fresh)
            })
    }

    /// Returns the names with their separators from here on, `a.b:c`, and where they end.
    fn chain(&self, start: usize) -> Option<(String, usize)> {
        let mut path = self.name(start)?.to_owned();
        let mut end = start + 1;
        while self.is(end, self.dialect.accessing)
            && let Some(name) = self.name(end + 1)
        {
            self.step()?;
            path.push_str(self.at(end).map_or("", |it| it.token.text));
            path.push_str(name);
            end += 2;
        }
        Some((path, end))
    }

    /// Returns whether this token begins the arguments of a call.
    fn is_call(&self, index: usize) -> bool {
        let literal = |it: &Placed<'_>| it.token.kind == TokenKind::Text || it.token.is("{");
        self.is(index, &["("])
            || (self.dialect.calls_with_literals && self.at(index).is_some_and(literal))
    }

    /// Returns whether this token is a string that is the only argument of a call.
    fn is_call_with_text(&self, index: usize) -> bool {
        let is_text = self.at(index + 1).is_some_and(|it| it.token.kind == TokenKind::Text);
        self.is(index, &["("]) && is_text && self.is(index + 2, &[")"])
    }

    fn defines(&self) -> BTreeSet<Mention<'a>> {
        let whole = |name| Mention { name, member: None };
        let first = usize::from(self.is(0, &["export", "private"]));
        if self.is(first, &["function", "fn"]) {
            return self.target(first + 1, self.tokens.len()).into_iter().collect_set();
        }
        if self.is(first, self.dialect.declaring) && self.is(first + 1, &["function"]) {
            return self.name(first + 2).map(whole).into_iter().collect_set();
        }
        let names = self.all().filter(|(_, it)| it.inside == Inside::Nothing && !it.in_function);
        if self.is(first, self.dialect.declaring) {
            let end = self.value();
            let declared = names.filter(|(index, _)| {
                *index < end && (*index == first + 1 || self.is_before(*index, &[","]))
            });
            return declared.filter_map(|(index, _)| self.name(index)).map(whole).collect_set();
        }
        if self.is(first, &["import"]) {
            let named = names.filter(|(index, _)| self.is_before(*index, &["as"]));
            return named.filter_map(|(index, _)| self.name(index)).map(whole).collect_set();
        }
        let assigns = |it: &Placed<'_>| {
            it.inside == Inside::Nothing && it.token.is_one_of(self.dialect.assigning)
        };
        let Some(end) = self.tokens.iter().position(assigns) else { return BTreeSet::new() };
        let begins = names.filter(|(index, _)| {
            *index < end && (*index == first || self.is_before(*index, &[","]))
        });
        begins.filter_map(|(index, _)| self.target(index, end)).collect_set()
    }

    /// Returns the target of an assignment: `M.f`. An assignment to a part of `M.f` is one to all of it.
    fn target(&self, start: usize, end: usize) -> Option<Mention<'a>> {
        let name = self.name(start)?;
        let member = self.name(start + 2).filter(|_| self.is(start + 1, &[self.dialect.member]));
        let is_last = start + 3 >= end || self.is(start + 3, &["(", ",", "="]);
        // Metamethods act without being mentioned.
        let member = member.filter(|it| is_last && !it.starts_with("__"));
        Some(Mention { name, member })
    }

    /// Returns whether it has an effect, when it runs, that others could notice, other than assigning to its names and declaring
    /// handlers.
    fn has_effect(&self) -> bool {
        self.all().filter(|(_, it)| !it.in_function).any(|(index, placed)| {
            let token = &placed.token;
            let in_block = placed.inside == Inside::Block;
            (in_block && token.is_one_of(self.dialect.assigning) && self.assigned(index).is_some())
                || (in_block && self.names_function(index))
                || self.calls_unknown(index, token)
        })
    }

    /// Returns whether a function is named here that is visible outside of this block.
    fn names_function(&self, index: usize) -> bool {
        self.is(index, &["function"])
            && self.name(index + 1).is_some()
            && !self.is_before(index, self.dialect.declaring)
    }

    /// Returns whether a function is called here that is not known to be without side effects.
    fn calls_unknown(&self, index: usize, token: &Token<'a>) -> bool {
        if token.is_one_of(&[")", "]", "}"]) {
            return self.is(index + 1, &["("]);
        }
        if self.is_before(index, self.dialect.accessing) {
            // A chain of names is read at its first name; one that follows a bracket begins here.
            let is_rest = index.checked_sub(2).is_some_and(|it| self.name(it).is_some());
            return !is_rest && self.calls_from(index, false);
        }
        token.kind == TokenKind::Name && self.calls_from(index, true)
    }

    fn calls_from(&self, index: usize, is_whole: bool) -> bool {
        let Some((path, end)) = self.chain(index) else { return false };
        if !self.is_call(end) {
            return false;
        }
        let method = self.name(end - 1).unwrap_or_default();
        let is_method = !is_whole || self.is_before(end - 1, &[self.dialect.method]);
        let is_harmless = is_whole
            && (self.name(index).is_some_and(|it| self.dialect.harmless.contains(&it))
                || self.dialect.harmless_members.contains(&&*path)
                || (self.dialect.wrapping.contains(&&*path)
                    && self.is(end + 1, self.dialect.fresh)));
        let is_harmless =
            is_harmless || (is_method && self.dialect.harmless_methods.contains(&method));
        !is_harmless
    }

    fn mentions(&self, facts: &mut StatementFacts<'a>) {
        for (index, placed) in self.all() {
            let token = &placed.token;
            match token.kind {
                // Functions can be referred to by their names.
                TokenKind::Text => facts
                    .mentions
                    .extend(word(token.text).map(|name| Mention { name, member: None })),
                TokenKind::Name if !self.is_field(index, placed) => {
                    facts.is_opaque |= self.dialect.opaque.contains(&token.text)
                        || (self.dialect.names_functions == Some(token.text)
                            && !self.is_call_with_text(index + 1));
                    let member =
                        self.name(index + 2).filter(|_| self.is(index + 1, &[self.dialect.member]));
                    facts.mentions.insert(Mention { name: token.text, member });
                }
                TokenKind::Name | TokenKind::Keyword | TokenKind::Number | TokenKind::Symbol => {}
            }
        }
    }

    /// Removes the mentions of names where they are assigned to.
    fn without_itself(&self, facts: &mut StatementFacts<'a>) {
        let mut counts = BTreeMap::<_, usize>::new();
        for (index, placed) in self.all() {
            if let Some(name) = self.name(index).filter(|_| !self.is_field(index, placed)) {
                *counts.entry(name).or_default() += 1;
            }
        }
        for defined in facts.defines.iter().filter(|it| it.member.is_none()) {
            if counts.get(defined.name) == Some(&1) {
                facts.mentions.remove(defined);
            }
        }
    }

    /// Returns whether a name is only the key of a field.
    fn is_field(&self, index: usize, placed: &Placed<'_>) -> bool {
        self.is_before(index, self.dialect.accessing)
            || (placed.inside == Inside::Table
                && self.is(index + 1, &[self.dialect.keyed])
                && self.is_before(index, &["{", "#{", ",", ";"]))
    }

    fn changes(&self, facts: &mut StatementFacts<'a>) {
        let own = self.own();
        let mut note = |name: &'a str| {
            let is_own = own.contains(name);
            let names = if is_own { &mut facts.changes_own } else { &mut facts.changes };
            names.insert(name);
        };
        for (index, placed) in self.all().filter(|(_, it)| it.in_function) {
            let token = &placed.token;
            if token.is_one_of(self.dialect.assigning) && placed.inside != Inside::Table {
                self.assigned(index).into_iter().flatten().for_each(&mut note);
            }
            if self.names_function(index) {
                self.name(index + 1).into_iter().for_each(&mut note);
            }
            if token.kind == TokenKind::Name
                && let Some((path, end)) = self.chain(index)
                && self.dialect.changing.contains(&&*path)
                && let Some(name) = self.name(end + 1)
            {
                note(name);
            }
        }
        let asked = self.all().filter(|(_, it)| it.in_function).filter_map(|(index, _)| {
            let method = self.name(index)?;
            let is_method = self.is_before(index, &[self.dialect.method])
                && self.is_call(index + 1)
                && !self.dialect.harmless_methods.contains(&method);
            let base = is_method.then(|| self.base(index))??;
            self.name(base).filter(|it| !own.contains(it))
        });
        facts.asks = asked.collect();
    }

    /// Returns the local names of the functions in here.
    fn own(&self) -> BTreeSet<&'a str> {
        let mut own = BTreeSet::new();
        let mut is_declared = false;
        for (index, placed) in self.all().filter(|(_, it)| it.in_function) {
            let token = &placed.token;
            if token.is_one_of(self.dialect.declaring) || token.is_one_of(&["for", "catch"]) {
                is_declared = true;
            } else if token.kind == TokenKind::Name {
                if is_declared || placed.inside == Inside::Parameters {
                    own.insert(token.text);
                }
                let goes_on = [",", ":", "(", ")", "function"];
                is_declared &= self.is(index + 1, &goes_on);
            } else if !token.is_one_of(&[",", "(", "function"]) {
                is_declared = false;
            }
        }
        own.remove("_");
        own
    }

    /// Returns the named variables to which an assignment is made; `None` if it declares them.
    fn assigned(&self, at: usize) -> Option<Vec<&'a str>> {
        let mut names = Vec::new();
        let mut end = at;
        while let Some(base) = end.checked_sub(1).and_then(|it| self.base(it)) {
            names.extend(self.name(base).filter(|it| *it != "_"));
            if self.is_before(base, self.dialect.declaring) || self.is_before(base, &["for"]) {
                return None;
            }
            if !self.is_before(base, &[","]) {
                break;
            }
            end = base - 1;
        }
        Some(names)
    }

    /// Returns where the expression begins that ends here with a name or an index: `a` of `a.b[c].d`.
    fn base(&self, end: usize) -> Option<usize> {
        let mut at = end;
        loop {
            self.step()?;
            while self.is(at, &["]", ")"]) {
                at = self.opening(at)?.checked_sub(1)?;
            }
            self.name(at)?;
            if !self.is_before(at, self.dialect.accessing) {
                return Some(at);
            }
            at = at.checked_sub(2)?;
        }
    }

    /// Returns the opening bracket of this closing one.
    fn opening(&self, closing: usize) -> Option<usize> {
        let mut depth = 0_usize;
        (0..=closing).rev().find(|index| {
            if self.step().is_none() {
                return true;
            }
            if self.is(*index, &[")", "]", "}"]) {
                depth += 1;
            } else if self.is(*index, &["(", "[", "?[", "{", "#{"]) {
                depth = depth.saturating_sub(1);
            }
            depth == 0
        })
    }
}

/// Returns the content of a string that is a single name.
fn word(text: &str) -> Option<&str> {
    let word = text.trim_matches(['"', '\'', '`']);
    let is_word = word.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
        && word.chars().all(|it| it.is_ascii_alphanumeric() || it == '_');
    is_word.then_some(word)
}
