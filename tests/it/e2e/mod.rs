//! The built binary against a real API server: the examples, the exchange of state with Python's Kopf, crashes, unusual input.
//!
//! Needs `ENVTEST`: a script that starts a control plane and prints `export KUBECONFIG=…` and `export KUBEBUILDER_ASSETS=…`, with a script
//! `down` next to it that stops it. `KUBEBUILDER_ASSETS` alone, a directory with etcd, kube-apiserver and kubectl, is served by a script of
//! this project. Without both, each test prints that it is skipped. `KOPF_PYTHON`, a Python with Kopf and `kubernetes_asyncio`, is needed
//! for the exchange and the migration only. `scripts/e2e` sets up all of this.
//!
//! All tests share one server and have a namespace each. They wait for conditions, with a deadline, never for a fixed time.

mod account;
mod bad_input;
mod conversions;
mod crashes;
mod examples;
mod failures;
mod install;
mod interchange;
mod kube;
mod level;
mod load;
mod migration;
pub(crate) mod namespace;
mod odd_objects;
pub(crate) mod operator;
mod peering;
mod plan;
mod pods;
mod posting;
mod reconcile;
mod refused;
mod reload;
mod schedules;
mod scopes;
pub(crate) mod server;
mod webhook_changes;
mod webhook_places;
mod webhooks;

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Maximum time until a condition is true: far more than needed, because the machine may be busy, and more than the maximum of one minute
/// that operators sleep before they check again.
const DEADLINE: Duration = Duration::from_mins(3);

/// Interval of checking a condition that has no notification of changes.
const POLL: Duration = Duration::from_millis(100);

/// Waits until `ask` returns `Ok`; at the deadline, panics with `what` and the last error.
pub(crate) async fn until<T, E: std::fmt::Display>(
    what: &str,
    mut ask: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        match ask().await {
            Ok(found) => return found,
            Err(instead) if Instant::now() > deadline => panic!("{what}: {instead}"),
            Err(_not_yet) => sleep(POLL).await,
        }
    }
}
