//! References that keep an old generation alive, and those that do not.

use std::sync::Arc;

use kopf::{
    call::{Children, Scripts as _},
    logic::{
        change::{
            filters::{Place, Question},
            patch::Transformation,
        },
        handlers::{
            handler::{Callback, Handler, InitialDelay},
            outcome::CallEnd,
        },
    },
    scripting::{Placement, Source},
};
use serde_json::{Value, json};
use tokio::time::{Duration, timeout};

use super::{Both, Stage, invocation, is_gone, result, run_paused};

const SLOW: Both = Both {
    lua: "kopf.on_create('kex', { id = 'slow' }, function() kopf.sleep(60) return 'old' end)",
    rhai: "kopf::on_create(`kex`, #{ id: `slow` }, || { kopf.sleep(60); `old` });",
};
/// A part of the time that the call takes.
const PART: Duration = Duration::from_secs(1);

#[test]
fn a_call_ends_where_it_began_and_then_its_generation_goes() {
    run_paused(async {
        for source in SLOW.sources("slow") {
            let mut stage = Stage::new(Placement::CurrentRuntime);
            stage.take(&[source]).await;
            let handler = stage.handler("slow");
            let mut call = Box::pin(stage.call(&handler));
            assert!(timeout(PART, &mut call).await.is_err(), "it sleeps");
            drop(stage.take(&[]).await);
            assert!(timeout(PART, &mut call).await.is_err(), "it sleeps on");
            assert_eq!(stage.host.live_scripts(), 1, "not before its last call ends");
            assert_eq!(result(call.await), json!("old"));
            assert_eq!(stage.host.live_scripts(), 1, "somebody has its function");
            drop(handler);
            assert_eq!(stage.host.live_scripts(), 0);
        }
    });
}

#[test]
fn a_call_that_nobody_waits_for_any_more_keeps_nothing() {
    run_paused(async {
        for source in SLOW.sources("slow") {
            let mut stage = Stage::new(Placement::CurrentRuntime);
            stage.take(&[source]).await;
            let (about, _) = invocation(&stage.handler("slow"), None);
            let probe = Arc::downgrade(&about);
            let call = stage.host.call(about);
            assert!(timeout(PART, call).await.is_err(), "it sleeps");
            drop(stage.take(&[]).await);
            assert_eq!(stage.host.live_scripts(), 0);
            assert!(is_gone(probe).await);
        }
    });
}

#[test]
fn a_script_that_holds_on_to_its_ctx_does_not_keep_itself() {
    let greedy = Both {
        lua: "ALL = {}
            kopf.on_create('kex', { id = 'greedy' }, function(ctx)
                table.insert(ALL, ctx)
                table.insert(ALL, ctx.patch)
                ctx.patch.fns:append(function(body) body.x = ctx.name end)
                kopf.subhandler({ id = 'sub' }, function() return ctx.name end)
                return #ALL
            end)",
        rhai: "let ALL = [];
            kopf::on_create(`kex`, #{ id: `greedy` }, |ctx| {
                ALL.push(ctx);
                ALL.push(ctx.patch);
                ctx.patch.fns.append(|body| body.x = ctx.name);
                kopf.subhandler(#{ id: `sub` }, || ctx.name);
                ALL.len()
            });",
    };
    run_paused(async {
        for source in greedy.sources("greedy") {
            let name = source.name.clone();
            let mut stage = Stage::new(Placement::CurrentRuntime);
            stage.take(&[source]).await;
            let handler = stage.handler("greedy");
            let (children, orders) = Children::of(Arc::clone(&handler));
            let (about, patch) = invocation(&handler, Some(children));
            let probe = Arc::downgrade(&about);
            assert_eq!(result(stage.host.call(about).await), json!(2), "{name}");
            assert_eq!(orders.declared().len(), 1);
            assert_eq!(std::mem::take(&mut *patch.lock()).transformations.len(), 1);
            let again = invocation(&handler, Some(Children::of(Arc::clone(&handler)).0)).0;
            assert_eq!(result(stage.host.call(again).await), json!(4), "{name}: it holds on to it");
            assert!(probe.strong_count() > 0, "{name}: it holds on to it");
            drop((orders, handler, stage.take(&[]).await));
            assert_eq!(stage.host.live_scripts(), 0, "{name}");
            assert!(is_gone(probe).await, "{name}: its virtual machine is freed");
        }
    });
}

#[test]
fn sub_handlers_run_where_their_parent_did() {
    let parent = Both {
        lua: "kopf.on_create('kex', { id = 'parent' }, function(ctx)
                kopf.subhandler({ id = 'sub' }, function() return 'of ' .. ctx.name end)
            end)",
        rhai: "kopf::on_create(`kex`, #{ id: `parent` }, |ctx| {
                kopf.subhandler(#{ id: `sub` }, || `of ${ctx.name}`);
            });",
    };
    run_paused(async {
        for source in parent.sources("parent") {
            let mut stage = Stage::new(Placement::CurrentRuntime);
            stage.take(&[source]).await;
            let (about, orders) = {
                let handler = stage.handler("parent");
                let (children, orders) = Children::of(Arc::clone(&handler));
                (invocation(&handler, Some(children)).0, orders)
            };
            stage.host.call(about).await;
            drop(stage.take(&[]).await);
            let sub = Arc::clone(&orders.declared()[0]);
            assert_eq!(stage.result(&sub).await, json!("of one"));
            drop(orders);
            let CallEnd::Raised(raised) = stage.call(&sub).await else { panic!("it is gone") };
            assert_eq!(raised.message, "the script of this function is not loaded");
            assert_eq!(stage.host.live_scripts(), 0);
        }
    });
}

#[test]
fn a_function_that_a_patch_waits_with_can_be_kept() {
    let patching = Both {
        lua: "kopf.on_create('kex', { id = 'patch' }, function(ctx)
                ctx.patch.fns:append(function(body) body.seen = ctx.name end)
            end)",
        rhai: "kopf::on_create(`kex`, #{ id: `patch` }, |ctx| {
                ctx.patch.fns.append(|body| body.seen = ctx.name);
            });",
    };
    run_paused(async {
        for source in patching.sources("patch") {
            let mut stage = Stage::new(Placement::CurrentRuntime);
            stage.take(&[source]).await;
            let (about, patch) = invocation(&stage.handler("patch"), None);
            stage.host.call(about).await;
            let taken = std::mem::take(&mut *patch.lock());
            let [Transformation::Scripted(function)] = &taken.transformations[..] else {
                panic!("one function")
            };
            let kept = stage.host.keep(function.clone());
            drop(stage.take(&[]).await);
            let changed = stage.host.transform(kept.clone(), json!({})).await;
            assert_eq!(changed, Ok(json!({ "seen": "one" })));
            drop(kept);
            assert_eq!(stage.host.live_scripts(), 0);
            assert!(stage.host.transform(function.clone(), json!({})).await.is_err());
        }
    });
}

#[test]
fn every_function_of_a_declaration_keeps_the_script() {
    let rich = Both {
        lua: "kopf.set_default_lifecycle(function(handlers) return handlers end)
            kopf.daemon(function(resource) return true end, {
                id = 'rich',
                when = kopf.all_(function() return true end),
                labels = { x = function(value) return value == 'y' end },
                initial_delay = function() return 5 end,
            }, function() end)",
        rhai: "kopf.set_default_lifecycle(|handlers| handlers);
            kopf::daemon(|resource| true, #{
                id: `rich`,
                when: kopf.all_(|| true),
                labels: #{ x: |value| value == `y` },
                initial_delay: || 5,
            }, || ());",
    };
    run_paused(async {
        for source in rich.sources("rich") {
            let name = source.name.clone();
            let mut stage = Stage::new(Placement::CurrentRuntime);
            let prepared = stage.prepare(&[source]).await.expect("it loads");
            let handler = Arc::new(prepared.handlers[0].clone());
            let Handler { selector, filters, background, .. } = (*handler).clone();
            drop(prepared);
            let inside = handler.for_scripts();
            drop(handler);
            assert_eq!(stage.host.live_scripts(), 1, "{name}");
            let selecting = selector.and_then(|it| it.function).expect("a function");
            let when = match filters.when {
                Some(Callback::All(all)) => all.into_iter().next(),
                other => panic!("{other:?}"),
            };
            let Some(Callback::Function(when)) = when else { panic!("a function") };
            let Some(InitialDelay::Computed(delay)) = background.initial_delay else {
                panic!("a function")
            };
            drop(filters.labels);
            drop(stage.take(&[]).await);
            let about = invocation(&inside, None).0;
            let resource = Arc::default();
            assert_eq!(stage.host.choose(selecting.clone(), resource).await, Ok(true));
            drop(selecting);
            let question =
                Question { function: when.clone(), about: None, place: Box::new(Place::Object) };
            assert_eq!(stage.host.ask(question, Arc::clone(&about)).await, Ok(true));
            drop(when);
            let computed = stage.host.compute(delay.clone(), None, about).await;
            assert_eq!(computed.as_ref().ok().and_then(Value::as_f64), Some(5.0));
            assert_eq!(stage.host.live_scripts(), 1, "{name}");
            drop(delay);
            assert_eq!(stage.host.live_scripts(), 0, "{name}: what is inside does not keep it");
        }
    });
}

#[test]
fn what_is_loaded_does_not_wait_for_what_runs_nor_the_other_way_round() {
    run_paused(async {
        let mut stage = Stage::new(Placement::CurrentRuntime);
        stage.take(&SLOW.sources("slow")).await;
        let handlers = stage.handlers.clone();
        let sleeping = |index: usize| stage.call(&handlers[index]);
        let waiting = Source::alone("waiting.lua", "kopf.sleep(20)");
        let prepare = stage.prepare(std::slice::from_ref(&waiting));
        let began = tokio::time::Instant::now();
        let (one, other, prepared) = tokio::join!(sleeping(0), sleeping(1), prepare);
        assert_eq!((result(one), result(other)), (json!("old"), json!("old")));
        assert!(prepared.is_ok());
        assert_eq!(began.elapsed(), Duration::from_mins(1));
    });
}
