//! The life of one script: a VM, and the calls that run in it side by side.
//!
//! The VM belongs to one thread, so it is an actor: requests go in through a bounded queue, answers come back through
//! channels of their own. Calls are coroutines; while one waits, the others go on. The same async function runs on a thread
//! of its own in production, and on the caller's runtime where the clock may be paused.

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
    script::{Declared, Print, Reason, Script},
    vm::{Calling, Vm},
};
use crate::call::Invocation;
use crate::logic::handlers::outcome::{Ended, Raised};
use crate::scripting::LoadError;
use crate::telemetry::ScriptUsage;

/// Requests on the way to the VM. At the bound, callers wait: a VM that is this far behind gets no faster by more.
pub(super) const QUEUE_MAX: usize = 1024;
/// Calls in the VM at once, most of them waiting. At the bound, requests wait in the queue.
const CALLS_MAX: usize = 100_000;

/// The channel of a response. Boxed, because most of the time there is no response yet.
pub(super) type To<T> = oneshot::Sender<Box<T>>;

/// A request to a script.
pub(super) enum Request {
    /// Call a handler.
    Call(Arc<Invocation>, To<Ended>),
    /// Call another function: see [`job`].
    Other(Job),
}

/// Begins a call in a VM, or responds with the reason why there is no VM.
pub(super) type Job = Box<dyn FnOnce(Result<Rc<Vm>, Raised>) -> LocalBoxFuture<'static, ()> + Send>;

/// Returns the job of a call that is begun with this, and answered here.
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
            // Whoever asked may have gone.
            drop(to.send(Box::new(Err(raised))));
            Box::pin(future::ready(()))
        }
    })
}

/// The way of the result of loading to who waits for it.
pub(super) type Loading = oneshot::Sender<Result<Declared, LoadError>>;

/// How the life of a script begins.
pub(super) enum Start {
    /// For the first time: who waits gets what it declares.
    First(Loading),
    /// In the place of a VM that declared this.
    Again(Print),
}

/// So many requests leave garbage behind that is worth a full collection, which takes up to some ten milliseconds…
const RUSH: usize = 500;
/// … when none has come for so long.
const QUIET: Duration = Duration::from_secs(3);

/// A script that could not be started afresh is tried again after this time. Until then its calls fail.
const BROKEN: Duration = Duration::from_secs(10);

/// Loads a script and serves its calls until nobody can send any.
///
/// `stuck` is cancelled when the VM no longer listens; then nobody listens to this any more either.
pub(super) async fn live(
    script: Arc<Script>,
    start: Start,
    mut requests: mpsc::Receiver<Request>,
    stuck: CancellationToken,
) {
    let (mut present, print) = match start {
        Start::First(mut loading) => match load_for(&mut loading, &script, &stuck).await {
            Some(Ok((vm, declared))) => {
                let print = Print::of(&declared);
                if loading.send(Ok(declared)).is_err() {
                    return;
                }
                (Some(vm), print)
            }
            // Perhaps nobody waits for the script any more.
            Some(Err(error)) => return drop(loading.send(Err(error))),
            None => return,
        },
        Start::Again(print) => (None, print),
    };
    loop {
        let vm = match present.take() {
            Some(vm) => vm,
            None => match load_again(&script, &print, &stuck).await {
                Ok(vm) => vm,
                Err(problem) => {
                    script.broken(&problem);
                    match refuse(&mut requests, &problem).await {
                        End::Unused => return,
                        End::Renewed => continue,
                    }
                }
            },
        };
        match serve(vm, &mut requests, &script.usage).await {
            End::Unused => return,
            End::Renewed => script.replaced(Reason::Memory),
        }
    }
}

/// How a VM's service ends.
enum End {
    /// Nobody can send requests.
    Unused,
    /// Another VM takes its place.
    Renewed,
}

/// Loads a script; returns `None` if its caller no longer waits.
async fn load_for(
    loading: &mut Loading,
    script: &Arc<Script>,
    stuck: &CancellationToken,
) -> Option<Result<(Rc<Vm>, Declared), LoadError>> {
    tokio::select! {
        // First: what nobody waits for takes not another step.
        biased;
        () = loading.closed() => None,
        loaded = load(script, stuck) => Some(loaded),
    }
}

async fn load(
    script: &Arc<Script>,
    stuck: &CancellationToken,
) -> Result<(Rc<Vm>, Declared), LoadError> {
    let loaded = AssertUnwindSafe(Vm::load(script, stuck.clone())).catch_unwind().await;
    loaded.unwrap_or_else(|_| {
        Err(LoadError {
            file: script.source.name.clone(),
            line: None,
            columns: None,
            source_line: None,
            message: "the host failed while it loaded the script".into(),
            hint: None,
        })
    })
}

/// Loads a VM that replaces another. Functions are identified by their places among the declarations, so these must be the same.
async fn load_again(
    script: &Arc<Script>,
    print: &Print,
    stuck: &CancellationToken,
) -> Result<Rc<Vm>, String> {
    let (vm, declared) = load(script, stuck).await.map_err(|it| it.message)?;
    if Print::of(&declared) == *print {
        Ok(vm)
    } else {
        Err("its top level declares other handlers each time it runs".into())
    }
}

async fn serve(vm: Rc<Vm>, requests: &mut mpsc::Receiver<Request>, usage: &ScriptUsage) -> End {
    usage.set_memory(vm.lua().used_memory());
    let mut calls = FuturesUnordered::new();
    // Since garbage was last collected, and until when there was no news.
    let (mut begun, mut seen) = (0, 0);
    let mut quiet = pin!(tokio::time::sleep(QUIET));
    loop {
        tokio::select! {
            // Calls that can go on do so before new ones start.
            biased;
            Some(()) = calls.next(), if !calls.is_empty() => {
                usage.set_memory(vm.lua().used_memory());
                // The other calls go with the VM: whoever waits for them is told so.
                if vm.is_exhausted() {
                    return End::Renewed;
                }
            }
            request = requests.recv(), if calls.len() < CALLS_MAX => match request {
                Some(request) => {
                    begun += 1;
                    if begun == RUSH {
                        quiet.as_mut().reset(Instant::now() + QUIET);
                    }
                    calls.push(answer(Rc::clone(&vm), request));
                }
                // Whoever waits for an answer holds the other end, so no call is left that anybody waits for.
                None => return End::Unused,
            },
            // When there is nothing else to do.
            () = &mut quiet, if begun >= RUSH => {
                if begun == seen {
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

/// Fails all calls for a while.
async fn refuse(requests: &mut mpsc::Receiver<Request>, problem: &str) -> End {
    let over = tokio::time::sleep(BROKEN);
    let mut over = pin!(over);
    loop {
        tokio::select! {
            // The order makes no difference: either comes soon again.
            biased;
            () = &mut over => return End::Renewed,
            request = requests.recv() => match request {
                Some(request) => request.refuse(raised::of_broken_script(problem)),
                None => return End::Unused,
            },
        }
    }
}

impl Request {
    fn refuse(self, raised: Raised) {
        match self {
            // Whoever asked may have gone.
            Request::Call(_, to) => drop(to.send(Box::new(Ended::Raised(raised)))),
            Request::Other(job) => drop(job(Err(raised))),
        }
    }
}

/// What becomes of a request. Calls of handlers are in here themselves: there may be very many that wait.
enum Answering {
    Call(Reply<Ended, Calling>),
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

fn answer(vm: Rc<Vm>, request: Request) -> Answering {
    match request {
        Request::Call(invocation, to) => {
            let call = reply(to, Ended::Raised, || vm.call(invocation));
            call.map_or_else(|| Answering::Other(Box::pin(future::ready(()))), Answering::Call)
        }
        Request::Other(job) => Answering::Other(job(Ok(vm))),
    }
}

/// Begins a call, to be run until it ends or nobody waits for it any more. A panic of the host ends this call only; if that
/// comes at once, the answer is given.
fn reply<T, F>(
    to: To<T>,
    broken: fn(Raised) -> T,
    begin: impl FnOnce() -> F,
) -> Option<Reply<T, F>> {
    // Nothing of the script runs yet: who has gone meanwhile is noticed first.
    if let Ok(call) = panic::catch_unwind(AssertUnwindSafe(begin)) {
        Some(Reply { call, to: Some(to), broken })
    } else {
        drop(to.send(Box::new(broken(panicked()))));
        None
    }
}

/// A call and who waits for it.
struct Reply<T, F> {
    call: F,
    /// `None` when it was answered.
    to: Option<To<T>>,
    broken: fn(Raised) -> T,
}

// The call is not pinned by the reply.
impl<T, F: Unpin> Unpin for Reply<T, F> {}

impl<T, F: Future<Output = T> + Unpin> Future for Reply<T, F> {
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
            // The caller may have gone in the meantime.
            drop(to.send(Box::new(result)));
        }
        Poll::Ready(())
    }
}

fn panicked() -> Raised {
    Raised::of_host("the host failed in this call")
}
