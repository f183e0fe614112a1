//! The parsers, the inferred types, and the limits.

use std::collections::{BTreeMap, BTreeSet};

use rhai::Engine;
use tokio::task::LocalSet;

use super::{
    Knowledge, Rule, RuleLevel, STACK, check,
    editor::{EditorRequest, respond},
    known,
    parse::{Unparsed, parse, parse_draft},
};
use crate::scripting::{Language, Modules, Placement, ScriptHost, Source, Terms};
use crate::settings::{Settings, Strict};

fn messages(name: &str, text: &str) -> Vec<String> {
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
    let message = messages("x.lua", &format!("x = {}1{}", "(".repeat(1000), ")".repeat(1000)));
    assert_eq!(message, ["x.lua is not checked: the code is nested too deeply."]);
}

#[test]
fn long_chains_are_checked() {
    let lua = format!("x = a{}{}", ".b".repeat(2_000), " + 1".repeat(2_000));
    assert_eq!(messages("x.lua", &lua), ["there is no variable `a`"]);
    let rhai = format!("let x = a{}{};", ".b".repeat(2_000), " + 1".repeat(2_000));
    assert_eq!(messages("x.rhai", &rhai), ["there is no variable `a`"]);
}

#[test]
fn sources_that_cannot_be_parsed_are_not_checked() {
    assert_eq!(
        messages("x.lua", "local x = = 1"),
        ["x.lua is not checked: the syntax of line 1 is not supported."]
    );
    assert_eq!(
        messages("x.rhai", "\nlet x = ;"),
        ["x.rhai is not checked: the syntax of line 2 is not supported."]
    );
    assert_eq!(
        messages("x.lua", "x = 'open"),
        ["x.lua is not checked: the syntax of line 1 is not supported."]
    );
}

#[test]
fn every_rule_has_a_name_and_a_level_decides_what_rejects() {
    for rule in Rule::all() {
        assert_eq!(Rule::find(rule.name()), Some(rule));
        assert!(rule.doc().ends_with('.'), "{}", rule.name());
    }
    let rejecting = |level: RuleLevel| {
        [Strict::Off, Strict::Names, Strict::Types].map(|strict| level.rejects(strict))
    };
    assert_eq!(rejecting(RuleLevel::Name), [false, true, true]);
    assert_eq!(rejecting(RuleLevel::Type), [false, false, true]);
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
    assert_eq!(messages("x.lua", text), ["there is no function `d`"]);
    let text = "fn f() {\n    // kopf: allow(unknown-function)\n    a();\n    b();\n}";
    assert_eq!(messages("x.rhai", text), ["there is no function `b`"]);
}

#[test]
fn types_of_arguments_are_known_in_the_called_function() {
    let lua = "\
local function deep(ctx, extra) print(ctx.spce, ctx.mine) end
local function helper(ctx) deep(ctx, 1) end
kopf.on_create('pods', function(ctx) helper(ctx) end)";
    assert_eq!(messages("x.lua", lua), ["there is no ctx.spce"]);
    // A table of the script is not a `ctx`, and unknown callers may pass anything.
    let own = "\
local function deep(ctx) print(ctx.mine, ctx.spec) end
deep({ mine = 1 })
local function given(ctx) print(ctx.titles) end
pcall(given, {})";
    assert_eq!(messages("x.lua", own), Vec::<String>::new());
}

fn many(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect::<Vec<_>>().concat()
}

/// Returns many lines, each with its number in it.
fn lines(line: impl Fn(usize) -> String) -> String {
    many(20_000, line)
}

#[test]
fn the_number_of_reported_mistakes_is_limited() {
    let lua = lines(|it| format!("f{it}(v{it})\n"));
    assert_eq!(messages("x.lua", &lua).len(), 200);
    let rhai = lines(|it| format!("f{it}(v{it});\n"));
    assert_eq!(messages("x.rhai", &rhai).len(), 200);
    // There are many known names, too.
    let many = lines(|it| format!("name_{it} = {it}\n"));
    assert_eq!(messages("x.lua", &(many + "print(nmae_1)")), ["there is no variable `nmae_1`"]);
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
-- Libraries of the host are loaded when they are used first. The unit tests of the engine have functions of their own.
for name in pairs(loaded) do visible[name] = nil end
visible.block, visible.filled, visible.thread, visible.wait_late = nil, nil, nil, nil
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
    let message = errors[0].to_string();
    assert!(message.lines().next().is_some_and(|it| it.ends_with("differences: ")), "{message}");
}

/// Returns sources that are as large or as nested as they may be.
fn hostile() -> Vec<(&'static str, String, &'static str)> {
    let blocks = |open: &str, close: &str, inner: &str| {
        let inner = inner.repeat(((1 << 20) - 200 * (open.len() + close.len())) / inner.len());
        format!("{}{inner}{}", open.repeat(200), close.repeat(200))
    };
    let locals = many(100_000, |it| format!("x{it}=x\n"));
    let aliases = "local a0=kopf\n".to_owned()
        + many(19_999, |it| format!("local a{}=a{it}\n", it + 1)).as_str();
    let lets =
        "let a0=1;\n".to_owned() + many(19_999, |it| format!("let a{}=a{it};\n", it + 1)).as_str();
    let calls = many(10_000, |it| {
        let next = it + 1;
        format!("local function f{next}(ctx) g{next}(ctx) end\nfunction g{next}(c) f{it}(c) end\n")
    });
    let (deep, steps) = ("the code is nested too deeply", "the check takes too many steps");
    vec![
        ("x.lua", format!("x = 1{}", " + 1".repeat((1 << 18) - 2)), deep),
        ("x.rhai", format!("let x = 1{};", " + 1".repeat((1 << 18) - 3)), deep),
        ("x.lua", blocks("do ", " end", "x=y "), steps),
        ("x.rhai", blocks("{ ", " }", "x=x;"), steps),
        ("x.lua", format!("x = 1\n{locals}"), ""),
        ("x.lua", aliases + "a19999.on_creat()", "there is no a19999.on_creat"),
        ("x.rhai", lets, ""),
        ("x.lua", calls + "function f0(c) print(c.spce) end", "there is no c.spce"),
        ("x.rhai", format!("{}1{}", "if true { ".repeat(250), " }.x".repeat(250)), ""),
        ("x.lua", "x".repeat((1 << 20) + 1), "the file is larger than 1 MiB"),
        ("x.rhai", " ".repeat((1 << 20) + 1), "the file is larger than 1 MiB"),
        ("x.lua", format!("local t = {}1{}", "{".repeat(299), "}".repeat(299)), deep),
        ("x.rhai", format!("let x = `{}", "${".repeat(10_000)), "is not supported"),
    ]
}

#[test]
fn hostile_sources_reach_a_limit_that_the_warning_names() {
    for (name, text, expected) in hostile() {
        let found = messages(name, &text);
        let shown = text.get(..60).unwrap_or(&text);
        if expected.is_empty() {
            assert_eq!(found, Vec::<String>::new(), "{shown}");
        } else {
            assert!(found.iter().any(|it| it.contains(expected)), "{shown}: {found:?}");
        }
    }
}

#[test]
fn a_script_whose_modules_are_large_is_not_checked() {
    let module = |at: usize| (format!("m{at}.lua").into(), "-".repeat(1 << 20));
    let modules = Modules::of_texts((0..4).map(module).collect());
    for at in 0..4 {
        modules.read(format!("m{at}.lua").as_ref(), "x.lua").expect("a text");
    }
    let source = Source { name: "x.lua".into(), text: "helpr()".into(), modules };
    let found = check(&[source], &Knowledge::default());
    let expected =
        "x.lua is not checked: the script and its modules are larger than 4 MiB in total.";
    assert_eq!((found.all.len(), found.unchecked), (0, vec![expected.to_owned()]));
}

#[test]
fn the_functions_of_rhai_are_those_of_its_engine() {
    let mut all: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    let engine = Engine::new();
    let is_word = |it: &str| it.starts_with(|it: char| it.is_ascii_alphabetic());
    let found = engine.collect_fn_metadata(
        None,
        |it| Some((it.metadata.name.to_string(), it.metadata.num_params)),
        true,
    );
    for (name, count) in found {
        if is_word(&name) && !name.contains(['$', ' ']) {
            all.entry(name).or_default().insert(count);
        }
    }
    let known: BTreeMap<String, BTreeSet<usize>> = known::rhai::FUNCTIONS
        .iter()
        .map(|(name, arities)| ((*name).to_owned(), arities.iter().copied().collect()))
        .collect();
    assert_eq!(known.len(), known::rhai::FUNCTIONS.len());
    assert!(known::rhai::FUNCTIONS.is_sorted_by_key(|it| it.0));
    assert_eq!(known, all);
}

fn draft(language: Language, text: &str) -> (usize, Vec<usize>) {
    let draft = parse_draft(language, text).expect("not deep");
    (draft.tree.body.len(), draft.broken)
}

#[test]
fn an_incomplete_line_hides_only_itself() {
    let lua = "local a = 1\nlocal function f(ctx)\n    ctx.spec.\n    local b = \n    if b. then\n        a(\n    end\nend\nlocal c = { x = , y = f( }\nprint(a, c)";
    assert_eq!(draft(Language::Lua, lua).0, 4);
    let rhai = "let a = 1;\nfn f(ctx) {\n    ctx.spec.\n    let b = ;\n    if b. {\n        a(\n    }\n}\nlet c = #{ x: , y: f( };\nprint(a);";
    assert_eq!(draft(Language::Rhai, rhai).0, 4);
    for text in ["end end x()", "x = = 1\ny()", "for\ny()", "local function\ny()", "x."] {
        let (_, broken) = draft(Language::Lua, text);
        assert!(!broken.is_empty(), "{text}");
    }
    for text in ["} } x();", "let = 1;\ny();", "for\ny()", "fn\ny()", "x.", "#{ a"] {
        let (_, broken) = draft(Language::Rhai, text);
        assert!(!broken.is_empty(), "{text}");
    }
}

#[test]
fn correct_sources_and_their_drafts_have_the_same_tree() {
    let texts = [
        (Language::Lua, include_str!("../../tests/it/checker/right.lua.txt")),
        (Language::Rhai, include_str!("../../tests/it/checker/right.rhai.txt")),
    ];
    for (language, scripts) in texts {
        let right: Vec<&str> =
            scripts.split("===").filter(|it| parse(language, it).is_ok()).collect();
        assert!(right.len() > 3, "{}", right.len());
        for text in right {
            let tree = parse(language, text).map(|it| format!("{:?}", it.body));
            let draft = parse_draft(language, text).expect("a tree");
            assert_eq!((Ok(format!("{:?}", draft.tree.body)), draft.broken), (tree, Vec::new()));
        }
    }
}

/// A reproducible sequence of numbers.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % end.max(1)
    }
}

const PIECES: &[&str] = &[
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "#{",
    "|",
    "||",
    "=",
    "==",
    ".",
    ":",
    "::",
    ",",
    ";",
    "\"",
    "'",
    "`",
    "${",
    "[[",
    "]]",
    "--[[",
    "/*",
    "*/",
    "//",
    "--",
    "end ",
    "function ",
    "fn ",
    "if ",
    "then ",
    "else ",
    "do ",
    "while ",
    "for ",
    "in ",
    "return ",
    "local ",
    "let ",
    "import ",
    "switch ",
    "=>",
    "try ",
    "catch ",
    "not ",
    "and ",
    "0",
    "é",
    "\n",
    "\0",
    "ctx",
    "kopf",
];

/// Changes a script in one to four positions.
fn mutated(numbers: &mut RandomNumbers, scripts: &[&str]) -> String {
    let mut text: Vec<char> = scripts[numbers.below(scripts.len())].chars().collect();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(text.len() + 1);
        let len = numbers.below(30).min(text.len() - at);
        match numbers.below(4) {
            0 => drop(text.drain(at..at + len)),
            1 => text.truncate(at),
            2 => {
                let copied: Vec<char> = text[at..at + len].repeat(1 + numbers.below(20));
                text.splice(at..at, copied);
            }
            _ => {
                let piece = PIECES[numbers.below(PIECES.len())];
                text.splice(at..at, piece.repeat(1 + numbers.below(3)).chars());
            }
        }
    }
    text.into_iter().collect()
}

/// The number of mutated scripts in each language.
const MUTATIONS: usize = 100;

/// Runs a short form of the fuzz targets `checker_lua` and `checker_rhai`.
#[test]
fn mutated_scripts_neither_fail_nor_hang() {
    let corpora = [
        ("x.lua", include_str!("../../tests/it/checker/mistakes.lua.txt")),
        ("x.rhai", include_str!("../../tests/it/checker/mistakes.rhai.txt")),
    ];
    for (name, corpus) in corpora {
        let scripts: Vec<&str> =
            corpus.split("===").filter_map(|it| it.split_once('\n')).map(|it| it.1).collect();
        let mut numbers = RandomNumbers(1);
        for _ in 0..MUTATIONS {
            let text = mutated(&mut numbers, &scripts);
            let at = numbers.below(text.len() + 1);
            let source = Source::alone(name, text.as_str());
            let unchecked = check(std::slice::from_ref(&source), &Knowledge::default()).unchecked;
            let requests = [
                EditorRequest::Findings,
                EditorRequest::Completions(at),
                EditorRequest::Documentation(at),
                EditorRequest::Definition(at),
                EditorRequest::Tests,
            ];
            let responses =
                requests.map(|it| respond(&source, &Knowledge::default(), it).unchecked);
            let mut all = unchecked.into_iter().chain(responses.into_iter().flatten());
            assert!(!all.any(|it| it.contains("failed")), "{text}");
        }
    }
}
