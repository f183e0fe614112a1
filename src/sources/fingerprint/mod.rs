//! Fingerprints of scripts: which sources differ, and whether a save may be incomplete.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::scripting::Digest;

#[cfg(test)]
mod tests;

/// The fingerprints of the sources at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fingerprint {
    /// The sources by their names as users see them; those of modules include the script that loads them, because each script may have
    /// another version of a module.
    texts: BTreeMap<(String, Option<String>), Digest>,
    /// The reason why the set is not complete, if it is not.
    problem: Option<String>,
}

impl Fingerprint {
    /// Creates the fingerprints of a set that is not complete.
    pub fn of_problem(problem: impl Into<String>) -> Self {
        Fingerprint { problem: Some(problem.into()), ..Fingerprint::default() }
    }

    /// Adds the source of a script, or replaces the earlier one.
    pub fn add(&mut self, name: &str, text: &str) {
        self.texts.insert((name.to_owned(), None), Digest::of(text));
    }

    /// Adds a module of a script, if it exists.
    pub fn add_module(&mut self, name: String, script: &str, digest: Option<Digest>) {
        if let Some(digest) = digest {
            self.texts.insert((name, Some(script.to_owned())), digest);
        }
    }

    /// Returns the fingerprints of the scripts, without their modules.
    pub(super) fn of_scripts(&self) -> Self {
        let scripts = self.texts.iter().filter(|((_, script), _)| script.is_none());
        let texts = scripts.map(|(key, it)| (key.clone(), *it)).collect();
        Fingerprint { texts, problem: self.problem.clone() }
    }

    /// Returns whether a script has the same source in both.
    pub fn agrees_on(&self, script: &str, other: &Fingerprint) -> bool {
        let key = (script.to_owned(), None);
        self.texts.get(&key) == other.texts.get(&key)
    }

    /// Returns whether a save may be in progress: an earlier file is missing, empty or cannot be read now.
    pub fn may_be_halfway(&self, before: &Fingerprint) -> bool {
        let empty = Digest::of("");
        let is_lost = |(name, digest): (&(String, Option<String>), &Digest)| {
            *digest != empty && self.texts.get(name).is_none_or(|it| *it == empty)
        };
        match &self.problem {
            Some(_) => self.problem != before.problem,
            None => before.texts.iter().any(is_lost),
        }
    }

    /// Returns which sources differ from those of `before`.
    pub fn since(&self, before: &Fingerprint) -> Difference {
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

/// The names of sources that differ.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Difference {
    /// Sources that did not exist before.
    pub added: BTreeSet<String>,
    /// Sources that have changed.
    pub changed: BTreeSet<String>,
    /// Sources that no longer exist.
    pub removed: BTreeSet<String>,
}

/// Maximum number of names; further ones are only counted.
const NAMES_MAX: usize = 5;

impl fmt::Display for Difference {
    /// Formats like `handlers.lua`, or `handlers.lua, lib/new.lua (new), old.lua (gone)`.
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
