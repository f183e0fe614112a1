//! Lazy tables: JSON of the host becomes native tables level by level, when a script reads them.
//!
//! A script usually reads a few fields of an object, so most of its levels never become tables. To scripts, an unfilled level is
//! indistinguishable from a native, read-only table; `raw.rs` describes how, and proves that its pointers are valid.
//!
//! Unfilled levels keep JSON of the host alive, which the memory limit of the VM does not count, so it is counted here. Small parts are
//! filled at once, and so are all parts while the JSON of a VM takes too much.
//!
//! The host must not change the metatable of a table that it got from [`Levels::push`], nor those of the tables in it.

mod functions;
mod raw;
#[cfg(test)]
mod tests;

use std::{cell::Cell, rc::Rc};

use kopf_json::shared::{Part, SharedJson};
use mlua::{Function as LuaFunction, Lua, Table, Value as LuaValue};

pub(crate) use self::functions::install;
use self::raw::Kept;
use super::push::{self, FEW, Shapes, Style};

/// The JSON of unfilled levels may take the memory limit divided by this. A small share, because the garbage collector of the VM does not
/// see its size.
const PART: usize = 16;

/// Creates lazy tables in one VM.
pub struct Levels {
    /// The metatables of unfilled maps and lists; each whole of JSON gets copies.
    map: Table,
    list: Table,
    fill: LuaFunction,
    origin: LuaFunction,
    /// The maximum and the current size of the JSON that unfilled levels keep, in bytes.
    limit: usize,
    held: Rc<Cell<usize>>,
}

impl Levels {
    /// Prepares a VM with these metatables and this memory limit, in bytes.
    ///
    /// # Errors
    /// If the memory of the VM is full.
    pub fn new(lua: &Lua, shapes: &Shapes, memory_limit: usize) -> mlua::Result<Self> {
        Ok(Levels {
            map: template(lua, &shapes.object)?,
            list: template(lua, &shapes.array)?,
            fill: functions::fill_function(lua)?,
            origin: functions::origin_function(lua)?,
            limit: memory_limit / PART,
            held: Rc::default(),
        })
    }

    /// Returns the frozen table of the part of `json` that `pick` returns; `None` if it returns none. `bytes` estimates the memory of the
    /// whole.
    ///
    /// # Errors
    /// If the memory of the VM is full.
    #[inline]
    pub fn push(
        &self,
        vm: (&Lua, &Shapes),
        json: &SharedJson,
        // For every lifetime, so that it is a part of this JSON.
        pick: impl for<'a> FnOnce(&'a SharedJson) -> Option<Part<'a>>,
        bytes: impl FnOnce() -> usize,
    ) -> mlua::Result<Option<LuaValue>> {
        let Some(part) = pick(json) else { return Ok(None) };
        let bytes = if is_small(part) { None } else { Some(bytes()) };
        self.push_part(vm, (json, part), bytes).map(Some)
    }

    /// Returns the frozen table of a part of `json`, which takes these bytes as a whole. `None`: the part is small.
    fn push_part(
        &self,
        (lua, shapes): (&Lua, &Shapes),
        (json, part): (&SharedJson, Part<'_>),
        bytes: Option<usize>,
    ) -> mlua::Result<LuaValue> {
        let is_room = |it: &usize| self.held.get().saturating_add(*it) <= self.limit;
        let Some(bytes) = bytes.filter(is_room) else {
            return push::push(lua, shapes, &part.to_tree(), Style::Frozen);
        };
        raw::push(lua, (&self.map, &self.list), part, Kept { json, bytes, held: &self.held })
    }

    /// Fills a table if it is an unfilled level. Must be called before a table is read raw.
    ///
    /// # Errors
    /// If the memory of the VM is full.
    #[inline]
    pub fn fill(&self, table: &Table) -> mlua::Result<()> {
        if table.metatable().is_none() {
            return Ok(());
        }
        self.fill.call(table)
    }

    /// Reads the value of an unfilled level without filling it. Returns `None` for every other table.
    ///
    /// # Errors
    /// If the memory of the VM is full.
    #[inline]
    pub fn read<T>(
        &self,
        table: &Table,
        read: impl FnOnce(Part<'_>) -> T,
    ) -> mlua::Result<Option<T>> {
        if table.metatable().is_none() {
            return Ok(None);
        }
        let origin = raw::origin(&self.origin, table)?;
        Ok(origin.as_ref().and_then(raw::Origin::part).map(read))
    }
}

/// Returns whether a table of this part is created at once, because it has few items, and no tables among them.
fn is_small(part: Part<'_>) -> bool {
    let mut inside = part.items().chain(part.fields().map(|(_, it)| it));
    part.len() <= FEW && !inside.any(|it| it.is_list() || it.is_map())
}

/// Creates the metatable of unfilled levels that take this shape when they are filled.
fn template(lua: &Lua, shape: &Table) -> mlua::Result<Table> {
    let meta = lua.create_table_with_capacity(0, 8)?;
    for name in ["__metatable", "__tostring"] {
        meta.raw_set(name, shape.raw_get::<LuaValue>(name)?)?;
    }
    raw::complete(lua, &meta, shape)?;
    Ok(meta)
}
