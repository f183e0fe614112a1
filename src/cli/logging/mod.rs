//! The log: from `tracing` events to lines on stderr.
//!
//! `line.rs` formats a line and is pure, `output.rs` writes it; this file collects the fields of an event. The fields `object.…`,
//! `activity`, `extra`, `trace` and `call.…` belong to `call::Logger`; any other field is shown as `key=value`, or as a key in
//! JSON. `folding.rs` counts lines that repeat, `levels.rs` decides which are written.

use std::{
    fmt,
    io::{self, IsTerminal as _, Stderr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use parking_lot::Mutex;
use serde_json::Value;
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
    util::{SubscriberInitExt as _, TryInitError},
};

use crate::cli::{
    args::{ColorWhen, LogFormat},
    environment::Lookup,
    options::LogOptions,
};
use crate::logic::object::ObjectRef;
use crate::ports::Clock;
use crate::telemetry::{LogControl, LogLevels};

mod color;
mod folding;
mod levels;
mod line;
mod output;
#[cfg(test)]
mod tests;

use folding::Folding;
use levels::Levels;
use line::LogRecord;
use output::LogOutput;

/// The destination of formatted lines; one call per line.
pub type Sink = Box<dyn Fn(&str) + Send + Sync>;

/// Formats events as lines.
struct LineLayer(Arc<LogWriter>);

/// Writes the lines, except those that repeat.
struct LogWriter {
    options: LogOptions,
    clock: Clock,
    sink: Sink,
    levels: Levels,
    folding: Mutex<Folding>,
    /// Whether a thread that ends the windows of repeated lines is running, or must not be started.
    has_thread: AtomicBool,
}

/// The log of the process. Dropping it waits up to a second for lines that stderr has not accepted yet.
#[must_use = "the end of the log is written when it is dropped"]
pub struct Log(LogOutput<Stderr>, Arc<LogWriter>);

impl Log {
    /// Returns the object that changes the levels.
    pub fn control(&self) -> Arc<dyn LogControl> {
        Arc::<LogWriter>::clone(&self.1)
    }
}

impl LogControl for LogWriter {
    fn levels(&self) -> LogLevels {
        self.levels.levels()
    }

    fn set_level(&self, script: Option<&str>, level: &str) -> Result<(), String> {
        self.levels.set(script, level, &self.options)
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let ended = self.1.folding.lock().end_all();
        self.1.write_all(&ended);
        self.0.flush();
    }
}

/// Returns whether messages on stderr have colors: environment variables and the terminal decide.
pub fn colors_stderr(lookup: Lookup<'_>) -> bool {
    let is_terminal = io::stderr().is_terminal();
    color::decide(ColorWhen::Auto, lookup, is_terminal) == ColorWhen::Always
}

/// Starts logging to stderr, for the whole process. Environment variables decide about colors.
pub fn install(
    mut options: LogOptions,
    clock: Clock,
    lookup: Lookup<'_>,
) -> Result<Log, TryInitError> {
    let stderr = io::stderr();
    options.color = color::decide(options.color, lookup, stderr.is_terminal());
    let output = LogOutput::new(stderr);
    let lines = output.clone();
    let writer = LogWriter::new(options, clock, Box::new(move |line| lines.line(line)));
    writer.has_thread.store(false, Ordering::Relaxed);
    let writer = Arc::new(writer);
    registry(Arc::clone(&writer)).try_init()?;
    Ok(Log(output, writer))
}

/// Returns a subscriber that formats events as lines for this sink. Numbers of repeated lines are written with the next line.
pub fn subscriber(options: LogOptions, clock: Clock, sink: Sink) -> impl Subscriber + Send + Sync {
    registry(Arc::new(LogWriter::new(options, clock, sink)))
}

fn registry(writer: Arc<LogWriter>) -> impl Subscriber + Send + Sync {
    let filter = writer.levels.filter(&writer.options);
    tracing_subscriber::registry().with(filter).with(LineLayer(writer))
}

impl LogWriter {
    fn new(options: LogOptions, clock: Clock, sink: Sink) -> Self {
        let (folding, has_thread) = (Mutex::default(), AtomicBool::new(true));
        let levels = Levels::new(&options);
        LogWriter { options, clock, sink, levels, folding, has_thread }
    }

    fn write(self: &Arc<Self>, record: LogRecord) {
        let is_kopf = self.options.format == LogFormat::Kopf;
        let record = if is_kopf { record } else { record.in_own_words() };
        if !self.levels.admit(&record) {
            return;
        }
        let now = self.clock.now();
        let mut folding = self.folding.lock();
        let ended = folding.end(now);
        let is_written = is_kopf || folding.admit(&record, now);
        let has_windows = !folding.is_empty();
        drop(folding);
        self.write_all(&ended);
        if is_written {
            (self.sink)(&line::format(&record, &self.options, now));
        }
        if has_windows && !self.has_thread.swap(true, Ordering::Relaxed) {
            self.start_thread();
        }
    }

    fn write_all(&self, records: &[LogRecord]) {
        let now = self.clock.now();
        for record in records {
            (self.sink)(&line::format(record, &self.options, now));
        }
    }

    /// Starts a thread that writes the numbers of repeated lines when nothing else is written. It ends when nothing repeats.
    fn start_thread(self: &Arc<Self>) {
        let writer = Arc::clone(self);
        let work = move || {
            loop {
                // Waking up earlier does no harm.
                thread::park_timeout(folding::WINDOW);
                let mut folding = writer.folding.lock();
                let ended = folding.end(writer.clock.now());
                let is_empty = folding.is_empty();
                if is_empty {
                    writer.has_thread.store(false, Ordering::Relaxed);
                }
                drop(folding);
                writer.write_all(&ended);
                if is_empty {
                    return;
                }
            }
        };
        // Without the thread, the numbers are written with the next line.
        drop(thread::Builder::new().name("log-repeats".into()).spawn(work));
    }
}

impl<S: Subscriber> Layer<S> for LineLayer {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let metadata = event.metadata();
        let mut record = LogRecord::new(metadata.target(), *metadata.level());
        event.record(&mut FieldVisitor(&mut record));
        self.0.write(record);
    }
}

/// Returns the level of a number: 10 is debug, 40 is error.
fn level_of(number: u64) -> Level {
    match number {
        0..=10 => Level::DEBUG,
        11..=20 => Level::INFO,
        21..=30 => Level::WARN,
        31.. => Level::ERROR,
    }
}

/// Collects the fields of an event in a record.
struct FieldVisitor<'a>(&'a mut LogRecord);

impl FieldVisitor<'_> {
    fn put(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            // Also the message of `tracing::info!("…")`.
            ("message", Value::String(text)) => self.0.message = text,
            (name, value) => {
                self.0.fields.insert(name.to_owned(), value);
            }
        }
    }

    fn put_extra(&mut self, text: &str) {
        if let Ok(Value::Object(fields)) = serde_json::from_str(text) {
            self.0.extra.extend(fields);
        }
    }

    fn object(&mut self) -> &mut ObjectRef {
        self.0.object.get_or_insert_default()
    }
}

impl Visit for FieldVisitor<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.0.message),
            "object.api_version" => value.clone_into(&mut self.object().api_version),
            "object.kind" => value.clone_into(&mut self.object().kind),
            "object.name" => value.clone_into(&mut self.object().name),
            "object.uid" => value.clone_into(&mut self.object().uid),
            "object.namespace" => self.object().namespace = Some(value.to_owned()),
            "activity" => self.0.target.extend([".", value]),
            "extra" => self.put_extra(value),
            "trace" => self.0.trace = Some(value.to_owned()),
            "call.text" => self.0.own.text = Some(value.to_owned()),
            "call.gist" => self.0.gist = Some(value.to_owned()),
            "call.handler" => self.0.call.push(("handler", value.into())),
            "call.script" => self.0.call.push(("script", value.into())),
            _ => self.put(field, value.into()),
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "call.level" => self.0.own.level = Some(level_of(value)),
            "call.attempt" => self.0.call.push(("attempt", value.into())),
            _ => self.put(field, value.into()),
        }
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // A message, or a `%field`: both format as plain text.
        self.put(field, format!("{value:?}").into());
    }
}
