//! The log: from `tracing` events to lines on stderr.
//!
//! `line.rs` decides what a line looks like and is pure; this file collects the fields of an event and writes. The fields
//! `object`, `extra` and `trace` are those of `ports::Logger`; any other field is shown as `key=value`, or as a key in JSON.

use std::{
    fmt,
    io::{self, Write as _},
};

use serde_json::Value;
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
};
use tracing_subscriber::{
    Layer,
    filter::Targets,
    layer::{Context, SubscriberExt as _},
    util::{SubscriberInitExt as _, TryInitError},
};

use crate::cli::options::{LogOptions, Verbosity};
use crate::ports::Clock;

mod line;
#[cfg(test)]
mod tests;

use line::Record;

/// Where finished lines go; a line is one call.
type Sink = Box<dyn Fn(&str) + Send + Sync>;

/// Turns events into lines.
struct LineLayer {
    options: LogOptions,
    clock: Clock,
    sink: Sink,
}

/// Logs to stderr from now on, for the whole process.
pub fn install(options: LogOptions, clock: Clock) -> Result<(), TryInitError> {
    subscriber(options, clock, Box::new(to_stderr)).try_init()
}

/// One write per line, so that lines of several threads and of scripts' `print` do not mix. Blocking, as the alternative
/// is to lose the lines that matter most: the last ones.
fn to_stderr(line: &str) {
    let _closed = io::stderr().lock().write_all(line.as_bytes());
}

fn subscriber(options: LogOptions, clock: Clock, sink: Sink) -> impl Subscriber + Send + Sync {
    let targets = targets(options.verbosity);
    tracing_subscriber::registry().with(targets).with(LineLayer { options, clock, sink })
}

/// Which events are seen. Targets of this program start with `kopf`; the rest are libraries.
fn targets(verbosity: Verbosity) -> Targets {
    // The client complains of every request that fails, which `cluster` tells better.
    let (own, client, libraries) = match verbosity {
        Verbosity::Quiet => (LevelFilter::WARN, LevelFilter::OFF, LevelFilter::WARN),
        Verbosity::Normal => (LevelFilter::INFO, LevelFilter::OFF, LevelFilter::WARN),
        Verbosity::Verbose => (LevelFilter::DEBUG, LevelFilter::OFF, LevelFilter::WARN),
        Verbosity::Debug => (LevelFilter::DEBUG, LevelFilter::DEBUG, LevelFilter::DEBUG),
    };
    Targets::new()
        .with_default(libraries)
        .with_target("kopf", own)
        .with_target("kube_client", client)
}

impl<S: Subscriber> Layer<S> for LineLayer {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let metadata = event.metadata();
        let mut record = Record::new(metadata.target(), *metadata.level());
        event.record(&mut Fields(&mut record));
        (self.sink)(&line::format(&record, &self.options, self.clock.now()));
    }
}

/// Sorts the fields of an event into a record.
struct Fields<'a>(&'a mut Record);

impl Fields<'_> {
    fn put(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.0.message = text,
            ("trace", Value::String(text)) => self.0.trace = Some(text),
            ("object", Value::String(text)) => self.0.object = serde_json::from_str(&text).ok(),
            ("extra", Value::String(text)) => {
                if let Ok(Value::Object(fields)) = serde_json::from_str(&text) {
                    self.0.extra.extend(fields);
                }
            }
            (name, value) => {
                self.0.fields.insert(name.to_owned(), value);
            }
        }
    }
}

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Also the message of `tracing::info!("…")`, and every `%field`: both print as they are.
        self.put(field, format!("{value:?}").into());
    }
}
