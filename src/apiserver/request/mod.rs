//! What is asked: paths, parameters, and the log of requests.

pub(crate) mod accept;
pub(crate) mod log;
pub(crate) mod query;
pub(crate) mod route;
