//! Several operators on one embedded server and one paused clock: peers that pause for each other, and replicas with a leader.

mod cluster;
mod duplicates;
mod frozen;
mod leadership;
mod peering;
mod replicas;
mod schedules;
