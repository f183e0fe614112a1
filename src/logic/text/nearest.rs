//! Finds the most similar known name.

/// Names are shorter; comparing strings of megabytes would take too long.
const BYTES_MAX: usize = 200;

/// Maximum number of typing errors.
const ERRORS_MAX: usize = 3;

/// Maximum number of pairs of letters that are compared, which takes a millisecond: the known names may come from a script.
const PAIRS_MAX: usize = 200_000;

/// With this many equal letters at the beginning, two words share a stem.
const STEM: usize = 4;

/// Returns the known name that is at most two typing errors away, or one if the name is short. A typing error is a letter too many,
/// too few, wrong, or swapped with the next one. A third error is allowed if the first four letters are equal, as in `retry` and
/// `retries`. Ignores case, and the rest of very many known names of its length.
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
    let (length, mut pairs) = (wanted.chars().count(), 0);
    let is_near = |it: &&str| it.chars().count().abs_diff(length) <= ERRORS_MAX;
    let is_compared = |_: &&str| {
        pairs += length * length;
        pairs <= PAIRS_MAX
    };
    let known = known.into_iter().filter(is_near).take_while(is_compared);
    let distance = |it: &str| strsim::osa_distance(&wanted, &it.to_lowercase());
    let near = known.map(|it| (distance(it), it)).filter(|(errors, it)| {
        *errors <= most || (*errors == ERRORS_MAX && begins_alike(&it.to_lowercase()))
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
    strsim::osa_distance(&name.to_lowercase(), &other.to_lowercase())
}

/// Returns the message about an unknown option: with the nearest known one if it is similar, and with all known ones otherwise.
pub fn unknown_option(name: &str, known: &[&str]) -> String {
    let hint = nearest(name, known.iter().copied()).map_or_else(
        || format!("the options are: {}", known.join(", ")),
        |it| format!("did you mean `{it}`?"),
    );
    format!("there is no option `{name}`; {hint}")
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
        // The known names of a script may be many, and long.
        let many = vec!["x".repeat(100); 1000];
        let many = || many.iter().map(String::as_str);
        assert_eq!(nearest("retrys", many().chain(known)), Some("retries"));
        assert_eq!(nearest(&"y".repeat(100), many().chain([&*"y".repeat(101)])), None);
        for stranger in ["zzz", "nothings", "ab", "retry_limits", ""] {
            assert_eq!(nearest(stranger, known), None, "{stranger}");
        }
    }
}
