//! Metadata with wrong types, in the words of the decoder of the real server.
//!
//! Its messages come from a streaming decoder that goes on for a while after an error, and show bytes around the place. So
//! this walks over the same bytes in the same way. Only the first error counts, but every field that is decoded after it
//! puts its name in front of the message.

use super::Value;
use crate::{refusal::go, request::json::type_name};

/// What a field of metadata is in the real server.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Integer,
    Boolean,
    Time,
    /// Anything.
    Raw,
    TextMap,
    Texts,
    Owners,
    Writers,
}

/// Fields of `ObjectMeta`: how the JSON calls them, and how Go does.
const META: [(&str, &str, Kind); 16] = [
    ("name", "Name", Kind::Text),
    ("generateName", "GenerateName", Kind::Text),
    ("namespace", "Namespace", Kind::Text),
    ("selfLink", "SelfLink", Kind::Text),
    ("uid", "UID", Kind::Text),
    ("resourceVersion", "ResourceVersion", Kind::Text),
    ("generation", "Generation", Kind::Integer),
    ("creationTimestamp", "CreationTimestamp", Kind::Time),
    ("deletionTimestamp", "DeletionTimestamp", Kind::Time),
    ("deletionGracePeriodSeconds", "DeletionGracePeriodSeconds", Kind::Integer),
    ("labels", "Labels", Kind::TextMap),
    ("annotations", "Annotations", Kind::TextMap),
    ("ownerReferences", "OwnerReferences", Kind::Owners),
    ("finalizers", "Finalizers", Kind::Texts),
    ("clusterName", "ClusterName", Kind::Text),
    ("managedFields", "ManagedFields", Kind::Writers),
];

const OWNER: [(&str, &str, Kind); 6] = [
    ("apiVersion", "APIVersion", Kind::Text),
    ("kind", "Kind", Kind::Text),
    ("name", "Name", Kind::Text),
    ("uid", "UID", Kind::Text),
    ("controller", "Controller", Kind::Boolean),
    ("blockOwnerDeletion", "BlockOwnerDeletion", Kind::Boolean),
];

const WRITER: [(&str, &str, Kind); 7] = [
    ("manager", "Manager", Kind::Text),
    ("operation", "Operation", Kind::Text),
    ("apiVersion", "APIVersion", Kind::Text),
    ("time", "Time", Kind::Time),
    ("fieldsType", "FieldsType", Kind::Text),
    ("fieldsV1", "FieldsV1", Kind::Raw),
    ("subresource", "Subresource", Kind::Text),
];

/// What the decoder says of metadata; nothing if it likes it.
pub(super) fn complaint(meta: &Value) -> Option<String> {
    let text = go::json(meta);
    let mut decoder = Decoder { bytes: text.as_bytes(), head: 0, error: None };
    decoder.metadata();
    decoder.error
}

struct Decoder<'a> {
    bytes: &'a [u8],
    head: usize,
    error: Option<String>,
}

impl Decoder<'_> {
    fn metadata(&mut self) {
        if !self.object_start() {
            return;
        }
        loop {
            let name = self.text();
            self.next();
            match META.iter().find(|(it, ..)| *it == name) {
                Some((_, go, kind)) => self.field(go, *kind),
                None => self.skip(),
            }
            if self.next() != b',' {
                break;
            }
        }
        self.wrap("v1.ObjectMeta.");
    }

    fn field(&mut self, name: &str, kind: Kind) {
        match kind {
            Kind::Text => {
                self.text();
            }
            Kind::Integer => self.integer(),
            Kind::Boolean => self.boolean(),
            Kind::Time => self.time(),
            Kind::Raw => self.skip(),
            Kind::TextMap => self.text_map(),
            Kind::Texts => self.list("[]string: ", |it| {
                it.text();
            }),
            Kind::Owners => {
                self.list("[]v1.OwnerReference: ", |it| it.small("v1.OwnerReference.", &OWNER));
            }
            Kind::Writers => {
                let type_name = "v1.ManagedFieldsEntry.";
                self.list("[]v1.ManagedFieldsEntry: ", |it| it.small(type_name, &WRITER));
            }
        }
        self.wrap(&format!("{name}: "));
    }

    /// A struct with few fields, which is decoded by other code.
    fn small(&mut self, type_name: &str, fields: &[(&str, &str, Kind)]) {
        if !self.object_start() {
            return;
        }
        loop {
            let name = self.text();
            self.next();
            match fields.iter().find(|(it, ..)| *it == name) {
                Some((_, go, kind)) => self.field(go, *kind),
                None => self.skip(),
            }
            match self.next() {
                b',' => {}
                b'}' => break,
                other => {
                    let text =
                        format!("object ended prematurely, unexpected char {}", shown(other));
                    self.report("isObjectEnd", &text);
                    break;
                }
            }
        }
        self.wrap(type_name);
    }

    fn list(&mut self, type_name: &str, item: impl Fn(&mut Self)) {
        match self.next() {
            b'n' => self.head += 3,
            b'[' if self.next() == b']' => {}
            b'[' => {
                self.head -= 1;
                item(self);
                while self.next() == b',' {
                    item(self);
                }
            }
            other => {
                let text = format!("expect [ or n, but found {}", shown(other));
                self.report("decode slice", &text);
            }
        }
        self.wrap(type_name);
    }

    fn text_map(&mut self) {
        match self.next() {
            b'n' => self.head += 3,
            b'{' if self.next() == b'}' => {}
            b'{' => {
                self.head -= 1;
                loop {
                    self.text();
                    self.next();
                    self.text();
                    if self.next() != b',' {
                        break;
                    }
                }
            }
            other => {
                let text = format!("expect {{ or n, but found {}", shown(other));
                self.report("ReadMapCB", &text);
            }
        }
    }

    fn object_start(&mut self) -> bool {
        match self.next() {
            b'{' if self.next() == b'"' => {
                self.head -= 1;
                true
            }
            b'{' => false,
            b'n' => {
                self.head += 3;
                false
            }
            other => {
                let text = format!("expect {{ or n, but found {}", shown(other));
                self.report("readObjectStart", &text);
                false
            }
        }
    }

    fn text(&mut self) -> String {
        match self.next() {
            b'"' => self.rest_of_text(),
            b'n' => {
                self.head += 3;
                String::new()
            }
            other => {
                let text = format!("expects \" or n, but found {}", shown(other));
                self.report("ReadString", &text);
                String::new()
            }
        }
    }

    /// Behind the opening quote. Names of known fields have no escapes, so nothing is unescaped.
    fn rest_of_text(&mut self) -> String {
        let start = self.head;
        loop {
            match self.next() {
                b'\\' => self.head += 1,
                b'"' | 0 => break,
                _ => {}
            }
        }
        let bytes = self.bytes.get(start..self.head.saturating_sub(1)).unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    }

    fn integer(&mut self) {
        let first = match self.next() {
            b'-' => self.next(),
            b'n' => {
                self.head += 3;
                return;
            }
            other => other,
        };
        if !first.is_ascii_digit() {
            // The decoder prints the class of the character rather than the character.
            self.report("readUint64", "unexpected character: \u{fffd}");
            return;
        }
        while self.peek().is_ascii_digit() {
            self.head += 1;
        }
        if self.peek() == b'.' {
            self.report("assertInteger", "can not decode float as int");
        }
    }

    fn boolean(&mut self) {
        match self.next() {
            b'n' | b't' => self.head += 3,
            b'f' => self.head += 4,
            other => {
                let text = format!("expect t or f, but found {}", shown(other));
                self.report("ReadBool", &text);
            }
        }
    }

    fn time(&mut self) {
        let start = self.head;
        self.skip();
        let bytes = self.bytes.get(start..self.head).unwrap_or_default();
        let complaint = match serde_json::from_slice::<Value>(bytes) {
            Ok(Value::Null) | Err(_) => None,
            Ok(Value::String(text)) => time_complaint(&text),
            Ok(other) => {
                let kind = type_name(&other);
                Some(format!("json: cannot unmarshal {kind} into Go value of type string"))
            }
        };
        if let Some(text) = complaint {
            self.report("unmarshalerDecoder", &text);
        }
    }

    /// Over one whole value.
    fn skip(&mut self) {
        let mut depth = 0_usize;
        loop {
            match self.next() {
                b'"' => {
                    self.rest_of_text();
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                0 => return,
                b',' | b':' => {}
                _ => {
                    while !matches!(self.peek(), b',' | b'}' | b']' | 0) {
                        self.head += 1;
                    }
                }
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// 0 at the end.
    fn peek(&self) -> u8 {
        self.bytes.get(self.head).copied().unwrap_or_default()
    }

    fn next(&mut self) -> u8 {
        let byte = self.peek();
        if self.head < self.bytes.len() {
            self.head += 1;
        }
        byte
    }

    fn report(&mut self, operation: &str, text: &str) {
        if self.error.is_some() {
            return;
        }
        let around = |reach: usize| {
            let start = self.head.saturating_sub(reach);
            let end = self.bytes.len().min(self.head + reach);
            String::from_utf8_lossy(self.bytes.get(start..end).unwrap_or_default()).into_owned()
        };
        let at = self.head.min(10);
        let (near, far) = (around(10), around(50));
        self.error = Some(format!(
            "{operation}: {text}, error found in #{at} byte of ...|{near}|..., bigger context ...|{far}|..."
        ));
    }

    fn wrap(&mut self, prefix: &str) {
        if let Some(error) = &mut self.error {
            error.insert_str(0, prefix);
        }
    }
}

fn shown(byte: u8) -> String {
    // A byte in the middle of a character is not a character to Go either.
    if byte.is_ascii() { char::from(byte).to_string() } else { '\u{fffd}'.to_string() }
}

/// What Go says of a text that is no RFC 3339 time.
fn time_complaint(text: &str) -> Option<String> {
    const LAYOUT: [&str; 11] = ["2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05"];
    let mut rest = text;
    let wrong = |rest: &str, element: &str| {
        let layout = "2006-01-02T15:04:05Z07:00";
        Some(format!(
            "parsing time {} as {layout:?}: cannot parse {} as {element:?}",
            go::quote(text),
            go::quote(rest)
        ))
    };
    for element in LAYOUT {
        let Some((part, after)) = rest.split_at_checked(element.len()) else {
            return wrong(rest, element);
        };
        let digits = element.starts_with(|c: char| c.is_ascii_digit());
        let fits = if digits { part.chars().all(|c| c.is_ascii_digit()) } else { part == element };
        if !fits {
            return wrong(rest, element);
        }
        rest = after;
    }
    let zone = rest
        .strip_prefix('.')
        .map_or(rest, |it| it.trim_start_matches(|c: char| c.is_ascii_digit()));
    if zone != "Z" && !(zone.len() == 6 && zone.starts_with(['+', '-'])) {
        return wrong(zone, "Z07:00");
    }
    match text.parse::<jiff::Timestamp>() {
        Ok(_) => None,
        Err(_) => Some(format!("parsing time {}: day out of range", go::quote(text))),
    }
}
