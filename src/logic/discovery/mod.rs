//! Determines the resources and namespaces that an operator serves.

pub mod inventory;
pub mod namespaces;
pub mod served;
