//! The actor of one script: a VM, and the calls that run in it concurrently.
//!
//! The VM belongs to one thread, so it is an actor: requests arrive through a bounded queue, and each response has its own channel. Calls
//! are coroutines; while one waits, the others continue. The same async function runs on a separate thread in production, and on the
//! caller's runtime where the clock may be paused.

use std::{
    future::Future,
    panic::{self, AssertUnwindSafe},
    pin::{Pin, pin},
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures::{
    FutureExt as _, StreamExt as _,
    future::{self, LocalBoxFuture},
    stream::FuturesUnordered,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    raised,
    script::{LuaDeclarations, LuaScript, Print, Reason},
    shared_vm::{InlineEnd, SharedVm},
    vm::{HandlerCall, Vm},
};
use crate::call::Invocation;
use crate::heap;
use crate::logic::handlers::{
    handler::Kind,
    outcome::{CallEnd, Raised},
};
use crate::scripting::LoadError;
use crate::telemetry::ScriptUsage;

/// Maximum number of requests in the queue. When it is full, callers wait: more requests would not make a slow VM faster.
pub(super) const QUEUE_MAX: usize = 1024;
/// Maximum number of calls in the VM, most of them waiting. Beyond it, requests wait in the queue.
const CALLS_MAX: usize = 100_000;

/// The VM of an actor.
pub(super) type ActorVm = SharedVm<Answering>;

/// The channel of a response. Boxed, because most requests have no response yet.
pub(super) type To<T> = oneshot::Sender<Box<T>>;

/// A request to a script.
pub(super) enum ActorRequest {
    /// Call the function of a handler, and return how the call ended.
    Call(Arc<Invocation>, To<CallEnd>),
    /// Call another function: see [`job`].
    Other(Job),
}

/// Begins a call in a VM, or responds with the error that there is no VM.
pub(super) type Job = Box<dyn FnOnce(Result<Rc<Vm>, Raised>) -> LocalBoxFuture<'static, ()> + Send>;

/// Returns a job that begins a call with `begin` and sends its result to `to`.
pub(super) fn job<T: 'static>(
    to: To<Result<T, Raised>>,
    begin: impl FnOnce(Rc<Vm>) -> LocalBoxFuture<'static, Result<T, Raised>> + Send + 'static,
) -> Job
where
    To<Result<T, Raised>>: Send,
{
    Box::new(move |vm| match vm {
        Ok(vm) => match reply(to, Err, || begin(vm)) {
            Some(reply) => Box::pin(reply),
            None => Box::pin(future::ready(())),
        },
        Err(raised) => {
            // The caller may have cancelled the call.
            drop(to.send(Box::new(Err(raised))));
            Box::pin(future::ready(()))
        }
    })
}

/// The channel that reports the result of loading.
pub(super) type Loading = oneshot::Sender<Result<LuaDeclarations, LoadError>>;

/// How an actor starts.
pub(super) enum Start {
    /// The first load: its result is sent here.
    First(Loading),
    /// Replaces an actor whose VM had these declarations.
    Again(Print),
}

/// Number of requests that leave enough garbage for a full collection, which takes up to about 10 ms…
const RUSH: usize = 500;
/// … once no request has come for this time.
const QUIET: Duration = Duration::from_secs(3);

/// How long until a script that could not be restarted is loaded again. Meanwhile its calls fail.
const BROKEN: Duration = Duration::from_secs(10);

/// Loads a script and serves its calls until all senders are dropped.
///
/// `stuck` is cancelled when the VM does not respond; the actor is then abandoned.
pub(super) async fn live(
    script: Arc<LuaScript>,
    shared: Arc<ActorVm>,
    start: Start,
    requests: mpsc::Receiver<ActorRequest>,
    stuck: CancellationToken,
) {
    shared.turns(pin!(serve_all(&script, &shared, start, requests, stuck))).await;
}

async fn serve_all(
    script: &Arc<LuaScript>,
    shared: &ActorVm,
    start: Start,
    mut requests: mpsc::Receiver<ActorRequest>,
    stuck: CancellationToken,
) {
    let (mut present, print) = match start {
        Start::First(mut loading) => match load_for(&mut loading, script, &stuck).await {
            Some(Ok((vm, declared))) => {
                let print = Print::of(&declared);
                if loading.send(Ok(declared)).is_err() {
                    return;
                }
                (Some(vm), print)
            }
            // The caller may no longer wait for the script.
            Some(Err(error)) => return drop(loading.send(Err(error))),
            None => return,
        },
        Start::Again(print) => (None, print),
    };
    loop {
        let vm = match present.take() {
            Some(vm) => vm,
            None => match load_again(script, &print, &stuck).await {
                Ok(vm) => vm,
                Err(problem) => {
                    script.broken(&problem);
                    match refuse(&mut requests, &problem).await {
                        ServingEnd::Unused => return,
                        ServingEnd::Renewed => continue,
                    }
                }
            },
        };
        shared.set_vm(Some(Rc::clone(&vm)));
        let end = serve(vm, shared, &mut requests, &script.usage).await;
        shared.set_vm(None);
        match end {
            ServingEnd::Unused => return,
            ServingEnd::Renewed => script.replaced(Reason::Memory),
        }
    }
}

/// Why a loop that serves requests ends.
enum ServingEnd {
    /// All senders are dropped.
    Unused,
    /// Another VM must be loaded.
    Renewed,
}

/// Loads a script; returns `None` if its caller no longer waits.
async fn load_for(
    loading: &mut Loading,
    script: &Arc<LuaScript>,
    stuck: &CancellationToken,
) -> Option<Result<(Rc<Vm>, LuaDeclarations), LoadError>> {
    tokio::select! {
        // First: a load that was cancelled must not take another step.
        biased;
        () = loading.closed() => None,
        loaded = load(script, stuck) => Some(loaded),
    }
}

async fn load(
    script: &Arc<LuaScript>,
    stuck: &CancellationToken,
) -> Result<(Rc<Vm>, LuaDeclarations), LoadError> {
    script.examine_text();
    let loaded = AssertUnwindSafe(Vm::load(script, stuck.clone())).catch_unwind().await;
    loaded.unwrap_or_else(|_| {
        Err(LoadError {
            file: script.source.name.clone(),
            line: None,
            columns: None,
            source_line: None,
            message: "internal error while loading the script".into(),
            hint: None,
        })
    })
}

/// Loads a VM that replaces another. Functions are identified by their position among the declarations, so these must be equal.
async fn load_again(
    script: &Arc<LuaScript>,
    print: &Print,
    stuck: &CancellationToken,
) -> Result<Rc<Vm>, String> {
    let (vm, declared) = load(script, stuck).await.map_err(|it| it.message)?;
    if Print::of(&declared) == *print {
        Ok(vm)
    } else {
        Err("the top level declares different handlers on each run".into())
    }
}

async fn serve(
    vm: Rc<Vm>,
    shared: &ActorVm,
    requests: &mut mpsc::Receiver<ActorRequest>,
    usage: &ScriptUsage,
) -> ServingEnd {
    usage.set_memory(vm.lua().used_memory());
    let mut calls = FuturesUnordered::new();
    // The number of requests since the last collection: in total, and when the timer last fired.
    let (mut begun, mut seen) = (0, 0);
    let mut quiet = pin!(tokio::time::sleep(QUIET));
    loop {
        // The other calls are dropped with the VM; their callers receive an error.
        if vm.is_exhausted() {
            return ServingEnd::Renewed;
        }
        let (moved, inline) = shared.take_moved();
        calls.extend(moved);
        if begun < RUSH && begun + inline >= RUSH {
            quiet.as_mut().reset(Instant::now() + QUIET);
        }
        begun += inline;
        tokio::select! {
            // Calls that can continue do so before new ones start.
            biased;
            Some(()) = calls.next(), if !calls.is_empty() => {
                usage.set_memory(vm.lua().used_memory());
            }
            // Inline calls have moved here, or were many.
            () = shared.woken() => {}
            request = requests.recv(), if calls.len() < CALLS_MAX => match request {
                Some(request) => {
                    let is_daemon = request.is_of_daemon();
                    begun += 1;
                    if begun == RUSH {
                        quiet.as_mut().reset(Instant::now() + QUIET);
                    }
                    let begin = || calls.push(answer(Rc::clone(&vm), request));
                    if is_daemon { heap::lasting(begin) } else { begin() }
                }
                // Each caller that waits for a response holds a sender, so no call is left that anyone waits for.
                None => return ServingEnd::Unused,
            },
            // Only when there is nothing else to do.
            () = &mut quiet, if begun >= RUSH => {
                if begun + shared.calls() == seen {
                    vm.tidy();
                    (begun, seen) = (0, 0);
                } else {
                    seen = begun;
                    quiet.as_mut().reset(Instant::now() + QUIET);
                }
            }
        }
    }
}

/// Fails all calls until it is time to load the script again.
async fn refuse(requests: &mut mpsc::Receiver<ActorRequest>, problem: &str) -> ServingEnd {
    let over = tokio::time::sleep(BROKEN);
    let mut over = pin!(over);
    loop {
        tokio::select! {
            // The order makes no difference: neither can starve the other.
            biased;
            () = &mut over => return ServingEnd::Renewed,
            request = requests.recv() => match request {
                Some(request) => request.refuse(raised::of_broken_script(problem)),
                None => return ServingEnd::Unused,
            },
        }
    }
}

impl ActorRequest {
    /// Returns whether this is the call of a daemon, which may wait for long.
    fn is_of_daemon(&self) -> bool {
        matches!(self, ActorRequest::Call(call, _) if call.handler.kind == Kind::Daemon)
    }

    fn refuse(self, raised: Raised) {
        match self {
            // The caller may have cancelled the call.
            ActorRequest::Call(_, to) => drop(to.send(Box::new(CallEnd::Raised(raised)))),
            ActorRequest::Other(job) => drop(job(Err(raised))),
        }
    }
}

/// The future of a request. Calls of handlers are stored inline, because very many may wait.
pub(super) enum Answering {
    Call(ActorReply<CallEnd, HandlerCall>),
    Other(LocalBoxFuture<'static, ()>),
}

impl Future for Answering {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.get_mut() {
            Answering::Call(it) => it.poll_unpin(cx),
            Answering::Other(it) => it.poll_unpin(cx),
        }
    }
}

/// Begins a request inline; returns it if the actor must begin it.
pub(super) fn begin_inline(shared: &ActorVm, request: ActorRequest) -> Option<ActorRequest> {
    let ActorRequest::Call(invocation, to) = request else { return Some(request) };
    let mut to = Some(to);
    let begin = |vm: &Rc<Vm>| vm.call(Arc::clone(&invocation));
    let moved = |call| Answering::Call(ActorReply { call, to: to.take(), broken: CallEnd::Raised });
    let end = match shared.run(&invocation, begin, moved) {
        InlineEnd::NotInline => return Some(ActorRequest::Call(invocation, to?)),
        InlineEnd::Moved => return None,
        InlineEnd::Ended(end) => end,
        InlineEnd::Panicked => CallEnd::Raised(panicked()),
    };
    // The caller is this one.
    drop(to?.send(Box::new(end)));
    None
}

/// Begins a request in a VM.
fn answer(vm: Rc<Vm>, request: ActorRequest) -> Answering {
    match request {
        ActorRequest::Call(invocation, to) => {
            let call = reply(to, CallEnd::Raised, || vm.call(invocation));
            call.map_or_else(|| Answering::Other(Box::pin(future::ready(()))), Answering::Call)
        }
        ActorRequest::Other(job) => Answering::Other(job(Ok(vm))),
    }
}

/// Begins a call that runs until it ends or its caller drops it. A panic of the host ends only this call; if it panics right at the start,
/// the error is sent at once.
fn reply<T, F>(
    to: To<T>,
    broken: fn(Raised) -> T,
    begin: impl FnOnce() -> F,
) -> Option<ActorReply<T, F>> {
    // No code of the script runs yet: a call that was cancelled meanwhile is noticed before its first step.
    if let Ok(call) = panic::catch_unwind(AssertUnwindSafe(begin)) {
        Some(ActorReply { call, to: Some(to), broken })
    } else {
        drop(to.send(Box::new(broken(panicked()))));
        None
    }
}

/// A call and the channel of its result.
pub(super) struct ActorReply<T, F> {
    call: F,
    /// `None` once the result is sent.
    to: Option<To<T>>,
    broken: fn(Raised) -> T,
}

// The call is never pinned through the reply.
impl<T, F: Unpin> Unpin for ActorReply<T, F> {}

impl<T, F: Future<Output = T> + Unpin> Future for ActorReply<T, F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // A cancelled call must not take another step.
        if self.to.as_mut().is_none_or(|it| it.poll_closed(cx).is_ready()) {
            return Poll::Ready(());
        }
        let polled = panic::catch_unwind(AssertUnwindSafe(|| self.call.poll_unpin(cx)));
        let result = match polled {
            Ok(polled) => ready!(polled),
            Err(_) => (self.broken)(panicked()),
        };
        if let Some(to) = self.to.take() {
            // The caller may have cancelled the call meanwhile.
            drop(to.send(Box::new(result)));
        }
        Poll::Ready(())
    }
}

fn panicked() -> Raised {
    Raised::of_host("internal error in this call; please report it")
}
