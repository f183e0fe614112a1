//! Which handlers an edit changes. Declarations are marked by comments: `--@name`, `//@name`.

use std::collections::BTreeMap;

use super::{DeclarationPart, Fingerprints, lua, rhai};
use crate::scripting::terms::Language;

const LUA: &str = r#"#!/usr/bin/env kopf
-- What the handlers share.
local LIMIT = 3
local helpers = {}
local NAMES = { "a", "b" }

function helpers.size(ctx)
    return ctx.spec.size * LIMIT
end

function helpers.name(ctx) return ctx.name end

local function greet(ctx)
    ctx.logger:info(helpers.name(ctx))
end

kopf.on_create("kex", { id = "create" }, function(ctx) --@create
    greet(ctx)
    return { size = helpers.size(ctx) }
end)

kopf.daemon("kex", { id = "watch", interval = 5 }, --@watch
    function(ctx)
        local rounds = 0
        while not ctx.stopped:wait(1) do
            rounds += 1
            ctx.logger:info(`round {rounds} of {helpers.name(ctx)}`)
        end
    end)

for _, name in ipairs(NAMES) do
    local id = "timer_" .. name
    kopf.timer("kex", { id = id, interval = 5 }, function() end) --@timers
end

kopf.on_event("kex", function() end) --@event
"#;

const RHAI: &str = r#"// What the handlers share.
const LIMIT = 3;
let NAMES = ["a", "b"];

fn size(ctx) { ctx.spec.size * LIMIT }
fn name(ctx) { ctx.name }

fn greet(ctx) {
    ctx.logger.info(name(ctx));
}

kopf::on_create("kex", #{ id: "create" }, |ctx| { //@create
    greet(ctx);
    #{ size: size(ctx) }
});

kopf::daemon("kex", #{ id: "watch" }, |ctx| { //@watch
    let rounds = 0;
    while !ctx.stopped.wait(1) {
        rounds += 1;
        ctx.logger.info(`round ${rounds} of ${name(ctx)}`);
    }
});

for name in NAMES {
    let id = "timer_" + name;
    kopf::timer("kex", #{ id: id, interval: 5 }, |ctx| ()); //@timers
}

kopf::on_event("kex", |ctx| ()); //@event
"#;

/// Returns the fingerprints of the marked lines.
fn codes(language: Language, text: &str) -> BTreeMap<String, u64> {
    let fingerprints = Fingerprints::of(language, text);
    let lines = text.lines().zip(1..);
    let marked = lines.filter_map(|(line, number)| Some((line.split_once('@')?.1, number)));
    marked.map(|(mark, number)| (mark.to_owned(), fingerprints.of_line(number))).collect()
}

/// Returns which of the marked lines differ.
fn changed(language: Language, before: &str, after: &str) -> String {
    let (before, after) = (codes(language, before), codes(language, after));
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    let differ = before.iter().filter(|(mark, code)| after.get(*mark) != Some(code));
    differ.map(|it| it.0.as_str()).collect::<Vec<_>>().join(" ")
}

/// Replaces a part of the source, and returns which handlers that changes.
fn edit(language: Language, text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "there is no `{from}`");
    changed(language, text, &text.replacen(from, to, 1))
}

#[test]
fn an_edit_of_lua_changes_the_handlers_that_it_affects() {
    let all = "create event timers watch";
    for (from, to, expected) in [
        // Comments and white space.
        ("-- What the handlers share.\n", "\n\n-- Shared\n--[==[ by\nall ]] ]==]\n", ""),
        ("kopf.on_event", "\n\n\n    kopf.on_event", ""),
        ("    greet(ctx)\n", "greet ( ctx )  ;  ".trim_end_matches("  ;  "), ""),
        // The declaration itself, options and body.
        ("interval = 5 }, --@watch", "interval = 6 }, --@watch", "watch"),
        ("rounds = 0", "rounds = 1", "watch"),
        ("`round {rounds}", "`Round {rounds}", "watch"),
        ("`round {rounds}", "`round {rounds + 1}", "watch"),
        ("return { size", "return { bytes", "create"),
        ("\"timer_\"", "\"tick_\"", "timers"),
        // What they mention, directly and indirectly.
        ("LIMIT = 3", "LIMIT = 4", "create"),
        ("ctx.spec.size *", "ctx.spec.size +", "create"),
        ("return ctx.name", "return ctx.uid", "create watch"),
        ("ctx.logger:info(helpers", "ctx.logger:warn(helpers", "create"),
        ("{ \"a\", \"b\" }", "{ \"a\" }", "timers"),
        ("local helpers = {}", "local helpers = { x = 1 }", "create watch"),
        // What is unrelated to them.
        ("kopf.on_event", "local unused = 1\nkopf.on_event", ""),
        ("kopf.on_event", "local function unused() return LIMIT end\nkopf.on_event", ""),
        ("kopf.on_event", "kopf.on_create('x', function() end)\nkopf.on_event", ""),
        ("kopf.on_event", "if LIMIT then print('x') end\nkopf.on_event", ""),
        // Unknown side effects.
        ("kopf.on_event", "table.insert(NAMES, 'c')\nkopf.on_event", all),
        ("kopf.on_event", "setup()\nkopf.on_event", all),
        ("kopf.on_event", "local ok = setup()\nkopf.on_event", all),
        ("kopf.on_event", "(function() NAMES = {} end)()\nkopf.on_event", all),
        ("kopf.on_event", "if LIMIT > 2 then NAMES = {} end\nkopf.on_event", all),
        ("kopf.on_event", "do local x = 1; y = x end\nkopf.on_event", all),
        ("kopf.on_event", "string.trim = function() end\nkopf.on_event", all),
        ("kopf.on_event", "function string.trim() end\nkopf.on_event", all),
        ("kopf.on_event", "local alias = NAMES\nfunction alias.x() end\nkopf.on_event", all),
        ("kopf.on_event", "setmetatable(helpers, {})\nkopf.on_event", all),
        // Passing on a table as a whole mentions everything in it.
        ("function() end) --@event", "function() print(helpers) end) --@event", "event"),
    ] {
        assert_eq!(edit(Language::Lua, LUA, from, to), expected, "{from} → {to}");
    }
}

#[test]
fn an_edit_of_rhai_changes_the_handlers_that_it_affects() {
    let all = "create event timers watch";
    for (from, to, expected) in [
        ("// What the handlers share.\n", "\n\n/* Shared /* by */ all */\n", ""),
        ("kopf::on_event", "\n\n\n    kopf::on_event", ""),
        ("rounds = 0", "rounds = 1", "watch"),
        ("`round ${", "`Round ${", "watch"),
        ("${rounds}", "${rounds + 1}", "watch"),
        ("#{ size: size", "#{ bytes: size", "create"),
        ("\"timer_\"", "\"tick_\"", "timers"),
        ("LIMIT = 3", "LIMIT = 4", "create"),
        ("ctx.spec.size *", "ctx.spec.size +", "create"),
        // The loop has a variable of the same name: in doubt it depends on the function.
        ("{ ctx.name }", "{ ctx.uid }", "create timers watch"),
        ("ctx.logger.info(name", "ctx.logger.warn(name", "create"),
        ("[\"a\", \"b\"]", "[\"a\"]", "timers"),
        ("kopf::on_event", "let unused = 1;\nkopf::on_event", ""),
        ("kopf::on_event", "fn unused() { LIMIT }\nkopf::on_event", ""),
        ("kopf::on_event", "kopf::on_create('x', |ctx| ());\nkopf::on_event", ""),
        ("kopf::on_event", "if LIMIT > 2 { print(`x`); }\nkopf::on_event", ""),
        ("kopf::on_event", "NAMES.push(`c`);\nkopf::on_event", all),
        ("kopf::on_event", "setup();\nkopf::on_event", all),
        ("kopf::on_event", "let ok = setup();\nkopf::on_event", all),
        ("kopf::on_event", "if LIMIT > 2 { NAMES = []; }\nkopf::on_event", all),
        ("kopf::on_event", "kopf.set_default_lifecycle(`asap`);\nkopf::on_event", ""),
    ] {
        assert_eq!(edit(Language::Rhai, RHAI, from, to), expected, "{from} → {to}");
    }
}

#[test]
fn handlers_that_mention_changed_variables_depend_on_everything() {
    let lua = "
        local QUEUE, COUNT, SEEN = {}, 0, {}
        local log = {}
        kopf.on_create('kex', function(ctx) table.insert(QUEUE, ctx.uid) end) --@push
        kopf.on_update('kex', function(ctx) SEEN[ctx.uid] = true; COUNT += 1 end) --@mark
        kopf.on_delete('kex', function(ctx) local n = 1; n = n + 1; _ = n end) --@own
        kopf.daemon('kex', function(ctx) while #QUEUE > 0 do end end) --@drain
        kopf.timer('kex', { interval = 1 }, function(ctx) print(COUNT) end) --@count
        kopf.timer('kex', { id = 'see', interval = 1 }, function(ctx) print(SEEN) end) --@see
        kopf.on_event('kex', function(ctx) print(log) end) --@log
        local unused = 1
    ";
    let found = edit(Language::Lua, lua, "unused = 1", "unused = 2");
    assert_eq!(found, "count drain mark push see");
    let rhai = "
        let QUEUE = []; let COUNT = 0; let SEEN = #{}; let log = [];
        kopf::on_create(`kex`, |ctx| { QUEUE.push(ctx.uid); }); //@push
        kopf::on_update(`kex`, |ctx| { SEEN[ctx.uid] = true; COUNT += 1; }); //@mark
        kopf::on_delete(`kex`, |ctx| { let n = 1; n = n + 1; n }); //@own
        kopf::daemon(`kex`, |ctx| { while QUEUE.len() > 0 {} }); //@drain
        kopf::timer(`kex`, #{ interval: 1 }, |ctx| print(COUNT)); //@count
        kopf::timer(`kex`, #{ id: `see`, interval: 1 }, |ctx| print(SEEN)); //@see
        kopf::on_event(`kex`, |ctx| print(log)); //@log
        let unused = 1;
    ";
    let found = edit(Language::Rhai, rhai, "unused = 1", "unused = 2");
    assert_eq!(found, "count drain mark push see");
}

#[test]
fn methods_that_change_their_object_tie_handlers_together() {
    let lua = "
        local Store = {}
        function Store:add(x) self.last = x end
        local store = setmetatable({}, { __index = Store })
        kopf.on_create('kex', function(ctx) store:add(ctx.uid) end) --@add
        kopf.on_event('kex', function(ctx) print(('x'):rep(3)) end) --@event
        local unused = 1
    ";
    assert_eq!(edit(Language::Lua, lua, "unused = 1", "unused = 2"), "add");
    assert_eq!(edit(Language::Lua, lua, "self.last", "self.first"), "add");
}

#[test]
fn handlers_with_access_to_everything_depend_on_everything() {
    let lua = "
        local function f() end
        kopf.on_create('kex', function(ctx) _G['f' .. 'oo']() end) --@any
        kopf.on_event('kex', function(ctx) end) --@event
    ";
    assert_eq!(edit(Language::Lua, lua, "f() end", "f() return 1 end"), "any");
    let rhai = "
        fn f(ctx) { 1 } fn g(ctx) { 1 }
        kopf::on_create(`kex`, Fn(`f`)); //@named
        kopf::on_delete(`kex`, Fn(`` + `f`)); //@any
        kopf::on_event(`kex`, |ctx| ()); //@event
    ";
    assert_eq!(edit(Language::Rhai, rhai, "f(ctx) { 1 }", "f(ctx) { 2 }"), "any named");
    assert_eq!(edit(Language::Rhai, rhai, "g(ctx) { 1 }", "g(ctx) { 2 }"), "any");
}

#[test]
fn statements_of_lua_end_where_the_next_begins() {
    for (text, expected) in [
        ("a = 1 b = 2", 2),
        ("local x: number? local y = 1", 2),
        ("local x = if a then b else c d()", 2),
        ("local x = if a then if b then 1 else 2 elseif c then 3 else 4 d()", 2),
        ("if a then b() else if c then d() end end e()", 2),
        ("while a do if b then break end end repeat local c = 1 until c == 1 d()", 3),
        ("for i = 1, 2 do f() end for _, v in x do g() end", 2),
        ("f 'text' g { 1 } h [[ long ]]", 3),
        ("f\n(g)(h)", 1),
        ("local f = function(a, ...) return ... end local function g() end function M.h() end", 3),
        ("x = `a{b}c{`d{e}`}f` y = 1", 2),
        ("x = '\\'' y = \"\\\\\" z = '\\z\n  '", 3),
        ("return { a = 1, function() end }", 1),
        ("x = 1..2 y = 0x1p-3 z = 1e-3", 3),
        ("do local a = 1 end; ; b()", 2),
        ("type A = { x: number } export type B = (A) -> ()", 3),
        ("--[[ a ]] --[=[ ]] ]=]\n-- b\n--[ c\nx = 1", 1),
    ] {
        let found = lua::statements(text).map(|it| it.len());
        // A type is split into its keyword and the rest, which is harmless.
        let found = if text.starts_with("type") { found.map(|_| expected) } else { found };
        assert_eq!(found, Some(expected), "{text}");
    }
    for broken in
        ["f(", "end", "x = 'a", "x = [[a", "--[[", "x = `a{b`", "function f()", "\u{7f}", "é = 1"]
    {
        assert!(lua::statements(broken).is_none(), "{broken}");
    }
}

#[test]
fn statements_of_rhai_end_where_they_end() {
    for (text, expected) in [
        ("let a = 1; let b = 2", 2),
        ("fn f(a, b) { a | b } private fn g() {} let x = |a| a + 1;", 3),
        ("if a { b } else if c { d } else { e } f();", 2),
        ("let x = if a { b } else { c }; d();", 2),
        ("try { a } catch (e) { b } c();", 2),
        ("do { a } while b; c();", 2),
        ("switch a { 1 => { b } _ => c } d();", 2),
        ("let x = `a ${ `b ${ c }` } d`; let y = #\"a \" b\"#; let z = 'c';", 3),
        ("f(|a, b| a || b, || #{ x: 1 }); g([|x| x, |y| y]);", 2),
        ("let x = #{ a: |ctx| { 1 }, b: 2 }; y?.z ?? 1;", 2),
        ("import \"lib\" as lib; export const X = 1;", 2),
        ("let x = 1..2; let y = 1.max(2); let z = 1e-3;", 3),
        ("loop { break } { f() } while a { } for x in 0..3 { } g()", 5),
    ] {
        assert_eq!(rhai::statements(text).map(|it| it.len()), Some(expected), "{text}");
    }
    for broken in ["f(", "}", "let x = \"a", "/* a", "`a ${ b`", "fn f() {", "é = 1"] {
        assert!(rhai::statements(broken).is_none(), "{broken}");
    }
}

#[test]
fn handlers_of_a_source_that_cannot_be_split_depend_on_all_of_it() {
    for language in [Language::Lua, Language::Rhai] {
        let (one, other) =
            (Fingerprints::of(language, "f((("), Fingerprints::of(language, "f((( "));
        assert_ne!(one.of_line(1), other.of_line(1));
        assert_eq!(one.of_line(1), one.whole());
        // Without statements, there are no parts.
        let text = Fingerprints::of(language, "f()\n");
        assert_eq!(text.of_line(7), text.whole());
    }
}

#[test]
fn any_source_has_fingerprints_and_they_are_stable() {
    let pieces = [
        "function", "end", "fn", "{", "}", "(", ")", "[", "]", "`", "${", "|", "||", "\"", "'",
        "--", "--[[", "]]", "/*", "*/", "//", "if", "then", "else", "elseif", "do", "repeat",
        "until", "local", "let", "=", ",", ".", ":", "::", "x", "M", "kopf", "1", "0x", "1e", "..",
        "#", "#{", "#\"", "\\", "\n", " ", ";", "é", "\0", "import", "as",
    ];
    let mut random = fastrand::Rng::with_seed(5);
    for round in 0..4000 {
        let (language, base) =
            if round % 2 == 0 { (Language::Lua, LUA) } else { (Language::Rhai, RHAI) };
        let mut text: Vec<char> = if round % 3 == 0 { Vec::new() } else { base.chars().collect() };
        for _ in 0..random.usize(1..12) {
            let at = random.usize(..=text.len());
            let until = text.len().min(at + random.usize(..6));
            let piece = pieces.get(random.usize(..pieces.len())).copied().unwrap_or_default();
            text.splice(at..until, piece.chars());
        }
        let text: String = text.into_iter().collect();
        let (one, other) = (Fingerprints::of(language, &text), Fingerprints::of(language, &text));
        for line in 0..50 {
            assert_eq!(one.of_line(line), other.of_line(line), "{text}");
            assert_ne!(one.of_line(line), 0);
        }
    }
}

/// Returns which parts of the declarations an edit changes: `name.selector`, `name.filters`; with `?` if that is unknown.
fn parts(language: Language, text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "there is no `{from}`");
    let after = text.replacen(from, to, 1);
    let codes = |text: &str| {
        let fingerprints = Fingerprints::of(language, text);
        let lines = text.lines().zip(1..).filter_map(|(line, number)| {
            let mark = line.split_once('@')?.1.to_owned();
            let part = |part| fingerprints.of_part(number, part);
            Some((mark, [part(DeclarationPart::Selector), part(DeclarationPart::Filters)]))
        });
        lines.collect::<Vec<_>>()
    };
    let mut differ = Vec::new();
    for ((mark, before), (_, after)) in codes(text).iter().zip(codes(&after)) {
        for (part, (before, after)) in ["selector", "filters"].iter().zip(before.iter().zip(after))
        {
            match (*before, after) {
                (0, _) | (_, 0) => differ.push(format!("{mark}.{part}?")),
                (before, after) if before != after => differ.push(format!("{mark}.{part}")),
                _ => {}
            }
        }
    }
    differ.join(" ")
}

#[test]
fn functions_of_selectors_and_filters_are_distinguished_from_the_handler() {
    let lua = "
        local PLURAL, LIMIT = 'kex', 3
        local function wanted(resource) local a, b = PLURAL, 1; return resource.plural == a end
        local function big(ctx) return ctx.spec.size > LIMIT end
        kopf.on_create(wanted, { id = 'one', when = big, retries = 3 }, function(ctx) --@one
            return { a = 1, b = 2 }
        end)
        kopf.on.update(function(r) local a, b = 1, 2 return r.kind == 'Two' end, { --@two
            labels = { x = function(value) return value == 'y' end, z = 'w' }; id = 'two',
        }, function() end)
        kopf.on_event('kex', function(ctx) print('three') end) --@three
    ";
    let rhai = "
        const PLURAL = `kex`; const LIMIT = 3;
        fn wanted(resource) { resource.plural == PLURAL }
        fn big(ctx) { ctx.spec.size > LIMIT }
        kopf::on_create(wanted, #{ id: `one`, when: big, retries: 3 }, |ctx| { //@one
            #{ a: 1, b: 2 }
        });
        kopf.on.update(|r| r.kind == `Two`, #{ //@two
            labels: #{ x: |value| value == `y`, z: `w` }, id: `two`,
        }, || ());
        kopf::on_event(`kex`, |ctx| print(`three`)); //@three
    ";
    for (language, text, assign) in [(Language::Lua, lua, "="), (Language::Rhai, rhai, ":")] {
        let (retries, id) = (format!("retries{assign} 3"), format!("id{assign} "));
        let (retries, id) = match language {
            Language::Lua => (retries.replace('=', " ="), id.replace('=', " =")),
            Language::Rhai => (retries, id),
        };
        for (from, to, expected) in [
            // The handler, and options that are not filters.
            ("2 }", "3 }", ""),
            ("three", "drei", ""),
            (retries.as_str(), retries.replace('3', "4").as_str(), ""),
            (id.as_str(), "id = 'x' .. ", ""),
            ("print(", "  print (", ""),
            // What they mention.
            ("resource.plural ==", "resource.kind ==", "one.selector"),
            ("size >", "size <", "one.filters"),
            ("r.kind ==", "r.plural ==", "two.selector"),
            ("value ==", "value ~=", "two.filters"),
        ] {
            let to = match language {
                Language::Rhai => to.replace("~=", "!=").replace("id = 'x' .. ", "id: `x` + "),
                Language::Lua => to.to_owned(),
            };
            assert_eq!(parts(language, text, from, &to), expected, "{from} → {to}");
        }
    }
    assert_eq!(parts(Language::Lua, lua, "'kex', 3", "'kex', 4"), "one.selector one.filters");
}

#[test]
fn a_declaration_that_does_not_stand_alone_has_no_parts() {
    let lua = "
        for _, plural in { 'a', 'b' } do
            kopf.on_create(function(r) return r.plural == plural end, function() end) --@loop
        end
        local declare = kopf.on_create
        declare(function(r) return true end, function() end) --@alias
        local seen = {}
        kopf.on_event(function(r) seen[r.plural] = true return true end, function() end) --@shared
        print('x')
    ";
    let unknown = ["loop", "alias", "shared"].map(|it| format!("{it}.selector?"));
    let found = parts(Language::Lua, lua, "'x'", "'y'");
    for it in unknown {
        assert!(found.contains(&it), "{found}");
    }
    let rhai = "
        for plural in [`a`, `b`] {
            kopf::on_create(|r| r.plural == plural, || ()); //@loop
        }
        print(`x`);
    ";
    assert_eq!(parts(Language::Rhai, rhai, "`x`", "`y`"), "loop.selector? loop.filters?");
}

/// Checks statements that all define one name and mention it: nine million paths from one to another, for each handler.
#[test]
fn many_statements_about_one_name_are_read_once() {
    let mut text = format!("v = 1\n{}", "v = v\n".repeat(3_000));
    for number in 0..300 {
        let declared =
            format!("kopf.on_create('kex', {{ id = 'h{number}' }}, function() return v end)\n");
        text.push_str(&declared);
    }
    let fingerprints = Fingerprints::of(Language::Lua, &text);
    let (first, last) = (fingerprints.of_line(3_002), fingerprints.of_line(3_301));
    assert_ne!(first, last);
    assert_ne!(first, fingerprints.whole());
    assert!((3_002..=3_301).all(|it| fingerprints.of_part(it, DeclarationPart::Selector) != 0));
    let edited = text.replacen("v = v\n", "v = v + 1\n", 1);
    assert_ne!(first, Fingerprints::of(Language::Lua, &edited).of_line(3_002));
}

/// Checks a source that takes too long: its handlers depend on all of it.
#[test]
fn handlers_of_a_source_with_too_many_paths_depend_on_all_of_it() {
    let variables = (0..4_000).map(|it| format!("local v{it} = {{}}\n"));
    let handler = |it: u32| format!("kopf.on_create('kex', {{ id = 'h{it}' }}, function() end)\n");
    let text: String = variables.chain((0..6_000).map(handler)).collect();
    let fingerprints = Fingerprints::of(Language::Lua, &text);
    let codes: Vec<_> = (4_001..=10_000).map(|it| fingerprints.of_line(it)).collect();
    assert_ne!(codes.first(), Some(&fingerprints.whole()));
    assert_eq!(codes.last(), Some(&fingerprints.whole()));
}

/// Walks along chains of names and brackets begin at many of their positions.
#[test]
fn long_chains_are_not_walked_from_each_of_their_names() {
    let chain = format!("a{}", ".b".repeat(50_000));
    let calls = format!("a{}", ":b()".repeat(20_000));
    let names: Vec<_> = (0..30_000).map(|it| format!("n{it}")).collect();
    for text in [
        format!("function f() return {chain} end\nkopf.on_create('kex', f)"),
        format!("function f() return {calls} end\nkopf.on_create('kex', f)"),
        format!("local {} = 1\nkopf.on_create('kex', f)", names.join(", ")),
    ] {
        assert_ne!(Fingerprints::of(Language::Lua, &text).of_line(2), 0);
    }
}
