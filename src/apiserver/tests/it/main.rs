//! The server over HTTP, on virtual time.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod admission;
mod clients;
mod conversions;
mod cycles;
mod deletions;
mod differential;
mod discovery;
mod faults;
mod forms;
mod hostile;
mod kubectl;
mod lists;
mod loading;
mod permissions;
mod placeholders;
mod refusals;
mod streams;
mod watches;
mod webhooks;
mod webhooks_https;
mod writes;

use std::{io::Write as _, time::Duration};

use http::Request;
use http_body_util::BodyExt as _;
use kopf_apiserver::{ApiServer, Builder, ResourceDef};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::Instant;

/// The collection of the test objects.
const OBJECTS: &str = "/apis/kopf.dev/v1/namespaces/ns1/kopfexamples";
/// The path of one test object.
const N1: &str = "/apis/kopf.dev/v1/namespaces/ns1/kopfexamples/n1";
/// The qualified resource, for the controls of the server.
const KEX: &str = "kopfexamples.kopf.dev";

const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json-patch+json";

/// A server, and a client of it.
struct Cluster {
    server: ApiServer,
    client: kube::Client,
    start: Instant,
}

impl Cluster {
    /// Returns a server that sets no metadata, as in the golden cycles.
    fn plain() -> Self {
        Self::new(ApiServer::builder().stamps(false), kex())
    }

    /// Returns a server that sets uids, times and generations, with a status subresource.
    fn stamping() -> Self {
        let def = ResourceDef { status_subresource: true, ..kex() };
        Self::new(ApiServer::builder(), def)
    }

    fn new(builder: Builder, def: ResourceDef) -> Self {
        let start = Instant::now();
        let clock = move || format!("2026-01-01T00:00:{:02}Z", start.elapsed().as_secs());
        let server = builder.resource(def).clock(clock).build();
        Self { client: client(&server), server, start }
    }

    async fn send(&self, method: &str, path: &str, kind: &str, body: String) -> (u16, Value) {
        send(&self.client, method, path, (kind, body)).await
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.send("GET", path, "", String::new()).await
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.send("POST", path, "application/json", body.to_string()).await
    }

    async fn put(&self, path: &str, body: Value) -> (u16, Value) {
        self.send("PUT", path, "application/json", body.to_string()).await
    }

    async fn patch(&self, path: &str, kind: &str, body: Value) -> (u16, Value) {
        self.send("PATCH", path, kind, body.to_string()).await
    }

    async fn delete(&self, path: &str) -> (u16, Value) {
        self.send("DELETE", path, "", String::new()).await
    }

    /// Opens a watch with these parameters.
    async fn watch(&self, query: &str) -> WatchLines {
        let uri = format!("{OBJECTS}?watch=true{query}");
        let request = Request::get(uri).body(Body::empty()).expect("a valid request");
        let response = self.client.send(request).await.expect("the server answers");
        assert_eq!(response.status(), 200);
        WatchLines { body: response.into_body(), start: self.start }
    }
}

/// Sends a body of this content type. Returns the status and the response: JSON, or a string.
async fn send(
    client: &kube::Client,
    method: &str,
    path: &str,
    (kind, body): (&str, String),
) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    let request = request.body(Body::from(body.into_bytes())).expect("a valid request");
    let response = client.send(request).await.expect("the server answers");
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a whole body").to_bytes();
    let text = || Value::String(String::from_utf8_lossy(&body).into_owned());
    (status, serde_json::from_slice(&body).unwrap_or_else(|_not_json| text()))
}

/// The lines of a watch.
struct WatchLines {
    body: Body,
    start: Instant,
}

impl WatchLines {
    /// Returns the next event; `None` at the end of the stream.
    async fn event(&mut self) -> Option<Value> {
        let frame = self.body.frame().await?.expect("a frame");
        let line = frame.into_data().expect("data");
        Some(serde_json::from_slice(&line).expect("a line is JSON"))
    }

    /// Returns the next event in short: time, type, name, version.
    async fn next(&mut self) -> String {
        let event = self.event().await;
        let at = self.start.elapsed().as_secs_f32();
        let Some(event) = event else { return format!("{at} END") };
        let [kind, name, version] =
            ["/type", "/object/metadata/name", "/object/metadata/resourceVersion"]
                .map(|it| event.pointer(it).and_then(Value::as_str).unwrap_or("-"));
        format!("{at} {kind} {name} {version}")
    }

    /// Returns whether there is no event for a second.
    async fn is_silent(&mut self) -> bool {
        tokio::time::timeout(Duration::from_secs(1), self.event()).await.is_err()
    }
}

/// Returns a client that calls the server in process.
fn client(server: &ApiServer) -> kube::Client {
    kube::Client::new(server.clone(), "default")
}

/// Prints a line of a report, which `--nocapture` shows.
fn say(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("an open standard output");
}

fn kex() -> ResourceDef {
    ResourceDef {
        short_names: vec!["kex".into()],
        categories: vec!["all".into()],
        ..ResourceDef::new("kopf.dev", "v1", "kopfexamples", "KopfExample")
    }
}

fn object(name: &str) -> Value {
    json!({
        "apiVersion": "kopf.dev/v1",
        "kind": "KopfExample",
        "metadata": { "name": name, "namespace": "ns1" },
        "spec": { "a": 1 },
    })
}

/// Returns an object with an additional field of metadata.
fn object_with(name: &str, field: &str, value: Value) -> Value {
    let mut object = object(name);
    object["metadata"][field] = value;
    object
}

fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap_or("none")
}
