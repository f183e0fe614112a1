//! The documentation: what it claims and what it shows.

mod compatibility;
pub(crate) mod documentation;
