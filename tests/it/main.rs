//! The integration tests, in one binary: fast to link, one place to look.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod lua;
mod rhai;
mod vectors;
