//! Resumes coroutines without a function of Lua in between, and without converting what they raise.
#![expect(unsafe_code, reason = "the raw API of Lua")]

use std::{ffi::c_int, ptr};

use mlua::{IntoLuaMulti, Lua, Thread, Value as LuaValue, ffi, lua_State};

/// How a coroutine has stopped, with the first value that it passed, or nil.
#[derive(Debug, PartialEq)]
pub enum Resumed {
    /// It has yielded, or was interrupted.
    Yielded(LuaValue),
    /// Its function has returned.
    Returned(LuaValue),
    /// It has raised this value; its stack is still the one at that moment.
    Raised(LuaValue),
}

/// Resumes a coroutine with these values. One that cannot be resumed raises the same error as `coroutine.resume`.
///
/// # Errors
/// If the values cannot be converted, or the memory of the VM is full before the coroutine continues.
///
/// # Panics
/// If a function of the host has panicked in the coroutine.
pub fn resume(lua: &Lua, coroutine: &Thread, values: impl IntoLuaMulti) -> mlua::Result<Resumed> {
    lua.exec_raw_lua(|raw| {
        let (state, resumed) = (raw.state(), coroutine.state());
        // SAFETY: both states are alive and of this VM. Resuming catches what is raised.
        unsafe {
            let _balance = Balance { state, top: ffi::lua_gettop(state) };
            let status = ffi::lua_costatus(state, resumed);
            if status != ffi::LUA_COSUS {
                let text = format!("cannot resume {} coroutine", name(status));
                return lua.create_string(text).map(|it| Resumed::Raised(LuaValue::String(it)));
            }
            let count = values.push_into_stack_multi(raw)?;
            let ended = pass(state, resumed, count)?;
            let value = raw.pop_value();
            Ok(match ended {
                ffi::LUA_OK => Resumed::Returned(value),
                ffi::LUA_YIELD => Resumed::Yielded(value),
                _ => Resumed::Raised(value),
            })
        }
    })
}

/// Moves `count` values to a suspended coroutine and resumes it. Moves one value back, and returns the status.
unsafe fn pass(
    state: *mut lua_State,
    resumed: *mut lua_State,
    count: c_int,
) -> mlua::Result<c_int> {
    // SAFETY: as in `resume`; each value has a slot that was checked.
    unsafe {
        if ffi::lua_checkstack(resumed, count.max(1)) == 0 || ffi::lua_checkstack(state, 1) == 0 {
            return Err(mlua::Error::StackError);
        }
        ffi::lua_xmove(state, resumed, count);
        let ended = ffi::lua_resumex(resumed, state, count, ptr::null_mut());
        if ended == ffi::LUA_OK || ended == ffi::LUA_YIELD {
            // Whatever it passed is removed, but for the first value, or nil.
            ffi::lua_settop(resumed, 1);
        }
        ffi::lua_xmove(resumed, state, 1);
        Ok(ended)
    }
}

/// Restores the height of a stack, also if a panic passes.
struct Balance {
    state: *mut lua_State,
    top: c_int,
}

impl Drop for Balance {
    fn drop(&mut self) {
        // SAFETY: the state outlives the call that this is a part of; the stack is never lower meanwhile.
        unsafe { ffi::lua_settop(self.state, self.top) };
    }
}

/// Returns the name of the status of a coroutine that cannot be resumed.
fn name(status: c_int) -> &'static str {
    match status {
        ffi::LUA_CORUN => "running",
        ffi::LUA_CONOR => "normal",
        _ => "dead",
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{self, AssertUnwindSafe};

    use super::{Lua, LuaValue, Resumed, Thread, resume};

    fn coroutine(lua: &Lua, text: &str) -> Thread {
        let function = lua.load(text).into_function().expect("a function");
        lua.create_thread(function).expect("memory")
    }

    fn integer(number: i64) -> LuaValue {
        LuaValue::Integer(number)
    }

    #[test]
    fn values_go_in_and_the_first_one_comes_out() {
        let lua = Lua::new();
        let it = coroutine(
            &lua,
            "local a, b = ...; local c = coroutine.yield(a + b, 9, 9); return c, 9",
        );
        assert_eq!(resume(&lua, &it, (1, 2)).expect("it runs"), Resumed::Yielded(integer(3)));
        assert_eq!(resume(&lua, &it, 5).expect("it runs"), Resumed::Returned(integer(5)));
        let it = coroutine(&lua, "coroutine.yield()");
        assert_eq!(resume(&lua, &it, ()).expect("it runs"), Resumed::Yielded(LuaValue::Nil));
        assert_eq!(resume(&lua, &it, ()).expect("it runs"), Resumed::Returned(LuaValue::Nil));
    }

    #[test]
    fn what_is_raised_is_unchanged_and_the_stack_is_kept() {
        let lua = Lua::new();
        let table = lua.create_table().expect("memory");
        lua.globals().set("problem", &table).expect("memory");
        let it = coroutine(&lua, "local function inner() error(problem) end inner()");
        let raised = resume(&lua, &it, ()).expect("it runs");
        assert_eq!(raised, Resumed::Raised(LuaValue::Table(table)));
        let traceback =
            lua.load("return debug.traceback(...)").into_function().expect("a function");
        assert!(traceback.call::<String>(&it).expect("a text").contains("inner"));
        let again = resume(&lua, &it, ()).expect("a status");
        assert!(
            matches!(again, Resumed::Raised(LuaValue::String(it)) if it == "cannot resume dead coroutine")
        );
    }

    #[test]
    fn a_coroutine_that_runs_cannot_be_resumed() {
        let lua = Lua::new();
        let own = |lua: &Lua, it: Thread| {
            let Resumed::Raised(it) = resume(lua, &it, ())? else { return Ok(LuaValue::Nil) };
            Ok(it)
        };
        lua.globals().set("resume", lua.create_function(own).expect("memory")).expect("memory");
        let it = coroutine(&lua, "return resume(coroutine.running())");
        let ended = resume(&lua, &it, ()).expect("it runs");
        assert!(
            matches!(ended, Resumed::Returned(LuaValue::String(it)) if it == "cannot resume running coroutine")
        );
    }

    #[test]
    fn an_error_or_a_panic_of_the_host_passes() {
        let lua = Lua::new();
        let error = |_: &Lua, ()| -> mlua::Result<()> { Err(mlua::Error::runtime("no")) };
        lua.globals().set("fail", lua.create_function(error).expect("memory")).expect("memory");
        let it = coroutine(&lua, "fail()");
        assert!(matches!(resume(&lua, &it, ()), Ok(Resumed::Raised(LuaValue::Error(_)))));
        let broken = |_: &Lua, ()| -> mlua::Result<()> { panic!("broken") };
        lua.globals().set("fail", lua.create_function(broken).expect("memory")).expect("memory");
        let it = coroutine(&lua, "fail()");
        assert!(panic::catch_unwind(AssertUnwindSafe(|| resume(&lua, &it, ()))).is_err());
        let it = coroutine(&lua, "return 1");
        assert_eq!(resume(&lua, &it, ()).expect("it runs"), Resumed::Returned(integer(1)));
    }

    #[test]
    fn a_full_memory_is_raised() {
        let lua = Lua::new();
        let it = coroutine(&lua, "local t = {}; for n = 1, 1e9 do t[n] = {} end");
        lua.set_memory_limit(lua.used_memory() + (1 << 16)).expect("a limit");
        let raised = resume(&lua, &it, ()).expect("it runs");
        assert!(
            matches!(raised, Resumed::Raised(LuaValue::String(it)) if it == "not enough memory")
        );
    }
}
