//! An operator of `kopf dev`, from the start to the end.

use std::{collections::BTreeSet, process::Stdio};

use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    time::timeout,
};

use super::{DEADLINE, Desk, OBJECT, SCRIPT, client};
use crate::e2e::{operator::file, until};
use crate::ports::free_port;

fn examples() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("kopf.dev", "v1", "KopfExample"))
}

#[tokio::test]
async fn the_first_command_of_the_readme_runs_a_handler_with_no_cluster() {
    let desk = Desk::new("readme");
    let (script, object) = (file("examples/01-minimal/handlers.lua"), file("examples/obj.yaml"));
    let args = format!("{} --apply {}", script.display(), object.display());
    let operator = desk.start(&args).await;
    operator.until_says("And here we are! Creating:").await;
    operator.until_says("Handler 'create_fn' succeeded.").await;
    let kubeconfig = desk.kubeconfig();
    operator.until_says(&format!("export KUBECONFIG={}", kubeconfig.display())).await;
    assert!(kubeconfig.exists(), "the kubeconfig is where it is said to be");
    let ended = operator.stop().await;
    ended.assert_code(0);
    assert!(!kubeconfig.exists(), "the kubeconfig is gone with the server");
}

#[tokio::test]
async fn a_script_alone_is_enough_and_its_kind_can_be_used_at_once() {
    let desk = Desk::new("alone");
    desk.file("handlers.lua", SCRIPT);
    // No path: ./handlers.lua is a default location.
    let operator = desk.start("").await;
    operator.until_says("No CRD for kopfexamples.kopf.dev: serving a permissive one").await;

    let client = client(&desk.kubeconfig()).await;
    let api = Api::<DynamicObject>::namespaced_with(client, "default", &examples());
    let object: DynamicObject = serde_json::from_value(
        json!({ "metadata": { "name": "two" }, "spec": { "duration": "2m" } }),
    )
    .expect("an object");
    let object = DynamicObject { types: Some(types()), ..object };
    let created = api.create(&PostParams::default(), &object).await.expect("it is created");
    assert!(created.metadata.uid.is_some(), "the server gives identities");
    operator.until_says("[default/two] created with 2m").await;
    operator.until_says("Creation is processed: 1 succeeded").await;

    let listed = api.list(&ListParams::default()).await.expect("a list");
    assert_eq!(listed.items.len(), 1);
    operator.stop().await.assert_code(0);
}

fn types() -> kube::core::TypeMeta {
    kube::core::TypeMeta { api_version: "kopf.dev/v1".into(), kind: "KopfExample".into() }
}

#[tokio::test]
async fn handler_results_are_in_the_status_of_a_made_up_kind() {
    let desk = Desk::new("status");
    desk.file(
        "handlers.rhai",
        r#"fn made(ctx) { #{ size: 3 } } kopf::on_create("acme.example.com", "v2", "widgets", made);"#,
    );
    desk.file(
        "widget.json",
        r#"{"apiVersion": "acme.example.com/v2", "kind": "BigWidget", "metadata": {"name": "w"}}"#,
    );
    // The kind of the object is not that of the handler, so it has no CRD.
    let ended = desk.command(&["handlers.rhai", "--apply", "widget.json"]).output().await;
    let ended = ended.expect("it runs");
    assert_eq!(ended.status.code(), Some(1));

    let text = desk.text("widget.json").replace("BigWidget", "WidGet");
    desk.file("widget.json", &text);
    let operator = desk.start("handlers.rhai --apply widget.json").await;
    let gvk = GroupVersionKind::gvk("acme.example.com", "v2", "WidGet");
    let api = Api::<DynamicObject>::namespaced_with(
        client(&desk.kubeconfig()).await,
        "default",
        &ApiResource::from_gvk_with_plural(&gvk, "widgets"),
    );
    let result = json!({ "made": { "size": 3 } });
    until("the result is in the status", async || {
        let object = api.get("w").await.map_err(|it| it.to_string())?;
        if object.data["status"] == result { Ok(()) } else { Err(object.data.to_string()) }
    })
    .await;
    operator.stop().await.assert_code(0);
}

#[tokio::test]
async fn cleanup_handlers_run_at_the_end() {
    let desk = Desk::new("cleanup");
    desk.file(
        "handlers.lua",
        "kopf.on_cleanup(function(ctx) ctx.logger:info('swept') end)\nkopf.on_event('pods', function() end)",
    );
    let operator = desk.start("handlers.lua").await;
    let ended = operator.stop().await;
    ended.assert_code(0);
    ended.assert_count("swept", 1);
}

#[tokio::test]
async fn two_servers_at_once_have_two_kubeconfigs_and_a_restart_has_the_first_again() {
    let desk = Desk::new("two");
    desk.file("handlers.lua", SCRIPT);
    let first = desk.start("handlers.lua").await;
    let second = desk.start("handlers.lua").await;
    second.until_says("kopf/dev-2.kubeconfig").await;
    first.stop().await.assert_code(0);
    let third = desk.start("handlers.lua").await;
    third.until_says("kopf/dev.kubeconfig").await;
    second.stop().await.assert_code(0);
    third.stop().await.assert_code(0);
}

#[tokio::test]
async fn the_kubeconfig_is_where_it_is_asked_for_and_for_nobody_else() {
    use std::os::unix::fs::PermissionsExt as _;
    let desk = Desk::new("kubeconfig");
    desk.file("handlers.lua", SCRIPT);
    desk.file("one.yaml", OBJECT);
    let operator = desk.start("handlers.lua --write-kubeconfig my.config --apply one.yaml").await;
    let path = desk.path("my.config");
    let mode = path.metadata().expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let api = Api::<DynamicObject>::namespaced_with(client(&path).await, "default", &examples());
    api.get("one").await.expect("the object is there");
    operator.stop().await.assert_code(0);
    assert!(!path.exists());
}

#[tokio::test]
async fn probes_of_the_indexing_example_tell_which_pods_there_are() {
    for language in ["lua", "rhai"] {
        let desk = Desk::new(&format!("indexing-{language}"));
        let pod = |name: &str| {
            format!(
                "apiVersion: v1\nkind: Pod\nmetadata: {{ name: {name} }}\n\
                 spec: {{ containers: [{{ name: main, image: busybox }}] }}\n---\n"
            )
        };
        desk.file("pods.yaml", &format!("{}{}", pod("second"), pod("first")));
        let (script, object) =
            (file(&format!("examples/16-indexing/handlers.{language}")), file("examples/obj.yaml"));
        let port = free_port();
        let args = format!(
            "{} --apply pods.yaml --apply {} --liveness http://127.0.0.1:{port}/healthz",
            script.display(),
            object.display()
        );
        let operator = desk.start(&args).await;
        operator.until_says("Timer 'intervalled' succeeded.").await;
        let answer = get(port, "/healthz").await;
        let expected = r#"{"pod_count":2,"pod_names":["default::first","default::second"]}"#;
        assert!(answer.trim_end().ends_with(expected), "{language}: {answer}");
        let ended = operator.stop().await;
        ended.assert_code(0);
        ended.assert_count("Index", 0);
    }
}

/// Returns the response to `GET`, with its head.
async fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("somebody listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it answers");
    answer
}

#[tokio::test]
async fn nobody_needs_to_read_what_scripts_print() {
    let desk = Desk::new("unread");
    desk.file(
        "handlers.lua",
        "kopf.on_create('kopfexamples', function(ctx) print(ctx.name, string.rep('x', 3000)) end)",
    );
    let mut command = desk.command(&[]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut process = command.spawn().expect("it starts");
    let mut log = BufReader::new(process.stderr.take().expect("a log")).lines();
    loop {
        let line = timeout(DEADLINE, log.next_line()).await.expect("in time");
        let line = line.expect("the log can be read").expect("it does not end");
        if line.contains("Initial authentication has finished") {
            break;
        }
    }
    let api = client(&desk.kubeconfig()).await;
    let api = Api::<DynamicObject>::namespaced_with(api, "default", &examples());
    // More than a pipe holds. The server is in the same process.
    for number in 0..50 {
        let object = DynamicObject::new(&format!("o{number}"), &examples());
        let created = timeout(DEADLINE, api.create(&PostParams::default(), &object)).await;
        created.expect("the server answers").expect("it is created");
    }
    let mut printed = BufReader::new(process.stdout.take().expect("an output")).lines();
    let mut names = BTreeSet::new();
    while names.len() < 50 {
        let line = timeout(DEADLINE, printed.next_line()).await.expect("in time");
        let line = line.expect("the output can be read").expect("it does not end");
        names.extend(line.split_once('\t').map(|it| it.0.to_owned()));
    }
    process.kill().await.expect("it ends");
}
