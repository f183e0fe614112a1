//! Where in a document a handle is: memory of the host, which the VM does not count.

use std::{cell::Cell, ops::Deref, rc::Rc};

use mlua::Lua;

use crate::scripting::{limits, lua::world::World};

/// The path to a level of a patch or a memo.
#[derive(Debug, Default)]
pub(super) struct Place {
    path: Vec<String>,
    bytes: usize,
    /// The bytes of all paths of the VM.
    held: Rc<Cell<usize>>,
}

impl Place {
    /// Keeps a path for a handle.
    ///
    /// # Errors
    /// The handles that the script keeps have too many.
    pub(super) fn new(lua: &Lua, world: &World, path: Vec<String>) -> mlua::Result<Self> {
        /// What a key takes besides its text.
        const KEY: usize = 48;
        let bytes = path.iter().map(|it| it.len() + KEY).sum::<usize>();
        let (held, limit) = (Rc::clone(&world.places), world.limits.sandbox.memory_limit / 4);
        let is_full = || held.get().saturating_add(bytes) > limit;
        if is_full() {
            // Handles that nobody has any more are still there until they are collected.
            lua.gc_collect()?;
        }
        if is_full() {
            return Err(mlua::Error::runtime(limits::too_many_places(limit)));
        }
        held.set(held.get() + bytes);
        Ok(Place { path, bytes, held })
    }
}

impl Deref for Place {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.path
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.held.set(self.held.get().saturating_sub(self.bytes));
    }
}
