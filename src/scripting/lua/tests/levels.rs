//! Whatever a script does with an unfilled level, it sees the same as with a table that was filled at once.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::call_about;
use crate::call::Scripts as _;
use crate::logic::{handlers::outcome::CallEnd, object::Object};
use crate::scripting::{LoadError, Placement, ScriptHost, Source, Terms};
use crate::settings::Settings;

/// Returns a part of an object with levels of all kinds. Keys are sorted, like those of a copy.
fn spec() -> Value {
    let many = |size: usize| -> Map<String, Value> {
        let key = |it| format!("key{it:02}");
        let field = |it: usize| match it % 4 {
            0 => json!({ "name": it, "list": [it, "x"] }),
            1 => json!(it),
            2 => json!([it, null, { "deep": [[it]] }]),
            _ => json!(format!("text {it}")),
        };
        (0..size).map(|it| (key(it), field(it))).collect()
    };
    json!({
        "date": { "day": 2, "hour": 3, "month": 1, "year": 2026 },
        "empty": { "list": [], "map": {} },
        "error": { "class": "permanent", "message": "as in a table" },
        "list": [3, 1, 2],
        "long": (1..=20).collect::<Vec<_>>(),
        "map": { "a": { "b": { "c": "d" } }, "flag": false, "none": null },
        "meta": { "__index": { "from": "meta" }, "__metatable": "mine" },
        "nested": (0..20).map(|it| json!({ "at": it, "in": { "it": [it] } })).collect::<Vec<_>>(),
        "nine": many(9),
        "nulls": { "a": null, "b": null },
        "numbers": [1, 1.0, -0.0, 0.5, 1e300, 9_007_199_254_740_993_i64, u64::MAX, -7],
        "sixteen": many(16),
        "sparse": [null, 1, null],
        "texts": ["b", "a", "c"],
        "thirty": many(30),
        "wide": "x".repeat(5000),
    })
}

/// Bodies of functions whose argument `t` is a part of an object; results and errors are compared.
const LOOKS: &[&str] = &[
    "return type(t), typeof(t), type(t.map), type(t.long)",
    "return getmetatable(t), getmetatable(t.list), getmetatable(t.map), getmetatable(t.empty.list)",
    "return t.map.a.b.c, t.map.flag, t.map.none, t.missing, t.wide",
    "return t[1], t[0], t[true], t['\\255'], t[1.5], t.nine[1], t.thirty['\\255'], t.thirty[t]",
    "return t.list[0], t.list[1], t.list[3], t.list[4], t.list[-1], t.list[1.5], t.list['1']",
    "return t.long[0], t.long[1], t.long[20], t.long[21], t.long[-1], t.long[1.5], t.long['1'], t.long[2^53], t.long[0/0]",
    "return t.sparse[1] == kopf.null, t.sparse[2], t.sparse[3] == kopf.null, #t.sparse",
    "return #t, #t.map, #t.list, #t.long, #t.empty.list, #t.empty.map, #t.nested, #t.nulls",
    "return rawlen(t), rawlen(t.map), rawlen(t.list), rawlen(t.long), rawlen('abc')",
    "return rawget(t, 'wide'), rawget(t, 'no'), rawget(t.map, 'flag'), rawget(t.long, 20), rawget(t.list, 1)",
    "return rawget(t.thirty, 'key01'), rawget(t.thirty, 'key04').name, rawget(t.thirty, nil)",
    "return t.map == t.map, t.thirty.key00 == t.thirty.key00, rawequal(t.nested[7], t.nested[7]), t.map == t.nine",
    "local one = t.thirty.key04; for _ in pairs(t.thirty) do end; return one == t.thirty.key04, one.list[2]",
    "local one = t.nested[19]; for _ in t.nested do end; return one == t.nested[19], one['in'].it[1]",
    "local one = t.nine.key04; local _ = next(t.nine); return one == t.nine.key04",
    "return all(pairs(t))",
    "return all(pairs(t.nine)), all(pairs(t.sixteen)), all(pairs(t.thirty)), all(pairs(t.map))",
    "local _ = t.sixteen.key04, t.sixteen.key12, t.sixteen.key09; return all(pairs(t.sixteen))",
    "local _ = t.thirty.key08, t.thirty.key04; return all(pairs(t.thirty))",
    "return all(ipairs(t.long)), all(ipairs(t.list)), all(ipairs(t.map)), all(ipairs(t.nested))",
    "local keys = {}; for key in t do keys[#keys + 1] = key end; return keys",
    "local keys = {}; for key, value in t.thirty do keys[#keys + 1] = key .. type(value) end; return keys",
    "local keys = {}; for key in next, t.thirty do keys[#keys + 1] = key end; return keys",
    "local keys = {}; for key, value in next, t.map do keys[#keys + 1] = {key, value} end; return keys",
    "local n, keys = next, {}; for key, value in n, t.sixteen do keys[#keys + 1] = {key, value} end; return keys",
    "local keys = {}; for key, value in next, t.list, nil do keys[#keys + 1] = {key, value} end; return keys",
    "local keys, key = {}, nil; repeat key = next(t.nine, key); keys[#keys + 1] = key until not key; return keys",
    "return next(t.empty.map), next(t.empty.list), next(t.nulls), next(t.long), next(t.long, 20), pcall(next, t.nine, 'no')",
    "local s = 0; for i, value in ipairs(t.long) do s += i * value end; return s",
    "local s = 0; for i = 1, #t.long do s += i * t.long[i] end; return s",
    "local s = 0; for i = #t.nested, 1, -1 do s = s * 3 + t.nested[i].at end; return s",
    "return table.concat(t.texts, ','), table.concat(t.long, ' ', 18), pcall(table.concat, t.map), pcall(table.concat, t.nested)",
    "return table.find(t.texts, 'c'), table.find(t.long, 20), table.find(t.list, 9), table.find(t.nested, t.nested[20])",
    "return table.unpack(t.list)",
    "return unpack(t.long, 18)",
    "return select('#', table.unpack(t.long)), select(2, unpack(t.texts)), math.max(unpack(t.long))",
    "return table.move(t.list, 1, 3, 2, {0}), table.move(t.long, 19, 20, 1, {}), pcall(table.move, t.list, 1, 2, 2)",
    "return table.isfrozen(t), table.isfrozen(t.map), table.isfrozen(t.thirty.key00), table.isfrozen(t.long)",
    "return pcall(table.clone, t), pcall(table.clone, t.list), pcall(table.freeze, t.map), pcall(table.clear, t.list)",
    "return pcall(setmetatable, t, {}), pcall(setmetatable, t.list, nil), pcall(rawset, t, 'x', 1), pcall(rawset, t.list, 1, 1)",
    "return pcall(function() t.x = 1 end), pcall(function() t.map.a = 1 end), pcall(function() t.long[1] = 2 end)",
    "return pcall(function() t.map.none = 1 end), pcall(function() t[1] = 1 end), pcall(function() t.nine.key01 += 1 end)",
    "return pcall(table.insert, t.list, 4), pcall(table.insert, t.list, 1, 4), pcall(table.insert, t.map, 1)",
    "return pcall(table.remove, t.list), pcall(table.remove, t.long, 1), pcall(table.remove, t.empty.list), pcall(table.remove, t.list, 9)",
    "return pcall(table.sort, t.list), pcall(table.sort, t.long), pcall(table.sort, t.empty.list)",
    "local seen = {}; table.foreach(t.map, function(k, v) seen[#seen + 1] = {k, v} end); return seen",
    "local seen = {}; table.foreachi(t.long, function(k, v) seen[k] = v * 2 end); return seen",
    "return table.maxn(t.long), table.maxn(t.map), table.getn(t.list), table.getn(t.long)",
    "return os.time(t.date), pcall(os.time, t.map)",
    "return tostring(t), tostring(t.map), tostring(t.long), tostring(t.nulls), string.format('%s %*', t.map, t.list)",
    "return tostring(t.numbers), t.numbers, t.numbers[2] == 1, 1 / t.numbers[3]",
    "return setmetatable({}, { __index = t }).wide, setmetatable({}, { __index = t }).map.a.b.c",
    "local made = setmetatable({}, t.meta); return getmetatable(made), made.from",
    "local made = setmetatable({}, { __index = t.thirty }); return made.key04.name, made.key01, made.no, rawget(made, 'key01')",
    "return pcall(setmetatable, {}, 5), pcall(setmetatable, {}), pcall(rawget), pcall(rawget, {}), pcall(rawlen, 5), pcall(next, 5)",
    "return pcall(pairs, 5), pcall(pairs), pcall(ipairs, 'x'), pcall(rawget, 'x', 1), pcall(setmetatable, 1, {})",
    "return pcall(function() return t < t end), pcall(function() return t .. '' end), pcall(function() return t() end), pcall(function() return -t end)",
    "return pcall(error, t.error), pcall(error, t.map), select(2, kopf.try(error, t.error))",
    "local co = coroutine.wrap(function() for k, v in t.map do coroutine.yield(k) end end); return co(), co()",
    "local co = coroutine.create(function() return t.map.a.b.c, #t.long end); return coroutine.resume(co)",
    "return string.gsub('wide list', '%a+', { wide = t.texts[1] }), pcall(string.gsub, 'x', 'x', t.map)",
    "return json.encode(t), json.encode(t.nulls), json.encode(t.numbers), json.encode({ t.map, [2] = t.list })",
    "return t, t.thirty, { t.nested, t.empty }, { inner = t.nulls }",
    "local _ = t.thirty.key00.list, t.nested[3]['in']; for _ in t.map do end; return t",
    "return kopf.copy(t), kopf.copy(t.thirty), #kopf.copy(t.list)",
    "return kopf.get(t, 'map.a.b.c'), kopf.get(t, 'nested[3].in'), kopf.get(t.list, '[0]'), kopf.get(t, { 'long', 1 })",
    "return pcall(kopf.array, t.list), pcall(kopf.array, t.map), pcall(kopf.array, t.thirty), pcall(json.encode, t, 5, 6, 7, 8)",
    "return lists.contains and lists.contains(t.list, 3)",
    "return #table.pack(t, t.map), table.create(2, t.map)[2] == t.map, select(1, t).map.a.b.c",
    "local seen = { [t] = 1, [t.map] = 2 }; return seen[t], seen[t.map], seen[t.list]",
    "return string.rep('x', 2000) .. #t.wide, t.wide == string.rep('x', 5000)",
];

/// Functions that the bodies use: one collects a whole loop as a list, one shows results as JSON.
const AROUND: &str = "
    local function all(step, state, key)
        local items, value = {}, nil
        for key, value in step, state, key do items[#items + 1] = { tostring(key), value } end
        return items
    end
    local function seen(...)
        local shown = table.pack(...)
        for i = 1, shown.n do
            if shown[i] == nil then shown[i] = 'nil' end
            if shown[i] ~= shown[i] or shown[i] == math.huge or shown[i] == -math.huge then shown[i] = tostring(shown[i]) end
        end
        shown.n = nil
        return json.encode(shown)
    end";

fn script() -> String {
    let declaration = |(number, look): (usize, &&str)| {
        format!(
            "
    do
        local function look(t) {look} end
        kopf.on_create('kopfexamples', {{ id = 'look{number}' }}, function(ctx)
            local copy = filled(ctx.spec)
            return {{ seen(pcall(look, ctx.spec)), seen(pcall(look, copy)) }}
        end)
    end"
        )
    };
    let declarations = LOOKS.iter().enumerate().map(declaration);
    [AROUND.to_owned()].into_iter().chain(declarations).collect()
}

#[tokio::test]
async fn a_level_looks_as_if_it_had_been_filled_at_once() {
    let terms = Terms::of(Placement::Threads, &Settings::default());
    let loaded = ScriptHost::load(vec![Source::alone("handlers.lua", script())], terms).await;
    let told = |it: Vec<LoadError>| it.iter().map(ToString::to_string).collect::<String>();
    let (host, handlers) = loaded.map_err(told).expect("it loads");
    let mut different = Vec::new();
    for (handler, look) in handlers.into_iter().map(Arc::new).zip(LOOKS) {
        let body = json!({ "spec": spec() });
        let tape = Object::parse_as_tape(body.to_string().into()).expect("JSON");
        let mut results = Vec::new();
        for object in [Object::from_value(body), tape] {
            let ended = host.call(Arc::new(call_about(&handler, object))).await;
            let CallEnd::Returned(Some(seen)) = &ended else { panic!("{look}: {ended:?}") };
            results.extend(seen.as_array().cloned().unwrap_or_default());
        }
        let has_looked = results[0].as_str().is_some_and(|it| it.starts_with("[true"));
        if !has_looked || results.len() != 4 || results.iter().any(|it| *it != results[0]) {
            different.push(format!("{look}: {results:?}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
