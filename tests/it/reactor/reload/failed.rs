//! A handler that has failed permanently is called again after an edit: fixing the script fixes the objects.

use kopf::{
    logic::handlers::handler::Kind,
    settings::{RetryFailed, Settings},
};
use serde_json::{Value, json};

use super::edited::{Does, EXAMPLES, Edited, Line, environment, on, pass};

const FAILED: &str = "kopf.zalando.org/kopf-failed";

/// Returns a handler that fails permanently with an error.
fn failing(kind: Kind, code: u64) -> Line {
    on(kind, "made", code).does(Does::Retry(1)).with("retries", 1)
}

fn noted(operator: &Edited, name: &str) -> Value {
    let object = operator.env.get(EXAMPLES, &format!("ns1/{name}"));
    let text = object["metadata"]["annotations"][FAILED].as_str().unwrap_or("null");
    serde_json::from_str(text).expect("JSON")
}

#[tokio::test(start_paused = true)]
async fn who_has_failed_for_good_is_called_again_when_it_was_edited() {
    let mut operator = Edited::new(environment(&["a"], &[]), &[failing(Kind::Create, 1)]);
    pass(10).await;
    assert_eq!(operator.take(), ["made.1@1 a fails"]);
    let noted_first = noted(&operator, "a");
    assert_eq!(noted_first["made"]["reason"], "create");
    assert_eq!(noted_first["made"]["permanent"], false);
    operator.swap(&[failing(Kind::Create, 2)]).await;
    pass(10).await;
    assert_eq!(operator.take(), ["made.2@2 a fails"], "once for each edit");
    operator.swap(&[on(Kind::Create, "made", 3)]).await;
    pass(10).await;
    assert_eq!(operator.take(), ["made.3@3 a"]);
    assert_eq!(noted(&operator, "a"), Value::Null);
    operator.swap(&[on(Kind::Create, "made", 4)]).await;
    pass(10).await;
    assert!(operator.take().is_empty(), "who has succeeded is not called again");
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_edit_between_two_processes_counts_as_well() {
    let env = environment(&["a"], &[]);
    let earlier = Edited::new(env.clone(), &[failing(Kind::Create, 1)]);
    pass(5).await;
    earlier.end().await;
    let same = Edited::new(env.clone(), &[failing(Kind::Create, 1)]);
    pass(5).await;
    assert!(same.take().is_empty(), "it was not edited");
    same.end().await;
    let edited = Edited::new(env, &[on(Kind::Create, "made", 2)]);
    pass(5).await;
    assert_eq!(edited.take(), ["made.2@1 a"]);
    edited.end().await;
}

#[tokio::test(start_paused = true)]
async fn who_is_called_again_has_its_retries_and_only_it() {
    let lines = |line| [line, on(Kind::Create, "beside", 1), on(Kind::Update, "changed", 1)];
    let first = lines(failing(Kind::Create, 1));
    let mut operator = Edited::new(environment(&["a"], &[]), &first);
    pass(10).await;
    operator.take();
    let patient = on(Kind::Create, "made", 2).does(Does::Retry(60)).with("retries", 3);
    operator.swap(&lines(patient)).await;
    pass(300).await;
    assert_eq!(operator.take(), ["made.2@2 a fails"; 3]);
    operator.edit(EXAMPLES, "a", 5);
    pass(10).await;
    assert_eq!(operator.take(), ["changed.1@2 a"]);
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn who_wanted_to_fail_is_called_again_only_if_that_is_wanted() {
    for which in [RetryFailed::Errors, RetryFailed::All, RetryFailed::Never] {
        let mut settings = Settings::default();
        settings.reload.retry_failed = which;
        let line = |code| on(Kind::Create, "made", code).does(Does::Fail);
        let mut operator = Edited::with(environment(&["a"], &[]), &[line(1)], |it| {
            *it.settings.lock() = settings;
            it
        });
        pass(10).await;
        assert_eq!(noted(&operator, "a")["made"]["permanent"], true);
        operator.take();
        operator.swap(&[line(2)]).await;
        pass(10).await;
        let calls = usize::from(which == RetryFailed::All);
        assert_eq!(operator.take().len(), calls, "{which:?}");
        operator.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn many_objects_begin_one_after_another() {
    let names: Vec<_> = (0..100).map(|it| format!("o{it}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let mut operator = Edited::new(environment(&names, &[]), &[failing(Kind::Create, 1)]);
    pass(30).await;
    assert_eq!(operator.take().len(), 100);
    operator.swap(&[on(Kind::Create, "made", 2)]).await;
    pass(5).await;
    let begun = operator.take().len();
    assert!((40..=70).contains(&begun), "{begun} of 100 in 5 s, at 10 per second");
    pass(20).await;
    assert_eq!(operator.take().len(), 100 - begun);
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_noted_if_that_is_not_wanted() {
    let mut settings = Settings::default();
    settings.persistence.remember_failures = false;
    let lines = [failing(Kind::Create, 1)];
    let operator = Edited::with(environment(&["a"], &[]), &lines, |it| {
        *it.settings.lock() = settings;
        it
    });
    pass(10).await;
    let object = operator.env.get(EXAMPLES, "ns1/a");
    let names: Vec<_> =
        object["metadata"]["annotations"].as_object().into_iter().flatten().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert_ne!(json!(names[0].0), json!(FAILED));
    operator.end().await;
}
