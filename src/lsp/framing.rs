//! Messages on the wire: a header with the length, then JSON.

use std::io::{self, BufRead, Read as _, Write};

use lsp_server::{ErrorCode, Message};
use serde_json::Value;

/// Maximum size of a message. A document may have 1 MiB, and JSON makes some characters six times as long.
const BYTES_MAX: usize = 8 << 20;
/// Maximum size of a header.
const HEADER_MAX: u64 = 8 << 10;

/// A message of the client.
#[derive(Debug)]
pub(super) enum Incoming {
    Message(Message),
    /// An invalid message, with the error to respond.
    Invalid(i32, String),
}

/// Reads a message; `None` at the end of the input, or if it cannot be parsed from here on.
pub(super) fn read(input: &mut impl BufRead) -> Option<Incoming> {
    let mut length: Option<usize> = None;
    loop {
        let mut line = Vec::new();
        let count = input.by_ref().take(HEADER_MAX).read_until(b'\n', &mut line).ok()?;
        if count == 0 || line.last() != Some(&b'\n') {
            return None;
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        if line.is_empty() {
            if length.is_some() {
                break;
            }
            continue;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        if name.trim().eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok();
        }
    }
    let length = length?;
    let size = u64::try_from(length).unwrap_or(u64::MAX);
    if length > BYTES_MAX {
        let skipped = io::copy(&mut input.by_ref().take(size), &mut io::sink()).ok()?;
        let message = format!("the message is larger than {} MiB", BYTES_MAX >> 20);
        return (skipped == size)
            .then_some(Incoming::Invalid(ErrorCode::InvalidRequest as i32, message));
    }
    let mut body = Vec::with_capacity(length);
    input.by_ref().take(size).read_to_end(&mut body).ok().filter(|it| *it == length)?;
    let value: Value = match serde_json::from_slice(&body) {
        Ok(value) => value,
        Err(error) => {
            return Some(Incoming::Invalid(
                ErrorCode::ParseError as i32,
                format!("not JSON: {error}"),
            ));
        }
    };
    Some(match serde_json::from_value(value) {
        Ok(message) => Incoming::Message(message),
        Err(_) => Incoming::Invalid(
            ErrorCode::InvalidRequest as i32,
            "not a request, a response or a notification".to_owned(),
        ),
    })
}

/// Writes a message with its header.
pub(super) fn write(output: &mut impl Write, message: &Value) -> io::Result<()> {
    let body = message.to_string();
    write!(output, "Content-Length: {}\r\n\r\n{body}", body.len())?;
    output.flush()
}
