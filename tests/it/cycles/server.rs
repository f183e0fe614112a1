//! The cluster of a scenario: the embedded API server with the one resource of the vectors.

use kopf::{
    ports::Clock,
    testing::{self, EXAMPLES},
};
use kopf_apiserver::ApiServer;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::scenario::Scenario;

/// The namespace of all objects of the vectors.
const NAMESPACE: &str = "ns1";

/// The server and what users do to it.
pub(super) struct Server(ApiServer);

impl Server {
    /// As the scenario wants it.
    pub(super) fn new(scenario: &Scenario, clock: Clock) -> Self {
        let mut resource = testing::examples();
        resource.short_names = vec!["kex".into(), "kexes".into()];
        resource.categories = vec!["all".into()];
        resource.status_subresource = scenario.status_subresource;
        let server = ApiServer::builder().stamps(false).bookmarks(None).resource(resource);
        let to_the_second = |now: jiff::Timestamp| now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let server = server.clock(move || to_the_second(clock.now())).build();
        server.set_latency(scenario.latency);
        server.inject(scenario.inject.iter().copied());
        Server(server)
    }

    /// A client for an operator.
    pub(super) fn client(&self) -> kube::Client {
        testing::client(&self.0)
    }

    /// The service itself, to be wrapped.
    pub(super) fn service(&self) -> ApiServer {
        self.0.clone()
    }

    /// A user creates an object.
    pub(super) fn create(&self, body: &Value) {
        self.0.create(EXAMPLES, body.clone()).expect("the object is new");
    }

    /// A user edits an object, if it is there.
    pub(super) fn edit(&self, name: &str, merge: &Value) {
        drop(self.0.merge(EXAMPLES, NAMESPACE, name, merge.clone()));
    }

    /// A user deletes an object, if it is there.
    pub(super) fn delete(&self, name: &str) {
        drop(self.0.delete(EXAMPLES, NAMESPACE, name));
    }

    /// The PATCH requests so far, as the vectors write them.
    pub(super) fn patches(&self, start: Instant) -> Vec<Value> {
        let requests = self.0.requests();
        let patches = requests.iter().filter(|it| it.method == "PATCH").map(|it| {
            let is_status = it.path.ends_with("/status");
            let mut patch = json!({
                "t": it.at.duration_since(start).as_secs_f64(),
                "subresource": is_status.then_some("status"),
                "content_type": it.content_type,
                "payload": it.json(),
                "status": it.status,
            });
            if let Some(version) = &it.version {
                patch["response_rv"] = version.as_str().into();
            }
            patch
        });
        patches.collect()
    }

    /// What is on the cluster now.
    pub(super) fn objects(&self) -> Vec<Value> {
        self.0.list(EXAMPLES)
    }
}
