//! Plays a scenario on a paused clock: an API server, an operator, and a user, in one process and no time.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;

use kopf::{
    logic::{
        declare::declare, function::Function, handler::Category, lifecycle::Lifecycle,
        outcome::Ended, patch::Transformation, registry::Registry, stopping::StopReason,
    },
    ports::{Cause, Clock, Invocation, ObjectDetail},
    reactor::{self, Operator},
    settings::{DiffBaseStorage, ProgressStorage, Settings},
    testing::NativeScripts,
};
use serde_json::{Map, Value, json};
use tokio::{
    task::JoinSet,
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;

use super::{
    scenario::{Action, Scenario, seconds},
    transcript::{Transcript, diff},
};
use crate::cluster::record_logs;
use crate::vectors::{
    catalogue,
    state::{self, patches},
};

/// The wall clock at virtual time zero.
const BASE: &str = "2026-01-01T00:00:00Z";
/// The prefix of the custom storages.
const MYOP: &str = "my-op.example.com";

/// Plays it to the end.
pub(crate) fn play(scenario: &Scenario) -> Transcript {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(async { Stage::new(scenario).play(scenario).await })
}

/// The cluster, the handlers and the clock of a scenario; operators come and go on it.
pub(super) struct Stage {
    server: super::server::Server,
    clock: Clock,
    start: Instant,
    scripts: NativeScripts,
    registry: Registry,
    calls: Arc<Mutex<Vec<Value>>>,
}

/// One running operator.
pub(super) struct Running {
    stop: CancellationToken,
    task: JoinSet<()>,
}

impl Stage {
    /// Sets it up; no operator runs yet.
    pub(super) fn new(scenario: &Scenario) -> Self {
        let clock = Clock::starting_at(BASE.parse().expect("a timestamp"));
        let start = Instant::now();
        let scripts = NativeScripts::default();
        let calls = Arc::new(Mutex::new(Vec::new()));
        let handlers = scenario.handlers.iter().map(|declaration| {
            let actor = Actor::new(declaration, &scripts, &calls, start);
            let mut declared = catalogue::declaration(&named(declaration));
            let name = Arc::clone(&declared.function.name);
            declared.function = scripts.handler(&name, move |it| actor.clone().act(it));
            declare(declared).expect("a declaration")
        });
        let registry = Registry::new(handlers.collect()).expect("ids are unique");
        Stage {
            server: super::server::Server::new(scenario, clock),
            clock,
            start,
            scripts,
            registry,
            calls,
        }
    }

    async fn play(self, scenario: &Scenario) -> Transcript {
        let (log, _guard) = record_logs("kopf.objects");
        scenario.objects.iter().for_each(|it| self.server.create(it));
        let raise = || self.raise(scenario, self.server.client());
        let mut running = Some(raise());
        for (at, action) in &scenario.actions {
            self.until(*at).await;
            match action {
                Action::Stop => lower(running.take()).await,
                Action::Start => running = Some(raise()),
                Action::Create(_) | Action::Edit(..) | Action::Delete(_) => self.act(action),
            }
        }
        self.until(scenario.until).await;
        let mut transcript = self.transcript();
        transcript.log = log.lines().into_iter().map(|(_, level, text)| [level, text]).collect();
        lower(running.take()).await;
        transcript
    }

    /// Waits for a moment of the scenario.
    pub(super) async fn until(&self, at: Duration) {
        time::sleep_until(self.start + at).await;
    }

    /// Lets a user do something to an object.
    pub(super) fn act(&self, action: &Action) {
        match action {
            Action::Create(body) => self.server.create(body),
            Action::Edit(name, merge) => self.server.edit(name, merge),
            Action::Delete(name) => self.server.delete(name),
            Action::Stop | Action::Start => panic!("operators are not of the cluster"),
        }
    }

    /// What was seen so far.
    pub(super) fn transcript(&self) -> Transcript {
        let handlers = self.registry.handlers().iter();
        let background = handlers.filter(|it| it.kind.category() == Category::Spawning);
        Transcript {
            background: background.map(|it| it.id.to_string()).collect(),
            calls: self.calls.lock().clone(),
            patches: self.server.patches(self.start),
            objects: self.server.objects(),
            log: Vec::new(),
        }
    }

    /// The cluster itself.
    pub(super) fn server(&self) -> &super::server::Server {
        &self.server
    }

    /// Starts an operator. Dropping it is a `kill -9`.
    pub(super) fn raise(&self, scenario: &Scenario, client: kube::Client) -> Running {
        let stop = CancellationToken::new();
        let operator = Operator {
            settings: Arc::new(Mutex::new(settings(scenario))),
            clock: self.clock,
            lifecycle: lifecycle(&scenario.lifecycle),
            ..kopf::testing::operator(Arc::new(self.scripts.clone()), self.registry.clone(), client)
        };
        let mut task = JoinSet::new();
        let token = stop.clone();
        task.spawn(async move { reactor::run(operator, token).await.expect("the operator runs") });
        Running { stop, task }
    }
}

/// Ends an operator, and waits until it has ended.
async fn lower(running: Option<Running>) {
    if let Some(mut running) = running {
        running.stop.cancel();
        while running.task.join_next().await.is_some() {}
    }
}

fn settings(scenario: &Scenario) -> Settings {
    let mut settings = Settings::default();
    settings.networking.error_backoffs = Vec::new();
    // Closures exit in the turns of the scheduler that Kopf gives them; nobody needs time for it.
    settings.background.instant_exit_timeout = None;
    for (name, value) in &scenario.settings {
        let short = value.as_str().unwrap_or_default();
        match name.as_str() {
            "persistence.progress_storage" => {
                settings.persistence.progress_storage = progress_storage(short);
            }
            "persistence.diffbase_storage" => {
                settings.persistence.diffbase_storage = diffbase_storage(short);
            }
            other => panic!("unknown setting {other}"),
        }
    }
    settings
}

fn lifecycle(name: &str) -> Lifecycle {
    match name {
        "asap" => Lifecycle::Asap,
        "all_at_once" => Lifecycle::AllAtOnce,
        "one_by_one" => Lifecycle::OneByOne,
        other => panic!("unknown lifecycle {other}"),
    }
}

/// A handler that does what its declaration says, another thing each time; the last is repeated.
#[derive(Clone)]
struct Actor {
    behaviours: Arc<Vec<Value>>,
    scripts: NativeScripts,
    calls: Arc<Mutex<Vec<Value>>>,
    counts: Arc<Mutex<BTreeMap<Arc<str>, usize>>>,
    start: Instant,
}

impl Actor {
    fn new(
        declaration: &Value,
        scripts: &NativeScripts,
        calls: &Arc<Mutex<Vec<Value>>>,
        start: Instant,
    ) -> Self {
        let behaviours = declaration["do"].as_array().cloned().unwrap_or_default();
        Actor {
            behaviours: Arc::new(behaviours),
            scripts: scripts.clone(),
            calls: Arc::clone(calls),
            counts: Arc::default(),
            start,
        }
    }

    fn act(self, invocation: Arc<Invocation>) -> futures::future::BoxFuture<'static, Ended> {
        Box::pin(async move {
            let behaviour = self.next(&invocation.handler.id);
            let call = self.record(&invocation, &behaviour);
            if behaviour.get("sleep").is_some() {
                let mut cancellation = Cancellation(Some((&self, call)));
                time::sleep(seconds(&behaviour["sleep"])).await;
                cancellation.0 = None;
            }
            if behaviour["wait_stopped"] == true {
                self.wait_stopped(&invocation, call).await;
            }
            self.declare_children(&invocation, &behaviour);
            self.change(&invocation, &behaviour);
            catalogue::ended(&behaviour)
        })
    }

    /// Sub-handlers act like handlers, and their calls are counted and noted together with those of others.
    fn declare_children(&self, invocation: &Invocation, behaviour: &Value) {
        for declaration in behaviour["sub"].as_array().into_iter().flatten() {
            let behaviours = declaration["do"].as_array().cloned().unwrap_or_default();
            let actor = Actor { behaviours: Arc::new(behaviours), ..self.clone() };
            let mut named = declaration.clone();
            named["on"] = "subhandler".into();
            named["fn"] = declaration["id"].clone();
            let mut declared = catalogue::declaration(&named);
            let name = Arc::clone(&declared.function.name);
            declared.function = self.scripts.handler(&name, move |it| actor.clone().act(it));
            let children = invocation.children.as_ref().expect("a change handler");
            children.declare(declared).expect("a declaration");
        }
    }

    async fn wait_stopped(&self, invocation: &Invocation, call: usize) {
        let Cause::Object(cause) = &invocation.cause else { return };
        let ObjectDetail::Background(background) = &cause.detail else { return };
        background.stopped.wait().await;
        let reasons = background.stopped.reasons().iter().map(StopReason::as_str);
        self.note(call, "stopped_reason", reasons.collect());
        self.note(call, "stopped_at", self.start.elapsed().as_secs_f64().into());
    }

    /// Adds to a call what is known of it later.
    fn note(&self, call: usize, key: &str, value: Value) {
        self.calls.lock()[call][key] = value;
    }

    fn next(&self, id: &Arc<str>) -> Value {
        let mut counts = self.counts.lock();
        let count = counts.entry(Arc::clone(id)).or_default();
        *count += 1;
        let index = (*count - 1).min(self.behaviours.len().saturating_sub(1));
        self.behaviours.get(index).cloned().unwrap_or_default()
    }

    fn change(&self, invocation: &Invocation, behaviour: &Value) {
        let Cause::Object(cause) = &invocation.cause else { return };
        let mut patch = cause.patch.lock();
        if let Some(merge) = behaviour.get("patch") {
            merge_into(&mut patch.merge, merge);
        }
        for declared in behaviour["fns"].as_array().into_iter().flatten() {
            let declared = declared.clone();
            let function: Function = self.scripts.transformation("fn", move |mut body| {
                patches::call(&mut body, &declared);
                body
            });
            patch.transformations.push(Transformation::Scripted(function));
        }
        if let Some(memo) = behaviour["memo"].as_object() {
            invocation.memo.lock().extend(memo.clone());
        }
    }

    /// Writes a call down; gives its number.
    fn record(&self, invocation: &Invocation, behaviour: &Value) -> usize {
        let attempt = invocation.attempt.expect("handlers have attempts");
        let mut call = json!({
            "t": self.start.elapsed().as_secs_f64(),
            "call": &*invocation.handler.id,
            "retry": attempt.retry,
            "runtime": attempt.runtime.as_secs_f64(),
            "memo": *invocation.memo.lock(),
            "param": invocation.handler.param,
            "index": indexes(invocation),
        });
        if let Cause::Object(cause) = &invocation.cause {
            let object = cause.current();
            call["body"] = match behaviour["show_body"].as_str() {
                Some(path) => {
                    path.split('.').fold(Value::clone(object.body()), |it, key| it[key].clone())
                }
                None => Value::clone(object.body()),
            };
            match &cause.detail {
                ObjectDetail::Watch(kind) => {
                    call["type"] = kind.map(kopf::logic::reason::EventType::as_str).into();
                }
                ObjectDetail::Change(change) => {
                    call["reason"] = change.reason.as_str().into();
                    call["old"] = change.old.as_deref().cloned().unwrap_or_default();
                    call["new"] = change.new.as_deref().cloned().unwrap_or_default();
                    call["diff"] = diff(&change.diff);
                }
                ObjectDetail::Background(_) | ObjectDetail::Index => {}
            }
        }
        let mut calls = self.calls.lock();
        calls.push(call);
        calls.len() - 1
    }
}

/// Notes the moment of a cancellation, if there is one.
struct Cancellation<'a>(Option<(&'a Actor, usize)>);

impl Drop for Cancellation<'_> {
    fn drop(&mut self) {
        if let Some((actor, call)) = self.0 {
            actor.note(call, "cancelled_at", actor.start.elapsed().as_secs_f64().into());
        }
    }
}

/// All indexes as the vectors write them.
fn indexes(invocation: &Invocation) -> Value {
    let index = |it: &kopf::ports::Index| {
        let mut stores = Vec::new();
        for (key, values) in it.keys().filter_map(|key| Some((key.to_value(), it.get(&key)?))) {
            let mut values = values.iter().map(|it| Value::clone(it)).collect::<Vec<_>>();
            values.sort_by_key(Value::to_string);
            stores.push(json!([key, values]));
        }
        stores.sort_by_key(|it| it[0].to_string());
        (it.id().to_string(), Value::Array(stores))
    };
    invocation.facilities.indexes.all().map(index).collect::<Map<_, _>>().into()
}

/// A declaration without a function name is of `create_fn`, `update_fn`, ….
fn named(declaration: &Value) -> Value {
    let mut named = declaration.clone();
    if named.get("fn").is_none() {
        let kind = named["on"].as_str().unwrap_or_default();
        named["fn"] = format!("{kind}_fn").into();
    }
    named
}

fn merge_into(target: &mut Map<String, Value>, source: &Value) {
    for (key, value) in source.as_object().into_iter().flatten() {
        match (target.get_mut(key), value) {
            (Some(Value::Object(present)), Value::Object(_)) => merge_into(present, value),
            _ => {
                target.insert(key.clone(), value.clone());
            }
        }
    }
}

/// The storages of the vectors by their short names.
fn progress_storage(short: &str) -> ProgressStorage {
    state::progress_storage(&match short {
        "myop" => json!({ "class": "AnnotationsProgressStorage", "prefix": MYOP }),
        "status" => json!({ "class": "StatusProgressStorage" }),
        "multi" => json!({ "class": "MultiProgressStorage", "storages": [
            { "class": "AnnotationsProgressStorage", "prefix": MYOP },
            { "class": "StatusProgressStorage" },
        ] }),
        "verbose" => json!({ "class": "AnnotationsProgressStorage", "verbose": true }),
        other => panic!("unknown storage {other}"),
    })
}

fn diffbase_storage(short: &str) -> DiffBaseStorage {
    state::diffbase_storage(&match short {
        "myop" => json!({ "class": "AnnotationsDiffBaseStorage", "prefix": MYOP }),
        "status" => json!({ "class": "StatusDiffBaseStorage" }),
        "multi" => json!({ "class": "MultiDiffBaseStorage", "storages": [
            { "class": "AnnotationsDiffBaseStorage" },
            { "class": "StatusDiffBaseStorage", "field": "status.diff-base" },
        ] }),
        other => panic!("unknown storage {other}"),
    })
}
