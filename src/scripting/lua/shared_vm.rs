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
    task::{Context, Poll, Waker},
    time::Duration,
};

use futures::FutureExt as _;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{vm::Vm, watchdog::INLINE_MEMORY_MAX, world::LENT};
use crate::call::Invocation;
use crate::logic::handlers::handler::Kind;
use crate::scripting::inline::{
    self, InlineShare, InlineSlice, KEPT_MAX, LONG, LongFunctions, RealInstant,
};
use crate::telemetry::ScriptUsage;

/// Number of inline calls after which the actor is woken to count them.
const COUNTED: usize = 500;

/// What became of a call.
pub(super) enum InlineEnd<T> {
    /// The actor must make it, from the beginning if it was aborted.
    NotInline,
    /// It continues there.
    Moved,
    Ended(T),
    /// The host panicked.
    Panicked,
}

/// A VM that its actor and inline calls use in turn.
pub(super) struct SharedVm<C> {
    turn: Mutex<()>,
    /// Only used by the holder of the turn.
    state: RefCell<SharedVmState<C>>,
    /// Wakes the actor.
    woken: Notify,
    usage: ScriptUsage,
    /// Whether results may depend on time.
    is_timed: bool,
}

// SAFETY: everything that is not thread-safe, which is the VM and all that refers to it, is used only by the holder of the turn: the actor,
// whose future is polled in `Turns`, and `SharedVm::run`. What leaves them is `Send`, because it passes through channels. The last owner
// drops what is left of it.
unsafe impl<C> Send for SharedVm<C> {}
// SAFETY: as above.
unsafe impl<C> Sync for SharedVm<C> {}

struct SharedVmState<C> {
    vm: Option<Rc<Vm>>,
    /// The calls that continue on the thread of the script.
    moved: Vec<C>,
    functions: LongFunctions,
    share: InlineShare,
    /// The number of inline calls that the actor has not counted yet.
    calls: usize,
}

impl<C> Default for SharedVmState<C> {
    fn default() -> Self {
        let (functions, share) = (LongFunctions::default(), InlineShare::default());
        SharedVmState { vm: None, moved: Vec::new(), functions, share, calls: 0 }
    }
}

impl<C: Future + Unpin> SharedVm<C> {
    /// Creates it without a VM.
    pub(super) fn new(usage: ScriptUsage, is_timed: bool) -> Self {
        let (turn, state, woken) = (Mutex::default(), RefCell::default(), Notify::new());
        SharedVm { turn, state, woken, usage, is_timed }
    }

    /// Runs the life of an actor, taking turns with inline calls.
    pub(super) fn turns<'a, F: Future>(&'a self, life: Pin<&'a mut F>) -> Turns<'a, F, C> {
        Turns { shared: self, life }
    }

    /// Makes this VM the one that inline calls use, or ends them. Only for the holder of the turn.
    pub(super) fn set_vm(&self, vm: Option<Rc<Vm>>) {
        let before = std::mem::take(&mut *self.state.borrow_mut());
        // Dropping a VM may run anything of the host.
        drop(before);
        self.state.borrow_mut().vm = vm;
    }

    /// Takes the calls that were moved to the actor, and the number of calls that were inline. Only for the holder of the turn.
    pub(super) fn take_moved(&self) -> (Vec<C>, usize) {
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

    /// Begins a call inline with `begin`. If it moves to the actor, `moved` makes its continuation.
    pub(super) fn run<F: Future + Unpin>(
        &self,
        call: &Invocation,
        begin: impl FnOnce(&Rc<Vm>) -> F,
        moved: impl FnOnce(F) -> C,
    ) -> InlineEnd<F::Output> {
        let began = RealInstant::now();
        if call.handler.kind == Kind::Daemon || !inline::admits(call) {
            return InlineEnd::NotInline;
        }
        // Taken if the actor computes, or if this call is awaited by a call of the same script.
        let Some(_turn) = self.turn.try_lock() else { return InlineEnd::NotInline };
        let Some(vm) = self.admit(call, began) else { return InlineEnd::NotInline };
        let meter = vm.watchdog().meter();
        meter.set_inline(Some(InlineSlice::new(self.is_timed.then_some(began))));
        let polled = panic::catch_unwind(AssertUnwindSafe(|| {
            let mut running = begin(&vm);
            let polled = running.poll_unpin(&mut Context::from_waker(Waker::noop()));
            (running, polled)
        }));
        let is_aborted = meter.set_inline(None).is_some_and(InlineSlice::is_aborted);
        let end = match polled {
            Err(_) => InlineEnd::Panicked,
            Ok(_) if is_aborted => InlineEnd::NotInline,
            Ok((_, Poll::Ready(end))) => InlineEnd::Ended(end),
            Ok((running, Poll::Pending)) => {
                self.state.borrow_mut().moved.push(moved(running));
                InlineEnd::Moved
            }
        };
        self.usage.set_memory(vm.lua().used_memory());
        self.record(call, (began.elapsed(), is_aborted, matches!(end, InlineEnd::Ended(_))));
        if vm.is_exhausted() {
            self.woken.notify_one();
        }
        end
    }

    /// Returns the VM, if a call may begin inline now.
    fn admit(&self, call: &Invocation, now: RealInstant) -> Option<Rc<Vm>> {
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
pub(super) struct Turns<'a, F, C> {
    shared: &'a SharedVm<C>,
    life: Pin<&'a mut F>,
}

impl<F: Future, C> Future for Turns<'_, F, C> {
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

impl Vm {
    /// Returns whether no step is long because of the size of what the script holds.
    fn is_small(&self) -> bool {
        !self.is_exhausted()
            && self.lua().used_memory() <= INLINE_MEMORY_MAX
            && self.world().memos.held() <= KEPT_MAX
    }
}
#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread};

    use serde_json::{Value, json};
    use tokio::task::JoinSet;

    use crate::call::{Invocation, Memo, Scripts};
    use crate::logic::{
        handlers::{
            function::ScriptId,
            handler::Handler,
            outcome::{CallEnd, Raised},
        },
        object::Object,
    };
    use crate::scripting::{
        Placement, Source,
        lua::{self, tests::call_about},
    };

    /// The thread of the script.
    const OWN: &str = "lua-1";

    /// A script with handlers, on its own thread.
    struct Running(Arc<dyn Scripts>, Vec<Arc<Handler>>, Memo);

    impl Running {
        /// Loads a script with one handler for each of these bodies of functions.
        async fn load(bodies: &[&str]) -> Self {
            let declared = |(number, body): (usize, &&str)| {
                format!(
                    "kopf.on_create('kopfexamples', {{ id = 'h{number}' }}, function(ctx) {body} end)\n"
                )
            };
            let text = bodies.iter().enumerate().map(declared).collect::<String>();
            let source = Source::alone("handlers.lua", format!("local calls = 0\n{text}"));
            let loaded = lua::load(ScriptId(1), &source, &Placement::Threads.into()).await;
            let loaded = loaded.expect("it loads");
            let handlers = loaded.handlers.into_iter().map(Arc::new).collect();
            Running(loaded.engine, handlers, Memo::default())
        }

        async fn end(&self, handler: usize, body: Value) -> CallEnd {
            let handler = self.1.get(handler).expect("a handler");
            let memo = self.2.clone();
            self.0
                .call(Arc::new(Invocation {
                    memo,
                    ..call_about(handler, Object::from_value(body))
                }))
                .await
        }

        async fn result(&self, handler: usize) -> Value {
            match self.end(handler, json!({ "metadata": { "name": "a" } })).await {
                CallEnd::Returned(result) => result.unwrap_or_default(),
                other @ (CallEnd::Keyed(_) | CallEnd::Raised(_)) => panic!("{other:?}"),
            }
        }

        /// Returns the result of a call that begins here. It begins on the thread of the script while the actor computes, for some moments
        /// after a response, or if calls have taken much time.
        async fn inline(&self, handler: usize) -> Value {
            loop {
                let result = self.result(handler).await;
                if result == here() || result.get(0) == Some(&here()) {
                    return result;
                }
                tokio::task::yield_now().await;
            }
        }
    }

    fn here() -> Value {
        thread::current().name().map_or_else(Value::default, Into::into)
    }

    #[tokio::test]
    async fn a_call_begins_where_it_is_awaited_and_moves_if_it_computes_for_long_or_waits() {
        let computes =
            "local first = thread(); for i = 1, 2000 do calls += 1 end; return { first, thread() }";
        let waits = "local first = thread(); wait_late(1); return { first, thread() }";
        let raises = "for i = 1, 2000 do calls += 1 end; error(thread())";
        let script = Running::load(&["return thread()", computes, waits, raises]).await;
        assert_eq!(script.inline(0).await, here());
        for handler in [1, 2] {
            assert_eq!(script.inline(handler).await, json!([here(), OWN]), "handler {handler}");
        }
        let CallEnd::Raised(Raised { message, .. }) = script.end(3, json!({})).await else {
            panic!("it raises");
        };
        assert_eq!(message, OWN);
    }

    #[tokio::test]
    async fn calls_about_large_values_run_on_the_thread_of_the_script() {
        let remembers = "for i = 1, 15 do ctx.memo['part' .. i] = string.rep('x', 60000) end";
        let holds = "calls = {}; for i = 1, 5 do calls[i] = string.rep('x', 1000000) .. i end";
        for fills in [remembers, holds] {
            let script = Running::load(&["return thread()", fills]).await;
            script.inline(0).await;
            let large = json!({ "spec": { "text": "x".repeat(17_000) } });
            let CallEnd::Returned(Some(thread)) = script.end(0, large).await else {
                panic!("it returns")
            };
            assert_eq!(thread, OWN);
            script.inline(0).await;
            assert_eq!(script.result(1).await, Value::Null);
            for _ in 0..10 {
                assert_eq!(script.result(0).await, OWN, "after {fills}");
            }
        }
    }

    #[tokio::test]
    async fn a_call_that_cannot_be_suspended_is_repeated_on_the_thread_of_the_script() {
        let hides = "calls += 1; local first = thread(); if first ~= 'lua-1' then table['so' .. 'rt']({ 2, 1 }, function() while true do end end) end; return { first, calls }";
        let shares = "calls += 1; local t = { 1 }; for _ = 1, 15 do t = { t, t } end; local copy = kopf.copy(t); return { thread(), calls, #copy }";
        for body in [hides, shares] {
            let script = Running::load(&["return thread()", body]).await;
            // Until a call begins inline: it counts twice.
            let (mut begun, mut counted) = (0, json!(0));
            while counted == json!(begun) {
                script.inline(0).await;
                begun += 1;
                counted = script.result(1).await[1].clone();
            }
            assert_eq!(counted, json!(begun + 1), "{body}");
            for calls in begun + 2..begun + 4 {
                let result = script.result(1).await;
                assert_eq!((&result[0], &result[1]), (&json!(OWN), &json!(calls)), "{body}");
                script.inline(0).await;
            }
        }
    }

    #[tokio::test]
    async fn a_full_memory_is_noticed() {
        let fills = "local t = {}; for i = 1, 900 do t[i] = string.rep('x', 1000 * 1000) .. i end";
        let script = Running::load(&["return thread()", fills, "calls += 1; return calls"]).await;
        script.result(2).await;
        let end = script.end(1, json!({})).await;
        assert!(matches!(end, CallEnd::Raised(_)), "{end:?}");
        assert_eq!(script.result(2).await, 1, "another VM");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn calls_of_many_threads_take_turns() {
        let counts = "calls += 1; if calls % 7 == 0 then wait_late(1) end; if calls % 11 == 0 then for i = 1, 2000 do end end";
        let script = Arc::new(Running::load(&[counts, "return calls"]).await);
        let mut tasks = JoinSet::new();
        for _ in 0..8 {
            let script = Arc::clone(&script);
            tasks.spawn(async move {
                for _ in 0..500 {
                    script.result(0).await;
                }
            });
        }
        tasks.join_all().await;
        assert_eq!(script.result(1).await, 4000);
    }
}
