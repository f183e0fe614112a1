//! The life of one script: a VM, and the calls that run in it side by side.
//!
//! The VM belongs to one thread, so it is an actor: requests go in through a bounded queue, answers come back through
//! channels of their own. Calls are coroutines; while one waits, the others go on. The same async function runs on a thread
//! of its own in production, and on the caller's runtime where the clock may be paused.

use std::{
    future::Future,
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    rc::Rc,
    sync::Arc,
};

use futures::{FutureExt as _, StreamExt as _, future::LocalBoxFuture, stream::FuturesUnordered};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::{raised, vm::Vm};
use crate::logic::{
    filters::Question,
    function::{Function, ScriptId},
    handler::Handler,
    lifecycle::Chooser,
    outcome::{Ended, Raised},
    resource::Resource,
};
use crate::ports::Invocation;
use crate::scripting::{LoadError, Source, Terms};

/// Requests on the way to the VM. At the bound, callers wait: a VM that is this far behind gets no faster by more.
pub(super) const QUEUE_MAX: usize = 1024;
/// Calls in the VM at once, most of them waiting. At the bound, requests wait in the queue.
const CALLS_MAX: usize = 100_000;

/// What is asked of a script.
pub(super) enum Request {
    /// Call a handler.
    Call(Arc<Invocation>, oneshot::Sender<Ended>),
    /// Ask a filter.
    Ask(Question, Arc<Invocation>, oneshot::Sender<Result<bool, Raised>>),
    /// Ask the function of a selector.
    Choose(Function, Arc<Resource>, oneshot::Sender<Result<bool, Raised>>),
    /// Call a function for what it returns.
    Compute(Function, Option<Value>, Arc<Invocation>, oneshot::Sender<Result<Value, Raised>>),
    /// Transform a body.
    Transform(Function, Value, oneshot::Sender<Result<Value, Raised>>),
}

/// The result of loading.
pub(super) type Loading = oneshot::Sender<Result<Declared, LoadError>>;
/// What the top level of a script declared: its handlers and the default lifecycles it set, each in order.
pub(super) type Declared = (Vec<Handler>, Vec<Chooser>);

/// Loads a script and serves its calls until nobody can send any.
pub(super) async fn live(
    (script, source, terms): (ScriptId, Source, Terms),
    mut loading: Loading,
    requests: mpsc::Receiver<Request>,
) {
    let loaded = AssertUnwindSafe(Vm::load(script, &source, &terms)).catch_unwind();
    let loaded = tokio::select! {
        // First: what nobody waits for takes not another step.
        biased;
        () = loading.closed() => return,
        loaded = loaded => loaded,
    };
    let loaded = loaded.unwrap_or_else(|_| {
        Err(LoadError {
            file: source.name.clone(),
            line: None,
            source_line: None,
            message: "the host failed while it loaded the script".into(),
            hint: None,
        })
    });
    match loaded {
        Ok((vm, declared)) => {
            if loading.send(Ok(declared)).is_ok() {
                serve(Rc::new(vm), requests).await;
            }
        }
        // Nobody waits for the script any more.
        Err(error) => drop(loading.send(Err(error))),
    }
}

async fn serve(vm: Rc<Vm>, mut requests: mpsc::Receiver<Request>) {
    let mut calls = FuturesUnordered::new();
    loop {
        tokio::select! {
            // Calls that can go on do so before new ones start.
            biased;
            Some(()) = calls.next(), if !calls.is_empty() => {}
            request = requests.recv(), if calls.len() < CALLS_MAX => match request {
                Some(request) => calls.push(answer(Rc::clone(&vm), request)),
                // Whoever waits for an answer holds the other end, so no call is left that anybody waits for.
                None => return,
            },
        }
    }
}

/// A future for each request, of its own size: there may be very many that wait.
fn answer(vm: Rc<Vm>, request: Request) -> LocalBoxFuture<'static, ()> {
    match request {
        Request::Call(invocation, to) => {
            Box::pin(async move { reply(to, pin!(vm.call(invocation)), Ended::Raised).await })
        }
        Request::Ask(question, invocation, to) => {
            Box::pin(async move { reply(to, pin!(vm.ask(question, invocation)), Err).await })
        }
        Request::Choose(function, resource, to) => {
            Box::pin(async move { reply(to, pin!(vm.choose(function, resource)), Err).await })
        }
        Request::Compute(function, about, invocation, to) => Box::pin(async move {
            reply(to, pin!(vm.compute(function, about, invocation)), Err).await;
        }),
        Request::Transform(function, body, to) => {
            Box::pin(async move { reply(to, pin!(vm.transform(function, body)), Err).await })
        }
    }
}

/// Runs a call until it ends or nobody waits for it any more. A panic of the host ends this call only.
async fn reply<T>(
    mut to: oneshot::Sender<T>,
    call: Pin<&mut dyn Future<Output = T>>,
    broken: impl FnOnce(Raised) -> T,
) {
    let result = tokio::select! {
        // First: a cancelled call must not take another step.
        biased;
        () = to.closed() => return,
        result = AssertUnwindSafe(call).catch_unwind() => result,
    };
    let result = result.unwrap_or_else(|_| broken(raised::of_host("the host failed in this call")));
    // The caller may have gone in the meantime.
    drop(to.send(result));
}
