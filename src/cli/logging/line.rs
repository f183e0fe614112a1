//! Formats log lines: plain, full, kopf, json.

use std::{borrow::Cow, cell::RefCell, fmt::Write as _, io};

use anstyle::Style;
use jiff::{Timestamp, tz::TimeZone};
use serde::Serialize;
use serde_json::{Map, Value};
use tracing::Level;

use super::color;
use crate::cli::args::{ColorWhen, LogFormat};
use crate::cli::options::LogOptions;
use crate::logic::{object::ObjectRef, text::printable::printable};

/// The width of the column of loggers; longer names move the rest of the line.
const NAME_WIDTH: usize = 10;

/// The capacity of a new line: most lines are shorter.
const LINE_BYTES: usize = 256;

/// The width of that column in Kopf's format; longer names are truncated.
const KOPF_NAME_WIDTH: usize = 20;

/// Kopf's names of loggers, which users filter logs by. Loggers that are not listed have the same names in Kopf.
const KOPF_LOGGERS: &[(&str, &str)] = &[
    ("kopf.access", "aiohttp.access"),
    ("kopf.admission", "kopf._core.engines.admission"),
    ("kopf.auth", "kopf._core.engines.activities"),
    ("kopf.client", "kopf._cogs.clients.api"),
    ("kopf.daemons", "kopf._core.engines.daemons"),
    ("kopf.discovery", "kopf._core.reactor.observation"),
    ("kopf.events", "kopf._core.engines.posting"),
    ("kopf.indexes", "kopf._core.engines.indexing"),
    ("kopf.peering", "kopf._core.engines.peering"),
    ("kopf.probes", "kopf._core.engines.probing"),
    ("kopf.queue", "kopf._core.reactor.queueing"),
    ("kopf.reactor", "kopf._core.reactor.running"),
    ("kopf.watch", "kopf._cogs.clients.watching"),
];

/// One event for the log.
#[derive(Debug)]
pub(super) struct LogRecord {
    /// The target of the event: a logger such as `kopf.auth`, or the path of a module.
    pub(super) target: String,
    /// The level of the event.
    pub(super) level: Level,
    /// The message, without fields.
    pub(super) message: String,
    /// The object of the message.
    pub(super) object: Option<ObjectRef>,
    /// Structured fields of scripts: keys in JSON, not shown otherwise.
    pub(super) extra: Map<String, Value>,
    /// Structured fields of the operator: keys in JSON, `key=value` otherwise.
    pub(super) fields: Map<String, Value>,
    /// The stack trace of a script, several lines.
    pub(super) trace: Option<String>,
    /// Equal in lines with the same message, apart from numbers and objects.
    pub(super) gist: Option<String>,
    /// The message and the level of this implementation, where they differ from Kopf's.
    pub(super) own: Own,
    /// The attempt of a handler that the line is about: keys in JSON, not shown otherwise.
    pub(super) call: Vec<(&'static str, Value)>,
}

/// The message and the level of this implementation, where they differ from Kopf's.
#[derive(Debug, Default)]
pub(super) struct Own {
    pub(super) text: Option<String>,
    pub(super) level: Option<Level>,
}

impl LogRecord {
    /// Creates a record without content.
    pub(super) fn new(target: &str, level: Level) -> Self {
        LogRecord {
            target: target.to_owned(),
            level,
            message: String::new(),
            object: None,
            extra: Map::new(),
            fields: Map::new(),
            trace: None,
            gist: None,
            own: Own::default(),
            call: Vec::new(),
        }
    }

    /// Replaces Kopf's message and level with those of this implementation.
    pub(super) fn in_own_words(mut self) -> Self {
        if let Some(text) = self.own.text.take() {
            self.message = text;
        }
        self.level = self.own.level.unwrap_or(self.level);
        self
    }

    /// Returns whether the level differs from Kopf's: until now, only Kopf's level has decided whether the line is written.
    pub(super) fn is_own(&self) -> bool {
        self.own.level.is_some()
    }

    /// Returns the script that the line is about.
    pub(super) fn script(&self) -> Option<&str> {
        let found = self.call.iter().find(|(key, _)| *key == "script");
        found.and_then(|(_, script)| script.as_str())
    }

    /// Returns the name of the logger, without the prefix `kopf.`.
    fn logger(&self) -> String {
        let name = self.target.replace("::", ".");
        name.strip_prefix("kopf.").map_or_else(|| name.clone(), str::to_owned)
    }

    /// Returns Kopf's name of the logger, truncated to the width of its column.
    fn kopf_logger(&self) -> String {
        let known = KOPF_LOGGERS.iter().find(|(ours, _)| *ours == self.target);
        let name = known.map_or_else(|| self.target.replace("::", "."), |it| it.1.to_owned());
        name.chars().take(KOPF_NAME_WIDTH).collect()
    }
}

/// Formats the line, including the line feed.
pub(super) fn format(record: &LogRecord, options: &LogOptions, now: Timestamp) -> String {
    let mut line = match options.format {
        LogFormat::Plain => plain(record, options),
        LogFormat::Full => full(record, options, now, &record.logger(), NAME_WIDTH),
        LogFormat::Kopf => full(record, options, now, &record.kopf_logger(), KOPF_NAME_WIDTH),
        LogFormat::Json => json(record, options, now),
    };
    line.push('\n');
    line
}

fn plain(record: &LogRecord, options: &LogOptions) -> String {
    let mut line = String::new();
    text(&mut line, record, options, style(options, color::of_message(record.level)));
    line
}

fn full(
    record: &LogRecord,
    options: &LogOptions,
    now: Timestamp,
    logger: &str,
    width: usize,
) -> String {
    let level = level_name(record.level);
    let (aside, loud) =
        (style(options, color::ASIDE), style(options, color::of_level(record.level)));
    let mut line = String::with_capacity(LINE_BYTES);
    let _always_fits = write!(line, "{aside}[");
    write_local_time(&mut line, now);
    let _always_fits = write!(line, "] {logger:width$}{aside:#} [{loud}{level:8}{loud:#}] ");
    text(&mut line, record, options, Style::new());
    line
}

/// Writes the time of day with milliseconds, in the time zone of the system.
fn write_local_time(line: &mut String, now: Timestamp) {
    thread_local! {
        /// The second of the last line on this thread, and its text, which takes a quarter of the time of a line.
        static SECOND: RefCell<(i64, String)> = const { RefCell::new((i64::MIN, String::new())) };
    }
    let milliseconds = now.as_millisecond();
    let second = milliseconds.div_euclid(1000);
    SECOND.with_borrow_mut(|(last, text)| {
        if *last != second {
            let local = now.to_zoned(TimeZone::system());
            (*last, *text) = (second, local.strftime("%Y-%m-%d %H:%M:%S").to_string());
        }
        let _always_fits = write!(line, "{text},{:03}", milliseconds.rem_euclid(1000));
    });
}

/// Returns the style if colors are enabled.
fn style(options: &LogOptions, style: Style) -> Style {
    match options.color {
        ColorWhen::Always => style,
        ColorWhen::Auto | ColorWhen::Never => Style::new(),
    }
}

/// Adds the message in its form for people: with the prefix, the fields of the operator, and the trace on separate lines.
fn text(line: &mut String, record: &LogRecord, options: &LogOptions, style: Style) {
    let mut message = String::with_capacity(LINE_BYTES);
    prefixed(&mut message, record, options);
    for (key, value) in &record.fields {
        // Strings without JSON quotes.
        let _always_fits = match value.as_str() {
            Some(value) => write!(message, " {key}={value}"),
            None => write!(message, " {key}={value}"),
        };
    }
    let _always_fits = write!(line, "{style}{}{style:#}", contained(&message));
    if let Some(trace) = &record.trace {
        let aside = self::style(options, color::ASIDE);
        let _always_fits = write!(line, "\n    {aside}{}{aside:#}", contained(trace.trim_end()));
    }
}

/// Escapes a string so that it cannot imitate other log lines, whatever scripts and servers put into it: further lines are
/// indented, and control characters, which could also move the cursor of a terminal, are escaped.
fn contained(text: &str) -> Cow<'_, str> {
    // Control characters are ASCII, or begin with this byte in UTF-8.
    let may_be_control = |byte: u8| byte.is_ascii_control() || byte == 0xC2;
    if !text.bytes().any(may_be_control) {
        return Cow::Borrowed(text);
    }
    let mut contained = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => contained.push_str("\n    "),
            '\t' => contained.push('\t'),
            it if it.is_control() => contained.extend(it.escape_default()),
            it => contained.push(it),
        }
    }
    Cow::Owned(contained)
}

fn prefixed(line: &mut String, record: &LogRecord, options: &LogOptions) {
    if let Some(object) = record.object.as_ref().filter(|_| options.prefix) {
        let _always_fits = match &object.namespace {
            Some(namespace) => write!(line, "[{namespace}/{}] ", object.name),
            None => write!(line, "[{}] ", object.name),
        };
    }
    line.push_str(&record.message);
}

/// Formats a line as JSON. The order of keys is part of the format. Fields of scripts cannot replace the keys of the line itself.
fn json(record: &LogRecord, options: &LogOptions, now: Timestamp) -> String {
    let mut message = String::new();
    prefixed(&mut message, record, options);
    let is_taken = |key: &str| {
        matches!(key, "message" | "timestamp" | "severity" | "logger")
            || record.call.iter().any(|(name, _)| *name == key)
            || (key == "exc_info" && record.trace.is_some())
            || (key == options.refkey && record.object.is_some())
    };
    let mut line = JsonLine::default();
    line.put("message", &message);
    for (key, value) in record.extra.iter().chain(&record.fields).filter(|(key, _)| !is_taken(key))
    {
        line.put(key, value);
    }
    if let Some(trace) = &record.trace {
        line.put("exc_info", trace.trim_end());
    }
    let utc = now.to_zoned(TimeZone::UTC);
    line.put("timestamp", &utc.strftime("%Y-%m-%dT%H:%M:%S.%6f+00:00").to_string());
    if let Some(object) = &record.object {
        line.put(&options.refkey, object);
    }
    line.put("severity", severity(record.level));
    line.put("logger", &record.logger());
    for (key, value) in &record.call {
        line.put(key, value);
    }
    line.end()
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

/// A JSON object in Python's format, with a space after each comma and colon: people search their logs for `"severity": "error"`.
#[derive(Default)]
struct JsonLine(Vec<u8>);

impl JsonLine {
    fn put(&mut self, key: &str, value: &(impl Serialize + ?Sized)) {
        self.0.extend_from_slice(if self.0.is_empty() { b"{" } else { b", " });
        self.write(key);
        self.0.extend_from_slice(b": ");
        self.write(value);
    }

    fn write(&mut self, value: &(impl Serialize + ?Sized)) {
        let mut serializer = serde_json::Serializer::with_formatter(&mut self.0, Spaced);
        let _always_fits = value.serialize(&mut serializer);
    }

    fn end(mut self) -> String {
        self.0.push(b'}');
        printable(String::from_utf8(self.0).unwrap_or_default())
    }
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
