//! An operator of real scripts in a `ConfigMap` of the embedded server, with the whole way of an edit: watch, settling, loading,
//! start-up handlers, swap. Everything is on one virtual clock.

use std::{
    fmt::Debug,
    sync::{Arc, OnceLock},
    time::Duration,
};

use parking_lot::Mutex;

use kopf::{
    cli::{
        options::MapOption,
        reload::{self, Parts, Reloading},
        sources::{Attempt, Maps, Sources},
    },
    cluster::KubeCluster,
    logic::{handler::Kind, registry::Registry},
    ports::{Candidate, Clock, Health, HealthState, Rejection},
    reactor::{self, Operator},
    scripting::{Placement, ScriptHost},
    settings::Settings,
    testing,
};
use kopf_apiserver::ApiServer;
use serde_json::{Value, json};
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tracing::{
    Dispatch, Event, Level, Metadata, Subscriber,
    dispatcher::DefaultGuard,
    field::{Field, Visit},
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
};

use super::texts::LANGUAGES;

/// Which edits the scripts of a generation are of, by language.
pub(super) type Marks = [u64; 2];

/// What has happened.
#[derive(Clone, Debug)]
pub(super) enum Happened {
    /// A script has noted something about an object.
    Noted { name: String, text: String },
    /// A generation was loaded, and its start-up handlers begin.
    Proposed(Marks),
    /// It runs.
    Taken(Marks),
    /// It does not.
    Refused(Marks, Rejection),
}

/// Everything that has happened, with its time. Clones are the same record.
#[derive(Clone)]
pub(super) struct Record {
    entries: Arc<Mutex<Vec<(Duration, Happened)>>>,
    start: Instant,
    /// Scripts log from threads of their own: these get the virtual time through it.
    runtime: Handle,
}

/// What runs, with what is needed to play with it.
pub(super) struct Stage {
    pub(super) server: ApiServer,
    pub(super) record: Record,
    pub(super) health: Health,
    pub(super) host: Arc<ScriptHost>,
    stop: CancellationToken,
    work: JoinSet<()>,
    _capturing: DefaultGuard,
}

impl Stage {
    /// An operator of these scripts, one in each language.
    pub(super) async fn new(texts: [String; 2]) -> Self {
        let record =
            Record { entries: Arc::default(), start: Instant::now(), runtime: Handle::current() };
        let capturing = capture(&record);
        let examples = testing::examples();
        let server = ApiServer::builder().cluster(true).bookmarks(None).resource(examples).build();
        server.create("configmaps", map(&texts)).expect("it is new");
        let client = testing::client(&server);
        let cluster = KubeCluster::over(client.clone(), Arc::default());
        let option = MapOption::Named { namespace: Some("default".into()), name: "ops".into() };
        let maps = Maps::open(&cluster, &[option], &Settings::default()).await;
        let maps = maps.unwrap_or_else(|it| panic!("{it}"));
        let scripts = maps.read().expect("scripts");
        let attempt = Attempt::of(&scripts);
        let host = Arc::new(ScriptHost::new(Placement::CurrentRuntime));
        let prepared = host.prepare(scripts).await.expect("they load");
        host.take(prepared.scripts);
        let registry = Registry::new(prepared.handlers).expect("unique ids");
        let mut sources = Sources::new(None, Some(maps));
        sources.tried(attempt);
        sources.took();
        let health = Health::default();
        let (candidates, made) = mpsc::channel(reload::WAITING_MAX);
        let (forward, reloads) = mpsc::channel(reload::WAITING_MAX);
        let (stop, mut work) = (CancellationToken::new(), JoinSet::new());
        record.add(Happened::Taken(marks(&registry)));
        let parts = Parts {
            sources,
            host: Arc::clone(&host),
            candidates,
            health: health.clone(),
            clock: Clock::starting_at(jiff::Timestamp::UNIX_EPOCH),
        };
        work.spawn_local(Reloading::new(parts).follow(stop.clone()));
        work.spawn_local(relay(made, forward, record.clone()));
        let mut settings = Settings::default();
        settings.posting.enabled = false;
        let operator = Operator {
            settings: Arc::new(Mutex::new(settings)),
            health: health.clone(),
            reloads: Some(reloads),
            ..testing::operator(Arc::<ScriptHost>::clone(&host), registry, client)
        };
        let token = stop.clone();
        work.spawn_local(async move { reactor::run(operator, token).await.expect("it runs") });
        Stage { server, record, health, host, stop, work, _capturing: capturing }
    }

    /// A user saves both scripts.
    pub(super) fn save(&self, texts: &[String; 2]) {
        let edit = |object: &mut Value| object["data"] = map(texts)["data"].clone();
        self.server.update("configmaps", "default", "ops", edit).expect("it is accepted");
    }

    /// What `/readyz` says of the scripts; they are ready at any time.
    pub(super) fn told(&self) -> String {
        let parts = self.health.parts();
        let Some(part) = parts.get("scripts") else { return String::new() };
        assert_eq!(part.state, HealthState::Ready, "it serves, whatever is edited: {}", part.text);
        part.text.clone()
    }

    /// Ends the operator.
    pub(super) async fn end(&mut self) {
        self.stop.cancel();
        while let Some(ended) = self.work.join_next().await {
            ended.expect("no panic");
        }
    }
}

/// The scripts as a `ConfigMap`.
fn map(texts: &[String; 2]) -> Value {
    let [lua, rhai] = texts;
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "ops", "namespace": "default" },
        "data": { "a.lua": lua, "b.rhai": rhai },
    })
}

/// Hands candidates on to the operator, and writes down what becomes of them.
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

/// Which edits these handlers are of.
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
        let _entered = self.runtime.enter();
        let at = self.start.elapsed();
        self.entries.lock().push((at, happened));
    }

    /// How long it runs.
    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Everything until now.
    pub(super) fn entries(&self) -> Vec<(Duration, Happened)> {
        self.entries.lock().clone()
    }

    /// The generation that runs, and how many there were.
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

/// Writes what scripts note into the record, while the guard lives.
fn capture(record: &Record) -> DefaultGuard {
    /// With one subscriber only, tracing asks that of whoever logs first, which may be another test without any.
    static SECOND: OnceLock<Dispatch> = OnceLock::new();
    SECOND.get_or_init(|| Dispatch::new(tracing_subscriber::registry()));
    let layer = Capture(record.clone());
    tracing::dispatcher::set_default(&Dispatch::new(tracing_subscriber::registry().with(layer)))
}

struct Capture(Record);

impl<S: Subscriber> Layer<S> for Capture {
    fn enabled(&self, metadata: &Metadata<'_>, _context: Context<'_, S>) -> bool {
        *metadata.level() <= Level::INFO && metadata.target().starts_with("kopf")
    }

    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        if let Some(text) = line.message.strip_prefix("load ") {
            self.0.add(Happened::Noted { name: line.name, text: text.to_owned() });
        }
    }
}

#[derive(Debug, Default)]
struct Line {
    message: String,
    name: String,
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            "object.name" => value.clone_into(&mut self.name),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if matches!(field.name(), "message" | "object.name") {
            self.record_str(field, &format!("{value:?}"));
        }
    }
}
