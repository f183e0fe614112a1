//! Notices texts that are too long and calls that are nested too deep, whoever makes them.
//!
//! Luau tells of every piece of memory it gives out. Most are small and none of our business; a long text, or a stack that
//! grows, arms the interrupt of the VM, which then looks closely and raises an error of the script. The error comes at the next
//! step of the script, not within the native that made the text; the memory limit holds until then.
#![expect(unsafe_code, reason = "Luau's callback for allocations is a C function")]

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    ffi::{c_int, c_void},
    rc::{Rc, Weak},
};

use mlua::{Lua, ffi, lua_State};

use super::{host_string, watchdog::Meter};

/// Texts below this are not looked at: the smallest value of the setting.
const LONG: usize = 1 << 10;
/// Calls nested less deep than this are not looked at: the smallest value of that setting.
const DEEP: c_int = 16;
/// What Luau adds to a text: its head, and a zero behind it.
const HEAD: usize = 25;

thread_local! {
    /// The meters of the VMs of this thread, by their main states: the callback is told of nothing but a state.
    static METERS: RefCell<BTreeMap<usize, Weak<Meter>>> = const { RefCell::new(BTreeMap::new()) };
}

/// What was noticed and not yet looked at.
#[derive(Default)]
pub(super) struct Noticed {
    /// A text is longer than it may be.
    pub(super) long: Cell<bool>,
    /// Calls may be nested deeper than they may be.
    pub(super) deep: Cell<bool>,
    /// Steps until an error is raised again.
    pause: Cell<u32>,
}

impl Noticed {
    /// Returns whether an error may be raised at this step. After one, its handlers need some steps at the same depth.
    pub(super) fn may_raise(&self) -> bool {
        /// More than the host's own handler takes, and little for a script that goes on all the same.
        const PAUSE: u32 = 256;
        let pause = self.pause.get();
        self.pause.set(pause.checked_sub(1).unwrap_or(PAUSE));
        pause == 0
    }
}

/// Watches the allocations of this VM while it has a meter.
pub(super) fn watch(lua: &Lua, meter: &Rc<Meter>) {
    let key = key(lua.state());
    METERS.with_borrow_mut(|it| {
        it.retain(|_, meter| meter.strong_count() > 0);
        it.insert(key, Rc::downgrade(meter));
    });
    // SAFETY: the state is alive; the table of callbacks belongs to it, and this one is ours alone.
    unsafe { (*ffi::lua_callbacks(lua.state())).onallocate = Some(on_allocate) };
}

/// Returns how deep calls are nested in this coroutine.
pub(super) fn depth(lua: &Lua) -> usize {
    // SAFETY: the state is alive; this only subtracts two of its pointers.
    let depth = unsafe { ffi::lua_stackdepth(lua.state()) };
    usize::try_from(depth).unwrap_or_default()
}

fn meter_of(state: *mut lua_State) -> Option<Rc<Meter>> {
    METERS.try_with(|it| it.try_borrow().ok()?.get(&key(state))?.upgrade()).ok().flatten()
}

fn key(state: *mut lua_State) -> usize {
    // SAFETY: the state is alive; this reads its pointer to the main state of its VM.
    unsafe { ffi::lua_mainthread(state) }.addr()
}

/// Runs after each allocation of Luau, in any state of the VM: nothing of the VM may be touched here.
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
    // What grows may be the stack of calls.
    // SAFETY: as in `depth`; while that stack itself is moved, both pointers are still the old ones.
    let is_deep = old > 0 && new > old && unsafe { ffi::lua_stackdepth(state) } >= DEEP;
    if !is_long && !is_deep {
        return;
    }
    if let Some(meter) = meter_of(state) {
        meter.notice(is_long.then(|| new.saturating_sub(HEAD)), is_deep);
    }
}
