//! What the inner side needs from the world, as traits and plain data: the cluster, the scripts, the clock, the log.
//!
//! Adapters (`cluster/`, `scripting/`, `testing/`) implement these; `handling/`, `features/` and `reactor/` know nothing else
//! of the outside.

mod clock;
mod cluster;
mod logger;
mod memo;
mod scripts;

pub use crate::logic::filters::Question;
pub use clock::Clock;
pub use cluster::{
    ApiError, Cluster, ErrorClass, Extent, GroupFilter, NewObject, PatchKind, PatchRequest,
    StreamEvent, StreamTarget,
};
pub use logger::{Logger, LoggerKind, TARGET_ACTIVITIES, TARGET_OBJECTS};
pub use memo::{Document, Memo, WeakDocument};
pub use scripts::{
    ActivityCause, Attempt, Cause, ChangeCause, Invocation, ObjectCause, ObjectDetail, Scripts,
    SharedPatch, lock_patch,
};

/// A future of a border; boxed so that borders stay object-safe and builds short.
pub type BoxFuture<'a, T> = futures::future::BoxFuture<'a, T>;
