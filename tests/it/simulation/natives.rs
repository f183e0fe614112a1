//! The handlers of the simulation as closures. Their results depend only on the object, so that it is known what must be stored.

use std::time::Duration;

use futures::future::BoxFuture;
use kopf::{
    logic::{
        conditions::{Change, Condition, Status},
        declare::{Argument, Declaration},
        handler::{Handler, Kind},
        outcome::{Ended, Raised, RaisedKind},
        patch::Transformation,
    },
    ports::{Cause, Clock, Invocation, ObjectCause},
    testing::{NativeScripts, declared},
};
use serde_json::{Value, json};
use tokio::time;

use super::{
    dice::Dice,
    history::{Call, Ending, History},
};

/// The condition that a daemon sets.
pub(super) const CONDITION: &str = "Watched";

/// The seconds between the calls of the timer.
pub(super) const INTERVAL: u64 = 15;

/// What the handlers of one process need.
#[derive(Clone)]
pub(super) struct Natives {
    pub(super) scripts: NativeScripts,
    pub(super) dice: Dice,
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
        let (uid, x) = identity(cause);
        let retry = invocation.attempt.map_or(0, |it| it.retry);
        let call = self.begin(id, &uid, x, retry);
        let mut random = self.dice.of(&format!("{id} of {uid}"), retry);
        let is_background = invocation.background().is_some();
        if !is_background && random.bool() {
            time::sleep(Duration::from_millis(random.u64(1..3000))).await;
        }
        let failures = if is_background { 0 } else { failures(self.dice, id, &uid) };
        if retry < failures {
            self.history.end(call, Ending::Later);
            let kind = RaisedKind::Temporary(Some(Duration::from_secs(random.u64(1..5))));
            return Ended::Raised(Raised { kind, message: "not yet".into(), trace: None });
        }
        act(self, cause);
        self.history.end(call, Ending::Done);
        let has_result = !matches!(id, "gone" | "once");
        Ended::Returned(has_result.then(|| result(&uid, x)))
    }

    fn begin(&self, id: &str, uid: &str, x: u64, retry: u64) -> usize {
        self.history.begin(Call {
            process: self.process,
            id: id.to_owned(),
            uid: uid.to_owned(),
            x,
            retry,
            at: Duration::ZERO,
            ended: None,
        })
    }

    /// A handler with two sub-handlers.
    fn parent(&self) -> Handler {
        let natives = self.clone();
        let function = self.scripts.handler("parent", move |invocation| {
            let natives = natives.clone();
            Box::pin(async move {
                let children = invocation.children.clone().expect("a change handler");
                let (uid, x) = identity(cause_of(&invocation));
                let retry = invocation.attempt.map_or(0, |it| it.retry);
                let call = natives.begin("parent", &uid, x, retry);
                for (name, id) in [("one", "parent.one"), ("two", "parent.two")] {
                    children.declare(natives.child(name, id)).expect("a declaration");
                }
                // The reactor runs the sub-handlers, and calls this one again while any is left.
                natives.history.end(call, Ending::Done);
                Ended::Returned(Some(result(&uid, x)))
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
                let (uid, x) = identity(cause_of(&invocation));
                let call = natives.begin("stays", &uid, x, 0);
                invocation.background().expect("a daemon").stopped.wait().await;
                natives.history.end(call, Ending::Done);
                Ended::Returned(None)
            }) as BoxFuture<'static, Ended>
        });
        declared(Kind::Daemon, vec![Argument::Value("kopfexamples".into())], Vec::new(), function)
    }

    /// Changes the status by a function of the patch.
    fn mark(&self, cause: &ObjectCause) {
        let (uid, _) = identity(cause);
        let set = self.scripts.transformation("mark", move |mut body| {
            json_patch::merge(&mut body, &json!({ "status": { "mark": uid } }));
            body
        });
        cause.patch.lock().transformations.push(Transformation::Scripted(set));
    }

    fn set_condition(&self, cause: &ObjectCause) {
        let (uid, _) = identity(cause);
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

/// Returns how often a handler fails before it succeeds.
pub(super) fn failures(dice: Dice, id: &str, uid: &str) -> u64 {
    match id {
        "retried" => dice.of(&format!("failures of {id} of {uid}"), 0).u64(0..3),
        "parent.two" | "changed" | "gone" => {
            dice.of(&format!("failures of {id} of {uid}"), 0).u64(0..2)
        }
        _ => 0,
    }
}

fn cause_of(invocation: &Invocation) -> &ObjectCause {
    let Cause::Object(cause) = &invocation.cause else { panic!("of an object") };
    cause
}

/// Returns the uid and `spec.x`.
fn identity(cause: &ObjectCause) -> (String, u64) {
    let object = cause.current();
    let uid = object.header().uid.clone().unwrap_or_default();
    (uid, object.body()["spec"]["x"].as_u64().unwrap_or_default())
}
