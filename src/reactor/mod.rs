//! The main flow: streams → queues → workers; start and shutdown of an operator.

mod generation;
mod object;
mod observer;
mod operator;
mod streams;

pub use generation::digest_key::stores_digests;
pub use observer::NamespaceScope;
pub use operator::run::run;
pub use operator::{Connect, Connecting, Operator, OperatorFailure};
