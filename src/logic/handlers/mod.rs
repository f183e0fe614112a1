//! Handlers: how they are declared, what they select, how they end, and the progress that is stored for them.

pub mod callback;
pub mod declare;
pub mod description;
pub mod failing;
pub mod function;
pub mod handler;
pub mod lifecycle;
pub mod outcome;
mod owner;
pub mod progress;
pub mod reconcile;
pub mod relations;
pub mod selector;
