//! The known state of the children of an object between calls. There may be many thousands of objects, most of them with few children.

use std::num::NonZeroU64;

use crate::logic::text::nanos::Nanos;

/// The known state of a child since it was applied or seen as wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct AppliedChild {
    /// The digest of the body that was applied.
    pub digest: u64,
    /// The fingerprint of the content that the server has stored for it, unless that has all that was applied.
    pub content: Option<NonZeroU64>,
    /// The fingerprint of the JSON of the object when the watch last showed it as wanted.
    pub fingerprint: Option<NonZeroU64>,
    /// The version of the object then.
    pub version: Option<NonZeroU64>,
    /// Whether the watch has shown this version, or a newer one.
    pub is_seen: bool,
    /// When it was applied.
    pub at: Nanos,
}

/// The known state of the children of one object, sorted by their keys. A list takes a tenth of the memory of a map with one entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnownChildren(Vec<(Box<str>, AppliedChild)>);

impl KnownChildren {
    /// Returns the known state of a child.
    pub fn get(&self, key: &str) -> Option<&AppliedChild> {
        self.0.get(self.place(key).ok()?).map(|(_, it)| it)
    }

    /// Returns the known state of a child, to change it.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut AppliedChild> {
        let place = self.place(key).ok()?;
        self.0.get_mut(place).map(|(_, it)| it)
    }

    /// Stores the known state of a child.
    pub fn insert(&mut self, key: &str, applied: AppliedChild) {
        if let Some(present) = self.get_mut(key) {
            *present = applied;
            return;
        }
        let (Ok(place) | Err(place)) = self.place(key);
        // Exact for few; more for many, which would be copied each time.
        self.0.reserve_exact(1 + self.0.len() / 8);
        self.0.insert(place, (key.into(), applied));
    }

    /// Removes the children whose keys are not `wanted`.
    pub fn retain(&mut self, wanted: impl Fn(&str) -> bool) {
        self.0.retain(|(key, _)| wanted(key));
        if self.0.len() < self.0.capacity() / 2 {
            self.0.shrink_to_fit();
        }
    }

    /// Returns the number of children.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn place(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(it, _)| (**it).cmp(key))
    }
}

impl Extend<(String, AppliedChild)> for KnownChildren {
    fn extend<I: IntoIterator<Item = (String, AppliedChild)>>(&mut self, items: I) {
        items.into_iter().for_each(|(key, it)| self.insert(&key, it));
    }
}
