//! The effects of admission handlers that users see.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{EXAMPLES, example, in_both, send};

#[test]
fn a_request_is_denied_with_message_code_and_warnings() {
    const LUA: &str = r#"
        function check(ctx)
            ctx.warn("careful")
            ctx.warnings:append("very")
            if ctx.spec.size > 3 then error(kopf.AdmissionError("too large", 422)) end
        end
        kopf.on_validate("kopfexamples", check)
    "#;
    const RHAI: &str = r#"
        kopf::on_validate("kopfexamples", #{ id: "check" }, |ctx| {
            ctx.warn("careful");
            ctx.warnings.append("very");
            if ctx.spec.size > 3 { throw kopf::AdmissionError("too large", 422); }
        });
    "#;
    in_both(LUA, RHAI, async |case| {
        let (status, body) = case.create("a", &json!({"size": 4})).await;
        assert_eq!(status, 422);
        let denied = r#"admission webhook "check.auto.kopf.dev" denied the request: too large"#;
        assert_eq!(body["message"], denied);
        assert_eq!(body["warnings"], json!([r#"299 - "careful""#, r#"299 - "very""#]));
        let (status, _) = case.create("a", &json!({"size": 3})).await;
        assert_eq!(status, 201);
        for result in ["denied", "allowed"] {
            assert_eq!(case.count("check", result), 1, "{result}");
        }
        case
    });
}

#[test]
fn handlers_see_the_request() {
    const LUA: &str = r#"
        function see(ctx)
            ctx.patch.metadata.annotations[ctx.operation:lower()] = json.encode({
                dryrun = ctx.dryrun, user = ctx.userinfo.username, old = ctx.old and ctx.old.spec.size,
                new = ctx.new.spec.size, changes = #ctx.diff, retry = ctx.retry, param = ctx.param,
                subresource = ctx.subresource or "none", peer = next(ctx.sslpeer) == nil,
                headers = next(ctx.headers) == nil, options = ctx.options.kind, fieldless = ctx.reason == nil,
            })
        end
        kopf.on_mutate("kopfexamples", { param = 7 }, see)
    "#;
    const RHAI: &str = r#"
        fn see(ctx) {
            let seen = #{
                dryrun: ctx.dryrun, user: ctx.userinfo.username,
                "new": ctx.new_value.spec.size, changes: ctx.diff.len(), retry: ctx.retry, param: ctx.param,
                subresource: ctx.subresource ?? "none", peer: ctx.sslpeer.is_empty(),
                headers: ctx.headers.is_empty(), options: ctx.options.kind, fieldless: ctx.reason == (),
            };
            if ctx.old != () { seen.old = ctx.old.spec.size; }
            ctx.patch.metadata.annotations[ctx.operation.to_lower()] = json::encode(seen);
        }
        kopf::on_mutate("kopfexamples", #{ param: 7 }, see);
    "#;
    let seen = |object: &Value, operation: &str| -> Value {
        let text = object["metadata"]["annotations"][operation].as_str();
        serde_json::from_str(text.unwrap_or_else(|| panic!("{object}"))).expect("JSON")
    };
    in_both(LUA, RHAI, async |case| {
        let (_, created) = case.create("a", &json!({"size": 1})).await;
        let expected = json!({
            "dryrun": false, "user": "kubernetes-admin", "new": 1, "changes": 1, "retry": 0, "param": 7,
            "subresource": "none", "peer": true, "headers": true, "options": "CreateOptions", "fieldless": true,
        });
        assert_eq!(seen(&created, "create"), expected);
        let (_, changed) = case.send("PATCH", "a", &json!({"spec": {"size": 2}})).await;
        let seen_at_update = seen(&changed, "update");
        assert_eq!((&seen_at_update["old"], &seen_at_update["new"]), (&json!(1), &json!(2)));
        let dry = format!("{EXAMPLES}?dryRun=All");
        let (_, dry) = send(&case.env, "POST", &dry, &example("b", &json!({"size": 1}))).await;
        assert_eq!(seen(&dry, "create")["dryrun"], true);
        case
    });
}

#[test]
fn a_handler_that_fails_denies_without_details_unless_failures_are_ignored() {
    const LUA: &str = r#"
        kopf.on_validate("kopfexamples", { id = "strict", labels = { mode = "strict" } }, function(ctx) kopf.sleep(60) end)
        kopf.on_validate("kopfexamples", { id = "lenient", ignore_failures = true, labels = { mode = "lenient" } }, function(ctx) kopf.sleep(60) end)
        kopf.on_validate("kopfexamples", { id = "brief", timeout = 2, labels = { mode = "brief" } }, function(ctx) kopf.sleep(60) end)
        kopf.on_validate("kopfexamples", { id = "spins", labels = { mode = "spins" } }, function(ctx) while true do end end)
        kopf.on_validate("kopfexamples", { id = "grows", labels = { mode = "grows" } }, function(ctx)
            local all = {}
            while true do table.insert(all, string.rep("x", 100000) .. #all) end
        end)
        kopf.on_validate("kopfexamples", { id = "long", labels = { mode = "long" } }, function(ctx) return string.rep("x", 1e8) end)
    "#;
    const RHAI: &str = r#"
        kopf::on_validate("kopfexamples", #{ id: "strict", labels: #{ mode: "strict" } }, |ctx| { kopf::sleep(60); });
        kopf::on_validate("kopfexamples", #{ id: "lenient", ignore_failures: true, labels: #{ mode: "lenient" } }, |ctx| { kopf::sleep(60); });
        kopf::on_validate("kopfexamples", #{ id: "brief", timeout: 2, labels: #{ mode: "brief" } }, |ctx| { kopf::sleep(60); });
        kopf::on_validate("kopfexamples", #{ id: "spins", labels: #{ mode: "spins" } }, |ctx| { loop {} });
        kopf::on_validate("kopfexamples", #{ id: "grows", labels: #{ mode: "grows" } }, |ctx| {
            let all = [];
            loop {
                let text = `${all.len()}`;
                text.pad(100000, "x");
                all.push(text);
            }
        });
        kopf::on_validate("kopfexamples", #{ id: "long", labels: #{ mode: "long" } }, |ctx| {
            let text = "x";
            loop { text += text; }
        });
    "#;
    in_both(LUA, RHAI, async |case| {
        for (mode, status, text) in [
            ("strict", 500, "the handler 'strict' failed"),
            ("lenient", 201, "the handler 'lenient' failed; the failure is ignored"),
            ("brief", 500, "the handler 'brief' failed"),
            ("spins", 500, "the handler 'spins' failed"),
            ("grows", 500, "the handler 'grows' failed"),
            ("long", 500, "the handler 'long' failed"),
        ] {
            let mut object = example(mode, &json!({}));
            object["metadata"]["labels"] = json!({ "mode": mode });
            let begun = Instant::now();
            let (code, body) = case.send("POST", mode, &object).await;
            assert_eq!(code, status, "{body}");
            let told = body["message"].as_str().map_or(body["warnings"].to_string(), str::to_owned);
            let whole = [format!("denied the request: {text}"), format!(r#"["299 - \"{text}\""]"#)];
            assert!(whole.iter().any(|it| told.ends_with(it)), "without details: {told}");
            assert!(begun.elapsed().as_secs() < 30, "before the deadline");
            assert_eq!(case.count(mode, "timeout"), 1, "{mode}");
            assert!(case.log.has(&format!("Webhook '{mode}' failed")), "{}", case.log.text());
        }
        case
    });
}

#[test]
fn an_update_shares_the_memo_of_the_object_and_a_creation_has_none() {
    const LUA: &str = r#"
        kopf.on_create("kopfexamples", function(ctx) ctx.memo.seen = "yes" end)
        kopf.on_mutate("kopfexamples", { id = "look" }, function(ctx)
            ctx.patch.metadata.annotations.memo = ctx.memo.seen or "no"
            ctx.memo.seen = ctx.memo.seen or "lost"
        end)
    "#;
    const RHAI: &str = r#"
        kopf::on_create("kopfexamples", |ctx| { ctx.memo.seen = "yes"; });
        kopf::on_mutate("kopfexamples", #{ id: "look" }, |ctx| {
            ctx.patch.metadata.annotations.memo = ctx.memo.seen ?? "no";
            ctx.memo.seen = ctx.memo.seen ?? "lost";
        });
    "#;
    in_both(LUA, RHAI, async |case| {
        let (_, created) = case.create("a", &json!({})).await;
        assert_eq!(created["metadata"]["annotations"]["memo"], "no");
        case.pass(5).await;
        let (_, changed) = case.send("PATCH", "a", &json!({"spec": {"x": 1}})).await;
        assert_eq!(changed["metadata"]["annotations"]["memo"], "yes");
        case
    });
}

#[test]
fn deletions_are_validated_and_mutating_handlers_are_skipped() {
    const LUA: &str = r#"
        kopf.on_mutate("kopfexamples", { id = "never" }, function(ctx) if ctx.operation == "DELETE" then kopf.fail("called") end end)
        kopf.on_validate("kopfexamples", { id = "keep", operations = { "DELETE" } }, function(ctx)
            if ctx.spec.keep then error(kopf.AdmissionError("it is kept", 403)) end
        end)
    "#;
    const RHAI: &str = r#"
        kopf::on_mutate("kopfexamples", #{ id: "never" }, |ctx| { if ctx.operation == "DELETE" { kopf::fail("called"); } });
        kopf::on_validate("kopfexamples", #{ id: "keep", operations: ["DELETE"] }, |ctx| {
            if ctx.spec.keep { throw kopf::AdmissionError("it is kept", 403); }
        });
    "#;
    in_both(LUA, RHAI, async |case| {
        for (name, keep) in [("a", true), ("b", false)] {
            case.create(name, &json!({ "keep": keep })).await;
        }
        let (status, body) = case.send("DELETE", "a", &json!({})).await;
        assert_eq!(status, 403, "{body}");
        let (status, body) = case.send("DELETE", "b", &json!({})).await;
        assert_eq!(status, 200, "{body}");
        case
    });
}

#[test]
fn a_handler_is_called_by_its_id_and_its_error_is_reported() {
    const LUA: &str = r#"
        kopf.on_validate("kopfexamples", { id = "a" }, function(ctx) ctx.warn("a"); error("plain") end)
        kopf.on_validate("kopfexamples", { id = "b" }, function(ctx) ctx.warn("b"); kopf.retry("temporary", 5) end)
        kopf.on_validate("kopfexamples", { id = "c" }, function(ctx) ctx.warn("c"); kopf.fail("permanent") end)
        kopf.on_validate("kopfexamples", { id = "d" }, function(ctx) ctx.warn("d"); error(kopf.AdmissionError("refused", 418)) end)
    "#;
    const RHAI: &str = r#"
        kopf::on_validate("kopfexamples", #{ id: "a" }, |ctx| { ctx.warn("a"); throw "plain"; });
        kopf::on_validate("kopfexamples", #{ id: "b" }, |ctx| { ctx.warn("b"); kopf::retry("temporary", 5); });
        kopf::on_validate("kopfexamples", #{ id: "c" }, |ctx| { ctx.warn("c"); kopf::fail("permanent"); });
        kopf::on_validate("kopfexamples", #{ id: "d" }, |ctx| { ctx.warn("d"); throw kopf::AdmissionError("refused", 418); });
    "#;
    in_both(LUA, RHAI, async |case| {
        let reply = async |handler| review(&case.local, handler, &whole()).await.expect("a reply");
        let all = reply("").await;
        assert_eq!((&all["allowed"], &all["warnings"]), (&json!(true), &Value::Null), "as in Kopf");
        for (id, message, code) in [
            ("a", "plain", 500),
            ("b", "temporary", 500),
            ("c", "permanent", 500),
            ("d", "refused", 418),
        ] {
            let one = reply(id).await;
            let told = one["status"]["message"].as_str().expect("a message");
            assert!(told.contains(message), "{told}");
            assert_eq!(one["status"]["code"], code);
            assert_eq!(one["warnings"], json!([id]));
        }
        case
    });
}

#[test]
fn an_unknown_handler_is_allowed_with_a_warning_in_the_log() {
    let lua =
        r#"kopf.on_validate("kopfexamples", { id = "check" }, function(ctx) kopf.fail("no") end)"#;
    let rhai =
        r#"kopf::on_validate("kopfexamples", #{ id: "check" }, |ctx| { kopf::fail("no"); });"#;
    in_both(lua, rhai, async |case| {
        let reply = review(&case.local, "chek", &whole()).await.expect("a reply");
        assert_eq!(reply["allowed"], true);
        let line = "No handler 'chek' of kopfexamples.v1.kopf.dev: the request is allowed.";
        assert!(case.log.text().contains(&format!("WARN {line}")), "{}", case.log.text());
        case
    });
}

#[test]
fn malformed_reviews_are_refused_with_what_is_missing() {
    let without = |path: &[&str]| {
        let mut review = whole();
        let (last, parents) = path.split_last().expect("a field");
        let parent = parents.iter().fold(&mut review, |it, key| &mut it[*key]);
        parent.as_object_mut().expect("a map").shift_remove(*last);
        review.to_string()
    };
    let with = |field: &str, value: Value| {
        let mut review = whole();
        review["request"][field] = value;
        review.to_string()
    };
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let cases = [
        (String::new(), "the body is not valid JSON: EOF"),
        ("{".to_owned(), "the body is not valid JSON: EOF"),
        ("{} {}".to_owned(), "the body is not valid JSON: trailing"),
        ("\u{feff}{}".to_owned(), "the body is not valid JSON"),
        (deep, "the body is not valid JSON: it is nested 5000 levels deep"),
        ("[]".to_owned(), "the body is not a JSON object"),
        ("null".to_owned(), "the body is not a JSON object"),
        (without(&["request"]), "the review has no field `request`"),
        (without(&["request", "resource"]), "the request has no field `resource.group`"),
        (
            without(&["request", "resource", "version"]),
            "the request has no field `resource.version`",
        ),
        (
            without(&["request", "resource", "resource"]),
            "the request has no field `resource.resource`",
        ),
        (without(&["request", "userInfo"]), "User info is missing from the admission request."),
        (with("userInfo", Value::Null), "User info is missing from the admission request."),
        (
            without(&["request", "object"]),
            "Either old or new object is missing from the admission request.",
        ),
        (with("object", json!(1)), "the object of the admission request is not a JSON object"),
        (with("object", json!([])), "the object of the admission request is not a JSON object"),
    ];
    let lua = r#"kopf.on_validate("kopfexamples", { id = "check" }, function(ctx) end)"#;
    let rhai = r#"kopf::on_validate("kopfexamples", #{ id: "check" }, |ctx| ());"#;
    in_both(lua, rhai, async |case| {
        for (body, problem) in &cases {
            let refused = ask(&case.local, "check", body.clone()).await.expect_err(problem);
            assert!(refused.contains(problem), "{body}: {refused}");
            assert!(
                case.log
                    .has(&format!("Cannot respond to a review for the webhook 'check': {problem}"))
            );
        }
        // Fields that are not needed may be missing.
        for field in ["uid", "operation", "dryRun", "oldObject", "options"] {
            let reply = ask(&case.local, "check", without(&["request", field])).await;
            assert!(reply.expect("a reply").contains(r#""allowed":true"#), "{field}");
        }
        case
    });
}

/// Returns a complete review.
fn whole() -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": "CREATE", "dryRun": false, "userInfo": { "username": "me" },
            "resource": { "group": "kopf.dev", "version": "v1", "resource": "kopfexamples" },
            "object": example("a", &json!({})), "oldObject": null, "options": null,
        },
    })
}

/// Sends a review to a handler. Returns the body of the response.
async fn ask(
    local: &kopf::webhooks::LocalWebhooks,
    id: &str,
    body: String,
) -> Result<String, String> {
    let url = format!("https://kopf-dev.invalid/{id}");
    let body = local.review(&url, &body.into()).await.expect("it is this operator's");
    body.map(|it| String::from_utf8(it.to_vec()).expect("text"))
}

/// Sends a review to a handler. Returns the response as a tree.
async fn review(
    local: &kopf::webhooks::LocalWebhooks,
    id: &str,
    review: &Value,
) -> Result<Value, String> {
    let body = ask(local, id, review.to_string()).await?;
    let mut review: Value = serde_json::from_str(&body).expect("JSON");
    Ok(review["response"].take())
}
