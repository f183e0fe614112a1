//! Parameters of a URL, decoded as the real server does it.

use crate::refusal::{Refusal, go};

/// The parameters of a request, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Parses a query. Semicolons separate parameters, too; parameters with an invalid encoding are dropped.
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text.split(['&', ';']).filter(|it| !it.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let pairs = pairs.filter(|(name, value)| well_encoded(name) && well_encoded(value));
        Self(pairs.map(|(name, value)| (form_decode(name), form_decode(value))).collect())
    }

    /// Returns the first parameter of this name; an empty one counts as missing.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.all(name).next().filter(|it| !it.is_empty())
    }

    /// Returns all parameters of this name.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    /// Returns whether a parameter exists, with or without a value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(it, _)| it == name)
    }

    /// Returns an integer. Fails with the refusal of the real server.
    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, Refusal> {
        let Some(text) = self.all(name).next() else { return Ok(None) };
        text.parse().map(Some).map_err(|_error| {
            let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
            let number = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
            let why = if number { "value out of range" } else { "invalid syntax" };
            Refusal::bad_request(format!("strconv.ParseInt: parsing {}: {why}", go::quote(text)))
        })
    }

    /// Returns whether a flag is set: every value but `0` and `false` means yes, even an empty one.
    pub(crate) fn flag(&self, name: &str) -> bool {
        let found = self.all(name).next();
        found.is_some_and(|it| it != "0" && !it.eq_ignore_ascii_case("false"))
    }
}

fn well_encoded(text: &str) -> bool {
    let mut parts = text.split('%').map(str::as_bytes);
    parts.next();
    parts.all(|it| matches!(it, [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit()))
}

fn form_decode(text: &str) -> String {
    percent_decode(&text.replace('+', " "))
}

/// Decodes the percent-encoding of a path segment. Invalid encodings are kept.
pub(crate) fn percent_decode(text: &str) -> String {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        let mut ahead = bytes.clone();
        match (byte == b'%').then(|| Some(hex(ahead.next()?)? * 16 + hex(ahead.next()?)?)).flatten()
        {
            Some(meant) => {
                decoded.push(meant);
                bytes = ahead;
            }
            None => decoded.push(byte),
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|it| u8::try_from(it).ok())
}
