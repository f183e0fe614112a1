//! UUIDs in 16 bytes, for keys that exist by the thousands.

use std::fmt;

/// The indexes of the dashes.
const DASHES: [usize; 4] = [8, 13, 18, 23];

/// A UUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Uuid([u8; 16]);

impl Uuid {
    /// Parses the canonical form; returns `None` for any other form, so that two strings never make the same key.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |it: u8| it.is_ascii_digit() || (b'a'..=b'f').contains(&it);
        let is_canonical = |(index, it)| {
            if DASHES.contains(&index) { it == b'-' } else { is_digit(it) }
        };
        if text.len() != 36 || !text.bytes().enumerate().all(is_canonical) {
            return None;
        }
        let digits = text.chars().filter_map(|it| it.to_digit(16)).map(u128::from);
        Some(Uuid(digits.fold(0_u128, |number, digit| number << 4 | digit).to_be_bytes()))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = format!("{:032x}", u128::from_be_bytes(self.0));
        for dash in DASHES {
            text.insert(dash, '-');
        }
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::Uuid;

    #[test]
    fn only_the_canonical_form_is_parsed() {
        let text = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
        assert_eq!(Uuid::parse(text).expect("a UUID").to_string(), text);
        let others = [
            text.to_uppercase(),
            text.replace('-', "_"),
            text.replace("a4b5", "a4b-"),
            text.replace("a4b5", "a4é"),
            text.replace('-', ""),
            format!("{text}0"),
            "0".repeat(36),
            "u1".to_owned(),
        ];
        assert_eq!(others.map(|it| Uuid::parse(&it)), [None; 8]);
    }
}
