//! Tests of scripts, from their text to the results of their calls.

mod data;
mod declarations;
mod failures;
mod imports;
mod patches;
mod sandbox;
mod surface;
mod threads;
mod time;

use std::{fs, path::PathBuf, sync::Arc};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::load;
use crate::call::{
    ActivityCause, AttemptKwargs, BackgroundCause, CallServices, Callers, Cause, ChangeCause,
    Invocation, LiveObject, Logger, LoggerKind, ObjectCause, ObjectDetail, SharedDocument,
    SharedPatch, Stopped,
};
use crate::logic::{
    change::patch::Patch,
    handlers::{
        function::ScriptId,
        handler::Handler,
        outcome::{CallEnd, Raised},
    },
    object::{
        Object,
        diff::{DiffItem, DiffOperation},
        reason::Reason,
        resource::Resource,
    },
};
use crate::scripting::{LoadError, Loaded, Placement, Source, Terms};
use crate::settings::Settings;

/// A loaded script, and the data of its invocations.
struct Fixture {
    loaded: Loaded,
    body: Value,
    /// Whether calls read the body from a tape.
    is_tape: bool,
    patch: SharedPatch,
    memo: SharedDocument,
    settings: Arc<Mutex<Settings>>,
    services: Arc<CallServices>,
}

fn source(text: &str) -> Source {
    Source::alone("handlers.rhai", text)
}

async fn try_load(text: &str) -> Result<Loaded, LoadError> {
    load(ScriptId(1), &source(text), &Placement::CurrentRuntime.into()).await
}

/// Returns the error of a script that must not load.
async fn refusal(text: &str) -> LoadError {
    try_load(text).await.err().expect("the script is wrong")
}

impl Fixture {
    fn of(loaded: Loaded, body: Value) -> Self {
        Fixture {
            loaded,
            body,
            is_tape: false,
            patch: SharedPatch::default(),
            memo: SharedDocument::default(),
            settings: Arc::default(),
            services: Arc::default(),
        }
    }

    async fn new(text: &str, body: Value) -> Self {
        match try_load(text).await {
            Ok(loaded) => Fixture::of(loaded, body),
            Err(error) => panic!("{error:?}"),
        }
    }

    /// Loads a script with one creation handler with this code.
    async fn handler(code: &str, body: Value) -> Self {
        let text = format!("fn handler(ctx) {{ {code} }}\nkopf::on_create(\"things\", handler);\n");
        Fixture::new(&text, body).await
    }

    fn nth(&self, index: usize) -> Arc<Handler> {
        Arc::new(self.loaded.handlers[index].clone())
    }

    fn invocation(&self, handler: Arc<Handler>) -> Arc<Invocation> {
        let diff = vec![DiffItem {
            operation: DiffOperation::Change,
            field: vec!["spec".into(), "x".into()],
            old: json!(1),
            new: json!(2),
        }];
        let detail = ObjectDetail::Change(ChangeCause {
            reason: Reason::Create,
            old: None,
            new: Some(Arc::new(self.body.clone())),
            diff: Arc::new(diff),
        });
        let object = if self.is_tape && self.body.is_object() {
            Object::parse_as_tape(self.body.to_string().into()).expect("JSON")
        } else {
            Object::from_value(self.body.clone())
        };
        self.about(handler, Arc::new(object), detail)
    }

    /// Returns the invocation of a daemon or a timer.
    fn background(&self, live: &LiveObject, stopped: &Stopped) -> Arc<Invocation> {
        let detail = ObjectDetail::Background(BackgroundCause {
            stopped: stopped.clone(),
            live: live.clone(),
            children: None,
        });
        self.about(self.nth(0), live.get(), detail)
    }

    fn about(
        &self,
        handler: Arc<Handler>,
        object: Arc<Object>,
        detail: ObjectDetail,
    ) -> Arc<Invocation> {
        let reference = Arc::new(object.header().reference());
        let cause = ObjectCause {
            resource: Arc::new(Resource {
                plural: "things".into(),
                kind: "Thing".into(),
                ..Resource::default()
            }),
            object,
            patch: Arc::clone(&self.patch),
            detail,
        };
        Arc::new(Invocation {
            handler,
            attempt: Some(attempt()),
            cause: Cause::Object(cause),
            memo: self.memo.clone(),
            logger: Logger::of_object(LoggerKind::Full, reference),
            services: Arc::clone(&self.services),
            children: None,
            callers: Callers::default(),
        })
    }

    fn activity(&self, handler: Arc<Handler>) -> Arc<Invocation> {
        let settings = Arc::clone(&self.settings);
        Arc::new(Invocation {
            handler,
            attempt: Some(attempt()),
            cause: Cause::Activity(ActivityCause {
                activity: "startup",
                settings,
                logins: crate::ports::NativeLogins::default(),
                server: None,
                scheduled: None,
            }),
            memo: self.memo.clone(),
            logger: Logger::of_activity(),
            services: Arc::clone(&self.services),
            children: None,
            callers: Callers::default(),
        })
    }

    async fn call_nth(&self, index: usize) -> CallEnd {
        self.loaded.engine.call(self.invocation(self.nth(index))).await
    }

    /// Returns the result of the first handler.
    async fn returned(&self) -> Value {
        match self.call_nth(0).await {
            CallEnd::Returned(value) => value.unwrap_or_default(),
            CallEnd::Keyed(entries) => panic!("{entries:?}"),
            CallEnd::Raised(raised) => panic!("{raised:?}"),
        }
    }

    /// Returns the error of the first handler.
    async fn raised(&self) -> Raised {
        match self.call_nth(0).await {
            CallEnd::Returned(value) => panic!("returned {value:?}"),
            CallEnd::Keyed(entries) => panic!("{entries:?}"),
            CallEnd::Raised(raised) => raised,
        }
    }

    fn patch(&self) -> Patch {
        self.patch.lock().clone()
    }
}

fn attempt() -> AttemptKwargs {
    let started = jiff::Timestamp::UNIX_EPOCH;
    AttemptKwargs { retry: 0, started, runtime: std::time::Duration::ZERO }
}

/// Returns the result of a handler with this code for an object; it is the same, whatever the form of the object.
async fn run(code: &str, body: Value) -> Value {
    let tree = Fixture::handler(code, body).await;
    let result = tree.returned().await;
    let tape = Fixture { is_tape: true, ..Fixture::handler(code, tree.body).await };
    assert_eq!(tape.returned().await, result, "{code}");
    result
}

/// Returns the message of the error of a handler with this code, as [`run`] does.
async fn problem(code: &str, body: Value) -> String {
    let tree = Fixture::handler(code, body).await;
    let message = tree.raised().await.message;
    let tape = Fixture { is_tape: true, ..Fixture::handler(code, tree.body).await };
    assert_eq!(tape.raised().await.message, message, "{code}");
    message
}

/// Creates an empty directory for a test.
fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("kopf-rhai-{}-{name}", std::process::id()));
    fs::remove_dir_all(&path).ok();
    fs::create_dir_all(&path).unwrap();
    path
}

/// Loads a script whose calls may execute this many operations.
async fn run_with_budget(text: &str, operations: u32) -> Result<Loaded, LoadError> {
    let cpu_limit = std::time::Duration::from_nanos(100) * operations;
    load(ScriptId(1), &source(text), &Terms { cpu_limit, ..terms() }).await
}

fn terms() -> Terms {
    Placement::CurrentRuntime.into()
}
