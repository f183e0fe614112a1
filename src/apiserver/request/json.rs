//! JSON as the real server reads it: what it accepts, and how it words what it does not.
//!
//! The texts are those of Go's `encoding/json`, which clients see in every answer to a malformed body. Beyond the grammar,
//! bytes that are no UTF-8 and lone surrogates become U+FFFD, the last of equal keys wins, and whole floats are integers.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Number, Value};

/// How deep the real server follows nested lists and maps.
const GO_DEPTH_MAX: usize = 10_000;
/// How deep we do: enough for every schema and object we know of, and safe for every recursive step on the way.
pub(crate) const DEPTH_MAX: usize = 127;

/// Why a text is not acceptable JSON, as the real server words it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Not JSON, or nested too deep. `cut`: the text ends too early.
    Syntax { text: String, cut: bool },
    /// A number that no float can hold.
    Number,
}

/// Reads a whole text.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, Fault> {
    Scanner::new(bytes).whole()?;
    read(bytes)
}

/// Reads the first value of a text and ignores what follows it, as the decoder of strategic merge patches does.
pub(crate) fn parse_first(bytes: &[u8]) -> Result<Value, Fault> {
    let mut scanner = Scanner::new(bytes);
    scanner.value()?;
    read(bytes.get(..scanner.at).unwrap_or(bytes))
}

/// Reads a JSON text that this server wrote. What it accepts has up to [`DEPTH_MAX`] levels, and its own texts have some more
/// around that: in lists, in managed fields, and in files.
pub(crate) fn stored<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, serde_json::Error> {
    let whole = |mut deserializer: serde_json::Deserializer<serde_json::de::SliceRead<'a>>| {
        let value = T::deserialize(&mut deserializer)?;
        deserializer.end().map(|()| value)
    };
    whole(serde_json::Deserializer::from_slice(text)).or_else(|error| {
        // Somebody may have changed a file.
        if text_depth(text) > DEPTH_MAX * 2 {
            return Err(error);
        }
        let mut deserializer = serde_json::Deserializer::from_slice(text);
        deserializer.disable_recursion_limit();
        whole(deserializer)
    })
}

/// How deep the lists and maps of a text are nested; does not recurse.
fn text_depth(text: &[u8]) -> usize {
    let (mut deepest, mut open) = (0_usize, 0_usize);
    let (mut is_quoted, mut is_escaped) = (false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_quoted,
            b'"' => is_quoted = !is_quoted,
            b'{' | b'[' if !is_quoted => {
                open = open.saturating_add(1);
                deepest = deepest.max(open);
            }
            b'}' | b']' if !is_quoted => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The type of a value in the words of Go's errors.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// How deep the lists and maps of a value are nested; does not recurse.
pub(crate) fn depth(value: &Value) -> usize {
    extent(value).0
}

/// The same, and how many values there are.
pub(crate) fn extent(value: &Value) -> (usize, usize) {
    let (mut deepest, mut count) = (0, 0_usize);
    let mut open = vec![(value, 0_usize)];
    while let Some((value, above)) = open.pop() {
        let own = above + 1;
        count = count.saturating_add(1);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|it| (it, own))),
            Value::Object(fields) => open.extend(fields.values().map(|it| (it, own))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => continue,
        }
        deepest = deepest.max(own);
    }
    (deepest, count)
}

fn read(bytes: &[u8]) -> Result<Value, Fault> {
    let text = well_formed(bytes);
    match serde_json::from_str::<Value>(&text) {
        Ok(mut value) => {
            settle_numbers(&mut value);
            Ok(value)
        }
        // The grammar is checked before, so only the size of a number or the depth is left.
        Err(error) if error.to_string().starts_with("recursion limit") => Err(too_deep(b'[')),
        Err(_number) => Err(Fault::Number),
    }
}

/// Where the first number ends that is too large for a float; the end of the text if there is none.
pub(crate) fn huge_number_end(bytes: &[u8]) -> usize {
    let mut at = 0_usize;
    let mut quoted = false;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if quoted => at = at.saturating_add(1),
            b'"' => quoted = !quoted,
            b'-' | b'0'..=b'9' if !quoted => {
                let rest = bytes.get(at..).unwrap_or_default();
                let digits =
                    |it: &&u8| matches!(it, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                let length = rest.iter().take_while(digits).count();
                let text = rest.get(..length).and_then(|it| std::str::from_utf8(it).ok());
                let number = text.and_then(|it| it.parse::<f64>().ok());
                let end = at.saturating_add(length);
                if number.is_some_and(f64::is_infinite) {
                    return end;
                }
                at = end.saturating_sub(1);
            }
            _ => {}
        }
        at = at.saturating_add(1);
    }
    bytes.len()
}

/// Go keeps whole numbers as integers, however they are written.
pub(crate) fn settle_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(whole) = whole(number) {
                *number = whole;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(settle_numbers),
        Value::Object(fields) => fields.values_mut().for_each(settle_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the range is checked before")]
fn whole(number: &Number) -> Option<Number> {
    if number.is_i64() {
        return None;
    }
    // What fits into no i64 is a float in Go; a float of 2^53 and more is not the number that was meant anyway.
    let float = number.as_f64()?;
    if number.is_u64() {
        return Number::from_f64(float);
    }
    let exact = float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0;
    exact.then(|| Number::from(float as i64))
}

/// The text with everything that is no Unicode replaced.
fn well_formed(bytes: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(bytes);
    if !text.contains("\\u") {
        return text;
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest: &str = &text;
    while let Some(found) = rest.find('\\') {
        let (before, from) = rest.split_at(found);
        clean.push_str(before);
        let taken = escape(from, &mut clean);
        rest = from.get(taken..).unwrap_or_default();
    }
    clean.push_str(rest);
    Cow::Owned(clean)
}

/// Copies the escape at the start of `from`; gives how long it is.
fn escape(from: &str, clean: &mut String) -> usize {
    let unit = |at: usize| {
        let digits = from.get(at..).filter(|it| it.starts_with("\\u"))?.get(2..6)?;
        u32::from_str_radix(digits, 16).ok()
    };
    let (length, good) = match (unit(0), unit(6)) {
        (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (12, true),
        (Some(0xD800..=0xDFFF), _) => (6, false),
        (Some(_), _) => (6, true),
        // A simple escape: the sign after the backslash is one byte long, for the grammar is checked.
        (None, _) => (2, true),
    };
    clean.push_str(if good { from.get(..length).unwrap_or(from) } else { "\u{FFFD}" });
    length
}

/// Checks the grammar byte by byte, without recursion.
struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The closing signs of open lists and maps.
    open: Vec<u8>,
}

impl<'a> Scanner<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, open: Vec::new() }
    }

    /// One value and nothing else.
    fn whole(&mut self) -> Result<(), Fault> {
        self.value()?;
        match self.peek() {
            None => Ok(()),
            Some(sign) => Err(strange(sign, "after top-level value")),
        }
    }

    /// One value; stops behind it.
    fn value(&mut self) -> Result<(), Fault> {
        loop {
            let opened = self.begin()?;
            // Behind an opening sign comes a value, except at once the closing one.
            if opened && self.peek() != self.open.last().copied() {
                self.key_if_map()?;
                continue;
            }
            if !self.close()? {
                return Ok(());
            }
        }
    }

    /// The start of a value; whether it is a list or a map that is now open.
    fn begin(&mut self) -> Result<bool, Fault> {
        let Some(sign) = self.peek() else { return Err(cut()) };
        self.at += 1;
        match sign {
            b'{' | b'[' => {
                if self.open.len() == GO_DEPTH_MAX {
                    return Err(too_deep(sign));
                }
                self.open.push(if sign == b'{' { b'}' } else { b']' });
                return Ok(true);
            }
            b'"' => self.string()?,
            b't' => self.literal("rue", "true")?,
            b'f' => self.literal("alse", "false")?,
            b'n' => self.literal("ull", "null")?,
            b'-' | b'0'..=b'9' => self.number(sign)?,
            other => return Err(strange(other, "looking for beginning of value")),
        }
        Ok(false)
    }

    /// Behind a value: closes what ends here, or passes a comma. Whether another value follows.
    fn close(&mut self) -> Result<bool, Fault> {
        while let Some(closing) = self.open.last().copied() {
            let Some(sign) = self.peek() else { return Err(cut()) };
            self.at += 1;
            if sign == closing {
                self.open.pop();
            } else if sign == b',' {
                self.key_if_map()?;
                return Ok(true);
            } else if closing == b'}' {
                return Err(strange(sign, "after object key:value pair"));
            } else {
                return Err(strange(sign, "after array element"));
            }
        }
        Ok(false)
    }

    /// Inside a map, the key and the colon.
    fn key_if_map(&mut self) -> Result<(), Fault> {
        if self.open.last() != Some(&b'}') {
            return Ok(());
        }
        match self.peek() {
            None => return Err(cut()),
            Some(b'"') => self.at += 1,
            Some(other) => {
                return Err(strange(other, "looking for beginning of object key string"));
            }
        }
        self.string()?;
        match self.peek() {
            None => Err(cut()),
            Some(b':') => {
                self.at += 1;
                Ok(())
            }
            Some(other) => Err(strange(other, "after object key")),
        }
    }

    /// The next sign that is no space; stays before it.
    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Result<u8, Fault> {
        let sign = self.bytes.get(self.at).copied().ok_or_else(cut)?;
        self.at += 1;
        Ok(sign)
    }

    /// Where a space would be wrong: Go reports one where the text ends.
    fn inside(&mut self, place: &str) -> Result<u8, Fault> {
        self.next().map_err(|_end| match strange(b' ', place) {
            Fault::Syntax { text, .. } => Fault::Syntax { text, cut: true },
            number @ Fault::Number => number,
        })
    }

    /// Behind the opening quote.
    fn string(&mut self) -> Result<(), Fault> {
        loop {
            match self.next()? {
                b'"' => return Ok(()),
                b'\\' => match self.inside("in string escape code")? {
                    b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                    b'u' => {
                        for _ in 0..4 {
                            let place = "in \\u hexadecimal character escape";
                            let digit = self.inside(place)?;
                            if !digit.is_ascii_hexdigit() {
                                return Err(strange(digit, place));
                            }
                        }
                    }
                    other => return Err(strange(other, "in string escape code")),
                },
                control if control < 0x20 => return Err(strange(control, "in string literal")),
                _ => {}
            }
        }
    }

    fn literal(&mut self, rest: &str, word: &str) -> Result<(), Fault> {
        for expected in rest.bytes() {
            let place = format!("in literal {word} (expecting {})", quoted(expected));
            let sign = self.inside(&place)?;
            if sign != expected {
                return Err(strange(sign, &place));
            }
        }
        Ok(())
    }

    fn number(&mut self, first: u8) -> Result<(), Fault> {
        let mut digit = first;
        if digit == b'-' {
            digit = self.digit("in numeric literal")?;
        }
        // After a leading zero no other digit belongs to the number.
        if digit != b'0' {
            self.digits();
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digit("after decimal point in numeric literal")?;
            self.digits();
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.digit("in exponent of numeric literal")?;
            self.digits();
        }
        Ok(())
    }

    fn digit(&mut self, place: &str) -> Result<u8, Fault> {
        let sign = self.inside(place)?;
        if sign.is_ascii_digit() { Ok(sign) } else { Err(strange(sign, place)) }
    }

    fn digits(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }
}

fn cut() -> Fault {
    Fault::Syntax { text: "unexpected end of JSON input".into(), cut: true }
}

fn too_deep(sign: u8) -> Fault {
    strange(sign, "exceeded max depth")
}

fn strange(sign: u8, place: &str) -> Fault {
    Fault::Syntax { text: format!("invalid character {} {place}", quoted(sign)), cut: false }
}

/// A byte as Go quotes it: bytes above ASCII are taken for Latin-1.
fn quoted(sign: u8) -> String {
    match sign {
        b'\'' => r"'\''".into(),
        b'"' => "'\"'".into(),
        b'\\' => r"'\\'".into(),
        0x07 => r"'\a'".into(),
        0x08 => r"'\b'".into(),
        0x09 => r"'\t'".into(),
        0x0A => r"'\n'".into(),
        0x0B => r"'\v'".into(),
        0x0C => r"'\f'".into(),
        0x0D => r"'\r'".into(),
        0x00..=0x1F | 0x7F => format!(r"'\x{sign:02x}'"),
        0x80..=0xA0 | 0xAD => format!(r"'\u{:04x}'", u32::from(sign)),
        printable => format!("'{}'", char::from(printable)),
    }
}
