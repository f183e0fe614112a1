//! What is asked: paths, parameters, bodies, and the log of requests.

pub(crate) mod body;
pub(crate) mod json;
pub(crate) mod log;
pub(crate) mod options;
pub(crate) mod query;
pub(crate) mod route;
pub(crate) mod time;
pub(crate) mod typed;
pub(crate) mod yaml;

#[cfg(test)]
mod tests;
