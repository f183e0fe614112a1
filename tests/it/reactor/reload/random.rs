//! Random edits while random objects change: nothing is lost, done twice, or running twice.

use std::{collections::BTreeMap, time::Duration};

use fastrand::Rng;
use kopf::{logic::handlers::handler::Kind, testing::run_paused};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::edited::{Does, EXAMPLES, Edited, Line, OTHERS, environment, object, on, pass};

/// The actions of a user on an object.
struct History {
    created: Instant,
    edits: u64,
    /// The number of edits after the creation was fully handled.
    late_edits: u64,
}

/// The size of a run.
struct Size {
    swaps: u64,
    objects: usize,
}

/// Returns the handlers of a random generation. Two are in every generation: `made` and `changed`, which detect losses; `code` is that of
/// these two.
fn generation(random: &mut Rng, code: u64) -> Vec<Line> {
    // Most edits do not concern the daemon.
    let of_daemon = random.u64(1..5) / 4;
    let mut lines = vec![
        on(Kind::Create, "made", code),
        on(Kind::Update, "changed", code).does(Does::Work(random.u64(0..2))),
        on(Kind::Daemon, "stay", of_daemon).does(if random.bool() {
            Does::Stay
        } else {
            Does::Linger(2)
        }),
    ];
    let mut maybe = |line: Line| {
        if random.bool() {
            let code = random.u64(1..3);
            lines.push(Line { code, ..line });
        }
    };
    maybe(on(Kind::Daemon, "more", 1));
    maybe(on(Kind::Timer, "tick", 1).with("interval", 3));
    maybe(on(Kind::Index, "idx", 1));
    maybe(on(Kind::Index, "others", 1).of("others"));
    maybe(on(Kind::Delete, "deleted", 1));
    maybe(on(Kind::Event, "seen", 1));
    maybe(on(Kind::Event, "looked", 1).does(Does::Look("idx")));
    maybe(on(Kind::Create, "other", 1).of("others"));
    maybe(on(Kind::Startup, "begin", 1));
    lines
}

/// Prints the seed if the test fails.
pub(super) struct ToldIfItFails(pub(super) u64);

impl Drop for ToldIfItFails {
    fn drop(&mut self) {
        if std::thread::panicking() {
            #[expect(clippy::print_stderr, reason = "what a failed test says")]
            {
                eprintln!("seed {}", self.0);
            }
        }
    }
}

/// Runs a seed. Returns the logged calls, and the history of each object.
async fn run(seed: u64, size: &Size) -> (Vec<String>, BTreeMap<String, History>) {
    let _told = ToldIfItFails(seed);
    let mut random = Rng::with_seed(seed);
    let mut operator = Edited::new(environment(&[], &["x", "y"]), &generation(&mut random, 1));
    pass(1).await;
    let mut changes = BTreeMap::<String, History>::new();
    let mut code = 1;
    for _ in 0..size.swaps {
        for _ in 0..random.u64(0..8) {
            let name = format!("o{}", random.usize(..size.objects));
            match changes.get_mut(&name) {
                None => {
                    let object = object("KopfExample", &name);
                    operator.env.create(object);
                    let created = Instant::now();
                    changes.insert(name, History { created, edits: 0, late_edits: 0 });
                }
                Some(history) => {
                    history.edits += 1;
                    let is_late = history.created.elapsed() > Duration::from_secs(5);
                    history.late_edits += u64::from(is_late);
                    operator.edit(EXAMPLES, &name, history.edits);
                }
            }
        }
        operator.edit(OTHERS, "x", random.u64(..));
        code += random.u64(0..2);
        let lines = generation(&mut random, code);
        let answer = operator.send(&lines, None).await;
        sleep(Duration::from_millis(random.u64(0..700))).await;
        answer.await.expect("an answer").expect("it takes over");
    }
    pass(30).await;
    for name in changes.keys() {
        let body = operator.env.server.get(EXAMPLES, "ns1", name).expect("it is there");
        let stored =
            &body["metadata"]["annotations"]["kopf.zalando.org/last-handled-configuration"];
        let stored: serde_json::Value =
            serde_json::from_str(stored.as_str().expect("it was handled")).expect("JSON");
        assert_eq!(stored["spec"], body["spec"], "{name}: its last change was handled to the end");
        let progress = body["metadata"]["annotations"].as_object().expect("a map");
        assert!(progress.keys().all(|it| it.ends_with("configuration")), "{name}: {progress:?}");
        assert_ne!(body["spec"], json!(null));
    }
    (operator.end().await.lines(), changes)
}

/// Checks that there is one daemon for each object at any time: each start is followed by its end before the next one.
fn check_daemons(id: &str, lines: &[String]) {
    let mut alive = BTreeMap::<&str, &str>::new();
    for line in lines.iter().filter(|it| it.starts_with(id)) {
        let mut words = line.split(' ');
        let (who, object) = (words.next().expect("who"), words.next().expect("an object"));
        match words.next() {
            Some("begins") => {
                let before = alive.insert(object, who);
                assert_eq!(before, None, "{line}: two at once");
            }
            _ => assert_eq!(alive.remove(object), Some(who), "{line}"),
        }
    }
    assert!(alive.is_empty(), "all have ended with the operator: {alive:?}");
}

fn check(seed: u64, size: &Size) {
    let (lines, changes) = run_paused(run(seed, size));
    for (name, history) in &changes {
        let of = |id: &str| {
            let is_meant = |it: &&String| {
                it.starts_with(&format!("{id}.")) && it.ends_with(&format!(" {name}"))
            };
            lines.iter().filter(is_meant).count()
        };
        assert_eq!(of("made"), 1, "{name} was made once");
        let is_end =
            |it: &&String| it.starts_with("changed.") && it.ends_with(&format!(" {name} ends"));
        let changed = lines.iter().filter(is_end).count() as u64;
        let History { edits, late_edits, .. } = history;
        assert!(changed <= *edits, "{name}: {changed} calls for {edits} edits");
        assert!(changed > 0 || *late_edits == 0, "{name}: none of {late_edits} edits was seen");
    }
    check_daemons("stay", &lines);
    check_daemons("more", &lines);
}

#[test]
fn no_event_is_lost_and_nothing_is_done_twice_whatever_is_edited() {
    check(1, &Size { swaps: 200, objects: 200 });
}

#[test]
fn few_objects_that_change_all_the_time_are_no_exception() {
    for seed in 2..8 {
        check(seed, &Size { swaps: 40, objects: 5 });
    }
}
