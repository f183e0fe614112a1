//! An operator whose scripts are edited while it runs.

use std::{
    any::Any,
    sync::{Arc, Weak},
    time::Duration,
};

use futures::future::BoxFuture;
pub(super) use kopf::testing::{EXAMPLES, pass};
use kopf::{
    call::{Cause, Invocation},
    logic::{
        change::registry::Registry,
        generation::Generation,
        handlers::{
            declare::Argument,
            function::FunctionOwner,
            handler::{Callback, Handler, Kind},
            lifecycle::Chooser,
            outcome::{CallEnd, Raised, RaisedKind},
        },
    },
    reactor::Operator,
    settings::Settings,
    testing::{
        self, CallLog, Environment, NativeScripts, ReloadResult, RunningOperator, cluster_peering,
        declared,
    },
};
use kopf_apiserver::{ApiServer, ResourceDef};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{sync::oneshot, time};

pub(super) const OTHERS: &str = "others.kopf.dev";

/// A handler of a script.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) kind: Kind,
    pub(super) id: &'static str,
    /// Represents the code of its function: another number is an edit.
    pub(super) code: u64,
    pub(super) resource: &'static str,
    pub(super) options: Vec<(String, Argument)>,
    pub(super) does: Does,
    /// Its resource is selected by a function with this code; 0 fails.
    pub(super) chooser: Option<u64>,
}

/// The action of a handler, in addition to logging its call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Does {
    /// Nothing.
    Nothing,
    /// Takes this many seconds.
    Work(u64),
    /// Fails, to be called again after this many seconds.
    Retry(u64),
    /// Fails permanently.
    Fail,
    /// Sets the finalizer, and fails permanently if it is `true`.
    Name(bool),
    /// Returns the code by the name of the object, for an index; code 0 returns nothing.
    Index,
    /// Logs the size of this index, and the codes in it.
    Look(&'static str),
    /// Labels the object with the code, by the id of the handler.
    Label,
    /// Waits until it must stop, and logs why.
    Stay,
    /// Waits like [`Does::Stay`], and takes this many seconds to stop.
    Linger(u64),
}

/// An operator whose scripts are edited while it runs.
pub(super) struct Edited {
    pub(super) env: Environment,
    pub(super) running: RunningOperator,
    pub(super) calls: CallLog,
    scripts: NativeScripts,
    /// Weak references to the values that keep the scripts of each generation alive.
    homes: Vec<Weak<dyn Any + Send + Sync>>,
    generations: u64,
}

/// Returns a handler of `kopfexamples`.
pub(super) fn on(kind: Kind, id: &'static str, code: u64) -> Line {
    let does = if kind == Kind::Daemon {
        Does::Stay
    } else if kind == Kind::Index {
        Does::Index
    } else {
        Does::Nothing
    };
    Line { kind, id, code, resource: "kopfexamples", options: Vec::new(), does, chooser: None }
}

impl Line {
    pub(super) fn does(self, does: Does) -> Self {
        Line { does, ..self }
    }

    pub(super) fn of(self, resource: &'static str) -> Self {
        Line { resource, ..self }
    }

    /// Selects its resource by a function.
    pub(super) fn chosen_by(self, chooser: u64) -> Self {
        Line { chooser: Some(chooser), ..self }
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.options.push((name.to_owned(), Argument::Value(value.into())));
        self
    }

    fn declare(
        &self,
        scripts: &NativeScripts,
        generation: u64,
        calls: &CallLog,
        home: &FunctionOwner,
    ) -> Handler {
        let (line, shared) = (self.clone(), calls.clone());
        let function = scripts.handler(self.id, move |invocation| {
            let (line, calls) = (line.clone(), shared.clone());
            Box::pin(async move { line.call(&invocation, generation, &calls).await })
        });
        let mut options = self.options.clone();
        options.push(("id".into(), Argument::Value(self.id.into())));
        let is_activity = matches!(
            self.kind,
            Kind::Startup | Kind::Cleanup | Kind::Login | Kind::Probe | Kind::Tunnel
        );
        let parts = self.resource.split('/').map(|it| Argument::Value(it.into()));
        let selectors = match self.chooser {
            Some(code) => vec![self.choice(code, scripts, generation, calls)],
            None => parts.collect(),
        };
        let selectors = if is_activity { Vec::new() } else { selectors };
        let mut handler = declared(self.kind, selectors, options, function);
        handler.code = self.code + 1000;
        handler.parts.selector = self.chooser.map_or(0, |it| it + 1000);
        handler.with_owner(home)
    }

    /// Returns the function that selects its resource, and logs its calls.
    fn choice(
        &self,
        code: u64,
        scripts: &NativeScripts,
        generation: u64,
        calls: &CallLog,
    ) -> Argument {
        let (id, wanted, calls) = (self.id, self.resource, calls.clone());
        let function = scripts.choice("chooser", move |resource| {
            if code == 0 {
                let message = "on purpose".into();
                return Err(Raised { kind: RaisedKind::Permanent, message, trace: None });
            }
            if resource.plural == wanted {
                calls.add(format!("{id} is chosen by {code}@{generation}"));
            }
            Ok(resource.plural == wanted)
        });
        Argument::Callback(Callback::Function(function))
    }

    fn call<'a>(
        &'a self,
        invocation: &'a Invocation,
        generation: u64,
        calls: &'a CallLog,
    ) -> BoxFuture<'a, CallEnd> {
        Box::pin(async move {
            let who = format!("{}.{}@{generation} {}", self.id, self.code, name_of(invocation));
            let raised =
                |kind| CallEnd::Raised(Raised { kind, message: "on purpose".into(), trace: None });
            match self.does {
                Does::Nothing => calls.add(&who),
                Does::Work(seconds) => {
                    calls.add(format!("{who} begins"));
                    time::sleep(Duration::from_secs(seconds)).await;
                    calls.add(format!("{who} ends"));
                }
                Does::Retry(seconds) => {
                    calls.add(format!("{who} fails"));
                    return raised(RaisedKind::Temporary(Some(Duration::from_secs(seconds))));
                }
                Does::Fail => {
                    calls.add(format!("{who} fails"));
                    return raised(RaisedKind::Permanent);
                }
                Does::Name(is_failure) => {
                    let Cause::Activity(cause) = &invocation.cause else { panic!("an activity") };
                    let mut settings = cause.settings.lock();
                    settings.persistence.finalizer = "example.com/named".into();
                    if is_failure {
                        return raised(RaisedKind::Permanent);
                    }
                }
                Does::Index => {
                    calls.add(&who);
                    let entry = json!({ name_of(invocation): self.code });
                    return CallEnd::Returned((self.code > 0).then_some(entry));
                }
                Does::Look(id) => {
                    let index = invocation.services.indexes.get(id);
                    let seen =
                        index.map_or_else(|| "nothing".into(), |it| it.to_json().to_string());
                    calls.add(format!("{who} sees {seen}"));
                }
                Does::Label => {
                    let Cause::Object(cause) = &invocation.cause else { panic!("of an object") };
                    let mut patch = cause.patch.lock();
                    let metadata = patch.merge.entry("metadata").or_insert_with(|| json!({}));
                    metadata["labels"][self.id] = json!(self.code.to_string());
                    calls.add(&who);
                }
                Does::Stay | Does::Linger(_) => {
                    calls.add(format!("{who} begins"));
                    self.stay(invocation, &who, calls).await;
                }
            }
            CallEnd::Returned(None)
        })
    }

    async fn stay(&self, invocation: &Invocation, who: &str, calls: &CallLog) {
        let dropped = calls.add_on_drop(format!("{who} is dropped"));
        let stopped = &invocation.background().expect("a daemon").stopped;
        stopped.wait().await;
        if let Does::Linger(seconds) = self.does {
            pass(seconds).await;
        }
        dropped.disarm();
        calls.add(format!("{who} ends: {}", stopped.reasons()));
    }
}

fn name_of(invocation: &Invocation) -> String {
    match &invocation.cause {
        Cause::Object(cause) => cause.current().header().name.clone().unwrap_or_default(),
        Cause::Activity(cause) => cause.activity.to_owned(),
    }
}

/// Returns a cluster with these objects of both resources.
pub(super) fn environment(examples: &[&str], others: &[&str]) -> Environment {
    let others_def = ResourceDef::new("kopf.dev", "v1", "others", "Other");
    let builder = ApiServer::builder().resource(testing::examples()).resource(others_def);
    let env = Environment::new(builder.resource(cluster_peering("kopf.dev")));
    for (kind, names) in [("KopfExample", examples), ("Other", others)] {
        env.create_all(names.iter().map(|name| object(kind, name)));
    }
    env
}

/// Returns an object of one of the resources.
pub(super) fn object(kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": "kopf.dev/v1", "kind": kind,
        "metadata": { "namespace": "ns1", "name": name, "uid": format!("{kind}-{name}") }, "spec": {},
    })
}

impl Edited {
    /// Starts an operator with these handlers.
    pub(super) fn new(env: Environment, lines: &[Line]) -> Self {
        Edited::with(env, lines, |it| it)
    }

    /// Starts an operator that is changed before it starts.
    pub(super) fn with(
        env: Environment,
        lines: &[Line],
        change: impl FnOnce(Operator) -> Operator,
    ) -> Self {
        let (scripts, calls) = (NativeScripts::default(), CallLog::default());
        let home: FunctionOwner = Arc::new("generation 1");
        let handlers = lines.iter().map(|it| it.declare(&scripts, 1, &calls, &home)).collect();
        let mut settings = Settings::default();
        settings.background.instant_exit_timeout = None;
        let running = RunningOperator::start(change(Operator {
            settings: Arc::new(Mutex::new(settings)),
            ..env.operator(Arc::new(scripts.clone()), handlers)
        }));
        let homes = vec![Arc::downgrade(&home)];
        Edited { env, running, calls, scripts, homes, generations: 1 }
    }

    /// Sends another generation. Returns the receiver of the response.
    pub(super) async fn send(
        &mut self,
        lines: &[Line],
        lifecycle: Option<Chooser>,
    ) -> oneshot::Receiver<ReloadResult> {
        self.generations += 1;
        let number = self.generations;
        let home: FunctionOwner = Arc::new(format!("generation {number}"));
        self.homes.push(Arc::downgrade(&home));
        let declare = |it: &Line| it.declare(&self.scripts, number, &self.calls, &home);
        let registry = Registry::new(lines.iter().map(declare).collect()).expect("unique ids");
        self.running.propose(Generation::new(registry, lifecycle)).await
    }

    /// Makes another generation take over, and waits for a second. Returns the changes.
    pub(super) async fn swap(&mut self, lines: &[Line]) -> String {
        let answer = self.send(lines, None).await;
        let changes = answer.await.expect("an answer").expect("it takes over");
        pass(1).await;
        changes.to_string()
    }

    /// Returns the generations whose scripts are still alive.
    pub(super) fn alive(&self) -> Vec<usize> {
        let numbered = self.homes.iter().enumerate();
        numbered.filter(|(_, it)| it.strong_count() > 0).map(|(index, _)| index + 1).collect()
    }

    /// Returns the requests for objects of a resource, as `list` and `watch`, and `patch name`.
    pub(super) fn requests(&self, plural: &str) -> Vec<String> {
        let requests = self.env.server.requests();
        let of_resource = requests.iter().filter(|it| it.path.contains(&format!("/{plural}")));
        let short = of_resource.map(|it| match &*it.method {
            "GET" if it.query.contains("watch=true") => "watch".to_owned(),
            "GET" => "list".to_owned(),
            other => {
                let path = it.path.split('?').next().unwrap_or_default();
                let name = path.rsplit('/').next().unwrap_or_default();
                format!("{} {name}", other.to_lowercase())
            }
        });
        short.collect()
    }

    /// Changes an object as a user.
    pub(super) fn edit(&self, resource: &str, name: &str, number: u64) {
        let place = format!("ns1/{name}");
        self.env.edit(resource, &place, json!({ "spec": { "number": number } }));
    }

    /// Returns the number of finalizers of an object.
    pub(super) fn finalizers(&self, resource: &str, name: &str) -> usize {
        let body = self.env.get(resource, &format!("ns1/{name}"));
        body["metadata"]["finalizers"].as_array().map_or(0, Vec::len)
    }

    /// Returns the calls since the last call of this function, sorted.
    pub(super) fn take(&self) -> Vec<String> {
        self.calls.take_sorted()
    }

    /// Stops it. Returns its calls.
    pub(super) async fn end(self) -> CallLog {
        self.running.stop().await;
        self.calls
    }
}
