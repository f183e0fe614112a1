//! The interfaces between the operator and its environment, as traits and plain data: cluster, clock, credentials, reloads, webhooks.
//!
//! The adapters (`cluster/`, `sources/`, `testing/`) implement them; `handling/`, `features/` and `reactor/` use nothing else of the
//! environment. The interface to the scripts is `call/`.

mod admission;
mod clock;
mod cluster;
mod future;
mod kube;
mod leadership;
mod login;
mod pauses;
mod reloads;

pub use admission::{
    AskTunnel, ReviewClient, ReviewRequest, Reviewer, RunningServer, ScriptGuard, WebhookParts,
    WebhookServer, WebhookSetup,
};
pub use clock::{Clock, Steps, until};
pub use cluster::{
    Address, ApiError, Cluster, Discovered, Edits, ErrorClass, Extent, GroupFilter, Interrupt,
    NewObject, NewerEvents, PatchKind, PatchRequest, StreamEvent, StreamTarget,
};
pub use future::BoxFuture;
pub use kube::{ContainerCommand, Demand, Dial, Executed, Kube, LookupError, Verb, is_allowed};
pub use leadership::Leadership;
pub use login::{AskLogin, NativeLogins};
pub use pauses::Pauses;
pub use reloads::{Candidate, Rejection, Reloads};
