//! What scripts are allowed beyond their sandbox: nothing, unless it is granted.

/// The grants of one operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {}
