//! The things that scripts cannot do, and the ways in which they are stopped.

use std::{fs, path::PathBuf, time::Duration};

use kopf::{
    call::{Scripts as _, SharedPatch},
    logic::handlers::outcome::{CallEnd, RaisedKind},
    scripting::{Modules, Placement, Source, Terms},
    settings::Settings,
    telemetry::RestartLabels,
};
use serde_json::json;

use super::{Script, eval, load_error, run, run_paused, sample, try_load};

#[test]
fn dangerous_built_ins_are_gone() {
    let result = eval(
        r"
        return {loadstring == nil, getfenv == nil, setfenv == nil, newproxy == nil, gcinfo == nil, collectgarbage == nil,
            io == nil, os.execute == nil, os.getenv == nil, package == nil}
        ",
    );
    assert_eq!(result, json!(vec![true; 10]));
}

#[test]
fn libraries_are_read_only() {
    assert!(run("string.format = print").raised().message.contains("read-only"));
    assert!(run("kopf.on_create = print").raised().message.contains("read-only"));
    assert!(run("getmetatable('').__index = print").raised().message.contains("read-only"));
}

#[test]
fn a_runaway_call_is_aborted_whatever_it_catches() {
    let bodies = [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "local co = coroutine.wrap(function() while true do end end); co()",
        "table.sort({3, 2, 1}, function() while true do end end)",
    ];
    for body in bodies {
        let raised = run(body).raised();
        assert!(raised.message.contains("used more than 1 s"), "{body}: {}", raised.message);
        assert!(matches!(raised.kind, RaisedKind::Aborted(Some(_))), "{body}");
    }
}

#[test]
fn a_runaway_top_level_is_aborted() {
    let error = load_error("while true do end");
    assert!(error.message.contains("used more than 1 s"), "{}", error.message);
}

#[test]
fn neighbours_go_on_beside_a_runaway_call() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("it");
    runtime.block_on(async {
        let text = r#"
            kopf.on_update("x", {id = "spin"}, function(ctx) while true do end end)
            kopf.on_update("x", {id = "nap"}, function(ctx) for i = 1, 10 do kopf.sleep(0.001) end return "done" end)
        "#;
        let script = try_load(super::source(text), Placement::Threads).await.expect("loads");
        let patch = SharedPatch::default();
        let spin = script.host.call(script.change("spin", &sample(), &patch));
        let nap = script.host.call(script.change("nap", &sample(), &patch));
        tokio::pin!(spin);
        tokio::select! {
            _ = &mut spin => panic!("the nap is shorter"),
            ended = nap => assert_eq!(ended, CallEnd::Returned(Some(json!("done")))),
        }
        assert!(matches!(spin.await, CallEnd::Raised(_)));
        let patch = SharedPatch::default();
        let nap = script.host.call(script.change("nap", &sample(), &patch)).await;
        assert_eq!(nap, CallEnd::Returned(Some(json!("done"))), "the VM lives on");
    });
}

#[test]
fn a_coroutine_of_the_script_is_not_disturbed_by_slices() {
    let result = eval(
        r#"
        local co = coroutine.create(function()
            local n = 0
            for i = 1, 3e6 do n += i % 7 end
            coroutine.yield(n)
            return "end"
        end)
        local ok, first = coroutine.resume(co)
        return {ok, type(first), coroutine.status(co)}
        "#,
    );
    assert_eq!(result, json!([true, "number", "suspended"]));
}

#[test]
fn memory_is_limited() {
    let raised = run("local t = {}; for i = 1, 1e9 do t[i] = {i} end").raised();
    assert_eq!(
        raised.message,
        "the script needs more than 64 MiB of memory (settings.sandbox.memory_limit)"
    );
}

#[test]
fn a_cancelled_call_takes_no_further_step() {
    run_paused(async {
        let text = r#"
            kopf.on_update("x", {id = "slow"}, function(ctx) kopf.sleep(10); ctx.memo.done = true end)
            kopf.on_update("x", {id = "slower"}, function(ctx) kopf.sleep(20); return ctx.memo.done end)
        "#;
        let script = super::load(text).await;
        let patch = SharedPatch::default();
        let call = script.host.call(script.change("slow", &sample(), &patch));
        assert!(tokio::time::timeout(Duration::from_secs(5), call).await.is_err());
        let other = script.host.call(script.change("slower", &sample(), &patch));
        assert_eq!(other.await, CallEnd::Returned(None), "the VM lives on");
        assert!(script.memo.lock().is_empty());
    });
}

#[test]
fn modules_come_from_the_directory_of_the_script_only() {
    let root = directory("modules");
    fs::create_dir_all(root.join("scripts/lib")).expect("directories");
    fs::write(root.join("secret.lua"), "return 'secret'").expect("a file");
    fs::write(
        root.join("scripts/lib/naming.lua"),
        "loads = (loads or 0) + 1\nkopf.sleep(1)\nreturn {name = function() return 'n' .. loads end}",
    )
    .expect("a file");
    fs::write(root.join("scripts/broken.lua"), "\nerror('broken')").expect("a file");
    fs::write(root.join("scripts/cycle.lua"), "return require('cycle')").expect("a file");
    #[cfg(unix)]
    for (target, link) in [("../secret.lua", "leak.lua"), ("lib/naming.lua", "alias.lua")] {
        let link = root.join("scripts").join(link);
        if !link.is_symlink() {
            std::os::unix::fs::symlink(target, link).expect("a link");
        }
    }
    let attempt = |body: &str| {
        let text = format!("kopf.on_update('x', function(ctx) {body} end)");
        let path = root.join("scripts/handlers.lua");
        run_paused(async {
            let modules = Modules::beside(&path);
            let source = Source { name: "scripts/handlers.lua".into(), text, modules };
            let script: Script = try_load(source, Placement::CurrentRuntime).await.expect("loads");
            script.call("update").await
        })
    };
    assert_eq!(
        attempt("return {require('lib.naming').name(), require('lib/naming').name()}").result(),
        json!(["n1", "n1"])
    );
    assert_eq!(attempt("return require('alias').name()").result(), json!("n1"));
    let refused = |body: &str, part: &str| {
        let message = attempt(body).raised().message;
        assert!(message.contains(part), "{body}: {message}");
    };
    refused("require('leak')", "is outside of the script's directory");
    refused("require('../secret')", "outside of the script's directory");
    refused("require('/etc/passwd')", "relative to the script's directory");
    refused("require('nothing')", "module 'nothing' not found");
    refused("require('cycle')", "requires itself");
    let broken = attempt("require('broken')").raised();
    assert_eq!(broken.message, "broken");
    assert!(broken.trace.expect("a trace").starts_with("scripts/broken.lua:2: broken"));
}

/// Returns a directory of this test, next to the build's files.
fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("lua").join(name);
    fs::create_dir_all(&path).expect("a directory");
    path
}

#[test]
fn a_script_that_fills_its_memory_starts_afresh_and_nobody_else_notices() {
    let text = r#"
        kept = "of this VM"
        kopf.on_update("x", {id = "hoard"}, function(ctx)
            kept = {}
            while true do
                pcall(function() for i = #kept + 1, 1e9 do kept[i] = { i } end end)
            end
        end)
        kopf.on_update("x", {id = "nap"}, function(ctx) kopf.sleep(3600) end)
        kopf.on_update("x", {id = "ask"}, function(ctx) return kept end)
    "#;
    run_paused(async {
        let beside = Source::alone(
            "beside.lua",
            "kopf.on_update('x', {id = 'beside'}, function() n = (n or 0) + 1 return n end)",
        );
        let terms = Terms::from(Placement::CurrentRuntime);
        let metrics = terms.metrics.clone();
        let script = super::try_load_all(vec![super::source(text), beside], terms).await;
        let script = script.unwrap_or_else(|it| panic!("{it}"));
        assert_eq!(script.call("beside").await.result(), json!(1));
        let patch = SharedPatch::default();
        let nap = script.host.call(script.change("nap", &sample(), &patch));
        let (hoard, nap) = futures::join!(script.call("hoard"), nap);
        let hoard = hoard.raised();
        assert_eq!(
            hoard.message,
            "the script needs more than 64 MiB of memory (settings.sandbox.memory_limit)"
        );
        assert!(matches!(hoard.kind, RaisedKind::Aborted(Some(_))));
        // Other calls of the VM fail temporarily, with a short delay.
        let CallEnd::Raised(nap) = nap else { panic!("the nap went on: {nap:?}") };
        assert_eq!(nap.kind, RaisedKind::Temporary(Some(Duration::from_secs(1))));
        assert!(nap.message.contains("the call is retried"), "{}", nap.message);
        assert_eq!(script.call("ask").await.result(), json!("of this VM"));
        assert_eq!(
            script.call("beside").await.result(),
            json!(2),
            "the other VM is still the same"
        );
        let labels = RestartLabels { script: "handlers.lua".into(), reason: "memory" };
        assert_eq!(metrics.vm_restarts.get_or_create(&labels).get(), 1);
    });
}

#[test]
fn a_script_that_declares_something_else_each_time_is_not_mistaken_for_itself() {
    let text = r#"
        kopf.on_update("x", {id = "hoard" .. math.random(1e9)}, function(ctx)
            local t = {}
            for i = 1, 1e9 do t[i] = { i } end
        end)
    "#;
    run_paused(async {
        let script = super::load(text).await;
        let id = script.handlers[0].id.to_string();
        assert!(script.call(&id).await.raised().message.contains("memory"));
        let next = script.call(&id).await.raised();
        assert!(
            next.message.contains("declares different handlers on each run"),
            "{}",
            next.message
        );
        assert!(matches!(next.kind, RaisedKind::Temporary(Some(_))));
    });
}

#[test]
fn built_ins_that_look_at_the_time_do_what_the_original_ones_do() {
    let result = eval(
        r#"
        local long, part = string.rep("ab", 60000), string.rep("ab", 100) .. "c"
        local text = long .. "c" .. long .. "." .. part
        local found = { string.find(text, part, 1, true) }
        local again = { text:find(part, found[2] + 1) }
        local none = { text:find(part, -10, true) }
        local parts = string.split(text, string.rep("ab", 100) .. "c")
        local list = {}
        for i = 1, 30000 do list[i] = i end
        table.move(list, 1, 30000, 11)
        local there = table.move(list, 1, 25000, 5)
        local back = table.move(list, 101, 25100, 1, {})
        local sorted = {}
        for i = 1, 150000 do sorted[i] = (i * 7919) % 150001 end
        table.sort(sorted)
        local order = true
        for i = 2, #sorted do order = order and sorted[i - 1] <= sorted[i] end
        local words = { "b", "a", "c" }
        table.sort(words, function(a, b) return a > b end)
        return {
            found, again, #none, #parts, #parts[1], #parts[3],
            { list[1], list[4], list[5], list[14], list[25004], #there, back[1], #back },
            { order, sorted[1], sorted[150000] }, table.concat(words),
        }
        "#,
    );
    assert_eq!(
        result,
        json!([
            [119_801, 120_001],
            [240_003, 240_203],
            0,
            3,
            119_800,
            0,
            [1, 4, 1, 10, 24_990, 30_010, 87, 25_000],
            [true, 1, 150_000],
            "cba"
        ])
    );
}

#[test]
fn coroutines_that_ended_or_are_forgotten_do_not_count() {
    let mut settings = Settings::default();
    settings.sandbox.coroutines = 10;
    let text = r#"
        kopf.on_update("x", {id = "many"}, function(ctx)
            for _ = 1, 1000 do
                coroutine.wrap(function() end)()
                coroutine.resume(coroutine.create(coroutine.yield))
                coroutine.close(coroutine.create(function() end))
            end
            return "fine"
        end)
        kopf.on_update("x", {id = "greedy"}, function(ctx)
            local kept = {}
            for i = 1, 11 do kept[i] = coroutine.create(function() end) end
        end)
    "#;
    run_paused(async {
        let terms = Terms::of(Placement::CurrentRuntime, &settings);
        let script = super::try_load_all(vec![super::source(text)], terms).await;
        let script = script.unwrap_or_else(|it| panic!("{it}"));
        assert_eq!(script.call("many").await.result(), json!("fine"));
        assert_eq!(
            script.call("greedy").await.raised().message,
            "more than 10 coroutines have not finished (settings.sandbox.coroutines)"
        );
    });
}
