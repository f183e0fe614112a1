//! Sends calls to the actor of one script.

use std::{rc::Rc, sync::Arc, thread};

use futures::{FutureExt as _, future::LocalBoxFuture};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::{
    ActorVm,
    life::{self, ActorRequest, QUEUE_MAX, Start},
    reply::To,
    response::{ActorResponse, Stuck},
    script::{ActorScript, Print, Reason},
    shared_vm::SharedVm,
};
use crate::call::{Invocation, Scripts};
use crate::logic::{
    change::filters::Question,
    handlers::{
        function::{Function, ScriptId},
        outcome::{CallEnd, Raised},
    },
    object::resource::Resource,
};
use crate::ports::BoxFuture;
use crate::scripting::{LoadError, Loaded, Placement, Source, Terms};

/// Loads a script. With [`Placement::CurrentRuntime`], call it inside a `tokio::task::LocalSet`.
pub(in crate::scripting) fn load<V: ActorVm>(
    script: ScriptId,
    source: &Source,
    terms: &Terms,
) -> BoxFuture<'static, Result<Loaded, LoadError>> {
    let (source, placement) = (source.clone(), terms.placement);
    let script = Arc::new(ActorScript::new(script, source.clone(), terms));
    Box::pin(async move {
        let failed = |message: String| LoadError {
            file: source.name.clone(),
            line: None,
            columns: None,
            source_line: None,
            message,
            hint: None,
        };
        let (loading, loaded) = oneshot::channel();
        let actor = Actor::<V>::start(&script, placement, Start::First(loading));
        let actor =
            actor.map_err(|it| failed(format!("cannot start a thread for the script: {it}")))?;
        let ended = || Err(failed("the thread of the script has stopped".into()));
        let declared = tokio::select! {
            // The order makes no difference: only one of them happens.
            biased;
            declared = loaded => declared.unwrap_or_else(|_| ended())?,
            () = actor.stuck.cancelled() => {
                return Err(failed("the top level of the script did not finish".into()));
            }
        };
        let print = Print::of(&declared);
        let (handlers, lifecycles) = declared;
        let engine = ActorEngine { script, placement, print, actor: Mutex::new(actor) };
        Ok(Loaded { engine: Arc::new(engine), handlers, lifecycles })
    })
}

/// Sends calls to the actor of one script. The actor ends when this engine and all its calls are dropped.
struct ActorEngine<V: ActorVm> {
    script: Arc<ActorScript>,
    placement: Placement,
    /// The declarations that every VM of this script must repeat.
    print: Print,
    actor: Mutex<Actor<V>>,
}

/// The caller's side of an actor.
struct Actor<V: ActorVm> {
    requests: mpsc::Sender<ActorRequest<V>>,
    /// Cancelled when the VM does not respond.
    stuck: CancellationToken,
    /// The same signal as a future, shared by all pending requests.
    lost: Stuck,
    /// The VM, for calls that begin inline.
    shared: Arc<SharedVm<V>>,
    _home: Home,
}

/// What a request needs of an actor: its queue, the signal that it does not respond, and its VM if calls may begin inline.
type ActorAddress<V> = (mpsc::Sender<ActorRequest<V>>, Stuck, Option<Arc<SharedVm<V>>>);

/// Where the actor runs. Kept so that it has an owner, never joined: the actor ends by itself.
enum Home {
    Thread(#[expect(dead_code, reason = "owned only")] thread::JoinHandle<()>),
    Task(#[expect(dead_code, reason = "owned only")] tokio::task::JoinHandle<()>),
}

impl<V: ActorVm> Actor<V> {
    fn start(
        script: &Arc<ActorScript>,
        placement: Placement,
        start: Start,
    ) -> std::io::Result<Self> {
        let (requests, queue) = mpsc::channel(QUEUE_MAX);
        let stuck = CancellationToken::new();
        let script = Arc::clone(script);
        let shared = Arc::new(SharedVm::new(script.usage.clone(), placement == Placement::Threads));
        let taken = Arc::clone(&shared);
        let home = match placement {
            // An actor on the caller's own thread cannot be replaced while it blocks, so this token is never observed.
            Placement::CurrentRuntime => {
                let life = life::live(script, taken, start, queue, CancellationToken::new());
                Home::Task(tokio::task::spawn_local(life))
            }
            Placement::Threads => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                let (name, told) = (format!("{}-{}", V::THREAD, script.id.0), stuck.clone());
                let life = move || {
                    let _counted = script.usage.of_thread();
                    runtime.block_on(life::live(script, taken, start, queue, told));
                };
                let thread = thread::Builder::new().name(name).stack_size(STACK);
                Home::Thread(thread.spawn(life)?)
            }
        };
        let lost = stuck.clone().cancelled_owned().boxed().shared();
        Ok(Actor { requests, stuck, lost, shared, _home: home })
    }
}

/// The stack size of a script's thread: several times what the deepest recursion needs, alternating between the VM and host functions.
/// Untouched pages cost nothing.
const STACK: usize = 8 << 20;

impl<V: ActorVm> ActorEngine<V> {
    /// Returns the channel to the actor, and its VM if calls may begin inline. An actor that does not respond is abandoned and replaced.
    fn actor(&self) -> ActorAddress<V> {
        let mut actor = self.actor.lock();
        if actor.stuck.is_cancelled() {
            let start = Start::Again(self.print.clone());
            // If no thread can be started, this request fails, and the next one tries again.
            if let Ok(next) = Actor::start(&self.script, self.placement, start) {
                self.script.replaced(Reason::Stuck);
                *actor = next;
            }
        }
        let shared = self.script.can_be_suspended().then(|| Arc::clone(&actor.shared));
        (actor.requests.clone(), actor.lost.clone(), shared)
    }

    /// Sends a request and waits for its response; dropping the future cancels the call.
    fn request<T: Send + 'static>(
        &self,
        request: impl FnOnce(To<T>) -> ActorRequest<V> + Send + 'static,
        gone: fn(Raised) -> T,
    ) -> BoxFuture<'static, T> {
        let (requests, stuck, shared) = self.actor();
        Box::pin(ActorResponse::new(requests, stuck, shared, request, gone))
    }

    /// Sends a request to call a function that is not a handler.
    fn other<T: Send + 'static>(
        &self,
        begin: impl FnOnce(Rc<V>) -> LocalBoxFuture<'static, Result<T, Raised>> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Raised>> {
        self.request(|to| ActorRequest::Other(life::job(to, begin)), Err)
    }
}

impl<V: ActorVm> Scripts for ActorEngine<V> {
    fn call(&self, invocation: Arc<Invocation>) -> BoxFuture<'static, CallEnd> {
        self.request(|to| ActorRequest::Call(invocation, to), CallEnd::Raised)
    }

    fn ask(
        &self,
        question: Question,
        invocation: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<bool, Raised>> {
        self.other(|vm| Box::pin(async move { vm.ask(question, invocation).await }))
    }

    fn choose(
        &self,
        function: Function,
        resource: Arc<Resource>,
    ) -> BoxFuture<'static, Result<bool, Raised>> {
        self.other(|vm| Box::pin(async move { vm.choose(function, resource).await }))
    }

    fn compute(
        &self,
        function: Function,
        about: Option<Value>,
        invocation: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<Value, Raised>> {
        self.other(|vm| Box::pin(async move { vm.compute(function, about, invocation).await }))
    }

    fn transform(
        &self,
        function: Function,
        body: Value,
    ) -> BoxFuture<'static, Result<Value, Raised>> {
        self.other(|vm| Box::pin(async move { vm.transform(function, body).await }))
    }
}
