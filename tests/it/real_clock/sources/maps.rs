//! `ConfigMap`s through the API, on the embedded server.

use kopf::{
    cli::report::Report,
    cluster::KubeCluster,
    settings::Settings,
    sources::{MapOption, Maps, ScriptFiles, SourceProblem, Sources},
    testing,
};
use kopf_apiserver::{ApiServer, Fault, FaultEffect};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{DEADLINE, Desk, Watch};

const CONFIGMAPS: &str = "configmaps";

fn server() -> ApiServer {
    ApiServer::builder().cluster(true).build()
}

fn map(name: &str, data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "default", "labels": { "app": name } },
        "data": data,
    })
}

fn named(name: &str) -> MapOption {
    MapOption::Named { namespace: Some("default".into()), name: name.into() }
}

async fn open(server: &ApiServer, options: &[MapOption]) -> Result<Maps, SourceProblem> {
    let cluster = KubeCluster::over(testing::client(server), std::sync::Arc::default());
    Maps::open(&cluster, options, &Settings::default()).await
}

fn create(server: &ApiServer, name: &str, data: &Value) {
    server.create(CONFIGMAPS, map(name, data)).expect("it is new");
}

fn edit(server: &ApiServer, name: &str, data: &Value) {
    let edit = |object: &mut Value| object["data"] = data.clone();
    server.update(CONFIGMAPS, "default", name, edit).expect("it is accepted");
}

#[tokio::test]
async fn the_scripts_of_a_map_are_its_keys_and_edits_are_seen() {
    let server = server();
    create(&server, "ops", &json!({ "a.lua": "1", "_lib.lua": "x" }));
    create(&server, "other", &json!({ "z.lua": "1" }));
    let maps = open(&server, &[named("ops")]).await.expect("it can be read");
    let mut watch = Watch::maps(maps).await;
    edit(&server, "other", &json!({ "z.lua": "2" }));
    edit(&server, "ops", &json!({ "a.lua": "2", "b.rhai": "2" }));
    let expected = "configmap/default/ops/a.lua=2 configmap/default/ops/b.rhai=2";
    assert_eq!(watch.next_text().await, expected);
}

#[tokio::test]
async fn a_map_that_is_deleted_is_a_problem_until_it_is_back() {
    let server = server();
    create(&server, "ops", &json!({ "a.lua": "1" }));
    let mut watch = Watch::maps(open(&server, &[named("ops")]).await.expect("it is there")).await;
    server.delete(CONFIGMAPS, "default", "ops").expect("it is there");
    assert_eq!(watch.next_text().await, "there is no configmap/default/ops");
    create(&server, "ops", &json!({ "a.lua": "2" }));
    assert_eq!(watch.next_text().await, "configmap/default/ops/a.lua=2");
}

#[tokio::test]
async fn a_map_that_is_replaced_at_once_is_one_change() {
    let server = server();
    create(&server, "ops", &json!({ "a.lua": "1" }));
    let mut watch = Watch::maps(open(&server, &[named("ops")]).await.expect("it is there")).await;
    server.delete(CONFIGMAPS, "default", "ops").expect("it is there");
    create(&server, "ops", &json!({ "a.lua": "2" }));
    assert_eq!(watch.next_text().await, "configmap/default/ops/a.lua=2");
}

#[tokio::test]
async fn labels_choose_maps_that_come_and_go() {
    let server = server();
    create(&server, "ops", &json!({ "a.lua": "1" }));
    let wanted = MapOption::Labelled("app in (ops, more)".into());
    let mut watch = Watch::maps(open(&server, &[wanted]).await.expect("it is there")).await;
    create(&server, "unrelated", &json!({ "x.lua": "1" }));
    create(&server, "more", &json!({ "b.lua": "1" }));
    let both = "configmap/default/more/b.lua=1 configmap/default/ops/a.lua=1";
    assert_eq!(watch.next_text().await, both);
    server.delete(CONFIGMAPS, "default", "ops").expect("it is there");
    assert_eq!(watch.next_text().await, "configmap/default/more/b.lua=1");
}

#[tokio::test]
async fn several_maps_are_one_set_and_none_is_read_twice() {
    let server = server();
    create(&server, "ops", &json!({ "a.lua": "1" }));
    create(&server, "more", &json!({ "b.lua": "1" }));
    let options = [named("ops"), named("more"), MapOption::Labelled("app=ops".into())];
    let mut watch = Watch::maps(open(&server, &options).await.expect("they are there")).await;
    edit(&server, "ops", &json!({ "a.lua": "2" }));
    edit(&server, "more", &json!({ "b.lua": "2" }));
    let both = "configmap/default/more/b.lua=2 configmap/default/ops/a.lua=2";
    assert_eq!(watch.next_text().await, both);
}

#[tokio::test]
async fn at_the_start_what_is_missing_or_useless_is_told_with_what_to_do() {
    let server = server();
    create(&server, "empty", &json!({ "readme.md": "" }));
    let problem = |options: Vec<MapOption>| {
        let server = server.clone();
        async move {
            let maps = open(&server, &options).await.expect("an answer");
            Report::from(maps.read().expect_err("a problem"))
        }
    };
    let missing = problem(vec![named("nope")]).await;
    assert_eq!(missing.message, "there is no configmap/default/nope");
    assert!(missing.hint.expect("a hint").contains("kubectl create configmap"));
    let none = problem(vec![MapOption::Labelled("app=nope".into())]).await;
    assert_eq!(none.message, "no ConfigMap in the namespace default has the labels app=nope");
    let empty = problem(vec![named("empty")]).await;
    assert_eq!(empty.message, "there are no scripts in configmap/default/empty");
}

#[tokio::test]
async fn a_refusal_at_the_start_names_the_rights_that_are_needed() {
    let server = server();
    let refuse = FaultEffect::Refuse { code: 403, retry_after_seconds: None };
    server.fault(Fault::always(refuse).on("GET", "/configmaps"));
    let problem = open(&server, &[named("ops")]).await.expect_err("a refusal");
    assert!(problem.message.starts_with("cannot read configmap/default/ops: "), "{problem}");
    assert!(problem.hint.expect("a hint").contains("list and watch on configmaps"));
}

#[tokio::test]
async fn lost_rights_are_told_and_the_scripts_stay_as_they_are() {
    let server = server();
    create(&server, "ops", &json!({ "a.lua": "1" }));
    let mut watch = Watch::maps(open(&server, &[named("ops")]).await.expect("it is there")).await;
    let refuse = FaultEffect::Refuse { code: 403, retry_after_seconds: None };
    server.fault(Fault::always(refuse).on("GET", "/configmaps"));
    server.compact();
    server.close_watches();
    loop {
        let look = timeout(DEADLINE, watch.0.changed()).await.expect("a look in time");
        assert!(!watch.0.is_new(&look), "{look:?}");
        if let [trouble] = watch.0.troubles().as_slice() {
            let start = "changes of configmap/default/ops are not detected: cannot ";
            assert!(trouble.starts_with(start) && trouble.contains("403"), "{trouble}");
            break;
        }
    }
    server.clear_faults();
    edit(&server, "ops", &json!({ "a.lua": "2" }));
    assert_eq!(watch.next_text().await, "configmap/default/ops/a.lua=2");
    assert!(watch.0.troubles().is_empty());
}

#[tokio::test]
async fn files_and_maps_are_one_set() {
    let server = server();
    let desk = Desk::new("both");
    desk.file("z.lua", "1");
    create(&server, "ops", &json!({ "a.lua": "1" }));
    let maps = open(&server, &[named("ops")]).await.expect("it is there");
    let files = ScriptFiles::at(&["z.lua".into()], &desk.0, None).expect("a path");
    let mut watch = Watch::begin(Sources::new(Some(files), Some(maps))).await;
    edit(&server, "ops", &json!({ "a.lua": "2" }));
    assert_eq!(watch.next_text().await, "z.lua=1 configmap/default/ops/a.lua=2");
    desk.file("z.lua", "2");
    assert_eq!(watch.next_text().await, "z.lua=2 configmap/default/ops/a.lua=2");
    server.delete(CONFIGMAPS, "default", "ops").expect("it is there");
    assert_eq!(watch.next_text().await, "there is no configmap/default/ops");
}
