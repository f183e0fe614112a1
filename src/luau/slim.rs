//! Shrinks the coroutine of a call that waits for long.
//!
//! Luau gives every coroutine room for 45 values and 8 calls, over a kilobyte, and never takes it back. The coroutine of a daemon that
//! waits needs a third of that, and there may be many thousands. So both lists are cut to what is used, with the functions that Luau itself
//! shrinks longer lists with; they grow again when the coroutine continues.
//!
//! These functions, and the fields that tell what is used, are no part of Luau's API. A new coroutine shows whether the fields are where
//! they are expected; if not, nothing is ever shrunk. The names of the functions contain their parameters: if those change, the program does
//! not link.
#![expect(unsafe_code, reason = "the lists of a coroutine have no API")]

use std::ffi::{c_int, c_uint, c_void};

use mlua::{Lua, Thread, ffi, lua_State};

/// The status of a coroutine that waits.
const YIELDED: u8 = 1;
/// The sizes of a new coroutine: values, those that only Luau itself uses, and calls.
const VALUES: isize = 40;
const EXTRA_VALUES: isize = 5;
const CALLS: isize = 8;
/// The values that a call of a native function has room for.
const NATIVE_VALUES: isize = 20;

/// A value on the stack.
#[repr(C)]
struct StackSlot([u64; 2]);

/// The beginning of Luau's `lua_State`.
#[repr(C)]
struct Coroutine {
    header: [u8; 3],
    status: u8,
    flags: [u8; 3],
    top: *mut StackSlot,
    base: *mut StackSlot,
    global: *mut c_void,
    call: *mut CallInfo,
    last_value: *mut StackSlot,
    first_value: *mut StackSlot,
    last_call: *mut CallInfo,
    first_call: *mut CallInfo,
    values: c_int,
    calls: c_int,
}

/// The same layout as Luau's `CallInfo`.
#[repr(C)]
struct CallInfo {
    base: *mut StackSlot,
    function: *mut StackSlot,
    top: *mut StackSlot,
    prototype: *mut c_void,
    place: *mut c_void,
    results: c_int,
    flags: c_uint,
}

/// Shrinks coroutines, if Luau is as expected.
#[derive(Clone, Copy, Debug)]
pub struct Slimmer {
    is_able: bool,
}

unsafe extern "C-unwind" {
    #[link_name = "_Z17luaD_reallocstackP9lua_Stateii"]
    fn resize_values(coroutine: *mut lua_State, values: c_int, for_new_call: c_int);
    #[link_name = "_Z14luaD_reallocCIP9lua_Statei"]
    fn resize_calls(coroutine: *mut lua_State, calls: c_int);
}

impl Slimmer {
    /// Looks at a new coroutine of this VM.
    ///
    /// # Errors
    /// If the memory of the VM is full.
    pub fn of(lua: &Lua) -> mlua::Result<Self> {
        let mut is_able = false;
        // SAFETY: the new coroutine is on the stack while it is looked at, and larger than what is read of it.
        let new = unsafe {
            lua.exec_raw::<()>((), |state| {
                is_able = is_as_expected(&*ffi::lua_newthread(state).cast());
                ffi::lua_settop(state, 0);
            })
        };
        new.map(|()| Slimmer { is_able })
    }

    /// Shrinks a coroutine that `coroutine.yield` has suspended; any other one stays as it is.
    ///
    /// # Errors
    /// If the memory is full: shrinking needs new blocks.
    pub fn shrink(self, lua: &Lua, thread: &Thread) -> mlua::Result<()> {
        if !self.is_able {
            return Ok(());
        }
        // SAFETY: the fields are as expected, and the coroutine is one of this VM, and on the stack. The closure owns nothing: Luau may
        // raise an error through it.
        unsafe {
            lua.exec_raw(thread, |state| {
                shrink(ffi::lua_tothread(state, 1));
                ffi::lua_settop(state, 0);
            })
        }
    }
}

/// Returns whether a new coroutine looks as expected.
fn is_as_expected(new: &Coroutine) -> bool {
    let values = new.first_value;
    let (top, room) = (values.wrapping_add(1), VALUES + EXTRA_VALUES);
    let is_sized = new.values as isize == room && new.calls as isize == CALLS;
    let is_ended = new.last_value == values.wrapping_offset(VALUES)
        && new.last_call == new.first_call.wrapping_offset(CALLS - 1);
    if !is_sized || !is_ended || new.call != new.first_call || new.call.is_null() {
        return false;
    }
    // SAFETY: all fields around it are as expected, so this is the list of calls.
    let call = unsafe { &*new.call };
    new.status == 0
        && (new.top, new.base, call.base, call.function) == (top, top, top, values)
        && call.top == top.wrapping_offset(NATIVE_VALUES)
}

/// # Safety
/// The coroutine is alive, and looked as expected when it was new.
unsafe fn shrink(state: *mut lua_State) {
    let coroutine: *mut Coroutine = state.cast();
    // SAFETY: `first_call` to `call` are the calls in progress, and `first_value` to `top` and to the `top` of each call the values that
    // they use. Two of them need no more room: the innermost one is that of `coroutine.yield`, which has returned, and the
    // outermost one stands for the host, and gets its room when values are passed. Luau resizes with the same functions.
    unsafe {
        let Coroutine { status, top, call, first_call, first_value, .. } = coroutine.read();
        if status != YIELDED || call == first_call {
            return;
        }
        (*call).top = top;
        (*first_call).top = (*first_call).base;
        let mut last = top;
        let mut present = first_call;
        while present <= call {
            last = last.max((*present).top);
            present = present.add(1);
        }
        let (calls, values) = (call.offset_from(first_call) + 1, last.offset_from(first_value));
        if let (Ok(calls), Ok(values)) = (c_int::try_from(calls), c_int::try_from(values)) {
            resize_calls(state, calls);
            resize_values(state, values, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use mlua::{Function, Lua, Variadic};

    use super::Slimmer;

    const SCRIPT: &str = "
        local function deep(levels, first, second)
            if levels == 0 then
                return coroutine.yield(first, second)
            end
            local sum = deep(levels - 1, first + 1, second) + first
            return sum
        end
        local total = select('#', ...)
        for levels = 0, 60, 20 do
            local ok, sum = pcall(deep, levels, 1, total)
            total += sum
        end
        return total
    ";

    #[test]
    fn a_shrunk_coroutine_continues() {
        let lua = Lua::new();
        let slimmer = Slimmer::of(&lua).unwrap();
        assert!(slimmer.is_able, "Luau has other coroutines now");
        let function: Function = lua.load(SCRIPT).into_function().unwrap();
        let run = |shrinks: bool| {
            let thread = lua.create_thread(function.clone()).unwrap();
            let resume = |given: &[i64]| {
                let given: Variadic<_> = given.iter().copied().collect();
                thread.resume::<Variadic<i64>>(given).unwrap().to_vec()
            };
            let mut yields = vec![resume(&[1, 2, 3])];
            while thread.is_resumable() {
                if shrinks {
                    lua.gc_collect().unwrap();
                    slimmer.shrink(&lua, &thread).unwrap();
                    lua.gc_collect().unwrap();
                }
                yields.push(resume(&[100, 7]));
            }
            // As spare ones are.
            thread.reset(function.clone()).unwrap();
            yields.push(resume(&[]));
            yields
        };
        assert_eq!(run(true), run(false));
    }

    #[test]
    fn a_shrunk_coroutine_is_half_as_large() {
        const NUMBER: usize = 1000;
        let lua = Lua::new();
        let slimmer = Slimmer::of(&lua).unwrap();
        let wait = "local function wait(...) return coroutine.yield(...) end; wait(1); return 2";
        let function: Function = lua.load(wait).into_function().unwrap();
        let before = lua.used_memory();
        let waiting: Vec<_> = (0..NUMBER)
            .map(|_| {
                let thread = lua.create_thread(function.clone()).unwrap();
                thread.resume::<()>(()).unwrap();
                slimmer.shrink(&lua, &thread).unwrap();
                thread
            })
            .collect();
        let bytes = (lua.used_memory() - before) / NUMBER;
        assert!(bytes < 750, "{bytes} bytes");
        assert!(waiting.iter().all(|it| it.resume::<i64>(()).is_ok_and(|it| it == 2)));
    }
}
