//! In-memory tables that index handlers fill and every handler reads.

/// The tables of one operator, by id.
#[derive(Clone, Debug, Default)]
pub struct Indexes {}
