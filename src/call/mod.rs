//! The scripts as the operator calls them ([`Scripts`]), and everything that one call sees: its cause, the object, memos, the
//! patch, indexes, the logger, the stop flag.

mod admission;
mod children;
mod current;
mod event_queue;
mod fakes;
mod indexes;
mod invocation;
mod live_object;
mod locks;
mod logger;
mod memo;
mod notices;
mod object_packer;
mod patch_budget;
mod patch_cell;
mod reconcilers;
mod related;
mod relatives;
mod seen_children;
mod services;
mod stopped;
mod unsent;

pub use crate::logic::change::filters::Question;
pub use admission::{AdmissionCause, Warnings};
pub use children::{CHILDREN_MAX, Children, ExecuteError, Order, Orders, too_many_children};
pub use current::{Current, LiveGeneration};
pub use event_queue::{EventQueue, EventReceiver, QueuedEvent};
pub use fakes::{FakeResponse, Faked, Fakes};
pub use indexes::{Index, Indexes};
pub use invocation::{
    ActivityCause, AttemptKwargs, AwaitedCall, BackgroundCause, Callers, Cause, ChangeCause,
    Invocation, ObjectCause, ObjectDetail, Scripts,
};
pub use live_object::LiveObject;
pub use locks::{CallId, LockTicket, Locks, Wanting};
pub use logger::{Logger, LoggerKind, TARGET_ACTIVITIES, TARGET_OBJECTS, TARGET_UNHANDLED};
pub use memo::{Memo, SharedDocument, WeakDocument};
pub use notices::Notices;
pub use object_packer::{ObjectPacker, Packer};
pub use patch_budget::{PatchBudget, PatchCharges};
pub use patch_cell::{ClearOnDrop, PatchCell, SharedPatch};
pub use reconcilers::{CallReason, PendingCall, Reconcilers, name_key};
pub use related::Related;
pub use seen_children::{SeenChildren, SeenKind};
pub use services::CallServices;
pub use stopped::{StopWaiter, Stopped};
pub use unsent::Unsent;
