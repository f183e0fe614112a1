//! `kopf.reconcile`: applies the children that a function returns, repairs and deletes them, and calls the function again when one of
//! them changes.
//!
//! `relations.rs` keeps the children in indexes. The task of each object is that of a timer, in `features/daemons`, which calls this module
//! after each call of the function. `logic/reconcile` decides what to apply and to delete.

mod call;
mod relations;
mod requests;

pub use self::{
    call::{Memory, NextCall, Reconciliation, UnownedChildren},
    relations::{apply, mapped_contribution, own_contribution, remove},
};
