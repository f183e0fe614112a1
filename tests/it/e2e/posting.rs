//! Kubernetes events on a real server: it accepts them, and counts bytes.

use serde_json::Value;

use super::{
    namespace::{Namespace, OBJECT},
    operator::{file, ours},
    until,
};

#[tokio::test]
async fn events_of_scripts_and_loggers_are_shown_by_the_server() {
    let Some(namespace) = Namespace::for_test("posting").await else { return };
    let operator = ours(&namespace, &file("tests/e2e/posting.lua"));
    namespace.apply_object().await;
    until("all events are posted", async || {
        let text = namespace.try_kubectl(&["get", "events", "-o", "json"], "").await?;
        let list: Value = serde_json::from_str(&text).expect("kubectl prints JSON");
        let events: Vec<&Value> = list["items"].as_array().into_iter().flatten().collect();
        let shown = |reason: &str| {
            let event = events.iter().find(|it| it["reason"] == reason)?;
            (event["involvedObject"]["name"] == OBJECT)
                .then(|| (event["type"].clone(), event["message"].clone()))
        };
        let greeted =
            shown("Greeted") == Some(("Normal".into(), format!("Hello, {OBJECT}").into()));
        let logged = shown("Logging") == Some(("Warning".into(), "careful".into()));
        let long =
            shown("Long").is_some_and(|(_, it)| it.as_str().is_some_and(|it| it.contains("ü...ü")));
        if greeted && logged && long { Ok(()) } else { Err(text) }
    })
    .await;
    let ended = operator.stop().await;
    ended.assert_code(0);
    ended.assert_count("Failed to post an event", 0);
}
