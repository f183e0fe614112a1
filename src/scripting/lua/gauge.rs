//! Detects strings that are too long and calls that are nested too deep, whatever causes them.
//!
//! Luau reports every allocation. A long string, or a stack that grows, arms the interrupt of the VM, which then checks the limits and
//! raises an error of the script. The error is raised at the next step of the script, not within the native function that made the string;
//! until then, the memory limit applies.
#![expect(unsafe_code, reason = "Luau's callback for allocations is a C function")]

use std::{
    cell::Cell,
    ffi::{c_int, c_void},
    ptr,
    rc::Rc,
};

use mlua::{Lua, ffi, lua_State};

use super::{host_string, watchdog::Meter};

/// Shorter strings are ignored: this is the minimum of the setting.
const LONG: usize = 1 << 10;
/// Calls nested less deep are ignored: this is the minimum of that setting.
const DEEP: c_int = 16;
/// The bytes that Luau adds to a string: a header and a terminating zero.
const HEAD: usize = 25;

/// What was detected and is not checked yet.
#[derive(Default)]
pub(super) struct Noticed {
    /// A string is longer than allowed.
    pub(super) long: Cell<bool>,
    /// Calls may be nested deeper than allowed.
    pub(super) deep: Cell<bool>,
    /// Steps until an error is raised again.
    pause: Cell<u32>,
}

impl Noticed {
    /// Returns whether an error may be raised at this step. After one, its handlers need some steps at the same depth.
    pub(super) fn may_raise(&self) -> bool {
        /// More than the host's own handler needs, and little for a script that ignores the error.
        const PAUSE: u32 = 256;
        let pause = self.pause.get();
        self.pause.set(pause.checked_sub(1).unwrap_or(PAUSE));
        pause == 0
    }
}

/// Watches the allocations of a VM until it is dropped.
pub(super) struct Gauge {
    main: *mut lua_State,
    /// The callback has a pointer to it.
    meter: Rc<Meter>,
}

impl Gauge {
    /// Watches this VM with this meter. The gauge must be dropped before the VM.
    pub(super) fn of(lua: &Lua, meter: Rc<Meter>) -> Self {
        // SAFETY: the state is alive and owns the table of callbacks; nothing else uses the data of the main state, or sets this callback.
        unsafe {
            let main = ffi::lua_mainthread(lua.state());
            ffi::lua_setthreaddata(main, Rc::as_ptr(&meter).cast_mut().cast());
            (*ffi::lua_callbacks(main)).onallocate = Some(on_allocate);
            Gauge { main, meter }
        }
    }

    /// Returns the meter.
    pub(super) fn meter(&self) -> &Rc<Meter> {
        &self.meter
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        // SAFETY: the VM is alive.
        unsafe { ffi::lua_setthreaddata(self.main, ptr::null_mut()) };
    }
}

/// Returns the nesting depth of calls in this coroutine.
pub(super) fn depth(lua: &Lua) -> usize {
    // SAFETY: the state is alive; this only subtracts two of its pointers.
    let depth = unsafe { ffi::lua_stackdepth(lua.state()) };
    usize::try_from(depth).unwrap_or_default()
}

/// Runs after each allocation of Luau, in any state of the VM, so it must not touch the VM.
unsafe extern "C-unwind" fn on_allocate(
    state: *mut lua_State,
    _block: *mut c_void,
    old: usize,
    new: usize,
    _category: u8,
    kind: c_int,
    _tag: c_int,
) {
    let is_long = kind == ffi::LUA_TSTRING && new > LONG && !host_string::take();
    // The block that grows may be the stack of calls.
    // SAFETY: as in `depth`; while that stack itself is moved, both pointers are still the old ones.
    let is_deep = old > 0 && new > old && unsafe { ffi::lua_stackdepth(state) } >= DEEP;
    if !is_long && !is_deep {
        return;
    }
    // SAFETY: the state is alive; the data of its main state is null, or points to the meter, which the gauge keeps alive until then.
    if let Some(meter) =
        unsafe { ffi::lua_getthreaddata(ffi::lua_mainthread(state)).cast::<Meter>().as_ref() }
    {
        meter.notice(is_long.then(|| new.saturating_sub(HEAD)), is_deep);
    }
}
