//! The parts of an operator, and the reasons for its end.

mod admission;
mod background_tasks;
mod poster;
mod probing;
mod replicas;
pub(super) mod run;
pub(super) mod serve;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::call::Scripts;
use crate::features::probes::{BindError, ProbeEndpoint};
use crate::handling::activities::ActivityError;
use crate::logic::{
    change::registry::Registry, handlers::lifecycle::Lifecycle, replicas::peering::PeeringIdentity,
};
use crate::ports::{ApiError, AskLogin, BoxFuture, Clock, Cluster, Reloads, WebhookServer};
use crate::reactor::observer::NamespaceScope;
use crate::settings::Settings;
use crate::telemetry::Health;

/// The parts of an operator.
pub struct Operator {
    /// The loaded scripts.
    pub scripts: Arc<dyn Scripts>,
    /// The handlers that the scripts have declared.
    pub registry: Registry,
    /// The settings; start-up handlers change them.
    pub settings: Arc<Mutex<Settings>>,
    /// The clock for stored timestamps.
    pub clock: Clock,
    /// The namespaces to serve.
    pub scope: NamespaceScope,
    /// The order in which the handlers of one object run, unless the scripts set another.
    pub lifecycle: Lifecycle,
    /// Connects to the cluster: when a script first uses it, or else after the start-up handlers. Called again after a failure.
    pub connect: Connect,
    /// Where the parts of the operator report their health.
    pub health: Health,
    /// The endpoint that runs the probe handlers, if any.
    pub liveness: Option<ProbeEndpoint>,
    /// The identity towards other operators and replicas.
    pub identity: PeeringIdentity,
    /// New generations of the scripts, if hot reload is enabled.
    pub reloads: Option<Reloads>,
    /// The server that receives the reviews of admission handlers; `None` if they are not supported here.
    pub webhooks: Option<Arc<dyn WebhookServer>>,
    /// Whether the cluster is a copy, whose changes are only shown: `ctx.dry`.
    pub is_dry: bool,
}

/// A function that connects to the cluster.
pub type Connect =
    Box<dyn Fn(Connecting) -> BoxFuture<'static, Result<Arc<dyn Cluster>, ApiError>> + Send>;

/// The inputs of a connection.
pub struct Connecting {
    /// The settings at the time of the connection.
    pub settings: Settings,
    /// The login handlers of the scripts, if there are any: no other login is tried then.
    pub login: Option<AskLogin>,
}

/// The reason why an operator ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum OperatorFailure {
    /// A start-up or clean-up handler failed permanently.
    #[error("{0}")]
    Activity(#[from] ActivityError),
    /// The cluster is not usable.
    #[error("{0}")]
    Cluster(#[from] ApiError),
    /// The liveness endpoint could not be opened.
    #[error("the liveness endpoint: {0}")]
    Liveness(#[from] BindError),
    /// The settings contradict each other.
    #[error("{0}")]
    Settings(String),
    /// Admission handlers cannot be served.
    #[error("{0}")]
    Webhooks(String),
    /// Another replica may lead now: no further action is taken.
    #[error("the leadership is lost: {0}")]
    Leadership(String),
}

impl OperatorFailure {
    /// Returns a hint with the next step for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            OperatorFailure::Activity(error) if error.activity == "cleanup" => {
                Some("see the errors of the handlers above; everything else has stopped".into())
            }
            OperatorFailure::Activity(_) => {
                Some("see the errors of the handlers above; nothing else has started".into())
            }
            OperatorFailure::Cluster(error) => error.hint.clone(),
            OperatorFailure::Liveness(_) => {
                Some("choose another address with -L/--liveness".into())
            }
            OperatorFailure::Settings(_) | OperatorFailure::Webhooks(_) => None,
            OperatorFailure::Leadership(_) => {
                Some("no action is needed: after a restart, this replica is a standby".into())
            }
        }
    }
}
