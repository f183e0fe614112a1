//! The integration tests, in one binary, which is fast to link.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod checker;
mod cli;
mod cluster;
mod docs;
mod e2e;
mod examples;
mod lsp;
mod ports;
mod reactor;
mod real_clock;
mod reconcile;
mod scenarios;
mod scripting;
mod simulation;
mod tidy;
mod vectors;
mod webhooks;
