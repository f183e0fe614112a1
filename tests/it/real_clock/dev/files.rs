//! Files of `--apply` and `--crd` that change while the operator runs.

use std::fs;

use super::{Desk, OBJECT, SCRIPT};

#[tokio::test]
async fn an_edited_file_is_applied_again_and_what_the_operator_wrote_stays() {
    let desk = Desk::new("edit");
    desk.file("handlers.lua", SCRIPT);
    desk.file("one.yaml", OBJECT);
    let operator = desk.start("handlers.lua --apply one.yaml").await;
    operator.until_says("Creation is processed: 1 succeeded").await;
    desk.file("one.yaml", &OBJECT.replace("1m", "2m"));
    operator.until_says("updated to 2m").await;
    operator.until_says("Updating is processed: 1 succeeded").await;

    // As editors save: a new file replaces the old one.
    let next = desk.file("one.yaml~", &OBJECT.replace("1m", "3m"));
    fs::rename(next, desk.path("one.yaml")).expect("a new file");
    operator.until_says("updated to 3m").await;

    let ended = operator.stop().await;
    ended.assert_code(0);
    // If the annotations of the operator had been lost, it would have seen a new object.
    ended.assert_count("created with", 1);
    ended.assert_count("kopfexample.kopf.dev/one configured (one.yaml:1)", 2);
}

#[tokio::test]
async fn a_mistake_in_a_file_is_told_once_and_ends_nothing() {
    let desk = Desk::new("mistake");
    desk.file("handlers.lua", SCRIPT);
    desk.file("one.yaml", OBJECT);
    let operator = desk.start("handlers.lua --apply one.yaml").await;
    operator.until_says("created with 1m").await;
    desk.file("one.yaml", &OBJECT.replace("kind: KopfExample", "kind: [KopfExample"));
    operator.until_says("one.yaml:3: invalid YAML").await;
    desk.file("one.yaml", &OBJECT.replace("KopfExample", "Another"));
    operator.until_says("one.yaml:1: unknown kind 'Another' in kopf.dev/v1").await;
    fs::remove_file(desk.path("one.yaml")).expect("it is there");
    operator.until_says("one.yaml was deleted; its objects are kept.").await;
    desk.file("one.yaml", &OBJECT.replace("1m", "4m"));
    operator.until_says("updated to 4m").await;
    let ended = operator.stop().await;
    ended.assert_code(0);
    ended.assert_count("invalid YAML", 1);
}

#[tokio::test]
async fn files_that_come_to_a_directory_are_applied() {
    let desk = Desk::new("directory");
    desk.file("handlers.lua", SCRIPT);
    fs::create_dir(desk.path("objects")).expect("a directory");
    desk.file("objects/one.yaml", OBJECT);
    let operator = desk.start("handlers.lua --apply objects").await;
    operator.until_says("[default/one] created with 1m").await;
    let two = OBJECT.replace("name: one", "name: two").replace("1m", "5m");
    desk.file(
        "objects/two.yml",
        &format!("# The second and the third.\n---\n{two}---\n{}", two.replace("two", "three")),
    );
    operator.until_says("[default/two] created with 5m").await;
    operator.until_says("[default/three] created with 5m").await;
    operator.until_says("kopfexample.kopf.dev/two created (objects/two.yml:3)").await;
    operator.until_says("kopfexample.kopf.dev/three created (objects/two.yml:10)").await;
    operator.stop().await.assert_code(0);
}
