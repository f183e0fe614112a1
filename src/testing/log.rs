//! The log lines of a test, those of its scripts' threads included.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;
use tokio::{runtime::Handle, time::Instant};
use tracing::{
    Dispatch, Event, Level, Metadata, Subscriber,
    dispatcher::{self, DefaultGuard},
    field::{Field, Visit},
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
    registry,
};

/// A line of the log.
#[derive(Clone, Debug)]
pub struct LogLine {
    /// When it was logged.
    pub at: Instant,
    /// The level of the line.
    pub level: Level,
    /// The message, without fields.
    pub message: String,
    /// The other fields, in their order.
    pub fields: Vec<(&'static str, String)>,
}

impl LogLine {
    /// Returns a field other than the message.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(it, _)| *it == name).map(|(_, value)| value.as_str())
    }

    /// Returns the level as Python names it.
    pub fn python_level(&self) -> &'static str {
        if self.level == Level::WARN { "WARNING" } else { self.level.as_str() }
    }
}

impl Visit for LogLine {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            name => self.fields.push((name, value.to_owned())),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

/// Passes log lines to a function until the guard is dropped: lines of this thread and of the script threads that it starts, up to this
/// level, of targets that start with `target`.
pub fn capture_log(
    target: &'static str,
    level: Level,
    write: impl Fn(LogLine) + Send + Sync + 'static,
) -> DefaultGuard {
    /// With only one subscriber, `tracing` caches whether the subscriber of the first thread that reaches a line enables it. In another
    /// test's thread there may be no subscriber. So there are always two.
    static SECOND: OnceLock<Dispatch> = OnceLock::new();
    SECOND.get_or_init(|| Dispatch::new(registry()));
    let capture = Capture { target, level, runtime: Handle::current(), write: Box::new(write) };
    dispatcher::set_default(&Dispatch::new(registry().with(capture)))
}

struct Capture {
    target: &'static str,
    level: Level,
    /// Scripts log from their own threads, which take the virtual time from here.
    runtime: Handle,
    write: Box<dyn Fn(LogLine) + Send + Sync>,
}

impl<S: Subscriber> Layer<S> for Capture {
    /// Enables all levels, as on the command line: some lines are only formatted if debug lines are enabled.
    fn enabled(&self, metadata: &Metadata<'_>, _context: Context<'_, S>) -> bool {
        *metadata.level() <= self.level
    }

    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let metadata = event.metadata();
        if metadata.target().starts_with(self.target) {
            let _entered = self.runtime.enter();
            let (at, level) = (Instant::now(), *metadata.level());
            let mut line = LogLine { at, level, message: String::new(), fields: Vec::new() };
            event.record(&mut line);
            (self.write)(line);
        }
    }
}

/// A collector of log lines, until it is dropped.
pub struct LogCapture {
    lines: Arc<Mutex<Vec<LogLine>>>,
    #[expect(dead_code, reason = "lines are captured while it lives")]
    guard: DefaultGuard,
}

impl LogCapture {
    /// Collects the lines of targets that start with this, at debug level and above.
    pub fn of(target: &'static str) -> Self {
        let lines = Arc::<Mutex<Vec<_>>>::default();
        let seen = Arc::clone(&lines);
        let guard = capture_log(target, Level::DEBUG, move |line| seen.lock().push(line));
        LogCapture { lines, guard }
    }

    /// Returns the lines so far.
    pub fn lines(&self) -> Vec<LogLine> {
        self.lines.lock().clone()
    }

    /// Returns `LEVEL message` of each line so far.
    pub fn text(&self) -> String {
        let lines = self.lines();
        let lines: Vec<_> = lines.iter().map(|it| format!("{} {}", it.level, it.message)).collect();
        lines.join("\n")
    }

    /// Returns the number of messages that contain this string.
    pub fn count(&self, text: &str) -> usize {
        self.lines.lock().iter().filter(|it| it.message.contains(text)).count()
    }

    /// Returns whether a message contains this string.
    pub fn has(&self, text: &str) -> bool {
        self.count(text) > 0
    }
}
