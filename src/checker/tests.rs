//! Tests of the parsers and of the bounds.

use tokio::task::LocalSet;

use super::{
    Knowledge, Level, Rule, STACK, check, known,
    parse::{Unparsed, parse},
};
use crate::scripting::{Language, Placement, ScriptHost, Source, Terms};
use crate::settings::{Settings, Strict};

fn told(name: &str, text: &str) -> Vec<String> {
    let found = check(&[Source::alone(name, text)], &Knowledge::default());
    let all = found.all.iter().map(|it| it.error.message.clone());
    all.chain(found.unchecked).collect()
}

#[test]
fn deep_nesting_is_refused_and_does_not_overflow_the_stack() {
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(refuses_deep_nesting);
    thread.expect("a thread").join().expect("no panic");
}

fn refuses_deep_nesting() {
    for depth in [100_000, 1_000] {
        for (open, close) in [("(", ")"), ("{", "}"), ("- ", ""), ("f(", ")"), ("not ", "")] {
            let text = format!("x = {}1{}", open.repeat(depth), close.repeat(depth));
            assert_eq!(parse(Language::Lua, &text).err(), Some(Unparsed::Deep), "{open}");
        }
        for (open, close) in [("(", ")"), ("[", "]"), ("-", ""), ("f(", ")"), ("|x| ", "")] {
            let text = format!("let x = {}1{};", open.repeat(depth), close.repeat(depth));
            assert_eq!(parse(Language::Rhai, &text).err(), Some(Unparsed::Deep), "{open}");
        }
    }
    let message = told("x.lua", &format!("x = {}1{}", "(".repeat(1000), ")".repeat(1000)));
    assert_eq!(message, ["x.lua is not checked: it is nested too deep."]);
}

#[test]
fn chains_are_as_long_as_they_like() {
    let lua = format!("x = a{}{}", ".b".repeat(2_000), " + 1".repeat(2_000));
    assert_eq!(told("x.lua", &lua), ["there is no variable `a`"]);
    let rhai = format!("let x = a{}{};", ".b".repeat(2_000), " + 1".repeat(2_000));
    assert_eq!(told("x.rhai", &rhai), ["there is no variable `a`"]);
}

#[test]
fn texts_that_are_not_understood_are_not_checked() {
    assert_eq!(
        told("x.lua", "local x = = 1"),
        ["x.lua is not checked: the syntax of line 1 is not understood."]
    );
    assert_eq!(
        told("x.rhai", "\nlet x = ;"),
        ["x.rhai is not checked: the syntax of line 2 is not understood."]
    );
    assert_eq!(
        told("x.lua", "x = 'open"),
        ["x.lua is not checked: the syntax of line 1 is not understood."]
    );
}

#[test]
fn every_rule_has_a_name_and_a_level_decides_what_rejects() {
    for rule in Rule::all() {
        assert_eq!(Rule::find(rule.name()), Some(rule));
        assert!(rule.doc().ends_with('.'), "{}", rule.name());
    }
    let rejecting = |level: Level| {
        [Strict::Off, Strict::Names, Strict::Types].map(|strict| level.rejects(strict))
    };
    assert_eq!(rejecting(Level::Name), [false, true, true]);
    assert_eq!(rejecting(Level::Type), [false, false, true]);
}

#[test]
fn comments_allow_rules_for_their_line_or_the_next_one() {
    let text = "\
local function f()
    a() -- kopf: allow(unknown-function)
    -- kopf: allow(unknown-variable, unknown-function)
    b(c)
    d() -- kopf: allow(unknown-variable)
end
f()";
    assert_eq!(told("x.lua", text), ["there is no function `d`"]);
    let text = "fn f() {\n    // kopf: allow(unknown-function)\n    a();\n    b();\n}";
    assert_eq!(told("x.rhai", text), ["there is no function `b`"]);
}

#[test]
fn what_calls_pass_is_known_in_the_called_function() {
    let lua = "\
local function deep(ctx, extra) print(ctx.spce, ctx.mine) end
local function helper(ctx) deep(ctx, 1) end
kopf.on_create('pods', function(ctx) helper(ctx) end)";
    assert_eq!(told("x.lua", lua), ["there is no ctx.spce"]);
    // A table of the script is no `ctx`, and who calls from elsewhere may pass anything.
    let own = "\
local function deep(ctx) print(ctx.mine, ctx.spec) end
deep({ mine = 1 })
local function given(ctx) print(ctx.titles) end
pcall(given, {})";
    assert_eq!(told("x.lua", own), Vec::<String>::new());
}

/// Many lines, each with its number in it.
fn lines(line: impl Fn(usize) -> String) -> String {
    (0..20_000).map(line).collect::<Vec<_>>().concat()
}

#[test]
fn a_script_full_of_mistakes_is_reported_as_far_as_it_helps() {
    let lua = lines(|it| format!("f{it}(v{it})\n"));
    assert_eq!(told("x.lua", &lua).len(), 200);
    let rhai = lines(|it| format!("f{it}(v{it});\n"));
    assert_eq!(told("x.rhai", &rhai).len(), 200);
    // Known names are many, too.
    let many = lines(|it| format!("name_{it} = {it}\n"));
    assert_eq!(told("x.lua", &(many + "print(nmae_1)")), ["there is no variable `nmae_1`"]);
}

/// Compares the names in `known` with those of the VM, and fails with the differences.
const COMPARED: &str = "
local visible, differences = {}, {}
local shared = (getmetatable(_G) or {}).__index
for _, from in { _G, type(shared) == 'table' and shared or {} } do
    for name in pairs(from) do visible[name] = true end
end
local function compare(prefix, names, there)
    for name in pairs(names) do
        if there[name] == nil then table.insert(differences, 'no ' .. prefix .. name) end
    end
    for name in pairs(there) do
        if not names[name] then table.insert(differences, prefix .. name) end
    end
end
for library, names in pairs(known) do compare(library .. '.', names, _G[library]) end
-- Libraries of the host are loaded when they are used first. The unit tests of the engine have a function of their own.
for name in pairs(loaded) do visible[name] = nil end
visible.block = nil
compare('', all, visible)
error('differences: ' .. table.concat(differences, ' '), 0)
";

#[tokio::test]
async fn the_names_of_lua_are_those_of_its_vm() {
    let table = |names: Vec<&str>| {
        let fields = names.iter().map(|it| format!("['{it}']=true,"));
        format!("{{{}}}", fields.collect::<String>())
    };
    let libraries = known::lua::LIBRARIES.iter().map(|(library, members)| {
        let names = members.iter().map(|(name, _)| *name).collect();
        format!("['{library}']={},", table(names))
    });
    let globals = known::lua::FUNCTIONS.iter().map(|(name, _)| *name);
    let globals = globals.chain(known::lua::LIBRARIES.iter().map(|(name, _)| *name));
    let globals = globals.chain(known::lua::UNCHECKED.iter().copied());
    let text = format!(
        "local known = {{{}}}\nlocal all = {}\nlocal loaded = {}\n{COMPARED}",
        libraries.collect::<String>(),
        table(globals.collect()),
        table(known::sections().collect())
    );
    let host = ScriptHost::new(Terms::of(Placement::CurrentRuntime, &Settings::default()));
    let source = Source::alone("x.lua", &text);
    let prepared = LocalSet::new().run_until(host.prepare(vec![source])).await;
    let Err(errors) = prepared else { panic!("the script ends with an error") };
    let told = errors[0].to_string();
    assert!(told.lines().next().is_some_and(|it| it.ends_with("differences: ")), "{told}");
}
