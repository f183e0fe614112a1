//! The example of peering: several operators for the same object. The other examples are in `tests/it/examples`.

use super::namespace::Namespace;
use super::operator::file;

#[tokio::test]
async fn peers_in_lua_pause_for_each_other() {
    peering("lua").await;
}

#[tokio::test]
async fn peers_in_rhai_pause_for_each_other() {
    peering("rhai").await;
}

async fn peering(language: &str) {
    let Some(namespace) = Namespace::for_test(&format!("peering-example-{language}")).await else {
        return;
    };
    let script = file(&format!("examples/06-peering/handlers.{language}"));
    super::peering::define(&namespace, "default").await;
    let start = |args: &[&str]| super::peering::operator(&namespace, &script, args);
    let first = start(&[]);
    super::peering::until_records(&namespace, "default", 1).await;
    let equal = start(&[]);
    for operator in [&first, &equal] {
        operator.until_says("Possibly conflicting operators with the same priority: [<Peer ").await;
        operator.until_says("Pausing all operators, including self: [<Peer ").await;
    }
    equal.stop().await.assert_code(0);
    let resuming = "Resuming operations after the pause. Conflicting operators with the same priority are gone.";
    first.until_says(resuming).await;
    let strong = start(&["--dev"]);
    first.until_says("Pausing operations in favour of [<Peer ").await;
    first.until_says(": priority=666, lifetime=60, lastseen='").await;
    namespace.apply_object().await;
    strong.until_says("Handler 'create_fn' succeeded.").await;
    strong.stop().await.assert_code(0);
    first.until_says_times(resuming, 2).await;
    let ended = first.stop().await;
    ended.assert_code(0);
    ended.assert_count("Handler 'create_fn' is invoked", 0);
}
