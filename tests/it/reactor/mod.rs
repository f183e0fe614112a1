//! The whole operator on virtual time: what is watched, when handlers are called, reloads, several operators.

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
