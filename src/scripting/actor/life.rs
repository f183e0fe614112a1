//! The actor of one script: a VM, and the calls that run in it concurrently.
//!
//! The VM belongs to one thread, so it is an actor: requests arrive through a bounded queue, and each response has its own channel. Calls
//! are coroutines; while one waits, the others continue. The same async function runs on a separate thread in production, and on the
//! caller's runtime where the clock may be paused.

use std::{panic::AssertUnwindSafe, pin::pin, rc::Rc, sync::Arc, time::Duration};

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
    ActorVm, of_broken_script,
    reply::{Answering, To, reply},
    script::{ActorScript, Declarations, Print, Reason},
    shared_vm::SharedVm,
};
use crate::call::{Invocation, PatchBudget};
use crate::heap;
use crate::logic::handlers::outcome::{CallEnd, Raised};
use crate::scripting::LoadError;

/// Maximum number of requests in the queue. When it is full, callers wait: more requests would not make a slow VM faster.
pub(super) const QUEUE_MAX: usize = 1024;
/// Maximum number of calls in the VM, most of them waiting. Beyond it, requests wait in the queue.
const CALLS_MAX: usize = 100_000;

/// A request to a script.
pub(super) enum ActorRequest<V> {
    /// Call the function of a handler, and return how the call ended.
    Call(Arc<Invocation>, To<CallEnd>),
    /// Call another function: see [`job`].
    Other(Job<V>),
}

/// Begins a call in a VM, or responds with the error that there is no VM.
pub(super) type Job<V> =
    Box<dyn FnOnce(Result<Rc<V>, Raised>) -> LocalBoxFuture<'static, ()> + Send>;

/// Returns a job that begins a call with `begin` and sends its result to `to`.
pub(super) fn job<V: 'static, T: 'static>(
    to: To<Result<T, Raised>>,
    begin: impl FnOnce(Rc<V>) -> LocalBoxFuture<'static, Result<T, Raised>> + Send + 'static,
) -> Job<V>
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
pub(super) type Loading = oneshot::Sender<Result<Declarations, LoadError>>;

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
pub(super) async fn live<V: ActorVm>(
    script: Arc<ActorScript>,
    shared: Arc<SharedVm<V>>,
    start: Start,
    requests: mpsc::Receiver<ActorRequest<V>>,
    stuck: CancellationToken,
) {
    shared.turns(pin!(serve_all(&script, &shared, start, requests, stuck))).await;
}

async fn serve_all<V: ActorVm>(
    script: &Arc<ActorScript>,
    shared: &SharedVm<V>,
    start: Start,
    mut requests: mpsc::Receiver<ActorRequest<V>>,
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
        let end = serve(vm, shared, &mut requests, script).await;
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
async fn load_for<V: ActorVm>(
    loading: &mut Loading,
    script: &Arc<ActorScript>,
    stuck: &CancellationToken,
) -> Option<Result<(Rc<V>, Declarations), LoadError>> {
    tokio::select! {
        // First: a load that was cancelled must not take another step.
        biased;
        () = loading.closed() => None,
        loaded = load(script, stuck) => Some(loaded),
    }
}

async fn load<V: ActorVm>(
    script: &Arc<ActorScript>,
    stuck: &CancellationToken,
) -> Result<(Rc<V>, Declarations), LoadError> {
    script.examine_text();
    let loaded = AssertUnwindSafe(V::load(script, stuck.clone())).catch_unwind().await;
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
async fn load_again<V: ActorVm>(
    script: &Arc<ActorScript>,
    print: &Print,
    stuck: &CancellationToken,
) -> Result<Rc<V>, String> {
    let (vm, declared) = load(script, stuck).await.map_err(|it| it.message)?;
    if Print::of(&declared) == *print {
        Ok(vm)
    } else {
        Err("the top level declares different handlers on each run".into())
    }
}

async fn serve<V: ActorVm>(
    vm: Rc<V>,
    shared: &SharedVm<V>,
    requests: &mut mpsc::Receiver<ActorRequest<V>>,
    ActorScript { usage, memos, .. }: &ActorScript,
) -> ServingEnd {
    usage.set_memory(vm.used_memory());
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
                usage.set_memory(vm.used_memory());
            }
            // Inline calls have moved here, or were many.
            () = shared.woken() => {}
            request = requests.recv(), if calls.len() < CALLS_MAX => match request {
                Some(request) => {
                    let may_wait_long = request.may_wait_long();
                    begun += 1;
                    if begun == RUSH {
                        quiet.as_mut().reset(Instant::now() + QUIET);
                    }
                    let begin = || calls.push(answer(Rc::clone(&vm), request, memos.patches()));
                    heap::lasting_if(may_wait_long, begin);
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
async fn refuse<V>(requests: &mut mpsc::Receiver<ActorRequest<V>>, problem: &str) -> ServingEnd {
    let over = tokio::time::sleep(BROKEN);
    let mut over = pin!(over);
    loop {
        tokio::select! {
            // The order makes no difference: neither can starve the other.
            biased;
            () = &mut over => return ServingEnd::Renewed,
            request = requests.recv() => match request {
                Some(request) => request.refuse(of_broken_script(problem)),
                None => return ServingEnd::Unused,
            },
        }
    }
}

impl<V> ActorRequest<V> {
    fn may_wait_long(&self) -> bool {
        matches!(self, ActorRequest::Call(call, _) if call.may_wait_long())
    }

    fn refuse(self, raised: Raised) {
        match self {
            // The caller may have cancelled the call.
            ActorRequest::Call(_, to) => drop(to.send(Box::new(CallEnd::Raised(raised)))),
            ActorRequest::Other(job) => drop(job(Err(raised))),
        }
    }
}

/// Begins a request in a VM. If many patches of the script are not sent yet, it may wait first.
fn answer<V: ActorVm>(
    vm: Rc<V>,
    request: ActorRequest<V>,
    patches: &Arc<PatchBudget>,
) -> Answering<V> {
    match request {
        ActorRequest::Call(invocation, mut to) if invocation.waits_for(patches) => {
            let wait = Arc::clone(patches).wait();
            Answering::Other(Box::pin(async move {
                tokio::select! {
                    biased; // a cancelled call must not begin
                    () = to.closed() => return,
                    () = wait => {}
                }
                if let Some(reply) = reply(to, CallEnd::Raised, || vm.call(invocation)) {
                    reply.await;
                }
            }))
        }
        ActorRequest::Call(invocation, to) => {
            let call = reply(to, CallEnd::Raised, || vm.call(invocation));
            call.map_or_else(|| Answering::Other(Box::pin(future::ready(()))), Answering::Call)
        }
        ActorRequest::Other(job) => Answering::Other(job(Ok(vm))),
    }
}
