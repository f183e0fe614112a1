//! A call that runs in the VM: its coroutine, slice by slice, and what it waits for in between.
//!
//! There may be many thousands that wait, so one that does is little more than its coroutine. The coroutine gives up its turn
//! in the prelude, after a function of the host has said with [`World::wait_for`](super::world::World::wait_for) what for.

use std::{
    future::Future,
    mem,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures::future::LocalBoxFuture;
use mlua::{Function as LuaFunction, IntoLuaMulti, MultiValue, Thread, Value as LuaValue};
use tokio::time::Instant;

use super::{raised::ScriptError, vm::Vm, watchdog::Budget};
use crate::ports::Invocation;

/// Something that a call waits for, and what the script gets when it is over, if anything.
pub(super) type Wait = LocalBoxFuture<'static, mlua::Result<Option<LuaValue>>>;

/// Why a call has no result.
pub(super) enum Failure {
    /// The script failed.
    Script(ScriptError),
    /// It was aborted.
    OutOfTime,
}

/// A call on its way to its result.
pub(super) struct Running {
    vm: Rc<Vm>,
    coroutine: Thread,
    budget: Rc<Budget>,
    /// What it is about.
    present: Option<Arc<Invocation>>,
    next: Next,
}

/// How it goes on.
enum Next {
    /// With these values: the arguments, or the result of what it waited for.
    Go(MultiValue),
    /// After this, which it waits for since then.
    Wait(Wait, Instant),
}

/// What became of a slice; as the prelude numbers it.
enum Slice {
    /// Others get a turn.
    Interrupted,
    Waits,
    Returned(LuaValue),
    Raised(LuaValue, LuaValue),
}

impl Running {
    /// A call that has not begun.
    pub(super) fn new(
        vm: Rc<Vm>,
        function: LuaFunction,
        arguments: impl IntoLuaMulti,
        present: Option<Arc<Invocation>>,
    ) -> mlua::Result<Self> {
        let arguments = arguments.into_lua_multi(vm.lua())?;
        let coroutine = vm.coroutine(function)?;
        let budget = Budget::of(&coroutine);
        Ok(Running { vm, coroutine, budget, present, next: Next::Go(arguments) })
    }

    /// Computes until it waits, has ended, or others should have a turn.
    fn slice(&self, mut values: MultiValue) -> mlua::Result<Slice> {
        values.push_front(LuaValue::Thread(self.coroutine.clone()));
        let (code, value, trace) = {
            let _slice = self.vm.watchdog().begin(&self.budget);
            self.vm.world().present.replace(self.present.clone());
            let ended = self.vm.drive().call::<(u8, LuaValue, LuaValue)>(values);
            self.vm.world().present.replace(None);
            ended?
        };
        Ok(match code {
            0 => Slice::Interrupted,
            1 => Slice::Waits,
            2 => Slice::Returned(value),
            _ => Slice::Raised(value, trace),
        })
    }

    fn failed(&self, error: &mlua::Error) -> Failure {
        Failure::Script(ScriptError::of_error(self.vm.world(), error))
    }
}

impl Future for Running {
    type Output = Result<LuaValue, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let values = match &mut self.next {
                Next::Go(values) => mem::take(values),
                Next::Wait(wait, since) => {
                    let result = ready!(wait.as_mut().poll(cx));
                    let waited = since.elapsed();
                    self.budget.pay_back(waited);
                    result_values(result)
                }
            };
            // What it waited for is freed before it goes on.
            self.next = Next::Go(MultiValue::new());
            let slice = self.slice(values);
            if self.budget.is_aborted() {
                return Poll::Ready(Err(Failure::OutOfTime));
            }
            match slice {
                Err(error) => return Poll::Ready(Err(self.failed(&error))),
                Ok(Slice::Returned(value)) => {
                    self.vm.spare(self.coroutine.clone());
                    return Poll::Ready(Ok(value));
                }
                Ok(Slice::Raised(raised, trace)) => {
                    let error = ScriptError::of_raised(self.vm.world(), &raised, &trace);
                    return Poll::Ready(Err(Failure::Script(error)));
                }
                Ok(Slice::Waits) => match self.vm.world().waited_for() {
                    Some(wait) => self.next = Next::Wait(wait, Instant::now()),
                    None => return again(cx),
                },
                Ok(Slice::Interrupted) => return again(cx),
            }
        }
    }
}

/// The others get a turn first.
fn again<T>(cx: &Context<'_>) -> Poll<T> {
    cx.waker().wake_by_ref();
    Poll::Pending
}

/// As the prelude takes them: whether all went well, and the result or the error.
fn result_values(result: mlua::Result<Option<LuaValue>>) -> MultiValue {
    let mut values = MultiValue::new();
    match result {
        Ok(result) => {
            values.push_back(LuaValue::Boolean(true));
            values.extend(result);
        }
        Err(error) => {
            values.push_back(LuaValue::Boolean(false));
            values.push_back(LuaValue::Error(Box::new(error)));
        }
    }
    values
}
