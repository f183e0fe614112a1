//! How long unfilled levels keep their JSON, and what they are when they are filled.

use std::sync::Arc;

use kopf_json::{
    shared::{Part, SharedJson},
    tape_reader,
};
use mlua::{Lua, Table, Value as LuaValue};
use serde_json::{Map, Value, json};

use super::{Levels, PART};
use crate::push::{self, Shapes, Style};

/// Returns this JSON in both forms.
fn forms(tree: &Value) -> [SharedJson; 2] {
    let tape = tape_reader::read(tree.to_string().as_bytes()).expect("JSON");
    [Arc::new(tree.clone()).into(), SharedJson::Tape(Arc::new(tape))]
}

/// Returns a map with levels of all kinds, small and large.
fn many() -> Value {
    let field = |it: usize| match it % 4 {
        0 => json!({ "name": it, "list": [it, "x"] }),
        1 => (0..20).map(|at| json!({ "at": at, "none": null })).collect(),
        2 => json!([it, null, { "deep": [[it]] }]),
        _ => json!(format!("text {it}").repeat(50)),
    };
    let fields: Map<_, _> = (0..30).map(|it| (format!("key{it:02}"), field(it))).collect();
    Value::Object(fields)
}

/// A VM with only what levels need.
struct Bench {
    lua: Lua,
    shapes: Shapes,
    levels: Levels,
}

impl Bench {
    fn new(limit: usize) -> Self {
        let lua = Lua::new();
        let shape = |name| {
            let meta = lua.create_table().expect("memory");
            meta.raw_set("__metatable", name).expect("memory");
            meta
        };
        let shapes = Shapes { array: shape("array"), object: shape("object") };
        let levels = Levels::new(&lua, &shapes, limit * PART).expect("memory");
        Bench { lua, shapes, levels }
    }

    fn push(&self, tree: &Arc<Value>, bytes: usize) -> Table {
        self.push_json(&Arc::clone(tree).into(), bytes)
    }

    fn push_json(&self, json: &SharedJson, bytes: usize) -> Table {
        self.push_part(json, |it| Some(it.root()), bytes).expect("a part")
    }

    fn push_part(
        &self,
        json: &SharedJson,
        pick: impl for<'a> FnOnce(&'a SharedJson) -> Option<Part<'a>>,
        bytes: usize,
    ) -> Option<Table> {
        let pushed = self.levels.push((&self.lua, &self.shapes), json, pick, || bytes);
        pushed.expect("memory").map(|it| it.as_table().expect("a table").clone())
    }

    fn is_filled(&self, table: &Table) -> bool {
        self.levels.read(table, |_| ()).expect("memory").is_none()
    }
}

#[test]
fn a_tree_is_kept_as_long_as_one_of_its_levels_is_not_filled() {
    let bench = Bench::new(1000);
    let tree = Arc::new(json!({ "inner": { "list": [1, [2], { "three": 3 }] } }));
    let outer = bench
        .push_part(&Arc::clone(&tree).into(), |it| it.root().field("inner"), 600)
        .expect("a part");
    assert_eq!((Arc::strong_count(&tree), bench.levels.held.get()), (2, 600));
    let list = outer.get::<Table>("list").expect("a list");
    drop(outer);
    bench.lua.gc_collect().expect("memory");
    assert!(!bench.is_filled(&list));
    assert_eq!(Arc::strong_count(&tree), 2);
    let same = bench.levels.read(&list, |it| *it.to_tree() == tree["inner"]["list"]);
    assert_eq!(same.expect("memory"), Some(true));

    bench.levels.fill(&list).expect("memory");
    assert!(bench.is_filled(&list));
    let item = list.get::<Table>(2).expect("a list");
    assert!(!bench.is_filled(&item));
    drop(list);
    bench.lua.gc_collect().expect("memory");
    assert_eq!(Arc::strong_count(&tree), 2);
    assert_eq!(item.get::<i64>(1).expect("a number"), 2);
    bench.lua.gc_collect().expect("memory");
    assert_eq!((Arc::strong_count(&tree), bench.levels.held.get()), (1, 0));
}

#[test]
fn all_trees_and_tapes_go_with_the_vm() {
    for json in forms(&json!({ "a": [[1]] })) {
        let bench = Bench::new(1000);
        let table = bench.push_json(&json, 10);
        assert!(json.is_shared());
        drop((table, bench));
        assert!(!json.is_shared());
    }
}

#[test]
fn trees_that_weigh_too_much_are_filled_at_once() {
    let bench = Bench::new(1000);
    let tree = Arc::new(json!({ "map": { "inner": { "a": 1 } } }));
    let first = bench.push(&tree, 600);
    let second = bench.push(&tree, 600);
    let inner = |it: &Table| it.get::<Table>("map").expect("a map");
    assert!(!bench.is_filled(&inner(&first)));
    assert!(bench.is_filled(&inner(&second)));
    assert_eq!((Arc::strong_count(&tree), bench.levels.held.get()), (2, 600));
    drop(first);
    bench.lua.gc_collect().expect("memory");
    assert!(!bench.is_filled(&inner(&bench.push(&tree, 1000))));
}

#[test]
fn what_is_small_needs_no_tree() {
    let bench = Bench::new(1000);
    for tree in [json!({}), json!([]), json!({ "a": 1, "b": null }), json!([1, 2, 3])] {
        let tree = Arc::new(tree);
        assert!(bench.is_filled(&bench.push(&tree, 10)));
        assert_eq!(Arc::strong_count(&tree), 1);
    }
}

#[test]
fn a_filled_level_has_the_order_of_one_that_was_made_at_once() {
    let bench = Bench::new(1 << 20);
    let order = |table: &Table| {
        let pairs = table.pairs::<String, LuaValue>();
        pairs.map(|it| it.expect("a pair").0).collect::<Vec<_>>()
    };
    for size in 1..100 {
        let fields = (0..size).map(|it| (format!("field{}", it * 7919), json!({ "it": [it] })));
        let tree = Value::Object(fields.collect());
        let keys: Vec<_> = tree.as_object().expect("a map").keys().cloned().collect();
        let at_once = push::push(&bench.lua, &bench.shapes, &tree, Style::Frozen);
        let expected = order(at_once.expect("memory").as_table().expect("a table"));
        let looks = [0, 1, size / 2, size];
        for (json, looks) in forms(&tree).iter().flat_map(|it| looks.map(|looks| (it, looks))) {
            let lazy = bench.push_json(json, 10);
            for key in keys.iter().rev().take(looks) {
                assert!(lazy.get::<Table>(key.as_str()).is_ok());
            }
            bench.levels.fill(&lazy).expect("memory");
            assert_eq!(order(&lazy), expected, "{size} fields, {looks} looks");
        }
    }
}

#[test]
fn full_memory_raises_an_error_wherever_it_comes() {
    for json in forms(&many()) {
        raise_wherever_the_memory_is_full(&json);
    }
}

fn raise_wherever_the_memory_is_full(json: &SharedJson) {
    let bench = Bench::new(1 << 20);
    let look = "local t = ...; local n = 0; for _, v in t do if type(v) == 'table' then for _ in v do n += 1 end end end; return n";
    let look = bench.lua.load(look).into_function().expect("it compiles");
    let needed = {
        let before = bench.lua.used_memory();
        let counted: usize = look.call(bench.push_json(json, 10)).expect("memory");
        assert!(counted > 100);
        bench.lua.used_memory() - before
    };
    for left in (0..needed).step_by(97) {
        bench.lua.gc_collect().expect("memory");
        let table = bench.push_json(json, 10);
        let limit = bench.lua.used_memory() + left;
        bench.lua.set_memory_limit(limit).expect("a limit");
        // Some succeed, because garbage is collected.
        let _ended = look.call::<usize>(&table);
        bench.lua.set_memory_limit(0).expect("a limit");
    }
    bench.lua.gc_collect().expect("memory");
    assert_eq!((json.is_shared(), bench.levels.held.get()), (false, 0));
}

#[test]
fn what_is_not_read_takes_no_memory_in_the_vm() {
    let bench = Bench::new(1000);
    let items = (0..1000).map(|it| json!([it]));
    let list = Value::Array(items.clone().collect());
    let map = items.enumerate().map(|(at, it)| (format!("key{at}"), it)).collect();
    let used = |what: &dyn Fn() -> Table| {
        bench.lua.gc_collect().expect("memory");
        let before = bench.lua.used_memory();
        let table = what();
        bench.lua.gc_collect().expect("memory");
        (bench.lua.used_memory() - before, table)
    };
    for tree in [list, Value::Object(map)] {
        let frozen = || push::push(&bench.lua, &bench.shapes, &tree, Style::Frozen);
        let (full, _table) =
            used(&|| frozen().expect("memory").as_table().expect("a table").clone());
        for json in forms(&tree) {
            let (little, level) = used(&|| bench.push_json(&json, 1));
            assert!(little < 1000, "{little} bytes without an item");
            let (filled, _) = used(&|| {
                bench.levels.fill(&level).expect("memory");
                level.clone()
            });
            // The items are unfilled levels.
            assert!(filled < full + 1000 * 64, "{filled} bytes with all items, {full} in a table");
        }
    }
}
