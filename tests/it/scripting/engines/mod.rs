//! Both engines through their public interface: scripts are loaded and called with hand-made invocations, and their results are compared.
//! Common features of both languages are tested with one expectation for both.

mod declarations;
mod errors;
mod indexes;
mod sandbox;
mod stopped;
mod values;
mod views;
mod waiting;

use std::{sync::Arc, time::Duration};

pub(crate) use kopf::testing::run_paused;

use bytes::Bytes;
use kopf::{
    call::{
        ActivityCause, AttemptKwargs, BackgroundCause, CallServices, Callers, Cause, ChangeCause,
        Invocation, LiveObject, Logger, LoggerKind, Memo, ObjectCause, ObjectDetail, Scripts as _,
        SharedPatch, Stopped,
    },
    logic::{
        change::patch::Patch,
        handlers::{
            function::{Function, ScriptId},
            handler::Handler,
            outcome::{CallEnd, Raised},
        },
        object::{
            Object, ObjectRef,
            diff::{DiffItem, DiffOperation},
            reason::Reason,
            resource::Resource,
        },
    },
    scripting::{LoadError, Placement, ScriptHost, Source, Terms},
    settings::Settings,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// A loaded script and the state that its calls leave behind.
pub(crate) struct Script {
    pub(crate) host: ScriptHost,
    pub(crate) handlers: Vec<Arc<Handler>>,
    pub(crate) memo: Memo,
    pub(crate) settings: Arc<Mutex<Settings>>,
    pub(crate) services: Arc<CallServices>,
}

/// The end of one call, and its patch.
pub(crate) struct Call {
    pub(crate) ended: CallEnd,
    pub(crate) patch: Patch,
}

/// A language, and its notation of handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Lua,
    Rhai,
}

impl Language {
    /// Returns a script with one handler, which this function of `kopf` declares.
    pub(crate) fn script(self, declares: &str, body: &str) -> Source {
        match self {
            Language::Lua => Source::alone(
                "handlers.lua",
                format!("kopf.{declares}('kopfexamples', function(ctx) {body} end)"),
            ),
            Language::Rhai => Source::alone(
                "handlers.rhai",
                format!("kopf::{declares}(`kopfexamples`, |ctx| {{ {body} }});"),
            ),
        }
    }

    /// Loads a script with one handler, which this function of `kopf` declares.
    pub(crate) async fn load(self, declares: &str, body: &str) -> Script {
        let loaded = try_load(self.script(declares, body), Placement::CurrentRuntime).await;
        loaded.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Runs a handler body for the sample object.
    pub(crate) fn run(self, body: &str) -> Call {
        run_paused(async { self.load("on_update", body).await.call("update").await })
    }
}

/// Returns a source that is in no file.
pub(crate) fn source(text: &str) -> Source {
    Source::alone("handlers.lua", text)
}

/// Loads a source as `handlers.lua`.
pub(crate) async fn load(text: &str) -> Script {
    match try_load(source(text), Placement::CurrentRuntime).await {
        Ok(script) => script,
        Err(error) => panic!("{error}"),
    }
}

/// Returns the error of a source that cannot be loaded.
pub(crate) fn load_error(text: &str) -> LoadError {
    let loaded = run_paused(try_load(source(text), Placement::CurrentRuntime));
    loaded.err().expect("the script is refused")
}

/// Loads one source.
pub(crate) async fn try_load(source: Source, placement: Placement) -> Result<Script, LoadError> {
    try_load_all(vec![source], placement).await
}

/// Loads several sources. Returns the first error, if there is one.
pub(crate) async fn try_load_all(
    sources: Vec<Source>,
    terms: impl Into<Terms>,
) -> Result<Script, LoadError> {
    let (host, handlers) = ScriptHost::load(sources, terms).await.map_err(|mut it| it.remove(0))?;
    Ok(Script {
        host,
        handlers: handlers.into_iter().map(Arc::new).collect(),
        memo: Memo::default(),
        settings: Arc::default(),
        services: Arc::default(),
    })
}

impl Script {
    /// Returns the handler with this id.
    pub(crate) fn handler(&self, id: &str) -> Arc<Handler> {
        let found = self.handlers.iter().find(|it| *it.id == *id);
        Arc::clone(found.expect("a handler of this id"))
    }

    /// Calls a handler for this object, as on a change of `spec.size`.
    pub(crate) async fn call_about(&self, id: &str, body: &Value) -> Call {
        let patch = SharedPatch::default();
        let invocation = self.change(id, body, &patch);
        let ended = self.host.call(invocation).await;
        let patch = patch.lock().clone();
        Call { ended, patch }
    }

    /// Calls a handler for the sample object.
    pub(crate) async fn call(&self, id: &str) -> Call {
        self.call_about(id, &sample()).await
    }

    /// Returns the invocation of a change handler.
    pub(crate) fn change(&self, id: &str, body: &Value, patch: &SharedPatch) -> Arc<Invocation> {
        let object = Object::parse(Bytes::from(body.to_string())).expect("a JSON object");
        let field = vec!["spec".to_owned(), "size".to_owned()];
        let diff = vec![DiffItem {
            operation: DiffOperation::Change,
            field,
            old: json!(1),
            new: json!(2),
        }];
        let change = ChangeCause {
            reason: Reason::Update,
            old: Some(Arc::new(json!({"spec": {"size": 1}}))),
            new: Some(Arc::new(json!({"spec": {"size": 2}}))),
            diff: Arc::new(diff),
        };
        let cause = ObjectCause {
            resource: Arc::new(resource()),
            object: Arc::new(object),
            patch: Arc::clone(patch),
            detail: ObjectDetail::Change(change),
        };
        self.invocation(id, Cause::Object(cause))
    }

    /// Returns the invocation of a daemon or a timer.
    pub(crate) fn background(
        &self,
        id: &str,
        live: &LiveObject,
        stopped: &Stopped,
    ) -> Arc<Invocation> {
        let cause = ObjectCause {
            resource: Arc::new(resource()),
            object: live.get(),
            patch: SharedPatch::default(),
            detail: ObjectDetail::Background(BackgroundCause {
                stopped: stopped.clone(),
                live: live.clone(),
                children: None,
            }),
        };
        self.invocation(id, Cause::Object(cause))
    }

    /// Returns the invocation of an activity.
    pub(crate) fn startup(&self, id: &str) -> Arc<Invocation> {
        let settings = Arc::clone(&self.settings);
        self.invocation(
            id,
            Cause::Activity(ActivityCause {
                activity: "startup",
                settings,
                logins: kopf::ports::NativeLogins::default(),
                server: None,
                scheduled: None,
            }),
        )
    }

    fn invocation(&self, id: &str, cause: Cause) -> Arc<Invocation> {
        Arc::new(Invocation {
            // As in the reactor: what a script keeps of its call must not keep the script alive.
            handler: self.handler(id).for_scripts(),
            attempt: Some(AttemptKwargs {
                retry: 3,
                started: "2026-01-02T03:04:05Z".parse().expect("a time"),
                runtime: Duration::from_millis(1500),
            }),
            cause,
            memo: self.memo.clone(),
            logger: Logger::of_object(LoggerKind::Full, Arc::new(ObjectRef::default())),
            services: Arc::clone(&self.services),
            children: None,
            callers: Callers::default(),
        })
    }
}

impl Call {
    /// Returns the result of a call that returned one.
    pub(crate) fn result(self) -> Value {
        match self.ended {
            CallEnd::Returned(result) => result.unwrap_or_default(),
            CallEnd::Keyed(entries) => json!(entries),
            CallEnd::Raised(raised) => panic!("{}: {:?}", raised.message, raised.trace),
        }
    }

    /// Returns the error of a call that raised one.
    pub(crate) fn raised(self) -> Raised {
        match self.ended {
            CallEnd::Raised(raised) => raised,
            CallEnd::Returned(result) => panic!("returned {result:?}"),
            CallEnd::Keyed(entries) => panic!("returned {entries:?}"),
        }
    }
}

/// Runs a handler body for the sample object; returns its result.
pub(crate) fn eval(body: &str) -> Value {
    run(body).result()
}

/// Runs a handler body for the sample object.
pub(crate) fn run(body: &str) -> Call {
    run_about(body, &sample())
}

/// Runs a handler body for an object.
pub(crate) fn run_about(body: &str, object: &Value) -> Call {
    run_paused(async {
        let text = format!("kopf.on_update('kopfexamples', function(ctx) {body} end)");
        load(&text).await.call_about("update", object).await
    })
}

/// Returns an object with values of all kinds.
pub(crate) fn sample() -> Value {
    json!({
        "apiVersion": "kopf.dev/v1",
        "kind": "KopfExample",
        "metadata": {
            "name": "example",
            "namespace": "default",
            "uid": "1234",
            "labels": {"app": "demo"},
        },
        "spec": {
            "size": 2,
            "items": ["a", null, {"b": [1.5, true]}],
            "emptyList": [],
            "emptyMap": {},
            "big": 9_007_199_254_740_993_i64,
            "text": "ünïcode",
        },
        "status": {"phase": "Old"},
    })
}

fn resource() -> Resource {
    Resource {
        group: "kopf.dev".into(),
        version: "v1".into(),
        plural: "kopfexamples".into(),
        kind: "KopfExample".into(),
        singular: "kopfexample".into(),
        namespaced: true,
        ..Resource::default()
    }
}

#[test]
fn a_function_of_an_unknown_script_is_an_error_of_the_call() {
    run_paused(async {
        let script = load("kopf.on_create('x', function() end)").await;
        let stranger = Function::new(ScriptId(u32::MAX), 0, "f");
        let answer = script.host.transform(stranger, json!({})).await;
        assert!(answer.expect_err("unknown").message.contains("not loaded"));
    });
}
