//! Which resources and namespaces an operator serves.

pub mod inventory;
pub mod namespaces;
pub mod served;
