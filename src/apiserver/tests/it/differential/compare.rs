//! Two transcripts side by side, and the differences that are known.

use std::{fmt::Write as _, sync::LazyLock};

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use super::script;

/// One place where two answers differ.
pub(crate) struct Difference {
    /// Such as `crds#3: POST /apis/…`.
    exchange: String,
    /// Such as `body/metadata/labels`.
    at: String,
    real: Option<Value>,
    embedded: Option<Value>,
}

/// A difference that is meant to be.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    /// Which exchanges: `script: METHOD /path`, with `*` for any text.
    #[serde(rename = "in", default = "anywhere")]
    exchange: String,
    /// Where in the answer; `*` is any part, `**` any number of them.
    at: String,
    /// What the servers say, if it matters: JSON with `*`, or `absent`.
    #[serde(default = "anywhere")]
    real: String,
    #[serde(default = "anywhere")]
    embedded: String,
    reason: String,
}

/// The list of known differences, and how often each was met.
pub(crate) struct KnownDifferences(Vec<(Known, Vec<Regex>, usize)>);

fn anywhere() -> String {
    "*".into()
}

/// A pattern where `*` is anything but the boundary, and `**` is anything.
fn pattern(text: &str, part: &str) -> Regex {
    let escaped = regex::escape(text).replace(r"\*\*", "\u{1}").replace(r"\*", part);
    Regex::new(&format!("(?s)^{}$", escaped.replace('\u{1}', ".*"))).expect("a valid pattern")
}

impl KnownDifferences {
    pub(crate) fn read(file: &str) -> Self {
        let known: Vec<Known> = script::read(file);
        let with_patterns = |it: Known| {
            let patterns = vec![
                pattern(&it.exchange, ".*"),
                pattern(&it.at, "[^/]*"),
                pattern(&it.real, ".*"),
                pattern(&it.embedded, ".*"),
            ];
            (it, patterns, 0)
        };
        Self(known.into_iter().map(with_patterns).collect())
    }

    /// Whether a difference is on the list.
    pub(crate) fn covers(&mut self, it: &Difference) -> bool {
        let texts = [&it.exchange, &it.at, &said(it.real.as_ref()), &said(it.embedded.as_ref())];
        let mut covered = false;
        for (_, patterns, met) in &mut self.0 {
            if patterns.iter().zip(texts).all(|(pattern, text)| pattern.is_match(text)) {
                *met += 1;
                covered = true;
                break;
            }
        }
        covered
    }

    /// What is on the list for nothing.
    pub(crate) fn unneeded(&self) -> Vec<String> {
        let unneeded = self.0.iter().filter(|(_, _, met)| *met == 0);
        unneeded.map(|(it, ..)| format!("{} at {}: {}", it.exchange, it.at, it.reason)).collect()
    }

    /// One line per known difference.
    pub(crate) fn summary(&self) -> String {
        let mut text = String::new();
        for (it, _, met) in &self.0 {
            let _infallible =
                writeln!(text, "  {met:4} × {} at {}: {}", it.exchange, it.at, it.reason);
        }
        text
    }
}

impl Difference {
    /// For people; of long texts, the place where they part.
    pub(crate) fn text(&self) -> String {
        let (real, embedded) = (said(self.real.as_ref()), said(self.embedded.as_ref()));
        let same = real.chars().zip(embedded.chars()).take_while(|(a, b)| a == b).count();
        let short = |text: &str| -> String {
            let from = if text.chars().count() > 300 { same.saturating_sub(60) } else { 0 };
            let text: String = text.chars().skip(from).take(300).collect();
            if from > 0 { format!("…{text}") } else { text }
        };
        let (real, embedded) = (short(&real), short(&embedded));
        format!("  {}\n    real:     {real}\n    embedded: {embedded}", self.at)
    }
}

fn said(value: Option<&Value>) -> String {
    value.map_or_else(|| "absent".into(), Value::to_string)
}

/// Bodies that cannot be decoded: how the real server words it depends on its decoders of JSON, YAML and protobuf. Status, reason and
/// field of the answer must be the same.
static UNDECODABLE: LazyLock<Regex> = LazyLock::new(|| {
    let words = [
        ".* in version \\S* cannot be handled as a .*: .*",
        "the object provided is unrecognized \\(must be of type .*",
        "error decoding (patch|YAML): .*",
        " \"\" is invalid: patch: Invalid value: .*",
        "the patched object is invalid: .*",
        "(couldn't get version/kind; )?json parse error: .*",
        "(couldn't get version/kind; json parse error: )?json: .*",
        "unexpected end of JSON input",
        "(no kind|[A-Za-z.]+: expected) .*",
    ];
    Regex::new(&format!("(?s)^({})$", words.join("|"))).expect("a valid pattern")
});

/// The value without the words of decoders: messages, and the cause that has the whole patched object.
fn reworded(value: Option<&Value>, key: &str) -> Option<Value> {
    let mut value = value?.clone();
    let masked = || Value::from("<cannot be decoded>");
    if key == "message" && value.as_str().is_some_and(|it| UNDECODABLE.is_match(it)) {
        return Some(masked());
    }
    if value.get("field") == Some(&"patch".into())
        && let Some(cause) = value.as_object_mut()
    {
        cause.insert("message".into(), masked());
    }
    Some(value)
}

/// All places where two transcripts of one script differ.
pub(crate) fn differences(
    script: &str,
    real: &[Value],
    embedded: &[Value],
) -> Vec<(String, Vec<Difference>)> {
    let mut found = Vec::new();
    for step in 0..real.len().max(embedded.len()) {
        let (real, embedded) = (real.get(step), embedded.get(step));
        let title = real.or(embedded).and_then(|it| it["request"].as_str()).unwrap_or_default();
        let exchange = format!("{script}#{step}: {title}");
        let mut here = Vec::new();
        compare(
            real,
            embedded,
            &mut Place { exchange: &exchange, parts: Vec::new(), found: &mut here },
        );
        if !here.is_empty() {
            found.push((exchange, here));
        }
    }
    found
}

struct Place<'a> {
    exchange: &'a str,
    parts: Vec<String>,
    found: &'a mut Vec<Difference>,
}

fn compare(real: Option<&Value>, embedded: Option<&Value>, place: &mut Place<'_>) {
    let key = place.parts.last().map(String::as_str).unwrap_or_default();
    let (real, embedded) = (reworded(real, key), reworded(embedded, key));
    let (real, embedded) = (real.as_ref(), embedded.as_ref());
    if real == embedded {
        return;
    }
    match (real, embedded) {
        (Some(Value::Object(real)), Some(Value::Object(embedded))) => {
            let new = embedded.keys().filter(|it| !real.contains_key(*it));
            for key in real.keys().chain(new) {
                place.parts.push(key.replace('/', "~1"));
                compare(real.get(key), embedded.get(key), place);
                place.parts.pop();
            }
        }
        (Some(Value::Array(real)), Some(Value::Array(embedded))) => {
            for index in 0..real.len().max(embedded.len()) {
                place.parts.push(index.to_string());
                compare(real.get(index), embedded.get(index), place);
                place.parts.pop();
            }
        }
        (real, embedded) => place.found.push(Difference {
            exchange: place.exchange.into(),
            at: place.parts.join("/"),
            real: real.cloned(),
            embedded: embedded.cloned(),
        }),
    }
}
