//! Tests that need the real clock, real files or the CPU to themselves: `.ci/run` runs them alone.

mod dev;
mod findings;
mod sandbox;
mod sources;
