//! A cache of the frozen tables that were created from shared JSON: all calls of a script that read the same part share its table.

use std::cell::RefCell;

use kopf_json::shared::{SharedJson, WeakJson};
use mlua::{Lua, Table, Value as LuaValue};
use serde_json::Value;

/// Number of trees: about as many as calls usually use at once. A new tree replaces the one in its place, part by part.
const TREES: usize = 64;
/// Number of places of one tree, for its parts.
const PARTS: usize = 8;
const ENTRIES: usize = TREES * PARTS;

/// The keys of a part of JSON; `None` for JSON as it is, which is not the same table as its part without keys.
pub type PartKeys = Option<&'static [&'static str]>;

/// The tables of one VM.
pub struct Pushed {
    /// By place. Weak references: the cache does not keep a table alive.
    tables: Table,
    /// What the tables were created from, by place.
    origins: RefCell<Vec<Option<TableOrigin>>>,
}

/// What a table was created from. While this exists, the address of the tree is not reused.
struct TableOrigin {
    json: WeakJson,
    keys: PartKeys,
}

impl Pushed {
    /// Returns an empty cache.
    ///
    /// # Errors
    /// If the memory of the VM is full.
    pub fn new(lua: &Lua) -> mlua::Result<Self> {
        let tables = lua.create_table_with_capacity(ENTRIES, 0)?;
        let weak = lua.create_table()?;
        weak.raw_set("__mode", "v")?;
        tables.set_metatable(Some(weak))?;
        let origins = std::iter::repeat_with(|| None).take(ENTRIES).collect();
        Ok(Pushed { tables, origins: RefCell::new(origins) })
    }

    /// Returns the table of JSON, or of the part under these keys. Creates it with `push` if it is not cached.
    ///
    /// # Errors
    /// Those of `push`, or if the memory of the VM is full.
    #[inline]
    pub fn table(
        &self,
        json: &SharedJson,
        keys: PartKeys,
        push: impl FnOnce() -> mlua::Result<LuaValue>,
    ) -> mlua::Result<LuaValue> {
        // A tree that only this call has cannot be looked up again.
        if !json.is_shared() {
            return push();
        }
        let place = place(json, keys);
        if self.is_of(place, json, keys) {
            let known = self.tables.raw_get::<LuaValue>(place + 1)?;
            if known.is_table() {
                return Ok(known);
            }
        }
        let made = push()?;
        // Other values are small, or not frozen copies.
        if made.is_table() {
            self.tables.raw_set(place + 1, &made)?;
            if let Some(entry) = self.origins.borrow_mut().get_mut(place) {
                *entry = Some(TableOrigin { json: json.downgrade(), keys });
            }
        }
        Ok(made)
    }

    fn is_of(&self, place: usize, json: &SharedJson, keys: PartKeys) -> bool {
        let origins = self.origins.borrow();
        let origin = origins.get(place).and_then(Option::as_ref);
        origin.is_some_and(|it| it.json.address() == json.address() && it.keys == keys)
    }
}

/// Returns the place of a table in the cache.
fn place(json: &SharedJson, keys: PartKeys) -> usize {
    let part = match keys.map(<[_]>::last) {
        None => 0,
        Some(None) => 1,
        // Distinct for the keys that scripts read most: see the tests.
        Some(Some(key)) => 2 + (5 * key.len() + first_byte(key)) % (PARTS - 2),
    };
    // Trees allocated at about the same time are adjacent in memory, in steps of one allocation.
    let step = size_of::<Value>() + 2 * size_of::<usize>();
    json.address() / step % TREES * PARTS + part
}

fn first_byte(key: &str) -> usize {
    key.bytes().next().map_or(0, usize::from)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{ENTRIES, Lua, LuaValue, Pushed, SharedJson, TREES, Value};
    use serde_json::json;

    const SPEC: super::PartKeys = Some(&["spec"]);

    fn shared(tree: Value) -> SharedJson {
        Arc::new(tree).into()
    }

    fn push(lua: &Lua) -> mlua::Result<LuaValue> {
        lua.create_table().map(LuaValue::Table)
    }

    #[test]
    fn a_part_of_one_tree_is_one_table_and_of_another_another() {
        let lua = Lua::new();
        let pushed = Pushed::new(&lua).expect("memory");
        let trees = [json!({"a": 1}), json!({"a": 1})].map(shared);
        let shared = trees.clone();
        let mut seen = Vec::new();
        for tree in &shared {
            let table = |keys| pushed.table(tree, keys, || push(&lua)).expect("a table");
            let parts = [
                None,
                Some(&[][..]),
                SPEC,
                Some(&["status"]),
                Some(&["metadata"]),
                Some(&["metadata", "labels"]),
                Some(&["metadata", "annotations"]),
            ];
            let first = parts.map(table);
            assert_eq!(parts.map(table), first);
            seen.extend(first);
        }
        for (number, one) in seen.iter().enumerate() {
            assert!(!seen[..number].contains(one), "table {number} is there twice");
        }
    }

    #[test]
    fn a_tree_at_the_address_of_one_that_is_gone_is_another() {
        let lua = Lua::new();
        let pushed = Pushed::new(&lua).expect("memory");
        let mut seen = Vec::new();
        for _ in 0..100 {
            let tree = shared(Value::Null);
            let shared = tree.clone();
            let table = pushed.table(&shared, None, || push(&lua)).expect("a table");
            assert!(!seen.contains(&table));
            seen.push(table);
        }
    }

    #[test]
    fn nothing_is_kept_that_the_script_does_not_keep() {
        let lua = Lua::new();
        let pushed = Pushed::new(&lua).expect("memory");
        let trees = (0..TREES).map(Value::from).map(shared).collect::<Vec<_>>();
        let shared = trees.clone();
        for tree in &shared {
            drop(pushed.table(tree, SPEC, || push(&lua)).expect("a table"));
        }
        let kept = pushed.table(&shared[0], SPEC, || push(&lua)).expect("a table");
        lua.gc_collect().expect("memory");
        let left = (1..=ENTRIES)
            .filter(|it| pushed.tables.raw_get::<LuaValue>(*it).is_ok_and(|it| !it.is_nil()));
        assert_eq!(left.count(), 1);
        assert_eq!(pushed.table(&shared[0], SPEC, || push(&lua)).expect("a table"), kept);
    }

    #[test]
    fn a_tree_of_one_call_and_what_is_no_table_are_not_kept() {
        let lua = Lua::new();
        let pushed = Pushed::new(&lua).expect("memory");
        let tree = shared(json!({}));
        let first = pushed.table(&tree, None, || push(&lua)).expect("a table");
        assert_ne!(pushed.table(&tree, None, || push(&lua)).expect("a table"), first);
        let _shared = tree.clone();
        for number in [1.0, 2.0] {
            let value = pushed.table(&tree, None, || Ok(LuaValue::Number(number)));
            assert_eq!(value.expect("a number"), LuaValue::Number(number));
        }
    }
}
