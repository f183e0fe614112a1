//! Uids as UUIDs in 16 bytes, for keys that exist by the thousands.

use uuid::Uuid;

/// Parses the canonical form; returns `None` for any other form, so that two strings never make the same key.
pub fn parse(text: &str) -> Option<Uuid> {
    let found = Uuid::try_parse(text).ok()?;
    let mut canonical = Uuid::encode_buffer();
    (found.hyphenated().encode_lower(&mut canonical) == text).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn only_the_canonical_form_is_parsed() {
        let text = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
        assert_eq!(parse(text).expect("a UUID").to_string(), text);
        let others = [
            text.to_uppercase(),
            text.replace('-', "_"),
            text.replace("a4b5", "a4b-"),
            text.replace("a4b5", "a4é"),
            text.replace('-', ""),
            format!("{{{text}}}"),
            format!("urn:uuid:{text}"),
            format!("{text}0"),
            "0".repeat(36),
            "u1".to_owned(),
        ];
        assert_eq!(others.map(|it| parse(&it)), [None; 10]);
    }
}
