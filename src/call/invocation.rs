//! The scripts as seen by `handling/`, `features/` and `reactor/`: functions that are called with a cause.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    AdmissionCause, CallServices, Children, LiveObject, Logger, Memo, PatchCharges, SeenChildren,
    Stopped,
};
use crate::logic::{
    change::{
        filters::Question,
        patch::{Patch, Transformation},
    },
    handlers::{
        function::{Function, ScriptId},
        handler::{Handler, Kind},
        lifecycle::Chooser,
        outcome::{CallEnd, Raised},
    },
    object::{
        Object,
        diff::Diff,
        reason::{EventType, Reason},
        resource::Resource,
    },
};
use crate::ports::{BoxFuture, NativeLogins};
use crate::settings::Settings;

/// The functions of scripts. Waiting inside a call suspends only that call.
///
/// A call never panics, and never hangs because of the host: a failure in a script is returned as [`Raised`]. Dropping the future
/// cancels the call at its next waiting point.
pub trait Scripts: Send + Sync + 'static {
    /// Returns the function that chooses which due handlers run in one cycle, if the scripts define one.
    fn lifecycle(&self) -> Option<Chooser> {
        None
    }

    /// Returns whether a script may use the index with this id. False only if the id occurs nowhere in the script.
    fn may_use_index(&self, _script: ScriptId, _id: &str) -> bool {
        true
    }

    /// Receives the settings as start-up handlers have left them, before any other call. Most implementations ignore them.
    fn configure(&self, _settings: &Settings) {}

    /// Keeps the script of a function loaded until the function is used, if a call has left the function behind. Handlers do not need this.
    fn keep(&self, function: Function) -> Function {
        function
    }

    /// Keeps the scripts of all functions of a patch loaded, as [`Scripts::keep`] does.
    fn keep_functions(&self, patch: &mut Patch) {
        for transformation in &mut patch.transformations {
            if let Transformation::Scripted(function) = transformation {
                *function = self.keep(function.clone());
            }
        }
    }

    /// Calls a handler. Returns how the call has ended.
    fn call(&self, invocation: Arc<Invocation>) -> BoxFuture<'static, CallEnd>;

    /// Calls a filter function for an object; `invocation.handler` is the handler that the filter belongs to.
    fn ask(
        &self,
        question: Question,
        invocation: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<bool, Raised>>;

    /// Calls the function of a selector: returns whether it selects a resource.
    fn choose(
        &self,
        function: Function,
        resource: Arc<Resource>,
    ) -> BoxFuture<'static, Result<bool, Raised>>;

    /// Calls a function for its return value, with the kwargs of `invocation`; returns null if the function returns nil or `()`. If
    /// `about` is given, it is passed as the first argument.
    fn compute(
        &self,
        function: Function,
        about: Option<Value>,
        invocation: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<Value, Raised>>;

    /// Calls a function that modifies a copy of a raw body; returns the modified copy.
    fn transform(
        &self,
        function: Function,
        body: Value,
    ) -> BoxFuture<'static, Result<Value, Raised>>;
}

/// The patch of a cycle, shared with the scripts that run in it.
pub type SharedPatch = Arc<PatchCell>;

/// A patch behind a lock. Most waiting calls have no patch: it is allocated when it is first locked.
#[derive(Debug, Default)]
pub struct PatchCell(OnceLock<Box<HeldPatch>>);

#[derive(Debug, Default)]
struct HeldPatch {
    patch: Mutex<Patch>,
    /// How often the patch was locked for a change.
    revision: AtomicU64,
    /// When a daemon first waited with changes.
    unsent_since: OnceLock<Instant>,
    is_reported: AtomicBool,
    /// What is counted for the content, until it is sent.
    charges: Mutex<PatchCharges>,
}

impl PatchCell {
    /// Locks the patch for a change. Hold the guard for a few lines, never across an await.
    pub fn lock(&self) -> MutexGuard<'_, Patch> {
        let held = self.0.get_or_init(Box::default);
        held.revision.fetch_add(1, Ordering::Relaxed);
        held.patch.lock()
    }

    /// Returns a number that is another one after each change.
    pub fn revision(&self) -> u64 {
        self.0.get().map_or(0, |it| it.revision.load(Ordering::Relaxed))
    }

    /// Locks the patch for reading, if it was ever changed. Hold the guard for a few lines only.
    pub fn peek(&self) -> Option<MutexGuard<'_, Patch>> {
        self.0.get().map(|it| it.patch.lock())
    }

    /// Takes the content and leaves an empty patch.
    pub fn take(&self) -> Patch {
        let mut lock = self.0.get().map(|_| self.lock());
        lock.as_deref_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Locks what is counted for the content. Hold the guard for a few lines only.
    pub fn charges(&self) -> MutexGuard<'_, PatchCharges> {
        self.0.get_or_init(Box::default).charges.lock()
    }

    /// Returns whether anything is counted for the content.
    pub fn is_charged(&self) -> bool {
        self.0.get().is_some_and(|it| !it.charges.lock().is_empty())
    }

    /// Takes what is counted for the content, for whoever has taken the content.
    pub fn take_charges(&self) -> PatchCharges {
        self.0.get().map(|it| std::mem::take(&mut *it.charges.lock())).unwrap_or_default()
    }

    /// Returns since when the changes wait, which is the first call of this function; `None` if the wait was reported.
    pub(super) fn unsent_since(&self) -> Option<Instant> {
        let held = self.0.get().filter(|it| !it.is_reported.load(Ordering::Relaxed))?;
        Some(*held.unsent_since.get_or_init(Instant::now))
    }

    /// Marks the wait of the changes as reported. Returns whether there are changes whose wait was not reported before.
    pub(super) fn report_unsent(&self) -> bool {
        self.0.get().is_some_and(|it| !it.is_reported.swap(true, Ordering::Relaxed))
    }

    /// Drops the functions: scripts can hold the patch, and its functions would keep the scripts alive.
    pub fn forget_functions(&self) {
        if self.0.get().is_some() {
            let functions = std::mem::take(&mut self.lock().transformations);
            // Dropped after the lock is released.
            drop(functions);
        }
    }
}

impl From<Patch> for PatchCell {
    fn from(patch: Patch) -> Self {
        if patch.is_empty() {
            return PatchCell::default();
        }
        let held = HeldPatch { patch: Mutex::new(patch), ..HeldPatch::default() };
        PatchCell(OnceLock::from(Box::new(held)))
    }
}

/// A guard that drops the functions of a patch at the end, and what is counted for its content: scripts can hold the patch. Its functions
/// would keep them loaded, and its content is their own memory then.
#[derive(Debug)]
pub struct ClearOnDrop(pub SharedPatch);

impl Drop for ClearOnDrop {
    fn drop(&mut self) {
        self.0.forget_functions();
        drop(self.0.take_charges());
    }
}

/// All inputs of a script function in one call: the source of `ctx`.
#[derive(Debug)]
pub struct Invocation {
    /// The handler, or the handler that the filter belongs to; made by [`Handler::for_scripts`], because scripts may hold it. The
    /// caller keeps the handler itself alive, and with it the script.
    pub handler: Arc<Handler>,
    /// The number and the times of the attempt; `None` in filters.
    pub attempt: Option<AttemptKwargs>,
    /// The cause of the call.
    pub cause: Cause,
    /// The object's memo, or the operator's in activities.
    pub memo: Memo,
    /// The value of `ctx.logger`: writes lines about the object or the activity.
    pub logger: Logger,
    /// The services that every call can reach.
    pub services: Arc<CallServices>,
    /// The sub-handlers; `None` where none are allowed.
    pub children: Option<Children>,
}

impl Invocation {
    /// Returns whether this is the call of a daemon: it may wait for days, as many thousands of others.
    pub fn may_wait_long(&self) -> bool {
        self.handler.kind == Kind::Daemon
    }
}

/// The kwargs `retry`, `started` and `runtime`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttemptKwargs {
    /// Attempts made before this one.
    pub retry: u64,
    /// When the first attempt was due.
    pub started: Timestamp,
    /// The time since then.
    pub runtime: Duration,
}

/// The cause of a call, with its kwargs.
#[derive(Clone, Debug)]
pub enum Cause {
    /// The operator itself, such as its startup.
    Activity(ActivityCause),
    /// An object and what has happened to it.
    Object(ObjectCause),
}

impl Cause {
    /// Returns the resource of the object.
    pub fn resource(&self) -> Option<&Arc<Resource>> {
        match self {
            Cause::Object(cause) => Some(&cause.resource),
            Cause::Activity(_) => None,
        }
    }

    /// Returns the source of the kwarg `children`, if the function has it.
    pub fn children(&self) -> Option<&SeenChildren> {
        let Cause::Object(ObjectCause { detail: ObjectDetail::Background(it), .. }) = self else {
            return None;
        };
        it.children.as_deref()
    }
}

/// An activity of the operator.
#[derive(Clone, Debug)]
pub struct ActivityCause {
    /// The kwarg `activity`: `startup`, `cleanup`, `authentication`, `probe`, `tunnel`, `schedule`.
    pub activity: &'static str,
    /// The kwarg `settings`: changes take effect at once.
    pub settings: Arc<Mutex<Settings>>,
    /// The sources of `kopf.login_with_kubeconfig` and similar functions; used only by login handlers.
    pub logins: NativeLogins,
    /// The kwarg `server` of `on_tunnel` handlers.
    pub server: Option<Arc<Value>>,
    /// The kwarg `scheduled` of `every` and `cron` handlers; in a box, because invocations of objects are as large as this.
    pub scheduled: Option<Box<Timestamp>>,
}

/// An object and what has happened to it.
#[derive(Clone, Debug)]
pub struct ObjectCause {
    /// The kwarg `resource`: that of the object.
    pub resource: Arc<Resource>,
    /// The source of `body`, `spec`, `meta`, `status`, `labels`, `annotations`, `uid`, `name`, `namespace`; empty for daemons and
    /// timers, where [`ObjectCause::current`] returns the object.
    pub object: Arc<Object>,
    /// The kwarg `patch`, which the called function may change.
    pub patch: SharedPatch,
    /// The kwargs that depend on the kind of the handler.
    pub detail: ObjectDetail,
}

/// The kwargs that depend on the kind of the handler.
#[derive(Clone, Debug)]
pub enum ObjectDetail {
    /// `on_event`: the kwargs `type` and `event`; without a type if the object comes from a listing.
    Watch(Option<EventType>),
    /// Change handlers: the kwargs `reason`, `old`, `new` and `diff`.
    Change(ChangeCause),
    /// Daemons, timers and reconcile handlers: the kwargs `stopped` and `children`.
    Background(BackgroundCause),
    /// Index handlers, which have no further kwargs.
    Index,
    /// Admission handlers: the kwargs of the request and its client, and `warnings`.
    Admission(AdmissionCause),
    /// Conversion handlers: the kwargs `from` and `to` are those of the handler.
    Conversion,
}

/// The kwargs of daemons and timers.
#[derive(Clone, Debug)]
pub struct BackgroundCause {
    /// The kwarg `stopped`: whether the function must end, and why.
    pub stopped: Stopped,
    /// The object as its latest event showed it: the kwargs show this instead of [`ObjectCause::object`].
    pub live: LiveObject,
    /// The kwarg `children` of reconcile handlers.
    pub children: Option<Arc<SeenChildren>>,
}

impl ObjectCause {
    /// Returns the object that the kwargs show at this moment.
    pub fn current(&self) -> Arc<Object> {
        match &self.detail {
            ObjectDetail::Background(background) => background.live.get(),
            ObjectDetail::Watch(_)
            | ObjectDetail::Change(_)
            | ObjectDetail::Index
            | ObjectDetail::Admission(_)
            | ObjectDetail::Conversion => Arc::clone(&self.object),
        }
    }
}

impl Invocation {
    /// Returns a separate call with the same content, but without sub-handlers: each of the two calls closes only what it leaves open.
    #[must_use]
    pub fn again(&self) -> Self {
        Invocation {
            handler: Arc::clone(&self.handler),
            attempt: self.attempt,
            cause: self.cause.clone(),
            memo: self.memo.clone(),
            logger: self.logger.clone(),
            services: Arc::clone(&self.services),
            children: None,
        }
    }

    /// Returns the logger for lines about this call.
    pub fn logger(&self) -> Logger {
        match self.attempt {
            Some(attempt) => {
                self.logger.clone().of_call(&self.handler, attempt.retry.saturating_add(1))
            }
            None => self.logger.clone(),
        }
    }

    /// Returns the object that the call is about, as the kwargs show it at this moment.
    pub fn object(&self) -> Option<Arc<Object>> {
        match &self.cause {
            Cause::Object(cause) => Some(cause.current()),
            Cause::Activity(_) => None,
        }
    }

    /// Returns the kwargs of daemons and timers, if the call is that of a daemon or a timer.
    pub fn background(&self) -> Option<&BackgroundCause> {
        match &self.cause {
            Cause::Object(ObjectCause { detail: ObjectDetail::Background(it), .. }) => Some(it),
            Cause::Object(_) | Cause::Activity(_) => None,
        }
    }
}

/// The kwargs of change handlers.
#[derive(Clone, Debug)]
pub struct ChangeCause {
    /// The kwarg `reason`: the kind of the change.
    pub reason: Reason,
    /// The kwarg `old`, reduced to the handler's field; `None` if absent.
    pub old: Option<Arc<Value>>,
    /// The kwarg `new`, likewise.
    pub new: Option<Arc<Value>>,
    /// The kwarg `diff`, likewise.
    pub diff: Arc<Diff>,
}
