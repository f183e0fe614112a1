//! The handlers of the simulation as closures. Their results depend only on the object, so the expected state is known.

use std::time::Duration;

use futures::future::BoxFuture;
use kopf::{
    call::{Cause, Invocation, ObjectCause},
    logic::{
        change::patch::Transformation,
        handlers::{
            declare::{Argument, Declaration},
            handler::{Handler, Kind},
            outcome::{CallEnd, Raised, RaisedKind},
        },
        object::conditions::{Condition, ConditionChange, ConditionStatus},
    },
    ports::Clock,
    testing::{NativeScripts, OnDrop, declared},
};
use serde_json::{Map, Value, json};
use tokio::time;

use super::{
    dice::Dice,
    history::{Call, Ending, History, OF_CREATION, OF_DELETION, OF_UPDATE},
};

/// The condition that a daemon sets.
pub(super) const CONDITION: &str = "Watched";

/// The seconds between the calls of the timer.
pub(super) const INTERVAL: u64 = 30;

/// The pause after a temporary error.
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// The state of the handlers of one process.
#[derive(Clone)]
pub(super) struct Natives {
    pub(super) scripts: NativeScripts,
    pub(super) history: History,
    pub(super) process: u64,
    /// The version of the script.
    pub(super) version: u64,
    pub(super) clock: Clock,
}

/// Returns the result of a handler for an object.
pub(super) fn result(uid: &str, x: u64) -> Value {
    json!({ "uid": uid, "x": x })
}

/// All handlers, in the order of their declarations.
const DECLARED: [&str; 10] =
    ["made", "retried", "parent", "marked", "changed", "also", "gone", "once", "stays", "tick"];

/// Returns the code of a handler in this version of the script: each edit changes two of them, the one that the previous edit has
/// changed, which is restored, and the next one. A sub-handler changes with its parent.
fn code_of(id: &str, version: u64) -> u64 {
    let edited = usize::try_from(version).expect("a small number") % DECLARED.len();
    if id.split('.').next() == Some(DECLARED[edited]) { version + 1001 } else { 1000 }
}

/// Returns how often the code of a handler has been edited up to this version.
fn edits_of(id: &str, version: u64) -> u64 {
    let is_edit = |it: &u64| code_of(id, *it) != code_of(id, *it - 1);
    u64::try_from((1..=version).filter(is_edit).count()).expect("a small number")
}

impl Natives {
    /// Declares all handlers.
    pub(super) fn handlers(&self) -> Vec<Handler> {
        let marked = |natives: &Natives, cause: &ObjectCause| natives.mark(cause);
        let watched = |natives: &Natives, cause: &ObjectCause| natives.set_condition(cause);
        let nothing = |_: &Natives, _: &ObjectCause| {};
        let mut handlers = vec![
            self.handler(Kind::Create, "made", nothing),
            self.handler(Kind::Create, "retried", nothing),
            self.parent(),
            self.handler(Kind::Create, "marked", marked),
            self.handler(Kind::Update, "changed", nothing),
            self.handler(Kind::Update, "also", nothing),
            self.handler(Kind::Delete, "gone", nothing),
            self.handler(Kind::Daemon, "once", watched),
            self.stays(),
            self.handler(Kind::Timer, "tick", nothing),
        ];
        // Otherwise each load would create functions with different code.
        for (handler, id) in handlers.iter_mut().zip(DECLARED) {
            handler.code = code_of(id, self.version);
        }
        handlers
    }

    /// Returns a handler that works for a while, fails a few times, and returns a result.
    fn handler(
        &self,
        kind: Kind,
        id: &'static str,
        act: impl Fn(&Natives, &ObjectCause) + Copy + Send + Sync + 'static,
    ) -> Handler {
        let natives = self.clone();
        let function = self.scripts.handler(id, move |invocation| {
            let natives = natives.clone();
            Box::pin(async move { natives.run(&invocation, id, act).await })
                as BoxFuture<'static, CallEnd>
        });
        let interval = ("interval".to_owned(), Argument::Value(INTERVAL.into()));
        let options = Vec::from_iter((kind == Kind::Timer).then_some(interval));
        declared(kind, vec![Argument::Value("kopfexamples".into())], options, function)
    }

    async fn run(
        &self,
        invocation: &Invocation,
        id: &str,
        act: impl Fn(&Natives, &ObjectCause),
    ) -> CallEnd {
        let cause = cause_of(invocation);
        let object = Subject::of(cause);
        let retry = invocation.attempt.map_or(0, |it| it.retry);
        let call = self.begin(id, &object, retry);
        let cut = OnDrop::new(|| self.history.end(call, Ending::Cut));
        let is_background = invocation.background().is_some();
        let nap = object.nap(id);
        if !is_background && !nap.is_zero() {
            time::sleep(nap).await;
        }
        cut.disarm();
        if !is_background && retry < object.failures(id) {
            self.history.end(call, Ending::Later);
            let kind = RaisedKind::Temporary(Some(RETRY_DELAY));
            return CallEnd::Raised(Raised { kind, message: "not yet".into(), trace: None });
        }
        act(self, cause);
        self.history.end(call, Ending::Done);
        let has_result = !matches!(id, "gone" | "once");
        CallEnd::Returned(has_result.then(|| object.result()))
    }

    fn begin(&self, id: &str, object: &Subject, retry: u64) -> usize {
        let mut call = Call::new(self.process, id, (&object.uid, object.x), retry);
        call.edits = edits_of(id, self.version);
        self.history.begin(call)
    }

    /// Returns a handler with two sub-handlers.
    fn parent(&self) -> Handler {
        let natives = self.clone();
        let function = self.scripts.handler("parent", move |invocation| {
            let natives = natives.clone();
            Box::pin(async move {
                let children = invocation.children.clone().expect("a change handler");
                let object = Subject::of(cause_of(&invocation));
                let retry = invocation.attempt.map_or(0, |it| it.retry);
                let call = natives.begin("parent", &object, retry);
                for (name, id) in [("one", "parent.one"), ("two", "parent.two")] {
                    children.declare(natives.child(name, id)).expect("a declaration");
                }
                // The reactor runs the sub-handlers, and calls this one again while any is left.
                natives.history.end(call, Ending::Done);
                CallEnd::Returned(Some(object.result()))
            }) as BoxFuture<'static, CallEnd>
        });
        declared(Kind::Create, vec![Argument::Value("kopfexamples".into())], Vec::new(), function)
    }

    fn child(&self, name: &'static str, id: &'static str) -> Declaration {
        let natives = self.clone();
        let function = self.scripts.handler(name, move |invocation| {
            let natives = natives.clone();
            Box::pin(async move { natives.run(&invocation, id, |_, _| {}).await })
                as BoxFuture<'static, CallEnd>
        });
        Declaration {
            kind: Kind::Sub,
            selectors: Vec::new(),
            options: vec![("id".to_owned(), Argument::Value(name.into()))],
            function,
            location: "test:1".into(),
        }
    }

    /// Returns a daemon that runs as long as its object.
    fn stays(&self) -> Handler {
        let natives = self.clone();
        let function = self.scripts.handler("stays", move |invocation| {
            let natives = natives.clone();
            Box::pin(async move {
                let object = Subject::of(cause_of(&invocation));
                let call = natives.begin("stays", &object, 0);
                let cut = OnDrop::new(|| natives.history.end(call, Ending::Cut));
                invocation.background().expect("a daemon").stopped.wait().await;
                cut.disarm();
                natives.history.end(call, Ending::Done);
                CallEnd::Returned(None)
            }) as BoxFuture<'static, CallEnd>
        });
        declared(Kind::Daemon, vec![Argument::Value("kopfexamples".into())], Vec::new(), function)
    }

    /// Changes the status by a function of the patch.
    fn mark(&self, cause: &ObjectCause) {
        let uid = Subject::of(cause).uid;
        let set = self.scripts.transformation("mark", move |mut body| {
            json_patch::merge(&mut body, &json!({ "status": { "mark": uid } }));
            body
        });
        cause.patch.lock().transformations.push(Transformation::Scripted(set));
    }

    fn set_condition(&self, cause: &ObjectCause) {
        let uid = Subject::of(cause).uid;
        cause.patch.lock().change_condition(ConditionChange::Set(Condition {
            kind: CONDITION.to_owned(),
            status: ConditionStatus::True,
            reason: "Once".to_owned(),
            message: uid,
            observed_generation: None,
            now: self.clock.now(),
        }));
    }
}

fn cause_of(invocation: &Invocation) -> &ObjectCause {
    let Cause::Object(cause) = &invocation.cause else { panic!("of an object") };
    cause
}

/// The part of the object that handlers read. It is in the spec, so that scripts find it, too.
struct Subject {
    uid: String,
    x: u64,
    spec: Value,
}

impl Subject {
    fn of(cause: &ObjectCause) -> Self {
        let spec = cause.current().body()["spec"].clone();
        let uid = spec["id"].as_str().unwrap_or_default().to_owned();
        Subject { uid, x: spec["x"].as_u64().unwrap_or_default(), spec }
    }

    /// Returns how often a handler fails before it succeeds.
    fn failures(&self, id: &str) -> u64 {
        self.spec["failures"][id].as_u64().unwrap_or_default()
    }

    /// Returns how long a handler works.
    fn nap(&self, id: &str) -> Duration {
        Duration::from_secs_f64(self.spec["naps"][id].as_f64().unwrap_or_default())
    }

    fn result(&self) -> Value {
        result(&self.uid, self.x)
    }
}

/// Returns the spec of a new object.
pub(super) fn spec(dice: Dice, uid: &str, x: u64) -> Value {
    let mut random = dice.of(uid, 0);
    let failures = json!({
        "retried": random.u64(0..3), "parent.two": random.u64(0..2), "changed": random.u64(0..2),
        "gone": random.u64(0..2),
    });
    let all = OF_CREATION.iter().chain(&OF_UPDATE).chain(&[OF_DELETION]);
    let naps = all.map(|id| {
        let nap = if random.bool() { random.u32(1..3000) } else { 0 };
        ((*id).to_owned(), json!(f64::from(nap) / 1000.0))
    });
    let naps: Map<String, Value> = naps.collect();
    json!({ "id": uid, "x": x, "failures": failures, "naps": naps })
}
