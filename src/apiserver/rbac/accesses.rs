//! A record of all accesses, to determine which permissions a program needs.

use std::collections::BTreeMap;

use crate::rbac::Attributes;

/// Limit of different accesses: programs that derive the names of objects could make any number of them.
const ACCESSES_MAX: usize = 10_000;

/// One way in which a user has accessed the server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccessRecord {
    /// The attributes of the request.
    pub attributes: Attributes,
    /// The name of the user.
    pub user: String,
    /// The request was allowed.
    pub allowed: bool,
}

/// All accesses so far.
#[derive(Clone, Debug, Default)]
pub struct Accesses {
    /// The number of requests for each access.
    pub counts: BTreeMap<AccessRecord, u64>,
    /// The number of requests beyond the limit, which are not recorded.
    pub dropped: u64,
}

impl Accesses {
    pub(crate) fn add(&mut self, access: AccessRecord) {
        if let Some(count) = self.counts.get_mut(&access) {
            *count += 1;
        } else if self.counts.len() < ACCESSES_MAX {
            self.counts.insert(access, 1);
        } else {
            self.dropped += 1;
        }
    }
}
