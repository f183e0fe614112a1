//! What one log line looks like: plain, full, json.

use std::{fmt::Write as _, io};

use jiff::{Timestamp, tz::TimeZone};
use serde::Serialize as _;
use serde_json::{Map, Value};
use tracing::Level;

use crate::cli::args::LogFormat;
use crate::cli::options::LogOptions;

/// The width of the logger's name in the full format; longer names are cut.
const NAME_WIDTH: usize = 20;

/// One event of the log.
#[derive(Debug)]
pub(super) struct Record {
    /// Who logs; Rust paths are shown with dots.
    pub(super) target: String,
    /// How bad it is.
    pub(super) level: Level,
    /// The text.
    pub(super) message: String,
    /// The object it is about, as `ports::Logger` describes it.
    pub(super) object: Option<Value>,
    /// Structured fields of scripts: keys in JSON, not shown otherwise.
    pub(super) extra: Map<String, Value>,
    /// Structured fields of our own: keys in JSON, `key=value` otherwise.
    pub(super) fields: Map<String, Value>,
    /// Several lines of a script's stack.
    pub(super) trace: Option<String>,
}

impl Record {
    /// A record without content.
    pub(super) fn new(target: &str, level: Level) -> Self {
        Record {
            target: target.replace("::", "."),
            level,
            message: String::new(),
            object: None,
            extra: Map::new(),
            fields: Map::new(),
            trace: None,
        }
    }
}

/// The line, with its end.
pub(super) fn format(record: &Record, options: &LogOptions, now: Timestamp) -> String {
    let mut line = match options.format {
        LogFormat::Plain => text(record, options),
        LogFormat::Full => full(record, options, now),
        LogFormat::Json => json(record, options, now),
    };
    line.push('\n');
    line
}

fn full(record: &Record, options: &LogOptions, now: Timestamp) -> String {
    let local = now.to_zoned(TimeZone::system());
    let time = local.strftime("%Y-%m-%d %H:%M:%S,%3f");
    let name: String = record.target.chars().take(NAME_WIDTH).collect();
    let level = level_name(record.level);
    format!("[{time}] {name:NAME_WIDTH$} [{level:8}] {}", text(record, options))
}

/// The message as people read it, with the prefix, our fields, and the trace on lines of its own.
fn text(record: &Record, options: &LogOptions) -> String {
    let mut text = prefixed(record, options);
    for (key, value) in &record.fields {
        // Texts without the quotes of JSON.
        let _always_fits = match value.as_str() {
            Some(value) => write!(text, " {key}={value}"),
            None => write!(text, " {key}={value}"),
        };
    }
    if let Some(trace) = &record.trace {
        text.push('\n');
        text.push_str(trace.trim_end());
    }
    text
}

fn prefixed(record: &Record, options: &LogOptions) -> String {
    let part = |key: &str| record.object.as_ref().and_then(|it| it.get(key)?.as_str());
    match (part("namespace"), part("name")) {
        (Some(namespace), Some(name)) if options.prefix => {
            format!("[{namespace}/{name}] {}", record.message)
        }
        (None, Some(name)) if options.prefix => format!("[{name}] {}", record.message),
        _ => record.message.clone(),
    }
}

/// The order of keys is part of the format. Fields of scripts cannot replace the keys of the line itself.
fn json(record: &Record, options: &LogOptions, now: Timestamp) -> String {
    let mut own: Vec<(&str, Value)> = Vec::new();
    if let Some(trace) = &record.trace {
        own.push(("exc_info", trace.trim_end().into()));
    }
    let utc = now.to_zoned(TimeZone::UTC);
    own.push(("timestamp", utc.strftime("%Y-%m-%dT%H:%M:%S.%6f+00:00").to_string().into()));
    if let Some(object) = &record.object {
        own.push((&options.refkey, object.clone()));
    }
    own.push(("severity", severity(record.level).into()));

    let mut line = Map::new();
    line.insert("message".into(), prefixed(record, options).into());
    for (key, value) in record.extra.iter().chain(&record.fields) {
        if key != "message" && own.iter().all(|(taken, _)| taken != key) {
            line.insert(key.clone(), value.clone());
        }
    }
    line.extend(own.into_iter().map(|(key, value)| (key.to_owned(), value)));
    spaced(&Value::Object(line))
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::ERROR => "ERROR",
        Level::WARN => "WARNING",
        Level::INFO => "INFO",
        Level::DEBUG | Level::TRACE => "DEBUG",
    }
}

fn severity(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG | Level::TRACE => "debug",
    }
}

/// JSON as Python writes it, with a space after each comma and colon: people search their logs for `"severity": "error"`.
fn spaced(value: &Value) -> String {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Spaced);
    let _always_fits = value.serialize(&mut serializer);
    String::from_utf8(bytes).unwrap_or_default()
}

struct Spaced;

impl serde_json::ser::Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}
