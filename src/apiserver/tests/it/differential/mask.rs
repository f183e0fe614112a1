//! Masks for values that differ between any two runs: uids, times, versions, generated names.

use std::sync::LazyLock;

use base64::Engine as _;
use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

static UID: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").expect("valid")
});
/// Times of this run; scripts contain times of earlier years.
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"20(2[5-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)").expect("valid")
});
static AGE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(\d+[smhdy]|\d+ms)+$").expect("valid"));
/// Versions inside of sentences.
static VERSION: LazyLock<Regex> = LazyLock::new(|| {
    let before = "resource version: |ResourceVersion in precondition: \
                  |ResourceVersion in object meta: |current: |ResourceVersion in record \\(\
                  |version: <version> \\(\
                  |Resource Version:  |resourceVersion: \"|\\\\?\"resourceVersion\\\\?\": ?\\\\?\"";
    Regex::new(&format!("({before})(\\d+)")).expect("valid")
});
/// Memory addresses of the real server, which formats some structs as Go does.
static POINTER: LazyLock<Regex> = LazyLock::new(|| Regex::new("0xc[0-9a-f]{7,}").expect("valid"));
static GO_TIME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"time\.Date\(20[^)]*\)").expect("valid"));
/// A part of the stored object around a mistake, cut by bytes: its start depends on the length of the version.
static CONTEXT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?s)^(.*resourceVersion.*bigger context \.\.\.\|).*").expect("valid")
});
/// The managers in an object inside of a message: their order depends on their times.
static MANAGERS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(\\"managedFields\\":)\[.*?\](,\\"name\\")"#).expect("valid"));
/// Ages in the output of kubectl.
static AGES: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(^|\s)(\d{1,5}[smhd]|\d+m\d+s|<invalid>)\b").expect("valid"));
static GAP: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(\S) {2,}").expect("valid"));
static DATE: LazyLock<Regex> = LazyLock::new(|| {
    let day = r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4}|20\d\d-\d\d-\d\d";
    Regex::new(&format!(r"({day}) \d\d:\d\d:\d\d [+-]\d{{4}}( UTC)?")).expect("valid")
});
/// The prefix of a line in the log of kubectl: time and process.
static LOG: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^([IWEF])\d{4} [\d:.]+ +\d+ ").expect("valid"));
static NODE_PORT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b3\d{4}/(TCP|UDP|SCTP)").expect("valid"));
static URL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"https?://127\.0\.0\.1:\d{2,}").expect("valid"));
static IP: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b10\.\d+\.\d+\.\d+").expect("valid"));
static ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^10\.\d+\.\d+\.\d+$").expect("valid"));

/// The values of one run, with their masks.
#[derive(Default)]
pub(crate) struct Mask {
    versions: Vec<String>,
    uids: Vec<String>,
    /// Strings and their replacements: the word of the run, generated names.
    aliases: Vec<(String, String)>,
    /// Prefixes of generated names in requests: a refusal contains a name that is in no object.
    prefixes: Vec<(Regex, String)>,
}

impl Mask {
    pub(crate) fn new(run: &str) -> Self {
        Self { aliases: vec![(run.into(), "$run".into())], ..Self::default() }
    }

    /// Expects generated names with this prefix.
    pub(crate) fn generates(&mut self, prefix: &str) {
        let pattern = format!("{}[bcdfghjklmnpqrstvwxz2456789]{{5}}\\b", regex::escape(prefix));
        self.prefixes.push((Regex::new(&pattern).expect("valid"), prefix.into()));
    }

    /// Masks the body of a response.
    pub(crate) fn value(&mut self, value: &Value) -> Value {
        self.learn(value);
        let mut masked = self.apply(value, "");
        sort_causes(&mut masked);
        sort_resources(&mut masked);
        masked
    }

    /// Finds generated names by the prefix next to them.
    fn learn(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                if let (Some(Value::String(prefix)), Some(Value::String(name))) =
                    (fields.get("generateName"), fields.get("name"))
                    && name.starts_with(prefix.as_str())
                    && !self.aliases.iter().any(|(text, _)| text == name)
                {
                    self.aliases.push((name.clone(), format!("{prefix}<{}>", self.aliases.len())));
                }
                fields.values().for_each(|it| self.learn(it));
            }
            Value::Array(items) => items.iter().for_each(|it| self.learn(it)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn apply(&mut self, value: &Value, key: &str) -> Value {
        match value {
            Value::String(text) => self.field(text, key).into(),
            Value::Array(items) if key == "managedFields" => self.managers(items),
            Value::Array(items) => items.iter().map(|it| self.apply(it, key)).collect(),
            Value::Object(fields) => self.object(fields),
            Value::Number(_) if matches!(key, "nodePort" | "healthCheckNodePort") => {
                json!("<port>")
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    /// Masks an object. Lists and bookmarks have the version of the whole server, which others change, too.
    fn object(&mut self, fields: &Map<String, Value>) -> Value {
        let list = fields.get("items").is_some_and(Value::is_array)
            // The rows of an empty table are null.
            || fields.get("rows").is_some_and(|it| it.is_array() || it.is_null());
        let bookmark = fields.get("type").is_some_and(|it| it == "BOOKMARK");
        let mut masked = Map::new();
        for (key, value) in fields {
            let mut value = value.clone();
            let pointer = match key.as_str() {
                "metadata" if list => "/resourceVersion",
                "object" if bookmark => "/metadata/resourceVersion",
                _ => "",
            };
            if !pointer.is_empty()
                && let Some(version) = value.pointer_mut(pointer)
                && self.is_recent(version)
            {
                *version = json!("<latest>");
            }
            masked.insert(self.text(key), self.apply(&value, key));
        }
        masked.into()
    }

    /// Returns whether a version is not older than all earlier ones.
    fn is_recent(&self, version: &Value) -> bool {
        let number = |it: &str| it.parse::<u64>().ok();
        let newest = self.versions.iter().filter_map(|it| number(it)).max();
        version.as_str().and_then(number).is_some_and(|it| it > 0 && Some(it) >= newest)
    }

    /// Masks and sorts managers. Their order is by time, then by name; it is random if both write within one second.
    fn managers(&mut self, items: &[Value]) -> Value {
        let mut items: Vec<Value> = items.iter().map(|it| self.apply(it, "")).collect();
        let word = |it: &Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
        let key = |it: &Value| {
            let names = [word(it, "operation"), word(it, "manager"), word(it, "apiVersion")];
            (names, word(it, "subresource"))
        };
        items.sort_by_key(key);
        items.into()
    }

    fn field(&mut self, text: &str, key: &str) -> String {
        match key {
            "resourceVersion" if text.parse::<u64>().is_ok_and(|it| it > 0) => self.version(text),
            "continue" if !text.is_empty() => self.next_page(text),
            "clusterIP" | "clusterIPs" | "cells" if ADDRESS.is_match(text) => "<ip>".into(),
            // The hash contains the word of the run; an empty one is not masked.
            "storageVersionHash" if !text.is_empty() => "<hash>".into(),
            // Descriptions may be worded differently.
            "description" if !text.is_empty() => "<prose>".into(),
            "cells" if AGE.is_match(text) => "<age>".into(),
            _ => self.text(text),
        }
    }

    fn version(&mut self, version: &str) -> String {
        format!("<version {}>", ordinal(&mut self.versions, version))
    }

    /// Decodes a continue token and masks its version, but not its position.
    fn next_page(&mut self, token: &str) -> String {
        let engine = base64::engine::general_purpose::URL_SAFE_NO_PAD;
        let opened = engine.decode(token.trim_end_matches('=')).ok();
        let Some(Value::Object(mut fields)) =
            opened.and_then(|it| serde_json::from_slice(&it).ok())
        else {
            return self.text(token);
        };
        fields.insert("rv".into(), "<latest>".into());
        self.text(&Value::from(fields).to_string())
    }

    /// Masks a line of the output of kubectl, whose columns are as wide as the masked values.
    pub(crate) fn line(&mut self, line: &str) -> String {
        let text = AGES.replace_all(line, "$1<age>").into_owned();
        let text = GAP.replace_all(&text, "$1  ").into_owned();
        let text = DATE.replace_all(&text, "<time>").into_owned();
        let text = URL.replace_all(&text, "<url>").into_owned();
        let text = IP.replace_all(&text, "<ip>").into_owned();
        let text = LOG.replace(&text, "$1<log> ").into_owned();
        let text = NODE_PORT.replace_all(&text, "<port>/$1").into_owned();
        self.text(text.trim_end())
    }

    /// Masks a sentence of a response.
    pub(crate) fn text(&mut self, text: &str) -> String {
        // At each start, the real server chooses the kind of spaces in its comparisons of structs.
        let mut text = text.replace('\u{a0}', " ");
        for (from, to) in &self.aliases {
            text = text.replace(from, to);
        }
        for (generated, prefix) in &self.prefixes {
            text = generated.replace_all(&text, format!("{prefix}<?>")).into_owned();
        }
        let uids = &mut self.uids;
        let uid = |it: &Captures<'_>| format!("<uid {}>", ordinal(uids, &it[0]));
        let text = UID.replace_all(&text, uid).into_owned();
        let text = TIME.replace_all(&text, "<time>").into_owned();
        let text = GO_TIME.replace_all(&text, "<time>").into_owned();
        let text = MANAGERS.replace_all(&text, "$1<managers>$2").into_owned();
        let text = CONTEXT.replace(&text, "$1<cut>").into_owned();
        let text = POINTER.replace_all(&text, "<pointer>").into_owned();
        let text = VERSION.replace_all(&text, "$1<version>").into_owned();
        VERSION.replace_all(&text, "$1<version>").into_owned()
    }
}

/// Sorts the resources of CRDs in discovery, which have no order.
fn sort_resources(document: &mut Value) {
    let own = document["groupVersion"].as_str().is_some_and(|it| it.contains("$run"));
    if let Some(Value::Array(resources)) = document.get_mut("resources").filter(|_| own) {
        resources.sort_by_key(|it| it["name"].as_str().unwrap_or_default().to_owned());
    }
}

/// Sorts causes, which have the random order of Go's maps: in the list, and in the sentence that contains them.
fn sort_causes(status: &mut Value) {
    let Some(Value::Array(causes)) = status.pointer_mut("/details/causes") else { return };
    let text = |it: &Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
    let sentence = |causes: &[Value]| {
        let mut parts: Vec<String> = Vec::new();
        for it in causes {
            let part = format!("{}: {}", text(it, "field"), text(it, "message"));
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        format!("[{}]", parts.join(", "))
    };
    let before = sentence(causes);
    causes.sort_by_key(|it| (text(it, "field"), text(it, "message")));
    let after = sentence(causes);
    if let Some(Value::String(message)) = status.get_mut("message") {
        *message = message.replace(&before, &after);
    }
}

/// Returns the same number for the same string.
fn ordinal(known: &mut Vec<String>, text: &str) -> usize {
    let position = known.iter().position(|it| it == text);
    position.unwrap_or_else(|| {
        known.push(text.into());
        known.len() - 1
    })
}
