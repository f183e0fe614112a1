//! Runs a scenario on the paused clock: an API server, an operator, and a user, in one process and without real time.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

use kopf::{
    call::{Cause, Invocation, ObjectDetail},
    logic::{
        background::stopping::StopReason,
        change::{patch::Transformation, registry::Registry},
        configure,
        handlers::{
            declare::declare,
            function::Function,
            handler::{Category, Kind},
            lifecycle::Lifecycle,
            outcome::CallEnd,
        },
    },
    reactor::Operator,
    settings::{DiffBaseStorage, ProgressStorage, Settings},
    testing::{
        self, EXAMPLES, Environment, LogCapture, NativeScripts, OnDrop, RunningOperator, run_paused,
    },
};
use kopf_apiserver::ApiServer;
use serde_json::{Map, Value, json};
use tokio::time::{self, Instant};

use super::{
    scenario::{Action, NAMESPACE, Scenario, seconds},
    transcript::{Transcript, diff},
};
use crate::vectors::{
    catalogue,
    state::{self, patches},
    without_uid,
};

/// The prefix of the custom storages.
const MYOP: &str = "my-op.example.com";

/// Runs a scenario to the end.
pub(crate) fn run(scenario: &Scenario) -> Transcript {
    run_paused(async { ScenarioRun::new(scenario).run(scenario).await })
}

/// The cluster and the handlers of a scenario; operators start and stop on it.
pub(super) struct ScenarioRun {
    pub(super) env: Environment,
    scripts: NativeScripts,
    registry: Registry,
    calls: Arc<Mutex<Vec<Value>>>,
}

impl ScenarioRun {
    /// Sets it up; no operator runs yet.
    pub(super) fn new(scenario: &Scenario) -> Self {
        let env = environment(scenario);
        let scripts = NativeScripts::default();
        let calls = Arc::new(Mutex::new(Vec::new()));
        let memo = scenario.memo.clone();
        let remember = scripts.handler("memo", move |invocation| {
            invocation.memo.lock().extend(memo.clone());
            Box::pin(async { CallEnd::Returned(None) })
        });
        let startup = (!scenario.memo.is_empty())
            .then(|| testing::declared(Kind::Startup, Vec::new(), Vec::new(), remember));
        let handlers = scenario.handlers.iter().map(|declaration| {
            let actor = Actor::new(declaration, &scripts, &calls, &env);
            let mut declared = catalogue::declaration(&named(declaration));
            let name = Arc::clone(&declared.function.name);
            declared.function = scripts.handler(&name, move |it| actor.clone().act(it));
            declare(declared).expect("a declaration")
        });
        let registry = Registry::new(startup.into_iter().chain(handlers).collect());
        let registry = registry.expect("ids are unique");
        ScenarioRun { env, scripts, registry, calls }
    }

    async fn run(self, scenario: &Scenario) -> Transcript {
        let log = LogCapture::of("kopf.objects");
        scenario.objects.iter().for_each(|it| self.create(it));
        let start = || self.start(scenario, testing::client(&self.env.server));
        let mut running = Some(start());
        for (at, action) in &scenario.actions {
            self.env.until_moment(*at).await;
            match action {
                Action::Stop => stop(running.take()).await,
                Action::Start => running = Some(start()),
                Action::Create(_) | Action::Edit(..) | Action::Delete(_) => self.act(action),
            }
        }
        self.env.until_moment(scenario.until).await;
        let mut transcript = self.transcript();
        let lines = log.lines().into_iter();
        transcript.log = lines.map(|it| [it.python_level().to_owned(), it.message]).collect();
        stop(running.take()).await;
        transcript
    }

    /// Does what the users of a scenario do, to its end; `before` is called with each action first.
    pub(super) async fn act_all(&self, scenario: &Scenario, mut before: impl FnMut(&Action)) {
        for (at, action) in &scenario.actions {
            self.env.until_moment(*at).await;
            before(action);
            self.act(action);
        }
        self.env.until_moment(scenario.until).await;
    }

    /// Acts on an object as a user; does nothing if it does not exist any more.
    fn act(&self, action: &Action) {
        let server = &self.env.server;
        match action {
            Action::Create(body) => self.create(body),
            Action::Edit(name, merge) => {
                drop(server.merge(EXAMPLES, NAMESPACE, name, merge.clone()));
            }
            Action::Delete(name) => drop(server.delete(EXAMPLES, NAMESPACE, name)),
            Action::Stop | Action::Start => panic!("operators are not of the cluster"),
        }
    }

    fn create(&self, body: &Value) {
        self.env.server.create(EXAMPLES, body.clone()).expect("the object is new");
    }

    /// Returns what was seen so far.
    pub(super) fn transcript(&self) -> Transcript {
        let handlers = self.registry.handlers().iter();
        let background = handlers.filter(|it| it.kind.category() == Category::Spawning);
        Transcript {
            background: background.map(|it| it.id.to_string()).collect(),
            calls: self.calls.lock().clone(),
            patches: patch_requests(&self.env),
            objects: self.env.server.list(EXAMPLES),
            log: Vec::new(),
        }
    }

    /// Starts an operator.
    pub(super) fn start(&self, scenario: &Scenario, client: kube::Client) -> RunningOperator {
        RunningOperator::start(Operator {
            settings: Arc::new(Mutex::new(settings(scenario))),
            clock: self.env.clock,
            lifecycle: lifecycle(&scenario.lifecycle),
            ..testing::operator(Arc::new(self.scripts.clone()), self.registry.clone(), client)
        })
    }
}

async fn stop(running: Option<RunningOperator>) {
    if let Some(running) = running {
        running.stop().await;
    }
}

/// Returns the server of the scenario, with the one resource of the vectors.
fn environment(scenario: &Scenario) -> Environment {
    let mut resource = testing::examples();
    resource.short_names = vec!["kex".into(), "kexes".into()];
    resource.categories = vec!["all".into()];
    resource.status_subresource = scenario.status_subresource;
    let server = ApiServer::builder().stamps(false).bookmarks(None).resource(resource);
    let env = Environment::new(server);
    env.server.set_latency(scenario.latency);
    env.server.inject(scenario.inject.iter().copied());
    env
}

/// Returns the PATCH requests so far, in the form of the vectors.
fn patch_requests(env: &Environment) -> Vec<Value> {
    let patches = env.requests("PATCH", "").into_iter().map(|it| {
        let is_status = it.path.ends_with("/status");
        let mut patch = json!({
            "t": it.at.duration_since(env.start).as_secs_f64(),
            "subresource": is_status.then_some("status"),
            "content_type": it.content_type,
            "payload": without_uid(it.json()),
            "status": it.status,
        });
        if let Some(version) = &it.version {
            patch["response_rv"] = version.as_str().into();
        }
        patch
    });
    patches.collect()
}

fn settings(scenario: &Scenario) -> Settings {
    let mut settings = Settings::default();
    settings.networking.error_backoffs = Vec::new();
    // Closures exit within the scheduler turns that Kopf grants them, so no timeout is needed.
    settings.background.instant_exit_timeout = None;
    // Kopf does not record them.
    settings.persistence.remember_failures = false;
    settings.posting.failures = false;
    for (name, value) in &scenario.settings {
        let short = value.as_str().unwrap_or_default();
        match name.as_str() {
            "persistence.progress_storage" => {
                settings.persistence.progress_storage = progress_storage(short);
            }
            "persistence.diffbase_storage" => {
                settings.persistence.diffbase_storage = diffbase_storage(short);
            }
            other => {
                let (group, name) = other.split_once('.').expect("a group and a name");
                let (setting, _) = configure::find(group, name).expect("a setting");
                setting.set(&mut settings, value).expect("a value");
            }
        }
    }
    settings
}

fn lifecycle(name: &str) -> Lifecycle {
    match name {
        "asap" => Lifecycle::Asap,
        "all_at_once" => Lifecycle::AllAtOnce,
        "one_by_one" => Lifecycle::OneByOne,
        "shuffled" => Lifecycle::Shuffled,
        "randomized" => Lifecycle::Randomized,
        other => panic!("unknown lifecycle {other}"),
    }
}

/// A handler that acts as its declaration says, differently on each call; the last action is repeated.
#[derive(Clone)]
struct Actor {
    behaviours: Arc<Vec<Value>>,
    scripts: NativeScripts,
    calls: Arc<Mutex<Vec<Value>>>,
    counts: Arc<Mutex<BTreeMap<Arc<str>, usize>>>,
    start: Instant,
    /// The server on which handlers edit their objects directly.
    server: ApiServer,
}

impl Actor {
    fn new(
        declaration: &Value,
        scripts: &NativeScripts,
        calls: &Arc<Mutex<Vec<Value>>>,
        env: &Environment,
    ) -> Self {
        let behaviours = declaration["do"].as_array().cloned().unwrap_or_default();
        Actor {
            behaviours: Arc::new(behaviours),
            scripts: scripts.clone(),
            calls: Arc::clone(calls),
            counts: Arc::default(),
            start: env.start,
            server: env.server.clone(),
        }
    }

    fn act(self, invocation: Arc<Invocation>) -> futures::future::BoxFuture<'static, CallEnd> {
        Box::pin(async move {
            let behaviour = self.next(&invocation.handler.id);
            let call = self.record(&invocation, &behaviour);
            if behaviour.get("sleep").is_some() {
                let cancelled = OnDrop::new(|| self.note_time(call, "cancelled_at"));
                time::sleep(seconds(&behaviour["sleep"])).await;
                cancelled.disarm();
            }
            if behaviour["wait_stopped"] == true {
                self.wait_stopped(&invocation, call).await;
            }
            self.declare_children(&invocation, &behaviour);
            self.change(&invocation, &behaviour);
            self.edit(&invocation, &behaviour);
            catalogue::ended(&behaviour)
        })
    }

    /// Declares sub-handlers, which act like handlers; their calls are counted and recorded together with those of others.
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
        self.note_time(call, "stopped_at");
    }

    /// Adds something to a call that is known only later.
    fn note(&self, call: usize, key: &str, value: Value) {
        self.calls.lock()[call][key] = value;
    }

    fn note_time(&self, call: usize, key: &str) {
        self.note(call, key, self.start.elapsed().as_secs_f64().into());
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

    /// Edits the object as a user would.
    fn edit(&self, invocation: &Invocation, behaviour: &Value) {
        let Cause::Object(cause) = &invocation.cause else { return };
        let Some(merge) = behaviour.get("edit").filter(|it| !it.is_null()) else { return };
        let object = cause.current();
        let name = object.header().name.as_deref().unwrap_or_default();
        drop(self.server.merge(EXAMPLES, NAMESPACE, name, merge.clone()));
    }

    /// Records a call. Returns its number.
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
                    call["type"] = kind.map(kopf::logic::object::reason::EventType::as_str).into();
                }
                ObjectDetail::Change(change) => {
                    call["reason"] = change.reason.as_str().into();
                    call["old"] = change.old.as_deref().cloned().unwrap_or_default();
                    call["new"] = change.new.as_deref().cloned().unwrap_or_default();
                    call["diff"] = diff(&change.diff);
                }
                ObjectDetail::Background(_)
                | ObjectDetail::Index
                | ObjectDetail::Admission(_)
                | ObjectDetail::Conversion => {}
            }
        }
        let mut calls = self.calls.lock();
        calls.push(call);
        calls.len() - 1
    }
}

/// Returns all indexes in the form of the vectors.
fn indexes(invocation: &Invocation) -> Value {
    let index = |it: &kopf::call::Index| {
        let mut stores = Vec::new();
        for (key, values) in it.keys().filter_map(|key| Some((key.to_value(), it.get(&key)?))) {
            let mut values = values
                .iter()
                .filter_map(|it| it.value())
                .map(|it| Value::clone(it))
                .collect::<Vec<_>>();
            values.sort_by_key(Value::to_string);
            stores.push(json!([key, values]));
        }
        stores.sort_by_key(|it| it[0].to_string());
        (it.id().to_string(), Value::Array(stores))
    };
    invocation.services.indexes.all().map(index).collect::<Map<_, _>>().into()
}

/// Returns the declaration; without a function name, it is `create_fn`, `update_fn`, ….
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

/// Returns a storage of the vectors by its short name.
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
