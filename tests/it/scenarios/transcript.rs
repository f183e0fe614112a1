//! Records a scenario in order: steps of the user, lines of the log, PATCH requests, Kubernetes events, and the objects at the end.
//!
//! Keys of objects are sorted, since tables of Lua have no order. Traces of errors name files and lines of a script, so only their
//! presence is recorded. The stored essence is shortened: no script influences it.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use parking_lot::Mutex;

use kopf::testing::{Environment, LogLine, capture_log};
use kopf_apiserver::LoggedRequest;
use regex::Regex;
use serde_json::Value;
use tokio::time::Instant;
use tracing::{Level, dispatcher::DefaultGuard};

use crate::vectors::without_uid;

/// The annotation of the stored essence.
const ESSENCE: &str = "kopf.zalando.org/last-handled-configuration";

/// The lines so far. Clones are the same transcript.
#[derive(Clone)]
pub(super) struct Transcript(Arc<Inner>);

struct Inner {
    env: Environment,
    lines: Mutex<Lines>,
}

#[derive(Default)]
struct Lines {
    text: String,
    /// Kubernetes events at the current time. They are posted concurrently, so only their own order is certain: they are recorded
    /// when the time advances.
    posted: Vec<(f64, String)>,
    has_posted: bool,
    /// The number of the server's requests that are recorded.
    requests: usize,
}

impl Transcript {
    pub(super) fn new(env: Environment) -> Self {
        Transcript(Arc::new(Inner { env, lines: Mutex::default() }))
    }

    /// Records something at the current time.
    pub(super) fn note(&self, who: &str, what: &str) {
        let now = Instant::now();
        let mut lines = self.0.lines.lock();
        self.catch_up(&mut lines);
        lines.add(self.seconds(now), who, what);
    }

    /// Returns the transcript, with the final objects.
    pub(super) fn finish(&self, objects: &[Value]) -> String {
        let mut lines = self.0.lines.lock();
        self.catch_up(&mut lines);
        lines.flush(f64::INFINITY);
        let mut text = std::mem::take(&mut lines.text);
        text = without_code(&text);
        for object in objects {
            let mut object = arranged(object);
            // Events at the same time take versions too, earlier or later.
            if lines.has_posted {
                object["metadata"]["resourceVersion"] = "…".into();
            }
            write!(text, "\n{}", without_code(&pretty(&object))).expect("a string takes all");
        }
        text
    }

    /// Records the requests since the last line.
    fn catch_up(&self, lines: &mut Lines) {
        let requests = self.0.env.server.requests();
        for request in requests.iter().skip(lines.requests) {
            if request.method == "PATCH" {
                lines.add(self.seconds(request.at), "patch", &told(request));
            }
            if request.method == "POST" && request.path.ends_with("/events") {
                let at = self.seconds(request.at);
                lines.flush(at);
                lines.has_posted = true;
                lines.posted.push((at, told_event(request)));
            }
        }
        lines.requests = requests.len();
    }

    fn seconds(&self, at: Instant) -> f64 {
        at.duration_since(self.0.env.start).as_secs_f64()
    }
}

impl Lines {
    fn add(&mut self, at: f64, who: &str, what: &str) {
        self.flush(at);
        self.write(at, who, what);
    }

    /// Records the events before this time.
    fn flush(&mut self, now: f64) {
        if self.posted.first().is_some_and(|(at, _)| *at < now) {
            for (at, told) in std::mem::take(&mut self.posted) {
                self.write(at, "posted", &told);
            }
        }
    }

    fn write(&mut self, at: f64, who: &str, what: &str) {
        writeln!(self.text, "{at:8.3} {who:8} {what}").expect("a string takes all");
    }
}

/// Removes the fingerprints of handlers that have failed: they differ between the languages.
fn without_code(text: &str) -> String {
    let code = Regex::new(r#"(code\\*":\\*")[0-9a-f]{16}"#).expect("a pattern");
    code.replace_all(text, "$1…").into_owned()
}

fn told(request: &LoggedRequest) -> String {
    let payload = arranged(&without_uid(request.json()));
    let object = request.path.rsplit("kopfexamples/").next().unwrap_or_default();
    let kind = request.content_type.trim_start_matches("application/").trim_end_matches("+json");
    let status =
        if request.status == 200 { String::new() } else { format!(" → {}", request.status) };
    format!("{object} {kind}{status} {payload}")
}

/// Returns the varying part of an event; the rest follows from the settings.
fn told_event(request: &LoggedRequest) -> String {
    let event = request.json();
    let part = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let status =
        if request.status == 201 { String::new() } else { format!(" → {}", request.status) };
    let namespace = request.path.rsplit('/').nth(1).unwrap_or_default();
    let about = arranged(&event["involvedObject"]);
    let message = part("/message");
    // Only the ends of a long message, and its number of bytes.
    let short = |it: &str| it.chars().take(5).collect::<String>();
    let message = match message.len() {
        0..200 => message.to_owned(),
        bytes => format!("{}… ({bytes} bytes)", short(message)),
    };
    format!(
        "{}{status} in {namespace} by {}: {} {} {message:?} {about}",
        part("/metadata/generateName"),
        part("/reportingComponent"),
        part("/type"),
        part("/reason"),
    )
}

/// Returns the same data with sorted keys and a shortened essence.
fn arranged(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<_, _> = map.iter().collect();
            let arranged = sorted.into_iter().map(|(key, value)| {
                let value = if key == ESSENCE { "…".into() } else { arranged(value) };
                (key.clone(), value)
            });
            Value::Object(arranged.collect())
        }
        Value::Array(items) => items.iter().map(arranged).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Formats an object with one line for each top-level field.
fn pretty(object: &Value) -> String {
    let fields = object.as_object().into_iter().flatten();
    let lines: Vec<_> = fields.map(|(key, value)| format!("{key}: {value}\n")).collect();
    lines.concat()
}

/// Records the log of this thread and of the threads of its scripts, while the guard lives.
pub(super) fn capture(transcript: &Transcript, verbose: bool) -> DefaultGuard {
    let transcript = transcript.clone();
    let level = if verbose { Level::DEBUG } else { Level::INFO };
    capture_log("kopf", level, move |line| {
        transcript.note(&line.level.as_str().to_lowercase(), &told_line(&line));
    })
}

fn told_line(line: &LogLine) -> String {
    let object = line.field("object.name");
    let mut told = object.map_or_else(String::new, |name| format!("[{name}] "));
    told.push_str(&line.message);
    for (name, value) in &line.fields {
        match *name {
            // Always the same, or part of the message.
            "activity" | "object.api_version" | "object.kind" | "object.uid"
            | "object.namespace" | "object.name" | "trace" => {}
            // The same line in this program's own words; the message is Kopf's.
            name if name.starts_with("call.") => {}
            "extra" => told.extend([" ", value]),
            name => told.extend([" ", name, "=", value]),
        }
    }
    if line.field("trace").is_some() {
        told.push_str(" (trace)");
    }
    told
}
