//! An operator of real scripts in a `ConfigMap` of the embedded server, with the whole path of an edit: watch, settling, loading,
//! start-up handlers, takeover. Everything is on one virtual clock.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;

use kopf::{
    cli::options::MapOption,
    cluster::KubeCluster,
    logic::{change::registry::Registry, handlers::handler::Kind},
    ports::{Candidate, Rejection},
    reactor::Operator,
    scripting::{Placement, ScriptHost},
    settings::Settings,
    sources::{
        LoadAttempt, Maps, Sources,
        reload::{self, Parts, Reloading},
    },
    telemetry::HealthState,
    testing::{self, Environment, RunningOperator, capture_log},
};
use kopf_apiserver::ApiServer;
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tracing::{Level, dispatcher::DefaultGuard};

use super::texts::LANGUAGES;

/// The edits that the scripts of a generation come from, by language.
pub(super) type Marks = [u64; 2];

/// An event.
#[derive(Clone, Debug)]
pub(super) enum Happened {
    /// A script has logged something about an object.
    Noted { name: String, text: String },
    /// A generation was loaded, and its start-up handlers begin.
    Proposed(Marks),
    /// The generation is live.
    Taken(Marks),
    /// The generation was rejected.
    Refused(Marks, Rejection),
}

/// All events, with their times. Clones share them.
#[derive(Clone)]
pub(super) struct Record {
    entries: Arc<Mutex<Vec<(Duration, Happened)>>>,
    start: Instant,
}

/// An operator whose scripts are watched, with the handles of users and checks.
pub(super) struct Watching {
    pub(super) env: Environment,
    pub(super) record: Record,
    pub(super) host: Arc<ScriptHost>,
    running: RunningOperator,
    stop: CancellationToken,
    work: JoinSet<()>,
    _capturing: DefaultGuard,
}

impl Watching {
    /// Starts an operator of these scripts, one in each language.
    pub(super) async fn new(texts: [String; 2]) -> Self {
        let record = Record { entries: Arc::default(), start: Instant::now() };
        let capturing = capture(&record);
        let builder = ApiServer::builder().cluster(true).bookmarks(None);
        let env = Environment::new(builder.resource(testing::examples()));
        env.create(map(&texts));
        let cluster = KubeCluster::over(testing::client(&env.server), Arc::default());
        let option = MapOption::Named { namespace: Some("default".into()), name: "ops".into() };
        let maps = Maps::open(&cluster, &[option], &Settings::default()).await;
        let maps = maps.unwrap_or_else(|it| panic!("{it}"));
        let scripts = maps.read().expect("scripts");
        let attempt = LoadAttempt::of(&scripts);
        let host = Arc::new(ScriptHost::new(Placement::CurrentRuntime));
        let prepared = host.prepare(scripts).await.expect("they load");
        host.take(prepared.scripts);
        let mut settings = Settings::default();
        settings.posting.enabled = false;
        let operator = Operator {
            settings: Arc::new(Mutex::new(settings)),
            ..env.operator(Arc::<ScriptHost>::clone(&host), prepared.handlers)
        };
        record.add(Happened::Taken(marks(&operator.registry)));
        let mut sources = Sources::new(None, Some(maps));
        sources.tried(attempt);
        sources.took();
        let running = RunningOperator::start(operator);
        let (candidates, made) = mpsc::channel(reload::WAITING_MAX);
        let parts = Parts {
            sources,
            host: Arc::clone(&host),
            candidates,
            health: running.health.clone(),
            clock: env.clock,
        };
        let (stop, mut work) = (CancellationToken::new(), JoinSet::new());
        work.spawn_local(Reloading::new(parts).follow(stop.clone()));
        work.spawn_local(relay(made, running.reloads.clone(), record.clone()));
        Watching { env, record, host, running, stop, work, _capturing: capturing }
    }

    /// Saves both scripts as a user.
    pub(super) fn save(&self, texts: &[String; 2]) {
        let edit = |object: &mut Value| object["data"] = map(texts)["data"].clone();
        self.env.server.update("configmaps", "default", "ops", edit).expect("it is accepted");
    }

    /// Returns the line of `/readyz` about the scripts; they must always be ready.
    pub(super) fn told(&self) -> String {
        let parts = self.running.health.parts();
        let Some(part) = parts.get("scripts") else { return String::new() };
        assert_eq!(part.state, HealthState::Ready, "it serves, whatever is edited: {}", part.text);
        part.text.clone()
    }

    /// Ends the operator. Returns its scripts and its record.
    pub(super) async fn end(mut self) -> (Arc<ScriptHost>, Record) {
        self.stop.cancel();
        self.running.stop().await;
        while let Some(ended) = self.work.join_next().await {
            ended.expect("no panic");
        }
        (self.host, self.record)
    }
}

/// Returns the scripts as a `ConfigMap`.
fn map(texts: &[String; 2]) -> Value {
    let [lua, rhai] = texts;
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "ops", "namespace": "default" },
        "data": { "a.lua": lua, "b.rhai": rhai },
    })
}

/// Passes candidates on to the operator, and records their results.
async fn relay(
    mut made: mpsc::Receiver<Candidate>,
    forward: mpsc::Sender<Candidate>,
    record: Record,
) {
    while let Some(Candidate { generation, verdict, withdrawn }) = made.recv().await {
        let marks = marks(&generation.registry);
        record.add(Happened::Proposed(marks));
        let (told, answer) = oneshot::channel();
        let candidate = Candidate { generation, verdict: told, withdrawn };
        if forward.send(candidate).await.is_err() {
            return;
        }
        let Ok(answer) = answer.await else { return };
        record.add(match &answer {
            Ok(_) => Happened::Taken(marks),
            Err(rejection) => Happened::Refused(marks, rejection.clone()),
        });
        // The driver may have ended.
        let _unheard = verdict.send(answer);
    }
}

/// Returns the edits that these handlers come from.
fn marks(registry: &Registry) -> Marks {
    LANGUAGES.map(|language| {
        let id = format!("{language}_mark");
        let all = registry.activities(Kind::Cleanup);
        let mark = all.iter().find(|it| *it.id == id).unwrap_or_else(|| panic!("no {id}"));
        mark.param.as_ref().and_then(Value::as_u64).unwrap_or_default()
    })
}

impl Record {
    fn add(&self, happened: Happened) {
        self.entries.lock().push((self.start.elapsed(), happened));
    }

    /// Returns the time since the start.
    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns all events so far.
    pub(super) fn entries(&self) -> Vec<(Duration, Happened)> {
        self.entries.lock().clone()
    }

    /// Returns the live generation, and how many there were.
    pub(super) fn present(&self) -> (Marks, usize) {
        let entries = self.entries.lock();
        let taken = entries.iter().filter_map(|(_, it)| match it {
            Happened::Taken(marks) => Some(*marks),
            Happened::Noted { .. } | Happened::Proposed(_) | Happened::Refused(..) => None,
        });
        let taken: Vec<_> = taken.collect();
        (taken.last().copied().unwrap_or_default(), taken.len())
    }
}

/// Adds the log lines of scripts to the record, while the guard lives.
fn capture(record: &Record) -> DefaultGuard {
    let record = record.clone();
    capture_log("kopf", Level::INFO, move |line| {
        if let Some(text) = line.message.strip_prefix("load ") {
            let name = line.field("object.name").unwrap_or_default().to_owned();
            record.add(Happened::Noted { name, text: text.to_owned() });
        }
    })
}
