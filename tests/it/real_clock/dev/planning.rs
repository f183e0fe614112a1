//! `kopf plan`, for the objects on the server of `kopf dev`.

use std::process::Output;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, api::ListParams};
use tokio::process::Command;

use super::{Desk, OBJECT, client};
use crate::e2e::until;

const LUA: &str = r#"
kopf.reconcile("kopfexamples", { id = "family", owns = "configmaps" }, function(ctx)
    local children = {}
    for _, name in { "a", "b" } do
        local meta = { name = ctx.name .. "-" .. name }
        table.insert(children, { apiVersion = "v1", kind = "ConfigMap", metadata = meta, data = { x = "1" } })
    end
    return { children = children, status = { count = #children } }
end)
"#;
const RHAI: &str = r#"
kopf::reconcile("kopfexamples", #{ id: "family", owns: "configmaps" }, |ctx| {
    let children = [];
    for name in ["a", "b"] {
        let meta = #{ name: ctx.name + "-" + name };
        children.push(#{ apiVersion: "v1", kind: "ConfigMap", metadata: meta, data: #{ x: "1" } });
    }
    #{ children: children, status: #{ count: children.len() } }
});
"#;

/// The next version: one child has another name, the other one another value, `ctx.dry` is shown, and there is one more handler.
const NEXT_LUA: &str = r#"
local function secret(ctx)
    local meta = { name = ctx.name .. "-token", namespace = ctx.namespace }
    return { apiVersion = "v1", kind = "Secret", metadata = meta, stringData = { token = "hunter2" } }
end
kopf.on_create("kopfexamples", { id = "made" }, function(ctx)
    kube.create(secret(ctx))
    ctx.patch.spec.seen = true
end)
"#;
const NEXT_RHAI: &str = r#"
fn secret(ctx) {
    let meta = #{ name: ctx.name + "-token", namespace: ctx.namespace };
    #{ apiVersion: "v1", kind: "Secret", metadata: meta, stringData: #{ token: "hunter2" } }
}
kopf::on_create("kopfexamples", #{ id: "made" }, |ctx| {
    kube.create(secret(ctx));
    ctx.patch.spec.seen = true;
});
"#;

const EXPECTED: &str = r#"~ update configmaps/one-a -n default
    data.x: "1" -> "dry: true"
- delete configmaps/one-b -n default
+ create configmaps/one-c -n default
    data.x: "dry: true"
    metadata.ownerReferences: ["KopfExample/one"]
~ update kopfexamples.kopf.dev/one -n default
    spec.seen: true
+ create secrets/one-token -n default
    stringData.token: "(hidden)"

Plan: 2 to create, 2 to update, 1 to delete.
"#;

async fn plan(desk: &Desk, args: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kopf"));
    command.env_clear().env("KUBECONFIG", desk.kubeconfig()).current_dir(&desk.0);
    command.arg("plan").args(args.split_whitespace());
    command.output().await.expect("kopf runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the names and versions of all objects that a plan could have changed.
async fn versions(desk: &Desk) -> Vec<String> {
    let client = client(&desk.kubeconfig()).await;
    let all = ListParams::default();
    let maps = Api::<ConfigMap>::all(client.clone()).list(&all).await.expect("a list");
    let secrets = Api::<Secret>::all(client).list(&all).await.expect("a list");
    let meta = maps.items.into_iter().map(|it| it.metadata);
    let meta = meta.chain(secrets.items.into_iter().map(|it| it.metadata));
    meta.map(|it| format!("{:?} {:?}", it.name, it.resource_version)).collect()
}

async fn an_edited_script_is_planned((name, old): (&str, &str), (next_name, next): (&str, &str)) {
    let desk = Desk::new(&format!("plan-{name}"));
    desk.file(name, old);
    desk.file("object.yaml", OBJECT);
    let operator = desk.start(&format!("{name} --apply object.yaml")).await;
    until("the children are there", async || {
        let unchanged = plan(&desk, name).await;
        let told = (text(&unchanged.stdout), text(&unchanged.stderr));
        if told == ("No changes.\n".into(), String::new()) {
            Ok(())
        } else {
            Err(format!("{told:?}"))
        }
    })
    .await;
    let before = versions(&desk).await;
    let value = if name == "handlers.lua" {
        "\"dry: \" .. tostring(ctx.dry)"
    } else {
        "\"dry: \" + ctx.dry"
    };
    let edited = old.replace("\"b\"", "\"c\"").replace("\"1\"", value);
    desk.file(next_name, &format!("{edited}{next}"));
    let planned = plan(&desk, next_name).await;
    assert_eq!(text(&planned.stderr), "");
    assert_eq!(text(&planned.stdout), EXPECTED);
    assert_eq!(planned.status.code(), Some(0));
    let json = plan(&desk, &format!("{next_name} -o json")).await;
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let actions = json["changes"].as_array().into_iter().flatten().map(|it| &it["action"]);
    assert_eq!(
        actions.collect::<Vec<_>>(),
        ["update", "delete", "create", "update", "create"],
        "{json}"
    );
    assert!(!json.to_string().contains("hunter2"), "{json}");
    assert_eq!(versions(&desk).await, before, "nothing has changed");
    operator.stop().await.assert_code(0);
}

#[tokio::test]
async fn an_edited_script_is_planned_in_lua() {
    an_edited_script_is_planned(("handlers.lua", LUA), ("next.lua", NEXT_LUA)).await;
}

#[tokio::test]
async fn an_edited_script_is_planned_in_rhai() {
    an_edited_script_is_planned(("handlers.rhai", RHAI), ("next.rhai", NEXT_RHAI)).await;
}

#[tokio::test]
async fn a_plan_has_the_namespaces_and_scripts_of_the_configuration() {
    let desk = Desk::new("plan-config");
    desk.file("none.lua", "kopf.on_event('kopfexamples', function() end)");
    let script = "kopf.on_create('kopfexamples', function(ctx) ctx.patch.spec.seen = true end)";
    let map = format!(
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: scripts\ndata:\n  a.lua: \"{script}\"\n"
    );
    desk.file("object.yaml", &format!("{OBJECT}{map}"));
    let operator = desk.start("none.lua --apply object.yaml").await;
    desk.file("plan.yaml", "from-configmap: [default/scripts]\n");
    let planned = plan(&desk, "--config plan.yaml").await;
    let out = text(&planned.stdout);
    assert!(
        out.contains("kopfexamples.kopf.dev/one -n default\n    spec.seen: true"),
        "{planned:?}"
    );
    desk.file("plan.yaml", "from-configmap: [default/scripts]\nnamespace: [other]\n");
    let planned = plan(&desk, "--config plan.yaml").await;
    assert_eq!(text(&planned.stdout), "No changes.\n", "{planned:?}");
    operator.stop().await.assert_code(0);
}

#[tokio::test]
async fn admission_webhooks_of_the_cluster_are_not_called() {
    let desk = Desk::new("plan-webhooks");
    desk.file("none.lua", "kopf.on_event('kopfexamples', function() end)");
    let webhooks = r#"---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: { name: theirs }
webhooks:
- name: theirs.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: { url: "https://127.0.0.1:1/" }
  rules: [{ apiGroups: [kopf.dev], apiVersions: [v1], resources: [kopfexamples], operations: [UPDATE], scope: "*" }]
"#;
    desk.file("object.yaml", &format!("{OBJECT}{webhooks}"));
    let operator = desk.start("none.lua --apply object.yaml").await;
    desk.file(
        "next.lua",
        "kopf.on_create('kopfexamples', function(ctx)
            ctx.patch.spec.hook = kube.get('validatingwebhookconfigurations', { name = 'theirs' }).metadata.name
        end)
        kopf.on_validate('kopfexamples', { id = 'own' }, function(ctx)
            if ctx.spec.hook then ctx.warn('seen') end
        end)",
    );
    let planned = plan(&desk, "next.lua").await;
    let out = text(&planned.stdout);
    assert!(
        out.starts_with(
            "~ update kopfexamples.kopf.dev/one -n default\n    spec.hook: \"theirs\"\n"
        ),
        "{planned:?}"
    );
    assert!(out.ends_with("Plan: 0 to create, 1 to update, 0 to delete.\n"), "{planned:?}");
    operator.stop().await.assert_code(0);
}

#[tokio::test]
async fn what_has_effects_outside_of_the_cluster_fails_in_a_plan() {
    let desk = Desk::new("plan-outside");
    desk.file("none.lua", "kopf.on_event('kopfexamples', function() end)");
    desk.file("object.yaml", OBJECT);
    let operator = desk.start("none.lua --apply object.yaml").await;
    desk.file(
        "a.lua",
        "kopf.on_event('kopfexamples', function() http.get('http://127.0.0.1:1/x') end)",
    );
    desk.file(
        "b.rhai",
        "kopf::on_create(\"kopfexamples\", |ctx| { http.get(\"http://127.0.0.1:1/y\"); });",
    );
    let planned = plan(&desk, "a.lua b.rhai --allow-net 127.0.0.1:1").await;
    assert_eq!(planned.status.code(), Some(1));
    let problems = text(&planned.stderr);
    for path in ["x", "y"] {
        let refused =
            format!("kopf plan does not send GET http://127.0.0.1:1/{path}: skip it if ctx.dry");
        assert!(problems.contains(&refused), "{problems}");
    }
    let out = text(&planned.stdout);
    assert!(out.ends_with("The handler 'create' fails for 1 object.\n"), "{out}");
    operator.stop().await.assert_code(0);
}

#[tokio::test]
async fn a_plan_that_cannot_be_made_says_why() {
    let desk = Desk::new("plan-bad-input");
    desk.file("handlers.lua", "kopf.on_event('kopfexamples', function() end)");
    desk.file("broken.lua", "kopf.on_event('kopfexamples'");
    let operator = desk.start("handlers.lua").await;
    for (args, code, told) in [
        ("none.lua", 1, "error: there is no file or directory 'none.lua'\nhint: "),
        ("broken.lua", 1, "error: broken.lua:1: "),
        (
            "handlers.lua --for soon",
            2,
            "error: --for: not a duration: 'soon'\nhint: write it as 30s",
        ),
        ("handlers.lua --context other", 1, "error: the kubeconfig has no context 'other'"),
        ("handlers.lua -A -n a", 2, "error: "),
    ] {
        let refused = plan(&desk, args).await;
        assert_eq!(refused.status.code(), Some(code), "{args}: {refused:?}");
        assert!(text(&refused.stderr).starts_with(told), "{args}: {}", text(&refused.stderr));
        assert_eq!(text(&refused.stdout), "", "{args}");
    }
    operator.stop().await.assert_code(0);
    let gone = plan(&desk, "handlers.lua").await;
    assert_eq!(gone.status.code(), Some(1), "{gone:?}");
    assert!(text(&gone.stderr).contains("hint: "), "{gone:?}");
}
