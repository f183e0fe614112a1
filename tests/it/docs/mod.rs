//! The documentation: its claims and its examples.

mod compatibility;
pub(crate) mod documentation;
