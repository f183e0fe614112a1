//! A VM that two threads use in turn: its actor, and the one on which inline calls are awaited.
//!
//! A call that begins inline and takes long, or waits, moves to the thread of the script: it is a coroutine, which can be suspended at each
//! loop iteration and call, and continues anywhere. The VM is not thread-safe, so both threads use it only under the lock of their `SharedVm`.
#![expect(unsafe_code, reason = "two threads take turns in using the VM")]

use std::{
    cell::RefCell,
    future::Future,
    panic::{self, AssertUnwindSafe},
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use futures::FutureExt as _;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::{
    ActorVm,
    functions::LENT,
    reply::{ActorReply, Answering, panicked},
};
use crate::call::Invocation;
use crate::logic::handlers::outcome::CallEnd;
use crate::scripting::inline::{self, InlineShare, InlineSlice, LONG, LongFunctions, RealInstant};
use crate::telemetry::ScriptUsage;

/// Number of inline calls after which the actor is woken to count them.
const COUNTED: usize = 500;

/// What has become of a call that was to begin inline.
pub(super) enum InlineCall {
    Ended(CallEnd),
    /// It continues on the thread of the script, which will send its result.
    Moved(oneshot::Receiver<Box<CallEnd>>),
    /// The actor must make the call, from the beginning if it was aborted here.
    Refused,
}

/// A VM that its actor and inline calls use in turn.
pub(super) struct SharedVm<V: ActorVm> {
    turn: Mutex<()>,
    /// Only used by the holder of the turn.
    state: RefCell<SharedVmState<V>>,
    /// Wakes the actor.
    woken: Notify,
    usage: ScriptUsage,
    /// Whether results may depend on time.
    is_timed: bool,
}

// SAFETY: everything that is not thread-safe, which is the VM and all that refers to it, is used only by the holder of the turn: the actor,
// whose future is polled in `Turns`, and `SharedVm::run`. What leaves them is `Send`, because it passes through channels. The last owner
// drops what is left of it.
unsafe impl<V: ActorVm> Send for SharedVm<V> {}
// SAFETY: as above.
unsafe impl<V: ActorVm> Sync for SharedVm<V> {}

struct SharedVmState<V: ActorVm> {
    vm: Option<Rc<V>>,
    /// The calls that continue on the thread of the script.
    moved: Vec<Answering<V>>,
    functions: LongFunctions,
    share: InlineShare,
    /// The number of inline calls that the actor has not counted yet.
    calls: usize,
}

impl<V: ActorVm> Default for SharedVmState<V> {
    fn default() -> Self {
        let (functions, share) = (LongFunctions::default(), InlineShare::default());
        SharedVmState { vm: None, moved: Vec::new(), functions, share, calls: 0 }
    }
}

impl<V: ActorVm> SharedVm<V> {
    /// Creates it without a VM.
    pub(super) fn new(usage: ScriptUsage, is_timed: bool) -> Self {
        let (turn, state, woken) = (Mutex::default(), RefCell::default(), Notify::new());
        SharedVm { turn, state, woken, usage, is_timed }
    }

    /// Runs the life of an actor, taking turns with inline calls.
    pub(super) fn turns<'a, F: Future>(&'a self, life: Pin<&'a mut F>) -> Turns<'a, F, V> {
        Turns { shared: self, life }
    }

    /// Makes this VM the one that inline calls use, or ends them. Only for the holder of the turn.
    pub(super) fn set_vm(&self, vm: Option<Rc<V>>) {
        let before = std::mem::take(&mut *self.state.borrow_mut());
        // Dropping a VM may run anything of the host.
        drop(before);
        self.state.borrow_mut().vm = vm;
    }

    /// Takes the calls that were moved to the actor, and the number of calls that were inline. Only for the holder of the turn.
    pub(super) fn take_moved(&self) -> (Vec<Answering<V>>, usize) {
        let mut state = self.state.borrow_mut();
        (std::mem::take(&mut state.moved), std::mem::take(&mut state.calls))
    }

    /// Returns the number of inline calls since they were last taken. Only for the holder of the turn.
    pub(super) fn calls(&self) -> usize {
        self.state.borrow().calls
    }

    /// Waits until there is something for the actor.
    pub(super) async fn woken(&self) {
        self.woken.notified().await;
    }

    /// Begins a call inline, if that is possible now.
    pub(super) fn run(&self, call: &Arc<Invocation>) -> InlineCall {
        let began = RealInstant::now();
        if call.may_wait_long() || !inline::admits(call) {
            return InlineCall::Refused;
        }
        // Taken if the actor computes, or if this call is awaited by a call of the same script.
        let Some(_turn) = self.turn.try_lock() else { return InlineCall::Refused };
        let Some(vm) = self.admit(call, began) else { return InlineCall::Refused };
        let slice = InlineSlice::new(self.is_timed.then_some(began), vm.used_memory());
        vm.set_inline(Some(slice));
        let polled = panic::catch_unwind(AssertUnwindSafe(|| {
            let mut running = vm.call(Arc::clone(call));
            let polled = running.poll_unpin(&mut Context::from_waker(Waker::noop()));
            (running, polled)
        }));
        let is_aborted = vm.set_inline(None).is_some_and(InlineSlice::is_aborted);
        let is_ended = matches!(polled, Ok((_, Poll::Ready(_))));
        let made = match polled {
            Ok(_) if is_aborted => InlineCall::Refused,
            Ok((running, Poll::Pending)) => {
                let (to, answer) = oneshot::channel();
                let reply = ActorReply::new(running, to, CallEnd::Raised);
                self.state.borrow_mut().moved.push(Answering::Call(reply));
                InlineCall::Moved(answer)
            }
            Ok((_, Poll::Ready(end))) => InlineCall::Ended(end),
            Err(_) => InlineCall::Ended(CallEnd::Raised(panicked())),
        };
        self.usage.set_memory(vm.used_memory());
        self.record(call, (began.elapsed(), is_aborted, is_ended));
        if vm.is_exhausted() {
            self.woken.notify_one();
        }
        made
    }

    /// Returns the VM, if a call may begin inline now.
    fn admit(&self, call: &Invocation, now: RealInstant) -> Option<Rc<V>> {
        let SharedVmState { vm, functions, share, .. } = &mut *self.state.borrow_mut();
        let vm = vm.as_ref().filter(|it| it.is_small())?;
        let slot = call.handler.function.slot;
        let has_room = slot < LENT && (!self.is_timed || share.admits(now));
        (has_room && functions.admit(slot)).then(|| Rc::clone(vm))
    }

    /// Records an inline call: how long it took, whether it was aborted, and whether it has ended.
    fn record(&self, call: &Invocation, (took, is_aborted, is_ended): (Duration, bool, bool)) {
        self.usage.add_time(took);
        let mut state = self.state.borrow_mut();
        state.share.add(took);
        let slot = call.handler.function.slot;
        if is_aborted {
            state.functions.exclude(slot);
        } else {
            state.functions.record(slot, is_ended && !(self.is_timed && took > LONG));
        }
        state.calls += 1;
        if !state.moved.is_empty() || state.calls == COUNTED {
            self.woken.notify_one();
        }
    }
}

/// The life of an actor. Each poll is a turn.
pub(super) struct Turns<'a, F, V: ActorVm> {
    shared: &'a SharedVm<V>,
    life: Pin<&'a mut F>,
}

impl<F: Future, V: ActorVm> Future for Turns<'_, F, V> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Turns { shared, life } = &mut *self;
        let _turn = shared.turn.lock();
        let polled = panic::catch_unwind(AssertUnwindSafe(|| life.as_mut().poll(cx)));
        polled.unwrap_or_else(|panicked| {
            // Only this thread has the VM then, which it drops without the turn.
            drop(shared.state.take());
            panic::resume_unwind(panicked)
        })
    }
}
