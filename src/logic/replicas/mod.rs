//! One operator among others: peering between operators, and the election of a leader among replicas.

pub mod duplicates;
pub mod leadership;
pub mod peering;
