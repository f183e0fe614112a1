//! One run: a server, an operator that dies and starts again, users, and faults, from one seed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kopf::{
    logic::{generation::Generation, lifecycle::Lifecycle, registry::Registry},
    ports::Candidate,
    reactor::Operator,
    settings::Settings,
    testing::{self, EXAMPLES, Environment, NativeScripts, Running, definition, examples, object},
};
use kopf_apiserver::{ApiServer, Effect, Fault};
use parking_lot::Mutex;
use serde_json::json;
use tokio::{
    sync::{Notify, oneshot},
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;

use super::{
    actions::{self, Action, FAULTS_END},
    checks,
    dice::Dice,
    faults::{Faults, Fired, Kind, Part},
    history::History,
    natives::Natives,
    open::Open,
    wire::{NAMESPACE, Wire},
};

/// The time that the operator has after the last fault.
const SETTLING: Duration = Duration::from_secs(240);

/// When CRDs are watched again after a 403.
const LOOK_AGAIN: Duration = Duration::from_mins(10);

/// How long a new process takes to start.
const START_DELAY: Duration = Duration::from_secs(1);

/// What a run is made from.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) open: Open,
    /// Only these faults and actions.
    pub(super) only: Option<Arc<BTreeSet<Part>>>,
    /// Whether the history has the log of the operator.
    pub(super) is_verbose: bool,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) broken: Vec<String>,
    pub(super) fired: Vec<Fired>,
    /// The numbers of the actions.
    pub(super) actions: Vec<u64>,
    pub(super) lines: Vec<String>,
    /// Objects that are excused because of an open finding.
    pub(super) excused: usize,
}

/// A run in progress.
pub(super) struct World {
    pub(super) env: Environment,
    pub(super) history: History,
    pub(super) dice: Dice,
    pub(super) open: Open,
    faults: Faults,
    scripts: NativeScripts,
    death: Arc<Notify>,
    failed: Arc<Notify>,
    is_down: Arc<AtomicBool>,
    pub(super) running: Option<Running>,
    pub(super) process: u64,
    code: u64,
    /// The last value of `spec.x` of any object.
    x: u64,
    lifecycle: Lifecycle,
    timeline: BTreeMap<(Instant, u64), Action>,
    later: u64,
}

/// Runs a plan to its end.
pub(super) async fn run(plan: &Plan) -> Outcome {
    let (mut world, actions) = World::new(plan);
    let log = world.history.clone();
    let _capturing = plan.is_verbose.then(|| {
        testing::capture_log("kopf", tracing::Level::DEBUG, move |line| {
            log.note(format!("{} {}", line.python_level(), line.message));
        })
    });
    world.play(Instant::now() + FAULTS_END).await;
    world.faults.end();
    world.mend();
    world.history.note("no fault from now on");
    world.play(Instant::now() + world.settling()).await;
    checks::settled(&mut world).await;
    checks::stopped(&mut world).await;
    Outcome {
        broken: world.history.broken(),
        fired: world.faults.fired(),
        actions,
        lines: world.history.lines(),
        excused: world.history.excused(),
    }
}

fn environment(dice: Dice) -> Environment {
    let env = Environment::new(ApiServer::builder());
    let mut crd = definition(&examples());
    if dice.of("status", 0).bool() {
        crd["spec"]["versions"][0]["subresources"] = json!({ "status": {} });
    }
    env.create(crd);
    env
}

impl World {
    /// Also returns the numbers of the actions.
    fn new(plan: &Plan) -> (Self, Vec<u64>) {
        let dice = Dice::new(plan.seed);
        // What the operator itself decides by chance.
        fastrand::seed(plan.seed);
        let start = Instant::now();
        let mut timeline = BTreeMap::from([((start, 0), Action::Start)]);
        let mut numbers = Vec::new();
        for (number, (at, action)) in (1..).zip(actions::actions(dice)) {
            let only = plan.only.as_ref();
            if only.is_none_or(|it| it.contains(&Part::Action(number))) {
                timeline.insert((start + at, number), action);
                numbers.push(number);
            }
        }
        let is_orderly = dice.of("lifecycle", 0).u32(..3) > 0;
        let world = World {
            env: environment(dice),
            history: History::new(is_orderly, plan.open),
            dice,
            open: plan.open,
            faults: Faults::new(dice, plan.open, plan.only.clone()),
            scripts: NativeScripts::default(),
            death: Arc::default(),
            failed: Arc::default(),
            is_down: Arc::default(),
            running: None,
            process: 0,
            code: 0,
            x: 0,
            lifecycle: if is_orderly { Lifecycle::AllAtOnce } else { Lifecycle::Asap },
            timeline,
            later: 1000,
        };
        (world, numbers)
    }

    /// Lets everything happen until then.
    pub(super) async fn play(&mut self, end: Instant) {
        let (death, failed) = (Arc::clone(&self.death), Arc::clone(&self.failed));
        loop {
            let next = self.timeline.first_key_value().map_or(end, |((at, _), _)| *at).min(end);
            tokio::select! {
                biased; // a process that is dead does nothing more
                () = death.notified() => self.kill("dies", START_DELAY),
                () = failed.notified() => self.kill("has failed", START_DELAY),
                () = time::sleep_until(next) => {
                    if next >= end {
                        return;
                    }
                    let (_, action) = self.timeline.pop_first().expect("an action");
                    self.act(action).await;
                }
            }
        }
    }

    /// Returns the time that the operator needs after the faults that have happened.
    fn settling(&self) -> Duration {
        let is_denied = |it: &Fired| {
            it.kind == Kind::Forbidden && it.part.is_about("customresourcedefinitions")
        };
        let is_denied = self.faults.fired().iter().any(is_denied);
        SETTLING + if is_denied { LOOK_AGAIN } else { Duration::ZERO }
    }

    /// Ends what goes on for some time.
    fn mend(&mut self) {
        self.is_down.store(false, Ordering::Relaxed);
        self.env.server.clear_faults();
    }

    fn later(&mut self, pause: Duration, action: Action) {
        self.later += 1;
        self.timeline.insert((Instant::now() + pause, self.later), action);
    }

    async fn act(&mut self, action: Action) {
        match action {
            Action::Create(number) => self.create(number),
            Action::Edit(number) => self.edit(number),
            Action::Touch(number) => {
                self.x += 1;
                let touched = json!({ "status": { "touched": self.x } });
                drop(self.env.server.merge(EXAMPLES, NAMESPACE, &format!("o{number}"), touched));
            }
            Action::Delete(number) => self.delete(number),
            Action::Replace(number) => {
                self.delete(number);
                self.later(Duration::from_millis(100), Action::Create(number));
            }
            Action::Start => self.start(),
            Action::Reload => self.reload(),
            Action::Restart => self.restart().await,
            Action::Kill(pause) => self.kill("is killed", pause),
            Action::CloseWatches
            | Action::Compact
            | Action::Outage(_)
            | Action::Hide(_)
            | Action::Connect
            | Action::Show => self.disturb(action),
        }
    }

    fn disturb(&mut self, action: Action) {
        self.history.note(format!("{action:?}"));
        let server = &self.env.server;
        match action {
            Action::Compact => {
                server.compact();
                server.close_watches();
            }
            Action::Outage(pause) => {
                self.is_down.store(true, Ordering::Relaxed);
                server.close_watches();
                self.later(pause, Action::Connect);
            }
            Action::Connect => self.is_down.store(false, Ordering::Relaxed),
            Action::Hide(pause) => {
                let hidden = Effect::HiddenGroup("kopf.dev".into());
                server.fault(Fault::always(hidden).on("GET", "/apis"));
                server.close_watches();
                self.later(pause, Action::Show);
            }
            Action::Show => server.clear_faults(),
            _ => server.close_watches(),
        }
    }

    /// Creates an object as soon as there is none of this name.
    fn create(&mut self, number: usize) {
        let name = format!("o{number}");
        match self.env.server.get(EXAMPLES, NAMESPACE, &name) {
            None => {
                self.x += 1;
                let mut body = object(NAMESPACE, &name);
                body["metadata"]["uid"] = json!(null);
                body["spec"] = json!({ "x": self.x });
                let created = self.env.create(body);
                let uid = created["metadata"]["uid"].as_str().unwrap_or_default();
                self.history.note(format!("user creates {name}: {uid}, x = {}", self.x));
            }
            Some(object) if object["metadata"].get("deletionTimestamp").is_some() => {
                self.later(Duration::from_millis(500), Action::Create(number));
            }
            Some(_) => {}
        }
    }

    fn edit(&mut self, number: usize) {
        let name = format!("o{number}");
        let Some(object) = self.env.server.get(EXAMPLES, NAMESPACE, &name) else { return };
        if object["metadata"].get("deletionTimestamp").is_none() {
            self.x += 1;
            self.history.note(format!("user edits {name}: x = {}", self.x));
            let edit = json!({ "spec": { "x": self.x } });
            self.env.edit(EXAMPLES, &format!("{NAMESPACE}/{name}"), edit);
        }
    }

    fn delete(&mut self, number: usize) {
        let name = format!("o{number}");
        let Some(object) = self.env.server.get(EXAMPLES, NAMESPACE, &name) else { return };
        if object["metadata"].get("deletionTimestamp").is_none() {
            self.history.deleted(&object);
            self.env.delete(EXAMPLES, &format!("{NAMESPACE}/{name}"));
        }
    }

    fn natives(&self) -> Natives {
        Natives {
            scripts: self.scripts.clone(),
            dice: self.dice,
            history: self.history.clone(),
            process: self.process,
            clock: self.env.clock,
        }
    }

    fn start(&mut self) {
        if self.running.is_some() {
            return;
        }
        self.process += 1;
        self.history.begin_process(self.process);
        let wire = Wire {
            server: self.env.server.clone(),
            faults: self.faults.clone(),
            history: self.history.clone(),
            process: self.process,
            death: Arc::clone(&self.death),
            is_down: Arc::clone(&self.is_down),
        };
        let handlers = self.natives().handlers(self.code);
        let operator = Operator {
            settings: Arc::new(Mutex::new(settings())),
            connect: testing::connect(wire.client()),
            lifecycle: self.lifecycle,
            ..self.env.operator(Arc::new(self.scripts.clone()), handlers)
        };
        let (failed, history) = (Arc::clone(&self.failed), self.history.clone());
        let report = move |failure: &kopf::reactor::Failure| {
            history.note(format!("the operator fails: {failure}"));
            failed.notify_one();
        };
        self.running = Some(Running::start_reporting(operator, report));
    }

    fn kill(&mut self, how: &str, pause: Duration) {
        if let Some(running) = self.running.take() {
            self.history.end_process(self.process, how);
            drop(running);
        }
        self.later(pause, Action::Start);
    }

    async fn restart(&mut self) {
        if let Some(running) = self.running.take() {
            self.history.note("the operator is asked to stop");
            running.cancel();
            // It may have failed just now.
            drop(running.end().await);
            self.history.end_process(self.process, "has stopped");
        }
        self.later(START_DELAY, Action::Start);
    }

    fn reload(&mut self) {
        self.code += 1;
        let registry = Registry::new(self.natives().handlers(self.code)).expect("unique ids");
        let generation = Generation { number: 0, registry, lifecycle: None };
        let (verdict, _) = oneshot::channel();
        let candidate = Candidate { generation, verdict, withdrawn: CancellationToken::new() };
        let running = self.running.as_ref();
        let is_sent = running.is_some_and(|it| it.reloads.try_send(candidate).is_ok());
        self.history.note(format!("reload {}: {is_sent}", self.code));
    }
}

/// The usual settings, with shorter pauses after errors.
fn settings() -> Settings {
    let mut settings = Settings::default();
    let seconds = |all: &[u64]| all.iter().copied().map(Duration::from_secs).collect();
    settings.networking.error_backoffs = seconds(&[1, 1, 2]);
    settings.networking.request_timeout = Duration::from_secs(30);
    settings.queueing.error_delays = seconds(&[1, 1, 2, 3, 5, 8]);
    settings.execution.default_backoff = Duration::from_secs(3);
    settings
}
