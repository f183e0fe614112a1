//! JSON without characters that a terminal interprets.

use std::fmt::Write as _;

/// Returns a JSON text without characters that a terminal interprets: JSON allows some of them in strings.
pub fn printable(text: String) -> String {
    let is_raw = |it: char| it.is_control() && !it.is_ascii_whitespace();
    if !text.contains(is_raw) {
        return text;
    }
    let mut printable = String::with_capacity(text.len());
    for character in text.chars() {
        if is_raw(character) {
            let _always_fits = write!(printable, "\\u{:04x}", u32::from(character));
        } else {
            printable.push(character);
        }
    }
    printable
}

#[cfg(test)]
mod tests {
    use super::printable;
    use serde_json::{Value, json};

    #[test]
    fn the_text_means_the_same_and_is_harmless() {
        let value = json!({ "a\u{9b}2J": "x\u{1b}[2J\u{7f}\u{85}\n\tü" });
        let text = printable(value.to_string());
        assert!(!text.chars().any(char::is_control), "{text:?}");
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), value);
        assert_eq!(printable("{\n}".to_owned()), "{\n}");
    }
}
