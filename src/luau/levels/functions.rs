//! Replacements of built-ins that read tables raw: they fill unfilled levels first.
//!
//! They are C functions like the originals, with the same checks and errors. `natives.lua` and the host's own Lua code call [`fill`]
//! before they pass a table to any other built-in that reads it raw.
#![expect(unsafe_code, reason = "the raw API of Lua")]

use std::ffi::{CStr, c_int};

use mlua::{Function as LuaFunction, Lua, Table, ffi, lua_State};

use super::raw;

/// Replaces the built-ins. Must run before the Lua code of the host, which keeps references to them. Adds `fill` to `host`.
pub(crate) fn install(lua: &Lua, host: &Table) -> mlua::Result<()> {
    let globals = lua.globals();
    let empty = lua.create_table()?;
    // The function that `ipairs` returns to loops; no global holds it.
    let next_place = globals.get::<LuaFunction>("ipairs")?.call::<LuaFunction>(empty)?;
    let next = function(lua, c"next", raw::next, None)?;
    globals.raw_set("pairs", function(lua, c"pairs", pairs, Some(&next))?)?;
    globals.raw_set("ipairs", function(lua, c"ipairs", ipairs, Some(&next_place))?)?;
    globals.raw_set("next", next)?;
    globals.raw_set("rawget", function(lua, c"rawget", rawget, None)?)?;
    globals.raw_set("rawlen", function(lua, c"rawlen", rawlen, None)?)?;
    globals.raw_set("setmetatable", function(lua, c"setmetatable", setmetatable, None)?)?;
    host.raw_set("fill", fill_function(lua)?)
}

/// Returns the function that fills its first argument, if that is an unfilled level, and returns it.
pub(super) fn fill_function(lua: &Lua) -> mlua::Result<LuaFunction> {
    function(lua, c"fill", fill, None)
}

/// Returns the function of [`raw::push_origin`]. Not for scripts.
pub(super) fn origin_function(lua: &Lua) -> mlua::Result<LuaFunction> {
    function(lua, c"origin", origin, None)
}

/// Creates a function from a C function, with an upvalue.
fn function(
    lua: &Lua,
    name: &'static CStr,
    body: ffi::lua_CFunction,
    upvalue: Option<&LuaFunction>,
) -> mlua::Result<LuaFunction> {
    // SAFETY: takes the upvalue, if there is one, and leaves the function; the name is static.
    unsafe {
        lua.exec_raw(upvalue, |state| {
            ffi::lua_settop(state, 1);
            ffi::lua_pushcclosured(state, body, name.as_ptr(), 1);
        })
    }
}

/// Pushes the three values of a loop: the upvalue, the table, and the initial key.
unsafe fn walk(state: *mut lua_State, begin: impl FnOnce()) -> c_int {
    // SAFETY: as the originals.
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        raw::fill(state, 1);
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(1));
        ffi::lua_pushvalue(state, 1);
        begin();
        3
    }
}

unsafe extern "C-unwind" fn pairs(state: *mut lua_State) -> c_int {
    // SAFETY: as the original.
    unsafe { walk(state, || ffi::lua_pushnil(state)) }
}

unsafe extern "C-unwind" fn ipairs(state: *mut lua_State) -> c_int {
    // SAFETY: as the original.
    unsafe { walk(state, || ffi::lua_pushnumber(state, 0.0)) }
}

unsafe extern "C-unwind" fn rawget(state: *mut lua_State) -> c_int {
    // SAFETY: as the original.
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        ffi::luaL_checkany(state, 2);
        ffi::lua_settop(state, 2);
        raw::fill(state, 1);
        ffi::lua_rawget(state, 1);
        1
    }
}

unsafe extern "C-unwind" fn rawlen(state: *mut lua_State) -> c_int {
    // SAFETY: as the original.
    unsafe {
        let has_length = matches!(ffi::lua_type(state, 1), ffi::LUA_TTABLE | ffi::LUA_TSTRING);
        ffi::luaL_argcheck(state, c_int::from(has_length), 1, c"table or string expected".as_ptr());
        raw::push_len(state);
        1
    }
}

unsafe extern "C-unwind" fn setmetatable(state: *mut lua_State) -> c_int {
    // SAFETY: as the original.
    unsafe {
        let kind = ffi::lua_type(state, 2);
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        let is_meta = matches!(kind, ffi::LUA_TNIL | ffi::LUA_TTABLE);
        ffi::luaL_argexpected(state, c_int::from(is_meta), 2, c"nil or table".as_ptr());
        if ffi::luaL_getmetafield_(state, 1, c"__metatable".as_ptr()) != 0 {
            ffi::luaL_error(state, c"cannot change a protected metatable".as_ptr());
        }
        ffi::lua_settop(state, 2);
        raw::fill(state, 2);
        ffi::lua_setmetatable(state, 1);
        1
    }
}

unsafe extern "C-unwind" fn fill(state: *mut lua_State) -> c_int {
    // SAFETY: returns its first argument.
    unsafe {
        ffi::lua_settop(state, 1);
        raw::fill(state, 1);
        1
    }
}

unsafe extern "C-unwind" fn origin(state: *mut lua_State) -> c_int {
    // SAFETY: pushes as many values as it returns.
    unsafe { raw::push_origin(state) }
}
