//! What scripts cannot do, and how they are stopped.

use std::{fs, path::PathBuf, time::Duration};

use kopf::{
    logic::outcome::{Ended, RaisedKind},
    ports::{Scripts as _, SharedPatch},
    scripting::{Modules, Placement, Source},
};
use serde_json::json;

use super::{Script, eval, load_error, on_paused_clock, run, sample, try_load};

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
        assert!(raised.message.contains("ran for more than 1 s"), "{body}: {}", raised.message);
        assert!(matches!(raised.kind, RaisedKind::Temporary(Some(_))), "{body}");
    }
}

#[test]
fn a_runaway_top_level_is_aborted() {
    let error = load_error("while true do end");
    assert!(error.message.contains("ran for more than 1 s"), "{}", error.message);
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
            ended = nap => assert_eq!(ended, Ended::Returned(Some(json!("done")))),
        }
        assert!(matches!(spin.await, Ended::Raised(_)));
        let patch = SharedPatch::default();
        let nap = script.host.call(script.change("nap", &sample(), &patch)).await;
        assert_eq!(nap, Ended::Returned(Some(json!("done"))), "the VM lives on");
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
    assert_eq!(raised.message, "the script needs more than 64 MiB of memory");
}

#[test]
fn a_cancelled_call_takes_no_further_step() {
    on_paused_clock(async {
        let script = super::load(
            "kopf.on_update('x', {id = 'slow'}, function(ctx) kopf.sleep(10); ctx.memo.done = true end)",
        )
        .await;
        let patch = SharedPatch::default();
        let call = script.host.call(script.change("slow", &sample(), &patch));
        assert!(tokio::time::timeout(Duration::from_secs(5), call).await.is_err());
        tokio::time::sleep(Duration::from_mins(1)).await;
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
        on_paused_clock(async {
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
    refused("require('leak')", "leads out of the script's directory");
    refused("require('../secret')", "outside of the script's directory");
    refused("require('/etc/passwd')", "relative to the script's directory");
    refused("require('nothing')", "module 'nothing' not found");
    refused("require('cycle')", "requires itself");
    let broken = attempt("require('broken')").raised();
    assert_eq!(broken.message, "broken");
    assert!(broken.trace.expect("a trace").starts_with("scripts/broken.lua:2: broken"));
}

/// A directory of this test, beside the build's own files.
fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("lua").join(name);
    fs::create_dir_all(&path).expect("a directory");
    path
}
