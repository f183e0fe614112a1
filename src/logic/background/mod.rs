//! Decisions alongside the main flow: schedules of daemons and timers, their stages of stopping, throttling, indexes, posts.

pub mod failures;
pub mod indexing;
pub mod posting;
pub mod schedule;
pub mod stopping;
pub mod throttle;
