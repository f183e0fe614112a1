//! Warnings that are logged once.

use std::{collections::BTreeSet, sync::Arc};

use parking_lot::Mutex;

/// The subjects of earlier warnings; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Notices(Arc<Mutex<BTreeSet<String>>>);

impl Notices {
    /// Returns whether there was no warning about this subject yet, and stores the subject; always false after too many subjects.
    pub fn is_first(&self, about: &str) -> bool {
        const NOTICES_MAX: usize = 1_000;
        let mut given = self.0.lock();
        given.len() < NOTICES_MAX && given.insert(about.to_owned())
    }
}
