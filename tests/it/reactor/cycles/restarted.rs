//! Streams that end unexpectedly, as after a bug, start again.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{StreamExt as _, future, stream::BoxStream};
use kopf::{
    cluster::KubeCluster,
    logic::{
        handlers::handler::Kind,
        object::{Object, resource::Resource},
    },
    ports::{
        Address, ApiError, BoxFuture, Cluster, Demand, Discovered, GroupFilter, Leadership,
        NewObject, PatchRequest, StreamEvent, StreamTarget,
    },
    reactor::{Connect, Connecting, NamespaceScope, Operator},
    settings::Settings,
    testing::{Environment, LogCapture, client, cluster_peering, object, pass},
};
use kopf_apiserver::ApiServer;
use parking_lot::Mutex;
use serde_json::json;

use super::heard::Listener;

/// The failure of a stream after its first events.
#[derive(Clone, Copy, PartialEq)]
enum Bug {
    None,
    End,
    Panic,
    PanicAtStart,
}

/// A cluster whose streams of one resource have a bug.
struct Buggy {
    cluster: KubeCluster,
    plural: &'static str,
    bug: Arc<Mutex<Bug>>,
}

impl Cluster for Buggy {
    fn discover<'a>(
        &'a self,
        groups: &'a GroupFilter,
    ) -> BoxFuture<'a, Result<Discovered, ApiError>> {
        self.cluster.discover(groups)
    }

    fn stream(&self, target: StreamTarget) -> BoxStream<'static, Result<StreamEvent, ApiError>> {
        if target.resource.plural != self.plural {
            return self.cluster.stream(target);
        }
        assert!(*self.bug.lock() != Bug::PanicAtStart, "a bug at the start");
        let bug = Arc::clone(&self.bug);
        let goes_on = move |(index, _): &(usize, _)| {
            let bug = if *index < 2 { Bug::None } else { *bug.lock() };
            assert!(bug != Bug::Panic, "a bug in the middle");
            future::ready(bug != Bug::End)
        };
        let events = self.cluster.stream(target).enumerate().take_while(goes_on);
        events.map(|(_, event)| event).boxed()
    }

    fn patch<'a>(
        &'a self,
        request: PatchRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Object>, ApiError>> {
        self.cluster.patch(request)
    }

    fn create<'a>(&'a self, request: NewObject<'a>) -> BoxFuture<'a, Result<Object, ApiError>> {
        self.cluster.create(request)
    }

    fn get<'a>(&'a self, address: Address<'a>) -> BoxFuture<'a, Result<Object, ApiError>> {
        self.cluster.get(address)
    }

    fn replace<'a>(
        &'a self,
        address: Address<'a>,
        payload: Bytes,
    ) -> BoxFuture<'a, Result<Object, ApiError>> {
        self.cluster.replace(address, payload)
    }

    fn list<'a>(
        &'a self,
        resource: &'a Resource,
        namespace: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Object>, ApiError>> {
        self.cluster.list(resource, namespace)
    }

    fn default_namespace(&self) -> &str {
        self.cluster.default_namespace()
    }

    fn ask(&self, demand: Demand) -> BoxFuture<'_, Result<Bytes, ApiError>> {
        self.cluster.ask(demand)
    }

    fn version(&self) -> BoxFuture<'_, Result<Bytes, ApiError>> {
        self.cluster.version()
    }

    fn configure(&self, settings: Arc<Settings>) {
        self.cluster.configure(settings);
    }

    fn fence(&self, leadership: Leadership) {
        self.cluster.fence(leadership);
    }
}

/// Connects to a cluster whose streams of this resource have a bug.
fn connect(env: &Environment, plural: &'static str, bug: &Arc<Mutex<Bug>>) -> Connect {
    let (client, bug) = (client(&env.server), Arc::clone(bug));
    Box::new(move |Connecting { settings, .. }| {
        let cluster = KubeCluster::over(client.clone(), Arc::new(settings));
        let bug = Arc::clone(&bug);
        let cluster: Arc<dyn Cluster> = Arc::new(Buggy { cluster, plural, bug });
        Box::pin(async move { Ok(cluster) })
    })
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_or_panics_is_red_and_begins_again_with_growing_pauses() {
    for bug in [Bug::End, Bug::Panic, Bug::PanicAtStart] {
        let env = Environment::default();
        env.create(object("ns1", "a"));
        let log = LogCapture::of("kopf.watch");
        let shared = Arc::new(Mutex::new(bug));
        let listener = Listener::new(NamespaceScope::Cluster).hears_events("kopfexamples");
        let listener = listener.hears_examples("daemon", Kind::Daemon, Duration::ZERO);
        let connect = connect(&env, "kopfexamples", &shared);
        let operator = listener.start_changed(&env, |it| Operator { connect, ..it });
        pass(100).await;
        let unready = operator.unready();
        assert!(unready.len() == 1 && unready[0].starts_with("stream/kopfexamples"), "{unready:?}");
        let errors = log.count("failed unexpectedly");
        assert!((6..10).contains(&errors), "{errors} failures: {}", log.text());
        *shared.lock() = Bug::None;
        pass(40).await;
        assert_eq!(operator.unready(), [""; 0]);
        let heard = operator.heard();
        let runs = heard.iter().filter(|it| *it == "daemon runs a").count();
        assert_eq!(runs, 1, "{heard:?}");
        // Objects that were known before are known afterwards.
        *shared.lock() = if bug == Bug::PanicAtStart { Bug::End } else { bug };
        env.server.close_watches();
        env.server.remove(kopf::testing::EXAMPLES, "ns1", "a").expect("it is there");
        env.create(object("ns1", "b"));
        pass(60).await;
        *shared.lock() = Bug::None;
        pass(60).await;
        let heard = operator.end().await;
        assert!(heard.contains(&"daemon stops a".into()), "{heard:?}");
        assert!(heard.contains(&"daemon runs b".into()), "{heard:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn peering_that_panics_is_red_and_begins_again() {
    let env = Environment::new(ApiServer::builder().resource(cluster_peering("kopf.dev")));
    let strong =
        json!({ "priority": 100, "lifetime": 600, "lastseen": "2026-01-01T00:00:00+00:00" });
    env.create(json!({
        "apiVersion": "kopf.dev/v1", "kind": "ClusterKopfPeering", "metadata": { "name": "default" },
        "status": { "strong": strong },
    }));
    let bug = Arc::new(Mutex::new(Bug::PanicAtStart));
    let connect = connect(&env, "clusterkopfpeerings", &bug);
    let listener = Listener::new(NamespaceScope::Cluster).hears_events("kopfexamples");
    let operator = listener.start_changed(&env, |it| Operator { connect, ..it });
    pass(20).await;
    let unready = operator.unready();
    assert!(unready.len() == 1 && unready[0].starts_with("peering/"), "{unready:?}");
    *bug.lock() = Bug::None;
    pass(10).await;
    assert_eq!(operator.unready(), [""; 0]);
    assert!(operator.running.health.parts().contains_key("pause"));
    operator.end().await;
}
