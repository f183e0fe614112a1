//! Invalid input is reported in a line or two, before anything runs.

use expect_test::{Expect, expect};
use tokio::{net::TcpListener, time::timeout};

use super::{DEADLINE, Desk, OBJECT, SCRIPT};

/// Runs it to its end; it must fail with this message on stderr, and nothing on stdout.
async fn check(desk: &Desk, args: &str, code: i32, expected: &Expect) {
    let args: Vec<&str> = args.split_whitespace().collect();
    // Without a mistake it would run forever.
    let output = timeout(DEADLINE, desk.command(&args).kill_on_drop(true).output()).await;
    let output = output.unwrap_or_else(|_| panic!("{args:?} runs")).expect("it can be started");
    let told = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(code), "{told}");
    assert_eq!(output.stdout, b"", "errors go to stderr");
    expected.assert_eq(&told);
    assert!(!desk.kubeconfig().exists(), "no kubeconfig is left");
}

fn desk(test: &str) -> Desk {
    let desk = Desk::new(test);
    desk.file("handlers.lua", SCRIPT);
    desk.file("one.yaml", OBJECT);
    desk
}

#[tokio::test]
async fn files_that_cannot_be_read() {
    let desk = desk("unreadable");
    check(
        &desk,
        "--apply nope.yaml",
        1,
        &expect![[r"
        error: there is no file or directory 'nope.yaml'
        hint: check the spelling and the current directory
    "]],
    )
    .await;
    check(
        &desk,
        "--crd nope",
        1,
        &expect![[r"
        error: there is no file or directory 'nope'
        hint: check the spelling and the current directory
    "]],
    )
    .await;
    std::fs::create_dir(desk.path("nothing")).expect("a directory");
    check(
        &desk,
        "--apply nothing",
        1,
        &expect![[r"
        error: there are no files *.yaml, *.yml or *.json in the directory 'nothing'
    "]],
    )
    .await;
    check(
        &desk,
        "--apply /dev/null",
        1,
        &expect![[r"
        error: '/dev/null' is neither a file nor a directory
    "]],
    )
    .await;
    check(
        &desk,
        "nope.lua",
        1,
        &expect![[r"
        error: there is no file or directory 'nope.lua'
        hint: check the spelling and the current directory
    "]],
    )
    .await;
    check(
        &desk,
        "one.yaml",
        1,
        &expect![["
            error: not a script: 'one.yaml' (expected .lua or .rhai)
            hint: pass CRD files with --crd, and files of objects with --apply
        "]],
    )
    .await;
    desk.file("empty.yaml", "# Nothing\n---\n...\n");
    check(
        &desk,
        "--crd empty.yaml",
        1,
        &expect![[r"
        error: 'empty.yaml' contains no objects
    "]],
    )
    .await;
}

#[tokio::test]
async fn files_of_broken_yaml_or_json() {
    let desk = desk("malformed");
    desk.file("a.yaml", &format!("{OBJECT}---\n# Here it is:\nkind: [X\n"));
    check(
        &desk,
        "--apply a.yaml",
        1,
        &expect![["
            error: a.yaml:9: invalid YAML: unclosed bracket '['
        "]],
    )
    .await;
    desk.file("a.yaml", "kind: Pod\n\tname: x\n");
    check(
        &desk,
        "--apply a.yaml",
        1,
        &expect![["
            error: a.yaml:1: invalid YAML: while scanning a plain scalar, found a tab
        "]],
    )
    .await;
    desk.file("a.yaml", "kind: A\nkind: B\n");
    check(
        &desk,
        "--apply a.yaml",
        1,
        &expect![["
            error: a.yaml:2: invalid YAML: duplicate mapping key: kind
        "]],
    )
    .await;
    desk.file("a.yaml", &"[".repeat(100_000));
    check(
        &desk,
        "--apply a.yaml",
        1,
        &expect![["
            error: a.yaml:1: invalid YAML: recursion limit exceeded
        "]],
    )
    .await;
    desk.file("a.json", "{\"kind\":\n 1,}");
    check(
        &desk,
        "--apply a.json",
        1,
        &expect![["
            error: a.json:2: invalid JSON: trailing comma
        "]],
    )
    .await;
}

#[tokio::test]
async fn files_that_are_no_objects() {
    let desk = desk("no-objects");
    desk.file("a.yaml", &format!("{OBJECT}---\n\n- 1\n"));
    check(
        &desk,
        "--apply a.yaml",
        1,
        &expect![["
            error: a.yaml:9: not a Kubernetes object: it is not a mapping
            hint: an object needs at least apiVersion, kind and metadata.name
        "]],
    )
    .await;
    desk.file("a.yaml", "services:\n  web: {}\n");
    check(
        &desk,
        "--apply a.yaml",
        1,
        &expect![["
            error: a.yaml:1: not a Kubernetes object: it has no apiVersion
            hint: an object needs at least apiVersion, kind and metadata.name
        "]],
    )
    .await;
    desk.file("a.yaml", "apiVersion: v1\nkind: Pod\nmetadata:\n  generateName: x-\n");
    check(
        &desk,
        "--apply a.yaml",
        1,
        &expect![["
            error: a.yaml:1: not a Kubernetes object: it has no metadata.name
            hint: an object needs at least apiVersion, kind and metadata.name
        "]],
    )
    .await;
}

#[tokio::test]
async fn objects_that_the_server_does_not_take() {
    let desk = desk("refused");
    desk.file("a.yaml", "apiVersion: acme.example.com/v1\nkind: Widget\nmetadata:\n  name: w\n");
    check(
        &desk,
        "--apply a.yaml",
        1,
        &expect![[r"
        error: a.yaml:1: unknown kind 'Widget' in acme.example.com/v1
        hint: add its CRD with --crd FILE, or a handler that names it; check apiVersion and kind
    "]],
    )
    .await;
    check(
        &desk,
        "--crd one.yaml",
        1,
        &expect![["
            error: one.yaml:1: expected a CustomResourceDefinition, got a KopfExample
            hint: pass objects with --apply
        "]],
    )
    .await;
}

#[tokio::test]
async fn places_that_are_not_ours() {
    let desk = desk("taken");
    let other = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = other.local_addr().expect("an address").port().to_string();
    let output = desk.command(&["--port", &port]).output().await.expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).expect("text").replace(&port, "PORT");
    expect![[r"
        error: 127.0.0.1:PORT is in use: another program listens there
        hint: choose another --port, or omit it to use a free one
    "]]
    .assert_eq(&told);

    desk.file("config", "apiVersion: v1\nkind: Config\n");
    check(
        &desk,
        "--write-kubeconfig config",
        1,
        &expect![[r"
        error: 'config' exists and is not a kubeconfig of kopf: it is not overwritten
        hint: choose another file with --write-kubeconfig, or omit the option
    "]],
    )
    .await;
    assert_eq!(desk.text("config"), "apiVersion: v1\nkind: Config\n", "it is left as it is");
    check(
        &desk,
        "--write-kubeconfig nope/config",
        1,
        &expect![[r"
        error: cannot write the kubeconfig 'nope/config': No such file or directory (os error 2)
    "]],
    )
    .await;
    check(
        &desk,
        "--data nope/data",
        1,
        &expect![[r"
        error: cannot save the objects in 'nope/data': No such file or directory (os error 2)
    "]],
    )
    .await;
    desk.file("data", "");
    check(&desk, "--data data", 1, &expect![[r"
        error: 'data' is not a snapshot of the embedded server, or is damaged: line 1: the file is empty
        hint: the file was not changed: repair it, or move it away to start without objects
    "]]).await;
    desk.file("data", "hello");
    check(&desk, "--data data", 1, &expect![[r"
        error: 'data' is not a snapshot of the embedded server, or is damaged: line 1: expected value at line 1 column 1
        hint: the file was not changed: repair it, or move it away to start without objects
    "]]).await;
}

#[tokio::test]
async fn mistakes_in_scripts_are_told_as_by_kopf_run() {
    let desk = desk("script");
    desk.file("handlers.lua", "kopf.on_create(");
    check(
        &desk,
        "",
        1,
        &expect![[r"
        error: handlers.lua:1: Expected identifier when parsing expression, got <eof>
          |
        1 | kopf.on_create(
          | ^^^^^^^^^^^^^^^
    "]],
    )
    .await;
    check(
        &desk,
        "--port 99999",
        2,
        &expect![[r"
        error: invalid value '99999' for '--port <NUMBER>': 99999 is not in 0..=65535

        For more information, try '--help'.
    "]],
    )
    .await;
    check(
        &desk,
        "-A -n default",
        2,
        &expect![[r"
        error: Either --namespace or --all-namespaces can be used, not both.
        hint: also check KOPF_RUN_CLUSTERWIDE, KOPF_RUN_NAMESPACES and KOPF_RUN_NAMESPACE
    "]],
    )
    .await;
}
