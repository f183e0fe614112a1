//! The libraries of scripts, such as `env` and `files`: the same names, meanings and errors in both languages.
//!
//! A library is a table: [`LIBRARIES`] has each function with its parameters, documentation and implementation. The globals of the
//! engines, the checks of arguments, the reference and the editor stubs are derived from it. The engines only convert arguments and
//! results.

mod base64;
mod bounds;
mod call;
mod check;
pub(super) mod children;
mod crypto;
pub(super) mod declaring;
mod deep;
pub(crate) mod embedded;
mod env;
pub(crate) mod fake;
mod files;
mod given;
pub(super) mod hash;
mod heavy;
pub(super) mod hierarchy;
mod http;
mod json;
mod jwt;
pub(super) mod kopf;
mod kube;
mod lists;
pub(super) mod locking;
mod log;
pub(super) mod logins;
mod loops;
mod metrics;
pub(super) mod names;
pub(crate) mod outcome;
mod pace;
mod passage;
mod passwords;
pub(super) mod posting;
pub(super) mod print;
mod quantity;
mod random;
mod re;
mod scratch;
#[cfg(test)]
mod script_tests;
mod semver;
mod strings;
mod surroundings;
mod template;
#[cfg(test)]
mod tests;
mod time;
mod tree;
pub(crate) mod types;
mod url;
mod uuid;
mod yaml;

pub(crate) use self::{
    call::Call,
    given::{Given, Shape},
    pace::Pace,
    surroundings::Surroundings,
    template::FILTERS_MAX,
};
use types::Library;

/// All libraries, in the order of the reference.
pub(crate) static LIBRARIES: &[Library] = &[
    base64::LIBRARY,
    check::LIBRARY,
    crypto::LIBRARY,
    deep::LIBRARY,
    env::LIBRARY,
    fake::LIBRARY,
    files::LIBRARY,
    hash::LIBRARY,
    http::LIBRARY,
    json::LIBRARY,
    jwt::LIBRARY,
    kube::LIBRARY,
    lists::LIBRARY,
    log::LIBRARY,
    metrics::LIBRARY,
    quantity::LIBRARY,
    random::LIBRARY,
    re::LIBRARY,
    semver::LIBRARY,
    strings::LIBRARY,
    template::LIBRARY,
    time::LIBRARY,
    url::LIBRARY,
    uuid::LIBRARY,
    yaml::LIBRARY,
];

/// Returns the library of this name.
pub(crate) fn find(name: &str) -> Option<&'static Library> {
    LIBRARIES.iter().find(|it| it.name == name)
}
