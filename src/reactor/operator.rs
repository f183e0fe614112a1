//! What an operator is made of, and why it may end.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::features::probes::{BindError, Endpoint};
use crate::handling::activities::ActivityError;
use crate::logic::{
    lifecycle::Lifecycle, namespaces::NamespacePattern, peering::Identity, registry::Registry,
};
use crate::ports::{ApiError, AskLogin, BoxFuture, Clock, Cluster, Health, Reloads, Scripts};
use crate::settings::Settings;

/// Everything an operator is made of.
pub struct Operator {
    /// The scripts, loaded.
    pub scripts: Arc<dyn Scripts>,
    /// Their handlers.
    pub registry: Registry,
    /// The settings; start-up handlers change them.
    pub settings: Arc<Mutex<Settings>>,
    /// The time.
    pub clock: Clock,
    /// Which namespaces are served.
    pub scope: Scope,
    /// The order in which the handlers of one object run, unless the scripts set another.
    pub lifecycle: Lifecycle,
    /// Logs in: when a script asks for the cluster, or else after the start-up handlers. Called again after a failure.
    pub connect: Connect,
    /// Where its parts tell how they are.
    pub health: Health,
    /// Where the probe handlers are asked, if anywhere.
    pub liveness: Option<Endpoint>,
    /// How other operators and replicas know it.
    pub identity: Identity,
    /// New generations of the scripts, if they can change.
    pub reloads: Option<Reloads>,
}

/// Which namespaces are served.
#[derive(Clone, Debug)]
pub enum Scope {
    /// All of them, with streams of the whole cluster.
    Cluster,
    /// Those that match any of these patterns.
    Namespaces(Vec<NamespacePattern>),
}

/// Makes the connection to the cluster.
pub type Connect =
    Box<dyn Fn(Connecting) -> BoxFuture<'static, Result<Arc<dyn Cluster>, ApiError>> + Send>;

/// What a connection is made with.
pub struct Connecting {
    /// As they are after start-up.
    pub settings: Settings,
    /// The login handlers of the scripts, if there are any: nobody else is asked then.
    pub login: Option<AskLogin>,
}

/// Why an operator ended other than by being told to.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A start-up or clean-up handler failed for good.
    #[error("{0}")]
    Activity(#[from] ActivityError),
    /// The cluster cannot be used.
    #[error("{0}")]
    Cluster(#[from] ApiError),
    /// The liveness endpoint cannot be served.
    #[error("the liveness endpoint: {0}")]
    Liveness(#[from] BindError),
    /// The settings make no sense together.
    #[error("{0}")]
    Settings(String),
    /// Another replica may lead now: nothing was done any more from that moment on.
    #[error("the leadership is lost: {0}")]
    Leadership(String),
}

impl Failure {
    /// What the user could do next, if we know.
    pub fn hint(&self) -> Option<String> {
        match self {
            Failure::Activity(error) if error.activity == "cleanup" => {
                Some("see the errors of the handlers above; everything else has ended".into())
            }
            Failure::Activity(_) => {
                Some("see the errors of the handlers above; nothing else was started".into())
            }
            Failure::Cluster(error) => error.hint.clone(),
            Failure::Liveness(_) => Some("choose another address with -L/--liveness".into()),
            Failure::Settings(_) => None,
            Failure::Leadership(_) => {
                Some("nothing is to be done: started again, this replica is a standby".into())
            }
        }
    }
}
