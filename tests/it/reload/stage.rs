//! An operator whose scripts are edited while it runs.

use std::{
    any::Any,
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use futures::future::BoxFuture;
pub(super) use kopf::testing::EXAMPLES;
use kopf::{
    logic::{
        declare::{Argument, Declaration, declare},
        function::Home,
        generation::{Changes, Generation},
        handler::{Callback, Handler, Kind},
        lifecycle::Chooser,
        outcome::{Ended, Raised, RaisedKind},
        registry::Registry,
    },
    ports::{Candidate, Cause, Health, Invocation, Rejection},
    reactor::{self, Operator},
    settings::Settings,
    testing::{self, NativeScripts},
};
use kopf_apiserver::{ApiServer, ResourceDef};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;

pub(super) const OTHERS: &str = "others.kopf.dev";

/// A handler of a script.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) kind: Kind,
    pub(super) id: &'static str,
    /// Another number is another text of its function.
    pub(super) code: u64,
    pub(super) resource: &'static str,
    pub(super) options: Vec<(String, Argument)>,
    pub(super) does: Does,
    /// Its resource is chosen by a function of this text; 0 fails.
    pub(super) chooser: Option<u64>,
}

/// What a handler does, beside noting its call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Does {
    /// Nothing.
    Nothing,
    /// Takes so many seconds.
    Work(u64),
    /// Fails, to be called again after so many seconds.
    Retry(u64),
    /// Fails for good.
    Fail,
    /// Sets the finalizer, and fails for good if it is `true`.
    Name(bool),
    /// Returns the code by the name of the object, for an index; code 0 returns nothing.
    Index,
    /// Notes the size of this index, and the codes in it.
    Look(&'static str),
    /// Waits until it must stop, and notes why.
    Stay,
    /// The same, and needs so many seconds to stop.
    Linger(u64),
}

/// What is noted of calls.
#[derive(Clone)]
pub(super) struct Notes {
    lines: Arc<Mutex<Vec<(u64, String)>>>,
    start: Instant,
}

/// A running operator.
pub(super) struct Stage {
    pub(super) server: ApiServer,
    pub(super) health: Health,
    pub(super) notes: Notes,
    scripts: NativeScripts,
    /// What the scripts of each generation live in.
    homes: Vec<Weak<dyn Any + Send + Sync>>,
    reloads: mpsc::Sender<Candidate>,
    generations: u64,
    stop: CancellationToken,
    task: JoinSet<()>,
}

/// The line of a handler of `kopfexamples`.
pub(super) fn on(kind: Kind, id: &'static str, code: u64) -> Line {
    let does = match kind {
        Kind::Daemon => Does::Stay,
        Kind::Index => Does::Index,
        Kind::Create
        | Kind::Update
        | Kind::Delete
        | Kind::Resume
        | Kind::Field
        | Kind::Sub
        | Kind::Event
        | Kind::Timer
        | Kind::Startup
        | Kind::Cleanup
        | Kind::Login
        | Kind::Probe
        | Kind::Validate
        | Kind::Mutate
        | Kind::Test => Does::Nothing,
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

    /// Its resource is chosen by a function.
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
        notes: &Notes,
        home: &Home,
    ) -> Handler {
        let (line, shared) = (self.clone(), notes.clone());
        let function = scripts.handler(self.id, move |invocation| {
            let (line, notes) = (line.clone(), shared.clone());
            Box::pin(async move { line.call(&invocation, generation, &notes).await })
        });
        let mut options = self.options.clone();
        options.push(("id".into(), Argument::Value(self.id.into())));
        let is_activity =
            matches!(self.kind, Kind::Startup | Kind::Cleanup | Kind::Login | Kind::Probe);
        let parts = self.resource.split('/').map(|it| Argument::Value(it.into()));
        let selectors = match self.chooser {
            Some(code) => vec![self.choice(code, scripts, generation, notes)],
            None => parts.collect(),
        };
        let declaration = Declaration {
            kind: self.kind,
            selectors: if is_activity { Vec::new() } else { selectors },
            options,
            function,
            location: "test:1".into(),
        };
        let mut handler = declare(declaration).expect("a declaration");
        handler.code = self.code + 1000;
        handler.parts.selector = self.chooser.map_or(0, |it| it + 1000);
        handler.at_home(home)
    }

    /// The function that chooses its resource, and notes when it is asked about it.
    fn choice(
        &self,
        code: u64,
        scripts: &NativeScripts,
        generation: u64,
        notes: &Notes,
    ) -> Argument {
        let (id, wanted, notes) = (self.id, self.resource, notes.clone());
        let function = scripts.choice("chooser", move |resource| {
            if code == 0 {
                let message = "on purpose".into();
                return Err(Raised { kind: RaisedKind::Permanent, message, trace: None });
            }
            if resource.plural == wanted {
                notes.add(&format!("{id} is chosen by {code}@{generation}"));
            }
            Ok(resource.plural == wanted)
        });
        Argument::Callback(Callback::Function(function))
    }

    fn call<'a>(
        &'a self,
        invocation: &'a Invocation,
        generation: u64,
        notes: &'a Notes,
    ) -> BoxFuture<'a, Ended> {
        Box::pin(async move {
            let who = format!("{}.{}@{generation} {}", self.id, self.code, name_of(invocation));
            let raised =
                |kind| Ended::Raised(Raised { kind, message: "on purpose".into(), trace: None });
            match self.does {
                Does::Nothing => notes.add(&who),
                Does::Work(seconds) => {
                    notes.add(&format!("{who} begins"));
                    time::sleep(Duration::from_secs(seconds)).await;
                    notes.add(&format!("{who} ends"));
                }
                Does::Retry(seconds) => {
                    notes.add(&format!("{who} fails"));
                    return raised(RaisedKind::Temporary(Some(Duration::from_secs(seconds))));
                }
                Does::Fail => {
                    notes.add(&format!("{who} fails"));
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
                    notes.add(&who);
                    let entry = json!({ name_of(invocation): self.code });
                    return Ended::Returned((self.code > 0).then_some(entry));
                }
                Does::Look(id) => {
                    let index = invocation.facilities.indexes.get(id);
                    let seen =
                        index.map_or_else(|| "nothing".into(), |it| it.to_json().to_string());
                    notes.add(&format!("{who} sees {seen}"));
                }
                Does::Stay | Does::Linger(_) => {
                    notes.add(&format!("{who} begins"));
                    let end = Gone { who: &who, notes, is_over: false };
                    self.stay(invocation, end).await;
                }
            }
            Ended::Returned(None)
        })
    }

    async fn stay(&self, invocation: &Invocation, mut end: Gone<'_>) {
        let stopped = &invocation.background().expect("a daemon").stopped;
        stopped.wait().await;
        if let Does::Linger(seconds) = self.does {
            time::sleep(Duration::from_secs(seconds)).await;
        }
        end.is_over = true;
        end.notes.add(&format!("{} ends: {}", end.who, stopped.reasons()));
    }
}

/// Notes that a call was dropped.
struct Gone<'a> {
    who: &'a str,
    notes: &'a Notes,
    is_over: bool,
}

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.notes.add(&format!("{} is dropped", self.who));
        }
    }
}

fn name_of(invocation: &Invocation) -> String {
    match &invocation.cause {
        Cause::Object(cause) => cause.current().header().name.clone().unwrap_or_default(),
        Cause::Activity(cause) => cause.activity.to_owned(),
    }
}

impl Notes {
    fn add(&self, line: &str) {
        let seconds = self.start.elapsed().as_secs();
        self.lines.lock().push((seconds, line.to_owned()));
    }

    /// All of them, without their time.
    pub(super) fn lines(&self) -> Vec<String> {
        let lines = self.lines.lock();
        lines.iter().map(|(_, line)| line.trim_end().to_owned()).collect()
    }

    /// Those since the last look, sorted.
    pub(super) fn take(&self) -> Vec<String> {
        let lines = std::mem::take(&mut *self.lines.lock());
        let mut lines = lines.into_iter().map(|(_, line)| line).collect::<Vec<_>>();
        lines.sort();
        lines
    }

    /// The seconds at which such a line was noted.
    pub(super) fn times(&self, part: &str) -> Vec<u64> {
        let lines = self.lines.lock();
        lines.iter().filter(|(_, line)| line.contains(part)).map(|(at, _)| *at).collect()
    }
}

impl fmt::Display for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, line) in &*self.lines.lock() {
            writeln!(f, "{at} {line}")?;
        }
        Ok(())
    }
}

/// A server with these objects of both resources.
pub(super) fn server(examples: &[&str], others: &[&str]) -> ApiServer {
    let examples_def = testing::examples();
    let others_def = ResourceDef::new("kopf.dev", "v1", "others", "Other");
    let mut peering =
        ResourceDef::new("kopf.dev", "v1", "clusterkopfpeerings", "ClusterKopfPeering");
    peering.namespaced = false;
    let server = ApiServer::builder().resource(examples_def).resource(others_def).resource(peering);
    let server = server.build();
    for (resource, kind, names) in [(EXAMPLES, "KopfExample", examples), (OTHERS, "Other", others)]
    {
        for name in names {
            server.create(resource, object(kind, name)).expect("it is new");
        }
    }
    server
}

/// An object of one of the resources.
pub(super) fn object(kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": "kopf.dev/v1", "kind": kind,
        "metadata": { "namespace": "ns1", "name": name, "uid": format!("{kind}-{name}") }, "spec": {},
    })
}

pub(super) async fn seconds(seconds: u64) {
    time::sleep(Duration::from_secs(seconds)).await;
}

impl Stage {
    /// Starts with these handlers.
    pub(super) fn new(server: ApiServer, lines: &[Line]) -> Self {
        Stage::with(server, lines, |it| it)
    }

    /// The same with an operator that is changed before it starts.
    pub(super) fn with(
        server: ApiServer,
        lines: &[Line],
        change: impl FnOnce(Operator) -> Operator,
    ) -> Self {
        let notes = Notes { lines: Arc::default(), start: Instant::now() };
        let scripts = NativeScripts::default();
        let home: Home = Arc::new("generation 1");
        let handlers = lines.iter().map(|it| it.declare(&scripts, 1, &notes, &home)).collect();
        let registry = Registry::new(handlers).expect("ids are unique");
        let health = Health::default();
        let (reloads, candidates) = mpsc::channel(1);
        let mut settings = Settings::default();
        settings.background.instant_exit_timeout = None;
        let client = testing::client(&server);
        let operator = change(Operator {
            settings: Arc::new(Mutex::new(settings)),
            health: health.clone(),
            reloads: Some(candidates),
            ..testing::operator(Arc::new(scripts.clone()), registry, client)
        });
        let (stop, mut task) = (CancellationToken::new(), JoinSet::new());
        let token = stop.clone();
        task.spawn(async move { reactor::run(operator, token).await.expect("it runs") });
        let homes = vec![Arc::downgrade(&home)];
        Stage { server, health, notes, scripts, homes, reloads, generations: 1, stop, task }
    }

    /// Sends another generation; gives where the answer will come.
    pub(super) async fn send(
        &mut self,
        lines: &[Line],
        lifecycle: Option<Chooser>,
    ) -> oneshot::Receiver<Result<Changes, Rejection>> {
        self.generations += 1;
        let number = self.generations;
        let home: Home = Arc::new(format!("generation {number}"));
        self.homes.push(Arc::downgrade(&home));
        let declare = |it: &Line| it.declare(&self.scripts, number, &self.notes, &home);
        let registry = Registry::new(lines.iter().map(declare).collect()).expect("unique ids");
        let generation = Generation { number: 0, registry, lifecycle };
        let (verdict, answer) = oneshot::channel();
        let withdrawn = CancellationToken::new();
        let candidate = Candidate { generation, verdict, withdrawn };
        self.reloads.send(candidate).await.expect("somebody listens");
        answer
    }

    /// Another generation takes over; tells what has changed. Gives everybody a second.
    pub(super) async fn swap(&mut self, lines: &[Line]) -> String {
        let answer = self.send(lines, None).await;
        let changes = answer.await.expect("an answer").expect("it takes over");
        seconds(1).await;
        changes.to_string()
    }

    /// The generations whose scripts are still there.
    pub(super) fn alive(&self) -> Vec<usize> {
        let numbered = self.homes.iter().enumerate();
        numbered.filter(|(_, it)| it.strong_count() > 0).map(|(index, _)| index + 1).collect()
    }

    /// The requests for objects of a resource, as `list` and `watch`, and `patch name`.
    pub(super) fn requests(&self, plural: &str) -> Vec<String> {
        let requests = self.server.requests();
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

    /// A user changes an object.
    pub(super) fn edit(&self, resource: &str, name: &str, number: u64) {
        self.server
            .merge(resource, "ns1", name, json!({ "spec": { "number": number } }))
            .expect("it is there");
    }

    /// The finalizers of an object.
    pub(super) fn finalizers(&self, resource: &str, name: &str) -> usize {
        let body = self.server.get(resource, "ns1", name).expect("it is there");
        body["metadata"]["finalizers"].as_array().map_or(0, Vec::len)
    }

    /// Tells the operator to end.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Stops it; gives what was noted.
    pub(super) async fn end(mut self) -> Notes {
        self.stop.cancel();
        while self.task.join_next().await.is_some() {}
        self.notes
    }
}
