//! An operator of one script before an API server with a gate: it asks everybody for a token.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response, header::AUTHORIZATION};
use http_body_util::{BodyExt as _, Full};
pub(super) use kopf::testing::EXAMPLES;
use kopf::{
    cluster::{ConnectOptions, Dial, KubeCluster},
    features::probes::{Endpoint, Routes},
    logic::registry::Registry,
    ports::{Clock, Cluster, Health},
    reactor::{self, Connecting, Failure, Operator},
    scripting::{Placement, ScriptHost, Source, Terms},
    settings::Settings,
    testing,
};
use kopf_apiserver::{ApiServer, ResponseBody};
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use parking_lot::{Mutex, MutexGuard};
use serde_json::json;
use tokio::{
    task::LocalSet,
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;
use tower::Service as _;

/// The wall clock at virtual time zero.
const BASE: &str = "2026-01-01T00:00:00Z";

/// What the gate does with a request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Mood {
    /// Asks for a token.
    #[default]
    Normal,
    /// Refuses with this status, whoever asks.
    Refuse(u16),
    /// Does not answer at all.
    Hang,
}

#[derive(Default)]
struct Rules {
    mood: Mood,
    /// The accepted headers.
    accepted: BTreeSet<String>,
    /// Seconds, method, path, header, status.
    log: Vec<String>,
}

/// Everything around one operator. Clones share it.
#[derive(Clone)]
pub(super) struct Stage {
    pub(super) server: ApiServer,
    pub(super) health: Health,
    pub(super) clock: Clock,
    pub(super) liveness: Option<Endpoint>,
    start: Instant,
    rules: Arc<Mutex<Rules>>,
    settings: Arc<Mutex<Settings>>,
}

/// Plays with the same script in both languages; gives what both plays told, which must be the same.
pub(super) fn in_both<T, F>(lua: &str, rhai: &str, play: impl Fn(Stage, Source) -> F) -> T
where
    T: PartialEq + std::fmt::Debug,
    F: Future<Output = T>,
{
    let told = [("handlers.lua", lua), ("handlers.rhai", rhai)].map(|(name, text)| {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().start_paused(true).build().expect("a runtime");
        let source = Source::alone(name, text);
        LocalSet::new().block_on(&runtime, async { play(Stage::new(), source).await })
    });
    let [lua, rhai] = told;
    assert_eq!(lua, rhai, "Lua and Rhai");
    lua
}

impl Stage {
    pub(super) fn new() -> Self {
        let clock = Clock::starting_at(BASE.parse().expect("a timestamp"));
        let resource = testing::examples();
        let server = ApiServer::builder().bookmarks(Some(Duration::from_secs(30)));
        let server = server.resource(resource).build();
        Stage {
            server,
            health: Health::default(),
            clock,
            liveness: None,
            start: Instant::now(),
            rules: Arc::default(),
            settings: Arc::default(),
        }
    }

    /// Tokens that are let in from now on, and no others.
    pub(super) fn accept(&self, tokens: &[&str]) {
        self.rules().accepted = tokens.iter().map(|it| format!("Bearer {it}")).collect();
    }

    pub(super) fn mood(&self, mood: Mood) {
        self.rules().mood = mood;
    }

    /// What came to the gate so far, without repetitions in a row.
    pub(super) fn log(&self) -> Vec<String> {
        let mut log = self.rules().log.clone();
        log.dedup();
        log
    }

    /// Which headers were sent, with the answers, in order, without repetitions in a row.
    pub(super) fn logins(&self) -> Vec<String> {
        let short =
            |it: &String| it.split_once(" by ").map(|it| it.1.to_owned()).unwrap_or_default();
        let mut logins: Vec<_> = self.rules().log.iter().map(short).collect();
        logins.dedup();
        logins
    }

    pub(super) fn create(&self, name: &str) {
        let metadata = json!({"name": name, "namespace": "default"});
        let body = json!({"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": metadata, "spec": {}});
        self.server.create(EXAMPLES, body).expect("a new object");
    }

    /// Names of the objects that were handled to the end.
    pub(super) fn handled(&self) -> Vec<String> {
        let key = "kopf.zalando.org/last-handled-configuration";
        let objects = self.server.list(EXAMPLES);
        let handled = objects.iter().filter(|it| it["metadata"]["annotations"].get(key).is_some());
        handled.map(|it| it["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// What `GET` of a path gives: the status and the text.
    pub(super) async fn get(&self, path: &str) -> (u16, String) {
        let routes = Routes::new(self.health.clone());
        read(routes.answer(&http::Method::GET, &path.parse().expect("a path")).await).await
    }

    pub(super) async fn until(&self, second: u64) {
        time::sleep_until(self.start + Duration::from_secs(second)).await;
    }

    /// Runs an operator beside the play; gives how it ended, if it did by itself.
    pub(super) async fn run<T>(
        &self,
        source: Source,
        play: impl Future<Output = T>,
    ) -> (T, Result<(), Failure>) {
        let metrics = self.health.metrics().clone();
        let terms = Terms { metrics, clock: self.clock, ..Placement::CurrentRuntime.into() };
        let loaded = ScriptHost::load(vec![source], terms).await;
        let (scripts, handlers) = loaded.unwrap_or_else(|errors| panic!("{}", errors[0]));
        let registry = Registry::new(handlers).expect("ids are unique");
        let client = testing::client(&self.server);
        let operator = Operator {
            settings: Arc::clone(&self.settings),
            clock: self.clock,
            connect: self.connect(),
            health: self.health.clone(),
            liveness: self.liveness.clone(),
            ..testing::operator(Arc::new(scripts), registry, client)
        };
        let stop = CancellationToken::new();
        let running = reactor::run(operator, stop.clone());
        let playing = async {
            let told = play.await;
            stop.cancel();
            told
        };
        let (ended, told) = tokio::join!(running, playing);
        (told, ended)
    }

    fn connect(&self) -> reactor::Connect {
        let (health, clock, dial) = (self.health.clone(), self.clock, self.dial());
        Box::new(move |Connecting { settings, login }| {
            let (health, dial) = (health.clone(), Arc::clone(&dial));
            Box::pin(async move {
                let settings = Arc::new(settings);
                let options = ConnectOptions { settings, login, health, clock, dial };
                let cluster = KubeCluster::connect(options).await?;
                Ok(Arc::new(cluster) as Arc<dyn Cluster>)
            })
        })
    }

    /// The real client, with the gate in the place of the network.
    fn dial(&self) -> Dial {
        let stage = self.clone();
        Arc::new(move |config| {
            let stage = stage.clone();
            let gate = tower::service_fn(move |request| stage.clone().pass(request));
            let layer = config.auth_layer()?.expect("a token");
            Ok(ClientBuilder::new(gate, config.default_namespace).with_layer(&layer).build())
        })
    }

    async fn pass(
        mut self,
        request: Request<Body>,
    ) -> Result<Response<ResponseBody>, tower::BoxError> {
        let header = request.headers().get(AUTHORIZATION).and_then(|it| it.to_str().ok());
        let header = header.unwrap_or("nobody").to_owned();
        let (mood, is_known) = {
            let rules = self.rules();
            (rules.mood, rules.accepted.contains(&header))
        };
        let refusal = match mood {
            Mood::Hang => return std::future::pending().await,
            Mood::Refuse(status) => Some(status),
            Mood::Normal => (!is_known).then_some(401),
        };
        let seconds = self.start.elapsed().as_secs();
        let watch = if request.uri().query().unwrap_or_default().contains("watch=true") {
            "?watch"
        } else {
            ""
        };
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response = match refusal {
            Some(status) => refuse(status),
            None => self.server.call(request).await?,
        };
        let status = response.status().as_u16();
        let line = format!("{seconds} {method} {path}{watch} by {header}: {status}");
        self.rules().log.push(line);
        Ok(response)
    }

    fn rules(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock()
    }
}

fn refuse(status: u16) -> Response<ResponseBody> {
    let body = json!({"kind": "Status", "code": status, "message": "not through this gate"});
    let body = Full::new(Bytes::from(body.to_string())).boxed_unsync();
    Response::builder().status(status).body(body).expect("a valid answer")
}

/// The status and the text of an answer.
pub(super) async fn read(answer: kopf::features::probes::Answer) -> (u16, String) {
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("a whole body").to_bytes();
    (status, String::from_utf8(body.to_vec()).expect("a text"))
}
