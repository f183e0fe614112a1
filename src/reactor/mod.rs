//! The main flow: streams → queues → workers; start and shutdown of an operator.

mod admission;
mod background_tasks;
mod backlog;
mod change;
mod conclusion;
mod cycle;
mod daemon_sync;
mod delivery;
mod error;
mod expectation;
mod generation;
mod holding;
mod memory;
mod observer;
mod operator;
mod permits;
mod poster;
mod probing;
mod queue;
mod replicas;
mod run;
mod serve;
mod stream_log;
mod streams;
mod undecided;
mod watching;
mod worker;

pub use operator::{Connect, Connecting, Failure, Operator, Scope};
pub use run::run;
