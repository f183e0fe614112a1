//! Keeps the in-memory tables: calls index handlers for each event of an object, and holds all others back until the tables
//! are complete.

mod indexer;
mod readiness;
mod watch;

pub use self::{
    indexer::Indexer,
    readiness::{Gate, Hold, Ids, Readiness},
    watch::watch,
};
