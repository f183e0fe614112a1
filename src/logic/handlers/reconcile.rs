//! The label by which the children of a reconcile handler are recognized.

use kopf_json::values;

/// The start of the ids of derived indexes, which scripts do not see.
pub const INDEX: &str = "reconcile:";

/// Maximum number of bytes of a label value.
const LABEL_MAX: usize = 63;

/// Returns the value of the label by which a handler recognizes its children.
pub fn label_of(id: &str) -> String {
    let plain = |it: char| it.is_ascii_alphanumeric();
    let is_valid = id.len() <= LABEL_MAX
        && id.starts_with(plain)
        && id.ends_with(plain)
        && id.chars().all(|it| plain(it) || matches!(it, '-' | '_' | '.'));
    if is_valid {
        return id.to_owned();
    }
    let hash = values::fingerprint(&id.into());
    let kept = id.chars().filter(|it| plain(*it)).take(40).collect::<String>();
    format!("h{kept}-{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::label_of;

    #[test]
    fn labels_are_valid_and_distinct() {
        assert_eq!(label_of("web.app_1"), "web.app_1");
        let odd = ["a/spec.x", "a/spec.y", "", "_", &"x".repeat(64), &"x".repeat(65), "ä"];
        let labels = odd.map(label_of);
        for (index, label) in labels.iter().enumerate() {
            assert!(label.len() <= 63 && label.starts_with('h'), "{label}");
            assert!(!labels[..index].contains(label), "{label}");
        }
    }
}
