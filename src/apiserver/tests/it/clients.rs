//! Clients of operators: `kube`'s typed API and watcher, and those of Python.
//!
//! Those of Python need `KOPF_PYTHON`, a Python with `kubernetes_asyncio` and `pykube`; the tests are skipped without it.

use std::net::{Ipv4Addr, SocketAddr};

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kopf_apiserver::{
    ApiServer,
    controllers::{self, Controllers},
    kubeconfig,
    serve::{Listener, ServeOptions},
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    runtime::{WatchStreamExt as _, watcher, watcher::Event},
};
use serde_json::json;
use tokio::{process::Command, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{client, differential::variable, say};

fn config_map(name: &str, value: &str) -> ConfigMap {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "labels": { "app": "a" } }, "data": { "key": value },
    });
    serde_json::from_value(map).expect("a ConfigMap")
}

#[tokio::test(start_paused = true)]
async fn kube_reads_writes_applies_and_lists_typed_objects() {
    let server = ApiServer::builder().cluster(true).build();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let created = maps.create(&PostParams::default(), &config_map("a", "1")).await;
    assert_eq!(created.expect("created").data.expect("data")["key"], "1");
    let refused = maps.create(&PostParams::default(), &config_map("a", "1")).await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.is_already_exists()));

    let ours = PatchParams::apply("ours");
    let applied = maps.patch("b", &ours, &Patch::Apply(config_map("b", "1"))).await;
    assert_eq!(applied.expect("applied").name_any(), "b");
    let theirs = PatchParams::apply("theirs");
    let conflict = maps.patch("b", &theirs, &Patch::Apply(config_map("b", "2"))).await;
    assert!(matches!(conflict, Err(kube::Error::Api(status)) if status.is_conflict()));
    let forced = maps.patch("b", &theirs.force(), &Patch::Apply(config_map("b", "2"))).await;
    assert_eq!(forced.expect("applied").data.expect("data")["key"], "2");

    let page = maps.list(&ListParams::default().labels("app=a").limit(1)).await.expect("a page");
    let token = page.metadata.continue_.expect("a next page");
    let rest = ListParams::default().labels("app=a").continue_token(&token);
    let rest = maps.list_metadata(&rest).await.expect("the rest");
    assert_eq!((page.items.len(), rest.items[0].name_any().as_str()), (1, "b"));
    maps.delete("a", &DeleteParams::default()).await.expect("deleted");
    assert!(maps.get_opt("a").await.expect("an answer").is_none());
}

#[tokio::test(start_paused = true)]
async fn watchers_of_kube_see_existing_objects_and_changes() {
    for strategy in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let server = ApiServer::builder().cluster(true).build();
        let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
        let create = |name: &'static str| {
            let maps = maps.clone();
            async move {
                maps.create(&PostParams::default(), &config_map(name, "1")).await.expect("created")
            }
        };
        create("there").await;
        let events = watcher(maps.clone(), strategy.labels("app=a")).default_backoff();
        let mut events = events.boxed();
        let mut seen = Vec::new();
        while seen.last().is_none_or(|it| it != "done") {
            seen.push(match events.try_next().await.expect("an event").expect("no end") {
                Event::Init => "init".to_owned(),
                Event::InitApply(it) => format!("there: {}", it.name_any()),
                Event::InitDone => "done".into(),
                Event::Apply(it) | Event::Delete(it) => panic!("too early: {}", it.name_any()),
            });
        }
        assert_eq!(seen, ["init", "there: there", "done"]);
        create("new").await;
        maps.delete("there", &DeleteParams::default()).await.expect("deleted");
        let mut next = async || events.try_next().await.expect("an event").expect("no end");
        assert!(matches!(next().await, Event::Apply(it) if it.name_any() == "new"));
        assert!(matches!(next().await, Event::Delete(it) if it.name_any() == "there"));
    }
}

#[tokio::test(start_paused = true)]
async fn kube_waits_until_a_deployment_is_complete() {
    let server = ApiServer::builder().cluster(true).build();
    let deployments: Api<Deployment> = Api::default_namespaced(client(&server));
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": {
            "replicas": 2, "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "name": "c", "image": "i" }] } },
        },
    });
    let deployment: Deployment = serde_json::from_value(deployment).expect("a Deployment");
    let rollout = async {
        deployments.create(&PostParams::default(), &deployment).await.expect("created");
        let complete = kube::runtime::conditions::is_deployment_completed();
        let found = kube::runtime::wait::await_condition(deployments.clone(), "web", complete);
        Box::pin(found).await.expect("an answer").expect("a Deployment")
    };
    let found = tokio::select! {
        found = rollout => found,
        () = controllers::run(server, Controllers::ALL) => panic!("controllers do not end"),
    };
    assert_eq!(found.status.expect("a status").available_replicas, Some(2));
}

/// The script for both clients of Python; its first argument is the address of the server.
const PYTHON: &str = r#"
import asyncio, sys
from kubernetes_asyncio import client, config, watch
import pykube

path, name = sys.argv[1], "by-kubernetes-asyncio"

async def asynchronous():
    await config.load_kube_config(path)
    async with client.ApiClient() as api:
        v1 = client.CoreV1Api(api)
        body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name), data={"a": "1"})
        created = await v1.create_namespaced_config_map("default", body)
        assert created.data == {"a": "1"}, created
        async with watch.Watch() as w:
            version = created.metadata.resource_version
            await v1.patch_namespaced_config_map(name, "default", {"data": {"a": "2"}})
            async for event in w.stream(v1.list_namespaced_config_map, "default", resource_version=version):
                assert (event["type"], event["object"].data) == ("MODIFIED", {"a": "2"}), event
                break
        try:
            await v1.read_namespaced_config_map("none", "default")
            raise AssertionError("found")
        except client.ApiException as error:
            assert error.status == 404, error
        await v1.delete_namespaced_config_map(name, "default")
        assert not [it for it in (await v1.list_namespaced_config_map("default")).items if it.metadata.name == name]

def synchronous():
    api = pykube.HTTPClient(pykube.KubeConfig.from_file(path))
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": {
        "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}
    object = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"}, "spec": spec}
    web = pykube.Deployment(api, object)
    web.create()
    web.reload()
    assert web.replicas == 1, web.obj
    web.patch({"spec": {"replicas": 3}})
    web.annotations["note"] = "text"
    web.update()
    found = pykube.Deployment.objects(api).filter(namespace="default").get(name="web")
    assert (found.replicas, found.annotations["note"]) == (3, "text"), found.obj
    web.delete()
    assert not web.exists()

asyncio.run(asynchronous())
synchronous()
print("both")
"#;

#[tokio::test]
async fn clients_of_python_work_on_the_embedded_server() {
    let Some(python) = variable("KOPF_PYTHON") else {
        say("clients of Python: skipped, set KOPF_PYTHON");
        return;
    };
    let server = ApiServer::builder().cluster(true).build();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = Listener::bind(ServeOptions { address, beyond_loopback: false }).await;
    let listener = listener.expect("a free port");
    let file = std::env::temp_dir().join(format!("kopf-python-{}", listener.address().port()));
    let mut config = kubeconfig::Kubeconfig::at(&file).expect("a writable file");
    config.write(&listener.url()).expect("a writable file");
    let stop = CancellationToken::new();
    let mut serving = JoinSet::new();
    serving.spawn(listener.serve(server, stop.clone()));
    let mut command = Command::new(python);
    let output = command.args(["-c", PYTHON]).arg(config.path()).kill_on_drop(true).output().await;
    let output = output.expect("a Python");
    stop.cancel();
    serving.join_all().await;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "both\n", "{errors}");
}
