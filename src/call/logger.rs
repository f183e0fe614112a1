//! Log lines about objects and activities.
//!
//! Lines go to `tracing` with the fields `message`, `object.…` (the parts of an [`ObjectRef`] one by one, so a line costs no
//! encoding), `activity` (its name), `extra` (structured fields as a JSON object), `trace` (several lines) and `call.…` (the attempt, and
//! the line in this program's own words: `message` has Kopf's); `cli/logging` formats them.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{EventQueue, LiveObject};
use crate::logic::{
    handlers::{
        failing::FailedAttempt,
        handler::Handler,
        outcome::{LogLevel, LogLine},
    },
    object::ObjectRef,
};

/// The tracing target of lines about objects.
pub const TARGET_OBJECTS: &str = "kopf.objects";
/// The log target of changes that no handler handles.
pub const TARGET_UNHANDLED: &str = "kopf.changes";
/// The tracing target of lines about activities.
pub const TARGET_ACTIVITIES: &str = "kopf.activities";

/// The kind of a logger: which of its lines are also posted as Kubernetes events, and which are written at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoggerKind {
    /// Change handlers, daemons, timers: posted if posting is enabled.
    Full,
    /// Event handlers and the operator's own lines: never posted.
    Local,
    /// Index handlers: warnings and errors only, unless verbose.
    Terse,
    /// Activities: not about an object.
    Activity,
}

/// A writer of lines about one object or one activity. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Logger {
    kind: LoggerKind,
    about: LogSubject,
    /// Where its lines are also posted, if at all.
    posts: Option<EventQueue>,
    /// The call that its lines are about.
    caller: Option<Arc<Caller>>,
}

/// A call of a handler.
#[derive(Clone, Debug)]
struct Caller {
    handler: Arc<Handler>,
    /// The number of the attempt, from 1.
    attempt: u64,
}

/// The fields of a line in this program's own words; `message` has Kopf's.
#[derive(Clone, Copy, Default)]
struct Own<'a> {
    text: Option<&'a str>,
    level: Option<u32>,
    /// Equal in lines about the same problem: from a certain number on, they are only counted.
    gist: Option<&'a str>,
    handler: Option<&'a Handler>,
    attempt: Option<u64>,
}

#[derive(Clone, Debug)]
enum LogSubject {
    Object(Arc<ObjectRef>),
    /// Held by many daemons and timers that rarely write a line: the identity is read for each line.
    Live(LiveObject),
    /// The name of the activity, if known.
    Activity(Option<&'static str>),
}

impl Logger {
    /// Returns a logger for an object.
    pub fn of_object(kind: LoggerKind, object: Arc<ObjectRef>) -> Self {
        Logger { kind, about: LogSubject::Object(object), posts: None, caller: None }
    }

    /// Returns a logger for the object of daemons and timers.
    pub fn of_live(kind: LoggerKind, object: LiveObject) -> Self {
        Logger { kind, about: LogSubject::Live(object), posts: None, caller: None }
    }

    /// Returns a logger for activities.
    pub fn of_activity() -> Self {
        Logger {
            kind: LoggerKind::Activity,
            about: LogSubject::Activity(None),
            posts: None,
            caller: None,
        }
    }

    /// Returns a logger for script code that runs for no object and no activity, such as the top level.
    pub fn of_script() -> Self {
        Logger {
            kind: LoggerKind::Local,
            about: LogSubject::Activity(None),
            posts: None,
            caller: None,
        }
    }

    /// Returns a logger that also posts lines of [`LoggerKind::Full`] as Kubernetes events, according to the settings.
    #[must_use]
    pub fn posting(self, posts: &EventQueue) -> Self {
        Logger { posts: Some(posts.clone()), ..self }
    }

    /// Returns a logger for the lines of a call of this handler; attempts count from 1.
    #[must_use]
    pub fn of_call(self, handler: &Arc<Handler>, attempt: u64) -> Self {
        let caller = Caller { handler: Arc::clone(handler), attempt };
        Logger { caller: Some(Arc::new(caller)), ..self }
    }

    /// Returns a logger with the name of the activity, which is shown as part of the logger's name.
    #[must_use]
    pub fn named(self, activity: &'static str) -> Self {
        Logger { about: LogSubject::Activity(Some(activity)), ..self }
    }

    /// Returns a logger of another kind for the same object.
    #[must_use]
    pub fn with_kind(&self, kind: LoggerKind) -> Self {
        Logger { kind, ..self.clone() }
    }

    /// Returns the object that the lines are about.
    pub fn object(&self) -> Option<Arc<ObjectRef>> {
        match &self.about {
            LogSubject::Object(object) => Some(Arc::clone(object)),
            LogSubject::Live(object) => Some(Arc::new(object.reference())),
            LogSubject::Activity(_) => None,
        }
    }

    /// Writes a plain line.
    pub fn log(&self, level: LogLevel, text: &str) {
        self.write(level, text, (None, None), Own::default());
    }

    /// Writes a line that `logic` has decided, with the script's stack trace if the line requires it.
    pub fn line(&self, line: &LogLine, trace: Option<&str>) {
        let trace = trace.filter(|_| line.with_trace);
        let gist = (line.level >= LogLevel::Warning).then_some(&*line.text);
        self.write(line.level, &line.text, (trace, None), Own { gist, ..Own::default() });
    }

    /// Writes a line about several objects with the same problem: from a certain number on, such lines are only counted.
    pub fn repeated(&self, line: &LogLine) {
        let own = Own { gist: Some(&line.text), ..Own::default() };
        self.write(line.level, &line.text, (None, None), own);
    }

    /// Writes the line of an attempt that has failed; `level` is the level of the program's own formats.
    pub fn failed(
        &self,
        line: &LogLine,
        trace: Option<&str>,
        (handler, attempt): (&Handler, &FailedAttempt),
        level: u32,
    ) {
        let own = Own {
            text: Some(&attempt.text),
            level: Some(level),
            gist: Some(&attempt.gist),
            handler: Some(handler),
            attempt: Some(attempt.number),
        };
        self.write(line.level, &line.text, (trace.filter(|_| line.with_trace), None), own);
    }

    /// Returns whether [`Logger::unhandled`] writes anything.
    pub fn tells_unhandled() -> bool {
        tracing::enabled!(target: TARGET_UNHANDLED, tracing::Level::DEBUG)
    }

    /// Writes a line about a change that no handler handles. Only `kopf dev` and verbose logs have these lines.
    pub fn unhandled(&self, text: &str) {
        let object = self.object();
        let object = object.as_deref();
        tracing::event!(
            target: TARGET_UNHANDLED,
            tracing::Level::DEBUG,
            object.api_version = object.map(|it| it.api_version.as_str()),
            object.kind = object.map(|it| it.kind.as_str()),
            object.name = object.map(|it| it.name.as_str()),
            object.uid = object.map(|it| it.uid.as_str()),
            object.namespace = object.and_then(|it| it.namespace.as_deref()),
            call.level = u64::from(LogLevel::Info.number()),
            call.gist = text,
            message = text,
        );
    }

    /// Returns whether its lines are about the object of a handler that may be retried.
    pub fn is_full(&self) -> bool {
        self.kind == LoggerKind::Full
    }

    /// Writes a line of a script with structured fields.
    pub fn with_fields(&self, level: LogLevel, text: &str, fields: &Map<String, Value>) {
        self.write(level, text, (None, Some(fields)), Own::default());
    }

    /// Writes an error line of a script with its location, and with structured fields if there are any.
    pub fn exception(&self, text: &str, trace: &str, fields: Option<&Map<String, Value>>) {
        self.write(LogLevel::Error, text, (Some(trace), fields), Own::default());
    }

    /// Returns whether a line of this level would be written or posted; check this before building a long string.
    pub fn is_enabled(&self, level: LogLevel) -> bool {
        self.is_shown(level) || self.posts_of(level).is_some()
    }

    /// Returns where to post a line of this level, if at all.
    fn posts_of(&self, level: LogLevel) -> Option<&EventQueue> {
        let is_posted =
            self.kind == LoggerKind::Full && !matches!(self.about, LogSubject::Activity(_));
        self.posts.as_ref().filter(|it| is_posted && it.wants(level))
    }

    fn is_shown(&self, level: LogLevel) -> bool {
        match level {
            // One level terser than others: never debug lines, and info lines only where others write debug lines.
            LogLevel::Debug if self.kind == LoggerKind::Terse => false,
            LogLevel::Info if self.kind == LoggerKind::Terse => {
                tracing::enabled!(target: TARGET_OBJECTS, tracing::Level::DEBUG)
            }
            LogLevel::Debug => tracing::enabled!(target: TARGET_OBJECTS, tracing::Level::DEBUG),
            LogLevel::Info => tracing::enabled!(target: TARGET_OBJECTS, tracing::Level::INFO),
            LogLevel::Warning | LogLevel::Error => true,
        }
    }

    fn write(
        &self,
        level: LogLevel,
        text: &str,
        (trace, extra): (Option<&str>, Option<&Map<String, Value>>),
        own: Own<'_>,
    ) {
        if !self.is_enabled(level) {
            return;
        }
        let object = self.object();
        if let (Some(posts), Some(object)) = (self.posts_of(level), &object) {
            let traced = trace.map(|it| format!("{text}\n{it}"));
            posts.log(object, level, traced.as_deref().unwrap_or(text));
        }
        if !self.is_shown(level) {
            return;
        }
        let object = object.as_deref();
        let activity = match &self.about {
            LogSubject::Activity(name) => *name,
            LogSubject::Object(_) | LogSubject::Live(_) => None,
        };
        let extra = extra.and_then(|it| serde_json::to_string(it).ok());
        let extra = extra.as_deref();
        let caller = self.caller.as_ref();
        let handler = own.handler.or_else(|| caller.map(|it| &*it.handler));
        let attempt = own.attempt.or_else(|| caller.map(|it| it.attempt));
        let script = handler.map(Handler::file);
        let handler = handler.map(|it| &*it.id);
        macro_rules! emit {
            ($target:expr, $level:ident) => {
                tracing::event!(
                    target: $target,
                    tracing::Level::$level,
                    object.api_version = object.map(|it| it.api_version.as_str()),
                    object.kind = object.map(|it| it.kind.as_str()),
                    object.name = object.map(|it| it.name.as_str()),
                    object.uid = object.map(|it| it.uid.as_str()),
                    object.namespace = object.and_then(|it| it.namespace.as_deref()),
                    activity,
                    extra,
                    trace,
                    call.text = own.text,
                    call.level = own.level,
                    call.gist = own.gist,
                    call.handler = handler,
                    call.script = script,
                    call.attempt = attempt,
                    message = text,
                )
            };
        }
        match (self.kind == LoggerKind::Activity, level) {
            (true, LogLevel::Debug) => emit!(TARGET_ACTIVITIES, DEBUG),
            (true, LogLevel::Info) => emit!(TARGET_ACTIVITIES, INFO),
            (true, LogLevel::Warning) => emit!(TARGET_ACTIVITIES, WARN),
            (true, LogLevel::Error) => emit!(TARGET_ACTIVITIES, ERROR),
            (false, LogLevel::Debug) => emit!(TARGET_OBJECTS, DEBUG),
            (false, LogLevel::Info) => emit!(TARGET_OBJECTS, INFO),
            (false, LogLevel::Warning) => emit!(TARGET_OBJECTS, WARN),
            (false, LogLevel::Error) => emit!(TARGET_OBJECTS, ERROR),
        }
    }
}
