//! The operator of `docs/migration.md`, in Python and in both languages of scripts: the same events leave the same objects.
//!
//! Python's Kopf runs the original in a namespace, and this program the two ports in others, at the same time and on the same server.

use serde_json::{Value, json};
use tokio::process::Command;

use super::{
    namespace::{Namespace, is_settled},
    operator::{Operator, file, kopf},
    server::variable,
    until,
};
use crate::vectors::say;

const LEASES: &str = "volumeleases.example.com";
const CLAIMS: &str = "persistentvolumeclaims";
const NOTES: &str = "configmaps";
const BACKUPS: &str = "jobs";
/// The path of the result of `back_up` in the status.
const BACKED_UP: &str = "/back_up~1spec.backup";
/// The number of Kubernetes events that operators post by themselves: four leases have got a claim, one does not shrink.
const POSTED: usize = 5;

/// The fields that a server or an operator generates for each object.
const MADE_UP: [&str; 7] = [
    "uid",
    "creationTimestamp",
    "resourceVersion",
    "managedFields",
    "selfLink",
    "namespace",
    "generation",
];

#[tokio::test]
async fn the_ports_leave_what_the_original_leaves() {
    let Some(python) = variable("KOPF_PYTHON") else {
        say("e2e migration: skipped, KOPF_PYTHON is no Python with Kopf and kubernetes_asyncio");
        return;
    };
    let Some(original) = Stage::prepare("migration-python").await else { return };
    let Some(lua) = Stage::prepare("migration-lua").await else { return };
    let Some(rhai) = Stage::prepare("migration-rhai").await else { return };
    let (expected, in_lua, in_rhai) = tokio::join!(
        original.play(original.python(&python)),
        lua.play(lua.ours("handlers.lua")),
        rhai.play(rhai.ours("handlers.rhai")),
    );
    let different =
        [differences(&expected, &in_lua, "lua"), differences(&expected, &in_rhai, "rhai")];
    let different = different.concat();
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// Returns the objects in which the results of two operators differ.
fn differences(
    expected: &[(&'static str, Value)],
    left: &[(&'static str, Value)],
    language: &str,
) -> Vec<String> {
    assert_eq!(left.len(), expected.len());
    let mut told = Vec::new();
    for ((after, expected), (_, left)) in expected.iter().zip(left) {
        let objects = |it: &Value| it.as_array().expect("a list").clone();
        let (expected, left) = (objects(expected), objects(left));
        let other = |it: &&Value, all: &[Value]| !all.contains(it);
        let missing = expected.iter().filter(|it| other(it, &left));
        told.extend(missing.map(|it| format!("{language}, after {after}: not left: {it}")));
        let more = left.iter().filter(|it| other(it, &expected));
        told.extend(more.map(|it| format!("{language}, after {after}: left: {it}")));
    }
    told
}

/// A namespace for one of the operators.
struct Stage(Namespace);

impl Stage {
    async fn prepare(test: &str) -> Option<Self> {
        let namespace = Namespace::for_test(test).await?;
        namespace.define("examples/migration/crd.yaml").await;
        Some(Stage(namespace))
    }

    fn python(&self, python: &str) -> Operator {
        Operator::start(
            Command::new(python)
                .env("KUBECONFIG", self.0.kubeconfig())
                .args(["-m", "kopf", "run", "--standalone", "--verbose", "-n", &self.0.name])
                .arg(file("examples/migration/operator.py")),
        )
    }

    fn ours(&self, script: &str) -> Operator {
        let args = ["--standalone", "--verbose", "-n", &self.0.name];
        let mut command = kopf(&self.0.kubeconfig(), &args);
        // Kopf posts no events about failures.
        command.arg("--set=posting.failures=false");
        Operator::start(command.arg(file("examples/migration").join(script)))
    }

    /// Performs the events. Returns the existing objects after each part.
    async fn play(&self, operator: Operator) -> Vec<(&'static str, Value)> {
        let mut states = Vec::new();
        self.lease("data", json!({ "team": "red", "tier": "back" }), json!({ "size": "1Gi" }))
            .await;
        self.lease("bare", json!({}), json!({})).await;
        let backup = json!({ "image": "copier:1" });
        let kept = json!({ "keep": true, "class": "fast", "backup": backup });
        self.lease("kept", json!({}), kept).await;
        self.lease("wrong", json!({}), json!({ "size": "big" })).await;
        for name in ["data", "bare", "kept"] {
            let claim = format!("lease-{name}");
            self.until_status(name, "/claims", json!([claim])).await;
            self.until_status(name, "/provide", json!({ "claim": claim })).await;
        }
        let job = json!({ "job": "kept-backup", "image": "copier:1" });
        self.until_status("kept", BACKED_UP, job).await;
        self.until_handled("wrong").await;
        states.push(("creating", self.left().await));

        self.patch("data", json!({ "spec": { "size": "2Gi" } })).await;
        self.until_status("data", "/size", json!("2Gi")).await;
        states.push(("growing", self.left().await));

        self.patch("data", json!({ "spec": { "size": "1Gi" } })).await;
        self.until_status("data", "/problem", json!("cannot shrink from 2Gi to 1Gi")).await;
        states.push(("shrinking", self.left().await));

        let labels = json!({ "team": "blue", "tier": null, "new": "yes" });
        self.patch("data", json!({ "metadata": { "labels": labels } })).await;
        self.until_handled("data").await;
        states.push(("relabelling", self.left().await));

        self.patch("data", json!({ "spec": { "size": "3Gi", "snapshots": ["one", "two"] } })).await;
        self.until_status("data", "/size", json!("3Gi")).await;
        states.push(("snapshots", self.left().await));

        let backup = |image: &str| {
            let args = ["-a", "it's \"all\" of {it}"];
            json!({ "spec": { "backup": { "image": image, "args": args } } })
        };
        for image in ["copier:1", "copier:2"] {
            self.patch("data", backup(image)).await;
            let job = json!({ "job": "data-backup", "image": image });
            self.until_status("data", BACKED_UP, job).await;
        }
        self.patch("kept", json!({ "spec": { "backup": null } })).await;
        self.until_status("kept", "/summary", json!("1Gi, kept at the end")).await;
        states.push(("backups", self.left().await));

        self.lease("short", json!({}), json!({ "ttl": 5 })).await;
        self.delete("kept").await;
        self.delete("data").await;
        for name in ["kept", "data", "short"] {
            self.until_gone(name).await;
        }
        states.push(("deleting", self.left().await));
        assert_played(&states);
        states.push(("all of it", self.posted().await));

        let ended = operator.stop().await;
        ended.assert_code(0);
        ended.assert_count("No lease is served any more.", 1);
        states
    }

    async fn lease(&self, name: &str, labels: Value, spec: Value) {
        let metadata = json!({ "name": name, "labels": labels });
        let kind = json!({ "apiVersion": "example.com/v1", "kind": "VolumeLease" });
        let mut lease = kind;
        lease["metadata"] = metadata;
        lease["spec"] = spec;
        self.0.create(&lease).await;
    }

    async fn patch(&self, name: &str, patch: Value) {
        self.0.kubectl(&["patch", LEASES, name, "--type=merge", "-p", &patch.to_string()]).await;
    }

    async fn delete(&self, name: &str) {
        self.0.kubectl(&["delete", LEASES, name, "--wait=false"]).await;
    }

    async fn get(&self, name: &str) -> Result<Value, String> {
        let text = self.0.try_kubectl(&["get", LEASES, name, "-o", "json"], "").await?;
        Ok(serde_json::from_str(&text).expect("kubectl prints JSON"))
    }

    /// Waits until the current state of a lease is handled, and its status has this value.
    async fn until_status(&self, name: &str, pointer: &str, wanted: Value) {
        let what = format!("{}: {pointer} of {name} is {wanted}", self.0.name);
        self.until_lease(name, &what, |it| it["status"].pointer(pointer) == Some(&wanted)).await;
    }

    async fn until_handled(&self, name: &str) {
        self.until_lease(name, &format!("{}: {name} is handled", self.0.name), |_| true).await;
    }

    async fn until_lease(&self, name: &str, what: &str, wanted: impl Fn(&Value) -> bool) {
        until(what, async || {
            let lease = self.get(name).await?;
            let is_done = is_settled(&lease) && is_up_to_date(&lease) && wanted(&lease);
            if is_done { Ok(()) } else { Err(format!("{lease:#}")) }
        })
        .await;
    }

    async fn until_gone(&self, name: &str) {
        until(&format!("{}: {name} is gone", self.0.name), async || match self.get(name).await {
            Ok(lease) => Err(format!("{lease:#}")),
            Err(told) if told.contains("NotFound") => Ok(()),
            Err(told) => Err(told),
        })
        .await;
    }

    /// Returns all existing objects, without the parts that differ between any two runs.
    async fn left(&self) -> Value {
        let mut all = Vec::new();
        for resource in [LEASES, CLAIMS, NOTES, BACKUPS] {
            let text = self.0.kubectl(&["get", resource, "-o", "json"]).await;
            let list: Value = serde_json::from_str(&text).expect("kubectl prints JSON");
            let items = list["items"].as_array().expect("a list").iter();
            // Controllers, if there are any, create it in every namespace.
            let own = items.filter(|it| it["metadata"]["name"] != "kube-root-ca.crt");
            all.extend(own.map(|it| comparable(it.clone())));
        }
        Value::Array(all)
    }

    /// Returns the posted Kubernetes events, except lines of the log.
    async fn posted(&self) -> Value {
        until(&format!("{}: events are posted", self.0.name), async || {
            let text = self.0.kubectl(&["get", "events", "-o", "json"]).await;
            let list: Value = serde_json::from_str(&text).expect("kubectl prints JSON");
            let items = list["items"].as_array().expect("a list").iter();
            let own = items.filter(|it| it["reason"] != "Logging");
            let told = own.map(|it| {
                let about = &it["involvedObject"]["name"];
                json!([about, it["type"], it["reason"], it["message"]])
            });
            let mut told: Vec<_> = told.collect();
            told.sort_by_key(ToString::to_string);
            if told.len() < POSTED { Err(format!("{told:?}")) } else { Ok(Value::Array(told)) }
        })
        .await
    }
}

/// Returns whether the last handled state is the current one.
fn is_up_to_date(lease: &Value) -> bool {
    let last = lease["metadata"]["annotations"]["kopf.zalando.org/last-handled-configuration"]
        .as_str()
        .and_then(|it| serde_json::from_str::<Value>(it).ok())
        .unwrap_or_default();
    let same = |path: &str| last.pointer(path) == lease.pointer(path);
    same("/spec") && same("/metadata/labels")
}

fn comparable(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    metadata.retain(|key, _| !MADE_UP.contains(&key.as_str()));
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.retain(|key, _| !key.starts_with("kopf.zalando.org/"));
    }
    let owners = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut);
    for owner in owners.into_iter().flatten().filter_map(Value::as_object_mut) {
        owner.retain(|key, _| key != "uid");
    }
    forget_uids(&mut object);
    object
}

/// Removes the uids by which servers select the pods of a job.
fn forget_uids(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !key.ends_with("controller-uid"));
            fields.values_mut().for_each(forget_uids);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_uids),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Checks that the operators have acted: three operators that do nothing would leave the same objects, too.
fn assert_played(states: &[(&str, Value)]) {
    let (_, last) = states.last().expect("states");
    let all = last.as_array().expect("a list").iter();
    let names: Vec<_> = all.map(|it| it["metadata"]["name"].as_str().expect("a name")).collect();
    let leases = ["bare", "wrong"];
    let claims = ["lease-bare", "lease-data", "lease-kept", "lease-short"];
    let notes = ["data-one", "data-two"];
    let backups = ["data-backup"];
    assert_eq!(names, [&leases[..], &claims, &notes, &backups].concat(), "{last:#}");
    let pod = &last[8]["spec"]["template"];
    assert_eq!(pod["metadata"]["labels"]["example.com/backup"], "data", "{pod:#}");
    assert_eq!(pod["spec"]["containers"][0]["args"][1], "it's \"all\" of {it}", "{pod:#}");
    assert_eq!(last[8]["metadata"]["ownerReferences"][0]["name"], "data", "{last:#}");
    let kept = &last[4];
    assert_eq!(kept["metadata"]["labels"]["example.com/kept"], "true", "{kept:#}");
    assert_eq!(kept["metadata"]["ownerReferences"], Value::Null, "{kept:#}");
    let data = &last[3]["metadata"];
    assert_eq!(data["annotations"]["example.com/size"], "3Gi", "{data:#}");
    let labels = json!({ "example.com/lease": "data", "team": "blue", "new": "yes" });
    assert_eq!(data["labels"], labels, "{data:#}");
}
