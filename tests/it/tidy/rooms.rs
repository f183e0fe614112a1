//! The order of rooms inside of the large modules, and the budgets that may only fall.

use std::{collections::BTreeMap, path::Path};

use super::{File, imports::Graph, own_files, source};

/// Rooms from the inside out: files of a room import only from their own room and from those before it.
const ROOMS: &[(&str, &[&str])] = &[
    (
        "logic",
        &[
            "text",
            "object",
            "schedules",
            "handlers",
            "change",
            "background",
            "admission",
            "generation",
            "discovery",
            "replicas",
            "access",
            "reconcile",
            "configure",
        ],
    ),
    ("reactor", &["object", "observer", "streams", "generation", "operator"]),
    (
        "scripting",
        &[
            "terms",
            "values",
            "functions",
            "surface",
            "handles",
            "script",
            "inline",
            "actor",
            "blocking",
            "lua",
            "rhai",
            "host",
        ],
    ),
];

/// Existing arrows against that order: from a file to a room. None may be added.
const UPWARD: &[(&str, &str)] = &[
    ("src/scripting/functions/kopf.rs", "handles"),
    ("src/scripting/functions/kopf.rs", "surface"),
    ("src/scripting/functions/names.rs", "surface"),
    ("src/scripting/values/mod.rs", "handles"),
];

/// The number of files that import themselves through others. May only fall.
const FILES_IN_CYCLES: usize = 97;

/// Maximum number of lines by which a room may be below its budget; beyond it, the budget must be lowered.
const SLACK: usize = 200;

/// Lines of production code by room, comments included, in hundreds. May only fall: a new feature gets a separate room, or space by
/// a cut; a commit that raises a number says why.
const BUDGETS: &[(&str, usize)] = &[
    ("call", 3200),
    ("checker", 6000),
    // Wake-ups are coalesced under load: a third of the CPU for a creation.
    ("cli", 14600),
    // A client without a queue, and the texts that are received twice: a tenth of the CPU for a creation. Requests in flight.
    ("cluster", 5100),
    ("features", 100),
    ("features/admission", 1110),
    ("features/daemons", 2550),
    ("features/duplicates", 200),
    ("features/indexes", 620),
    ("features/leadership", 400),
    ("features/peering", 1000),
    ("features/posting", 500),
    ("features/probes", 1000),
    ("features/reconcile", 800),
    ("features/schedules", 600),
    // Tasks about objects take turns: the longest delay by many objects at once is that by one.
    ("handling", 1700),
    // Pages for long-lived values: a quarter less memory with 10,000 daemons. Free blocks for the next tree: less CPU for each event.
    ("heap", 720),
    // Tapes, the second form of objects: trees took almost half of the time of a review, of which a script reads a few fields. The
    // memory of a tree, of which scripting had two estimates. Managed fields are cut off without parsing them, and a text is compared with
    // the fields that it must have and no others. Headers are read in place.
    ("json", 2090),
    ("lib", 200),
    ("logic", 100),
    ("logic/access", 1700),
    // Reviews are read without trees of their objects.
    ("logic/admission", 1700),
    // Indexes count their own bytes, and remove outdated values in parts; timers plan from the moment of a change.
    ("logic/background", 1510),
    // Each author of a patch keeps what it has added, instead of the whole patch; the results of one cycle are limited together.
    // What a completed change leaves behind needs no cycle. A large patch is sent without copies: a third of the longest delay.
    ("logic/change", 2740),
    ("logic/configure", 1500),
    ("logic/discovery", 700),
    ("logic/generation", 500),
    ("logic/handlers", 4050),
    // The two forms of bodies, and the number of items in results and patches. An essence is recognized without a tree.
    ("logic/object", 2350),
    ("logic/reconcile", 1050),
    ("logic/replicas", 1000),
    ("logic/schedules", 500),
    ("logic/text", 350),
    ("lsp", 800),
    // From scripting/lua, which has no unsafe code any more. New: threads may keep the interrupt of a VM that is closed. Steps are counted
    // and coroutines resumed without a call of the host or of Lua for each: a quarter of the time of a short call.
    ("luau", 1810),
    ("ports", 1300),
    ("reactor", 100),
    ("reactor/generation", 900),
    // The last events of a change need no cycle: a seventh of the CPU for a creation.
    // Handlers of the same field share its values.
    ("reactor/object", 5080),
    ("reactor/observer", 1100),
    ("reactor/operator", 1300),
    ("reactor/streams", 1300),
    // What belongs to Rhai itself, without anything of operators: it was a fifth of scripting/rhai.
    ("rhai", 1200),
    ("scripting", 200),
    // Everything of the engines that needs no VM: 1,200 lines of Lua, 1,700 of Rhai, and their seams.
    ("scripting/actor", 1500),
    ("scripting/blocking", 2000),
    ("scripting/functions", 15500),
    ("scripting/handles", 2100),
    ("scripting/host", 700),
    ("scripting/inline", 300),
    ("scripting/lua", 3700),
    ("scripting/rhai", 3800),
    // One search of the sources for the ids of all indexes, on another thread than the operator's.
    ("scripting/script", 2900),
    ("scripting/surface", 2900),
    ("scripting/values", 1640),
    ("settings", 800),
    ("sources", 2300),
    ("telemetry", 1900),
    ("testing", 1300),
    ("webhooks", 1500),
];

/// Returns the room of a file: `logic/text`, `cluster`, or `lib` for the files directly in `src`.
fn room(path: &Path) -> String {
    let parts: Vec<_> = path.iter().filter_map(|it| it.to_str()).skip(1).collect();
    let [module, rest @ ..] = parts.as_slice() else { return String::new() };
    let is_split = ROOMS.iter().any(|(it, _)| it == module) || *module == "features";
    match rest {
        [] => "lib".to_owned(),
        [room, _, ..] if is_split => format!("{module}/{room}"),
        _ => (*module).to_owned(),
    }
}

/// Returns the budget of a room with this number of lines.
fn hundreds(lines: usize) -> usize {
    lines.div_ceil(100) * 100
}

/// Returns the number of lines of a file that are not tests.
fn lines(file: &File) -> usize {
    let tests = source::test_items(&file.text);
    let of_tests = tests.into_iter().filter_map(|it| file.text.get(it));
    file.text.lines().count() - of_tests.map(|it| it.lines().count()).sum::<usize>()
}

#[test]
fn rooms_use_only_those_inside_of_them() {
    let graph = Graph::read();
    let mut found = Vec::new();
    for (module, rooms) in ROOMS {
        let place = |path: &Path| {
            let inside = path.strip_prefix("src").ok()?.strip_prefix(module).ok()?;
            let room = inside.iter().next()?.to_str()?.trim_end_matches(".rs");
            if room == "mod" {
                None
            } else {
                Some((rooms.iter().position(|it| *it == room), room.to_owned()))
            }
        };
        for (from, to) in graph.edges() {
            let (Some((own, name)), Some((its, other))) = (place(from), place(to)) else {
                continue;
            };
            assert!(own.is_some(), "src/{module}/{name} has no place in the order of rooms");
            if its > own {
                found.push((from.to_str().expect("UTF-8").to_owned(), other));
            }
        }
    }
    found.sort();
    found.dedup();
    let known: Vec<_> =
        UPWARD.iter().map(|(file, room)| ((*file).to_owned(), (*room).to_owned())).collect();
    for (file, room) in &found {
        let arrow = (file.clone(), room.clone());
        assert!(
            known.contains(&arrow),
            "{file} uses the room `{room}`, which is outside of its own: move what it needs inwards"
        );
    }
    for (file, room) in &known {
        let arrow = (file.clone(), room.clone());
        assert!(
            found.contains(&arrow),
            "{file} uses `{room}` no more: remove that line of `UPWARD`"
        );
    }
}

#[test]
fn no_more_files_are_in_cycles() {
    let graph = Graph::read();
    let files = graph.in_cycles();
    let (count, max) = (files.len(), FILES_IN_CYCLES);
    let listed: Vec<_> = files.iter().map(|it| it.display().to_string()).collect();
    let listed = listed.join("\n");
    assert!(
        count <= max,
        "{count} files import themselves by way of others, {max} may: put what both sides need into a file of its own\n{listed}"
    );
    assert_eq!(count, max, "fewer files are in cycles: lower `FILES_IN_CYCLES` to {count}");
}

#[test]
fn no_room_exceeds_its_budget() {
    let mut rooms = BTreeMap::new();
    for file in own_files().iter().filter(|it| !it.is_test()) {
        *rooms.entry(room(&file.path)).or_insert(0) += lines(file);
    }
    let mut wrong = Vec::new();
    for (room, lines) in &rooms {
        let budget = BUDGETS.iter().find(|(it, _)| it == room).map_or(0, |(_, budget)| *budget);
        if *lines > budget {
            wrong.push(format!(
                "src/{room} has {lines} lines, {budget} are budgeted: cut as much as you add"
            ));
        } else if lines + SLACK < budget {
            wrong.push(format!(
                "src/{room} has only {lines} lines: lower its budget of {budget} to that"
            ));
        }
    }
    let gone = BUDGETS.iter().filter(|(room, _)| !rooms.contains_key(*room));
    wrong.extend(
        gone.map(|(room, _)| format!("there is no src/{room} any more: remove its budget")),
    );
    let table: Vec<_> = rooms
        .iter()
        .map(|(room, lines)| format!("    (\"{room}\", {}),", hundreds(*lines)))
        .collect();
    assert!(wrong.is_empty(), "{}\nAs it is now:\n{}", wrong.join("\n"), table.join("\n"));
}

#[test]
fn the_room_of_a_file_is_its_folder() {
    assert_eq!(room(Path::new("src/logic/text/size.rs")), "logic/text");
    assert_eq!(room(Path::new("src/logic/mod.rs")), "logic");
    assert_eq!(room(Path::new("src/cluster/watch.rs")), "cluster");
    assert_eq!(room(Path::new("src/lib.rs")), "lib");
}
