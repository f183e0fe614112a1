//! The labels of metrics, and the limit of their combinations.

use std::{collections::BTreeSet, sync::Arc};

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;

use crate::logic::{handlers::handler::Handler, object::resource::Resource};

/// Maximum number of combinations of a handler, a resource and a script, and of resources. Further ones are counted together:
/// renamed handlers and replaced CRDs must not make the page grow without end.
pub(super) const COMBINATIONS_MAX: usize = 1_000;

/// The value of all labels beyond that limit.
pub(super) const OTHER: &str = "other";

/// The labels of a call of a handler.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CallLabels {
    /// The labels of its handler.
    #[prometheus(flatten)]
    pub of: HandlerLabels,
    /// `success`, `temporary`, `permanent`, `error`, `unfinished` (sub-handlers are left), `cancelled`.
    pub outcome: &'static str,
}

/// The labels of a handler.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
pub struct HandlerLabels {
    /// The id; for a sub-handler, that of its topmost parent, so that there are at most as many values as declarations.
    pub handler: String,
    /// Such as `pods.v1`; empty for handlers of the operator itself.
    pub resource: String,
    /// The file of the script.
    pub script: String,
}

/// The labels of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct WebhookLabels {
    /// The id of the handler; for conversions, the name of the CRD.
    pub webhook: String,
}

/// The labels of a review of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ReviewLabels {
    /// As in [`WebhookLabels`].
    pub webhook: String,
    /// `allowed`, `denied`, `timeout` (a handler was stopped at a limit), `converted`, `failed`.
    pub result: &'static str,
}

/// The labels of a refused connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RefusedLabels {
    /// `certificate` (that of the client), `handshake`, `timeout`.
    pub reason: &'static str,
}

/// The labels of a request to the API server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    /// `list`, `watch`, `patch`, `create`, `discover` and the like.
    pub verb: &'static str,
    /// The HTTP status, or the reason why there was none.
    pub result: String,
}

/// The labels of a request, as client-go has them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ClientLabels {
    /// The HTTP status, or `<error>`.
    pub code: String,
    /// The HTTP method of the request.
    pub method: String,
    /// The host and port of the API server.
    pub host: String,
}

/// The labels of the duration of a request, as client-go has them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct LatencyLabels {
    /// The HTTP method of the request.
    pub verb: String,
    /// As in [`ClientLabels`].
    pub host: String,
}

/// The labels of a queue, as client-go has them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct QueueLabels {
    /// The resource, such as `pods.v1`.
    pub name: String,
}

/// The labels of a resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ResourceLabels {
    /// The resource, such as `pods.v1`.
    pub resource: String,
}

/// The labels of an edit of the scripts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ReloadLabels {
    /// `accepted` or `rejected`.
    pub result: &'static str,
}

/// The labels of a restart of a script's virtual machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RestartLabels {
    /// The file of the script.
    pub script: String,
    /// `memory`: its memory limit was reached; `stuck`: it did not respond.
    pub reason: &'static str,
}

/// The labels of a script.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ScriptLabels {
    /// The file of the script.
    pub script: String,
    /// The SHA-256 of its source, as `sha256sum` prints it.
    pub sha256: String,
}

/// The combinations that are in use, up to the limit. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Combinations<L>(Arc<Mutex<BTreeSet<L>>>);

impl<L> Default for Combinations<L> {
    fn default() -> Self {
        Combinations(Arc::default())
    }
}

impl<L: Ord + Clone> Combinations<L> {
    /// Returns the labels if they are in use or can still be; `other` beyond the limit.
    pub(super) fn within(&self, labels: L, other: impl FnOnce() -> L) -> L {
        let mut known = self.0.lock();
        if known.contains(&labels) {
            return labels;
        }
        if known.len() >= COMBINATIONS_MAX {
            return other();
        }
        known.insert(labels.clone());
        labels
    }
}

impl HandlerLabels {
    /// Returns the labels of a handler for this resource.
    pub fn of(handler: &Handler, resource: Option<&Resource>) -> Self {
        HandlerLabels {
            handler: handler.id.split('/').next().unwrap_or_default().to_owned(),
            resource: resource.map(ToString::to_string).unwrap_or_default(),
            script: handler.file().to_owned(),
        }
    }

    /// Returns the labels of all handlers beyond the limit.
    pub(super) fn other() -> Self {
        let [handler, resource, script] = [OTHER; 3].map(str::to_owned);
        HandlerLabels { handler, resource, script }
    }
}
