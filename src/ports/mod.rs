//! The interfaces between the operator and its environment, as traits and plain data: the cluster, the scripts, the clock, the log.
//!
//! The adapters (`cluster/`, `scripting/`, `testing/`) implement them; `handling/`, `features/` and `reactor/` know nothing else of
//! the environment.

mod admission;
mod call_services;
mod children;
mod clock;
mod cluster;
mod current;
mod event_queue;
mod health;
mod indexes;
mod kube;
mod leadership;
mod live;
mod logger;
mod login;
mod memo;
mod metrics;
mod object_packer;
mod pauses;
mod reloads;
mod script_series;
mod scripts;
mod stopped;

pub use crate::logic::filters::Question;
pub use admission::{
    AdmissionCause, ReviewClient, ReviewRequest, Reviewer, RunningServer, Warnings, WebhookParts,
    WebhookServer, WebhookSetup,
};
pub use call_services::CallServices;
pub use children::{Children, ExecuteError, Order, Orders};
pub use clock::{Clock, Steps, until};
pub use cluster::{
    Address, ApiError, Cluster, Discovered, ErrorClass, Extent, GroupFilter, Interrupt, NewObject,
    NewerEvents, PatchKind, PatchRequest, StreamEvent, StreamTarget,
};
pub use current::{Current, LiveGeneration};
pub use event_queue::{EventQueue, EventReceiver, QueuedEvent};
pub use health::{Health, HealthState, PartHealth, Pulse};
pub use indexes::{Index, Indexes, entry_bytes};
pub use kube::{Demand, Dial, Kube, LookupError, Verb};
pub use leadership::Leadership;
pub use live::LiveObject;
pub use logger::{Logger, LoggerKind, TARGET_ACTIVITIES, TARGET_OBJECTS};
pub use login::{AskLogin, NativeLogins};
pub use memo::{Document, Memo, WeakDocument};
pub use metrics::{
    CallLabels, HandlerLabels, Metrics, ReloadLabels, RequestLabels, ResourceLabels, RestartLabels,
};
pub use object_packer::ObjectPacker;
pub use pauses::Pauses;
pub use reloads::{Candidate, Rejection, Reloads};
pub use script_series::{Change, SERIES_MAX, ScriptSeries, SeriesLabels};
pub use scripts::{
    ActivityCause, Attempt, BackgroundCause, Cause, ChangeCause, ClearOnDrop, Invocation,
    ObjectCause, ObjectDetail, PatchCell, Scripts, SharedPatch,
};
pub use stopped::{Stopped, Waiting};

/// A future of a trait in this module; boxed so that the traits stay object-safe and builds short.
pub type BoxFuture<'a, T> = futures::future::BoxFuture<'a, T>;
