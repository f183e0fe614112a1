//! What was read, in a form that can be compared and kept: which texts differ, and whether a save may be half done.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::scripting::Digest;

#[cfg(test)]
mod tests;

/// The sources as they were at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Print {
    /// The texts by their names as users see them; those of modules with the script that loads them, as each script may
    /// have another version of it.
    texts: BTreeMap<(String, Option<String>), Digest>,
    /// Why the set is not complete, if so.
    problem: Option<String>,
}

impl Print {
    /// A set that is not complete.
    pub fn of_problem(problem: impl Into<String>) -> Self {
        Print { problem: Some(problem.into()), ..Print::default() }
    }

    /// Notes a script.
    pub fn add(&mut self, name: &str, text: &str) {
        self.texts.insert((name.to_owned(), None), Digest::of(text));
    }

    /// Notes a module of a script; nothing if it is not there.
    pub fn add_module(&mut self, name: String, script: &str, digest: Option<Digest>) {
        if let Some(digest) = digest {
            self.texts.insert((name, Some(script.to_owned())), digest);
        }
    }

    /// Notes what another one has noted of its texts.
    pub fn extend(&mut self, other: Print) {
        self.texts.extend(other.texts);
    }

    /// Whether a script has the same text in both.
    pub fn agrees_on(&self, script: &str, other: &Print) -> bool {
        let key = (script.to_owned(), None);
        self.texts.get(&key) == other.texts.get(&key)
    }

    /// Whether this may be a moment in the middle of a save: something of before is away or empty, or cannot be read now.
    pub fn may_be_halfway(&self, before: &Print) -> bool {
        let empty = Digest::of("");
        let is_lost = |(name, digest): (&(String, Option<String>), &Digest)| {
            *digest != empty && self.texts.get(name).is_none_or(|it| *it == empty)
        };
        match &self.problem {
            Some(_) => self.problem != before.problem,
            None => before.texts.iter().any(is_lost),
        }
    }

    /// Which texts differ from those of before.
    pub fn since(&self, before: &Print) -> Difference {
        let mut difference = Difference::default();
        for (name, digest) in &self.texts {
            match before.texts.get(name) {
                Some(old) if old == digest => {}
                Some(_) => {
                    difference.changed.insert(name.0.clone());
                }
                None => {
                    difference.added.insert(name.0.clone());
                }
            }
        }
        let gone = before.texts.keys().filter(|it| !self.texts.contains_key(*it));
        difference.removed = gone.map(|it| it.0.clone()).collect();
        difference
    }
}

/// The names of texts that differ.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Difference {
    /// Not there before.
    pub added: BTreeSet<String>,
    /// There before with another text.
    pub changed: BTreeSet<String>,
    /// Not there any more.
    pub removed: BTreeSet<String>,
}

/// More names than these are only counted.
const NAMES_MAX: usize = 5;

impl fmt::Display for Difference {
    /// `handlers.lua`, or `handlers.lua, lib/new.lua (new), old.lua (gone)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let marked = |names: &BTreeSet<String>, mark: &'static str| {
            names.iter().map(|it| format!("{it}{mark}")).collect::<Vec<_>>()
        };
        let mut names = marked(&self.changed, "");
        names.extend(marked(&self.added, " (new)"));
        names.extend(marked(&self.removed, " (gone)"));
        let more = names.len().saturating_sub(NAMES_MAX);
        names.truncate(NAMES_MAX);
        f.write_str(&names.join(", "))?;
        if more > 0 { write!(f, " and {more} more") } else { Ok(()) }
    }
}
