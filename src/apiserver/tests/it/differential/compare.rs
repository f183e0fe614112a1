//! The comparison of two transcripts, and the known differences.

use std::{fmt::Write as _, sync::LazyLock};

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use super::script;

/// One part in which two responses differ.
pub(crate) struct Difference {
    /// The step and its request, such as `crds#3: POST /apis/…`.
    exchange: String,
    /// The path of the part, such as `body/metadata/labels`.
    at: String,
    real: Option<Value>,
    embedded: Option<Value>,
}

/// An intended difference between the servers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownDifference {
    /// Pattern for exchanges: `script: METHOD /path`, with `*` for any text.
    #[serde(rename = "in", default = "anywhere")]
    exchange: String,
    /// Pattern for the path in the response; `*` is one part, `**` any number of them.
    at: String,
    /// Patterns for the values of both servers, if they matter: JSON with `*`, or `absent`.
    #[serde(default = "anywhere")]
    real: String,
    #[serde(default = "anywhere")]
    embedded: String,
    reason: String,
}

/// The list of known differences, and how often each has occurred.
pub(crate) struct KnownDifferences(Vec<(KnownDifference, Vec<Regex>, usize)>);

fn anywhere() -> String {
    "*".into()
}

/// Compiles a pattern in which `*` means `part`, and `**` means anything.
fn pattern(text: &str, part: &str) -> Regex {
    let escaped = regex::escape(text).replace(r"\*\*", "\u{1}").replace(r"\*", part);
    Regex::new(&format!("(?s)^{}$", escaped.replace('\u{1}', ".*"))).expect("a valid pattern")
}

impl KnownDifferences {
    pub(crate) fn read(file: &str) -> Self {
        let known: Vec<KnownDifference> = script::read(file);
        let with_patterns = |it: KnownDifference| {
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

    /// Returns whether a difference is on the list, and counts it.
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

    /// Returns the entries of the list that have not occurred.
    pub(crate) fn unneeded(&self) -> Vec<String> {
        let unneeded = self.0.iter().filter(|(_, _, met)| *met == 0);
        unneeded.map(|(it, ..)| format!("{} at {}: {}", it.exchange, it.at, it.reason)).collect()
    }

    /// Returns one line per known difference.
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
    /// Formats the difference for people; of long texts, it shows the position at which they begin to differ.
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

/// Refusals of bodies that cannot be decoded: the messages depend on the decoders of JSON, YAML and protobuf. Status, reason and
/// field of the response must be the same.
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

/// Masks the messages of decoders, and the cause that contains the whole patched object.
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

/// Returns all differences between two transcripts of a script.
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
            &mut ComparedPart { exchange: &exchange, parts: Vec::new(), found: &mut here },
        );
        if !here.is_empty() {
            found.push((exchange, here));
        }
    }
    found
}

struct ComparedPart<'a> {
    exchange: &'a str,
    parts: Vec<String>,
    found: &'a mut Vec<Difference>,
}

fn compare(real: Option<&Value>, embedded: Option<&Value>, place: &mut ComparedPart<'_>) {
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
