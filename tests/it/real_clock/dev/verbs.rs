//! `kopf status`, `kopf retry`, `kopf release` and `kopf crds`, on the server of `kopf dev`.

use std::process::Output;

use tokio::process::Command;

use super::{Desk, OBJECT};

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

/// `kopf` with these arguments, on the server of the directory.
async fn kopf(desk: &Desk, args: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kopf"));
    command.env_clear().env("KUBECONFIG", desk.kubeconfig()).args(args.split_whitespace());
    command.output().await.expect("kopf runs")
}

/// Standard output of a success.
async fn fine(desk: &Desk, args: &str) -> String {
    let output = kopf(desk, args).await;
    let (out, problems) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{args}: {out}{problems}");
    assert_eq!(problems, "", "{args}");
    out.into_owned()
}

/// Standard error of a failure with this code. Nothing else is printed.
async fn refused(desk: &Desk, args: &str, code: i32) -> String {
    let output = kopf(desk, args).await;
    assert_eq!(output.status.code(), Some(code), "{args}: {output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{args}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

async fn tells_of_failures_and_retries_them(name: &str, script: &str) {
    let desk = Desk::new(&format!("verbs-{name}"));
    desk.file(name, script);
    desk.file("object.yaml", OBJECT);
    let operator = desk.start(&format!("{name} --apply object.yaml")).await;
    operator.until_says("'made' failed permanently (attempt 1): not fixed").await;
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
    operator.until_says("'made' failed permanently").await;
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
