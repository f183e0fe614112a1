//! One operator among others: peering between operators, and leader election among replicas.

pub mod duplicates;
pub mod leadership;
pub mod peering;
