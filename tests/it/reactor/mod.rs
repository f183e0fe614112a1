//! The whole operator on virtual time: the watches, the calls of handlers, reloads, several operators.

mod cycles;
mod exclusive;
mod failures;
mod health;
mod isolation;
mod kopf_bugs;
mod locks;
mod memory;
mod operators;
mod posting;
mod reconcile;
mod reload;
mod scripted;
