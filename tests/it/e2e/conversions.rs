//! Conversion over HTTPS, for a real API server: stored objects move to another version and back.

use futures::StreamExt as _;
use serde_json::{Value, json};

use super::load::{client, send};
use super::namespace::Namespace;
use super::operator::{Operator, kopf};
use super::until;
use crate::ports::free_port;

/// Number of concurrent requests.
const AT_ONCE: usize = 16;

const LUA: &str = r#"
    kopf.on_convert("GROUP", { from = "v1", to = "v2" }, function(ctx)
        local object = kopf.copy(ctx.body)
        object.spec.host, object.spec.port = ctx.spec.address:match("^(.*):(%d+)$")
        object.spec.port = tonumber(object.spec.port)
        object.spec.address = nil
        return object
    end)
    kopf.on_convert("GROUP", { from = "v2", to = "v1" }, function(ctx)
        local object = kopf.copy(ctx.body)
        object.spec.address = `{ctx.spec.host}:{ctx.spec.port}`
        object.spec.host, object.spec.port = nil, nil
        return object
    end)
"#;

const RHAI: &str = r#"
    kopf::on_convert("GROUP", #{ from: "v1", to: "v2" }, |ctx| {
        let object = kopf::copy(ctx.body);
        let parts = ctx.spec.address.split(":");
        object.spec.host = parts[0];
        object.spec.port = parse_int(parts[1]);
        object.spec.remove("address");
        object
    });
    kopf::on_convert("GROUP", #{ from: "v2", to: "v1" }, |ctx| {
        let object = kopf::copy(ctx.body);
        object.spec.address = `${ctx.spec.host}:${ctx.spec.port}`;
        object.spec.remove("host");
        object.spec.remove("port");
        object
    });
"#;

/// A group with a CRD of two versions, and its objects.
struct Links {
    client: ::kube::Client,
    namespace: Namespace,
    group: String,
}

impl Links {
    async fn new(language: &str) -> Option<Self> {
        let namespace = Namespace::for_test(&format!("conversion-{language}")).await?;
        let client = client(&namespace).await;
        let group = format!("{language}.example.com");
        let links = Links { client, namespace, group };
        links.namespace.create(&links.definition()).await;
        until("the resource is served", async || {
            send(&links.client, "GET", &links.path("v1", ""), &Value::Null).await
        })
        .await;
        Some(links)
    }

    fn definition(&self) -> Value {
        let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let version = |name: &str| {
            json!({
                "name": name, "served": true, "storage": name == "v1",
                "schema": { "openAPIV3Schema": anything },
            })
        };
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": self.crd() },
            "spec": {
                "group": self.group, "scope": "Namespaced",
                "names": { "plural": "links", "singular": "link", "kind": "Link", "listKind": "LinkList" },
                "versions": [version("v1"), version("v2")],
            },
        })
    }

    fn crd(&self) -> String {
        format!("links.{}", self.group)
    }

    fn path(&self, version: &str, rest: &str) -> String {
        let (group, namespace) = (&self.group, &self.namespace.name);
        format!("/apis/{group}/{version}/namespaces/{namespace}/links{rest}")
    }

    async fn list(&self, version: &str) -> Vec<Value> {
        let listed = send(&self.client, "GET", &self.path(version, ""), &Value::Null).await;
        listed.expect("a list")["items"].as_array().expect("objects").clone()
    }

    async fn fill(&self, count: usize) {
        let requests = (0..count).map(|number| async move {
            let object = json!({
                "apiVersion": format!("{}/v1", self.group), "kind": "Link",
                "metadata": { "name": format!("link-{number}"), "labels": { "n": number.to_string() } },
                "spec": { "address": format!("host-{number}:{number}"), "list": [], "map": {}, "float": 1.5 },
            });
            send(&self.client, "POST", &self.path("v1", ""), &object).await.expect("it is created");
        });
        futures::stream::iter(requests).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    }

    /// Returns the hash of the storage version in discovery.
    async fn storage(&self) -> Result<String, String> {
        let path = format!("/apis/{}/v1", self.group);
        let found = send(&self.client, "GET", &path, &Value::Null).await?;
        let hash = found["resources"][0]["storageVersionHash"].as_str().map(str::to_owned);
        hash.ok_or_else(|| found.to_string())
    }

    /// Makes this the storage version, and stores all objects again.
    async fn store_in(&self, version: &str) {
        let path =
            format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", self.crd());
        let mut crd = send(&self.client, "GET", &path, &Value::Null).await.expect("the CRD");
        for it in crd["spec"]["versions"].as_array_mut().expect("versions") {
            it["storage"] = (it["name"] == version).into();
        }
        let versions = json!({ "spec": { "versions": crd["spec"]["versions"] } });
        let before = self.storage().await.expect("the resource");
        send(&self.client, "PATCH", &path, &versions).await.expect("it is changed");
        until("it is the storage version", async || {
            let now = self.storage().await?;
            if now == before { Err(now) } else { Ok(()) }
        })
        .await;
        let all = self.list(version).await;
        let requests = all.into_iter().map(|object| async move {
            let name = object["metadata"]["name"].as_str().expect("a name");
            let path = self.path(version, &format!("/{name}"));
            let mark = json!({ "metadata": { "annotations": { "stored": version } } });
            send(&self.client, "PATCH", &path, &mark).await.expect("it is stored");
        });
        futures::stream::iter(requests).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    }

    /// Starts an operator, and waits until objects are converted.
    async fn convert(&self, script: &str, language: &str) -> Operator {
        let directory =
            std::env::temp_dir().join(format!("kopf-{}-{}", self.group, std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let file = directory.join(format!("handlers.{language}"));
        std::fs::write(&file, script.replace("GROUP", &self.crd())).expect("it is written");
        let port = free_port().to_string();
        let url = format!("https://127.0.0.1:{port}");
        let args = [
            "--standalone",
            "-n",
            &self.namespace.name,
            "--webhook-url",
            &url,
            "--webhook-port",
            &port,
        ];
        let mut command = kopf(&self.namespace.kubeconfig(), &args);
        let operator = Operator::start(command.arg(&file));
        until("objects are converted", async || {
            let path = self.path("v2", "/link-7");
            let found = send(&self.client, "GET", &path, &Value::Null).await?;
            if found["spec"]["port"] == 7 { Ok(()) } else { Err(found.to_string()) }
        })
        .await;
        operator
    }
}

/// Returns the parts of an object that must not change: everything but its versions, its managers and its annotations.
fn essence(object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({
        "name": metadata["name"], "uid": metadata["uid"], "labels": metadata["labels"],
        "created": metadata["creationTimestamp"], "spec": object["spec"],
    })
}

async fn there_and_back(count: usize, (language, script): (&str, &str)) {
    let Some(links) = Links::new(language).await else { return };
    links.fill(count).await;
    let before: Vec<Value> = links.list("v1").await.iter().map(essence).collect();
    assert_eq!(before.len(), count);
    let operator = links.convert(script, language).await;
    links.store_in("v2").await;
    let converted = links.list("v2").await;
    assert!(
        converted
            .iter()
            .all(|it| it["spec"]["host"].is_string() && it["spec"]["address"].is_null())
    );
    links.store_in("v1").await;
    let after: Vec<Value> = links.list("v1").await.iter().map(essence).collect();
    assert_eq!(after, before, "there and back");
    operator.stop().await.assert_code(0);
    // Objects in the requested version need no conversion; the others do, and no operator converts them.
    assert_eq!(links.list("v1").await.len(), count);
    let failed = send(&links.client, "GET", &links.path("v2", "/link-7"), &Value::Null).await;
    let why = failed.expect_err("nobody converts it");
    assert!(why.contains("conversion webhook for"), "{why}");
}

#[tokio::test]
async fn two_thousand_stored_objects_move_to_another_version_and_back_in_lua() {
    there_and_back(2000, ("lua", LUA)).await;
}

#[tokio::test]
async fn stored_objects_move_to_another_version_and_back_in_rhai() {
    there_and_back(100, ("rhai", RHAI)).await;
}
