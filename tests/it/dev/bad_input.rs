//! What cannot be run is told in a line or two, before anything runs.

use expect_test::{Expect, expect};
use tokio::net::TcpListener;

use super::{Desk, OBJECT, SCRIPT};

/// Runs it to its end; it must fail with this text on stderr, and nothing on stdout.
async fn check(desk: &Desk, args: &str, code: i32, expected: &Expect) {
    let args: Vec<&str> = args.split_whitespace().collect();
    let output = desk.command(&args).output().await.expect("it runs");
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
    check(&desk, "--apply nope.yaml", 1, &expect![[""]]).await;
    check(&desk, "--crd nope", 1, &expect![[""]]).await;
    check(&desk, "--apply .", 1, &expect![[""]]).await;
    check(&desk, "--apply /dev/null", 1, &expect![[""]]).await;
    check(&desk, "nope.lua", 1, &expect![[""]]).await;
    check(&desk, "one.yaml", 1, &expect![[""]]).await;
    desk.file("empty.yaml", "# Nothing\n---\n...\n");
    check(&desk, "--apply empty.yaml", 1, &expect![[""]]).await;
}

#[tokio::test]
async fn files_that_are_no_objects() {
    let desk = desk("malformed");
    desk.file("a.yaml", &format!("{OBJECT}---\n# Here it is:\nkind: [X\n"));
    check(&desk, "--apply a.yaml", 1, &expect![[""]]).await;
    desk.file("a.yaml", "kind: Pod\n\tname: x\n");
    check(&desk, "--apply a.yaml", 1, &expect![[""]]).await;
    desk.file("a.yaml", "kind: A\nkind: B\n");
    check(&desk, "--apply a.yaml", 1, &expect![[""]]).await;
    desk.file("a.yaml", &"[".repeat(100_000));
    check(&desk, "--apply a.yaml", 1, &expect![[""]]).await;
    desk.file("a.json", "{\"kind\":\n 1,}");
    check(&desk, "--apply a.json", 1, &expect![[""]]).await;
    desk.file("a.yaml", &format!("{OBJECT}---\n\n- 1\n"));
    check(&desk, "--apply a.yaml", 1, &expect![[""]]).await;
    desk.file("a.yaml", "services:\n  web: {}\n");
    check(&desk, "--apply a.yaml", 1, &expect![[""]]).await;
    desk.file("a.yaml", "apiVersion: v1\nkind: Pod\nmetadata:\n  generateName: x-\n");
    check(&desk, "--apply a.yaml", 1, &expect![[""]]).await;
}

#[tokio::test]
async fn objects_that_the_server_does_not_take() {
    let desk = desk("refused");
    desk.file("a.yaml", "apiVersion: acme.example.com/v1\nkind: Widget\nmetadata:\n  name: w\n");
    check(&desk, "--apply a.yaml", 1, &expect![[""]]).await;
    check(&desk, "--crd one.yaml", 1, &expect![[""]]).await;
}

#[tokio::test]
async fn places_that_are_not_ours() {
    let desk = desk("taken");
    let other = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = other.local_addr().expect("an address").port().to_string();
    let output = desk.command(&["--port", &port]).output().await.expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).expect("text").replace(&port, "PORT");
    expect![[""]].assert_eq(&told);

    desk.file("config", "apiVersion: v1\nkind: Config\n");
    check(&desk, "--kubeconfig config", 1, &expect![[""]]).await;
    assert_eq!(desk.text("config"), "apiVersion: v1\nkind: Config\n", "it is left as it is");
    check(&desk, "--kubeconfig nope/config", 1, &expect![[""]]).await;
    check(&desk, "--data nope/data", 1, &expect![[""]]).await;
    desk.file("data", "");
    check(&desk, "--data data", 1, &expect![[""]]).await;
    desk.file("data", "hello");
    check(&desk, "--data data", 1, &expect![[""]]).await;
}

#[tokio::test]
async fn mistakes_in_scripts_are_told_as_by_kopf_run() {
    let desk = desk("script");
    desk.file("handlers.lua", "kopf.on_create(");
    check(&desk, "", 1, &expect![[""]]).await;
    check(&desk, "--port 99999", 2, &expect![[""]]).await;
    check(&desk, "-A -n default", 2, &expect![[""]]).await;
}
