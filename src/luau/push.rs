//! Converts JSON to native Lua tables, frozen or not.
//!
//! Tables are native so that every feature of the language works on them, and created with the raw API because that is five times faster
//! than the safe one. Arrays are marked by their metatable, so that an empty one is an array when it is read back.
#![expect(unsafe_code, reason = "the raw API of Lua")]

use std::ffi::{CStr, c_int};

use kopf_json::tape::Shallow;
use mlua::{Function, LightUserData, Lua, Table, Value as LuaValue, ffi, lua_State};
use serde_json::Value;

/// The largest integer up to which a Lua number represents every integer.
const EXACT_MAX: u64 = 1 << 53;
/// The key under which the metatable of an object with null fields stores their names.
const NULLS: &CStr = c"__nulls";
/// Stack slots of one level: the table, a key or the metatable, a value or the list of nulls, and an item of that list.
const SLOTS_PER_LEVEL: c_int = 4;

/// The metatables that mark what a table was in JSON. They have the fields `__metatable` and `__tostring`, and are read-only.
#[derive(Clone)]
pub struct Shapes {
    /// The metatable of arrays.
    pub array: Table,
    /// Of objects that came from the host.
    pub object: Table,
}

impl Shapes {
    /// Creates the metatables in a new VM; `text` returns the strings of such tables. Also gives null a metatable.
    ///
    /// # Errors
    /// If the memory of the VM is full.
    pub fn new(
        lua: &Lua,
        text: impl Fn(&Lua, LuaValue) -> mlua::Result<String> + 'static,
    ) -> mlua::Result<Self> {
        let meta = |name: &str, text: &Function| -> mlua::Result<Table> {
            let meta = lua.create_table()?;
            meta.set("__metatable", name)?;
            meta.set("__tostring", text)?;
            meta.set_readonly(true);
            Ok(meta)
        };
        let text = lua.create_function(move |lua, it: LuaValue| text(lua, it))?;
        let null = lua.create_function(|_, _: LuaValue| Ok("null"))?;
        lua.set_type_metatable::<LightUserData>(Some(meta("null", &null)?));
        Ok(Shapes { array: meta("array", &text)?, object: meta("object", &text)? })
    }
}

/// How tables are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Read-only; nulls in maps read as absent.
    Frozen,
    /// Mutable, and read back without loss: nulls are kept. Maps are plain tables.
    Mutable,
}

/// Converts a value to Lua. Null is nil at the top, and a light userdata that is a null pointer in lists.
///
/// # Errors
/// If the memory of the VM is full, or the value has too many levels for its stack.
pub fn push(lua: &Lua, shapes: &Shapes, value: &Value, style: Style) -> mlua::Result<LuaValue> {
    // SAFETY: the closure balances its stack, and holds nothing that needs dropping when Lua raises an error through it.
    unsafe {
        lua.exec_raw((&shapes.array, &shapes.object), |state| {
            if value.is_null() {
                ffi::lua_pushnil(state);
            } else {
                push_value(state, value, style);
            }
            ffi::lua_replace(state, ARRAY_META);
            ffi::lua_settop(state, ARRAY_META);
        })
    }
}

/// The stack positions of the arguments of [`push`].
const ARRAY_META: c_int = 1;
const OBJECT_META: c_int = 2;

/// Pushes one value. To be called in protected mode, with the metatables at their positions.
unsafe fn push_value(state: *mut lua_State, value: &Value, style: Style) {
    // SAFETY: each arm leaves one value; `push_array` and `push_object` reserve the slots.
    unsafe {
        match value {
            Value::Null => push_scalar(state, &Shallow::Null),
            Value::Bool(it) => push_scalar(state, &Shallow::Bool(*it)),
            Value::Number(it) => push_number(state, it),
            Value::String(it) => push_str(state, it),
            Value::Array(items) => push_array(state, items, style),
            Value::Object(fields) => push_object(state, fields, style),
        }
    }
}

/// Pushes a value that is neither a list nor a map; nil for those.
///
/// # Safety
/// To be called in protected mode.
pub(crate) unsafe fn push_scalar(state: *mut lua_State, value: &Shallow<'_>) {
    // SAFETY: each arm leaves one value.
    unsafe {
        match value {
            Shallow::Null => ffi::lua_pushlightuserdata(state, std::ptr::null_mut()),
            Shallow::Bool(it) => ffi::lua_pushboolean(state, c_int::from(*it)),
            Shallow::Number(it) => push_number(state, it),
            Shallow::Text(it) => push_str(state, it),
            Shallow::List(_) | Shallow::Map(_) => ffi::lua_pushnil(state),
        }
    }
}

unsafe fn push_array(state: *mut lua_State, items: &[Value], style: Style) {
    // SAFETY: as `push_value`.
    unsafe {
        ffi::luaL_checkstack(state, SLOTS_PER_LEVEL, std::ptr::null());
        ffi::lua_createtable(state, capacity(items.len()), 0);
        for (place, item) in (1..).zip(items) {
            push_value(state, item, style);
            ffi::lua_rawseti_(state, -2, place);
        }
        ffi::lua_pushvalue(state, ARRAY_META);
        finish(state, style);
    }
}

unsafe fn push_object(
    state: *mut lua_State,
    fields: &serde_json::Map<String, Value>,
    style: Style,
) {
    // SAFETY: as `push_value`.
    unsafe {
        ffi::luaL_checkstack(state, SLOTS_PER_LEVEL, std::ptr::null());
        let size = if style == Style::Frozen { frozen_size(fields.len()) } else { fields.len() };
        ffi::lua_createtable(state, 0, capacity(size));
        for (key, field) in fields {
            if field.is_null() && style == Style::Frozen {
                continue;
            }
            push_str(state, key);
            push_value(state, field, style);
            ffi::lua_rawset(state, -3);
        }
        if style == Style::Frozen {
            if fields.values().any(Value::is_null) {
                let nulls = fields.iter().filter(|(_, it)| it.is_null());
                push_meta_with_nulls(state, nulls.map(|(key, _)| key.as_str()), OBJECT_META);
            } else {
                ffi::lua_pushvalue(state, OBJECT_META);
            }
            finish(state, style);
        }
    }
}

/// Pushes a metatable for an object with these null fields, which read as absent, but are present when the object is read back. `object`
/// is the stack position of the metatable of other objects.
///
/// # Safety
/// To be called in protected mode.
pub(crate) unsafe fn push_meta_with_nulls<'a>(
    state: *mut lua_State,
    nulls: impl Iterator<Item = &'a str>,
    object: c_int,
) {
    // SAFETY: as `push_value`.
    unsafe {
        ffi::lua_createtable(state, 0, 3);
        for name in [c"__metatable", c"__tostring"] {
            ffi::lua_getfield(state, object, name.as_ptr());
            ffi::lua_setfield(state, -2, name.as_ptr());
        }
        ffi::lua_createtable(state, 0, 0);
        for (place, key) in (1..).zip(nulls) {
            push_str(state, key);
            ffi::lua_rawseti_(state, -2, place);
        }
        ffi::lua_setfield(state, -2, NULLS.as_ptr());
        ffi::lua_setreadonly(state, -1, 1);
    }
}

/// Sets the metatable on top of the stack on the table below it.
unsafe fn finish(state: *mut lua_State, style: Style) {
    // SAFETY: as `push_value`.
    unsafe {
        ffi::lua_setmetatable(state, -2);
        if style == Style::Frozen {
            ffi::lua_setreadonly(state, -1, 1);
        }
    }
}

/// Pushes a string.
///
/// # Safety
/// To be called in protected mode.
#[inline]
pub(crate) unsafe fn push_str(state: *mut lua_State, text: &str) {
    // SAFETY: the pointer and the length are of one string; Lua copies it.
    unsafe { ffi::lua_pushlstring_(state, text.as_ptr().cast(), text.len()) }
}

unsafe fn push_number(state: *mut lua_State, number: &serde_json::Number) {
    // SAFETY: as `push_value`.
    unsafe {
        match number.as_i64() {
            Some(integer) if integer.unsigned_abs() > EXACT_MAX => {
                ffi::lua_pushinteger64(state, integer);
            }
            // Above the largest signed integer there is no exact type: the nearest number is used.
            Some(_) | None => ffi::lua_pushnumber(state, number.as_f64().unwrap_or(f64::NAN)),
        }
    }
}

/// The first read of a level with up to this many items fills it, which costs about as much as two reads. See `levels`.
pub(crate) const FEW: usize = 8;

/// Returns the number of fields to reserve for a frozen map, so that its layout and order do not depend on how it was filled. Lua
/// rounds sizes up to powers of two; a lazy map with many fields also needs space for the entry of an unfilled level.
pub(crate) fn frozen_size(fields: usize) -> usize {
    let is_full = fields > FEW && fields.is_power_of_two();
    fields + usize::from(is_full)
}

/// Returns the keys of an object's null fields, which its frozen table does not contain. None for every other table.
pub fn nulls(table: &Table) -> Vec<String> {
    let meta = table.metatable();
    let keys = meta.and_then(|it| it.raw_get::<Vec<String>>(NULLS.to_string_lossy()).ok());
    keys.unwrap_or_default()
}

/// Returns the number that a round trip through Lua results in.
pub fn in_lua(number: &serde_json::Number) -> serde_json::Number {
    if let Some(integer) = number.as_i64() {
        return integer.into();
    }
    let float = number.as_f64().unwrap_or(f64::NAN);
    #[expect(clippy::cast_possible_truncation, reason = "compared")]
    let integer = float as i64;
    #[expect(clippy::cast_precision_loss, reason = "compared")]
    let is_whole = integer < i64::MAX && (integer as f64).to_bits() == float.to_bits();
    if is_whole {
        return integer.into();
    }
    serde_json::Number::from_f64(float).unwrap_or_else(|| number.clone())
}

/// Returns a size hint; a wrong one only costs time.
pub(crate) fn capacity(len: usize) -> c_int {
    c_int::try_from(len).unwrap_or(0)
}
