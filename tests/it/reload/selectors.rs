//! Functions that choose resources: who is asked again, and what becomes of an edit that breaks one.

use kopf::{logic::handler::Kind, ports::Rejection};

use super::stage::{EXAMPLES, Stage, on, seconds, server};

#[tokio::test(start_paused = true)]
async fn a_function_that_was_not_edited_is_not_asked_again() {
    let lines = |code, chooser| [on(Kind::Daemon, "stay", code).chosen_by(chooser)];
    let mut stage = Stage::new(server(&["a"], &["x"]), &lines(1, 1));
    seconds(1).await;
    let before = stage.requests("kopfexamples");
    assert_eq!(stage.notes.take(), ["stay is chosen by 1@1", "stay.1@1 a begins"]);
    assert_eq!(stage.swap(&lines(1, 1)).await, "no handler differs");
    assert!(stage.notes.take().is_empty(), "its daemon goes on, too");
    assert_eq!(stage.swap(&lines(2, 1)).await, "changed daemon 'stay'");
    assert_eq!(stage.notes.take(), ["stay.1@1 a ends: SCRIPT_RELOADED", "stay.2@3 a begins"]);
    assert_eq!(stage.requests("kopfexamples"), before);
}

#[tokio::test(start_paused = true)]
async fn one_that_was_edited_is_asked_and_what_it_chooses_is_served() {
    let stay = |code, resource| on(Kind::Daemon, "stay", code).of(resource).chosen_by(code);
    let mut stage = Stage::new(server(&["a"], &["x"]), &[stay(1, "kopfexamples")]);
    seconds(1).await;
    stage.notes.take();
    assert_eq!(stage.swap(&[stay(2, "others")]).await, "changed daemon 'stay'");
    let noted = stage.notes.take();
    let ended = "stay.1@1 a ends: SCRIPT_RELOADED";
    assert_eq!(noted, ["stay is chosen by 2@2", ended, "stay.2@2 x begins"]);
    assert_eq!(stage.requests("others")[..2], ["list", "watch"]);
    // It is known now, also if the next edit is of something else.
    let made = on(Kind::Create, "made", 1).of("others");
    stage.swap(&[stay(2, "others"), made]).await;
    assert_eq!(stage.notes.take(), ["made.1@3 x"]);
}

#[tokio::test(start_paused = true)]
async fn an_edit_whose_function_fails_for_every_resource_is_refused_and_leaves_all_as_it_was() {
    let stay = |code, chooser| on(Kind::Daemon, "stay", code).chosen_by(chooser);
    let made = on(Kind::Create, "made", 1).of("kopf.dev/v1/others");
    let mut stage = Stage::new(server(&["a"], &["x"]), &[stay(1, 1), made.clone()]);
    seconds(1).await;
    stage.notes.take();
    let before = stage.requests("");
    let answer = stage.send(&[stay(2, 0), made.clone()], None).await.await.expect("an answer");
    let Err(Rejection::Selector(problem)) = answer else { panic!("it is refused") };
    assert!(problem.contains(": the resource selector chooser fails for "), "{problem}");
    assert!(problem.ends_with(" and others): on purpose"), "{problem}");
    seconds(5).await;
    assert!(stage.notes.take().is_empty());
    assert_eq!(stage.requests(""), before);
    stage.edit(EXAMPLES, "a", 1);
    assert_eq!(stage.swap(&[stay(1, 1), made]).await, "no handler differs");
    assert!(stage.notes.take().is_empty(), "nobody was asked again, and nothing restarted");
    assert_eq!(
        stage.alive(),
        [1, 3],
        "the daemon runs where it began; of what was refused nothing is kept"
    );
}
