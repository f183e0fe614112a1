//! What users see of admission handlers.

use kopf::telemetry::ReviewLabels;
use kopf::testing::{Running, run_paused};
use serde_json::json;

use super::{EXAMPLES, example, local_environment, operator, send, started};

#[test]
fn a_request_is_denied_with_message_code_and_warnings() {
    run_paused(async {
        let (env, local) = local_environment();
        let script = r#"
            function check(ctx)
                ctx.warn("careful")
                ctx.warnings:append("very")
                if ctx.spec.size > 3 then error(kopf.AdmissionError("too large", 422)) end
            end
            kopf.on_validate("kopfexamples", check)
        "#;
        let operator = operator(&env, script, &local).await;
        let metrics = operator.health.metrics().clone();
        let running = Running::start(operator);
        env.until(5).await;
        let (status, body) = send(&env, "POST", EXAMPLES, &example("a", &json!({"size": 4}))).await;
        assert_eq!(status, 422);
        let denied = r#"admission webhook "check.auto.kopf.dev" denied the request: too large"#;
        assert_eq!(body["message"], denied);
        assert_eq!(body["warnings"], json!([r#"299 - "careful""#, r#"299 - "very""#]));
        let (status, _) = send(&env, "POST", EXAMPLES, &example("a", &json!({"size": 3}))).await;
        assert_eq!(status, 201);
        for result in ["denied", "allowed"] {
            let labels = ReviewLabels { webhook: "check".to_owned(), result };
            assert_eq!(metrics.reviews.get_or_create(&labels).get(), 1, "{result}");
        }
        running.stop().await;
    });
}

#[test]
fn handlers_see_the_request() {
    run_paused(async {
        let (env, local) = local_environment();
        let script = r#"
            function see(ctx)
                ctx.patch.metadata.annotations[ctx.operation:lower()] = json.encode({
                    dryrun = ctx.dryrun, user = ctx.userinfo.username, old = ctx.old and ctx.old.spec.size,
                    new = ctx.new.spec.size, changes = #ctx.diff, retry = ctx.retry, param = ctx.param,
                    subresource = ctx.subresource or "none", peer = next(ctx.sslpeer) == nil,
                    options = ctx.options.kind, fieldless = ctx.reason == nil,
                })
            end
            kopf.on_mutate("kopfexamples", { param = 7 }, see)
        "#;
        let running = started(&env, script, &local).await;
        let (_, created) = send(&env, "POST", EXAMPLES, &example("a", &json!({"size": 1}))).await;
        let seen = created["metadata"]["annotations"]["create"].as_str().expect("an annotation");
        let seen: serde_json::Value = serde_json::from_str(seen).expect("JSON");
        let expected = json!({
            "dryrun": false, "user": "kubernetes-admin", "new": 1, "changes": 1, "retry": 0, "param": 7,
            "subresource": "none", "peer": true, "options": "CreateOptions", "fieldless": true,
        });
        assert_eq!(seen, expected);
        let path = format!("{EXAMPLES}/a");
        let (_, changed) = send(&env, "PATCH", &path, &json!({"spec": {"size": 2}})).await;
        let seen = changed["metadata"]["annotations"]["update"].as_str().expect("an annotation");
        let seen: serde_json::Value = serde_json::from_str(seen).expect("JSON");
        assert_eq!((&seen["old"], &seen["new"]), (&json!(1), &json!(2)));
        let dry = format!("{EXAMPLES}?dryRun=All");
        let (_, dry) = send(&env, "POST", &dry, &example("b", &json!({"size": 1}))).await;
        let seen = dry["metadata"]["annotations"]["create"].as_str().expect("an annotation");
        assert!(seen.contains(r#""dryrun":true"#), "{seen}");
        running.stop().await;
    });
}

#[test]
fn a_handler_that_fails_denies_without_details_unless_failures_are_ignored() {
    run_paused(async {
        let (env, local) = local_environment();
        let script = r#"
            kopf.on_validate("kopfexamples", { id = "strict", labels = { mode = "strict" } }, function(ctx) kopf.sleep(60) end)
            kopf.on_validate("kopfexamples", { id = "lenient", ignore_failures = true, labels = { mode = "lenient" } }, function(ctx) kopf.sleep(60) end)
            kopf.on_validate("kopfexamples", { id = "brief", timeout = 2, labels = { mode = "brief" } }, function(ctx) kopf.sleep(60) end)
        "#;
        let operator = operator(&env, script, &local).await;
        let metrics = operator.health.metrics().clone();
        let running = Running::start(operator);
        env.until(5).await;
        for (mode, status, text) in [
            ("strict", 500, "the handler 'strict' failed"),
            ("lenient", 201, "the handler 'lenient' failed, and is ignored"),
            ("brief", 500, "the handler 'brief' failed"),
        ] {
            let mut object = example(mode, &json!({}));
            object["metadata"]["labels"] = json!({ "mode": mode });
            let (code, body) = send(&env, "POST", EXAMPLES, &object).await;
            assert_eq!(code, status, "{body}");
            assert!(body.to_string().contains(text), "{body}");
            let labels = ReviewLabels { webhook: mode.to_owned(), result: "timeout" };
            assert_eq!(metrics.reviews.get_or_create(&labels).get(), 1);
        }
        running.stop().await;
    });
}

#[test]
fn an_update_shares_the_memo_of_the_object_and_a_creation_has_none() {
    run_paused(async {
        let (env, local) = local_environment();
        let script = r#"
            kopf.on_create("kopfexamples", function(ctx) ctx.memo.seen = "yes" end)
            kopf.on_mutate("kopfexamples", { id = "look" }, function(ctx)
                ctx.patch.metadata.annotations.memo = ctx.memo.seen or "no"
                ctx.memo.seen = ctx.memo.seen or "lost"
            end)
        "#;
        let running = started(&env, script, &local).await;
        let (_, created) = send(&env, "POST", EXAMPLES, &example("a", &json!({}))).await;
        assert_eq!(created["metadata"]["annotations"]["memo"], "no");
        env.until(env.start.elapsed().as_secs() + 5).await;
        let path = format!("{EXAMPLES}/a");
        let (_, changed) = send(&env, "PATCH", &path, &json!({"spec": {"x": 1}})).await;
        assert_eq!(changed["metadata"]["annotations"]["memo"], "yes");
        running.stop().await;
    });
}

#[test]
fn deletions_are_validated_and_mutating_handlers_are_skipped() {
    run_paused(async {
        let (env, local) = local_environment();
        let script = r#"
            kopf.on_mutate("kopfexamples", { id = "never" }, function(ctx) if ctx.operation == "DELETE" then kopf.fail("called") end end)
            kopf.on_validate("kopfexamples", { id = "keep", operations = { "DELETE" } }, function(ctx)
                if ctx.spec.keep then error(kopf.AdmissionError("it is kept", 403)) end
            end)
        "#;
        let running = started(&env, script, &local).await;
        for (name, keep) in [("a", true), ("b", false)] {
            send(&env, "POST", EXAMPLES, &example(name, &json!({ "keep": keep }))).await;
        }
        let (status, body) = send(&env, "DELETE", &format!("{EXAMPLES}/a"), &json!({})).await;
        assert_eq!(status, 403, "{body}");
        let (status, body) = send(&env, "DELETE", &format!("{EXAMPLES}/b"), &json!({})).await;
        assert_eq!(status, 200, "{body}");
        running.stop().await;
    });
}
