//! What was asked for so far, for those who want to know which permissions a program needs.

use std::collections::BTreeMap;

use crate::rbac::Attributes;

/// Different accesses that are remembered. Programs that name objects after others could ask for any number of them.
const ACCESSES_MAX: usize = 10_000;

/// One way in which a user has used the server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// What was asked for.
    pub attributes: Attributes,
    /// The name of the user.
    pub user: String,
    /// Whether it was allowed.
    pub allowed: bool,
}

/// All accesses so far.
#[derive(Clone, Debug, Default)]
pub struct Accesses {
    /// How often each was made.
    pub counts: BTreeMap<Access, u64>,
    /// Requests that are not among them, because there are too many different ones.
    pub dropped: u64,
}

impl Accesses {
    pub(crate) fn add(&mut self, access: Access) {
        if let Some(count) = self.counts.get_mut(&access) {
            *count += 1;
        } else if self.counts.len() < ACCESSES_MAX {
            self.counts.insert(access, 1);
        } else {
            self.dropped += 1;
        }
    }
}
