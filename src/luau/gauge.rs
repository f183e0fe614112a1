//! Detects strings that are too long and calls that are nested too deep, whatever causes them.
//!
//! Luau reports every allocation. A long string, or a stack that grows, is passed on to the host, which checks its limits at the next step
//! of the script: the VM may be in any state meanwhile.
#![expect(unsafe_code, reason = "Luau's callback for allocations is a C function")]

use std::{
    ffi::{c_int, c_void},
    rc::Rc,
};

use mlua::{Lua, ffi, lua_State};

use crate::host_string;

/// Shorter strings are ignored.
const LONG: usize = 1 << 10;
/// Calls nested less deep are ignored.
const DEEP: c_int = 16;
/// The bytes that Luau adds to a string: a header and a terminating zero.
const HEAD: usize = 25;

/// What learns of long strings, deep calls and steps.
pub trait Notice: 'static {
    /// Records that a string of this length was made, or that calls may be nested deeper. The VM may be in any state meanwhile, so it must
    /// not be touched, except for its [interrupt](crate::interrupt).
    fn notice(&self, text: Option<usize>, is_deeper: bool);

    /// Records a loop iteration or a call, and the memory of the VM in bytes, while its [interrupt](crate::interrupt) counts steps.
    fn step(&self, memory: usize);
}

/// What the VM keeps of [`watch`].
struct Watched(Rc<dyn Notice>);

/// Reports the long strings and deep calls of this VM to `notice`, which the VM keeps, in place of the one before.
///
/// Limits must be at least 1 KiB for strings, and 16 for calls: below that, nothing is reported.
pub fn watch(lua: &Lua, notice: Rc<impl Notice>) {
    let watched = Rc::new(Watched(notice));
    let data = Rc::as_ptr(&watched).cast_mut().cast();
    // Dropped after the VM is closed, with the other data of the host. There is one value of each type, and nobody else knows this type.
    let before = lua.set_app_data(watched);
    // SAFETY: the state is alive and owns the table of callbacks; nothing else uses the data of the main state, or sets this callback.
    unsafe {
        let main = ffi::lua_mainthread(lua.state());
        ffi::lua_setthreaddata(main, data);
        (*ffi::lua_callbacks(main)).onallocate = Some(on_allocate);
    }
    drop(before);
}

/// Returns the nesting depth of calls in this coroutine.
pub fn depth(lua: &Lua) -> usize {
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
    // SAFETY: the state is alive, and this is the thread of its VM.
    if let Some(notice) = unsafe { notice_of(state) } {
        notice.notice(is_long.then(|| new.saturating_sub(HEAD)), is_deep);
    }
}

/// Returns what watches this VM, if anything does.
///
/// # Safety
/// The state must be alive, the caller on the thread of its VM, and the result dropped before [`watch`] is called again.
#[inline]
pub(crate) unsafe fn notice_of<'a>(state: *mut lua_State) -> Option<&'a dyn Notice> {
    // SAFETY: only `watch` sets the data of the main state, to what the VM keeps until it is closed.
    let watched =
        unsafe { ffi::lua_getthreaddata(ffi::lua_mainthread(state)).cast::<Watched>().as_ref() };
    watched.map(|it| &*it.0)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::{Lua, Notice, Rc, depth, watch};

    #[derive(Default)]
    struct Noticed {
        text: Cell<usize>,
        deep: Cell<bool>,
    }

    impl Notice for Noticed {
        fn notice(&self, text: Option<usize>, is_deeper: bool) {
            self.text.set(self.text.get().max(text.unwrap_or_default()));
            self.deep.set(self.deep.get() || is_deeper);
        }

        fn step(&self, _: usize) {}
    }

    #[test]
    fn long_strings_and_deep_calls_are_noticed() {
        let lua = Lua::new();
        let noticed = Rc::new(Noticed::default());
        watch(&lua, Rc::clone(&noticed));
        let run = |text: &str| lua.load(text).exec().expect("it runs");
        run("local t = string.rep('x', 900)");
        assert_eq!((noticed.text.get(), noticed.deep.get()), (0, false));
        run("local t = string.rep('x', 2000)");
        assert_eq!((noticed.text.get(), noticed.deep.get()), (2000, false));
        run("local function deep(n) return n == 0 and 0 or 1 + deep(n - 1) end; deep(100)");
        assert_eq!((noticed.text.get(), noticed.deep.get()), (2000, true));
    }

    #[test]
    fn the_vm_keeps_what_it_reports_to() {
        let lua = Lua::new();
        let (first, second) = (Rc::new(Noticed::default()), Rc::new(Noticed::default()));
        watch(&lua, Rc::clone(&first));
        watch(&lua, Rc::clone(&second));
        assert_eq!((Rc::strong_count(&first), Rc::strong_count(&second)), (1, 2));
        lua.load("local t = string.rep('x', 2000)").exec().expect("it runs");
        assert_eq!((first.text.get(), second.text.get()), (0, 2000));
        drop(lua);
        assert_eq!(Rc::strong_count(&second), 1);
    }

    #[test]
    fn the_depth_is_that_of_the_calls() {
        let lua = Lua::new();
        let depth = lua.create_function(|lua, ()| Ok(depth(lua))).expect("memory");
        lua.globals().set("depth", depth).expect("memory");
        let calls = "local function deep(n) if n == 0 then return depth() end
            local it = deep(n - 1) return it end return deep(10) - deep(0)";
        assert_eq!(lua.load(calls).eval::<usize>().expect("it runs"), 10);
    }
}
