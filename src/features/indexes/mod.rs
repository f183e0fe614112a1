//! Maintains the in-memory indexes: calls index handlers for each event of an object, and holds all other handlers back until the
//! indexes are complete.

mod indexer;
mod readiness;
mod watch;

pub use self::{
    indexer::Indexer,
    readiness::{Gate, Ids, Readiness, ReadinessHold},
    watch::watch,
};
