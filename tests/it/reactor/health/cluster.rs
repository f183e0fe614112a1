//! A cluster that requires a token, and an operator of one script on it.

use std::{collections::BTreeSet, ops::Deref, sync::Arc, time::Duration};

use http::{Request, Response, header::AUTHORIZATION};
use http_body_util::BodyExt as _;
use kopf::{
    cluster::{ConnectOptions, Dial, KubeCluster},
    features::probes::{ProbeEndpoint, Routes},
    reactor::{self, Connecting, Operator, OperatorFailure},
    scripting::{Placement, Source, Terms},
    telemetry::Health,
    testing::{EXAMPLES, Environment, Fate, Link, RunningOperator, examples, object, run_paused},
};
use kopf_apiserver::{ApiServer, ResponseBody};
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use parking_lot::Mutex;
use tower::BoxError;

/// Login handlers that return the token `t`, in both languages.
pub(super) const LOGIN: [&str; 2] = [
    "kopf.on_login(function(ctx) return {server = 'https://there', token = 't'} end)\n",
    "kopf::on_login(|ctx| #{server: \"https://there\", token: \"t\"});\n",
];

/// Everything around one operator. Clones share it.
#[derive(Clone)]
pub(super) struct Cluster {
    env: Environment,
    pub(super) health: Health,
    pub(super) liveness: Option<ProbeEndpoint>,
    /// The connection of all requests.
    pub(super) link: Link,
    /// Lines with seconds, method, path, header, status.
    log: Arc<Mutex<Vec<String>>>,
}

impl Deref for Cluster {
    type Target = Environment;

    fn deref(&self) -> &Environment {
        &self.env
    }
}

/// Runs a test with the same script in both languages. Returns what both runs return, which must be the same.
pub(super) fn in_both<T, F>(lua: &str, rhai: &str, test: impl Fn(Cluster, Source) -> F) -> T
where
    T: PartialEq + std::fmt::Debug,
    F: Future<Output = T>,
{
    let [lua, rhai] = [("handlers.lua", lua), ("handlers.rhai", rhai)].map(|(name, text)| {
        run_paused(async { test(Cluster::new(), Source::alone(name, text)).await })
    });
    assert_eq!(lua, rhai, "Lua and Rhai");
    lua
}

impl Cluster {
    fn new() -> Self {
        let builder = ApiServer::builder().bookmarks(Some(Duration::from_secs(30)));
        let env = Environment::new(builder.resource(examples()));
        let link = Link::new(&env.server);
        let health = Health::default();
        let cluster = Cluster { env, health, liveness: None, link, log: Arc::default() };
        cluster.accept(&[]);
        cluster
    }

    /// Accepts requests with only these tokens from now on.
    pub(super) fn accept(&self, tokens: &[&str]) {
        let accepted: BTreeSet<_> = tokens.iter().map(|it| format!("Bearer {it}")).collect();
        self.link.set_rule(move |request| {
            if accepted.contains(authorization(request)) { Fate::Pass } else { Fate::Refuse(401) }
        });
    }

    /// Returns the responses so far, without consecutive repetitions.
    pub(super) fn log(&self) -> Vec<String> {
        let mut log = self.log.lock().clone();
        log.dedup();
        log
    }

    /// Returns the headers that were sent, with the responses, in order, without consecutive repetitions.
    pub(super) fn logins(&self) -> Vec<String> {
        let short =
            |it: &String| it.split_once(" by ").map(|it| it.1.to_owned()).unwrap_or_default();
        let mut logins: Vec<_> = self.log.lock().iter().map(short).collect();
        logins.dedup();
        logins
    }

    pub(super) fn create(&self, name: &str) {
        self.env.create(object("default", name));
    }

    /// Returns the names of the objects that were fully handled.
    pub(super) fn handled(&self) -> Vec<String> {
        let key = "kopf.zalando.org/last-handled-configuration";
        let objects = self.server.list(EXAMPLES);
        let handled = objects.iter().filter(|it| it["metadata"]["annotations"].get(key).is_some());
        handled.map(|it| it["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Returns the status and the body of the response to `GET` of a path.
    pub(super) async fn get(&self, path: &str) -> (u16, String) {
        let routes = Routes::new(self.health.clone());
        let answer = routes.answer(&http::Method::GET, &path.parse().expect("a path")).await;
        let (status, text) = read(answer).await;
        // They differ for each engine and each run.
        let used = ["kopf_script_memory_bytes{", "kopf_script_cpu_seconds_total{"];
        let lines = text.split_inclusive('\n').map(|line| match line.split_once("} ") {
            Some((head, _)) if used.iter().any(|it| head.starts_with(it)) => {
                format!("{head}}} 0\n")
            }
            _ => line.to_owned(),
        });
        (status, lines.collect())
    }

    /// Runs an operator alongside the test. Also returns how the operator ended.
    pub(super) async fn run<T>(
        &self,
        source: Source,
        test: impl Future<Output = T>,
    ) -> (T, Result<(), OperatorFailure>) {
        let running = self.start(source).await;
        let told = test.await;
        running.cancel();
        (told, running.end().await)
    }

    /// Runs an operator of this script that ends by itself. Returns its result.
    pub(super) async fn run_until_it_ends(&self, source: Source) -> Result<(), OperatorFailure> {
        self.start(source).await.end().await
    }

    async fn start(&self, source: Source) -> RunningOperator {
        let metrics = self.health.metrics().clone();
        let terms = Terms { metrics, ..Placement::CurrentRuntime.into() };
        let (scripts, handlers) = self.env.load(vec![source], terms).await;
        RunningOperator::start(Operator {
            connect: self.connect(),
            health: self.health.clone(),
            liveness: self.liveness.clone(),
            ..self.env.operator(scripts, handlers)
        })
    }

    fn connect(&self) -> reactor::Connect {
        let (health, clock, dial) = (self.health.clone(), self.clock, self.dial());
        Box::new(move |Connecting { settings, login }| {
            let (health, dial) = (health.clone(), Arc::clone(&dial));
            Box::pin(async move {
                let settings = Arc::new(settings);
                let options = ConnectOptions {
                    settings,
                    login,
                    health,
                    clock,
                    dial,
                    ..ConnectOptions::default()
                };
                let cluster = KubeCluster::connect(options).await?;
                Ok(Arc::new(cluster) as Arc<dyn kopf::ports::Cluster>)
            })
        })
    }

    /// Returns the real client, with the link instead of the network.
    fn dial(&self) -> Dial {
        let cluster = self.clone();
        Arc::new(move |config| {
            let cluster = cluster.clone();
            let service = tower::service_fn(move |request| cluster.clone().pass(request));
            let layer = config.auth_layer()?.expect("a token");
            Ok(ClientBuilder::new(service, config.default_namespace)
                .with_layer(&layer)
                .build()
                .into())
        })
    }

    async fn pass(self, request: Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        let query = request.uri().query().unwrap_or_default();
        let watch = if query.contains("watch=true") { "?watch" } else { "" };
        let seconds = self.start.elapsed().as_secs();
        let (method, path) = (request.method(), request.uri().path());
        let line = format!("{seconds} {method} {path}{watch} by {}", authorization(&request));
        let response = self.link.send(request).await?;
        self.log.lock().push(format!("{line}: {}", response.status().as_u16()));
        Ok(response)
    }
}

fn authorization(request: &Request<Body>) -> &str {
    let header = request.headers().get(AUTHORIZATION);
    header.and_then(|it| it.to_str().ok()).unwrap_or("nobody")
}

/// Returns the status and the body of a response.
pub(super) async fn read(answer: kopf::features::probes::ProbeResponse) -> (u16, String) {
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("a whole body").to_bytes();
    (status, String::from_utf8(body.to_vec()).expect("a string"))
}
