//! The order of versions by preference.

use std::cmp::{Ordering, Reverse};

/// Compares versions: `v2` before `v1` before `v1beta2` before `v1beta1` before `v1alpha1`, then other names alphabetically.
pub(crate) fn by_priority(one: &str, other: &str) -> Ordering {
    match (rank(one), rank(other)) {
        (Some(a), Some(b)) => Reverse(a).cmp(&Reverse(b)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => one.cmp(other),
    }
}

/// Returns the stability, the major and the minor number of a name such as `v2beta1`.
fn rank(name: &str) -> Option<(u8, u64, u64)> {
    let rest = name.strip_prefix('v')?;
    let (major, rest) = number(rest)?;
    let (stability, rest) = match (rest.strip_prefix("alpha"), rest.strip_prefix("beta")) {
        (Some(rest), _) => (0, rest),
        (None, Some(rest)) => (1, rest),
        (None, None) if rest.is_empty() => return Some((2, major, 0)),
        (None, None) => return None,
    };
    let (minor, rest) = number(rest)?;
    rest.is_empty().then_some((stability, major, minor))
}

/// Parses a number without leading zeros, and returns the rest.
fn number(text: &str) -> Option<(u64, &str)> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text.strip_suffix(rest)?;
    let value = digits.parse().ok().filter(|_| !digits.starts_with('0'))?;
    Some((value, rest))
}
