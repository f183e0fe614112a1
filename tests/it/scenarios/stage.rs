//! Plays a scenario: an API server, an operator of scripts, and a user, on one paused clock.

use std::sync::Arc;

use parking_lot::Mutex;

use kopf::{
    logic::{generation::Generation, registry::Registry},
    ports::{Candidate, Clock},
    reactor::{self, Operator},
    scripting::{Prepared, ScriptHost, Source, Terms},
    settings::Settings,
    testing::{self, EXAMPLES},
};
use kopf_apiserver::ApiServer;
use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot},
    task::{JoinSet, LocalSet},
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;

use super::{
    steps::{Action, Cast, NAMESPACE, Scenario, complete},
    transcript::{self, Transcript},
};

/// The wall clock at virtual time zero.
const BASE: &str = "2026-01-01T00:00:00Z";

/// Plays it to the end; gives what was seen.
pub(super) fn play(scenario: &Scenario, cast: &Cast) -> String {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let stage = Stage::new(scenario.plot.verbose);
        let _capturing = transcript::capture(&stage.transcript);
        stage.play(scenario, cast).await
    })
}

struct Stage {
    server: ApiServer,
    clock: Clock,
    start: Instant,
    transcript: Transcript,
}

/// One running operator.
struct Running {
    host: Arc<ScriptHost>,
    reloads: mpsc::Sender<Candidate>,
    stop: CancellationToken,
    task: JoinSet<()>,
}

impl Stage {
    fn new(verbose: bool) -> Self {
        let clock = Clock::starting_at(BASE.parse().expect("a timestamp"));
        let start = Instant::now();
        let mut resource = testing::examples();
        resource.short_names = vec!["kex".into(), "kexes".into()];
        resource.categories = vec!["all".into()];
        let to_the_second = |now: jiff::Timestamp| now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let server = ApiServer::builder().bookmarks(None).resource(resource);
        let server = server.clock(move || to_the_second(clock.now())).build();
        let transcript = Transcript::new(server.clone(), start, verbose);
        Stage { server, clock, start, transcript }
    }

    async fn play(self, scenario: &Scenario, cast: &Cast) -> String {
        let (before, after): (Vec<_>, Vec<_>) =
            scenario.plot.steps.iter().partition(|it| it.at().is_zero());
        let mut running = None;
        for step in before {
            self.act(&step.action, (scenario, cast), &mut running).await;
        }
        if running.is_none() {
            running = Some(self.raise(scenario, cast).await);
        }
        for step in after {
            time::sleep_until(self.start + step.at()).await;
            self.act(&step.action, (scenario, cast), &mut running).await;
        }
        time::sleep_until(self.start + scenario.plot.until()).await;
        lower(running.take()).await;
        self.transcript.finish(&self.server.list(EXAMPLES))
    }

    /// A refusal is a part of the transcript.
    async fn act(
        &self,
        action: &Action,
        (scenario, cast): (&Scenario, &Cast),
        running: &mut Option<Running>,
    ) {
        let refused = match action {
            Action::Create(body) => {
                let body = complete(body);
                let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                self.transcript.note("user", &format!("creates {name}"));
                self.server.create(&collection(&body), body).err()
            }
            Action::Edit(name, merge) => {
                self.transcript.note("user", &format!("edits {name}: {merge}"));
                let (collection, name) = place(name);
                self.server.merge(collection, NAMESPACE, name, merge.clone()).err()
            }
            Action::Delete(name) => {
                self.transcript.note("user", &format!("deletes {name}"));
                let (collection, name) = place(name);
                self.server.delete(collection, NAMESPACE, name).err()
            }
            Action::Stop(()) => {
                self.transcript.note("user", "stops the operator");
                lower(running.take()).await;
                None
            }
            Action::Start(()) => {
                self.transcript.note("user", "starts the operator");
                *running = Some(self.raise(scenario, cast).await);
                None
            }
            Action::Reload(folder) => {
                self.transcript.note("user", &format!("saves the scripts of '{folder}'"));
                let running = running.as_ref().expect("an operator runs");
                self.transcript.note("operator", &running.reload(cast.edited(folder)).await);
                None
            }
        };
        if let Some(refusal) = refused {
            self.transcript.note("server", &format!("refuses: {refusal:?}"));
        }
    }

    async fn raise(&self, scenario: &Scenario, cast: &Cast) -> Running {
        let terms = Terms { clock: self.clock, ..scenario.plot.terms() };
        let loaded = ScriptHost::load(cast.sources(), terms).await;
        let (scripts, handlers) = loaded.unwrap_or_else(|errors| panic!("{}", errors[0]));
        let host = Arc::new(scripts);
        let (reloads, candidates) = mpsc::channel(1);
        let stop = CancellationToken::new();
        let client = testing::client(&self.server);
        let mut settings = Settings::default();
        settings.networking.error_backoffs = Vec::new();
        let registry = Registry::new(handlers).expect("ids are unique");
        let operator = Operator {
            settings: Arc::new(Mutex::new(settings)),
            clock: self.clock,
            reloads: Some(candidates),
            ..testing::operator(Arc::<ScriptHost>::clone(&host), registry, client)
        };
        let mut task = JoinSet::new();
        let (token, transcript) = (stop.clone(), self.transcript.clone());
        task.spawn(async move {
            if let Err(failure) = reactor::run(operator, token).await {
                transcript.note("operator", &format!("ends: {failure}"));
            }
        });
        Running { host, reloads, stop, task }
    }
}

impl Running {
    /// What becomes of an edit.
    async fn reload(&self, sources: Vec<Source>) -> String {
        let prepared = match self.host.prepare(sources).await {
            Ok(prepared) => prepared,
            Err(errors) => return format!("refuses: {}", errors[0].message),
        };
        let Prepared { handlers, lifecycle, scripts } = prepared;
        let registry = Registry::new(handlers).expect("ids are unique");
        let generation = Generation { number: 0, registry, lifecycle };
        let (verdict, answer) = oneshot::channel();
        let candidate = Candidate { generation, verdict, withdrawn: CancellationToken::new() };
        self.reloads.send(candidate).await.expect("the operator runs");
        match answer.await.expect("an answer") {
            Ok(changes) => {
                self.host.take(scripts);
                format!("takes it: {changes}")
            }
            Err(rejection) => format!("refuses: {rejection}"),
        }
    }
}

/// Where objects of this kind are.
fn collection(body: &Value) -> String {
    let text = |key: &str| body[key].as_str().unwrap_or_default();
    let plural = format!("{}s", text("kind").to_lowercase());
    match text("apiVersion").split_once('/') {
        Some((group, _)) => format!("{plural}.{group}"),
        None => plural,
    }
}

/// The collection and the name of an object: `configmaps/settings`, or only the name.
fn place(name: &str) -> (&str, &str) {
    name.split_once('/').unwrap_or((EXAMPLES, name))
}

/// Ends an operator, and waits until it has ended.
async fn lower(running: Option<Running>) {
    if let Some(mut running) = running {
        running.stop.cancel();
        while running.task.join_next().await.is_some() {}
    }
}
