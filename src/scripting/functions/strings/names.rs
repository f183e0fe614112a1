//! Names in the forms that Kubernetes and programs need.

use serde_json::Value;

use super::{TEXT, immediate, optional, required};
use crate::scripting::functions::{
    Call,
    outcome::{Failure, Outcome},
    types::{Function, Parameter, Type},
};

/// Maximum length of a DNS label, and of the names of most objects.
const LABEL_MAX: usize = 63;
/// Maximum length of a DNS name.
const NAME_MAX: usize = 253;
/// The number of digits of a hash that keep shortened names distinct.
const MARK: usize = 8;
/// Maximum bytes of the string that a name is made of.
const TEXT_MAX: usize = 64 * 1024;

const NAMED: Parameter = required(
    "text",
    Type::Text,
    "The string, at most 65536 bytes, a longer one is an error; it is not changed.",
);

pub(super) const SLUG: Function = immediate(
    "slug",
    "Returns a valid DNS name for an object: `strings.slug(\"My App: v2\")` is `my-app-v2`. A longer name is truncated and ends with a hash of the string, so that different strings have different names.",
    &[NAMED],
    Type::Text,
    slug,
)
.with(&[optional("length", Type::Integer, "The maximum number of characters, at least 10; default: 63.")]);

pub(super) const IS_DNS_LABEL: Function = immediate(
    "is_dns_label",
    "Returns whether a string is a DNS label, which is a valid name for any object: at most 63 lowercase letters, digits and `-`, without `-` at its ends.",
    &[TEXT],
    Type::Boolean,
    |call| Ok(Value::from(is_label(call.text("text"))).into()),
);

pub(super) const IS_DNS_NAME: Function = immediate(
    "is_dns_name",
    "Returns whether a string consists of DNS labels, separated by dots, with at most 253 characters.",
    &[TEXT],
    Type::Boolean,
    |call| {
        let text = call.text("text");
        Ok(Value::from(text.len() <= NAME_MAX && text.split('.').all(is_label)).into())
    },
);

pub(super) const KEBAB: Function = immediate(
    "kebab",
    "Converts a name to words with `-` between them: `maxReplicas` is `max-replicas`.",
    &[NAMED],
    Type::Text,
    |call| Ok(Value::from(words(named(call)?).join("-")).into()),
);

pub(super) const SNAKE: Function = immediate(
    "snake",
    "Converts a name to words with `_` between them: `maxReplicas` is `max_replicas`.",
    &[NAMED],
    Type::Text,
    |call| Ok(Value::from(words(named(call)?).join("_")).into()),
);

pub(super) const CAMEL: Function = immediate(
    "camel",
    "Converts a name to capitalized words, except for the first: `max_replicas` is `maxReplicas`.",
    &[NAMED],
    Type::Text,
    |call| {
        let words = words(named(call)?).into_iter().enumerate();
        let capital = |(place, word): (usize, String)| {
            let mut rest = word.chars();
            let first = rest.next().filter(|_| place > 0).into_iter().flat_map(char::to_uppercase);
            if place == 0 { word } else { first.chain(rest).collect() }
        };
        Ok(Value::from(words.map(capital).collect::<String>()).into())
    },
);

/// Returns the string that a name is made of.
fn named(call: &Call) -> Result<&str, Failure> {
    let text = call.text("text");
    if text.len() > TEXT_MAX {
        return Err(format!("`text`: longer than {TEXT_MAX} bytes").into());
    }
    Ok(text)
}

fn is_label(text: &str) -> bool {
    let is_inner = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    !text.is_empty()
        && text.len() <= LABEL_MAX
        && text.bytes().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn slug(call: &Call) -> Outcome {
    let (text, length) = (named(call)?, call.count("length", LABEL_MAX)?);
    if length < MARK + 2 {
        return Err(
            format!("`length`: expected a number of at least {}, got {length}", MARK + 2).into()
        );
    }
    let mut name = String::new();
    for character in text.to_lowercase().chars() {
        if character.is_ascii_alphanumeric() {
            name.push(character);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    let mut name = name.trim_end_matches('-').to_owned();
    if name.is_empty() {
        return Err("`text`: must contain a letter or a digit".into());
    }
    if name.len() > length {
        name.truncate(length - MARK - 1);
        name = format!("{}-{}", name.trim_end_matches('-'), mark(text));
    }
    Ok(Value::from(name).into())
}

/// Returns the first digits of a hash.
fn mark(text: &str) -> String {
    use sha2::Digest as _;
    let hash = sha2::Sha256::digest(text);
    hash.iter().take(MARK / 2).map(|it| super::super::hash::hex(&[*it])).collect()
}

/// Returns the words of a name, in lower case. They are separated, or begin with capital letters.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut apart = true;
    let characters: Vec<char> = text.chars().collect();
    for (place, it) in characters.iter().enumerate() {
        if !it.is_alphanumeric() {
            apart = true;
            continue;
        }
        let before = place.checked_sub(1).and_then(|it| characters.get(it));
        let follows_small = before.is_some_and(|it| it.is_lowercase() || it.is_numeric());
        // `HTTPServer` is two words.
        let ends_capitals = before.is_some_and(|it| it.is_uppercase())
            && characters.get(place + 1).is_some_and(|it| it.is_lowercase());
        apart |= it.is_uppercase() && (follows_small || ends_capitals);
        if std::mem::take(&mut apart) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(it.to_lowercase());
        }
    }
    words
}
