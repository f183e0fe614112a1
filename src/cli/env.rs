//! The environment of the process: the one place that reads it.

use crate::sorted::CollectSorted as _;
use std::collections::BTreeMap;

#[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns the environment variables that are wanted.
pub(super) fn variables(wanted: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
    let named =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let wanted = named.filter(|(name, _)| wanted(name));
    wanted.map(|(name, value)| (name, value.to_string_lossy().into_owned())).collect_map()
}
