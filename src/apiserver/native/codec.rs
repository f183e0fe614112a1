//! The words of the real server about values of wrong types.
//!
//! Its decoder reads on after the first error, and each struct, list and field on the way adds its name to the text, also those
//! that come later in the body. To get the same text one has to stumble through the bytes in the same way, and so does this
//! reader: it is run only after decoding has failed, and only to word the failure.

use serde_json::Value;

use super::{
    facts::{self, Form, GoType},
    stamp,
};

/// Structs up to this size are read field by field without names as texts, which matters after an error.
const SMALL: usize = 10;
/// Deeper bytes are not read: after an error, even texts may look like lists.
const DEPTH: usize = 250;

/// Why a body cannot be read as a type, if it cannot.
pub(super) fn explain(known: &GoType, text: &str) -> Option<String> {
    let mut reader = Reader { bytes: text.as_bytes(), head: 0, error: Failure::None, depth: 0 };
    reader.fields(known);
    match reader.error {
        Failure::Text(text) => Some(text),
        Failure::None | Failure::End => None,
    }
}

enum Failure {
    None,
    /// The bytes are over.
    End,
    Text(String),
}

struct Reader<'a> {
    bytes: &'a [u8],
    head: usize,
    error: Failure,
    depth: usize,
}

impl Reader<'_> {
    /// Also after an error; at the end it is zero.
    fn byte(&mut self) -> u8 {
        let Some(byte) = self.bytes.get(self.head) else {
            if matches!(self.error, Failure::None) {
                self.error = Failure::End;
            }
            return 0;
        };
        self.head += 1;
        *byte
    }

    fn token(&mut self) -> u8 {
        loop {
            let byte = self.byte();
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return byte;
            }
        }
    }

    /// Goes back, unless there was an error.
    fn back(&mut self) {
        if matches!(self.error, Failure::None) {
            self.head -= 1;
        }
    }

    fn peek(&self) -> u8 {
        self.bytes.get(self.head).copied().unwrap_or(0)
    }

    fn report(&mut self, operation: &str, detail: &str) {
        if matches!(self.error, Failure::Text(_)) {
            return;
        }
        let window = |size: usize| {
            let (from, to) = (self.head.saturating_sub(size), self.head + size);
            let bytes = self.bytes.get(from..to.min(self.bytes.len())).unwrap_or_default();
            String::from_utf8_lossy(bytes).into_owned()
        };
        self.error = Failure::Text(format!(
            "{operation}: {detail}, error found in #{} byte of ...|{}|..., bigger context ...|{}|...",
            self.head.min(10),
            window(10),
            window(50)
        ));
    }

    fn found(&mut self, operation: &str, expected: &str, byte: u8) {
        let shown = String::from_utf8_lossy(&[byte]).into_owned();
        self.report(operation, &format!("{expected}, but found {shown}"));
    }

    /// Adds a name to an error.
    fn wrap(&mut self, name: &str) {
        if let Failure::Text(text) = &mut self.error {
            text.insert_str(0, name);
        }
    }

    fn enter(&mut self) -> bool {
        self.depth += 1;
        self.depth < DEPTH
    }

    fn object_start(&mut self) -> bool {
        match self.token() {
            b'{' => match self.token() {
                b'"' => {
                    self.back();
                    true
                }
                b'}' => false,
                other => {
                    let shown = String::from_utf8_lossy(&[other]).into_owned();
                    self.report(
                        "readObjectStart",
                        &format!("expect \" after {{, but found {shown}"),
                    );
                    false
                }
            },
            b'n' => {
                self.rest("ull");
                false
            }
            other => {
                self.found("readObjectStart", "expect { or n", other);
                false
            }
        }
    }

    fn fields(&mut self, known: &GoType) {
        if !self.object_start() {
            return;
        }
        if self.enter() {
            if known.fields.len() <= SMALL { self.small(known) } else { self.large(known) }
        }
        self.depth -= 1;
    }

    fn small(&mut self, known: &GoType) {
        loop {
            let name = self.hashed_name();
            self.one_field(known, &name);
            match self.token() {
                b',' => {}
                b'}' => break,
                other => {
                    let shown = String::from_utf8_lossy(&[other]).into_owned();
                    let detail = format!("object ended prematurely, unexpected char {shown}");
                    self.report("isObjectEnd", &detail);
                    break;
                }
            }
        }
        self.wrap(&format!("{}.", known.name));
    }

    /// The name of a field, with its colon; empty if there is none.
    fn hashed_name(&mut self) -> Vec<u8> {
        let quote = self.token();
        if quote != b'"' {
            self.found("readFieldHash", "expect \"", quote);
            return Vec::new();
        }
        let name = self.quoted();
        let colon = self.token();
        if colon != b':' {
            self.found("readFieldHash", "expect :", colon);
            return Vec::new();
        }
        name
    }

    fn large(&mut self, known: &GoType) {
        let mut token = b',';
        while token == b',' {
            let name = self.text();
            self.colon();
            self.one_field(known, &name);
            token = self.token();
        }
        self.wrap(&format!("{}.", known.name));
        if token != b'}' {
            self.found("struct Decode", "expect }", token);
        }
    }

    fn colon(&mut self) {
        let colon = self.token();
        if colon != b':' {
            self.found("ReadObject", "expect : after object field", colon);
        }
    }

    fn one_field(&mut self, known: &GoType, name: &[u8]) {
        match known.fields.iter().find(|it| it.name.as_bytes() == name) {
            Some(field) => {
                if !(field.pointer && self.null()) {
                    self.value(&field.form);
                }
                self.wrap(&format!("{}: ", field.go));
            }
            None => self.skip(),
        }
    }

    fn null(&mut self) -> bool {
        if self.token() == b'n' {
            self.rest("ull");
            return true;
        }
        self.back();
        false
    }

    fn value(&mut self, form: &Form) {
        match form {
            Form::Text => {
                self.text();
            }
            Form::Bool | Form::Int32 | Form::Int64 | Form::Float if self.null() => {}
            Form::Bool => self.flag(),
            Form::Int32 => self.integer(true),
            Form::Int64 => self.integer(false),
            Form::Float => self.skip(),
            Form::Bytes => self.base64(),
            Form::Quantity | Form::Time | Form::MicroTime | Form::IntOrText | Form::Any => {
                self.whole(form);
            }
            Form::List(go, items) => {
                self.list(items);
                self.wrap(&format!("[]{go}: "));
            }
            Form::Map(items) => self.map(items),
            Form::Struct(name) => match facts::go_type(name) {
                Some(known) => self.fields(known),
                None => self.skip(),
            },
        }
    }

    fn list(&mut self, items: &Form) {
        match self.token() {
            b'n' => return self.rest("ull"),
            b'[' => {}
            other => return self.found("decode slice", "expect [ or n", other),
        }
        if self.token() == b']' {
            return;
        }
        self.back();
        let mut token = b',';
        if self.enter() {
            while token == b',' {
                self.value(items);
                token = self.token();
            }
            if token != b']' {
                self.found("decode slice", "expect ]", token);
            }
        }
        self.depth -= 1;
    }

    fn map(&mut self, items: &Form) {
        match self.token() {
            b'n' => return self.rest("ull"),
            b'{' => {}
            other => return self.found("ReadMapCB", "expect { or n", other),
        }
        if self.token() == b'}' {
            return;
        }
        self.back();
        let mut token = b',';
        if self.enter() {
            while token == b',' {
                self.text();
                let colon = self.token();
                if colon != b':' {
                    self.found("ReadMapCB", "expect : after object field", colon);
                    break;
                }
                self.value(items);
                token = self.token();
            }
            if token != b'}' {
                self.found("ReadMapCB", "expect }", token);
            }
        }
        self.depth -= 1;
    }

    fn text(&mut self) -> Vec<u8> {
        match self.token() {
            b'"' => self.quoted(),
            b'n' => {
                self.rest("ull");
                Vec::new()
            }
            other => {
                self.found("ReadString", "expects \" or n", other);
                Vec::new()
            }
        }
    }

    /// What is left of a text after its first quote. Escapes are kept as they are: names of fields have none.
    fn quoted(&mut self) -> Vec<u8> {
        let start = self.head;
        loop {
            match self.byte() {
                b'"' => {
                    let end = self.head.saturating_sub(1);
                    return self.bytes.get(start..end).unwrap_or_default().to_vec();
                }
                b'\\' => {
                    self.byte();
                }
                0 if self.head >= self.bytes.len() => return Vec::new(),
                _ => {}
            }
        }
    }

    fn flag(&mut self) {
        match self.token() {
            b't' => self.rest("rue"),
            b'f' => self.rest("alse"),
            other => self.found("ReadBool", "expect t or f", other),
        }
    }

    /// The rest of a word.
    fn rest(&mut self, letters: &str) {
        let operation = if letters.len() == 3 { "skipThreeBytes" } else { "skipFourBytes" };
        for letter in letters.bytes() {
            if self.byte() != letter {
                return self.report(operation, &format!("expect {letters}"));
            }
        }
    }

    fn integer(&mut self, short: bool) {
        let (reader, most) =
            if short { ("readUint32", u64::from(u32::MAX)) } else { ("readUint64", u64::MAX) };
        let mut first = self.token();
        let negative = first == b'-';
        if negative {
            first = self.byte();
        }
        if !first.is_ascii_digit() {
            return self.report(reader, "unexpected character: \u{fffd}");
        }
        let mut value = u64::from(first - b'0');
        if value == 0 {
            return self.no_dot();
        }
        let start = self.head;
        // Of a long text, eight digits are read at once.
        let at_once = if self.bytes.len().saturating_sub(start) > 10 { start + 7 } else { start };
        let mut at = start;
        while let Some(digit) = self.bytes.get(at).filter(|it| it.is_ascii_digit()) {
            let next = value.checked_mul(10).and_then(|it| it.checked_add(u64::from(digit - b'0')));
            let Some(next) = next.filter(|it| *it <= most) else {
                self.head = at_once;
                return self.report(reader, "overflow");
            };
            value = next;
            at += 1;
        }
        self.head = at;
        self.no_dot();
        let limit = if short { 1_u64 << 31 } else { 1_u64 << 63 };
        if value > limit || value == limit && !negative {
            let operation = if short { "ReadInt32" } else { "ReadInt64" };
            let shown = if short { value.to_string() } else { value.cast_signed().to_string() };
            self.report(operation, &format!("overflow: {shown}"));
        }
    }

    fn no_dot(&mut self) {
        if self.peek() == b'.' {
            self.report("assertInteger", "can not decode float as int");
        }
    }

    fn base64(&mut self) {
        if self.null() {
            return;
        }
        let token = self.token();
        self.back();
        match token {
            b'"' => {
                let text = self.text();
                let mut value = Value::String(String::from_utf8_lossy(&text).into_owned());
                if let Err(problem) = stamp::scalar(&Form::Bytes, &mut value) {
                    let (operation, detail) = problem.split_once(": ").unwrap_or(("", &problem));
                    self.report(operation, detail);
                }
            }
            b'[' => {
                self.list(&Form::Int32);
                self.wrap("[]uint8: ");
            }
            _ => self.report("base64Codec", "invalid input"),
        }
    }

    /// A value that its type reads by itself, from its bytes.
    fn whole(&mut self, form: &Form) {
        self.token();
        self.back();
        let start = self.head;
        self.skip();
        let bytes = self.bytes.get(start..self.head).unwrap_or_default();
        let Ok(mut value) = serde_json::from_slice::<Value>(bytes) else { return };
        if value.is_null() {
            return;
        }
        if let Err(problem) = stamp::scalar(form, &mut value) {
            let (operation, detail) = problem.split_once(": ").unwrap_or(("", &problem));
            self.report(operation, detail);
        }
    }

    fn skip(&mut self) {
        match self.token() {
            b'"' => {
                self.quoted();
            }
            b'n' => self.rest("ull"),
            b't' => self.rest("rue"),
            b'f' => self.rest("alse"),
            b'-' | b'0'..=b'9' => {
                while matches!(self.peek(), b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-') {
                    self.head += 1;
                }
            }
            open @ (b'[' | b'{') => self.skip_all(open == b'{'),
            other => self.report("Skip", &format!("do not know how to skip: {other}")),
        }
    }

    fn skip_all(&mut self, object: bool) {
        let close = if object { b'}' } else { b']' };
        if self.token() == close {
            return;
        }
        self.back();
        if self.enter() {
            let mut token = b',';
            while token == b',' {
                if object {
                    self.text();
                    self.colon();
                }
                self.skip();
                token = self.token();
            }
            if token != close {
                self.report("Skip", "not ended");
            }
        }
        self.depth -= 1;
    }
}
