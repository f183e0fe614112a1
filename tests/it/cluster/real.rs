//! Against a real API server: `KUBECONFIG` with a context `envtest`, as test environments make it. Skipped without one.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::StreamExt as _;
use kopf::{
    cluster::{ConnectOptions, KubeCluster},
    logic::{
        background::posting::{self, Note},
        object::{ObjectRef, reason::EventType, resource::Resource},
    },
    ports::{
        ApiError, Cluster as _, ErrorClass, GroupFilter, NewObject, PatchKind, PatchRequest,
        StreamEvent, StreamTarget,
    },
    settings::Settings,
};
use serde_json::json;

use crate::vectors::say;

/// Maximum wait of this test.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the kubeconfig of a test environment, if one is running.
#[expect(clippy::disallowed_methods, reason = "the tests are the outermost layer")]
fn kubeconfig() -> Option<String> {
    let path = std::env::var("KUBECONFIG").ok()?;
    let text = fs::read_to_string(PathBuf::from(path)).ok()?;
    text.contains("name: envtest-nobody").then_some(text)
}

fn configmaps() -> Resource {
    Resource {
        version: "v1".into(),
        plural: "configmaps".into(),
        kind: "ConfigMap".into(),
        namespaced: true,
        ..Resource::default()
    }
}

#[tokio::test]
async fn a_real_server_takes_the_events_that_are_composed() {
    if kubeconfig().is_none() {
        say("skipped: no test environment with a real API server in KUBECONFIG");
        return;
    }
    let cluster = KubeCluster::connect(ConnectOptions::default()).await.expect("a cluster");
    let about = ObjectRef {
        api_version: "kopf.dev/v1".into(),
        kind: "KopfExample".into(),
        name: "kopf-example-1".into(),
        uid: "a70153bc-47c0-43b0-8acd-de145afbe6c4".into(),
        namespace: Some("default".into()),
    };
    let note = Note { kind: "Normal".into(), reason: "Tested".into(), message: "ü".repeat(1500) };
    let now = "2026-01-01T00:00:00Z".parse().expect("a time");
    let namespace = Some(cluster.default_namespace());
    let event = posting::compose(&note, &about, &Settings::default().posting, namespace, now);
    let event = event.expect("posting is on");
    let resource = Resource { plural: "events".into(), kind: "Event".into(), ..configmaps() };
    let payload = Bytes::from(event.body.to_string());
    let new = NewObject {
        resource: &resource,
        namespace: Some(&event.namespace),
        payload,
        backoffs: None,
    };
    let created = cluster.create(new).await.expect("the event is accepted");
    assert_eq!(created.body()["involvedObject"]["uid"], about.uid);
    // The limit counts bytes.
    assert!(
        created.body()["message"].as_str().is_some_and(|it| it.len() > 1000 && it.contains("..."))
    );
}

#[tokio::test]
async fn a_real_server_is_discovered_listed_watched_and_patched() {
    if kubeconfig().is_none() {
        say("skipped: no test environment with a real API server in KUBECONFIG");
        return;
    }
    let cluster = KubeCluster::connect(ConnectOptions::default()).await.expect("a cluster");
    let found = cluster.discover(&GroupFilter::All).await.expect("resources");
    let resource =
        found.resources.iter().find(|it| it.to_string() == "configmaps.v1").expect("config maps");
    assert_eq!((resource.kind.as_str(), resource.namespaced), ("ConfigMap", true));

    let settings = Arc::new(Settings::default());
    let target = StreamTarget {
        extent: kopf::ports::Extent::Whole,
        resource: Arc::new(resource.clone()),
        namespace: Some("default".into()),
        settings,
        restrictions: None,
    };
    let mut stream = cluster.stream(target);
    while !matches!(next(&mut stream).await, StreamEvent::Listed) {}

    let body = json!({"metadata": {"generateName": "kopf-it-"}, "data": {"a": "1"}}).to_string();
    let new = NewObject {
        resource,
        namespace: Some("default"),
        payload: Bytes::from(body),
        backoffs: None,
    };
    let created = cluster.create(new).await.expect("an object");
    let name = created.header().name.clone().expect("a name");
    let patched = cluster
        .patch(PatchRequest {
            resource,
            namespace: Some("default"),
            name: &name,
            subresource: None,
            kind: PatchKind::Merge,
            payload: Bytes::from_static(br#"{"data": {"a": null, "b": "2"}}"#),
            interrupt: None,
        })
        .await
        .expect("an object");
    assert_eq!(patched.body()["data"], json!({"b": "2"}));
    let listed = cluster.list(resource, Some("default")).await.expect("objects");
    let listed = listed.iter().find(|it| it.header().name.as_deref() == Some(&name)).expect("ours");
    assert_eq!(listed.header().kind, "ConfigMap");

    let mut changes = Vec::new();
    while changes.len() < 2 {
        if let StreamEvent::Object(kind, object) = next(&mut stream).await
            && object.header().name.as_deref() == Some(&name)
        {
            changes.push((kind, object.header().resource_version.clone()));
        }
    }
    let expected = [
        (Some(EventType::Added), created.header().resource_version.clone()),
        (Some(EventType::Modified), patched.header().resource_version.clone()),
    ];
    assert_eq!(changes, expected);
}

async fn next(
    stream: &mut (impl futures::Stream<Item = Result<StreamEvent, ApiError>> + Unpin),
) -> StreamEvent {
    let item = tokio::time::timeout(PATIENCE, stream.next()).await.expect("an event in time");
    item.expect("a stream has no end").expect("an event")
}

#[tokio::test]
async fn a_user_without_rights_is_told_which_rule_is_missing() {
    let Some(text) = kubeconfig() else {
        say("skipped: no test environment with a real API server in KUBECONFIG");
        return;
    };
    let text = text.replace("current-context: envtest", "current-context: envtest-nobody");
    let config = kube::config::Kubeconfig::from_yaml(&text).expect("a kubeconfig");
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(config, &options);
    let ring = rustls::crypto::ring::default_provider();
    let _installed_before = ring.install_default().is_err();
    let client = kube::Client::try_from(config.await.expect("a config")).expect("a client");
    let cluster = KubeCluster::over(client, Arc::new(Settings::default()));
    let error = cluster.list(&configmaps(), None).await.expect_err("denied");
    assert_eq!((error.class, error.status), (ErrorClass::Denied, Some(403)));
    assert!(error.message.starts_with("cannot list configmaps.v1 cluster-wide: 403 Forbidden: "));
    assert!(error.hint.expect("a hint").contains(r#"resources: ["configmaps"], verbs: ["list"]"#));
}
