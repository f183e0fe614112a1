//! The name that was probably meant.

/// Less alike than this is no typing error: `retrys` and `retries` are 0.92, `id` and `field` 0.45.
const ALIKE: f64 = 0.7;

/// No name is longer; comparing a text of megabytes would take its time.
const BYTES_MAX: usize = 200;

/// The known name that is most like this one, if any is alike.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > BYTES_MAX {
        return None;
    }
    known
        .into_iter()
        .map(|it| (strsim::jaro_winkler(name, it), it))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, nearest)| nearest)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn typing_errors_are_recognised_and_strangers_are_not() {
        let known = ["retries", "timeout", "backoff", "id"];
        assert_eq!(nearest("retrys", known), Some("retries"));
        assert_eq!(nearest("time_out", known), Some("timeout"));
        assert_eq!(nearest("zzz", known), None);
    }
}
