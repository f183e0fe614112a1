//! The built binary against a real API server: the examples, the exchange of state with Python's Kopf, crashes, odd input.
//!
//! Needs `ENVTEST`: a script that starts a control plane and prints `export KUBECONFIG=…` and `export
//! KUBEBUILDER_ASSETS=…`, with a script `down` beside it that stops it. `KUBEBUILDER_ASSETS` alone, a directory with etcd,
//! kube-apiserver and kubectl, is served by our own such script. Without both, each test says that it is skipped.
//! `KOPF_PYTHON`, a Python with Kopf and `kubernetes_asyncio`, is needed for the exchange and the migration only. `scripts/e2e`
//! sets all of it up.
//!
//! All tests share one server and have a namespace each. They wait for conditions, with a deadline, and never just wait.

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
mod pods;
mod posting;
mod reconcile;
mod refused;
mod reload;
mod schedules;
mod scopes;
mod server;
mod webhook_changes;
mod webhook_places;
mod webhooks;

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The longest a condition may take to come true: far more than ever needed, as the machine may be busy, and more than
/// the minute that operators sleep at most before they look again.
const DEADLINE: Duration = Duration::from_mins(3);

/// How often a condition is looked at where nothing tells of changes.
const POLL: Duration = Duration::from_millis(100);

/// Waits until `ask` gives something; panics with `what` and the last answer at the deadline.
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
