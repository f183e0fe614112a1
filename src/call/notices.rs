//! Warnings that are given once.

use std::{collections::BTreeSet, sync::Arc};

use parking_lot::Mutex;

/// What was warned of; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Notices(Arc<Mutex<BTreeSet<String>>>);

impl Notices {
    /// Returns whether there was no warning about this yet. After too many of them there is none.
    pub fn is_first(&self, about: &str) -> bool {
        const NOTICES_MAX: usize = 1_000;
        let mut given = self.0.lock();
        given.len() < NOTICES_MAX && given.insert(about.to_owned())
    }
}
