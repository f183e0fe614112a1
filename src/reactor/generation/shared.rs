//! State that all handlers of an operator share, from its start to its end.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::call::{Current, Memo, Scripts};
use crate::features::{daemons, indexes::Readiness, leadership::Leadership};
use crate::logic::discovery::namespaces::NamespacePattern;
use crate::ports::{Clock, Cluster, Pauses};
use crate::reactor::object::{change::Rate, memory::Memories};
use crate::settings::Settings;
use crate::telemetry::Health;

/// The state that all streams share after the cluster is connected.
pub(in crate::reactor) struct Shared<'a> {
    pub(in crate::reactor) cluster: &'a Arc<dyn Cluster>,
    pub(in crate::reactor) start: Instant,
    pub(in crate::reactor) retries: Arc<Rate>,
    pub(in crate::reactor) memories: Arc<Memories>,
    pub(in crate::reactor) pauses: Pauses,
    pub(in crate::reactor) leadership: Leadership,
    pub(in crate::reactor) readiness: Readiness,
    pub(in crate::reactor) daemons: Arc<daemons::Daemons>,
    /// The namespaces to serve; `None` is all of them.
    pub(in crate::reactor) namespaces: Option<Arc<[NamespacePattern]>>,
}

/// The part of the health report for the end of the operator.
pub(in crate::reactor) const STOPPING: &str = "shutdown";

/// The state that all handlers of an operator share, from its start to its end.
#[derive(Clone)]
pub(in crate::reactor) struct OperatorContext {
    pub(in crate::reactor) scripts: Arc<dyn Scripts>,
    /// The generation that took over last. Only activities and the next generation use it: objects are served by the generation of
    /// their stream.
    pub(in crate::reactor) current: Current,
    /// The settings as start-up handlers have left them.
    pub(in crate::reactor) settings: Arc<Mutex<Settings>>,
    /// The clock for stored timestamps.
    pub(in crate::reactor) clock: Clock,
    /// The clock for pauses and timeouts.
    pub(in crate::reactor) steady: Clock,
    pub(in crate::reactor) memo: Memo,
    pub(in crate::reactor) health: Health,
}

/// Waits for the result; returns `None` if the operator is stopped first.
pub(in crate::reactor) async fn unless_stopped<T>(
    stop: &CancellationToken,
    work: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased; // a stop takes effect at once
        () = stop.cancelled() => None,
        done = work => Some(done),
    }
}
