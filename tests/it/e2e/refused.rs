//! A change that a real server rejects fails its handler; the others are applied.

use serde_json::json;

use super::namespace::{Namespace, OBJECT};
use super::operator::{file, ours};

#[tokio::test]
async fn a_change_that_is_not_accepted_fails_its_handler_and_the_others_are_applied() {
    for language in ["lua", "rhai"] {
        let Some(namespace) = Namespace::for_test(&format!("refused-{language}")).await else {
            return;
        };
        let script = file(&format!("tests/e2e/refused/handlers.{language}"));
        let operator = ours(&namespace, &script);
        namespace.apply_object().await;
        operator.until_says("Handler 'create_fn' failed (attempt 1), retrying in").await;
        let record = "kopf.zalando.org/create_fn";
        let object = namespace
            .until_object(OBJECT, "the other changes are applied", |it| {
                it["metadata"]["annotations"][record].is_string()
                    && it["metadata"]["labels"]["right"] == "yes"
            })
            .await;
        assert_eq!(object["metadata"]["labels"].get("wrong"), None, "{object:#}");
        assert_eq!(object["status"]["create_fn"], json!("done"), "{object:#}");
        let condition = &object["status"]["conditions"][0];
        assert_eq!([&condition["type"], &condition["message"]], ["Seen", "Seen"], "{object:#}");
        let ended = operator.stop().await;
        ended.assert_code(0);
        let line = "retrying in 1 s: a function of patch.fns was rejected: ";
        assert!(ended.count(line) > 0, "{}", ended.output);
        let reason = "metadata.labels: Invalid value: \"no label at all!\"";
        assert!(ended.count(reason) > 0, "{}", ended.output);
        ended.assert_count("due to conflicts with newer changes", 0);
    }
}
