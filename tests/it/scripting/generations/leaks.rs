//! Thousands of reloads leak nothing.

use std::{
    collections::VecDeque,
    env,
    sync::{Arc, Weak},
    time::Duration,
};

use kopf::{
    call::{Children, Invocation, Scripts as _},
    logic::handlers::handler::Handler,
    scripting::{Placement, Source},
};
use serde_json::json;
use tokio::task::JoinHandle;

use super::{Stage, invocation, is_gone, result, run_paused};

/// The number of running calls at any time, each of another generation.
const IN_FLIGHT: usize = 20;

/// Returns a script that is hard to free: it keeps its `ctx`, declares sub-handlers, patches, waits.
fn source(language: &str, round: usize, seconds: f64) -> Source {
    let text = match language {
        "lua" => format!(
            "ALL = {{}}
            kopf.on_create('kex', {{ id = 'it', when = function() return true end }}, function(ctx)
                ALL[#ALL + 1] = ctx
                kopf.subhandler({{ id = 'sub' }}, function() return ctx.name end)
                ctx.patch.fns:append(function(body) body.x = ctx.name end)
                kopf.sleep({seconds:?})
                return {round}
            end)"
        ),
        _ => format!(
            "let ALL = [];
            kopf::on_create(`kex`, #{{ id: `it`, when: || true }}, |ctx| {{
                ALL.push(ctx);
                kopf.subhandler(#{{ id: `sub` }}, || ctx.name);
                ctx.patch.fns.append(|body| body.x = ctx.name);
                kopf.sleep({seconds:?});
                {round}
            }});"
        ),
    };
    Source::alone(format!("it.{language}"), text)
}

/// A call of one generation, and a weak reference to its virtual machine.
struct Running {
    round: usize,
    call: JoinHandle<serde_json::Value>,
    probe: Weak<Invocation>,
}

impl Running {
    fn start(stage: &Stage, round: usize, handler: Arc<Handler>) -> Self {
        let (children, orders) = Children::of(Arc::clone(&handler));
        let (about, patch) = invocation(&handler, Some(children));
        let probe = Arc::downgrade(&about);
        let call = stage.host.call(about);
        let call = tokio::task::spawn_local(async move {
            let ended = result(call.await);
            // As in the reactor.
            drop((orders, handler, std::mem::take(&mut *patch.lock())));
            ended
        });
        Running { round, call, probe }
    }

    async fn end(self) -> Weak<Invocation> {
        assert_eq!(self.call.await.expect("no panic"), json!(self.round), "of its own generation");
        self.probe
    }
}

/// Reloads a script `rounds` times, with running calls of several generations.
pub(super) async fn reload(language: &str, rounds: usize, placement: Placement) {
    let seconds = match placement {
        Placement::Threads => 0.02,
        Placement::CurrentRuntime => 10.0,
    };
    let mut stage = Stage::new(placement);
    let mut running = VecDeque::new();
    let mut probes = Vec::new();
    for round in 0..rounds {
        drop(stage.take(&[source(language, round, seconds)]).await);
        running.push_back(Running::start(&stage, round, stage.handler("it")));
        if running.len() > IN_FLIGHT {
            let oldest = running.pop_front().expect("there are some");
            probes.push(oldest.end().await);
        }
        if round % 100 == 0 {
            // A generation that is never taken is freed as well.
            drop(stage.prepare(&[source(language, rounds, seconds)]).await);
            assert!(
                stage.prepare(&[Source::alone(format!("no.{language}"), "no(")]).await.is_err()
            );
        }
        assert!(stage.host.live_scripts() <= IN_FLIGHT + 2, "{}", stage.host.live_scripts());
    }
    drop(stage.take(&[]).await);
    for running in running {
        probes.push(running.end().await);
    }
    assert_eq!(stage.host.live_scripts(), 0);
    assert_eq!(probes.len(), rounds);
    for probe in probes {
        assert!(is_gone(probe).await, "every virtual machine is freed");
    }
}

/// Starts to load a script that never finishes, and cancels the load.
pub(super) async fn abandon(language: &str) {
    let stage = Stage::new(Placement::Threads);
    let endless = Source::alone(format!("endless.{language}"), "kopf.sleep(1000000)");
    let prepared = stage.prepare(std::slice::from_ref(&endless));
    let waited = tokio::time::timeout(Duration::from_millis(50), prepared).await;
    assert!(waited.is_err(), "it takes for ever");
}

/// Returns the number of reloads: a thousand, or `KOPF_TEST_RELOADS`. 10,000 take more than a minute in a debug build.
#[expect(clippy::disallowed_methods, reason = "the tests are the outermost layer")]
fn rounds() -> usize {
    env::var("KOPF_TEST_RELOADS").ok().and_then(|it| it.parse().ok()).unwrap_or(1000)
}

#[test]
fn a_thousand_reloads_of_lua_leave_nothing_behind() {
    run_paused(reload("lua", rounds(), Placement::CurrentRuntime));
}

#[test]
fn a_thousand_reloads_of_rhai_leave_nothing_behind() {
    run_paused(reload("rhai", rounds(), Placement::CurrentRuntime));
}
