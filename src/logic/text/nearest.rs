//! Finds the most similar known name.

/// Names are shorter; comparing strings of megabytes would take too long.
const BYTES_MAX: usize = 200;

/// With this many equal letters at the beginning, two words share a stem.
const STEM: usize = 4;

/// Returns the known name that is at most two typing errors away, or one if the name is short. A typing error is a letter too many,
/// too few, wrong, or swapped with the next one. A third error is allowed if the first four letters are equal, as in `retry` and
/// `retries`. Ignores case.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > BYTES_MAX {
        return None;
    }
    let wanted = name.to_lowercase();
    let most = errors_max(name);
    let begins_alike = |it: &str| {
        let alike = wanted.chars().zip(it.chars()).take_while(|(a, b)| a == b);
        alike.count() >= STEM
    };
    let distance = |it: &str| strsim::damerau_levenshtein(&wanted, &it.to_lowercase());
    let near = known.into_iter().map(|it| (distance(it), it)).filter(|(errors, it)| {
        *errors <= most || (*errors == 3 && begins_alike(&it.to_lowercase()))
    });
    near.min_by_key(|(errors, _)| *errors).map(|(_, it)| it)
}

/// Returns the maximum number of typing errors in a name: one in three letters, at least 1 and at most 2. With more errors, it is a
/// different name.
pub fn errors_max(name: &str) -> usize {
    (name.chars().count() / 3).clamp(1, 2)
}

/// Returns the number of typing errors between two names. Ignores case.
pub fn errors(name: &str, other: &str) -> usize {
    strsim::damerau_levenshtein(&name.to_lowercase(), &other.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn typing_errors_are_recognized_and_other_names_are_not() {
        let known = ["retries", "timeout", "backoff", "id", "Endpoints"];
        assert_eq!(nearest("retrys", known), Some("retries"));
        assert_eq!(nearest("retires", known), Some("retries"));
        assert_eq!(nearest("retry", known), Some("retries"));
        assert_eq!(nearest("time_out", known), Some("timeout"));
        assert_eq!(nearest("TimeOut", known), Some("timeout"));
        assert_eq!(nearest("idd", known), Some("id"));
        assert_eq!(nearest("it", known), Some("id"));
        for stranger in ["zzz", "nothings", "ab", "retry_limits", ""] {
            assert_eq!(nearest(stranger, known), None, "{stranger}");
        }
    }
}
