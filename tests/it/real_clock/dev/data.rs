//! Objects that survive a restart.

use super::{Desk, OBJECT, SCRIPT};

#[tokio::test]
async fn after_a_restart_objects_are_there_and_are_not_created_again() {
    let desk = Desk::new("restart");
    desk.file("handlers.lua", SCRIPT);
    desk.file("one.yaml", OBJECT);
    let operator = desk.start("handlers.lua --apply one.yaml --data objects.jsonl").await;
    operator.until_says("Objects are persisted in objects.jsonl.").await;
    operator.until_says("Creation is processed: 1 succeeded").await;
    let ended = operator.stop().await;
    ended.assert_code(0);
    ended.assert_count("created with", 1);

    let operator = desk.start("handlers.lua --data objects.jsonl").await;
    operator.until_says("were loaded.").await;
    operator.until_says("[default/one] resumed").await;
    let ended = operator.stop().await;
    ended.assert_code(0);
    ended.assert_count("created with", 0);
    // The CRD is part of the data, so it is not generated again.
    ended.assert_count("serving a permissive one", 0);
}

#[tokio::test]
async fn a_crash_costs_only_the_last_seconds() {
    let desk = Desk::new("crash");
    desk.file("handlers.lua", SCRIPT);
    desk.file("one.yaml", OBJECT);
    let operator = desk.start("handlers.lua --apply one.yaml --data objects.jsonl --verbose").await;
    operator.until_says("Creation is processed: 1 succeeded").await;
    operator.until_says("Saved the objects in objects.jsonl.").await;
    operator.crash().await;
    // The lock of the crashed process is ignored.
    let operator = desk.start("handlers.lua --data objects.jsonl").await;
    operator.until_says("[default/one] resumed").await;
    operator.stop().await.assert_code(0);
}

#[tokio::test]
async fn data_of_a_running_server_and_damaged_data_are_refused_and_left_as_they_are() {
    let desk = Desk::new("refused");
    desk.file("handlers.lua", SCRIPT);
    desk.file("one.yaml", OBJECT);
    let operator = desk.start("handlers.lua --apply one.yaml --data objects.jsonl").await;
    let output = desk.command(&["--data", "objects.jsonl"]).output().await.expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("'objects.jsonl' is in use by another kopf dev"), "{told}");
    operator.stop().await.assert_code(0);

    let whole = desk.text("objects.jsonl");
    let lines = whole.lines().count();
    assert!(lines > 2, "{whole}");
    let (without_last, _) = whole.rsplit_once('\n').expect("several lines");
    let torn = whole.get(..whole.len() - 5).expect("a long last line");
    let cases = [
        (without_last.to_owned(), "line 1: there are".to_owned()),
        (torn.to_owned(), format!("line {lines}: ")),
        (whole.replacen("\"name\"", "\"nome\"", 1), "line 2: this is no object".to_owned()),
        (whole.replacen(":1,", ":99,", 1), "line 1: format 99 is of a later version".to_owned()),
    ];
    for (text, expected) in cases {
        desk.file("objects.jsonl", &text);
        let output = desk.command(&["--data", "objects.jsonl"]).output().await.expect("it runs");
        assert_eq!(output.status.code(), Some(1));
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains(&expected), "{expected}: {told}");
        assert_eq!(desk.text("objects.jsonl"), text, "the file is as it was");
    }
}
