//! Known bugs of Kopf that this operator does not have: each test fails on the behaviour of Kopf 1.45.2.
//!
//! The letters are those of the list in `docs/compatibility.md`.

mod background;
mod backlogs;
mod big_objects;
mod clocks;
mod deep_objects;
mod failed_streams;
mod missed_deletions;
mod pauses;
mod slow_handlers;
mod two_operators;
