//! A call that runs in the VM: its coroutine, slice by slice, and what it waits for in between.
//!
//! Many thousands of calls may wait, so a waiting call is little more than its coroutine. The coroutine yields in the prelude, after a
//! function of the host has set what to wait for with [`World::wait_for`](super::world::World::wait_for).

use std::{
    future::Future,
    mem,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures::future::LocalBoxFuture;
use kopf_luau::resume::{Resumed, resume};
use mlua::{
    Function as LuaFunction, IntoLuaMulti, Lua, LuaString, MultiValue, Thread, Value as LuaValue,
};
use tokio::time::Instant;

use super::{
    raised,
    vm::Vm,
    watchdog::{Abort, CpuBudget},
    world::World,
};
use crate::call::Invocation;
use crate::heap;
use crate::scripting::{functions::locking, values::errors::ScriptError};

/// The future that a call waits for, with the result for the script.
pub(super) type LuaWait = LocalBoxFuture<'static, mlua::Result<MultiValue>>;

/// Why a call has no result.
pub(super) enum CallFailure {
    /// The script raised an error.
    Script(ScriptError),
    /// The host aborted it, for example at a limit.
    Aborted(Abort),
}

/// The arguments and the result of a call. Both methods run inside the call and count towards its running time.
pub(super) trait CallPurpose: Unpin {
    /// The arguments, as Lua values.
    type Arguments: IntoLuaMulti;
    /// The outcome of the call.
    type Result;

    /// Returns the arguments of the function; called once.
    fn arguments(
        &mut self,
        lua: &Lua,
        present: Option<&Arc<Invocation>>,
    ) -> mlua::Result<Self::Arguments>;

    /// Converts the result of the function; may call metamethods of the script.
    fn finish(&mut self, world: &World, value: &LuaValue) -> mlua::Result<Self::Result>;
}

/// A call in progress.
pub(super) struct RunningCall<P> {
    vm: Rc<Vm>,
    coroutine: Thread,
    budget: CpuBudget,
    /// What the call is about.
    present: Option<Arc<Invocation>>,
    purpose: P,
    next: CallContinuation,
}

/// How the call continues.
enum CallContinuation {
    /// It begins, with its arguments.
    Begin,
    /// After it has yielded to other calls, with the wait that it had set by then, if any.
    Again(Option<LuaWait>),
    /// After this wait, which began at this time.
    Wait(LuaWait, Instant),
}

/// What a slice begins with.
enum With {
    Arguments,
    Nothing,
    /// The result of the wait.
    Result(mlua::Result<MultiValue>),
}

/// How a slice ended.
enum Slice<T> {
    /// It yields to other calls.
    Interrupted,
    Waits,
    Ended(Result<T, ScriptError>),
}

impl<P: CallPurpose> RunningCall<P> {
    /// Creates a call that has not begun.
    pub(super) fn new(
        vm: Rc<Vm>,
        function: LuaFunction,
        present: Option<Arc<Invocation>>,
        purpose: P,
    ) -> mlua::Result<Self> {
        let coroutine =
            vm.coroutine(function, present.as_ref().is_some_and(|it| it.may_wait_long()))?;
        let (budget, next) = (CpuBudget::default(), CallContinuation::Begin);
        Ok(RunningCall { vm, coroutine, budget, present, purpose, next })
    }

    /// Returns the VM that the call runs in.
    pub(super) fn vm(&self) -> &Vm {
        &self.vm
    }

    fn may_wait_long(&self) -> bool {
        self.present.as_ref().is_some_and(|it| it.may_wait_long())
    }

    /// Runs until the call waits, ends, or yields to other calls. Also returns why it must be aborted, if it must.
    fn slice(&mut self, with: With) -> (Slice<P::Result>, Option<Abort>) {
        let vm = Rc::clone(&self.vm);
        let running = vm.watchdog().begin(&self.coroutine, self.budget);
        vm.world().present.replace(self.present.clone());
        let slice = self.drive(&vm, with).unwrap_or_else(|error| {
            if raised::is_out_of_memory(&LuaValue::Error(Box::new(error.clone()))) {
                vm.world().meter.exhaust();
            }
            Slice::Ended(Err(raised::of_error(vm.world(), &error)))
        });
        vm.world().present.replace(None);
        let (budget, abort) = running.end();
        self.budget = budget;
        (slice, abort)
    }

    /// Returns the error of an aborted call, with the place at which it was aborted.
    fn aborted(&self, slice: Slice<P::Result>, abort: Abort) -> CallFailure {
        let world = self.vm.world();
        let place = world.meter.take_place();
        let first = raised::of_suspended(world, abort, &place);
        match slice {
            Slice::Ended(Err(_)) if first.has_place() => CallFailure::Script(first),
            Slice::Ended(Err(error)) if error.has_place() => {
                CallFailure::Script(error.of_aborted(raised::of_abort(&world.limits, abort)))
            }
            Slice::Ended(Ok(_)) => CallFailure::Aborted(abort),
            // The interrupt may have hit the host's own Lua code: the coroutine still has its stack.
            Slice::Ended(Err(_)) | Slice::Waits | Slice::Interrupted => {
                let stack = world.traceback.get().map(|it| it.call::<String>(&self.coroutine));
                let stack = stack.and_then(Result::ok).unwrap_or_default();
                CallFailure::Script(raised::of_suspended(world, abort, &stack))
            }
        }
    }

    fn drive(&mut self, vm: &Vm, with: With) -> mlua::Result<Slice<P::Result>> {
        let world = vm.world();
        let (lua, coroutine) = (vm.lua(), &self.coroutine);
        let resumed = match with {
            With::Arguments => {
                let is_lasting = self.may_wait_long();
                let arguments = || self.purpose.arguments(lua, self.present.as_ref());
                resume(lua, coroutine, heap::lasting_if(is_lasting, arguments)?)
            }
            With::Nothing => resume(lua, coroutine, ()),
            With::Result(result) => resume(lua, coroutine, result_values(result)),
        };
        match resumed? {
            Resumed::Yielded(value) if value.as_light_userdata() == Some(Lua::poll_pending()) => {
                Ok(Slice::Waits)
            }
            Resumed::Yielded(_) => Ok(Slice::Interrupted),
            Resumed::Returned(value) => {
                vm.spare(self.coroutine.clone());
                self.purpose.finish(world, &value).map(|it| Slice::Ended(Ok(it)))
            }
            Resumed::Raised(value) => {
                if raised::is_out_of_memory(&value) {
                    world.meter.exhaust();
                }
                let stack = world.traceback.get().map(|it| it.call::<LuaString>(&self.coroutine));
                let stack = stack.transpose()?.map(|it| it.to_string_lossy()).unwrap_or_default();
                Ok(Slice::Ended(Err(raised::of_raised(world, &value, &stack))))
            }
        }
    }
}

impl<P: CallPurpose> Future for RunningCall<P> {
    type Output = Result<P::Result, CallFailure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            // A call that may no longer act stops here: its caller drops it when it notices that the leadership is lost.
            if self.present.as_ref().is_some_and(|it| !it.services.leadership.may_act()) {
                return Poll::Pending;
            }
            let with = match &mut self.next {
                CallContinuation::Begin => With::Arguments,
                CallContinuation::Again(wait) => {
                    let wait = wait.take();
                    self.vm.world().restore_wait(wait);
                    With::Nothing
                }
                CallContinuation::Wait(wait, since) => {
                    let result = ready!(wait.as_mut().poll(cx));
                    // Work of this call on another thread does not count as waiting.
                    let since = *since;
                    let worked = self.vm.world().surroundings.heavy.take_worked();
                    let waited = since.elapsed().saturating_sub(worked);
                    self.budget.pay_back(waited);
                    With::Result(result)
                }
            };
            // The wait is freed before the call continues.
            drop(mem::replace(&mut self.next, CallContinuation::Again(None)));
            let (slice, abort) = self.slice(with);
            let wait = self.vm.world().waited_for();
            if let Some(abort) = abort {
                return Poll::Ready(Err(self.aborted(slice, abort)));
            }
            match slice {
                Slice::Ended(ended) => {
                    if self.vm.ended(self.present.as_ref()) {
                        self.vm.world().meter.exhaust();
                        return Poll::Ready(Err(CallFailure::Aborted(Abort::Memory)));
                    }
                    return Poll::Ready(ended.map_err(CallFailure::Script));
                }
                Slice::Waits => match wait {
                    Some(wait) => {
                        if self.may_wait_long() {
                            heap::lasting(|| self.vm.shrink(&self.coroutine));
                        }
                        self.next = CallContinuation::Wait(wait, Instant::now());
                        // It waits on the thread of the script.
                        if self.vm.world().meter.is_inline() {
                            return Poll::Pending;
                        }
                    }
                    None => return again(cx),
                },
                Slice::Interrupted => {
                    self.next = CallContinuation::Again(wait);
                    return again(cx);
                }
            }
        }
    }
}

impl<F> Drop for RunningCall<F> {
    /// Ends the streams, locks and scratch files of the call; a garbage collection may come much later.
    fn drop(&mut self) {
        self.vm.world().streams.close(self.present.as_ref());
        self.vm.world().surroundings.scratch.free(self.present.as_ref());
        if let Some(present) = &self.present {
            locking::free_all(present);
        }
    }
}

/// Lets the other calls run first.
fn again<T>(cx: &Context<'_>) -> Poll<T> {
    cx.waker().wake_by_ref();
    Poll::Pending
}

/// Returns the values that the prelude expects: whether the wait succeeded, and the result or the error.
fn result_values(result: mlua::Result<MultiValue>) -> MultiValue {
    let is_good = result.is_ok();
    let mut values =
        result.unwrap_or_else(|error| MultiValue::from_iter([LuaValue::Error(Box::new(error))]));
    values.push_front(LuaValue::Boolean(is_good));
    values
}
