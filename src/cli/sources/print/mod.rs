//! What was read, in a form that can be compared and kept: which texts differ, and whether a save may be half done.

use std::{collections::BTreeMap, fmt};

use blake2::{Blake2b, Digest as _, digest::consts::U16};

#[cfg(test)]
mod tests;

/// Stands for a text. Nobody gains anything by finding two texts with the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest([u8; 16]);

impl Digest {
    /// That of this text.
    pub fn of(text: &str) -> Self {
        Digest(Blake2b::<U16>::digest(text).into())
    }
}

/// The sources as they were at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Print {
    /// The texts by their names as users see them.
    pub texts: BTreeMap<String, Digest>,
    /// Why the set is not complete, if so.
    pub problem: Option<String>,
}

impl Print {
    /// Notes a text.
    pub fn add(&mut self, name: &str, text: &str) {
        self.texts.insert(name.to_owned(), Digest::of(text));
    }

    /// Whether this may be a moment in the middle of a save: something of before is away or empty, or cannot be read now.
    pub fn may_be_halfway(&self, before: &Print) -> bool {
        let empty = Digest::of("");
        let is_lost = |(name, digest): (&String, &Digest)| {
            *digest != empty && self.texts.get(name).is_none_or(|it| *it == empty)
        };
        let is_broken = self.problem.is_some() && self.problem != before.problem;
        is_broken || before.texts.iter().any(is_lost)
    }

    /// Which texts differ from those of before.
    pub fn since(&self, before: &Print) -> Difference {
        let mut difference = Difference::default();
        for (name, digest) in &self.texts {
            match before.texts.get(name) {
                Some(old) if old == digest => {}
                Some(_) => difference.changed.push(name.clone()),
                None => difference.added.push(name.clone()),
            }
        }
        let is_gone = |name: &&String| !self.texts.contains_key(*name);
        difference.removed = before.texts.keys().filter(is_gone).cloned().collect();
        difference
    }
}

/// The names of texts that differ.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Difference {
    /// Not there before.
    pub added: Vec<String>,
    /// There before with another text.
    pub changed: Vec<String>,
    /// Not there any more.
    pub removed: Vec<String>,
}

/// More names than these are only counted.
const NAMES_MAX: usize = 5;

impl fmt::Display for Difference {
    /// `handlers.lua`, or `handlers.lua, lib/new.lua (new), old.lua (gone)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let marked = |names: &[String], mark: &'static str| {
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
