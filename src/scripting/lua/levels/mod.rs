//! Lazy tables: the parts of objects that scripts read become native tables level by level.
//!
//! A handler usually reads a few fields of an object, so most of its levels never become tables. To scripts, an unfilled level is
//! indistinguishable from a native, read-only table; `raw.rs` describes how, and proves that its pointers are valid.
//!
//! Unfilled levels keep a tree of the host alive, which the memory limit of the VM does not count, so it is counted here. Small parts are
//! filled at once, and so are all parts while the trees of a VM take too much.

mod builtins;
mod raw;
#[cfg(test)]
mod tests;

use std::{cell::Cell, rc::Rc};

use kopf_json::shared::{Part, SharedJson};
use mlua::{Function as LuaFunction, Lua, Table, Value as LuaValue};

pub(in crate::scripting::lua) use self::builtins::install;
use self::raw::Root;
use super::push::{self, FEW, Shapes, Style};

/// The trees of unfilled levels may take the memory limit divided by this. A small share, because the garbage collector of the VM does not
/// see their size.
const PART: usize = 16;

/// Creates lazy tables in one VM.
pub(super) struct Levels {
    /// The metatables of unfilled maps and lists; each tree gets copies.
    map: Table,
    list: Table,
    fill: LuaFunction,
    origin: LuaFunction,
    /// The maximum and the current size of the trees that unfilled levels keep, in bytes.
    limit: usize,
    held: Rc<Cell<usize>>,
}

impl Levels {
    /// Prepares a VM with these metatables and this memory limit.
    pub(super) fn new(lua: &Lua, shapes: &Shapes, memory_limit: usize) -> mlua::Result<Self> {
        Ok(Levels {
            map: template(lua, &shapes.object)?,
            list: template(lua, &shapes.array)?,
            fill: builtins::fill_function(lua)?,
            origin: builtins::origin_function(lua)?,
            limit: memory_limit / PART,
            held: Rc::default(),
        })
    }

    /// Returns the frozen table of `part`, which is a part of `json`. `bytes` estimates the memory of the whole.
    pub(super) fn push(
        &self,
        (lua, shapes): (&Lua, &Shapes),
        (json, part): (&SharedJson, Part<'_>),
        bytes: impl FnOnce() -> usize,
    ) -> mlua::Result<LuaValue> {
        let mut inside = part.items().chain(part.fields().map(|(_, it)| it));
        let is_small = part.len() <= FEW && !inside.any(|it| it.is_list() || it.is_map());
        let bytes = if is_small { 0 } else { bytes() };
        if is_small || self.held.get().saturating_add(bytes) > self.limit {
            return push::push(lua, shapes, &part.to_tree(), Style::Frozen);
        }
        let root = || {
            self.held.set(self.held.get() + bytes);
            Root { json: json.clone(), bytes, held: Rc::clone(&self.held) }
        };
        raw::push(lua, (&self.map, &self.list), part, root)
    }

    /// Fills a table if it is an unfilled level. Must be called before a table is read raw.
    pub(super) fn fill(&self, table: &Table) -> mlua::Result<()> {
        if table.metatable().is_none() {
            return Ok(());
        }
        self.fill.call(table)
    }

    /// Reads the value of an unfilled level without filling it. Returns `None` for every other table.
    pub(super) fn read<T>(
        &self,
        table: &Table,
        read: impl FnOnce(Part<'_>) -> T,
    ) -> mlua::Result<Option<T>> {
        if table.metatable().is_none() {
            return Ok(None);
        }
        raw::read(&self.origin, table, read)
    }
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
