//! The public surface: scripts can reach exactly what is documented, and the reference is up to date.

mod bounds;
mod languages;

use std::{collections::BTreeSet, fs, path::PathBuf, process::Command};

use expect_test::expect_file;
use kopf::scripting::{
    Placement, ScriptHost, Source,
    surface::{Item, ItemShape, Language, Spoken, Surface, lua_stubs, pages},
};

use kopf::testing::run_paused;

/// The names that both Lua 5.1 and Luau have: editors support them.
const STANDARD: &[&str] = &[
    "_G",
    "_VERSION",
    "assert",
    "error",
    "getmetatable",
    "ipairs",
    "next",
    "pairs",
    "pcall",
    "print",
    "rawequal",
    "rawget",
    "rawset",
    "select",
    "setmetatable",
    "tonumber",
    "tostring",
    "type",
    "unpack",
    "xpcall",
    "coroutine.create",
    "coroutine.resume",
    "coroutine.running",
    "coroutine.status",
    "coroutine.wrap",
    "coroutine.yield",
    "debug.traceback",
    "os.clock",
    "os.date",
    "os.difftime",
    "os.time",
    "table.concat",
    "table.foreach",
    "table.foreachi",
    "table.getn",
    "table.insert",
    "table.maxn",
    "table.remove",
    "table.sort",
    "math.abs",
    "math.acos",
    "math.asin",
    "math.atan",
    "math.atan2",
    "math.ceil",
    "math.cos",
    "math.cosh",
    "math.deg",
    "math.exp",
    "math.floor",
    "math.fmod",
    "math.frexp",
    "math.huge",
    "math.ldexp",
    "math.log",
    "math.log10",
    "math.max",
    "math.min",
    "math.modf",
    "math.pi",
    "math.pow",
    "math.rad",
    "math.random",
    "math.randomseed",
    "math.sin",
    "math.sinh",
    "math.sqrt",
    "math.tan",
    "math.tanh",
    "string.byte",
    "string.char",
    "string.find",
    "string.format",
    "string.gmatch",
    "string.gsub",
    "string.len",
    "string.lower",
    "string.match",
    "string.rep",
    "string.reverse",
    "string.sub",
    "string.upper",
];

fn documented(prefix: &str, items: &[Item], paths: &mut BTreeSet<String>) {
    let is_there = |it: &&Item| it.spoken.in_language(Language::Lua) || it.spoken == Spoken::Later;
    for item in items.iter().filter(is_there) {
        let path = format!("{prefix}.{}", item.name);
        if let ItemShape::Table(inner) = &item.shape {
            documented(&path, inner, paths);
        }
        paths.insert(path);
    }
}

/// Visits the globals of a script, and raises the names that it has found.
const WALK: &str = r#"
local found = {}
local function walk(prefix, t)
    for name, value in next, t do
        if type(name) == "string" then
            local path = prefix .. name
            table.insert(found, path)
            if type(value) == "table" and value ~= t and name ~= "_G" and name ~= "shared" then
                walk(path .. ".", value)
            end
        end
    end
end
walk("", _G)
error("FOUND " .. table.concat(found, " ") .. " END")
"#;

#[test]
fn every_global_of_lua_is_documented_and_the_other_way_round() {
    // Libraries are created on their first use.
    let uses: String =
        Surface::new().globals.iter().flat_map(|it| ["local _ = ", it.name, "\n"]).collect();
    let told = run_paused(async {
        let source = Source::alone("handlers.lua", uses + WALK);
        let errors = ScriptHost::load(vec![source], Placement::CurrentRuntime).await.err();
        errors.expect("the script raises").first().expect("one").to_string()
    });
    let (_, found) = told.split_once("FOUND ").unwrap_or_else(|| panic!("{told}"));
    let found = found.split(" END").next().unwrap_or_default();
    let reached: BTreeSet<String> = found.split(' ').map(str::to_owned).collect();
    let surface = Surface::new();
    let mut known = BTreeSet::new();
    for global in &surface.globals {
        known.insert(global.name.to_owned());
        documented(global.name, &global.items, &mut known);
    }
    let missing: Vec<_> = known.difference(&reached).collect();
    assert!(missing.is_empty(), "documented, and not there: {missing:?}");
    let stubs = lua_stubs(&surface, &[]);
    let is_builtin = |path: &String| {
        let is_standard = STANDARD.contains(&path.as_str())
            || STANDARD.iter().any(|it| it.starts_with(&format!("{path}.")));
        is_standard
            || stubs.contains(&format!("\nfunction {path}("))
            || stubs.contains(&format!("\n{path} = "))
    };
    let strangers: Vec<_> = reached.difference(&known).filter(|it| !is_builtin(it)).collect();
    assert!(strangers.is_empty(), "there, and not documented: {strangers:?}");
}

fn reference() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/reference")
}

#[test]
fn the_reference_is_that_of_the_table() {
    let pages = pages(&Surface::new());
    for page in &pages {
        expect_file![reference().join(&page.file)].assert_eq(&page.text);
    }
    let files = fs::read_dir(reference()).expect("the reference").flatten();
    let names: BTreeSet<_> =
        files.map(|it| it.file_name().to_string_lossy().into_owned()).collect();
    let expected: BTreeSet<_> = pages.into_iter().map(|it| it.file).collect();
    assert_eq!(names, expected, "pages of what is no more are to be removed");
}

fn docs(args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kopf"));
    let output = command.env_clear().arg("docs").args(args).output().expect("the binary runs");
    let text = |it: Vec<u8>| String::from_utf8(it).expect("text");
    (output.status.code().expect("a code"), text(output.stdout), text(output.stderr))
}

#[test]
fn a_name_is_explained_however_it_is_spelled() {
    for name in ["kopf.on_update", "on_update", "kopf::on_update", "ON_UPDATE"] {
        let (code, text, _) = docs(&[name]);
        assert_eq!(code, 0, "{name}");
        assert!(
            text.starts_with("kopf.on_update(selector…, [options], function)\n"),
            "{name}: {text}"
        );
        assert!(text.contains("  [retries]"), "{text}");
    }
    for name in
        ["ctx.spec", "logger:info", "settings.posting.level", "ctx", "files.read", "kopf.on.create"]
    {
        let (code, text, problem) = docs(&[name]);
        assert_eq!(code, 0, "{name}: {problem}");
        assert!(text.lines().count() > 1, "{name}: {text}");
    }
}

#[test]
fn every_documented_name_can_be_asked_for() {
    let surface = Surface::new();
    for (path, _) in surface.items() {
        assert!(!surface.find(&path).is_empty(), "{path}");
    }
}

#[test]
fn a_name_that_is_not_there_leads_to_the_nearest_one() {
    for (wrong, near) in
        [("on_updaet", "kopf.on_update"), ("ctx.sepc", "ctx.spec"), ("filse.read", "files.read")]
    {
        let (code, text, problem) = docs(&[wrong]);
        assert_eq!((code, text.as_str()), (1, ""), "{wrong}");
        let expected =
            format!("error: '{wrong}' not found in the reference\nhint: did you mean '{near}'?\n");
        assert_eq!(problem, expected);
    }
}

#[test]
fn without_a_name_everything_is_listed_in_lines_that_fit() {
    let (code, text, _) = docs(&[]);
    assert_eq!(code, 0);
    for global in Surface::new().globals {
        assert!(text.contains(&format!("\n{}\n", global.name)), "{}", global.name);
    }
    assert_eq!(text.lines().find(|it| it.chars().count() > 100), None);
    let (_, markdown, _) = docs(&["--markdown", "kopf.adopt"]);
    assert!(markdown.starts_with("# kopf.adopt\n"), "{markdown}");
}
