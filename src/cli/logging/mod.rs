//! The log: from `tracing` events to lines on stderr.
//!
//! `line.rs` formats a line and is pure, `output.rs` writes it; this file collects the fields of an event. The fields `object.…`,
//! `activity`, `extra` and `trace` belong to `call::Logger`; any other field is shown as `key=value`, or as a key in JSON.

use std::{
    fmt,
    io::{self, IsTerminal as _, Stderr},
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

use crate::cli::{
    environment::Lookup,
    options::{LogOptions, Verbosity},
};
use crate::logic::object::ObjectRef;
use crate::ports::Clock;

mod color;
mod line;
mod output;
#[cfg(test)]
mod tests;

use line::Record;
use output::Output;

/// The destination of formatted lines; one call per line.
pub type Sink = Box<dyn Fn(&str) + Send + Sync>;

/// Formats events as lines.
struct LineLayer {
    options: LogOptions,
    clock: Clock,
    sink: Sink,
}

/// The log of the process. Dropping it waits up to a second for lines that stderr has not accepted yet.
#[must_use = "the end of the log is written when it is dropped"]
pub struct Log(Output<Stderr>);

impl Drop for Log {
    fn drop(&mut self) {
        self.0.flush();
    }
}

/// Starts logging to stderr, for the whole process. Environment variables decide about colors.
pub fn install(
    mut options: LogOptions,
    clock: Clock,
    lookup: Lookup<'_>,
) -> Result<Log, TryInitError> {
    let stderr = io::stderr();
    options.color = color::decide(options.color, lookup, stderr.is_terminal());
    let output = Output::new(stderr);
    let log = Log(output.clone());
    subscriber(options, clock, Box::new(move |line| output.line(line))).try_init()?;
    Ok(log)
}

/// Returns a subscriber that formats events as lines for this sink.
pub fn subscriber(options: LogOptions, clock: Clock, sink: Sink) -> impl Subscriber + Send + Sync {
    let targets = targets(options.verbosity);
    tracing_subscriber::registry().with(targets).with(LineLayer { options, clock, sink })
}

/// Returns the events that are logged. Targets of this program start with `kopf`; all others are libraries.
fn targets(verbosity: Verbosity) -> Targets {
    // The client logs every request that fails, which `cluster` reports better.
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

/// Collects the fields of an event in a record.
struct Fields<'a>(&'a mut Record);

impl Fields<'_> {
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

impl Visit for Fields<'_> {
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
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // A message, or a `%field`: both format as plain text.
        self.put(field, format!("{value:?}").into());
    }
}
