//! The name that was probably meant.

/// No name is longer; comparing a text of megabytes would take its time.
const BYTES_MAX: usize = 200;

/// So many equal letters at the beginning make two words of one stem.
const STEM: usize = 4;

/// Returns the known name that is at most two typing errors away, or one if the name is short: a letter too many, too few, wrong,
/// or swapped with the next one. A third one is forgiven if the first four letters are the same, as of `retry` and `retries`. Letters
/// count as equal in both cases.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > BYTES_MAX {
        return None;
    }
    let wanted = name.to_lowercase();
    // A third of a name is a typing error; more of it is another name.
    let most = (wanted.chars().count() / 3).clamp(1, 2);
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

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn typing_errors_are_recognised_and_strangers_are_not() {
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
