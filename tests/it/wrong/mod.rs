//! Where Kopf is wrong, and we are right: each test fails on the behaviour of Kopf 1.45.2.
//!
//! The letters are those of the list in `docs/compatibility.md`.

mod background;
mod big_objects;
mod pauses;
mod two_operators;
