//! Names of container images, as far as defaults depend on them.

/// Returns the default pull policy: `Always` for the latest tag, `IfNotPresent` for another tag or a digest.
pub(super) fn pull_policy(image: &str) -> &'static str {
    let digest = image.contains('@');
    let last = image.rsplit('/').next().unwrap_or(image);
    let tag = last.split_once(':').map(|it| it.1);
    if image.is_empty() || !well_formed(image) {
        return "IfNotPresent";
    }
    match tag {
        Some("latest") | None if !digest => "Always",
        _ => "IfNotPresent",
    }
}

/// Returns whether an image name is valid. The tag of an invalid one is unknown.
fn well_formed(image: &str) -> bool {
    let name = image.split('@').next().unwrap_or_default();
    let (path, last) = name.rsplit_once('/').unwrap_or(("", name));
    let last = last.split(':').next().unwrap_or_default();
    let ends = |it: &str| {
        let good = |it: Option<char>| it.is_some_and(|it| it.is_ascii_alphanumeric());
        good(it.chars().next()) && good(it.chars().next_back())
    };
    image.bytes().all(|it| it.is_ascii_alphanumeric() || b"._-/:@".contains(&it))
        && (path.is_empty() || path.split('/').all(ends))
        && ends(last)
        && !last.bytes().any(|it| it.is_ascii_uppercase())
}
