//! The fixture of tests and benchmarks: an embedded API server, operators that run on it, and one virtual clock.
//!
//! [`Environment`] is the cluster with its users, [`RunningOperator`] is an operator, [`NativeScripts`] are handlers in Rust. [`Link`] is a
//! connection that fails on demand; [`CallLog`] and [`LogCapture`] record what happened. `tests/README.md` describes when to use them.
#![expect(clippy::expect_used, clippy::panic, reason = "a test stops at the first surprise")]

mod calls;
mod environment;
mod link;
mod log;
mod objects;
mod recorder;
mod running;
mod scripts;
#[cfg(any(test, fuzzing))]
pub mod seam;

pub use self::{
    calls::{creation, creation_of},
    environment::{BASE, Environment},
    link::{Fate, Link},
    log::{LogCapture, LogLine, capture_log},
    objects::{EXAMPLES, cluster_peering, definition, examples, namespace, object},
    recorder::{CallLog, OnDrop},
    running::{ReloadResult, RunningOperator, pass, run_paused},
    scripts::{NativeScripts, declared, handler_of_examples},
};

use std::sync::Arc;

use parking_lot::Mutex;

use crate::call::Scripts;
use crate::cluster::KubeCluster;
use crate::logic::{
    change::registry::Registry, handlers::lifecycle::Lifecycle, replicas::peering::PeeringIdentity,
};
use crate::ports::{Clock, Cluster};
use crate::reactor::{Connect, Connecting, NamespaceScope, Operator};
use crate::settings::Settings;
use crate::telemetry::Health;
use kopf_apiserver::ApiServer;

/// Returns a cluster-wide operator behind a client, with the default settings, but without events about failures and a key of
/// digests: tests compare all requests with Kopf's. Its clock shows 1970 and follows tokio's.
pub fn operator(scripts: Arc<dyn Scripts>, registry: Registry, client: kube::Client) -> Operator {
    let mut settings = Settings::default();
    settings.posting.failures = false;
    settings.persistence.digest_secret = None;
    Operator {
        scripts,
        registry,
        settings: Arc::new(Mutex::new(settings)),
        clock: Clock::starting_at(jiff::Timestamp::UNIX_EPOCH),
        scope: NamespaceScope::Cluster,
        lifecycle: Lifecycle::default(),
        connect: connect(client),
        health: Health::default(),
        liveness: None,
        identity: identity("operator"),
        reloads: None,
        webhooks: None,
        is_dry: false,
    }
}

/// Connects an operator to a cluster through a client, without a login.
pub fn connect(client: kube::Client) -> Connect {
    Box::new(move |Connecting { settings, .. }| {
        let cluster = KubeCluster::over(client.clone(), Arc::new(settings));
        let cluster: Arc<dyn Cluster> = Arc::new(cluster);
        Box::pin(async move { Ok(cluster) })
    })
}

/// Returns the identity of a process and a peer of this name.
pub fn identity(name: &str) -> PeeringIdentity {
    PeeringIdentity { peer: name.to_owned(), process: name.to_owned() }
}

/// Returns a client that passes its requests directly to the server.
///
/// It spawns a task, so call it inside a runtime.
pub fn client(server: &ApiServer) -> kube::Client {
    kube::Client::new(server.clone(), "default")
}
