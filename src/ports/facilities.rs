//! What an operator offers to every call of its scripts, whatever the call is about.

use super::{clock::Clock, indexes::Indexes, kube::Kube, leadership::Leadership, posts::Posts};

/// Shared by all calls of one operator.
#[derive(Clone, Debug, Default)]
pub struct Facilities {
    /// The in-memory tables, by id: kwargs of every handler and filter.
    pub indexes: Indexes,
    /// Where Kubernetes events go.
    pub posts: Posts,
    /// What time it is for those who write it down.
    pub clock: Clock,
    /// The cluster.
    pub kube: Kube,
    /// Whether calls may go on.
    pub leadership: Leadership,
}
