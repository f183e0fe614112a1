//! The handlers of these worlds as closures.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use kopf::{
    call::{Cause, Invocation},
    logic::handlers::{
        callback::Callback,
        declare::Argument,
        function::Function,
        handler::{Handler, Kind},
        outcome::{CallEnd, Raised, RaisedKind},
    },
    testing::{OnDrop, declared},
};
use serde_json::{Value, json};
use tokio::time;

use super::{super::natives::Natives, CHILDREN, Levels, SCHEDULES, TUNE, tuned, wanted};

/// The pause after a temporary error.
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// Declares all handlers; only the schedules if there are no objects.
pub(in super::super) fn handlers(
    natives: &Natives,
    levels: &Levels,
    has_objects: bool,
) -> Vec<Handler> {
    let mut handlers: Vec<_> =
        SCHEDULES.iter().map(|(id, seconds)| schedule(natives, levels, id, *seconds)).collect();
    if has_objects {
        handlers.push(family(natives, levels));
    }
    for handler in &mut handlers {
        // Each edit changes all of them.
        handler.code = 1000 + natives.version;
    }
    handlers
}

fn schedule(natives: &Natives, levels: &Levels, id: &'static str, seconds: u64) -> Handler {
    let (process, levels) = (natives.process, levels.clone());
    let function = natives.scripts.handler(id, move |invocation| {
        let levels = levels.clone();
        Box::pin(async move {
            let Cause::Activity(cause) = &invocation.cause else { panic!("an activity") };
            let slot = cause.scheduled.as_ref().expect("a slot").to_string();
            levels.slot(process, id, &slot);
            time::sleep(Duration::from_millis(700)).await;
            CallEnd::Returned(None)
        }) as BoxFuture<'static, CallEnd>
    });
    let named = ("id".to_owned(), Argument::Value(id.into()));
    if id == "minute" {
        return declared(
            Kind::Cron,
            vec![Argument::Value("* * * * *".into())],
            vec![named],
            function,
        );
    }
    declared(Kind::Every, vec![Argument::Value(seconds.into())], vec![named], function)
}

fn family(natives: &Natives, levels: &Levels) -> Handler {
    let call = |name: &'static str| -> Function {
        let (process, levels) = (natives.process, levels.clone());
        natives.scripts.handler(name, move |invocation| {
            let levels = levels.clone();
            Box::pin(async move { run(&invocation, &levels, process, name).await })
                as BoxFuture<'static, CallEnd>
        })
    };
    let (function, finalize) = (call("reconcile"), call("finalize"));
    let options = [
        ("id", Argument::Value("family".into())),
        ("owns", Argument::Value(CHILDREN.into())),
        ("watches", Argument::Value(TUNE.0.into())),
        ("finalize", Argument::Callback(Callback::Function(finalize))),
    ];
    let options = options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    declared(Kind::Reconcile, vec![Argument::Value("kopfexamples".into())], options, function)
}

async fn run(invocation: &Arc<Invocation>, levels: &Levels, process: u64, what: &str) -> CallEnd {
    let object = invocation.object().expect("an object");
    let (body, retry) = (object.body(), invocation.attempt.map_or(0, |it| it.retry));
    let (spec, meta) = (&body["spec"], &body["metadata"]);
    let (uid, is_final) = (spec["id"].as_str().unwrap_or_default(), what == "finalize");
    let number = levels.begin(process, what, uid);
    let cut = OnDrop::new(|| levels.end(number, "cut"));
    let (nap, failures) = if is_final { ("gone", "gone") } else { ("made", "retried") };
    let nap = spec["naps"][nap].as_f64().unwrap_or_default();
    if nap > 0.0 {
        time::sleep(Duration::from_secs_f64(nap)).await;
    }
    cut.disarm();
    if retry < spec["failures"][failures].as_u64().unwrap_or_default() {
        levels.end(number, "later");
        let kind = RaisedKind::Temporary(Some(RETRY_DELAY));
        return CallEnd::Raised(Raised { kind, message: "not yet".into(), trace: None });
    }
    levels.end(number, "done");
    if is_final {
        levels.finalized(uid);
        return CallEnd::Returned(None);
    }
    // The function sees the current object, not the one before its sleep.
    let children = invocation
        .background()
        .and_then(|it| it.children.as_ref())
        .map(|it| it.tree())
        .unwrap_or_default();
    let seen = children[CHILDREN].as_object().map_or(0, serde_json::Map::len);
    let (name, x) = (meta["name"].as_str().unwrap_or_default(), spec["x"].as_u64());
    let x = x.unwrap_or_default();
    let wanted = wanted((name, uid, x), &tuned(&levels.server));
    let child = |((namespace, name), data): ((String, String), Value)| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "namespace": namespace, "name": name }, "data": data,
        })
    };
    let children: Vec<_> = wanted.into_iter().map(child).collect();
    let status = json!({ "x": x, "uid": uid, "seen": seen });
    CallEnd::Returned(Some(json!({ "children": children, "status": status })))
}
