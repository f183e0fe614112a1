//! In-memory indexes that index handlers fill from objects, and how the results of these handlers are applied.
//!
//! The contract is `tests/vectors/indexing.json`. Before: `features/indexes`, which calls the handlers. After: `call/indexes.rs`,
//! which shares the indexes with all scripts.

mod contribution;
mod failures;
mod item;
mod key;
mod table;

pub use self::{
    contribution::Contribution,
    failures::IndexFailures,
    item::{IndexItem, entry_bytes},
    key::{IndexKey, Owner},
    table::{IndexPosition, IndexTable, IndexValues},
};

#[cfg(test)]
mod tests;
