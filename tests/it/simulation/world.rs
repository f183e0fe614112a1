//! One run: a server, an operator that is killed and started again, users, and faults, from one seed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use kopf::{
    logic::handlers::lifecycle::Lifecycle,
    ports::{Clock, Steps},
    testing::{self, BASE, EXAMPLES, Environment, cluster_peering, definition, examples, object},
};
use kopf_apiserver::{
    ApiServer, Fault, FaultEffect,
    controllers::{self, Controllers},
    snapshot::Snapshot,
};
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{self, Instant},
};

use super::{
    actions::{self, Action, FAULTS_END},
    checks,
    dice::Dice,
    faults::{Faults, Fired, Kind, Part},
    history::History,
    levels::{self, Levels},
    mutants::Mutant,
    natives,
    operators::{Operators, Records, START_DELAY},
    scripts::Language,
    wire::NAMESPACE,
};

/// The time that the operator has after the last fault.
const SETTLING: Duration = Duration::from_mins(4);

/// Maximum pause of a reconcile handler after errors.
const BACKOFF_MAX: Duration = Duration::from_mins(5);

/// The interval of watching CRDs again after a 403.
const LOOK_AGAIN: Duration = Duration::from_mins(10);

const NAMESPACES: &str = "namespaces";

const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// The kind of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// One operator, with handlers in Rust.
    Native,
    /// One operator, with scripts.
    Scripts(Language),
    /// Two replicas with a leader.
    Replicas,
    /// One operator whose CRD is deleted and created again.
    Definitions,
    /// One operator on a server whose backups are restored.
    Restored,
    /// One operator whose clock is set forward and back.
    Clocks,
    /// One operator, and a namespace that is deleted and created again.
    Namespaces,
    /// One operator with scripts that create children, and a quota that refuses them for some time.
    Quota(Language),
    /// Two replicas on a machine that freezes for longer than a lease.
    Frozen,
    /// One operator, and two API servers with one address: watches of one of them lag behind. Lists are read from etcd.
    Lagging,
    /// One operator with reconcile handlers and schedules, as closures or scripts.
    Levels(Option<Language>),
    /// Two replicas of it with a leader.
    LevelReplicas,
    /// Two processes without a leader that have only schedules, and clocks that are set.
    Schedules,
}

impl Stage {
    /// Returns whether there are two replicas with a leader.
    pub(super) fn has_leader(self) -> bool {
        matches!(self, Stage::Replicas | Stage::Frozen | Stage::LevelReplicas)
    }

    /// Returns whether there are two processes.
    pub(super) fn has_replicas(self) -> bool {
        self.has_leader() || self == Stage::Schedules
    }

    /// Returns whether the handlers are those of `levels`.
    pub(super) fn has_levels(self) -> bool {
        self.has_children() || self == Stage::Schedules
    }

    /// Returns whether objects have children.
    pub(super) fn has_children(self) -> bool {
        matches!(self, Stage::Levels(_) | Stage::LevelReplicas)
    }

    fn has_steps(self) -> bool {
        matches!(self, Stage::Clocks | Stage::Schedules)
    }

    /// Returns the language of the scripts, if there are any.
    pub(super) fn language(self) -> Option<Language> {
        match self {
            Stage::Scripts(language) | Stage::Quota(language) => Some(language),
            Stage::Levels(language) => language,
            _ => None,
        }
    }
}

/// The input of a run.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) stage: Stage,
    pub(super) seed: u64,
    /// Only these faults and actions.
    pub(super) only: Option<Arc<BTreeSet<Part>>>,
    /// A bug that the operator has.
    pub(super) mutant: Option<Mutant>,
    /// Whether the history has the log of the operator.
    pub(super) is_verbose: bool,
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) broken: Vec<String>,
    pub(super) fired: Vec<Fired>,
    /// The numbers of the actions.
    pub(super) actions: Vec<u64>,
    pub(super) lines: Vec<String>,
    pub(super) objects: usize,
}

/// A run in progress.
pub(super) struct World {
    pub(super) env: Environment,
    pub(super) history: History,
    pub(super) operators: Operators,
    pub(super) stage: Stage,
    /// The history of reconcile handlers and schedules, if there are any.
    pub(super) levels: Option<Levels>,
    dice: Dice,
    faults: Faults,
    /// The last value of `spec.x` of any object.
    x: u64,
    /// Sets the clock of the operator, in worlds where it changes.
    steps: Option<Steps>,
    /// The current offset of this clock, in seconds; positive if it is ahead.
    ahead: i64,
    /// The maximum offset at the start of a process, in seconds.
    ahead_max: i64,
    /// The maximum offset at any time, in seconds.
    ahead_ever: i64,
    /// A backup of the server, and its time.
    backup: Option<(Duration, Snapshot)>,
    timeline: BTreeMap<(Instant, u64), Action>,
    later: u64,
    _controllers: JoinSet<()>,
}

/// Runs a plan to its end.
pub(super) async fn run(plan: &Plan) -> Outcome {
    let (mut world, actions) = World::new(plan);
    let (history, is_verbose) = (world.history.clone(), plan.is_verbose);
    let operators = world.operators.reporter();
    // Scripts report their calls in the log.
    let level = if is_verbose { tracing::Level::DEBUG } else { tracing::Level::INFO };
    let has_log = is_verbose || plan.stage.language().is_some();
    let _capturing = has_log.then(|| {
        testing::capture_log("kopf", level, move |line| {
            if is_verbose {
                history.note(format!("{} {}", line.python_level(), line.message));
            }
            operators.hear(&line);
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
        objects: world.history.objects(),
    }
}

fn crd(dice: Dice) -> serde_json::Value {
    let mut crd = definition(&examples());
    if dice.of("status", 0).bool() {
        crd["spec"]["versions"][0]["subresources"] = json!({ "status": {} });
    }
    crd
}

fn environment(dice: Dice, stage: Stage) -> (Environment, Option<Steps>) {
    let builder = ApiServer::builder().resource(cluster_peering("kopf.dev"));
    let builder = builder.cluster(stage == Stage::Namespaces);
    let base = BASE.parse().expect("a timestamp");
    let (clock, steps) = if stage.has_steps() {
        let (clock, steps) = Clock::stepping(base);
        (clock, Some(steps))
    } else {
        (Clock::starting_at(base), None)
    };
    let env = Environment::with_clock(builder, clock);
    if stage == Stage::Namespaces {
        env.create(namespace());
    }
    env.create(crd(dice));
    if stage.has_children() {
        env.create(levels::tune(0));
    }
    // Watches may lag behind lists and responses.
    let mut random = dice.of("latency", 0);
    if random.u32(..3) == 0 {
        env.server.set_latency(Duration::from_millis(random.u64(10..2000)));
    }
    (env, steps)
}

fn namespace() -> serde_json::Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } })
}

impl World {
    /// Creates a world. Also returns the numbers of the actions.
    fn new(plan: &Plan) -> (Self, Vec<u64>) {
        let dice = Dice::new(plan.seed);
        // The random decisions of the operator itself.
        fastrand::seed(plan.seed);
        let start = Instant::now();
        let mut timeline = BTreeMap::from([((start, 0), Action::Start(0))]);
        if plan.stage.has_replicas() {
            timeline.insert((start + START_DELAY, 0), Action::Start(1));
        }
        let mut numbers = Vec::new();
        for (number, (at, action)) in (1..).zip(actions::actions(dice, plan.stage)) {
            let only = plan.only.as_ref();
            if only.is_none_or(|it| it.contains(&Part::Action(number))) {
                timeline.insert((start + at, number), action);
                numbers.push(number);
            }
        }
        let is_orderly = dice.of("lifecycle", 0).u32(..3) > 0;
        let lifecycle = if is_orderly { Lifecycle::AllAtOnce } else { Lifecycle::Asap };
        let (env, steps) = environment(dice, plan.stage);
        let history = History::new(is_orderly);
        let faults = Faults::new(dice, plan.only.clone());
        let levels = plan.stage.has_levels().then(|| Levels::new(&history, &env.server));
        let records = Records { history: &history, faults: &faults, levels: levels.as_ref() };
        let operators = Operators::new(plan, &env, &records, lifecycle);
        let mut tasks = JoinSet::new();
        let controllers = Controllers {
            definitions: plan.stage == Stage::Definitions,
            namespaces: plan.stage == Stage::Namespaces,
            garbage: plan.stage.has_children(),
            ..Controllers::default()
        };
        if controllers != Controllers::default() {
            tasks.spawn(controllers::run(env.server.clone(), controllers));
        }
        let world = World {
            env,
            history,
            operators,
            stage: plan.stage,
            levels,
            dice,
            faults,
            x: 0,
            steps,
            ahead: 0,
            ahead_max: 0,
            ahead_ever: 0,
            backup: None,
            timeline,
            later: 1000,
            _controllers: tasks,
        };
        (world, numbers)
    }

    /// Runs the world until this time.
    pub(super) async fn play(&mut self, end: Instant) {
        let ends = self.operators.ends();
        loop {
            let next = self.timeline.first_key_value().map_or(end, |((at, _), _)| *at).min(end);
            tokio::select! {
                biased; // a process that is dead does nothing more
                (process, how) = ends.next() => {
                    if let Some(slot) = self.operators.kill(process, how) {
                        self.later(START_DELAY, Action::Start(slot));
                    }
                }
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
        // A process keeps its own time, so a pause that it has recorded ends when the clock of the next process reaches its end.
        let set_back = u64::try_from(self.ahead_max - self.ahead).unwrap_or_default();
        // Slots are not repeated: after the clock was set back, a schedule waits for the next one that it has not run.
        let unscheduled = self.ahead_ever.max(0) - self.ahead.min(0);
        let unscheduled = u64::try_from(unscheduled).unwrap_or_default();
        let looked_again = if is_denied { LOOK_AGAIN } else { Duration::ZERO };
        let more = match self.stage {
            stage if stage.has_children() => BACKOFF_MAX,
            Stage::Schedules => Duration::from_secs(unscheduled),
            _ => Duration::from_secs(set_back),
        };
        SETTLING + looked_again + more
    }

    /// Ends actions that last for some time.
    fn mend(&mut self) {
        self.operators.is_down.store(false, Ordering::Relaxed);
        self.operators.reconnect_all();
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
            Action::Swap(number) => self.swap(number),
            Action::BackUp => {
                self.history.note("BackUp");
                self.backup = Some((self.env.start.elapsed(), self.env.server.export()));
            }
            Action::Restore => self.restore(),
            Action::DropNamespace => self.drop_namespace(),
            Action::MakeNamespace => self.make_namespace(),
            Action::Freeze(pause) => {
                self.history.note(format!("{action:?}"));
                time::advance(pause).await;
            }
            Action::DropDefinition => self.drop_definition(),
            Action::Define => self.define(),
            Action::Start(slot) => {
                self.ahead_max = self.ahead_max.max(self.ahead);
                self.operators.start(slot).await;
            }
            Action::Reload => self.operators.reload().await,
            Action::Restart(slot) => {
                let slot = self.operators.restart(slot).await;
                self.later(START_DELAY, Action::Start(slot));
            }
            Action::Kill(slot, pause) => {
                let slot = self.operators.kill_slot(slot, "is killed");
                self.later(pause, Action::Start(slot));
            }
            Action::EditChild(..)
            | Action::DeleteChild(..)
            | Action::Occupy(..)
            | Action::Tune(_) => {
                self.levels.iter().for_each(|it| it.act(&action));
            }
            other => self.disturb(&other),
        }
    }

    fn disturb(&mut self, action: &Action) {
        self.history.note(format!("{action:?}"));
        let server = &self.env.server;
        match action {
            Action::Compact => {
                server.compact();
                server.close_watches();
            }
            Action::Outage(pause) => {
                self.operators.is_down.store(true, Ordering::Relaxed);
                server.close_watches();
                self.later(*pause, Action::Connect);
            }
            Action::Connect => self.operators.is_down.store(false, Ordering::Relaxed),
            Action::Hide(pause) => {
                let hidden = FaultEffect::HiddenGroup("kopf.dev".into());
                server.fault(Fault::always(hidden).on("GET", "/apis"));
                server.close_watches();
                self.later(*pause, Action::Show);
            }
            Action::Show | Action::NoQuota => server.clear_faults(),
            Action::SetClock(seconds) => {
                self.ahead = *seconds;
                self.ahead_ever = self.ahead_ever.max(*seconds);
                self.steps.iter().for_each(|it| it.set_ahead(*seconds));
            }
            Action::Quota(pause) => {
                let refuse = FaultEffect::Refuse { code: 403, retry_after_seconds: None };
                server.fault(Fault::always(refuse.clone()).on("POST", "/configmaps"));
                server.fault(Fault::always(refuse).on("PATCH", "/kopfexamples").chance(0.5));
                self.later(*pause, Action::NoQuota);
            }
            Action::CutOff(slot, pause) => {
                self.operators.cut_off(*slot, true);
                self.later(*pause, Action::Reconnect(*slot));
            }
            Action::Reconnect(slot) => self.operators.cut_off(*slot, false),
            _ => server.close_watches(),
        }
    }

    /// Returns whether objects can be created.
    fn is_defined(&self) -> bool {
        self.stays(DEFINITIONS, EXAMPLES)
            && (self.stage != Stage::Namespaces || self.stays(NAMESPACES, NAMESPACE))
    }

    /// Returns whether a cluster-scoped object exists, and is not being deleted.
    fn stays(&self, resource: &str, name: &str) -> bool {
        let found = self.env.server.get(resource, "", name);
        found.is_some_and(|it| it["metadata"].get("deletionTimestamp").is_none())
    }

    /// Creates an object as soon as there is none of this name.
    fn create(&mut self, number: usize) {
        let name = format!("o{number}");
        let present = self.env.server.get(EXAMPLES, NAMESPACE, &name);
        let is_going =
            present.as_ref().is_some_and(|it| it["metadata"].get("deletionTimestamp").is_some());
        if is_going || !self.is_defined() {
            self.later(Duration::from_millis(500), Action::Create(number));
        } else if present.is_none() {
            self.x += 1;
            let uid = format!("{name}.{}", self.x);
            let mut body = object(NAMESPACE, &name);
            body["metadata"]["uid"] = json!(uid);
            body["spec"] = natives::spec(self.dice, &uid, self.x);
            let failures = body["spec"]["failures"].clone();
            self.env.create(body);
            self.history.created(&uid, &failures);
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

    /// Removes an object although it has finalizers, and creates another one, without an active watch.
    fn swap(&mut self, number: usize) {
        let name = format!("o{number}");
        if let Some(object) = self.env.server.get(EXAMPLES, NAMESPACE, &name) {
            self.env.server.remove(EXAMPLES, NAMESPACE, &name).expect("it is there");
            self.history.removed(&object);
            self.levels.iter().for_each(|it| it.removed(&object));
            self.create(number);
            self.disturb(&Action::Compact);
        }
    }

    /// Deletes the CRD, and with it all objects.
    fn drop_definition(&mut self) {
        if self.stage != Stage::Definitions || !self.is_defined() {
            return;
        }
        self.history.note("user deletes the CRD");
        self.delete_all();
        self.env.server.delete(DEFINITIONS, "", EXAMPLES).expect("it is there");
        self.later(Duration::from_secs(1), Action::Define);
    }

    /// Records that all objects are about to be deleted.
    fn delete_all(&self) {
        for object in self.env.server.list(EXAMPLES) {
            if object["metadata"].get("deletionTimestamp").is_none() {
                self.history.deleted(&object);
            }
        }
    }

    /// Deletes the namespace, and with it all objects.
    fn drop_namespace(&mut self) {
        if self.is_defined() {
            self.history.note("user deletes the namespace");
            self.delete_all();
            self.env.delete(NAMESPACES, NAMESPACE);
            self.later(Duration::from_secs(1), Action::MakeNamespace);
        }
    }

    /// Creates the namespace as soon as there is none.
    fn make_namespace(&mut self) {
        if self.env.server.get(NAMESPACES, "", NAMESPACE).is_some() {
            return self.later(Duration::from_secs(1), Action::MakeNamespace);
        }
        self.history.note("user creates the namespace");
        self.env.create(namespace());
    }

    /// Restores the backup, if there is one.
    fn restore(&self) {
        let Some((at, snapshot)) = self.backup.clone() else { return };
        self.env.server.roll_back(snapshot);
        self.history.restore(at, &self.env.server.list(EXAMPLES));
    }

    /// Creates the CRD as soon as there is none.
    fn define(&mut self) {
        if self.env.server.get(DEFINITIONS, "", EXAMPLES).is_some() {
            return self.later(Duration::from_secs(1), Action::Define);
        }
        self.history.note("user creates the CRD");
        self.env.create(crd(self.dice));
    }
}
