//! An operator with a few handlers of closures, for tests of what surrounds handlers.

use std::sync::Arc;

use parking_lot::Mutex;

pub(crate) use kopf::testing::EXAMPLES;
use kopf::{
    logic::{
        declare::{Argument, Declaration, declare},
        handler::Kind,
        outcome::Ended,
        registry::Registry,
    },
    ports::Cause,
    reactor::{self, Operator, Scope},
    testing::{self, NativeScripts},
};
use kopf_apiserver::ApiServer;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// An operator, and the names of the objects its handlers were called for.
pub(crate) struct Watched {
    created: Arc<Mutex<Vec<String>>>,
    stop: CancellationToken,
    task: JoinSet<()>,
}

impl Watched {
    /// Starts one with a creation handler; `act` is called in it with the name of the object.
    pub(crate) fn start(
        server: &ApiServer,
        scope: Scope,
        act: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Watched::with(&[Kind::Create], server, scope, act)
    }

    /// Starts one with a handler of each of these kinds.
    pub(crate) fn with(
        kinds: &[Kind],
        server: &ApiServer,
        scope: Scope,
        act: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        let (scripts, created) = (NativeScripts::default(), Arc::new(Mutex::new(Vec::new())));
        let seen = Arc::clone(&created);
        let function = scripts.handler("create_fn", move |invocation| {
            if let Cause::Object(cause) = &invocation.cause {
                let name = cause.object.header().name.clone().unwrap_or_default();
                seen.lock().push(name.clone());
                act(&name);
            }
            Box::pin(async { Ended::Returned(None) })
        });
        let handler = |kind: &Kind| {
            let declaration = Declaration {
                kind: *kind,
                selectors: vec![Argument::Value("kopfexamples".into())],
                options: Vec::new(),
                function: function.clone(),
                location: "test:1".into(),
            };
            declare(declaration).expect("a declaration")
        };
        let client = testing::client(server);
        let registry = Registry::new(kinds.iter().map(handler).collect()).expect("no clash");
        let operator = Operator { scope, ..testing::operator(Arc::new(scripts), registry, client) };
        let (stop, mut task) = (CancellationToken::new(), JoinSet::new());
        let token = stop.clone();
        task.spawn(async move { reactor::run(operator, token).await.expect("it runs") });
        Watched { created, stop, task }
    }

    /// Stops it, and tells for which objects the handler was called, in order.
    pub(crate) async fn end(mut self) -> Vec<String> {
        self.stop.cancel();
        while self.task.join_next().await.is_some() {}
        self.created.lock().clone()
    }
}

/// An object of the resource.
pub(crate) fn object(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": { "namespace": namespace, "name": name, "uid": name }, "spec": {},
    })
}
