//! The integration tests, in one binary: fast to link, one place to look.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod border;
mod cli;
mod cluster;
mod compatibility;
mod cycles;
mod dev;
mod documentation;
mod e2e;
mod examples;
mod generations;
mod health;
mod init;
mod isolation;
mod kube;
mod lua;
mod memory;
mod modules;
mod others;
mod posting;
mod reload;
mod reload_sources;
mod rhai;
mod sandbox;
mod scenarios;
mod settings;
mod simulation;
mod stubs;
mod surface;
mod tidy;
mod vectors;
mod webhooks;
mod wrong;
