//! The access of the process: credentials, grants of scripts, and the cluster as scripts use it.

pub mod grants;
pub mod kube;
pub mod login;
pub mod vault;
