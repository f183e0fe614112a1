//! Rhai scripts through the public interface of the host, next to Lua scripts. Internals are tested next to the engine.

mod workers;

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::Instant;

use kopf::{
    call::{Invocation, Memo, Scripts as _, SharedPatch},
    logic::{
        change::patch::Transformation,
        handlers::{
            function::Function,
            handler::Handler,
            outcome::{CallEnd, RaisedKind},
        },
    },
    scripting::{Placement, ScriptHost, Source},
    testing::{self, run_paused},
};

/// Loaded scripts, one object, one memo.
struct Operator {
    host: ScriptHost,
    handlers: Vec<Arc<Handler>>,
    memo: Memo,
    patch: SharedPatch,
}

impl Operator {
    async fn of(scripts: &[(&str, &str)], placement: Placement) -> Self {
        let source = |(name, text): &(&str, &str)| Source::alone(*name, *text);
        let sources = scripts.iter().map(source).collect();
        let (host, handlers) = match ScriptHost::load(sources, placement).await {
            Ok(loaded) => loaded,
            Err(errors) => panic!("{errors:?}"),
        };
        let handlers = handlers.into_iter().map(Arc::new).collect();
        Operator { host, handlers, memo: Memo::default(), patch: SharedPatch::default() }
    }

    async fn call(&self, id: &str) -> CallEnd {
        let handler = self.handlers.iter().find(|it| *it.id == *id).expect("a handler of this id");
        let body = json!({ "metadata": { "name": "one" }, "spec": { "x": 1 } });
        let invocation = testing::creation(handler, body, Arc::clone(&self.patch));
        let invocation = Invocation { memo: self.memo.clone(), ..invocation };
        self.host.call(Arc::new(invocation)).await
    }

    fn merge(&self) -> Value {
        Value::Object(self.patch.lock().merge.clone())
    }

    fn transformation(&self) -> Function {
        match &self.patch.lock().transformations[0] {
            Transformation::Scripted(function) => function.clone(),
            other @ (Transformation::BlockDeletion(_)
            | Transformation::AllowDeletion(_)
            | Transformation::Condition(_)) => {
                panic!("{other:?}")
            }
        }
    }
}

fn returned(value: Value) -> CallEnd {
    CallEnd::Returned(Some(value))
}

const MINIMAL: &str = r#"
fn create_fn(ctx) {
    print(`And here we are! Created ${ctx.name} with ${ctx.spec.x}`);
    ctx.patch.status.phase = "Ready";
    ctx.patch.fns.append(|body| { body.seen = true; });
    #{ message: "hello world" }
}
kopf::on_create("kopfexamples", create_fn);
kopf.on_update("kopfexamples", |ctx| throw kopf.PermanentError("never"));
"#;

#[test]
fn a_handler_returns_patches_and_raises() {
    run_paused(returns_patches_and_raises(Placement::CurrentRuntime));
    // Threads outside of the runtime do not stop a paused clock.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(returns_patches_and_raises(Placement::Threads));
}

async fn returns_patches_and_raises(placement: Placement) {
    let operator = Operator::of(&[("handlers.rhai", MINIMAL)], placement).await;
    assert_eq!(operator.call("create_fn").await, returned(json!({"message": "hello world"})));
    assert_eq!(operator.merge(), json!({ "status": { "phase": "Ready" } }));
    let changed = operator.host.transform(operator.transformation(), json!({})).await;
    assert_eq!(changed, Ok(json!({ "seen": true })));
    let CallEnd::Raised(raised) = operator.call("update").await else { panic!("it throws") };
    assert_eq!((raised.kind, raised.message.as_str()), (RaisedKind::Permanent, "never"));
}

#[test]
fn scripts_of_both_languages_share_memos_and_the_clock() {
    let lua = "function lua_fn(ctx) ctx.memo.list = {1}; kopf.sleep(10) return ctx.memo.list end\n\
               kopf.on_create('x', lua_fn)";
    let rhai = "fn rhai_fn(ctx) { kopf.sleep(5); ctx.memo.list.push(2); kopf.sleep(5); ctx.memo.list }\n\
                kopf::on_create(\"x\", rhai_fn);";
    run_paused(async {
        let scripts = [("a.lua", lua), ("b.rhai", rhai)];
        let operator = Operator::of(&scripts, Placement::CurrentRuntime).await;
        let began = Instant::now();
        let both = tokio::join!(operator.call("lua_fn"), operator.call("rhai_fn"));
        assert_eq!(began.elapsed(), Duration::from_secs(10));
        assert_eq!(both, (returned(json!([1, 2])), returned(json!([1, 2]))));
    });
}

#[test]
fn all_errors_of_loading_are_told() {
    run_paused(async {
        let sources = vec![
            Source::alone("a.rhai", "\n  let x = ;"),
            Source::alone("b.rhai", "kopf::on_mutate(1);"),
        ];
        let loaded = ScriptHost::load(sources, Placement::CurrentRuntime).await;
        let told: Vec<_> = loaded.err().expect("wrong").iter().map(ToString::to_string).collect();
        assert!(told[0].starts_with("error: a.rhai:2: "), "{}", told[0]);
        assert!(told[0].ends_with("\n2 |   let x = ;\n  |   ^^^^^^^^^"), "{}", told[0]);
        let expected =
            "error: b.rhai:1: kopf.on_mutate: the last argument must be the handler function";
        assert!(told[1].starts_with(expected), "{}", told[1]);
    });
}
