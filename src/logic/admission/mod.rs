//! Webhooks: reads reviews, builds responses, and builds the configurations that make API servers send reviews.
//!
//! The contract is `tests/vectors/admission-reviews.json` and `admission-configurations.json`. The handlers of a review are chosen
//! by `logic/change/selection.rs`.

pub mod certificates;
pub mod configuration;
pub mod conversion;
pub mod guard;
mod label_selector;
pub mod local_cluster;
pub mod own_objects;
pub mod own_writes;
pub mod reading;
pub mod response;
pub mod review;
pub mod server;
pub mod tunnel;
