//! An operator and an embedded API server on one virtual clock.

mod calls;
mod scripts;

use std::sync::Arc;

pub use self::{calls::creation, scripts::NativeScripts};
use crate::cluster::KubeCluster;
use crate::logic::{lifecycle::Lifecycle, peering::Identity, registry::Registry};
use crate::ports::{Clock, Cluster, Health, Scripts};
use crate::reactor::{Connecting, Operator, Scope};
use kopf_apiserver::{ApiServer, ResourceDef};

/// [`examples`], as messages of the embedded server name it.
pub const EXAMPLES: &str = "kopfexamples.kopf.dev";

/// The resource that most tests and benchmarks are about.
pub fn examples() -> ResourceDef {
    ResourceDef::new("kopf.dev", "v1", "kopfexamples", "KopfExample")
}

/// An operator of the whole cluster behind a client, with the usual settings. Its clock shows 1970 and goes with tokio's.
pub fn operator(scripts: Arc<dyn Scripts>, registry: Registry, client: kube::Client) -> Operator {
    Operator {
        scripts,
        registry,
        settings: Arc::default(),
        clock: Clock::starting_at(jiff::Timestamp::UNIX_EPOCH),
        scope: Scope::Cluster,
        lifecycle: Lifecycle::default(),
        connect: Box::new(move |Connecting { settings, .. }| {
            let cluster = KubeCluster::over(client.clone(), Arc::new(settings));
            let cluster: Arc<dyn Cluster> = Arc::new(cluster);
            Box::pin(async move { Ok(cluster) })
        }),
        health: Health::default(),
        liveness: None,
        identity: identity("operator"),
        reloads: None,
    }
}

/// An operator of this name.
pub fn identity(name: &str) -> Identity {
    Identity { peer: name.to_owned(), process: name.to_owned() }
}

/// A client whose requests go straight into the server.
///
/// It starts a task on the current runtime, so it is made inside of one.
pub fn client(server: &ApiServer) -> kube::Client {
    kube::Client::new(server.clone(), "default")
}
