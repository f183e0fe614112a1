//! Metadata of the wrong types, and how the real server complains about it.
//!
//! Its decoder goes on after an error and puts the names of the fields it meets before the text, and it shows the bytes around
//! the place. Clients print that as it is, so we walk the bytes in the same way. The grammar is already checked.

use std::{borrow::Cow, fmt::Write};

use serde_json::Value;

use crate::request::{json, time};

/// What a Go field can take.
enum Shape {
    Struct(&'static Struct),
    /// Of texts.
    Map,
    /// The Go name of the type, and its items.
    Slice(&'static str, &'static Shape),
    Text,
    Integer,
    Boolean,
    Time,
    Anything,
}

struct Struct {
    /// In Go; without one, no prefix.
    name: &'static str,
    /// The name in JSON, in Go, and the shape.
    fields: &'static [(&'static str, &'static str, Shape)],
}

static OWNER: Shape = Shape::Struct(&Struct {
    name: "v1.OwnerReference",
    fields: &[
        ("apiVersion", "APIVersion", Shape::Text),
        ("kind", "Kind", Shape::Text),
        ("name", "Name", Shape::Text),
        ("uid", "UID", Shape::Text),
        ("controller", "Controller", Shape::Boolean),
        ("blockOwnerDeletion", "BlockOwnerDeletion", Shape::Boolean),
    ],
});

static MANAGED: Shape = Shape::Struct(&Struct {
    name: "v1.ManagedFieldsEntry",
    fields: &[
        ("manager", "Manager", Shape::Text),
        ("operation", "Operation", Shape::Text),
        ("apiVersion", "APIVersion", Shape::Text),
        ("time", "Time", Shape::Time),
        ("fieldsType", "FieldsType", Shape::Text),
        ("fieldsV1", "FieldsV1", Shape::Anything),
        ("subresource", "Subresource", Shape::Text),
    ],
});

static META: Struct = Struct {
    name: "v1.ObjectMeta",
    fields: &[
        ("name", "Name", Shape::Text),
        ("generateName", "GenerateName", Shape::Text),
        ("namespace", "Namespace", Shape::Text),
        ("selfLink", "SelfLink", Shape::Text),
        ("uid", "UID", Shape::Text),
        ("resourceVersion", "ResourceVersion", Shape::Text),
        ("generation", "Generation", Shape::Integer),
        ("creationTimestamp", "CreationTimestamp", Shape::Time),
        ("deletionTimestamp", "DeletionTimestamp", Shape::Time),
        ("deletionGracePeriodSeconds", "DeletionGracePeriodSeconds", Shape::Integer),
        ("labels", "Labels", Shape::Map),
        ("annotations", "Annotations", Shape::Map),
        ("ownerReferences", "OwnerReferences", Shape::Slice("[]v1.OwnerReference", &OWNER)),
        ("finalizers", "Finalizers", Shape::Slice("[]string", &Shape::Text)),
        ("clusterName", "ClusterName", Shape::Text),
        ("managedFields", "ManagedFields", Shape::Slice("[]v1.ManagedFieldsEntry", &MANAGED)),
    ],
};

/// An object of which only the metadata is looked at.
static OBJECT: Struct = Struct {
    name: "",
    fields: &[
        ("kind", "TypeMeta: Kind", Shape::Text),
        ("apiVersion", "TypeMeta: APIVersion", Shape::Text),
        ("metadata", "ObjectMeta", Shape::Struct(&META)),
    ],
};

/// What a deletion may be told.
static DELETION: Struct = Struct {
    name: "v1.DeleteOptions",
    fields: &[
        ("kind", "TypeMeta: Kind", Shape::Text),
        ("apiVersion", "TypeMeta: APIVersion", Shape::Text),
        ("gracePeriodSeconds", "GracePeriodSeconds", Shape::Integer),
        (
            "preconditions",
            "Preconditions",
            Shape::Struct(&Struct {
                name: "v1.Preconditions",
                fields: &[
                    ("uid", "UID", Shape::Text),
                    ("resourceVersion", "ResourceVersion", Shape::Text),
                ],
            }),
        ),
        ("orphanDependents", "OrphanDependents", Shape::Boolean),
        ("propagationPolicy", "PropagationPolicy", Shape::Text),
        ("dryRun", "DryRun", Shape::Slice("[]string", &Shape::Text)),
    ],
};

/// Checks the body of a deletion, which is `bytes` if that is JSON.
pub(crate) fn delete_options(value: &Value, bytes: &[u8]) -> Result<(), String> {
    let bytes = json_of(value, bytes);
    let mut reader = Reader::new(&bytes);
    reader.structure(&DELETION);
    reader.error.map_or(Ok(()), Err)
}

/// Checks the metadata of a native object, whose body is `bytes` if that is JSON.
pub(crate) fn metadata_of_native(
    value: &Value,
    bytes: &[u8],
    version: &str,
    kind: &str,
) -> Result<(), String> {
    let bytes = json_of(value, bytes);
    let mut reader = Reader::new(&bytes);
    reader.structure(&OBJECT);
    reader.error.map_or(Ok(()), |error| Err(format!("{version}.{kind}.{error}")))
}

/// The body as it is if that is JSON, or what the real server makes of it.
fn json_of<'a>(value: &Value, bytes: &'a [u8]) -> Cow<'a, [u8]> {
    let start = bytes.iter().find(|it| !it.is_ascii_whitespace());
    if start == Some(&b'{') && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok() {
        Cow::Borrowed(bytes)
    } else {
        Cow::Owned(sorted_json(value).into_bytes())
    }
}

/// Checks the metadata of a custom object, which the real server reads apart from the rest.
pub(crate) fn metadata_of_custom(value: &Value) -> Result<(), String> {
    let Some(metadata) = value.get("metadata") else { return Ok(()) };
    let text = sorted_json(metadata);
    let mut reader = Reader::new(text.as_bytes());
    reader.structure(&META);
    reader.error.map_or(Ok(()), Err)
}

/// Where an error is found, when everything before `head` is read.
pub(crate) fn place(bytes: &[u8], head: usize) -> String {
    let head = head.min(bytes.len());
    let part = |around: usize| {
        let range = head.saturating_sub(around)..(head + around).min(bytes.len());
        String::from_utf8_lossy(bytes.get(range).unwrap_or_default()).into_owned()
    };
    format!(
        "error found in #{} byte of ...|{}|..., bigger context ...|{}|...",
        head.min(10),
        part(10),
        part(50)
    )
}

/// JSON with the keys in order, as Go writes maps.
pub(crate) fn sorted_json(value: &Value) -> String {
    let mut text = String::new();
    write_sorted(value, &mut text);
    text
}

fn write_sorted(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { "," });
                write_sorted(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            text.push('{');
            for (index, (key, value)) in sorted.into_iter().enumerate() {
                text.push_str(if index == 0 { "" } else { "," });
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                write_sorted(value, text);
            }
            text.push('}');
        }
        scalar @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            write!(text, "{scalar}").unwrap_or_default();
        }
    }
}

/// How deep values that nobody looks at are followed: after an error, the inside of a text may be taken for lists.
const SKIPPED_DEPTH_MAX: usize = 256;

struct Reader<'a> {
    bytes: &'a [u8],
    head: usize,
    error: Option<String>,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, head: 0, error: None }
    }

    /// Only the first error counts.
    fn report(&mut self, operation: &str, text: &str) {
        if self.error.is_none() {
            self.error = Some(format!("{operation}: {text}, {}", place(self.bytes, self.head)));
        }
    }

    fn prefix(&mut self, words: &str) {
        if let Some(error) = &mut self.error {
            error.insert_str(0, words);
        }
    }

    /// The next sign that is no space, consumed; zero at the end.
    fn token(&mut self) -> u8 {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.bytes.get(self.head) {
            self.head += 1;
        }
        let sign = self.bytes.get(self.head).copied().unwrap_or_default();
        self.head += 1;
        sign
    }

    /// Steps back. The real decoder cannot do that after an error, so that it gets lost in the next list or map.
    fn unread(&mut self) {
        if self.error.is_none() {
            self.head -= 1;
        }
    }

    /// Passes `null` if it is there.
    fn null(&mut self) -> bool {
        let null = self.token() == b'n';
        if null {
            self.head += 3;
        } else {
            self.unread();
        }
        null
    }

    /// Consumes the start of something with parts. Whether there are any; `false` also if it is something else.
    fn open(&mut self, opening: u8, operation: &str) -> bool {
        match self.token() {
            b'n' => {
                self.head += 3;
                return false;
            }
            sign if sign == opening => {}
            other => {
                let (opening, other) = (char::from(opening), char::from(other));
                self.report(operation, &format!("expect {opening} or n, but found {other}"));
                return false;
            }
        }
        // The closing sign is two places behind the opening one.
        if self.token() == opening + 2 {
            return false;
        }
        self.unread();
        true
    }

    fn value(&mut self, shape: &Shape) {
        match shape {
            Shape::Text => {
                self.text();
            }
            Shape::Struct(of) => self.structure(of),
            Shape::Map => self.map(),
            Shape::Slice(name, items) => {
                self.slice(items);
                self.prefix(&format!("{name}: "));
            }
            Shape::Integer => {
                if !self.null() {
                    self.integer();
                }
            }
            Shape::Boolean => {
                if !self.null() {
                    self.boolean();
                }
            }
            Shape::Time => self.time(),
            Shape::Anything => {
                self.token();
                self.unread();
                self.skip(0);
            }
        }
    }

    fn structure(&mut self, of: &Struct) {
        if !self.open(b'{', "readObjectStart") {
            return;
        }
        let mut sign = b',';
        while sign == b',' {
            let name = self.text();
            self.token();
            match of.fields.iter().find(|(it, _, _)| *it == name) {
                Some((_, go_name, shape)) => {
                    self.value(shape);
                    self.prefix(&format!("{go_name}: "));
                }
                None => self.skip(0),
            }
            sign = self.token();
        }
        if !of.name.is_empty() {
            self.prefix(&format!("{}.", of.name));
        }
        if sign != b'}' {
            self.report("struct Decode", &format!("expect }}, but found {}", char::from(sign)));
        }
    }

    fn map(&mut self) {
        if !self.open(b'{', "ReadMapCB") {
            return;
        }
        let mut sign = b',';
        while sign == b',' {
            self.text();
            if self.token() != b':' {
                return;
            }
            self.text();
            sign = self.token();
        }
    }

    fn slice(&mut self, items: &Shape) {
        if !self.open(b'[', "decode slice") {
            return;
        }
        let mut sign = b',';
        while sign == b',' {
            self.value(items);
            sign = self.token();
        }
    }

    fn text(&mut self) -> String {
        match self.token() {
            b'"' => {
                let start = self.head - 1;
                self.rest_of_string();
                let text = self.bytes.get(start..self.head).unwrap_or_default();
                return serde_json::from_slice(text).unwrap_or_default();
            }
            b'n' => self.head += 3,
            other => {
                let text = format!("expects \" or n, but found {}", char::from(other));
                self.report("ReadString", &text);
            }
        }
        String::new()
    }

    fn boolean(&mut self) {
        match self.token() {
            b't' => self.head += 3,
            b'f' => self.head += 4,
            other => {
                let text = format!("expect t or f, but found {}", char::from(other));
                self.report("ReadBool", &text);
            }
        }
    }

    fn integer(&mut self) {
        let mut sign = self.token();
        let negative = sign == b'-';
        if negative {
            sign = self.token();
        }
        if !sign.is_ascii_digit() {
            return self.report("readUint64", "unexpected character: \u{FFFD}");
        }
        let start = self.head - 1;
        while self.bytes.get(self.head).is_some_and(u8::is_ascii_digit) {
            self.head += 1;
        }
        let digits = self.bytes.get(start..self.head).unwrap_or_default();
        let Ok(Ok(amount)) = std::str::from_utf8(digits).map(str::parse::<u64>) else {
            // The real decoder has read eight digits at once and not moved since.
            self.head = start + 8;
            return self.report("readUint64", "overflow");
        };
        let most = i64::MAX.unsigned_abs() + u64::from(negative);
        if amount > most {
            self.report("ReadInt64", &format!("overflow: {amount}"));
        } else if self.bytes.get(self.head) == Some(&b'.') {
            self.report("assertInteger", "can not decode float as int");
        }
    }

    fn time(&mut self) {
        self.token();
        self.unread();
        let start = self.head;
        self.skip(0);
        if self.error.is_some() {
            return;
        }
        let value = self.bytes.get(start..self.head).unwrap_or_default();
        let wrong = match serde_json::from_slice(value).unwrap_or_default() {
            Value::Null => None,
            Value::String(text) => time::check(&text).err(),
            other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                let name = json::type_name(&other);
                Some(format!("json: cannot unmarshal {name} into Go value of type string"))
            }
        };
        if let Some(wrong) = wrong {
            self.report("unmarshalerDecoder", &wrong);
        }
    }

    /// Passes a value that nobody looks at.
    fn skip(&mut self, depth: usize) {
        match self.token() {
            b'"' => self.rest_of_string(),
            b'n' | b't' => self.head += 3,
            b'f' => self.head += 4,
            b'0' => {
                self.unread();
                self.number();
            }
            b'-' | b'1'..=b'9' => self.number(),
            opening @ (b'[' | b'{') if depth < SKIPPED_DEPTH_MAX => {
                self.unread();
                if self.token() != opening || self.token() == opening + 2 {
                    return;
                }
                self.unread();
                let mut sign = b',';
                while sign == b',' {
                    if opening == b'{' {
                        self.text();
                        self.token();
                    }
                    self.skip(depth + 1);
                    sign = self.token();
                }
            }
            _ => {}
        }
    }

    fn number(&mut self) {
        let part = |it: &u8| it.is_ascii_digit() || matches!(it, b'+' | b'-' | b'.' | b'e' | b'E');
        while self.bytes.get(self.head).is_some_and(part) {
            self.head += 1;
        }
    }

    fn rest_of_string(&mut self) {
        while let Some(sign) = self.bytes.get(self.head) {
            self.head += 1;
            match sign {
                b'"' => return,
                b'\\' => self.head += 1,
                _ => {}
            }
        }
    }
}
