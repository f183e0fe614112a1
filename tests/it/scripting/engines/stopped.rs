//! The values that daemons and timers see: the stop flag, and the current object.

use std::{sync::Arc, time::Duration};

use kopf::{
    call::{LiveObject, Scripts as _, Stopped},
    logic::{background::stopping::StopReason, handlers::outcome::CallEnd, object::Object},
    scripting::{Placement, Terms},
    settings::Settings,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::{
    Language::{self, Lua, Rhai},
    run_paused, sample, try_load_all,
};

fn live() -> LiveObject {
    LiveObject::new(Arc::new(Object::from_value(sample())))
}

/// Runs the body of a daemon, which is stopped after 12 s: first with `RESOURCE_DELETED`, then with one more reason.
fn stopped_after_12s((language, body): (Language, &str)) -> (Value, u64) {
    run_paused(async {
        let terms = Terms {
            // In Rhai, operations are counted: less than a daemon computes in total, more than after the stop.
            cpu_limit: Duration::from_millis(if language == Rhai { 10 } else { 1000 }),
            ..Terms::of(Placement::CurrentRuntime, &Settings::default())
        };
        let script = try_load_all(vec![language.script("daemon", body)], terms).await;
        let script = script.unwrap_or_else(|error| panic!("{error}"));
        let (stopped, began) = (Stopped::default(), Instant::now());
        let stopping = async {
            sleep(Duration::from_secs(12)).await;
            stopped.set(StopReason::ResourceDeleted);
            stopped.set(StopReason::DaemonSignalled);
        };
        let call = script.host.call(script.background("daemon", &live(), &stopped));
        let (ended, ()) = tokio::join!(call, stopping);
        match ended {
            CallEnd::Returned(result) => (result.unwrap_or_default(), began.elapsed().as_secs()),
            CallEnd::Keyed(entries) => panic!("{entries:?}"),
            CallEnd::Raised(raised) => panic!("{raised:?}"),
        }
    })
}

#[test]
fn a_wait_ends_with_the_time_or_with_the_stop() {
    for body in [
        (Lua, "local n = 0; while not ctx.stopped:wait(5) do n = n + 1 end; return n"),
        (Rhai, "let n = 0; while !ctx.stopped.wait(5) { n += 1; } n"),
    ] {
        assert_eq!(stopped_after_12s(body), (json!(2), 12));
    }
    for body in [
        (
            Lua,
            "return {ctx.stopped:wait('500ms'), ctx.stopped:wait(0), ctx.stopped:wait(), ctx.stopped:wait()}",
        ),
        (Rhai, "let s = ctx.stopped; [s.wait(`500ms`), s.wait(0), s.wait(()), s.wait()]"),
    ] {
        assert_eq!(stopped_after_12s(body), (json!([false, false, true, true]), 12));
    }
}

#[test]
fn the_flag_is_equal_to_itself_each_time_it_is_read() {
    let body = "ctx.stopped:wait(); return {ctx.stopped == ctx.stopped, ctx.stopped ~= ctx.stopped, ctx.stopped == ctx}";
    assert_eq!(stopped_after_12s((Lua, body)), (json!([true, false, false]), 12));
}

#[test]
fn the_flag_and_its_reasons_can_be_asked() {
    let lua = r#"
        local s = ctx.stopped
        local before = {s(), s:is_set(), s.reason == nil, tostring(s)}
        s:wait()
        local names = {}
        for _, name in ipairs(s.reason) do table.insert(names, name) end
        for _, name in pairs(s.reason) do table.insert(names, name) end
        local has = {s.reason:contains("RESOURCE_DELETED"), s.reason:contains("OPERATOR_EXITING")}
        return {before, {s(), s:is_set(), tostring(s), "stopped: " .. s.reason, #s.reason}, names, has, s.reason, s.reason[2]}
    "#;
    let rhai = r#"
        let s = ctx.stopped;
        let before = [ctx.stopped(), s.is_set(), s.reason == (), `${s}`];
        s.wait();
        let names = [];
        for name in s.reason { names.push(name); }
        for name in s.reason { names.push(name); }
        let has = [s.reason.contains("RESOURCE_DELETED"), "OPERATOR_EXITING" in s.reason];
        [before, [ctx.stopped(), s.is_set(), `${s}`, "stopped: " + s.reason, s.reason.len()], names, has, s.reason, s.reason[1]]
    "#;
    let [one, other] = ["RESOURCE_DELETED", "DAEMON_SIGNALLED"];
    let text = "RESOURCE_DELETED|DAEMON_SIGNALLED";
    let expected = json!([
        [false, false, true, "not stopped"],
        [true, true, text, format!("stopped: {text}"), 2],
        [one, other, one, other],
        [true, false],
        [one, other],
        other,
    ]);
    for body in [(Lua, lua), (Rhai, rhai)] {
        assert_eq!(stopped_after_12s(body), (expected.clone(), 12));
    }
}

#[test]
fn wrong_arguments_are_told() {
    let lua = r#"
        local _, time = pcall(function() ctx.stopped:wait("soon") end)
        ctx.stopped:wait()
        local _, name = pcall(function() ctx.stopped.reason:contains("resource_delete") end)
        return {tostring(time), tostring(name)}
    "#;
    let rhai = r#"
        let told = [];
        try { ctx.stopped.wait("soon"); } catch(e) { told.push(`${e}`); }
        ctx.stopped.wait();
        try { ctx.stopped.reason.contains("resource_delete"); } catch(e) { told.push(`${e}`); }
        told
    "#;
    let time = r#"stopped.wait: expected seconds or a duration such as "10m", got "soon""#;
    let name =
        r#"stopped.reason: there is no reason "resource_delete"; did you mean `RESOURCE_DELETED`?"#;
    for body in [(Lua, lua), (Rhai, rhai)] {
        let (told, _) = stopped_after_12s(body);
        assert!(told[0].as_str().unwrap().ends_with(time), "{told}");
        assert!(told[1].as_str().unwrap().ends_with(name), "{told}");
    }
}

#[test]
fn only_daemons_and_timers_have_it() {
    assert_eq!(Lua.run("return ctx.stopped == nil").result(), json!(true));
    assert_eq!(Rhai.run("ctx.stopped == ()").result(), json!(true));
    let raised = Rhai.run("ctx.stopped()").raised();
    assert_eq!(raised.message, "only daemons and timers have ctx.stopped");
}

#[test]
fn the_object_is_seen_as_it_is_at_the_moment() {
    let lua = r"
        local seen = {}
        for i = 1, 2 do
            local same = ctx.spec == ctx.spec and ctx.memo == ctx.memo
            table.insert(seen, {ctx.spec.size, ctx.body.spec.size, ctx.labels.app, ctx.meta.labels.app, same})
            kopf.sleep(10)
        end
        ctx.patch.status.seen = #seen
        table.insert(seen, {ctx.old == nil, ctx.new == nil, ctx.diff == nil, ctx.reason == nil, ctx.retry, ctx.resource.plural})
        return seen
    ";
    let rhai = r"
        let seen = [];
        for i in 0..2 {
            let same = ctx.spec == ctx.spec && ctx.memo == ctx.memo;
            seen.push([ctx.spec.size, ctx.body.spec.size, ctx.labels.app, ctx.meta.labels.app, same]);
            kopf.sleep(10);
        }
        ctx.patch.status.seen = seen.len();
        seen.push([ctx.old == (), ctx.new_value == (), ctx.diff == (), ctx.reason == (), ctx.retry, ctx.resource.plural]);
        seen
    ";
    for (language, body) in [(Lua, lua), (Rhai, rhai)] {
        run_paused(async {
            let (script, live) = (language.load("daemon", body).await, live());
            let call = script.host.call(script.background("daemon", &live, &Stopped::default()));
            let change = async {
                sleep(Duration::from_secs(5)).await;
                let mut body = sample();
                body["spec"]["size"] = json!(3);
                body["metadata"]["labels"]["app"] = json!("new");
                live.set(&Arc::new(Object::from_value(body)));
            };
            let (ended, ()) = tokio::join!(call, change);
            let expected = json!([
                [2, 2, "demo", "demo", true],
                [3, 3, "new", "new", true],
                [true, true, true, true, 3, "kopfexamples"],
            ]);
            assert_eq!(ended, CallEnd::Returned(Some(expected)), "{language:?}");
        });
    }
}

#[test]
fn a_dropped_daemon_ends_at_its_wait() {
    for (language, body) in [
        (Lua, "ctx.memo.at = 1; ctx.stopped:wait(); ctx.memo.at = 2"),
        (Rhai, "ctx.memo.at = 1; ctx.stopped.wait(); ctx.memo.at = 2;"),
    ] {
        run_paused(async {
            let script = language.load("daemon", body).await;
            let stopped = Stopped::default();
            let call = script.host.call(script.background("daemon", &live(), &stopped));
            timeout(Duration::from_secs(5), call).await.unwrap_err();
            stopped.set(StopReason::OperatorExiting);
            sleep(Duration::from_secs(5)).await;
            assert_eq!(script.memo.lock()["at"], json!(1), "{language:?}");
        });
    }
}

#[test]
fn waiting_pays_back_computing() {
    // Each turn computes for a part of the limit of a call; all of them together for much longer.
    let lua = r"
        for i = 1, 25 do
            local began = os.clock()
            while os.clock() - began < 0.05 do end
            ctx.stopped:wait(1)
        end
        return true
    ";
    let rhai = "for i in 0..25 { let n = 0; while n < 1000 { n += 1; } ctx.stopped.wait(1); } true";
    for body in [(Lua, lua), (Rhai, rhai)] {
        assert_eq!(stopped_after_12s(body).0, json!(true));
    }
}
