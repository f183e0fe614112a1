//! `kopf status`, `kopf retry`, `kopf release` and `kopf crds`, on the server of `kopf dev`.

use std::process::Output;

use tokio::process::Command;

use super::{Desk, OBJECT};
use crate::e2e::{operator::Operator, until};
use crate::ports::free_port;

const LUA: &str = "
kopf.on_create('kopfexamples', { id = 'made' }, function(ctx)
    if ctx.labels.fixed then ctx.logger:info('made at last') else kopf.fail('not fixed') end
end)
kopf.on_update('kopfexamples', { id = 'later' }, function(ctx)
    if ctx.retry == 0 then kopf.retry('not yet', 600) end
    ctx.logger:info('updated at last')
end)
kopf.on_delete('kopfexamples', { id = 'gone' }, function() end)
";

const RHAI: &str = "
kopf::on_create(\"kopfexamples\", #{ id: \"made\" }, |ctx| {
    if \"fixed\" in ctx.labels { ctx.logger.info(\"made at last\"); } else { kopf.fail(\"not fixed\"); }
});
kopf::on_update(\"kopfexamples\", #{ id: \"later\" }, |ctx| {
    if ctx.retry == 0 { kopf.retry(\"not yet\", 600); }
    ctx.logger.info(\"updated at last\");
});
kopf::on_delete(\"kopfexamples\", #{ id: \"gone\" }, |ctx| {});
";

/// Runs `kopf` with these arguments, on the server of the directory.
async fn kopf(desk: &Desk, args: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kopf"));
    command.env_clear().env("KUBECONFIG", desk.kubeconfig()).args(args.split_whitespace());
    command.output().await.expect("kopf runs")
}

/// Returns the standard output of a success.
async fn fine(desk: &Desk, args: &str) -> String {
    let output = kopf(desk, args).await;
    let (out, problems) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{args}: {out}{problems}");
    assert_eq!(problems, "", "{args}");
    out.into_owned()
}

/// Returns the standard error of a failure with this code. Nothing else is printed.
async fn refused(desk: &Desk, args: &str, code: i32) -> String {
    let output = kopf(desk, args).await;
    assert_eq!(output.status.code(), Some(code), "{args}: {output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{args}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Waits until `kopf status` contains this: an operator logs an outcome before it records it on the object.
async fn until_status(desk: &Desk, text: &str) {
    until(text, async || {
        let status = fine(desk, "status kopfexamples").await;
        if status.contains(text) { Ok(()) } else { Err(status) }
    })
    .await;
}

async fn tells_of_failures_and_retries_them(name: &str, script: &str) {
    let desk = Desk::new(&format!("verbs-{name}"));
    desk.file(name, script);
    desk.file("object.yaml", OBJECT);
    let operator = desk.start(&format!("{name} --apply object.yaml")).await;
    operator.until_says("'made' failed permanently (attempt 1): not fixed").await;
    until_status(&desk, "1 objects: 1 failed, 0 retrying").await;
    let status = fine(&desk, "status kopfexamples").await;
    assert!(status.contains("made     failed") && status.contains("not fixed"), "{status}");
    assert!(status.ends_with("1 objects: 1 failed, 0 retrying\n"), "{status}");
    let dry = fine(&desk, "retry kopfexamples/one --dry-run").await;
    assert_eq!(dry, "kopfexamples/one -n default would be retried: made\n");
    // A retry without a change fails again, for the same reason.
    let retried = fine(&desk, "retry kopfexample/one").await;
    assert_eq!(retried, "kopfexamples/one -n default retried: made\n");
    operator.until_says("its retry was requested").await;
    operator.until_says_times("'made' failed permanently", 2).await;
    let fixed = OBJECT.replace("name: one", "name: one\n  labels: { fixed: \"yes\" }");
    desk.file("object.yaml", &fixed);
    operator.until_says("'later' failed temporarily (attempt 1), retrying in 600 s").await;
    until_status(&desk, "1 failed, 1 retrying").await;
    let all = fine(&desk, "retry kopfexamples --failed").await;
    assert!(all.contains("later") && all.contains("made"), "{all}");
    operator.until_says("updated at last").await;
    operator.until_says("made at last").await;
    let status = fine(&desk, "status kopfexamples.kopf.dev -A -o json").await;
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!(status["objects"][0]["name"], "one");
    let ended = operator.stop().await;
    ended.assert_code(0);
}

#[tokio::test]
async fn failures_are_listed_and_retried_for_lua() {
    tells_of_failures_and_retries_them("handlers.lua", LUA).await;
}

#[tokio::test]
async fn failures_are_listed_and_retried_for_rhai() {
    tells_of_failures_and_retries_them("handlers.rhai", RHAI).await;
}

#[tokio::test]
async fn objects_are_released_and_bad_input_changes_nothing() {
    let desk = Desk::new("verbs-release");
    desk.file("handlers.lua", LUA);
    desk.file("object.yaml", OBJECT);
    let operator = desk.start("handlers.lua --apply object.yaml").await;
    until_status(&desk, "1 failed").await;
    let dry = fine(&desk, "release kopfexamples --all --dry-run").await;
    assert_eq!(dry, "kopfexamples/one -n default would be released\n");
    assert!(fine(&desk, "status kopfexamples").await.contains("not fixed"), "nothing has changed");
    for (args, code, told) in [
        ("retry kopfexamples", 2, "error: a name or --failed is required\nhint: "),
        ("retry kopfexamples/one --failed", 2, "error: --failed is for a kind\nhint: "),
        (
            "retry kopfexamples/none",
            1,
            "error: kopfexamples/none does not exist in the namespace 'default'\nhint: ",
        ),
        ("retry unicorns/one", 1, "error: the cluster has no resource 'unicorns'"),
        ("retry a/b/c", 2, "error: 'a/b/c' is not an object\nhint: "),
        (
            "retry namespaces/default",
            1,
            "error: namespaces/default has no handler to retry\nhint: ",
        ),
        ("release kopfexamples", 2, "error: a name or --all is required\nhint: "),
        (
            "release kopfexamples/one -A",
            2,
            "error: -A cannot be used with the name of an object\nhint: ",
        ),
        ("crds unicorns", 2, "error: there are no CRDs 'unicorns'\nhint: "),
        ("status kopfexamples --context none", 1, "error: "),
    ] {
        let text = refused(&desk, args, code).await;
        assert!(text.starts_with(told), "{args}: {text}");
    }
    assert!(fine(&desk, "crds").await.contains("clusterkopfpeerings.kopf.dev"));
    assert!(fine(&desk, "version").await.starts_with("kopf, version "));
    let released = fine(&desk, "release kopfexamples/one").await;
    assert_eq!(released, "kopfexamples/one -n default released\n");
    let ended = operator.stop().await;
    ended.assert_code(0);
}

#[tokio::test]
async fn the_crd_and_the_object_next_to_the_scripts_are_used_and_the_end_is_announced() {
    let desk = Desk::new("beside");
    let mut command = Command::new(env!("CARGO_BIN_EXE_kopf"));
    let made = command.env_clear().args(["init", "it"]).current_dir(desk.path(""));
    assert!(made.output().await.expect("kopf runs").status.success());
    let operator = desk.start("it").await;
    operator.until_says("it/crd.yaml").await;
    operator.until_says("it/object.yaml").await;
    let ended = operator.stop().await;
    ended.assert_code(0);
    ended.assert_count("serving a permissive one", 0);
    ended.assert_count("Stopped.", 1);
}

/// Messages and names of handlers that would forge lines, or erase some from a terminal.
const HOSTILE: &str = r#"
kopf.on_create('kopfexamples', { id = 'made' }, function(ctx)
    kopf.fail("broken\n[2026-01-01 00:00:00,000] objects    [ERROR   ] forged\r\27[2J\27]0;title\7\u{9b}2J")
end)
"#;

/// Returns whether a terminal would interpret a string instead of showing it.
fn moves_the_cursor(text: &str) -> bool {
    text.chars().any(|it| it.is_control() && !matches!(it, '\n' | '\t'))
}

#[tokio::test]
async fn messages_of_scripts_neither_forge_lines_nor_move_the_cursor() {
    let desk = Desk::new("verbs-hostile");
    desk.file("handlers.lua", HOSTILE);
    desk.file("object.yaml", OBJECT);
    let operator = desk.start("handlers.lua --apply object.yaml").await;
    until_status(&desk, "1 failed").await;
    for args in [
        "status kopfexamples",
        "status kopfexamples -o json",
        "retry kopfexamples/one",
        "suspend kopfexamples/one --message \u{1b}[2J",
        "status kopfexamples/one",
        "unsuspend kopfexamples --all",
        "release kopfexamples/one --dry-run",
    ] {
        let text = fine(&desk, args).await;
        assert!(!moves_the_cursor(&text) && !text.is_empty(), "{args}: {text:?}");
        assert!(text.lines().all(|it| !it.starts_with("[2026-01-01")), "{args}: {text}");
    }
    for args in [
        "status \u{1b}[2Jx",
        "status kopfexamples/\u{9b}2J",
        "status x -n \u{1b}[2J",
        "crds \u{1b}[2J",
        "logs \u{1b}[2J",
        "logs --since \u{1b}[2J",
        "status kopfexamples --context \u{1b}[2J",
    ] {
        let output = kopf(&desk, args).await;
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && !moves_the_cursor(&text), "{args:?}: {text:?}");
    }
    let ended = operator.stop().await;
    assert!(!moves_the_cursor(&ended.output), "{:?}", ended.output);
    assert!(ended.output.lines().all(|it| !it.starts_with("[2026-01-01")), "{}", ended.output);
}

#[tokio::test]
async fn a_watched_status_is_printed_again_when_it_changes() {
    let desk = Desk::new("verbs-watch");
    desk.file("handlers.lua", LUA);
    let operator = desk.start("handlers.lua").await;
    let mut command = Command::new(env!("CARGO_BIN_EXE_kopf"));
    command.env_clear().env("KUBECONFIG", desk.kubeconfig());
    let watch = Operator::start(command.args(["status", "kopfexamples", "--watch"]));
    watch.until_says("0 objects: 0 failed, 0 retrying").await;
    desk.file("object.yaml", OBJECT);
    let client = super::client(&desk.kubeconfig()).await;
    let object: serde_json::Value = serde_json::json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": { "name": "one" },
    });
    let request = http::Request::post("/apis/kopf.dev/v1/namespaces/default/kopfexamples");
    let request =
        request.header("content-type", "application/json").body(object.to_string().into_bytes());
    client.request::<serde_json::Value>(request.expect("a request")).await.expect("an object");
    watch.until_says("1 objects: 1 failed, 0 retrying").await;
    let ended = watch.stop().await;
    ended.assert_code(0);
    ended.assert_count("0 objects: 0 failed, 0 retrying", 1);
    assert!(!ended.output.contains('\u{1b}'), "a pipe is no screen");
    operator.stop().await.assert_code(0);
}

/// A Pod of an operator, with the labels of `kopf manifests`.
const POD: &str = "\
apiVersion: v1
kind: Pod
metadata:
  name: my-operator-1
  labels: { app.kubernetes.io/name: my-operator, app.kubernetes.io/managed-by: kopf }
spec:
  containers: [{ name: operator, image: kopf }]
";

#[tokio::test]
async fn the_log_of_an_operator_is_found_by_its_labels() {
    let desk = Desk::new("verbs-logs");
    desk.file("handlers.lua", LUA);
    desk.file("pod.yaml", POD);
    let operator = desk.start("handlers.lua --apply pod.yaml").await;
    for args in ["logs my-operator", "logs", "logs -l app.kubernetes.io/name=my-operator --tail 5"]
    {
        until("the server has started the Pod", async || {
            let output = kopf(&desk, args).await;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let is_shown = output.status.success() && !text.is_empty();
            if is_shown { Ok(()) } else { Err(format!("{args}: {output:?}")) }
        })
        .await;
    }
    let none = refused(&desk, "logs other", 1).await;
    let expected = "error: no pod with the labels app.kubernetes.io/name=other in the namespace 'default'\nhint: ";
    assert!(none.starts_with(expected), "{none}");
    assert!(
        refused(&desk, "logs --since soon", 2)
            .await
            .starts_with("error: --since: not a duration: 'soon'\nhint: ")
    );
    operator.stop().await.assert_code(0);
}

#[tokio::test]
async fn the_scripts_of_a_running_operator_are_listed_with_what_they_use() {
    let desk = Desk::new("verbs-scripts");
    desk.file("first.lua", LUA);
    desk.file("second.rhai", "kopf::on_event(\"kopfexamples\", |ctx| {});");
    desk.file("object.yaml", OBJECT);
    let port = free_port();
    let args = format!("first.lua second.rhai --apply object.yaml --health 127.0.0.1:{port}");
    let operator = desk.start(&args).await;
    until_status(&desk, "1 failed").await;
    let table = fine(&desk, &format!("status http://127.0.0.1:{port}")).await;
    let rows: Vec<Vec<&str>> = table.lines().map(|it| it.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["SCRIPT", "SHA256", "MEMORY", "LIMIT", "CPU"]);
    assert_eq!([rows[1][0], rows[2][0]], ["first.lua", "second.rhai"]);
    assert!(table.contains("\ngeneration 0, ") || table.contains("\ngeneration 1, "), "{table}");
    let json = fine(&desk, &format!("status http://127.0.0.1:{port} -o json")).await;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let script = &json["scripts"][0];
    assert_eq!(script["sha256"].as_str().map(str::len), Some(64));
    assert!(script["memory_bytes"].as_u64() > Some(10_000), "{json}");
    assert!(script["memory_bytes"].as_u64() < script["memory_limit_bytes"].as_u64(), "{json}");
    assert!(script["cpu_seconds"].as_f64() > Some(0.0), "{json}");
    operator.stop().await.assert_code(0);
    let gone = refused(&desk, &format!("status http://127.0.0.1:{port}"), 1).await;
    assert!(
        gone.starts_with("error: cannot read http://127.0.0.1:") && gone.contains("\nhint: "),
        "{gone}"
    );
    for (args, told) in [
        ("status https://a", "error: 'https://a' is not the address of an operator\nhint: "),
        ("status http://a --watch", "error: --watch is for objects, not for an operator\nhint: "),
    ] {
        let text = refused(&desk, args, 2).await;
        assert!(text.starts_with(told), "{args}: {text}");
    }
}

/// The commands that change objects or read them, each with an object.
const VERBS: [&str; 5] = ["status", "retry", "suspend", "unsuspend", "release"];

#[tokio::test]
async fn bad_input_of_each_verb_is_one_line_with_a_hint_and_changes_nothing() {
    let desk = Desk::new("verbs-bad-input");
    desk.file("handlers.lua", LUA);
    desk.file("object.yaml", OBJECT);
    let operator = desk.start("handlers.lua --apply object.yaml").await;
    until_status(&desk, "1 failed").await;
    let before = fine(&desk, "status kopfexamples -o json").await;
    for verb in VERBS {
        for (target, code, told) in [
            (
                "kopfexamples/none",
                1,
                "error: kopfexamples/none does not exist in the namespace 'default'\nhint: ",
            ),
            ("unicorns/one", 1, "error: the cluster has no resource 'unicorns'"),
            (
                "kopfexamples/one -A",
                2,
                "error: -A cannot be used with the name of an object\nhint: ",
            ),
            (
                "kopfexamples/one -n other",
                1,
                "error: kopfexamples/one does not exist in the namespace 'other'\nhint: ",
            ),
            ("kopfexamples/one --context none", 1, "error: "),
            ("a/b/c", 2, "error: "),
        ] {
            let text = refused(&desk, &format!("{verb} {target}"), code).await;
            assert!(text.starts_with(told) && text.lines().count() <= 2, "{verb} {target}: {text}");
        }
    }
    // A kind that no operator handles.
    for (args, told) in [
        ("retry namespaces/default", "error: namespaces/default has no handler to retry\nhint: "),
        ("retry namespaces/default --all", "error: namespaces/default has never been handled\n"),
        (
            "suspend namespaces/default",
            "error: no operator has ever handled namespaces/default\nhint: --force ",
        ),
        ("unsuspend namespaces/default", "error: namespaces/default is not suspended\n"),
        ("release namespaces/default", "error: namespaces/default does not have the finalizer "),
    ] {
        let text = refused(&desk, args, 1).await;
        assert!(text.starts_with(told), "{args}: {text}");
    }
    let namespace = fine(&desk, "status namespaces/default -o json").await;
    assert!(namespace.contains("\"suspended\":null"), "{namespace}");
    assert_eq!(fine(&desk, "status kopfexamples -o json").await, before);
    fine(&desk, "suspend kopfexamples/one").await;
    assert!(refused(&desk, "suspend kopfexamples/one", 1).await.contains("is already suspended"));
    operator.stop().await.assert_code(0);
    // The server is gone, too.
    for verb in VERBS {
        let text = refused(&desk, &format!("{verb} kopfexamples/one"), 1).await;
        assert!(text.starts_with("error: ") && text.lines().count() <= 2, "{verb}: {text}");
    }
}

#[tokio::test]
async fn a_context_that_two_files_define_is_refused() {
    let desk = Desk::new("verbs-contexts");
    desk.file("handlers.lua", LUA);
    let operator = desk.start("handlers.lua").await;
    let config = std::fs::read_to_string(desk.kubeconfig()).expect("a kubeconfig");
    let other = desk.file("other.yaml", &config.replace("127.0.0.1", "127.0.0.2"));
    let both = format!("{}:{}", desk.kubeconfig().display(), other.display());
    for verb in VERBS.iter().chain(&["logs"]) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kopf"));
        command.env_clear().env("KUBECONFIG", &both).args([verb, "kopfexamples/one"]);
        let output = command.output().await.expect("kopf runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{verb}: {text}");
        assert!(text.starts_with("error: several files define the context '"), "{text}");
        assert!(text.contains("other.yaml\nhint: choose one of them with --kubeconfig"), "{text}");
    }
    operator.stop().await.assert_code(0);
}

#[tokio::test]
async fn a_verb_without_the_permission_names_it_and_changes_nothing() {
    let desk = Desk::new("verbs-rights");
    desk.file("handlers.lua", LUA);
    desk.file("object.yaml", OBJECT);
    let roles = "
apiVersion: v1
kind: ServiceAccount
metadata: { name: op, namespace: default }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: op }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin }
subjects: [{ kind: ServiceAccount, name: op, namespace: default }]
";
    desk.file("rbac.yaml", roles);
    let args =
        "handlers.lua --apply object.yaml --rbac rbac.yaml --as system:serviceaccount:default:op";
    let operator = desk.start(args).await;
    until_status(&desk, "1 failed").await;
    let before = fine(&desk, "status kopfexamples -o json").await;
    for verb in VERBS {
        let text = refused(&desk, &format!("{verb} kopfexamples/one --as nobody"), 1).await;
        assert!(text.starts_with("error: ") && text.contains("403 Forbidden"), "{verb}: {text}");
        assert!(text.lines().count() <= 2, "{verb}: {text}");
    }
    let text = refused(&desk, "logs --as nobody", 1).await;
    assert!(text.contains("403 Forbidden"), "{text}");
    assert_eq!(fine(&desk, "status kopfexamples -o json").await, before);
    operator.stop().await.assert_code(0);
}
