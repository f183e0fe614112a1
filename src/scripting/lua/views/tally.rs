//! How much a patch or a memo holds, so that neither grows without an end.

use std::cell::Cell;

use serde_json::Value;

use crate::scripting::{
    limits::{self, field, weight},
    lua::world::World,
};

/// The size of one patch or memo, known from above; shared by the views of it that one call has.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// What it was when it was last measured, and what was put in since. `None`: never measured.
    most: Cell<Option<usize>>,
}

impl Tally {
    /// Admits a value, or says that it is too much. `measure` tells what is there besides; that takes its time.
    pub(super) fn admit(
        &self,
        world: &World,
        value: &Value,
        (name, measure): (&str, impl FnOnce() -> usize),
    ) -> mlua::Result<()> {
        let (room, more) = (world.room(), weight(value));
        let known = self.most.get().map(|it| it + more).filter(|it| *it <= room.bytes());
        let total = known.unwrap_or_else(|| measure() + more);
        if total > room.bytes() {
            let told = limits::too_large_together(name, room.bytes(), total);
            return Err(mlua::Error::runtime(told));
        }
        self.most.set(Some(total));
        Ok(())
    }
}

/// About the bytes of the fields of an object besides the one at this path.
pub(super) fn weight_besides(fields: &serde_json::Map<String, Value>, path: &[String]) -> usize {
    let all: usize = fields.iter().map(|(key, it)| field(key) + weight(it)).sum();
    let own = crate::scripting::lua::tree::lookup(fields, path).map_or(0, weight);
    all.saturating_sub(own)
}
