//! The embedded API server alone: it uses nothing else of the crate, and the engines of scripts would take minutes to build.

#[path = "../../src/apiserver/mod.rs"]
pub mod apiserver;
