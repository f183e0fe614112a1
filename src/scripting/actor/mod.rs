//! Scripts as actors: a VM on one thread, with calls that are suspended while they wait. Lua needs nothing else than [`ActorVm`].
//!
//! [`engine::load`] starts the actor of a script (`life.rs`) and waits until its top level has run. Calls reach it as requests
//! (`response.rs`), unless they begin where they are awaited (`shared_vm.rs`).

pub(super) mod engine;
pub(super) mod functions;
mod life;
mod reply;
mod response;
pub(super) mod script;
mod shared_vm;
mod thread;
pub(super) mod watch;

use std::{future::Future, rc::Rc, sync::Arc, time::Duration};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use self::script::{ActorScript, Declarations};
use super::{LoadError, inline::InlineSlice, values::errors::DELAY_DEFAULT};
use crate::call::Invocation;
use crate::logic::{
    change::filters::Question,
    handlers::{
        function::Function,
        outcome::{CallEnd, Raised, RaisedKind},
    },
    object::resource::Resource,
};

/// A VM with one script in it. It belongs to one thread at a time.
pub(super) trait ActorVm: Sized + 'static {
    /// The name of the threads of scripts, before their numbers.
    const THREAD: &'static str;

    /// The call of a handler: small, because very many may wait.
    type Call: Future<Output = CallEnd> + Unpin;

    /// Creates a VM and runs the top level of the script in it. The VM cancels `stuck` if it no longer responds.
    async fn load(
        script: &ActorScript,
        stuck: CancellationToken,
    ) -> Result<(Rc<Self>, Declarations), LoadError>;

    /// Calls the function of a handler.
    fn call(self: &Rc<Self>, invocation: Arc<Invocation>) -> Self::Call;

    /// Calls a filter callback and returns whether it matched.
    async fn ask(
        self: &Rc<Self>,
        question: Question,
        invocation: Arc<Invocation>,
    ) -> Result<bool, Raised>;

    /// Calls the function of a selector and returns whether it matched.
    async fn choose(
        self: &Rc<Self>,
        function: Function,
        resource: Arc<Resource>,
    ) -> Result<bool, Raised>;

    /// Calls a function and returns its result as JSON.
    async fn compute(
        self: &Rc<Self>,
        function: Function,
        about: Option<Value>,
        invocation: Arc<Invocation>,
    ) -> Result<Value, Raised>;

    /// Calls a function that changes a copy of a body, and returns the changed copy.
    async fn transform(self: &Rc<Self>, function: Function, body: Value) -> Result<Value, Raised>;

    /// Makes the next steps inline, or not. Returns what was inline before.
    fn set_inline(&self, slice: Option<InlineSlice>) -> Option<InlineSlice>;

    /// Returns whether no step is long because of the size of what the script holds.
    fn is_small(&self) -> bool;

    /// Returns whether the memory of the VM was full once; the VM may be unusable.
    fn is_exhausted(&self) -> bool;

    /// Returns the memory of the VM, in bytes.
    fn used_memory(&self) -> usize;

    /// Collects all garbage, and returns free memory to the system.
    fn tidy(&self);
}

/// Returns the error of a call whose VM was replaced: the call is retried soon.
pub(super) fn of_lost_vm() -> Raised {
    /// Long enough to load a new VM.
    const DELAY: Duration = Duration::from_secs(1);
    let message = "the script was restarted during the call; the call is retried";
    Raised { kind: RaisedKind::Temporary(Some(DELAY)), message: message.into(), trace: None }
}

/// Returns the error of a script that cannot be restarted.
fn of_broken_script(problem: &str) -> Raised {
    let kind = RaisedKind::Temporary(Some(DELAY_DEFAULT));
    let message = format!("the script cannot be restarted: {problem}");
    Raised { kind, message, trace: None }
}
