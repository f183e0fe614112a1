//! Features around the main flow: daemons, timers, indexes, peering, leader election, posting, probes, schedules.
pub mod probes;

pub mod admission;
pub mod daemons;
pub mod duplicates;
pub mod indexes;
pub mod leadership;
pub mod peering;
pub mod posting;
pub mod reconcile;
pub mod schedules;
