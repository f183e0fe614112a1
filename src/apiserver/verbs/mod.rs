//! What may be done with objects, from a parsed request to its answer.

pub(crate) mod answer;
pub(crate) mod watch;
pub(crate) mod write;
