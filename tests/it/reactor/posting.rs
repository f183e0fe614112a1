//! The posting of Kubernetes events: their order, their rate, their end, and the cost of a refusal.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;

use kopf::{
    call::{EventQueue, Logger, LoggerKind, QueuedEvent},
    cluster::KubeCluster,
    features::posting,
    logic::{background::posting::Note, handlers::outcome::LogLevel, object::ObjectRef},
    ports::Cluster,
    settings::Settings,
    telemetry::OperatorFailures,
    testing::{self, Environment, LogCapture, run_paused},
};
use kopf_apiserver::{ApiServer, Fault, FaultEffect};
use serde_json::json;
use tokio::{sync::oneshot, task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

/// Longer than any test here takes.
const LONG: Duration = Duration::from_hours(1);

/// A server, and the task that posts events to it.
struct Office {
    env: Environment,
    posts: EventQueue,
    stop: CancellationToken,
    task: JoinSet<()>,
}

impl Office {
    fn open(settings: Settings, grace: Duration) -> Self {
        let env = Environment::new(ApiServer::builder());
        let settings = Arc::new(Mutex::new(settings));
        let posts = EventQueue::new(Arc::clone(&settings));
        let (tell, told) = oneshot::channel();
        let settings = Arc::new(settings.lock().clone());
        let cluster = KubeCluster::over(testing::client(&env.server), settings);
        assert!(tell.send(Arc::new(cluster) as Arc<dyn Cluster>).is_ok());
        let (stop, mut task) = (CancellationToken::new(), JoinSet::new());
        task.spawn(posting::run(
            posts.clone(),
            told,
            env.clock,
            OperatorFailures::default(),
            (stop.clone(), grace),
        ));
        Office { env, posts, stop, task }
    }

    /// Posts an event about an object.
    fn post(&self, name: &str, reason: &str) {
        let backoffs = [5, 5].map(Duration::from_secs).to_vec();
        let note = Note::new("Normal", reason, "told");
        self.posts.post(QueuedEvent { about: about(name), note, backoffs });
    }

    /// Stops it and waits for its end; returns what the server received: second, status, reason.
    async fn close(mut self) -> Vec<String> {
        self.stop.cancel();
        while self.task.join_next().await.is_some() {}
        self.seen()
    }

    fn seen(&self) -> Vec<String> {
        let requests = self.env.server.requests().into_iter();
        let told = requests.map(|it| {
            let (at, event) = (it.at.duration_since(self.env.start).as_secs(), it.json());
            let name = event["involvedObject"]["name"].as_str().unwrap_or_default().to_owned();
            format!("{at} {} {name} {}", it.status, event["reason"].as_str().unwrap_or_default())
        });
        told.collect()
    }
}

fn about(name: &str) -> Arc<ObjectRef> {
    Arc::new(ObjectRef {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        name: name.into(),
        uid: format!("uid-{name}"),
        namespace: Some("default".into()),
    })
}

fn refuse(code: u16) -> Fault {
    Fault::always(FaultEffect::Refuse { code, retry_after_seconds: None }).on("POST", "/events")
}

fn late(seconds: u64) -> Fault {
    Fault::always(FaultEffect::Latency(Duration::from_secs(seconds))).on("POST", "/events")
}

#[test]
fn an_event_is_what_the_reference_posts() {
    let body = run_paused(async {
        let office = Office::open(Settings::default(), LONG);
        let server = office.env.server.clone();
        office.post("a", "Tested");
        office.close().await;
        server.requests()[0].json()
    });
    let now = "2026-01-01T00:00:00.000000+00:00";
    let expected = json!({
        "metadata": {"namespace": "default", "generateName": "kopf-event-"},
        "action": "Action?",
        "type": "Normal",
        "reason": "Tested",
        "message": "told",
        "reportingComponent": "kopf",
        "reportingInstance": "dev",
        "source": {"component": "kopf"},
        "involvedObject": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "uid-a", "namespace": "default"},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "eventTime": now,
    });
    assert_eq!(body, expected);
}

#[test]
fn events_of_one_object_wait_for_each_other_and_delay_nobody_else() {
    let seen = run_paused(async {
        let office = Office::open(Settings::default(), LONG);
        office.env.server.fault(refuse(503).times(2));
        office.post("a", "First");
        office.post("a", "Second");
        sleep(Duration::from_secs(1)).await;
        office.env.server.clear_faults();
        office.post("b", "Other");
        office.close().await
    });
    assert_eq!(seen, ["0 503 a First", "1 201 b Other", "5 201 a First", "5 201 a Second"]);
}

#[test]
fn one_line_tells_of_all_events_that_are_dropped_until_there_is_room() {
    let (lines, posted) = run_paused(async {
        let log = LogCapture::of("kopf");
        let office = Office::open(Settings::default(), LONG);
        office.env.server.fault(late(10));
        for number in 0..300 {
            office.post("a", &format!("Event{number}"));
        }
        sleep(Duration::from_secs(1)).await;
        let dropped = || log.lines().into_iter().filter(|it| it.message.contains("are dropped"));
        assert_eq!(dropped().count(), 1);
        sleep(Duration::from_secs(10)).await;
        for _ in 0..10 {
            office.post("a", "Later");
        }
        let posted = office.close().await.len();
        (dropped().map(|it| it.message).collect::<Vec<_>>(), posted)
    });
    let first = |reason: &str| {
        format!(
            "100 Kubernetes events of this object are waiting to be posted: further ones are dropped until there is room, \
             starting with type='Normal', reason='{reason}', message='told'."
        )
    };
    assert_eq!(lines, [first("Event100"), first("Later")]);
    assert_eq!(posted, 101);
}

#[test]
fn a_refusal_is_final_and_costs_only_its_event() {
    let seen = run_paused(async {
        let office = Office::open(Settings::default(), LONG);
        office.env.server.fault(refuse(403).times(1));
        office.post("a", "First");
        office.post("a", "Second");
        office.close().await
    });
    assert_eq!(seen, ["0 403 a First", "0 201 a Second"]);
}

#[test]
fn attempts_end_with_the_pauses_of_the_event() {
    let seen = run_paused(async {
        let office = Office::open(Settings::default(), LONG);
        office.env.server.fault(refuse(500));
        office.post("a", "Never");
        office.close().await
    });
    assert_eq!(seen, ["0 500 a Never", "5 500 a Never", "10 500 a Never"]);
}

#[test]
fn no_more_objects_are_posted_about_than_the_limit() {
    let seen = run_paused(async {
        let mut settings = Settings::default();
        settings.posting.worker_limit = Some(1);
        let office = Office::open(settings, LONG);
        office.env.server.fault(late(10));
        for name in ["a", "a", "b", "c"] {
            office.post(name, "Slow");
        }
        office.close().await
    });
    // In turns: the second event of an object waits behind the first ones of others.
    assert_eq!(seen, ["10 201 a Slow", "20 201 b Slow", "30 201 c Slow", "40 201 a Slow"]);
}

#[test]
fn what_waits_at_the_stop_is_posted_but_not_for_ever() {
    let (seen, took) = run_paused(async {
        let office = Office::open(Settings::default(), Duration::from_millis(2500));
        office.env.server.fault(late(1));
        for _ in 0..5 {
            office.post("a", "Late");
        }
        let start = office.env.start;
        (office.close().await, start.elapsed())
    });
    assert_eq!(seen, ["1 201 a Late", "2 201 a Late"]);
    assert_eq!(took, Duration::from_millis(2500));
}

#[test]
fn one_object_does_not_fill_the_place_of_all_others() {
    let seen = run_paused(async {
        let office = Office::open(Settings::default(), LONG);
        office.env.server.fault(late(1));
        for _ in 0..150 {
            office.post("a", "Many");
        }
        office.post("b", "Other");
        office.close().await
    });
    assert_eq!(seen.iter().filter(|it| it.ends_with("a Many")).count(), 100);
    assert!(seen.contains(&"1 201 b Other".to_owned()), "{seen:?}");
}

#[test]
fn a_full_queue_drops_what_is_new() {
    let posts = EventQueue::default();
    let note = Note::new("Normal", "Tested", "");
    for _ in 0..2000 {
        posts.post(QueuedEvent { about: about("a"), note: note.clone(), backoffs: Vec::new() });
    }
    let mut inbox = posts.take().expect("nobody has it yet");
    let waiting = std::iter::from_fn(|| inbox.try_recv().ok()).count();
    assert_eq!(waiting, 1024);
    assert!(posts.take().is_none());
}

#[test]
fn lines_of_full_loggers_are_events_from_the_level_of_the_settings_on() {
    let of = |loggers: bool, enabled: bool, level: u32, kind: LoggerKind| {
        let mut settings = Settings::default();
        settings.posting.loggers = loggers;
        settings.posting.enabled = enabled;
        settings.posting.level = level;
        let posts = EventQueue::new(Arc::new(Mutex::new(settings)));
        let logger = Logger::of_object(kind, about("a")).posting(&posts);
        // Nothing before the settings are complete.
        logger.log(LogLevel::Error, "early");
        posts.listen();
        for level in [LogLevel::Debug, LogLevel::Info, LogLevel::Warning] {
            logger.log(level, "line");
        }
        logger.exception("failed", "a.lua:1", None);
        let mut inbox = posts.take().expect("nobody has it yet");
        let posted = std::iter::from_fn(|| inbox.try_recv().ok());
        posted
            .map(|it| format!("{} {} {}", it.note.kind, it.note.reason, it.note.message))
            .collect::<Vec<String>>()
    };
    let none: Vec<String> = Vec::new();
    assert_eq!(of(false, true, 10, LoggerKind::Full), none);
    assert_eq!(of(true, false, 10, LoggerKind::Full), none);
    assert_eq!(of(true, true, 10, LoggerKind::Local), none);
    assert_eq!(of(true, true, 10, LoggerKind::Terse), none);
    let error = "Error Logging failed\na.lua:1";
    assert_eq!(of(true, true, 30, LoggerKind::Full), ["Warning Logging line", error]);
    let all = ["Debug Logging line", "Normal Logging line", "Warning Logging line", error];
    assert_eq!(of(true, true, 10, LoggerKind::Full), all);
}
