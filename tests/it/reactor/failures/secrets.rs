//! Values of Secrets and of fields that a setting names: they reach handlers, and nothing else.

use kopf_apiserver::ApiServer;
use serde_json::{Value, json};

use super::{Failing, Script, in_both_of};

/// Logs where something has changed, patches and fails, and reads a whole Secret and a nested field.
const SCRIPT: Script = Script {
    lua: r#"
        local function tell(ctx)
            local items = {}
            for _, item in ipairs(ctx.diff) do
                table.insert(items, item.op .. " " .. table.concat(item.field, ".") .. " " .. tostring(item.old))
            end
            table.sort(items)
            ctx.logger:info("diff " .. table.concat(items, ", "))
        end
        kopf.on_create("secrets", { id = "made" }, function(ctx) ctx.patch.metadata.labels = { seen = "yes" } end)
        kopf.on_update("secrets", { id = "changed" }, tell)
        kopf.on_field("secrets", { field = "data.password", id = "password" }, function(ctx)
            ctx.logger:info("password " .. tostring(ctx.old) .. " " .. tostring(ctx.new ~= nil))
            kopf.fail("no")
        end)
        kopf.on_create("kopfexamples", { id = "made_example" }, function(ctx) ctx.patch.spec.password = { again = "hunter-9" } end)
        kopf.on_update("kopfexamples", { id = "changed_example" }, tell)
    "#,
    rhai: r#"
        fn tell(ctx) {
            let items = [];
            for item in ctx.diff {
                let path = "";
                for key in item.field { path += if path == "" { key } else { "." + key }; }
                items.push(`${item.op} ${path} ${if item.old == () { "nil" } else { item.old }}`);
            }
            items.sort();
            let line = "";
            for item in items { line += if line == "" { item } else { ", " + item }; }
            ctx.logger.info(`diff ${line}`);
        }
        kopf::on_create("secrets", #{ id: "made" }, |ctx| { ctx.patch.metadata.labels = #{ seen: "yes" }; });
        kopf::on_update("secrets", #{ id: "changed" }, tell);
        kopf::on_field("secrets", #{ field: "data.password", id: "password" }, |ctx| {
            ctx.logger.info(`password ${if ctx.old == () { "nil" } else { ctx.old }} ${ctx["new"] != ()}`);
            kopf.fail("no");
        });
        kopf::on_create("kopfexamples", #{ id: "made_example" }, |ctx| { ctx.patch.spec.password = #{ again: "hunter-9" }; });
        kopf::on_update("kopfexamples", #{ id: "changed_example" }, tell);
    "#,
};

/// The start of `hunter-1` and the like in base64.
const ENCODED: &str = "aHVudGVyL";

fn environment() -> kopf::testing::Environment {
    kopf::testing::Environment::new(ApiServer::builder().resource(kopf::testing::examples()))
}

fn secret(name: &str, data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data,
        "metadata": { "namespace": "ns1", "name": name, "uid": name },
    })
}

/// Fails if a value is anywhere it must not be: annotations, log lines, events, failed handlers.
fn check(failing: &Failing) {
    let is_value = |text: &str| text.contains("hunter-") || text.contains(ENCODED);
    for line in failing.log.lines() {
        let all = line.fields.iter().map(|(_, it)| it.as_str()).chain([line.message.as_str()]);
        for text in all {
            assert!(!is_value(text), "in the log: {text}");
        }
    }
    for resource in ["secrets", "kopfexamples.kopf.dev", "events"] {
        for object in failing.env.server.list(resource) {
            let annotations = object["metadata"]["annotations"].to_string();
            assert!(!is_value(&annotations), "in annotations: {annotations}");
            assert!(!is_value(&object["message"].to_string()), "in an event: {object}");
        }
    }
}

fn lines(failing: &Failing, start: &str) -> Vec<String> {
    // The Secret with the key is handled, too.
    let lines = failing.log.lines().into_iter();
    let lines = lines.filter(|it| it.field("object.name") == Some("a")).map(|it| it.message);
    lines.filter(|it| it.starts_with(start)).collect()
}

#[test]
fn no_value_of_a_secret_is_stored_or_logged_and_diffs_keep_their_paths() {
    in_both_of(environment, &SCRIPT, with_fields, async |failing: &Failing| {
        let env = &failing.env;
        env.create(secret("a", &json!({ "password": "aHVudGVyLTE=", "user": "aHVudGVyLTI=" })));
        env.until(5).await;
        check(failing);
        env.edit(
            "secrets",
            "ns1/a",
            json!({ "data": { "password": "aHVudGVyLTM=", "host": "aHVudGVyLTQ=", "user": null } }),
        );
        env.until(10).await;
        check(failing);
        assert_eq!(
            lines(failing, "diff").last().map(String::as_str),
            Some("diff add data.host nil, change data.password nil, remove data.user nil")
        );
        assert_eq!(lines(failing, "password"), ["password nil true", "password nil true"]);
        let annotations = env.get("secrets", "ns1/a")["metadata"]["annotations"].to_string();
        assert!(
            annotations.contains("kopf:hmac:") && annotations.contains("kopf-failed"),
            "{annotations}"
        );
        let key = env.get("secrets", "default/kopf-digest-key");
        assert_eq!(key["data"]["key"].as_str().map(str::len), Some(44), "32 bytes");
    });
}

fn with_fields(settings: &mut kopf::settings::Settings) {
    settings.persistence.digest_secret = Some("kopf-digest-key".into());
    let fields = ("kopfexamples".to_owned(), "spec.password, spec.token".to_owned());
    settings.persistence.sensitive_fields.extend([fields]);
}

#[test]
fn fields_that_a_setting_names_are_hidden_like_secrets() {
    in_both_of(environment, &SCRIPT, with_fields, async |failing: &Failing| {
        let env = &failing.env;
        let mut object = kopf::testing::object("ns1", "a");
        object["spec"] =
            json!({ "size": 1, "password": { "deep": ["hunter-1"] }, "token": "hunter-2" });
        env.create(object);
        env.until(5).await;
        check(failing);
        let password = json!({ "deep": ["hunter-5"] });
        env.edit(
            "kopfexamples.kopf.dev",
            "ns1/a",
            json!({ "spec": { "size": 2, "password": password } }),
        );
        env.until(10).await;
        check(failing);
        let diff = lines(failing, "diff");
        assert!(
            diff.iter().any(|it| it.contains("change spec.password.deep nil, change spec.size 1")),
            "{diff:?}"
        );
    });
}

#[test]
fn plain_values_of_another_operator_are_removed_at_the_start_and_nothing_is_handled_twice() {
    in_both_of(environment, &SCRIPT, with_fields, async |failing: &Failing| {
        let mut object = secret("a", &json!({ "password": "aHVudGVyLTE=" }));
        let state = json!({ "data": { "password": "aHVudGVyLTE=" }, "type": "Opaque" });
        object["metadata"]["annotations"] =
            json!({ "kopf.zalando.org/last-handled-configuration": format!("{state}\n") });
        failing.env.create(object);
        failing.env.until(5).await;
        check(failing);
        assert_eq!(lines(failing, "diff"), [] as [&str; 0], "it was handled");
        failing.env.edit("secrets", "ns1/a", json!({ "data": { "password": "aHVudGVyLTI=" } }));
        failing.env.until(10).await;
        check(failing);
        assert_eq!(lines(failing, "diff"), ["diff change data.password nil"]);
    });
}

#[test]
fn replicas_and_restarts_share_the_key() {
    in_both_of(environment, &SCRIPT, with_fields, async |failing: &Failing| {
        failing.env.create(secret("a", &json!({ "password": "aHVudGVyLTE=" })));
        failing.env.until(5).await;
        let before = failing.env.get("secrets", "ns1/a");
        let again =
            Failing::start(failing.env.clone(), ("fails.lua", SCRIPT.lua), with_fields).await;
        failing.env.until(15).await;
        assert!(lines(&again, "diff").is_empty() && lines(&again, "password").is_empty());
        assert_eq!(failing.env.get("secrets", "ns1/a")["metadata"], before["metadata"]);
        again.running.stop().await;
    });
}

#[test]
fn without_the_right_to_the_key_it_works_and_says_what_that_means() {
    let env = || {
        let env = environment();
        env.refuse(403, "", "/secrets/kopf-digest-key");
        env
    };
    in_both_of(env, &SCRIPT, with_fields, async |failing: &Failing| {
        failing.env.create(secret("a", &json!({ "password": "aHVudGVyLTE=" })));
        failing.env.until(5).await;
        check(failing);
        assert_eq!(failing.log.count("weak values can be guessed"), 1);
        let annotations =
            failing.env.get("secrets", "ns1/a")["metadata"]["annotations"].to_string();
        assert!(annotations.contains("kopf:hmac:uid:"), "{annotations}");
    });
}

#[test]
fn a_setting_restores_what_kopf_stores() {
    let plain = |it: &mut kopf::settings::Settings| it.persistence.plain_secrets = true;
    in_both_of(environment, &SCRIPT, plain, async |failing: &Failing| {
        failing.env.create(secret("a", &json!({ "user": "aHVudGVyLTE=" })));
        failing.env.until(5).await;
        let annotations =
            failing.env.get("secrets", "ns1/a")["metadata"]["annotations"].to_string();
        assert!(annotations.contains(ENCODED), "{annotations}");
        assert!(failing.env.server.get("secrets", "default", "kopf-digest-key").is_none());
    });
}

/// Requests values that the server rejects, with an error that repeats them.
const REJECTED: Script = Script {
    lua: r#"
        kopf.on_create("kopfexamples", { id = "made" }, function(ctx)
            ctx.patch.spec.password = { again = "hunter-9-is-too-long" }
        end)
        kopf.on_create("secrets", { id = "secret" }, function(ctx) end)
    "#,
    rhai: r#"
        kopf::on_create("kopfexamples", #{ id: "made" }, |ctx| {
            ctx.patch.spec.password = #{ again: "hunter-9-is-too-long" };
        });
        kopf::on_create("secrets", #{ id: "secret" }, |ctx| {});
    "#,
};

fn with_schema() -> kopf::testing::Environment {
    let password = json!({ "type": "object", "properties": {
        "again": { "type": "string", "enum": ["hunter-1", "hunter-2"] },
    } });
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "kopfexamples.kopf.dev" },
        "spec": {
            "group": "kopf.dev", "scope": "Namespaced",
            "names": { "kind": "KopfExample", "plural": "kopfexamples", "singular": "kopfexample" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": { "type": "object", "properties": { "password": password } },
                } } },
            }],
        },
    });
    let env = kopf::testing::Environment::new(ApiServer::builder().cluster(true));
    env.create(crd);
    env
}

#[test]
fn values_in_errors_of_the_server_are_hidden_and_metrics_and_health_have_none() {
    in_both_of(with_schema, &REJECTED, with_fields, async |failing: &Failing| {
        failing.env.until(5).await;
        failing.env.create(kopf::testing::object("default", "a"));
        failing.env.until(30).await;
        let is_told =
            |it: &kopf::testing::LogLine| it.message.contains("Unsupported value: \"(hidden)\"");
        assert!(failing.log.lines().iter().any(is_told), "{}", failing.log.text());
        for line in failing.log.lines() {
            let all = line.fields.iter().map(|(_, it)| it.as_str()).chain([line.message.as_str()]);
            for text in all {
                assert!(!text.contains("hunter-9"), "in the log: {text}");
            }
        }
        for resource in ["kopfexamples.kopf.dev", "events"] {
            for object in failing.env.server.list(resource) {
                assert!(!object.to_string().contains("hunter-9"), "{object}");
            }
        }
        let routes = kopf::features::probes::Routes::new(failing.running.health.clone());
        for path in ["/metrics", "/readyz?verbose", "/debug/log"] {
            let answer = routes.answer(&http::Method::GET, &path.parse().expect("a path")).await;
            let page = http_body_util::BodyExt::collect(answer.into_body()).await.expect("a page");
            let page = String::from_utf8_lossy(&page.to_bytes()).into_owned();
            assert!(!page.contains("hunter-"), "{path}: {page}");
        }
    });
}

#[test]
fn handlers_of_secrets_alone_have_a_key_too() {
    let with_key = |it: &mut kopf::settings::Settings| {
        it.persistence.digest_secret = Some("kopf-digest-key".into());
    };
    in_both_of(environment, &SCRIPT, with_key, async |failing: &Failing| {
        failing.env.create(secret("a", &json!({ "password": "aHVudGVyLTE=" })));
        failing.env.until(5).await;
        check(failing);
        assert!(failing.env.server.get("secrets", "default", "kopf-digest-key").is_some());
    });
}
