//! Resources and namespaces that come and go while the operator runs.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use kopf::{
    apiserver::{ApiServer, ResourceDef},
    cluster::KubeCluster,
    logic::{
        declare::{Argument, Declaration, declare},
        handler::Kind,
        lifecycle::Lifecycle,
        outcome::Ended,
        registry::Registry,
    },
    ports::{Cause, Clock},
    reactor::{self, Operator, Scope},
    testing::{self, NativeScripts},
};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time};
use tokio_util::sync::CancellationToken;

/// An operator with one creation handler, and the names of the objects it was called for.
struct Watched {
    created: Arc<Mutex<Vec<String>>>,
    stop: CancellationToken,
    task: JoinSet<()>,
}

impl Watched {
    fn start(server: &ApiServer, scope: Scope) -> Self {
        let (scripts, created) = (NativeScripts::default(), Arc::new(Mutex::new(Vec::new())));
        let seen = Arc::clone(&created);
        let function = scripts.handler("create_fn", move |invocation| {
            if let Cause::Object(cause) = &invocation.cause {
                let name = cause.object.header().name.clone().unwrap_or_default();
                seen.lock().expect("no panic while held").push(name);
            }
            Box::pin(async { Ended::Returned(None) })
        });
        let declaration = Declaration {
            kind: Kind::Create,
            selectors: vec![Argument::Value("kopfexamples".into())],
            options: Vec::new(),
            function,
            location: "test:1".into(),
        };
        let handler = declare(declaration).expect("a declaration");
        let client = testing::client(server);
        let operator = Operator {
            scripts: Arc::new(scripts),
            registry: Registry::new(vec![handler]).expect("one id"),
            settings: Arc::default(),
            clock: Clock::starting_at(jiff::Timestamp::UNIX_EPOCH),
            scope,
            lifecycle: Lifecycle::default(),
            connect: Box::new(move |settings| {
                let cluster = KubeCluster::over(client, Arc::new(settings));
                Box::pin(async move { Ok(Arc::new(cluster) as Arc<_>) })
            }),
        };
        let (stop, mut task) = (CancellationToken::new(), JoinSet::new());
        let token = stop.clone();
        task.spawn(async move { reactor::run(operator, token).await.expect("it runs") });
        Watched { created, stop, task }
    }

    async fn end(mut self) -> Vec<String> {
        self.stop.cancel();
        while self.task.join_next().await.is_some() {}
        self.created.lock().expect("no panic while held").clone()
    }
}

fn object(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": { "namespace": namespace, "name": name, "uid": name }, "spec": {},
    })
}

fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "uid": name } })
}

const EXAMPLES: &str = "kopfexamples.kopf.dev";

async fn a_while() {
    time::sleep(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_defined_later_is_served() {
    let server = ApiServer::builder().build();
    let operator = Watched::start(&server, Scope::Cluster);
    a_while().await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": EXAMPLES },
        "spec": {
            "group": "kopf.dev", "scope": "Namespaced",
            "names": { "plural": "kopfexamples", "singular": "kopfexample", "kind": "KopfExample" },
            "versions": [{ "name": "v1", "served": true, "storage": true }],
        },
    });
    server.create("customresourcedefinitions.apiextensions.k8s.io", definition).expect("it is new");
    a_while().await;
    server.create(EXAMPLES, object("ns1", "late")).expect("it is new");
    a_while().await;
    assert_eq!(operator.end().await, ["late"]);
}

#[tokio::test(start_paused = true)]
async fn namespaces_are_served_while_they_are_there_and_match() {
    let examples = ResourceDef::new("kopf.dev", "v1", "kopfexamples", "KopfExample");
    let server = ApiServer::builder().resource(examples).build();
    server.create("namespaces", namespace("app-1")).expect("it is new");
    let operator = Watched::start(&server, Scope::Namespaces(vec!["app-*".into()]));
    a_while().await;
    for name in ["app-2", "other"] {
        server.create("namespaces", namespace(name)).expect("it is new");
    }
    a_while().await;
    for (place, name) in [("app-1", "one"), ("app-2", "two"), ("other", "never")] {
        server.create(EXAMPLES, object(place, name)).expect("it is new");
    }
    a_while().await;
    server.delete("namespaces", "", "app-1").expect("it is there");
    a_while().await;
    server.create(EXAMPLES, object("app-1", "gone")).expect("it is new");
    a_while().await;
    let mut created = operator.end().await;
    created.sort();
    assert_eq!(created, ["one", "two"]);
}
