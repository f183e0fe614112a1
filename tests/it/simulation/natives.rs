//! The handlers of the simulation as closures. Their results depend only on the object, so that it is known what must be stored.

use std::time::Duration;

use futures::future::BoxFuture;
use kopf::{
    call::{Cause, Invocation, ObjectCause},
    logic::{
        change::patch::Transformation,
        handlers::{
            declare::{Argument, Declaration},
            handler::{Handler, Kind},
            outcome::{Ended, Raised, RaisedKind},
        },
        object::conditions::{Change, Condition, Status},
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

/// What the handlers of one process need.
#[derive(Clone)]
pub(super) struct Natives {
    pub(super) scripts: NativeScripts,
    pub(super) history: History,
    pub(super) process: u64,
    pub(super) clock: Clock,
}

/// Returns what a handler returns for an object.
pub(super) fn result(uid: &str, x: u64) -> Value {
    json!({ "uid": uid, "x": x })
}

impl Natives {
    /// Declares all handlers. `code` is the version of the script.
    pub(super) fn handlers(&self, code: u64) -> Vec<Handler> {
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
        // An edit changes the daemon or a handler of changes.
        let edited = usize::try_from(code).expect("a small number") % handlers.len();
        handlers[edited].code = code + 1000;
        handlers
    }

    /// A handler that works for a while, fails a few times, and returns a result.
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
                as BoxFuture<'static, Ended>
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
    ) -> Ended {
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
            return Ended::Raised(Raised { kind, message: "not yet".into(), trace: None });
        }
        act(self, cause);
        self.history.end(call, Ending::Done);
        let has_result = !matches!(id, "gone" | "once");
        Ended::Returned(has_result.then(|| object.result()))
    }

    fn begin(&self, id: &str, object: &Subject, retry: u64) -> usize {
        self.history.begin(Call::new(self.process, id, (&object.uid, object.x), retry))
    }

    /// A handler with two sub-handlers.
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
                Ended::Returned(Some(object.result()))
            }) as BoxFuture<'static, Ended>
        });
        declared(Kind::Create, vec![Argument::Value("kopfexamples".into())], Vec::new(), function)
    }

    fn child(&self, name: &'static str, id: &'static str) -> Declaration {
        let natives = self.clone();
        let function = self.scripts.handler(name, move |invocation| {
            let natives = natives.clone();
            Box::pin(async move { natives.run(&invocation, id, |_, _| {}).await })
                as BoxFuture<'static, Ended>
        });
        Declaration {
            kind: Kind::Sub,
            selectors: Vec::new(),
            options: vec![("id".to_owned(), Argument::Value(name.into()))],
            function,
            location: "test:1".into(),
        }
    }

    /// A daemon that runs as long as its object.
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
                Ended::Returned(None)
            }) as BoxFuture<'static, Ended>
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
        cause.patch.lock().change_condition(Change::Set(Condition {
            kind: CONDITION.to_owned(),
            status: Status::True,
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

/// What handlers look at. It is in the spec, so that scripts find it, too.
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

    /// How often a handler fails before it succeeds.
    fn failures(&self, id: &str) -> u64 {
        self.spec["failures"][id].as_u64().unwrap_or_default()
    }

    /// How long a handler works.
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
