//! Reload under load: edits of real scripts in both languages, good ones, wrong ones and half-written ones, while as many objects
//! are created, changed and deleted. `texts.rs` has the scripts, `operator.rs` the operator with the whole path of an edit,
//! `user.rs` the actions, `model.rs` the conditions that must hold.
//!
//! A failure prints its seed; `KOPF_TEST_SEED` repeats it. `KOPF_TEST_LOAD` is the number of edits and of objects: the default of
//! 1000 takes half a minute of CPU in a debug build; 200 take five seconds.

mod model;
mod operator;
mod texts;
mod user;

use std::env;

use fastrand::Rng;

use self::{
    model::{Model, Summary},
    operator::Watching,
    texts::Draft,
    user::{History, Size, User},
};
use super::{edited::EXAMPLES, random::ToldIfItFails};
use kopf::testing::run_paused;

/// Returns a number from the environment.
#[expect(clippy::disallowed_methods, reason = "the tests are the outermost layer")]
fn given(variable: &str) -> Option<u64> {
    env::var(variable).ok()?.parse().ok()
}

/// Runs a seed, and checks everything.
fn check(seed: u64, size: Size) -> Summary {
    let seed = given("KOPF_TEST_SEED").unwrap_or(seed);
    let _told = ToldIfItFails(seed);
    run_paused(async {
        let mut random = Rng::with_seed(seed);
        let drafts = [Draft::first(0), Draft::first(1)];
        let texts = drafts.clone().map(|it| it.text(&mut random));
        let operator = Watching::new(texts).await;
        let history = User::new(&operator, random, size, drafts).play().await;
        check_objects(&operator, &history);
        let end = operator.record.now();
        let (host, record) = operator.end().await;
        assert_eq!(host.live_scripts(), 2, "nothing of the replaced generations is left");
        let entries = record.entries();
        Model::new(&history, &entries).check(&entries, end)
    })
}

/// Checks what is stored on the server at the end.
fn check_objects(operator: &Watching, history: &History) {
    for thing in &history.things {
        let body = operator.env.server.get(EXAMPLES, "ns1", &thing.name);
        assert_eq!(body.is_none(), thing.deleted.is_some(), "{}: {body:?}", thing.name);
        let Some(body) = body else { continue };
        let annotations = body["metadata"]["annotations"].as_object().expect("annotations");
        let left = annotations.keys();
        // If a handler was removed while it waited for its retry, its record stays, as after a restart without it.
        let left: Vec<_> =
            left.filter(|it| !it.ends_with("configuration") && !it.ends_with("_extra")).collect();
        assert!(left.is_empty(), "{}: {left:?}", thing.name);
    }
}

#[test]
fn edits_lose_nothing_of_what_happens_to_objects_and_repeat_nothing() {
    let edits = given("KOPF_TEST_LOAD").unwrap_or(1000);
    let objects = usize::try_from(edits).expect("a size");
    let summary = check(1, Size { edits, objects });
    if edits >= 1000 {
        let Summary { taken, refused_by_startup, withdrawn, changes, hurried, reloaded_daemons } =
            summary;
        assert!(taken > 300 && refused_by_startup > 20 && withdrawn > 3, "{summary:?}");
        assert!(changes > 500 && hurried > 20 && reloaded_daemons > 50, "{summary:?}");
    }
}
