//! Functions that select resources: those that are called again, and the result of an edit that breaks one.

use kopf::{
    logic::handlers::handler::Kind,
    ports::Rejection,
    testing::{self, Environment},
};
use kopf_apiserver::{ApiServer, ResourceDef};
use serde_json::json;

use super::edited::{EXAMPLES, Edited, environment, on, pass};

#[tokio::test(start_paused = true)]
async fn a_function_that_was_not_edited_is_not_asked_again() {
    let lines = |code, chooser| [on(Kind::Daemon, "stay", code).chosen_by(chooser)];
    let mut operator = Edited::new(environment(&["a"], &["x"]), &lines(1, 1));
    pass(1).await;
    let before = operator.requests("kopfexamples");
    assert_eq!(operator.take(), ["stay is chosen by 1@1", "stay.1@1 a begins"]);
    assert_eq!(operator.swap(&lines(1, 1)).await, "no handler differs");
    assert!(operator.take().is_empty(), "its daemon goes on, too");
    assert_eq!(operator.swap(&lines(2, 1)).await, "changed daemon 'stay'");
    assert_eq!(operator.take(), ["stay.1@1 a ends: SCRIPT_RELOADED", "stay.2@3 a begins"]);
    assert_eq!(operator.requests("kopfexamples"), before);
}

#[tokio::test(start_paused = true)]
async fn one_that_was_edited_is_asked_and_what_it_chooses_is_served() {
    let stay = |code, resource| on(Kind::Daemon, "stay", code).of(resource).chosen_by(code);
    let mut operator = Edited::new(environment(&["a"], &["x"]), &[stay(1, "kopfexamples")]);
    pass(1).await;
    operator.take();
    assert_eq!(operator.swap(&[stay(2, "others")]).await, "changed daemon 'stay'");
    let noted = operator.take();
    let ended = "stay.1@1 a ends: SCRIPT_RELOADED";
    assert_eq!(noted, ["stay is chosen by 2@2", ended, "stay.2@2 x begins"]);
    assert_eq!(operator.requests("others")[..2], ["list", "watch"]);
    // It is known now, even if the next edit concerns something else.
    let made = on(Kind::Create, "made", 1).of("others");
    operator.swap(&[stay(2, "others"), made]).await;
    assert_eq!(operator.take(), ["made.1@3 x"]);
}

#[tokio::test(start_paused = true)]
async fn an_edit_whose_function_fails_for_every_resource_is_refused_and_leaves_all_as_it_was() {
    let stay = |code, chooser| on(Kind::Daemon, "stay", code).chosen_by(chooser);
    let made = on(Kind::Create, "made", 1).of("kopf.dev/v1/others");
    let mut operator = Edited::new(environment(&["a"], &["x"]), &[stay(1, 1), made.clone()]);
    pass(1).await;
    operator.take();
    let before = operator.requests("");
    let answer = operator.send(&[stay(2, 0), made.clone()], None).await.await.expect("an answer");
    let Err(Rejection::Selector(problem)) = answer else { panic!("it is refused") };
    assert!(problem.contains(": the resource selector chooser fails for "), "{problem}");
    assert!(problem.ends_with(" and others): on purpose"), "{problem}");
    pass(5).await;
    assert!(operator.take().is_empty());
    assert_eq!(operator.requests(""), before);
    operator.edit(EXAMPLES, "a", 1);
    assert_eq!(operator.swap(&[stay(1, 1), made]).await, "no handler differs");
    assert!(operator.take().is_empty(), "nobody was asked again, and nothing restarted");
    assert_eq!(
        operator.alive(),
        [1, 3],
        "the daemon runs where it began; of what was refused nothing is kept"
    );
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_group_that_no_handler_names_any_more_are_not_reported_as_deleted() {
    let others = ResourceDef::new("other.dev", "v1", "others", "Other");
    let env = Environment::new(ApiServer::builder().resource(testing::examples()).resource(others));
    env.create(json!({
        "apiVersion": "other.dev/v1", "kind": "Other", "metadata": { "namespace": "ns1", "name": "o" },
    }));
    let kept = on(Kind::Event, "kept", 1).of("kopf.dev/v1/kopfexamples");
    let removed = on(Kind::Event, "removed", 1).of("other.dev/v1/others");
    let mut operator = Edited::new(env, &[kept.clone(), removed]);
    pass(1).await;
    assert_eq!(operator.take(), ["removed.1@1 o"]);
    operator.swap(&[kept]).await;
    pass(60).await;
    assert_eq!(operator.end().await.take_sorted(), [""; 0]);
}
