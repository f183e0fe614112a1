//! The scripts as the inner side sees them: functions that can be called with a cause.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

use super::{BoxFuture, Children, Facilities, LiveObject, Logger, Memo, NativeLogins, Stopped};
use crate::logic::{
    diff::Diff,
    filters::Question,
    function::{Function, ScriptId},
    handler::Handler,
    lifecycle::Chooser,
    object::Object,
    outcome::{Ended, Raised},
    patch::{Patch, Transformation},
    reason::{EventType, Reason},
    resource::Resource,
};
use crate::settings::Settings;

/// Calls script functions. Waiting inside a call suspends only that call.
///
/// A call never panics and never hangs for a reason of the host: what goes wrong in a script comes back as [`Raised`].
/// Dropping the future cancels the call at its next waiting point.
pub trait Scripts: Send + Sync + 'static {
    /// Which of the handlers that are due run in one cycle, if the scripts say so.
    fn lifecycle(&self) -> Option<Chooser> {
        None
    }

    /// Whether a script can use what has this name. False only if the name is nowhere in the script.
    fn names(&self, _script: ScriptId, _name: &str) -> bool {
        true
    }

    /// The settings as start-up handlers have left them; told before anything else is called. Most have nothing to do.
    fn configure(&self, _settings: &Settings) {}

    /// A function that a call has left behind, so that its script lives until it is used. Handlers need no such care.
    fn keep(&self, function: Function) -> Function {
        function
    }

    /// The same for the functions of a patch.
    fn keep_functions(&self, patch: &mut Patch) {
        for transformation in &mut patch.transformations {
            if let Transformation::Scripted(function) = transformation {
                *function = self.keep(function.clone());
            }
        }
    }

    /// Calls a handler.
    fn call(&self, invocation: Arc<Invocation>) -> BoxFuture<'static, Ended>;

    /// Asks a filter callback about an object; `invocation.handler` is the handler whose filter it is.
    fn ask(
        &self,
        question: Question,
        invocation: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<bool, Raised>>;

    /// Asks the function of a selector whether it wants a resource.
    fn choose(
        &self,
        function: Function,
        resource: Arc<Resource>,
    ) -> BoxFuture<'static, Result<bool, Raised>>;

    /// Calls a function for what it returns, with the kwargs of `invocation`; null if it returns nothing. Some functions are
    /// asked about data: they get these first.
    fn compute(
        &self,
        function: Function,
        about: Option<Value>,
        invocation: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<Value, Raised>>;

    /// Lets a function change a copy of a raw body; gives the changed copy.
    fn transform(
        &self,
        function: Function,
        body: Value,
    ) -> BoxFuture<'static, Result<Value, Raised>>;
}

/// The patch of a cycle, shared with the scripts that run in it.
pub type SharedPatch = Arc<PatchCell>;

/// A patch behind a lock. Most calls that wait have none: it takes no memory until somebody looks at it.
#[derive(Debug, Default)]
pub struct PatchCell(OnceLock<Box<Mutex<Patch>>>);

impl PatchCell {
    /// The patch, for a few lines; never across an await.
    pub fn lock(&self) -> MutexGuard<'_, Patch> {
        self.0.get_or_init(Box::default).lock()
    }

    /// The patch, if anybody has looked at it; for a few lines, too.
    pub fn peek(&self) -> Option<MutexGuard<'_, Patch>> {
        self.0.get().map(|it| it.lock())
    }

    /// What is in it; it is empty afterwards.
    pub fn take(&self) -> Patch {
        let lock = self.0.get().map(|it| it.lock());
        lock.map(|mut it| std::mem::take(&mut *it)).unwrap_or_default()
    }

    /// Lets go of its functions: scripts can hold on to it, and these would keep the scripts.
    pub fn forget_functions(&self) {
        if self.0.get().is_some() {
            let functions = std::mem::take(&mut self.lock().transformations);
            // When the lock is open again.
            drop(functions);
        }
    }
}

impl From<Patch> for PatchCell {
    fn from(patch: Patch) -> Self {
        if patch.is_empty() {
            return PatchCell::default();
        }
        PatchCell(OnceLock::from(Box::new(Mutex::new(patch))))
    }
}

/// Empties a patch when it goes: scripts can hold on to the patch, and its functions would keep the scripts.
#[derive(Debug)]
pub struct Emptied(pub SharedPatch);

impl Drop for Emptied {
    fn drop(&mut self) {
        self.0.forget_functions();
    }
}

/// Everything a script function may look at in one call: the source of `ctx`.
#[derive(Debug)]
pub struct Invocation {
    /// The handler, or the handler whose filter is asked; from [`Handler::inside`], because scripts may hold on to it. Whoever
    /// waits for the call has the handler itself, and with it the script.
    pub handler: Arc<Handler>,
    /// `None` in filters.
    pub attempt: Option<Attempt>,
    /// What it is about.
    pub cause: Cause,
    /// The object's memo, or the operator's in activities.
    pub memo: Memo,
    /// `ctx.logger`
    pub logger: Logger,
    /// What every call can reach.
    pub facilities: Arc<Facilities>,
    /// The sub-handlers; `None` where there can be none.
    pub children: Option<Children>,
}

/// The kwargs `retry`, `started`, `runtime`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attempt {
    /// Attempts made before this one.
    pub retry: u64,
    /// When the first attempt was due.
    pub started: Timestamp,
    /// How long ago that is.
    pub runtime: Duration,
}

/// What a call is about.
#[derive(Debug)]
pub enum Cause {
    /// The operator itself.
    Activity(ActivityCause),
    /// An object.
    Object(ObjectCause),
}

/// The operator itself.
#[derive(Clone, Debug)]
pub struct ActivityCause {
    /// The kwarg `activity`: `startup`, `cleanup`, `authentication`, `probe`.
    pub activity: &'static str,
    /// The kwarg `settings`: changes hold from now on.
    pub settings: Arc<Mutex<Settings>>,
    /// What `kopf.login_with_kubeconfig` and its like have to go by; only of interest to logins.
    pub logins: NativeLogins,
}

/// An object and what happened to it.
#[derive(Clone, Debug)]
pub struct ObjectCause {
    /// The kwarg `resource`.
    pub resource: Arc<Resource>,
    /// The source of `body`, `spec`, `meta`, `status`, `labels`, `annotations`, `uid`, `name`, `namespace`; empty in the
    /// background, where [`ObjectCause::current`] knows better.
    pub object: Arc<Object>,
    /// The kwarg `patch`.
    pub patch: SharedPatch,
    /// What depends on the kind of the handler.
    pub detail: ObjectDetail,
}

/// The kwargs that depend on the kind of the handler.
#[derive(Clone, Debug)]
pub enum ObjectDetail {
    /// `on_event`: the kwargs `type` and `event`; no type if the object comes from a listing.
    Watch(Option<EventType>),
    /// Change handlers.
    Change(ChangeCause),
    /// Daemons and timers.
    Background(BackgroundCause),
    /// Index handlers.
    Index,
}

/// The kwargs of daemons and timers.
#[derive(Clone, Debug)]
pub struct BackgroundCause {
    /// The kwarg `stopped`.
    pub stopped: Stopped,
    /// The object as its latest event showed it: what the kwargs show instead of [`ObjectCause::object`].
    pub live: LiveObject,
}

impl ObjectCause {
    /// The object that the kwargs show at this moment.
    pub fn current(&self) -> Arc<Object> {
        match &self.detail {
            ObjectDetail::Background(background) => background.live.get(),
            ObjectDetail::Watch(_) | ObjectDetail::Change(_) | ObjectDetail::Index => {
                Arc::clone(&self.object)
            }
        }
    }
}

impl Invocation {
    /// The object that it is about, as the kwargs show it at this moment.
    pub fn object(&self) -> Option<Arc<Object>> {
        match &self.cause {
            Cause::Object(cause) => Some(cause.current()),
            Cause::Activity(_) => None,
        }
    }

    /// What only daemons and timers have.
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
    /// The kwarg `reason`.
    pub reason: Reason,
    /// The kwarg `old`, reduced to the handler's field; `None` when absent.
    pub old: Option<Arc<Value>>,
    /// The kwarg `new`, likewise.
    pub new: Option<Arc<Value>>,
    /// The kwarg `diff`, likewise.
    pub diff: Arc<Diff>,
}
