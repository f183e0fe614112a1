//! The main flow: streams → queues → workers; start and shutdown of an operator.

mod background;
mod backlog;
mod calls;
mod change;
mod companions;
mod conclusion;
mod cycle;
mod delivery;
mod error;
mod expectation;
mod holding;
mod life;
mod memory;
mod observer;
mod operator;
mod place;
mod post;
mod poster;
mod probing;
mod queue;
mod reload;
mod replicas;
mod review;
mod roster;
mod seen;
mod serve;
mod serving;
mod stream_log;
mod streams;
mod undecided;
mod watching;
mod worker;

pub use life::run;
pub use operator::{Connect, Connecting, Failure, Operator, Scope};
