//! The unsafe part of lazy tables: levels of a tree of the host that become native tables when something reads them.
//!
//! # An unfilled level
//! An unfilled level is a read-only table with the entry [`VALUE`]: a light userdata that points to its [`Value`]. Scripts can create
//! neither the key nor the value. Its metatable belongs to one tree and one shape (map or list), and references a userdata with an [`Arc`]
//! of the tree. A level that is filled gets the metatable of its shape, and equals a table that [`push`](super::super::push) creates: same
//! keys, same layout, same order.
//!
//! The first read of a level with few items fills it. A level with many items keeps its pointer, and each read looks up one item; tables
//! among the items are stored in the level, so that each read returns the same table. Iterating fills the level.
//!
//! # Why the pointers are valid
//! 1. Only [`push_unfilled`] sets `VALUE`, to a reference into the tree that the given metatables keep, and only [`fill`] removes it,
//!    together with the metatable.
//! 2. While it is set, the table keeps its metatable (`__metatable` and read-only: scripts cannot replace it), the metatable keeps
//!    the userdata, and the userdata keeps the tree. A shared tree is never changed.
//! 3. References are not kept across anything that can run code of a script: the functions here only read, allocate and set raw
//!    entries. Meanwhile the table stays on the stack or in a reference of the host. The collector may run and drop other trees.
//!
//! No frame of these functions owns a value with a destructor: Lua may raise an error through them whenever it allocates. If the memory is
//! full in the middle of [`fill`], the level stays half-filled; the call is aborted and the VM is replaced.
#![expect(unsafe_code, reason = "the raw API of Lua")]

use std::{
    cell::Cell,
    ffi::{c_int, c_void},
    ptr,
    rc::Rc,
    sync::Arc,
};

use mlua::{Function as LuaFunction, Lua, Table, Value as LuaValue, ffi, lua_State};
use serde_json::{Map, Value};

use crate::scripting::lua::{
    host_string,
    push::{self, FEW},
};

/// The tag of the host's light userdata; the one that scripts have (`kopf.null`) is untagged.
const TAG: c_int = 77;
/// Keys are small numbers instead of addresses, so that the layout of tables is the same in each process.
const VALUE: *const c_void = ptr::without_provenance(1);
/// In a metatable of unfilled levels: the metatable of the same tree for the other shape.
const OTHER: *const c_void = ptr::without_provenance(2);
/// In a metatable of unfilled levels: the metatable of filled levels.
const SHAPE: *const c_void = ptr::without_provenance(3);
/// In a metatable of unfilled maps: the userdata that keeps the tree alive.
const ROOT: *const c_void = ptr::without_provenance(4);

/// Keeps a tree alive for its unfilled levels, and counts its bytes.
pub(super) struct Root {
    pub(super) tree: Arc<Value>,
    pub(super) bytes: usize,
    /// The bytes of all roots of the VM.
    pub(super) held: Rc<Cell<usize>>,
}

impl Drop for Root {
    fn drop(&mut self) {
        self.held.set(self.held.get().saturating_sub(self.bytes));
    }
}

unsafe extern "C" fn drop_root(_: *mut lua_State, root: *mut c_void) {
    // SAFETY: `push_tree` initialized the userdata before anything else could fail, and it is freed once.
    unsafe { ptr::drop_in_place(root.cast::<Root>()) }
}

/// Adds the raw entries to the template of a metatable. `shape` is the metatable of filled levels.
pub(super) fn complete(lua: &Lua, template: &Table, shape: &Table) -> mlua::Result<()> {
    // SAFETY: the closure takes the two tables, and nothing in it needs dropping.
    unsafe { lua.exec_raw((template, shape), |state| complete_template(state)) }
}

/// Creates the table of a map or a list, which must be part of the tree of the root.
pub(super) fn push(
    lua: &Lua,
    (map, list): (&Table, &Table),
    value: &Value,
    root: impl FnOnce() -> Root,
) -> mlua::Result<LuaValue> {
    // SAFETY: the templates are where `push_tree` expects them; the stack of a C function has room. The closure owns nothing before the
    // root is written into its userdata.
    unsafe {
        lua.exec_raw((map, list), |state| {
            push_tree(state, value, root);
            ffi::lua_replace(state, 1);
            ffi::lua_settop(state, 1);
        })
    }
}

/// Reads the value of an unfilled level; `None` for every other table. `origin` is the function of [`push_origin`].
pub(super) fn read<T>(
    origin: &LuaFunction,
    table: &Table,
    read: impl FnOnce(&Value) -> T,
) -> mlua::Result<Option<T>> {
    let (value, root) = origin.call::<(LuaValue, LuaValue)>(table)?;
    let (LuaValue::LightUserData(value), LuaValue::LightUserData(root)) = (value, root) else {
        return Ok(None);
    };
    // SAFETY: both were valid when they were returned, and the table still keeps them: nothing has run since.
    let (value, root) =
        unsafe { (value.0.cast::<Value>().as_ref(), root.0.cast::<Root>().as_ref()) };
    // Keeps the tree, whatever happens to the table meanwhile.
    let _tree = root.map(|it| Arc::clone(&it.tree));
    Ok(value.map(read))
}

unsafe fn complete_template(state: *mut lua_State) {
    // SAFETY: two tables are on the stack. The placeholders reserve the final size of clones.
    unsafe {
        ffi::lua_rawsetptagged(state, -2, SHAPE, TAG);
        for key in [OTHER, ROOT] {
            ffi::lua_pushboolean(state, 0);
            ffi::lua_rawsetptagged(state, -2, key, TAG);
        }
        for (name, function) in [(c"__index", index as ffi::lua_CFunction), (c"__len", len)] {
            ffi::lua_pushcfunction(state, function);
            ffi::lua_rawsetfield(state, -2, name.as_ptr());
        }
        ffi::lua_pushcfunction(state, next);
        ffi::lua_pushcclosure(state, iterate, 1);
        ffi::lua_rawsetfield(state, -2, c"__iter".as_ptr());
    }
}

/// Pushes the level of a value. The templates of maps and lists are at 1 and 2.
unsafe fn push_tree(state: *mut lua_State, value: &Value, root: impl FnOnce() -> Root) {
    // SAFETY: pushes the two metatables and the level; the root is written right after its memory is allocated.
    unsafe {
        ffi::lua_clonetable(state, 1);
        ffi::lua_clonetable(state, 2);
        let metas = Metas { map: ffi::lua_gettop(state) - 1, list: ffi::lua_gettop(state) };
        let memory = ffi::lua_newuserdatadtor(state, size_of::<Root>(), drop_root);
        memory.cast::<Root>().write(root());
        ffi::lua_rawsetptagged(state, metas.map, ROOT, TAG);
        ffi::lua_pushvalue(state, metas.list);
        ffi::lua_rawsetptagged(state, metas.map, OTHER, TAG);
        ffi::lua_pushvalue(state, metas.map);
        ffi::lua_rawsetptagged(state, metas.list, OTHER, TAG);
        push_level(state, value, metas);
    }
}

/// The stack positions of the metatables of one tree's unfilled levels.
#[derive(Clone, Copy)]
struct Metas {
    map: c_int,
    list: c_int,
}

impl Metas {
    fn of(self, value: &Value) -> c_int {
        if value.is_array() { self.list } else { self.map }
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Pushes a value that the script is reading.
unsafe fn push_level(state: *mut lua_State, value: &Value, metas: Metas) {
    // SAFETY: leaves one value.
    unsafe {
        if size(value) > FEW {
            push_unfilled(state, value, metas);
        } else if value.is_array() || value.is_object() {
            push_table(state, value);
            fill_table(state, value, metas, None);
        } else {
            push_scalar(state, value);
        }
    }
}

/// Pushes a value that the script may never read.
unsafe fn push_item(state: *mut lua_State, value: &Value, metas: Metas) {
    // SAFETY: as above.
    unsafe {
        if size(value) == 0 {
            push_level(state, value, metas);
        } else {
            push_unfilled(state, value, metas);
        }
    }
}

unsafe fn push_unfilled(state: *mut lua_State, value: &Value, metas: Metas) {
    // SAFETY: the value lives as long as the metatable, see the header.
    unsafe {
        push_table(state, value);
        ffi::lua_pushlightuserdatatagged(state, ptr::from_ref(value).cast_mut().cast(), TAG);
        ffi::lua_rawsetptagged(state, -2, VALUE, TAG);
        ffi::lua_pushvalue(state, metas.of(value));
        ffi::lua_setmetatable(state, -2);
        ffi::lua_setreadonly(state, -1, 1);
    }
}

/// Pushes an empty table with space for the items, and for [`VALUE`] in place of them or in addition.
unsafe fn push_table(state: *mut lua_State, value: &Value) {
    let size = size(value);
    let (items, fields) = if value.is_array() { (size, 0) } else { (0, push::frozen_size(size)) };
    // SAFETY: wrong sizes cost time only.
    unsafe { ffi::lua_createtable(state, push::capacity(items), push::capacity(fields)) }
}

/// Fills the empty table on top of the stack. `known` is the position of a table with those items that were already created.
unsafe fn fill_table(state: *mut lua_State, value: &Value, metas: Metas, known: Option<c_int>) {
    // SAFETY: each item is pushed and set; the metatable of the shape is pushed and set.
    unsafe {
        let mut has_nulls = false;
        match value {
            Value::Array(items) => {
                for (place, item) in (1..).zip(items) {
                    if known.is_none_or(|it| {
                        !push_known(state, it, |at| ffi::lua_rawgeti_(state, at, place))
                    }) {
                        push_item(state, item, metas);
                    }
                    ffi::lua_rawseti_(state, -2, place);
                }
            }
            Value::Object(fields) => {
                for (key, field) in fields {
                    if field.is_null() {
                        has_nulls = true;
                        continue;
                    }
                    push_text(state, key);
                    let get = |at| {
                        ffi::lua_pushvalue(state, -1);
                        ffi::lua_rawget(state, at)
                    };
                    if known.is_none_or(|it| !push_known(state, it, get)) {
                        push_item(state, field, metas);
                    }
                    ffi::lua_rawset(state, -3);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        ffi::lua_rawgetptagged(state, metas.of(value), SHAPE, TAG);
        if let (true, Value::Object(fields)) = (has_nulls, value) {
            push::push_meta_with_nulls(state, fields, ffi::lua_gettop(state));
            ffi::lua_remove(state, -2);
        }
        ffi::lua_setmetatable(state, -2);
        ffi::lua_setreadonly(state, -1, 1);
    }
}

/// Pushes the table that was already created for an item. Returns whether there is one.
unsafe fn push_known(state: *mut lua_State, at: c_int, get: impl FnOnce(c_int) -> c_int) -> bool {
    if get(at) == ffi::LUA_TTABLE {
        return true;
    }
    // SAFETY: `get` has pushed one value.
    unsafe { ffi::lua_pop(state, 1) };
    false
}

unsafe fn push_scalar(state: *mut lua_State, value: &Value) {
    // SAFETY: leaves one value.
    unsafe {
        match value {
            Value::String(text) => push_text(state, text),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => {
                push::push_value(state, value, push::Style::Frozen);
            }
        }
    }
}

/// Pushes a string of the host, which is exempt from the limit for strings.
unsafe fn push_text(state: *mut lua_State, text: &str) {
    // SAFETY: Lua copies the string.
    unsafe {
        host_string::expect(true);
        push::push_str(state, text);
        host_string::expect(false);
    }
}

/// Returns the value of an unfilled level; `None` for everything else.
///
/// # Safety
/// The reference is valid as long as the level is unfilled and reachable.
pub(super) unsafe fn value_at<'a>(state: *mut lua_State, at: c_int) -> Option<&'a Value> {
    // SAFETY: only `push_unfilled` creates such light userdata, and its values live as long as their levels.
    unsafe {
        if ffi::lua_type(state, at) != ffi::LUA_TTABLE {
            return None;
        }
        ffi::lua_rawgetptagged(state, at, VALUE, TAG);
        let value = ffi::lua_tolightuserdatatagged(state, -1, TAG).cast::<Value>();
        ffi::lua_pop(state, 1);
        value.as_ref()
    }
}

/// Pushes the two metatables of the tree that an unfilled level belongs to.
unsafe fn push_metas(state: *mut lua_State, at: c_int, value: &Value) -> Metas {
    // SAFETY: unfilled levels have these metatables.
    unsafe {
        ffi::lua_getmetatable(state, at);
        let own = ffi::lua_gettop(state);
        ffi::lua_rawgetptagged(state, own, OTHER, TAG);
        if value.is_array() {
            Metas { map: own + 1, list: own }
        } else {
            Metas { map: own, list: own + 1 }
        }
    }
}

/// Fills the level at this stack position, if it is unfilled.
///
/// # Safety
/// In protected mode, with 10 free slots of the stack.
pub(super) unsafe fn fill(state: *mut lua_State, at: c_int) {
    // SAFETY: the level stays on the stack, and keeps the tree with its metatables: see the header.
    unsafe {
        let Some(value) = value_at(state, at) else { return };
        let top = ffi::lua_gettop(state);
        let metas = push_metas(state, at, value);
        let known = (size(value) > FEW).then(|| {
            ffi::lua_clonetable(state, at);
            ffi::lua_gettop(state)
        });
        ffi::lua_pushvalue(state, at);
        ffi::lua_setreadonly(state, -1, 0);
        ffi::lua_cleartable(state, -1);
        fill_table(state, value, metas, known);
        ffi::lua_settop(state, top);
    }
}

/// Implements `__index`, with the level and a key at 1 and 2.
unsafe extern "C-unwind" fn index(state: *mut lua_State) -> c_int {
    // SAFETY: pushes one value.
    unsafe {
        match value_at(state, 1) {
            Some(value) if size(value) <= FEW => {
                fill(state, 1);
                ffi::lua_pushvalue(state, 2);
                ffi::lua_rawget(state, 1);
            }
            Some(value) => push_found(state, value),
            None => ffi::lua_pushnil(state),
        }
        1
    }
}

/// Pushes the item at a key (2) of a level with many items (1).
unsafe fn push_found(state: *mut lua_State, value: &Value) {
    // SAFETY: pushes one value; the key is set in a table that has room for it.
    unsafe {
        let found = match value {
            Value::Array(items) => place_at(state, 2).and_then(|it| items.get(it)),
            Value::Object(fields) => field_at(state, 2, fields).filter(|it| !it.is_null()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        };
        let Some(found) = found else { return ffi::lua_pushnil(state) };
        if !found.is_array() && !found.is_object() {
            return push_scalar(state, found);
        }
        let metas = push_metas(state, 1, value);
        push_level(state, found, metas);
        ffi::lua_setreadonly(state, 1, 0);
        ffi::lua_pushvalue(state, 2);
        ffi::lua_pushvalue(state, -2);
        ffi::lua_rawset(state, 1);
        ffi::lua_setreadonly(state, 1, 1);
    }
}

/// Returns the 0-based index that a key refers to.
unsafe fn place_at(state: *mut lua_State, at: c_int) -> Option<usize> {
    // SAFETY: reads the stack.
    let number = unsafe {
        if ffi::lua_type(state, at) != ffi::LUA_TNUMBER {
            return None;
        }
        ffi::lua_tonumber(state, at)
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
    let place = number as usize;
    #[expect(
        clippy::cast_precision_loss,
        clippy::float_cmp,
        reason = "only the exact number is meant"
    )]
    let is_exact = place as f64 == number;
    place.checked_sub(1).filter(|_| is_exact)
}

/// Returns the field that a key refers to.
unsafe fn field_at(
    state: *mut lua_State,
    at: c_int,
    fields: &Map<String, Value>,
) -> Option<&Value> {
    // SAFETY: the bytes are those of a string, which stays on the stack.
    unsafe {
        if ffi::lua_type(state, at) != ffi::LUA_TSTRING {
            return None;
        }
        let mut len = 0;
        let bytes = ffi::lua_tolstring(state, at, &raw mut len);
        let bytes = std::slice::from_raw_parts(bytes.cast::<u8>(), len);
        fields.get(std::str::from_utf8(bytes).ok()?)
    }
}

/// Pushes pointers to the value and the root of the unfilled level at 1. Returns the number of pushed values: 0 for everything
/// else.
pub(super) unsafe fn push_origin(state: *mut lua_State) -> c_int {
    // SAFETY: the references become pointers at once.
    unsafe {
        let Some(value) = value_at(state, 1) else { return 0 };
        let metas = push_metas(state, 1, value);
        ffi::lua_rawgetptagged(state, metas.map, ROOT, TAG);
        let root = ffi::lua_touserdata(state, -1);
        ffi::lua_pushlightuserdata(state, ptr::from_ref(value).cast_mut().cast());
        ffi::lua_pushlightuserdata(state, root);
        2
    }
}

/// Implements `__len`.
unsafe extern "C-unwind" fn len(state: *mut lua_State) -> c_int {
    // SAFETY: pushes one value.
    unsafe {
        push_len(state);
        1
    }
}

/// Pushes the length of the table or the string at 1.
pub(super) unsafe fn push_len(state: *mut lua_State) {
    // SAFETY: pushes one value.
    unsafe {
        // Maps have no list items.
        let len = match value_at(state, 1) {
            Some(value) => value.as_array().map_or(0, Vec::len),
            None => ffi::lua_objlen(state, 1),
        };
        #[expect(clippy::cast_precision_loss, reason = "lengths are far smaller")]
        ffi::lua_pushnumber(state, len as f64);
    }
}

/// Implements `__iter`, with `next` as its upvalue.
unsafe extern "C-unwind" fn iterate(state: *mut lua_State) -> c_int {
    // SAFETY: pushes three values.
    unsafe {
        fill(state, 1);
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(1));
        ffi::lua_pushvalue(state, 1);
        ffi::lua_pushnil(state);
        3
    }
}

/// Implements the global `next`, also for unfilled levels.
pub(super) unsafe extern "C-unwind" fn next(state: *mut lua_State) -> c_int {
    // SAFETY: as the original.
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        ffi::lua_settop(state, 2);
        fill(state, 1);
        if ffi::lua_next(state, 1) != 0 {
            return 2;
        }
        ffi::lua_pushnil(state);
        1
    }
}
