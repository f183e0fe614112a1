//! Conversion of objects between the versions of their CRD, on the embedded server.

use kopf::reactor::Operator;
use kopf::scripting::{Placement, Source, Terms};
use kopf::testing::{Environment, RunningOperator, run_paused};
use kopf::webhooks::LocalWebhooks;
use kopf_apiserver::{ApiServer, Post};
use serde_json::{Value, json};

use super::send;

const CRDS: &str = "customresourcedefinitions.apiextensions.k8s.io";
const LINKS: &str = "links.kopf.dev";

/// `address` of v1 is `host` and `port` of v2; v3, the storage version, has an object.
const LUA: &str = r#"
    kopf.on_convert("links", { from = "v1", to = "v2" }, function(ctx)
        local host, port = ctx.spec.address:match("^(.*):(%d+)$")
        if not host then error("the address has no port") end
        local object = kopf.copy(ctx.body)
        object.spec = { host = host, port = tonumber(port), list = ctx.spec.list, map = ctx.spec.map }
        return object
    end)
    kopf.on_convert("links", { from = "v2", to = "v1" }, function(ctx)
        local object = kopf.copy(ctx.body)
        object.spec.address = `{ctx.spec.host}:{ctx.spec.port}`
        object.spec.host, object.spec.port = nil, nil
        return object
    end)
    kopf.on_convert("links", { from = "v2", to = "v3" }, function(ctx)
        local object = kopf.copy(ctx.body)
        object.spec.target = { host = ctx.spec.host, port = ctx.spec.port }
        object.spec.host, object.spec.port = nil, nil
        return object
    end)
    kopf.on_convert("links", { from = "v3", to = "v2" }, function(ctx)
        local object = kopf.copy(ctx.body)
        object.spec.host, object.spec.port = ctx.spec.target.host, ctx.spec.target.port
        object.spec.target = nil
        return object
    end)
"#;

const RHAI: &str = r#"
    kopf::on_convert("links", #{ from: "v1", to: "v2" }, |ctx| {
        let parts = ctx.spec.address.split(":");
        if parts.len() < 2 { throw "the address has no port"; }
        let object = kopf::copy(ctx.body);
        object.spec.host = parts[0];
        object.spec.port = parse_int(parts[1]);
        object.spec.remove("address");
        object
    });
    kopf::on_convert("links", #{ from: "v2", to: "v1" }, |ctx| {
        let object = kopf::copy(ctx.body);
        object.spec.address = `${ctx.spec.host}:${ctx.spec.port}`;
        object.spec.remove("host");
        object.spec.remove("port");
        object
    });
    kopf::on_convert("links", #{ from: "v2", to: "v3" }, |ctx| {
        let object = kopf::copy(ctx.body);
        object.spec.target = #{ host: ctx.spec.host, port: ctx.spec.port };
        object.spec.remove("host");
        object.spec.remove("port");
        object
    });
    kopf::on_convert("links", #{ from: "v3", to: "v2" }, |ctx| {
        let object = kopf::copy(ctx.body);
        object.spec.host = ctx.spec.target.host;
        object.spec.port = ctx.spec.target.port;
        object.spec.remove("target");
        object
    });
"#;

/// Returns a CRD with these versions, of which the last one is stored.
pub(super) fn definition(versions: &[&str]) -> Value {
    let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let all = versions.iter().map(|name| {
        json!({
            "name": name, "served": true, "storage": Some(name) == versions.last(),
            "schema": { "openAPIV3Schema": anything },
        })
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": LINKS },
        "spec": {
            "group": "kopf.dev", "scope": "Namespaced",
            "names": { "plural": "links", "singular": "link", "kind": "Link", "listKind": "LinkList" },
            "versions": all.collect::<Value>(),
        },
    })
}

fn environment() -> (Environment, LocalWebhooks) {
    let local = LocalWebhooks::default();
    let posting = local.clone();
    let post = Post::new(move |target, body| {
        let local = posting.clone();
        async move {
            let answer = local.review(&target.url, &body).await;
            answer.unwrap_or_else(|| Err(format!("nothing is at {}", target.url)))
        }
    });
    (Environment::new(ApiServer::builder().cluster(true).webhooks(post)), local)
}

async fn operator(env: &Environment, file: &str, script: &str, local: &LocalWebhooks) -> Operator {
    let source = Source::alone(file, script);
    let terms = Terms::of(Placement::CurrentRuntime, &kopf::settings::Settings::default());
    let (host, handlers) = env.load(vec![source], terms).await;
    Operator { webhooks: Some(std::sync::Arc::new(local.clone())), ..env.operator(host, handlers) }
}

/// Starts a server with the CRD, and an operator that converts its objects.
async fn started(
    versions: &[&str],
    file: &str,
    script: &str,
) -> (Environment, LocalWebhooks, RunningOperator) {
    let (env, local) = environment();
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (status, body) = send(&env, "POST", crds, &definition(versions)).await;
    assert_eq!(status, 201, "{body}");
    let running = RunningOperator::start(operator(&env, file, script, &local).await);
    env.until(5).await;
    (env, local, running)
}

fn links(version: &str, rest: &str) -> String {
    format!("/apis/kopf.dev/{version}/namespaces/default/links{rest}")
}

fn link(version: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("kopf.dev/{version}"), "kind": "Link",
        "metadata": { "name": name, "labels": { "a": "b" } }, "spec": spec,
    })
}

fn by_chains(file: &'static str, script: &'static str) {
    run_paused(async move {
        let (env, _local, running) = started(&["v1", "v2", "v3"], file, script).await;
        let spec = json!({ "address": "here:80", "list": [], "map": {}, "deep": [{ "a": [] }] });
        let (status, created) = send(&env, "POST", &links("v1", ""), &link("v1", "a", &spec)).await;
        assert_eq!((status, &created["spec"]["address"]), (201, &json!("here:80")), "{created}");
        let stored = env.server.get(LINKS, "default", "a").expect("it is stored");
        assert_eq!(stored["apiVersion"], "kopf.dev/v3");
        assert_eq!(stored["spec"]["target"], json!({ "host": "here", "port": 80 }));
        assert_eq!((&stored["spec"]["list"], &stored["spec"]["map"]), (&json!([]), &json!({})));
        let (_, shown) = send(&env, "GET", &links("v1", "/a"), &json!(null)).await;
        assert_eq!(shown["metadata"], stored["metadata"], "metadata stays, with its labels");
        let (_, list) = send(&env, "GET", &links("v2", ""), &json!(null)).await;
        assert_eq!(
            (&list["items"][0]["spec"]["host"], &list["items"][0]["spec"]["port"]),
            (&json!("here"), &json!(80))
        );
        let (status, failed) =
            send(&env, "POST", &links("v1", ""), &link("v1", "b", &json!({ "address": "x" })))
                .await;
        let text = failed["message"].as_str().expect("a message");
        assert_eq!(status, 500);
        let start = "conversion webhook for kopf.dev/v1, Kind=Link failed: \
            the handler 'convert/v1-v2' failed to convert Link default/b from v1 to v2: ";
        assert!(text.starts_with(start) && text.contains("the address has no port"), "{text}");
        running.stop().await;
    });
}

#[test]
fn objects_are_converted_by_chains_in_lua() {
    by_chains("handlers.lua", LUA);
}

#[test]
fn objects_are_converted_by_chains_in_rhai() {
    by_chains("handlers.rhai", RHAI);
}

#[test]
fn the_crd_has_the_webhook_before_the_first_list_and_keeps_it_at_the_end() {
    run_paused(async {
        let watching = format!(r#"{LUA} kopf.on_event("links", function(ctx) end)"#);
        let (env, _local, running) = started(&["v1", "v2", "v3"], "handlers.lua", &watching).await;
        let requests = env.server.requests();
        let position = |method: &str, path: &str| {
            requests.iter().position(|it| it.method == method && it.path.contains(path))
        };
        let (patch, list) = (position("PATCH", LINKS), position("GET", "/kopf.dev/v3/links"));
        assert!(patch.is_some() && patch < list, "{patch:?} {list:?}");
        let conversion = env.get(CRDS, LINKS)["spec"]["conversion"].clone();
        assert_eq!(conversion["strategy"], "Webhook");
        assert_eq!(conversion["webhook"]["conversionReviewVersions"], json!(["v1"]));
        let url = "https://kopf-dev.invalid/links.kopf.dev";
        assert_eq!(conversion["webhook"]["clientConfig"], json!({ "url": url }));
        // Another client applies the CRD again.
        env.edit(
            CRDS,
            LINKS,
            json!({ "spec": { "conversion": { "strategy": "None", "webhook": null } } }),
        );
        env.until(env.start.elapsed().as_secs() + 5).await;
        assert_eq!(env.get(CRDS, LINKS)["spec"]["conversion"], conversion);
        let writes = env.requests("PATCH", LINKS).len();
        env.until(env.start.elapsed().as_secs() + 600).await;
        assert_eq!(env.requests("PATCH", LINKS).len(), writes, "nothing else");
        running.stop().await;
        assert_eq!(env.get(CRDS, LINKS)["spec"]["conversion"], conversion, "objects need it");
    });
}

#[test]
fn a_list_of_500_objects_is_one_review() {
    run_paused(async {
        let (env, local, running) = started(&["v1", "v2", "v3"], "handlers.lua", LUA).await;
        for index in 0..500 {
            let spec = json!({ "target": { "host": format!("h{index}"), "port": index } });
            let (status, _) =
                send(&env, "POST", &links("v3", ""), &link("v3", &format!("l{index:03}"), &spec))
                    .await;
            assert_eq!(status, 201);
        }
        let (status, list) = send(&env, "GET", &links("v1", ""), &json!(null)).await;
        assert_eq!((status, list["items"].as_array().map(Vec::len)), (200, Some(500)));
        assert_eq!(list["items"][499]["spec"]["address"], "h499:499");
        let review = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": { "uid": "u", "desiredAPIVersion": "kopf.dev/v3", "objects": list["items"] },
        });
        let body = review.to_string().into();
        let answer = local.review("https://kopf-dev.invalid/links.kopf.dev", &body).await;
        let answer: Value =
            serde_json::from_slice(&answer.expect("it is ours").expect("an answer")).expect("JSON");
        let response = &answer["response"];
        assert_eq!(
            (&response["uid"], &response["result"]),
            (&json!("u"), &json!({ "status": "Success" }))
        );
        let back = response["convertedObjects"].as_array().expect("objects");
        let (_, stored) = send(&env, "GET", &links("v3", ""), &json!(null)).await;
        assert_eq!(Some(back), stored["items"].as_array(), "there and back");
        running.stop().await;
    });
}

#[test]
fn handlers_change_labels_and_annotations_and_nothing_else_of_the_metadata() {
    run_paused(async {
        let script = r#"
            kopf.on_convert("links", { from = "v1", to = "v2" }, function(ctx)
                local object = kopf.copy(ctx.body)
                if ctx.name == "renamed" then object.metadata.name = "other" end
                if ctx.name == "owned" then object.metadata.finalizers = { "a/b" } end
                if ctx.name == "nothing" then return nil end
                if ctx.name == "patched" then ctx.patch.spec.x = 1 end
                if ctx.name == "kind" then object.kind = "Other" end
                if ctx.name == "brief" then return { spec = { x = 1 } } end
                object.metadata.labels = { seen = `{ctx.from}-{ctx.to}` }
                object.metadata.annotations = { c = "d" }
                return object
            end)
        "#;
        let (env, local, running) = started(&["v1", "v2"], "handlers.lua", script).await;
        let convert = async |name: &str, to: &str| {
            let mut object = link("v1", name, &json!({}));
            object["metadata"]["uid"] = "1".into();
            let review = json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
                "request": { "uid": "u", "desiredAPIVersion": format!("kopf.dev/{to}"), "objects": [object] },
            });
            let body = review.to_string().into();
            let answer = local.review("https://kopf-dev.invalid/links.kopf.dev", &body).await;
            let answer = answer.expect("it is ours").expect("an answer");
            serde_json::from_slice::<Value>(&answer).expect("JSON")["response"].clone()
        };
        let fine = convert("fine", "v2").await;
        let metadata = json!({ "name": "fine", "labels": { "seen": "v1-v2" }, "uid": "1", "annotations": { "c": "d" } });
        assert_eq!(fine["convertedObjects"][0]["metadata"], metadata);
        let brief = convert("brief", "v2").await;
        let labels = &brief["convertedObjects"][0]["metadata"]["labels"];
        assert_eq!(
            (labels, &brief["convertedObjects"][0]["spec"]),
            (&json!({ "a": "b" }), &json!({ "x": 1 }))
        );
        for (name, why) in [
            (
                "renamed",
                "it has changed metadata.name, but only labels and annotations can be changed",
            ),
            (
                "owned",
                "it has changed metadata.finalizers, but only labels and annotations can be changed",
            ),
            ("nothing", "it must return the converted object"),
            (
                "patched",
                "it changes ctx.patch or ctx.conditions: return the converted object instead",
            ),
            ("kind", "it has changed the kind"),
        ] {
            let result = convert(name, "v2").await["result"].clone();
            let text = format!(
                "the handler 'convert/v1-v2' failed to convert Link {name} from v1 to v2: {why}"
            );
            assert_eq!(result, json!({ "status": "Failure", "message": text }));
        }
        let missing = convert("fine", "v9").await["result"]["message"].clone();
        assert_eq!(missing, "no chain of on_convert handlers converts Link fine from v1 to v9");
        running.stop().await;
        drop(env);
    });
}
