//! Which of two versions of an object is the older one.
//!
//! A server that lags behind, or a list that was asked for before our last request, shows an object as it was before that request.
//! What was finished then must not be done again. Versions are ordered where they are numbers, as on all servers that keep objects
//! in etcd; Kubernetes promises it since 1.35. Others are never older.

use std::num::NonZeroU64;

use super::object::Object;

/// The version of an object, if it is a number.
pub fn number(object: &Object) -> Option<NonZeroU64> {
    object.header().resource_version.as_deref().and_then(of_text)
}

/// Returns whether an object is certainly older than this version.
pub fn is_older(object: &Object, than: Option<NonZeroU64>) -> bool {
    number(object).zip(than).is_some_and(|(seen, own)| seen < own)
}

/// Returns whether a version is certainly later than another one.
pub fn is_later(seen: Option<&String>, than: &str) -> bool {
    seen.and_then(|it| of_text(it)).zip(of_text(than)).is_some_and(|(seen, own)| seen > own)
}

fn of_text(version: &str) -> Option<NonZeroU64> {
    version.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Object, is_later, is_older, number};

    fn object(version: &str) -> Object {
        Object::from_value(json!({ "metadata": { "resourceVersion": version } }))
    }

    #[test]
    fn only_numbers_are_ordered() {
        let own = number(&object("10"));
        assert!(is_older(&object("9"), own));
        for version in ["10", "11", "a9", "", "-1", "9.5", "99999999999999999999999"] {
            assert!(!is_older(&object(version), own), "{version:?}");
        }
        assert!(!is_older(&object("9"), number(&object("x"))));
        assert!(is_later(Some(&"10".to_owned()), "9") && !is_later(Some(&"9".to_owned()), "9"));
    }
}
