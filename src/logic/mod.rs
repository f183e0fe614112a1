//! What an event means and what to do about it: pure functions over plain data.
//!
//! Nothing here touches the outside world and thus nothing here can fail for its reasons; `now` is an argument.
//! The contract is `tests/vectors/`: a suite and the file that satisfies it share a name.

pub mod annotations;
pub mod cause;
pub mod claim;
pub mod conditions;
pub mod configure;
pub mod corrupt;
pub mod declare;
pub mod description;
pub mod diff;
pub mod diffbase;
pub mod duration;
pub mod essence;
pub mod failed;
pub mod fields;
pub mod filters;
pub mod function;
pub mod generation;
pub mod grants;
pub mod handler;
pub mod hierarchy;
mod home;
pub mod indexing;
pub mod inventory;
pub mod json;
pub mod kube;
pub mod leadership;
pub mod lifecycle;
pub mod login;
pub mod namespaces;
pub mod nanos;
pub mod nearest;
pub mod object;
pub mod outcome;
pub mod patch;
pub mod peering;
pub mod plan;
pub mod posting;
pub mod progress;
pub mod python_text;
pub mod reason;
pub mod reference;
pub mod registry;
pub mod resource;
pub mod schedule;
pub mod selection;
pub mod selector;
pub mod served;
pub mod settle;
pub mod size;
pub mod state;
pub mod stopping;
pub mod throttle;
pub mod undecided;
pub mod vault;
