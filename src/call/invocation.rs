//! The scripts as seen by `handling/`, `features/` and `reactor/`: functions that are called with a cause.

use std::{
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;

use super::{
    AdmissionCause, CallServices, Children, LiveObject, Logger, Memo, PatchBudget, SeenChildren,
    SharedPatch, Stopped,
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
    /// The callers that have not continued yet.
    pub callers: Callers,
}

/// The number of callers of an invocation that have not continued yet, although the function may have ended.
#[derive(Debug, Default)]
pub struct Callers(AtomicUsize);

impl Callers {
    /// Returns whether there are any.
    pub fn are_left(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

/// An invocation that the operator holds until its caller continues. What is held after that is held by a script.
#[derive(Debug)]
pub struct AwaitedCall(Arc<Invocation>);

impl AwaitedCall {
    /// Wraps an invocation.
    pub fn new(invocation: Arc<Invocation>) -> Self {
        invocation.callers.0.fetch_add(1, Ordering::Relaxed);
        AwaitedCall(invocation)
    }
}

impl Deref for AwaitedCall {
    type Target = Arc<Invocation>;

    fn deref(&self) -> &Arc<Invocation> {
        &self.0
    }
}

impl Drop for AwaitedCall {
    fn drop(&mut self) {
        self.0.callers.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Invocation {
    /// Returns whether the call waits before it begins: its script has requested many changes that are not sent yet, none of them in the
    /// cycle of this call, which must end for them to be sent.
    pub fn waits_for(&self, patches: &PatchBudget) -> bool {
        use ObjectDetail::{Background, Change, Watch};
        if patches.is_open() {
            return false;
        }
        let Cause::Object(cause) = &self.cause else { return false };
        matches!(cause.detail, Change(_) | Background(_) | Watch(_)) && !cause.patch.is_charged()
    }

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
            callers: Callers::default(),
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
