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

use super::{
    raised::{self, ScriptError},
    vm::Vm,
    watchdog::{Abort, Budget},
    world::World,
};
use crate::ports::Invocation;

/// Something that a call waits for, and what the script gets when it is over.
pub(super) type Wait = LocalBoxFuture<'static, mlua::Result<MultiValue>>;

/// Why a call has no result.
pub(super) enum Failure {
    /// The script failed.
    Script(ScriptError),
    /// It was ended.
    Aborted(Abort),
}

/// A call on its way to its result.
pub(super) struct Running<F> {
    vm: Rc<Vm>,
    coroutine: Thread,
    budget: Rc<Budget>,
    /// What it is about.
    present: Option<Arc<Invocation>>,
    /// Makes something of what it returns; `None` afterwards.
    finish: Option<F>,
    next: Next,
}

/// How it goes on.
enum Next {
    /// With these values: the arguments, or the result of what it waited for.
    Go(MultiValue),
    /// After this, which it waits for since then.
    Wait(Wait, Instant),
}

/// What became of a slice.
enum Slice<T> {
    /// Others get a turn.
    Interrupted,
    Waits,
    Ended(Result<T, ScriptError>),
}

impl<T, F: FnOnce(&World, &LuaValue) -> mlua::Result<T> + Unpin> Running<F> {
    /// A call that has not begun. `finish` is a part of it and of its running time; it may call metamethods of the script.
    pub(super) fn new(
        vm: Rc<Vm>,
        function: LuaFunction,
        arguments: impl IntoLuaMulti,
        present: Option<Arc<Invocation>>,
        finish: F,
    ) -> mlua::Result<Self> {
        let arguments = arguments.into_lua_multi(vm.lua())?;
        let coroutine = vm.coroutine(function)?;
        let budget = Budget::of(&coroutine);
        let (finish, next) = (Some(finish), Next::Go(arguments));
        Ok(Running { vm, coroutine, budget, present, finish, next })
    }

    /// Computes until it waits, has ended, or others should have a turn.
    fn slice(&mut self, mut values: MultiValue) -> Slice<T> {
        values.push_front(LuaValue::Thread(self.coroutine.clone()));
        let vm = Rc::clone(&self.vm);
        let _slice = vm.watchdog().begin(&self.budget);
        vm.world().present.replace(self.present.clone());
        let slice = self.drive(values);
        vm.world().present.replace(None);
        slice
    }

    fn drive(&mut self, values: MultiValue) -> Slice<T> {
        let world = self.vm.world();
        let of_error = |error: &mlua::Error| {
            if raised::is_out_of_memory(&LuaValue::Error(Box::new(error.clone()))) {
                world.meter.exhaust();
            }
            ScriptError::of_error(world, error)
        };
        // The numbers are those of the prelude.
        let (code, value, trace) = match self.vm.drive().call::<(u8, LuaValue, LuaValue)>(values) {
            Ok(driven) => driven,
            Err(error) => return Slice::Ended(Err(of_error(&error))),
        };
        match code {
            0 => Slice::Interrupted,
            1 => Slice::Waits,
            2 => {
                self.vm.spare(self.coroutine.clone());
                // Polled no more after its end.
                let Some(finish) = self.finish.take() else { return Slice::Interrupted };
                Slice::Ended(finish(world, &value).map_err(|it| of_error(&it)))
            }
            _ => {
                if raised::is_out_of_memory(&value) {
                    world.meter.exhaust();
                }
                Slice::Ended(Err(ScriptError::of_raised(world, &value, &trace)))
            }
        }
    }
}

impl<T, F: FnOnce(&World, &LuaValue) -> mlua::Result<T> + Unpin> Future for Running<F> {
    type Output = Result<T, Failure>;

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
            if let Some(abort) = self.budget.aborted() {
                return Poll::Ready(Err(Failure::Aborted(abort)));
            }
            match slice {
                Slice::Ended(ended) => return Poll::Ready(ended.map_err(Failure::Script)),
                Slice::Waits => match self.vm.world().waited_for() {
                    Some(wait) => self.next = Next::Wait(wait, Instant::now()),
                    None => return again(cx),
                },
                Slice::Interrupted => return again(cx),
            }
        }
    }
}

impl<F> Drop for Running<F> {
    /// What a loop has left open ends with its call; the collector may come much later.
    fn drop(&mut self) {
        self.vm.world().streams.close(self.present.as_ref());
    }
}

/// The others get a turn first.
fn again<T>(cx: &Context<'_>) -> Poll<T> {
    cx.waker().wake_by_ref();
    Poll::Pending
}

/// As the prelude takes them: whether all went well, and the result or the error.
fn result_values(result: mlua::Result<MultiValue>) -> MultiValue {
    let is_good = result.is_ok();
    let mut values =
        result.unwrap_or_else(|error| MultiValue::from_iter([LuaValue::Error(Box::new(error))]));
    values.push_front(LuaValue::Boolean(is_good));
    values
}
