//! The unsafe part of lazy tables: levels of a tree of the host that become native tables when something reads them.
//!
//! # An unfilled level
//! An unfilled level is a read-only table with the entry [`VALUE`]: a light userdata that points to its [`Value`], or is its position on a
//! tape. Scripts can create neither the key nor the value. Its metatable belongs to one tree and one shape (map or list), and references
//! a userdata with the tree or the tape, its [`Root`]. A level that is filled gets the metatable of its shape, and equals a table that
//! [`push`](crate::push) creates: same keys, same layout, same order.
//!
//! The first read of a level with few items fills it. A level with many items keeps its pointer, and each read looks up one item; tables
//! among the items are stored in the level, so that each read returns the same table. Iterating fills the level.
//!
//! # Why the pointers are valid
//! 1. Only [`push_unfilled`] sets `VALUE`, to a reference into the tree that the given metatables keep, and only [`fill`] removes it,
//!    together with the metatable. The reference is into that tree, because `Levels::push` takes it from the tree itself.
//! 2. While it is set, the table keeps its metatable (`__metatable` and read-only: scripts cannot replace it, and the host must not),
//!    the metatable keeps the userdata, and the userdata keeps the tree. A shared tree is never changed.
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
};

use kopf_json::{
    shared::{Part, SharedJson},
    tape::Shallow,
};
use mlua::{Function as LuaFunction, Lua, Table, Value as LuaValue, ffi, lua_State};
use serde_json::Value;

use crate::host_string;
use crate::push::{self, FEW};

/// The tag of the host's light userdata; the one that scripts have (`kopf.null`) is untagged.
const TAG: c_int = 77;
/// The tag of positions on a tape.
const TAPE: c_int = 78;
/// Keys are small numbers instead of addresses, so that the layout of tables is the same in each process.
const VALUE: *const c_void = ptr::without_provenance(1);
/// In a metatable of unfilled levels: the metatable of the same tree for the other shape.
const OTHER: *const c_void = ptr::without_provenance(2);
/// In a metatable of unfilled levels: the metatable of filled levels.
const SHAPE: *const c_void = ptr::without_provenance(3);
/// In a metatable of unfilled levels: the userdata that keeps the tree or the tape alive.
const ROOT: *const c_void = ptr::without_provenance(4);

/// The room of an unfilled level with many items: for [`VALUE`] and the tables that were read.
const ROOM: c_int = 4;

unsafe extern "C-unwind" {
    // As in `slim.rs`: no part of Luau's API, and named with their parameters. A table is a `LuaTable`.
    #[link_name = "_Z16luaH_resizearrayP9lua_StateP8LuaTablei"]
    fn resize_items(state: *mut lua_State, table: *mut c_void, items: c_int);
    #[link_name = "_Z15luaH_resizehashP9lua_StateP8LuaTablei"]
    fn resize_fields(state: *mut lua_State, table: *mut c_void, fields: c_int);
}

/// Keeps a tree or a tape alive for its unfilled levels, and counts its bytes.
struct Root {
    json: SharedJson,
    bytes: usize,
    /// The bytes of all roots of the VM.
    held: Rc<Cell<usize>>,
}

/// What a root is made of. It owns nothing.
#[derive(Clone, Copy)]
pub(super) struct Kept<'a> {
    pub(super) json: &'a SharedJson,
    pub(super) bytes: usize,
    /// The bytes of all roots of the VM.
    pub(super) held: &'a Rc<Cell<usize>>,
}

impl Root {
    /// Creates the root, and counts its bytes.
    fn of(kept: Kept<'_>) -> Self {
        let Kept { json, bytes, held } = kept;
        held.set(held.get() + bytes);
        Root { json: json.clone(), bytes, held: Rc::clone(held) }
    }
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

/// Creates the table of a map or a list, which must be part of the JSON that is kept.
pub(super) fn push(
    lua: &Lua,
    (map, list): (&Table, &Table),
    value: Part<'_>,
    kept: Kept<'_>,
) -> mlua::Result<LuaValue> {
    // SAFETY: the templates are where `push_tree` expects them; the stack of a C function has room. The closure owns nothing before the
    // root is written into its userdata.
    unsafe {
        lua.exec_raw((map, list), |state| {
            push_tree(state, value, kept);
            ffi::lua_replace(state, 1);
            ffi::lua_settop(state, 1);
        })
    }
}

/// The value of an unfilled level. Keeps the tree or the tape, whatever happens to the table meanwhile.
pub(super) struct Origin {
    json: SharedJson,
    value: *mut c_void,
}

impl Origin {
    /// Returns the value.
    pub(super) fn part(&self) -> Option<Part<'_>> {
        match &self.json {
            // SAFETY: it points into the tree, which is kept; see `origin`.
            SharedJson::Tree(_) => unsafe { self.value.cast::<Value>().as_ref() }.map(Part::Tree),
            SharedJson::Tape(tape) => position(self.value).map(|at| Part::Tape(tape.part(at))),
        }
    }
}

/// Returns the value of an unfilled level; `None` for every other table. `function` is the function of [`push_origin`].
pub(super) fn origin(function: &LuaFunction, table: &Table) -> mlua::Result<Option<Origin>> {
    let (value, root) = function.call::<(LuaValue, LuaValue)>(table)?;
    let (LuaValue::LightUserData(value), LuaValue::LightUserData(root)) = (value, root) else {
        return Ok(None);
    };
    // SAFETY: it was valid when it was returned, and the table still keeps it: nothing has run since.
    let root = unsafe { root.0.cast::<Root>().as_ref() };
    Ok(root.map(|it| Origin { json: it.json.clone(), value: value.0 }))
}

/// Returns the position on a tape that [`VALUE`] stands for: one less than its address, which must not be null.
fn position(value: *mut c_void) -> Option<u32> {
    value.addr().checked_sub(1).and_then(|it| u32::try_from(it).ok())
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
unsafe fn push_tree(state: *mut lua_State, value: Part<'_>, kept: Kept<'_>) {
    // SAFETY: pushes the two metatables and the level; the root is written right after its memory is allocated.
    unsafe {
        ffi::lua_clonetable(state, 1);
        ffi::lua_clonetable(state, 2);
        let metas = Metas { map: ffi::lua_gettop(state) - 1, list: ffi::lua_gettop(state) };
        let memory = ffi::lua_newuserdatadtor(state, size_of::<Root>(), drop_root);
        memory.cast::<Root>().write(Root::of(kept));
        ffi::lua_pushvalue(state, -1);
        ffi::lua_rawsetptagged(state, metas.map, ROOT, TAG);
        ffi::lua_rawsetptagged(state, metas.list, ROOT, TAG);
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
    fn of(self, value: Part<'_>) -> c_int {
        if value.is_list() { self.list } else { self.map }
    }
}

/// Pushes a value that the script is reading.
unsafe fn push_level(state: *mut lua_State, value: Part<'_>, metas: Metas) {
    // SAFETY: leaves one value.
    unsafe {
        if value.len() > FEW {
            push_unfilled(state, value, metas);
        } else if value.is_list() || value.is_map() {
            push_table(state, value);
            fill_table(state, value, metas, None);
        } else {
            push_scalar(state, value);
        }
    }
}

/// Pushes a value that the script may never read.
unsafe fn push_item(state: *mut lua_State, value: Part<'_>, metas: Metas) {
    // SAFETY: as above.
    unsafe {
        if value.is_empty() {
            push_level(state, value, metas);
        } else {
            push_unfilled(state, value, metas);
        }
    }
}

unsafe fn push_unfilled(state: *mut lua_State, value: Part<'_>, metas: Metas) {
    // SAFETY: the value lives as long as the metatable, see the header.
    unsafe {
        if value.len() > FEW {
            ffi::lua_createtable(state, 0, ROOM);
        } else {
            push_table(state, value);
        }
        let (place, tag) = place_of(value);
        ffi::lua_pushlightuserdatatagged(state, place, tag);
        ffi::lua_rawsetptagged(state, -2, VALUE, TAG);
        ffi::lua_pushvalue(state, metas.of(value));
        ffi::lua_setmetatable(state, -2);
        ffi::lua_setreadonly(state, -1, 1);
    }
}

/// Returns what [`VALUE`] is for a value, and the tag.
fn place_of(value: Part<'_>) -> (*mut c_void, c_int) {
    match value {
        Part::Tree(tree) => (ptr::from_ref(tree).cast_mut().cast(), TAG),
        Part::Tape(part) => {
            let address = usize::try_from(part.at()).unwrap_or(usize::MAX).saturating_add(1);
            (ptr::without_provenance_mut(address), TAPE)
        }
    }
}

/// Pushes an empty table with space for the items, and for [`VALUE`] in place of them or in addition.
unsafe fn push_table(state: *mut lua_State, value: Part<'_>) {
    let (items, fields) = size(value);
    // SAFETY: wrong sizes cost time only.
    unsafe { ffi::lua_createtable(state, items, fields) }
}

/// Reserves space for the items in the empty table on top of the stack: the same as if it was created for them.
unsafe fn reserve(state: *mut lua_State, value: Part<'_>) {
    let (items, fields) = size(value);
    // SAFETY: the table stays on the stack; it is none of those that Luau keeps metamethods for, which are read-only.
    unsafe {
        let table = ffi::lua_topointer(state, -1).cast_mut();
        resize_fields(state, table, fields);
        resize_items(state, table, items);
    }
}

/// Returns the sizes of the two parts of a table for the items.
fn size(value: Part<'_>) -> (c_int, c_int) {
    let size = value.len();
    let (items, fields) = if value.is_list() { (size, 0) } else { (0, push::frozen_size(size)) };
    (push::capacity(items), push::capacity(fields))
}

/// Fills the empty table on top of the stack. `known` is the position of a table with those items that were already created.
unsafe fn fill_table(state: *mut lua_State, value: Part<'_>, metas: Metas, known: Option<c_int>) {
    // SAFETY: each item is pushed and set; the metatable of the shape is pushed and set.
    unsafe {
        let mut has_nulls = false;
        for (place, item) in (1..).zip(value.items()) {
            let get = |at| ffi::lua_rawgeti_(state, at, place);
            if known.is_none_or(|it| !push_known(state, it, get)) {
                push_item(state, item, metas);
            }
            ffi::lua_rawseti_(state, -2, place);
        }
        for (key, field) in value.fields() {
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
        ffi::lua_rawgetptagged(state, metas.of(value), SHAPE, TAG);
        if has_nulls {
            let nulls = value.fields().filter(|(_, it)| it.is_null()).map(|(key, _)| key);
            push::push_meta_with_nulls(state, nulls, ffi::lua_gettop(state));
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

unsafe fn push_scalar(state: *mut lua_State, value: Part<'_>) {
    // SAFETY: leaves one value.
    unsafe {
        let scalar = value.shallow();
        if let Shallow::Text(text) = scalar {
            push_text(state, text);
        } else {
            push::push_scalar(state, &scalar);
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
unsafe fn value_at<'a>(state: *mut lua_State, at: c_int) -> Option<Part<'a>> {
    // SAFETY: only `push_unfilled` creates such light userdata, and its values live as long as their levels.
    unsafe {
        if ffi::lua_type(state, at) != ffi::LUA_TTABLE {
            return None;
        }
        ffi::lua_rawgetptagged(state, at, VALUE, TAG);
        let tree = ffi::lua_tolightuserdatatagged(state, -1, TAG).cast::<Value>();
        let position = position(ffi::lua_tolightuserdatatagged(state, -1, TAPE));
        ffi::lua_pop(state, 1);
        let on_tape = |position| match root_at(state, at).map(|it| &it.json) {
            Some(SharedJson::Tape(tape)) => Some(Part::Tape(tape.part(position))),
            Some(SharedJson::Tree(_)) | None => None,
        };
        tree.as_ref().map(Part::Tree).or_else(|| position.and_then(on_tape))
    }
}

/// Returns the root of an unfilled level.
unsafe fn root_at<'a>(state: *mut lua_State, at: c_int) -> Option<&'a Root> {
    // SAFETY: the metatables of unfilled levels have this entry, and keep the userdata.
    unsafe {
        let top = ffi::lua_gettop(state);
        ffi::lua_getmetatable(state, at);
        ffi::lua_rawgetptagged(state, -1, ROOT, TAG);
        let root = ffi::lua_touserdata(state, -1).cast::<Root>();
        ffi::lua_settop(state, top);
        root.as_ref()
    }
}

/// Pushes the two metatables of the tree that an unfilled level belongs to.
unsafe fn push_metas(state: *mut lua_State, at: c_int, value: Part<'_>) -> Metas {
    // SAFETY: unfilled levels have these metatables.
    unsafe {
        ffi::lua_getmetatable(state, at);
        let own = ffi::lua_gettop(state);
        ffi::lua_rawgetptagged(state, own, OTHER, TAG);
        if value.is_list() {
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
        let known = (value.len() > FEW).then(|| {
            ffi::lua_clonetable(state, at);
            ffi::lua_gettop(state)
        });
        ffi::lua_pushvalue(state, at);
        ffi::lua_setreadonly(state, -1, 0);
        ffi::lua_cleartable(state, -1);
        if known.is_some() {
            reserve(state, value);
        }
        fill_table(state, value, metas, known);
        ffi::lua_settop(state, top);
    }
}

/// Implements `__index`, with the level and a key at 1 and 2.
unsafe extern "C-unwind" fn index(state: *mut lua_State) -> c_int {
    // SAFETY: pushes one value.
    unsafe {
        match value_at(state, 1) {
            Some(value) if value.len() <= FEW => {
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
unsafe fn push_found(state: *mut lua_State, value: Part<'_>) {
    // SAFETY: pushes one value.
    unsafe {
        let found = match value.shallow() {
            Shallow::List(_) => place_at(state, 2).and_then(|it| value.item(it)),
            Shallow::Map(_) => field_at(state, 2, value).filter(|it| !it.is_null()),
            Shallow::Null | Shallow::Bool(_) | Shallow::Number(_) | Shallow::Text(_) => None,
        };
        let Some(found) = found else { return ffi::lua_pushnil(state) };
        if !found.is_list() && !found.is_map() {
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

/// Returns the field of a map that a key refers to.
unsafe fn field_at(state: *mut lua_State, at: c_int, map: Part<'_>) -> Option<Part<'_>> {
    // SAFETY: the bytes are those of a string, which stays on the stack.
    unsafe {
        if ffi::lua_type(state, at) != ffi::LUA_TSTRING {
            return None;
        }
        let mut len = 0;
        let bytes = ffi::lua_tolstring(state, at, &raw mut len);
        let bytes = std::slice::from_raw_parts(bytes.cast::<u8>(), len);
        map.field(std::str::from_utf8(bytes).ok()?)
    }
}

/// Pushes pointers to the value and the root of the unfilled level at 1. Returns the number of pushed values: 0 for everything
/// else.
pub(super) unsafe fn push_origin(state: *mut lua_State) -> c_int {
    // SAFETY: the references become pointers at once.
    unsafe {
        let Some(value) = value_at(state, 1) else { return 0 };
        let Some(root) = root_at(state, 1) else { return 0 };
        ffi::lua_pushlightuserdata(state, place_of(value).0);
        ffi::lua_pushlightuserdata(state, ptr::from_ref(root).cast_mut().cast());
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
            Some(value) if value.is_list() => value.len(),
            Some(_) => 0,
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
