//! What happens to a VM that is of no more use.

use std::{rc::Rc, time::Duration};

use mlua::Lua;
use tokio_util::sync::CancellationToken;

use super::{
    watchdog::{Budget, Watchdog},
    world::Limits,
};
use crate::settings::Sandbox;

/// Computes for one slice of one call.
fn compute(lua: &Lua, watchdog: &Watchdog, native: impl FnOnce()) {
    let function = lua.create_function(|_, ()| Ok(())).expect("a function");
    let coroutine = lua.create_thread(function).expect("a coroutine");
    let _slice = watchdog.begin(&coroutine, Budget::default());
    native();
}

#[test]
fn a_native_that_does_not_come_back_is_told_outside() {
    let lua = Lua::new();
    let limits = Limits { sandbox: Sandbox::default(), cpu: Duration::from_millis(50) };
    let stuck = CancellationToken::new();
    let watchdog = Watchdog::of(&lua, &Rc::new(limits), stuck.clone()).expect("a thread");
    // Never looks at the interrupt, and never waits.
    compute(&lua, &watchdog, || {
        while !stuck.is_cancelled() {
            std::hint::spin_loop();
        }
    });
    assert!(stuck.is_cancelled());
}

#[test]
fn writing_to_a_slow_reader_is_not_being_stuck() {
    let lua = Lua::new();
    let limits = Limits { sandbox: Sandbox::default(), cpu: Duration::from_millis(50) };
    let stuck = CancellationToken::new();
    let watchdog = Watchdog::of(&lua, &Rc::new(limits), stuck.clone()).expect("a thread");
    let began = tokio::time::Instant::now();
    compute(&lua, &watchdog, || {
        watchdog.meter().outside(|| {
            while began.elapsed() < Duration::from_millis(2500) {
                std::hint::spin_loop();
            }
        });
    });
    assert!(!stuck.is_cancelled());
}
