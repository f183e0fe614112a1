//! The type checker of Luau checks scripts, with the definitions: both of its solvers, in both modes.
//!
//! In strict mode, it requires the types of parameters: without any, its messages about a script are those about any library. So in
//! this mode the scripts get the types that their `LuaCATS` comments name, as their authors would write them. Messages that it also
//! has without any knowledge of kopf are about the script itself, and are ignored.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use regex::{Captures, Regex};

use super::kopf;
use crate::docs::documentation::all_blocks;

const SOLVERS: [&str; 2] = ["new", "old"];

/// Scenarios of scripts with mistakes, which the checker finds.
const MISTAKEN: &[&str] = &[
    "grants",
    "hierarchies",
    "kube_errors",
    "lifecycles",
    "posting",
    "reloads",
    "settings",
    "subhandler_mistakes",
];

/// A directory of scripts and definitions, which is removed with this value.
struct Desk {
    path: PathBuf,
    definitions: String,
    scripts: Vec<String>,
}

/// The messages of the checker: `new strict`, `a.lua:1`, and the message.
type Told = Vec<(String, String, String)>;

impl Desk {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kopf-luau-{}-{test}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        fs::create_dir_all(&path).expect("a directory");
        let shown = path.join("crd").display().to_string();
        let (code, _, problem) = kopf(&["init", &shown]);
        assert_eq!(code, 0, "{problem}");
        let crd = path.join("crd").join("crd.yaml").display().to_string();
        let (code, definitions, problem) = kopf(&["stubs", "luau", "--from-crd", &crd]);
        assert_eq!(code, 0, "{problem}");
        Desk { path, definitions, scripts: Vec::new() }
    }

    fn script(&mut self, name: &str, text: &str) {
        let path = self.path.join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, text).expect("a file can be written");
        self.scripts.push(name.to_owned());
    }

    /// Returns the messages about the scripts; `None` if no checker is installed.
    fn checked(&self, definitions: &str) -> Option<Told> {
        let program = super::program("LUAU_CHECK")?;
        fs::write(self.path.join("kopf.d.luau"), definitions).expect("a file can be written");
        let mut command = Command::new(program);
        command.current_dir(&self.path).arg("kopf.d.luau").args(&self.scripts);
        let output = command.output().expect("the checker runs");
        let problem = String::from_utf8_lossy(&output.stderr);
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.code().is_some_and(|it| it < 2), "{problem}{stdout}");
        let line = Regex::new(r"^(\w+ \w+): ([^:]+:\d+):\d+: (.*)$").expect("a pattern");
        let told = stdout.lines().map(|it| {
            let found = line.captures(it).unwrap_or_else(|| panic!("{it}"));
            (found[1].to_owned(), found[2].to_owned(), found[3].to_owned())
        });
        Some(told.collect())
    }

    /// Returns the messages in a mode that the definitions cause.
    fn false_errors(&self, mode: &str) -> Option<Vec<String>> {
        let without = self.checked(&nothing_known(&self.definitions))?;
        let own: BTreeSet<_> = without.into_iter().map(|(how, place, _)| (how, place)).collect();
        let told = self.checked(&self.definitions)?.into_iter();
        let told = told.filter(|(how, _, _)| how.ends_with(&format!(" {mode}")));
        let told = told.filter(|(how, place, _)| !own.contains(&(how.clone(), place.clone())));
        Some(told.map(|(how, place, message)| format!("{how}: {place}: {message}")).collect())
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // Remaining temporary files do no harm.
        drop(fs::remove_dir_all(&self.path));
    }
}

/// Returns the same names with the type `any`.
fn nothing_known(definitions: &str) -> String {
    let names = r"(?m)^(?:declare (?<global>\w+):|(?:export type|declare extern type) (?<ty>\w+)(?<of><[^>]*>)?(?: =| with))";
    let mut text = String::from("declare function require(name: string): any\n");
    for found in Regex::new(names).expect("a pattern").captures_iter(definitions) {
        match (found.name("global"), found.name("ty")) {
            (Some(global), _) => writeln!(text, "declare {}: any", global.as_str()),
            (None, Some(ty)) => {
                let of = found.name("of").map_or("", |it| it.as_str());
                writeln!(text, "export type {}{of} = any", ty.as_str())
            }
            (None, None) => Ok(()),
        }
        .expect("memory takes it");
    }
    text
}

fn scripts_below(folder: &str) -> Vec<(String, String)> {
    fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                collect(&path, found);
            } else if path.extension().is_some_and(|it| it == "lua") {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    collect(&root.join(folder), &mut found);
    found.sort();
    let named = found.into_iter().map(|path| {
        let name = path.strip_prefix(root).expect("inside").display().to_string();
        (name, fs::read_to_string(&path).expect("a script"))
    });
    named.collect()
}

/// Adds every script for users: the examples, those of the documentation, those that `kopf init` writes, the library.
fn scripts_for_users(desk: &mut Desk, change: impl Fn(&str) -> String) {
    for (name, text) in scripts_below("examples") {
        desk.script(&name, &change(&text));
    }
    for name in ["handlers.lua", "tests/handlers_test.lua"] {
        let text = fs::read_to_string(desk.path.join("crd").join(name)).expect("a script");
        desk.script(&format!("init/{name}"), &change(&text));
    }
    for (number, block) in all_blocks(&["lua"]).into_iter().enumerate() {
        // Without its line, which would change with every edit.
        let page = block.place.replace([':', '/'], "-");
        desk.script(&format!("pages/{number}-{page}.lua"), &change(&block.text));
    }
}

#[test]
fn no_false_error_is_found_in_scripts_as_they_are() {
    let mut desk = Desk::new("nonstrict");
    scripts_for_users(&mut desk, str::to_owned);
    for (name, text) in scripts_below("tests/scenarios") {
        if !MISTAKEN.iter().any(|it| name.starts_with(&format!("tests/scenarios/{it}/"))) {
            desk.script(&name, &text);
        }
    }
    let Some(told) = desk.false_errors("nonstrict") else { return };
    assert!(told.is_empty(), "{}", told.join("\n"));
}

#[test]
fn no_false_error_is_found_in_strict_scripts() {
    let mut desk = Desk::new("strict");
    scripts_for_users(&mut desk, typed);
    desk.script("right.lua", RIGHT);
    let Some(told) = desk.false_errors("strict") else { return };
    assert!(told.is_empty(), "{}", told.join("\n"));
}

/// Returns a script with the types that it needs in strict mode: those that the `LuaCATS` comments name for parameters, the `ctx`
/// of each declaration, and tables of options that stand alone.
fn typed(script: &str) -> String {
    let indexes = r#"---@field (\w+) kopf\.Index|kopf\.index\([^{]*\{ id = "(\w+)""#;
    let indexes = Regex::new(indexes).expect("a pattern");
    let named = |it: Captures<'_>| it.get(1).or(it.get(2)).map(|it| it.as_str().to_owned());
    let indexes: BTreeSet<_> = indexes.captures_iter(script).filter_map(named).collect();
    let indexes: Vec<_> = indexes.iter().map(|it| format!("{it}: KopfIndex")).collect();
    let more =
        if indexes.is_empty() { String::new() } else { format!(" & {{ {} }}", indexes.join(", ")) };
    let with_more = |class: &str| {
        format!("Kopf{class}{}", if class.ends_with("Ctx") { more.as_str() } else { "" })
    };
    let said = Regex::new(r"^---@param (\w+) kopf\.(\w+)").expect("a pattern");
    let places = Regex::new(
        r"kopf\.(?:on\.)?(?<declares>on_\w+|daemon|timer|reconcile|every|cron|index|subhandler|register|test|create|update|delete|resume|field|event|validate|mutate|startup|cleanup|login|probe)\(|(?<head>(?:local )?\bfunction\b(?<name>\s+[\w.:]+)?)\((?<parameters>[^()]*)\)",
    )
    .expect("a pattern");
    let (mut class, mut comments) = ("Change", Vec::new());
    let mut text = String::new();
    for line in script.lines() {
        if let Some(found) = said.captures(line) {
            comments.push((found[1].to_owned(), with_more(&found[2])));
        }
        let typed = |found: &Captures<'_>| {
            if let Some(declares) = found.name("declares") {
                class = category(declares.as_str());
                return found[0].to_owned();
            }
            let named = found.name("name").is_some();
            let of = |name: &str| {
                let comment = comments.iter().find(|(it, _)| it == name);
                match comment {
                    Some((_, ty)) if named => ty.clone(),
                    _ if !named && ["ctx", "_ctx", "inner"].contains(&name) => {
                        with_more(&format!("{class}Ctx"))
                    }
                    _ => "any".to_owned(),
                }
            };
            let parameters = found["parameters"].split(',').map(str::trim);
            let parameters = parameters.filter(|it| !it.is_empty()).map(|it| match it {
                "..." => it.to_owned(),
                typed if typed.contains(':') => typed.to_owned(),
                name => format!("{name}: {}", of(name)),
            });
            let parameters = parameters.collect::<Vec<_>>().join(", ");
            let returns = if named { ": ...any" } else { "" };
            if named {
                comments.clear();
            }
            format!("{}({parameters}){returns}", &found["head"])
        };
        text += &places.replace_all(line, typed);
        text.push('\n');
    }
    text.replace("local APPLIED = {", "local APPLIED: KopfKubeApplyOptions = {")
}

fn category(declares: &str) -> &'static str {
    match declares.trim_start_matches("on_") {
        "daemon" | "timer" | "reconcile" => "Background",
        "index" => "Index",
        "event" => "Event",
        "validate" | "mutate" => "Admission",
        "startup" | "cleanup" | "login" | "probe" | "test" | "every" | "cron" => "Activity",
        _ => "Change",
    }
}

/// One mistake in each line; `@` marks what the old solver also finds in nonstrict mode, `!` what both find there.
const MISTAKES: &str = r#"
@kopf.on_craete("pods", function(_ctx) end)
@kopf.on.craete("pods", function(_ctx) end)
@kopf.on_create("pods")
@kopf.on_create("pods", 5)
@kopf.on_create(5, function(_ctx: KopfChangeCtx) end)
 kopf.on_create("pods", { retries = "three" }, function(_ctx: KopfChangeCtx) end)
 kopf.on_create("pods", { retires = 3 }, function(_ctx: KopfChangeCtx) end)
 kopf.on_create("pods", { errors = "ignore" }, function(_ctx: KopfChangeCtx) end)
 kopf.on_create("pods", { id = 5 }, function(_ctx: KopfChangeCtx) end)
 kopf.timer("pods", { interval = true }, function(_ctx: KopfBackgroundCtx) end)
@kopf.on_create("pods", function(ctx: KopfChangeCtx) print(ctx.nmae) end)
@kopf.on_create("pods", function(ctx: KopfChangeCtx) print(ctx.stopped) end)
@kopf.on_event("pods", function(ctx: KopfEventCtx) print(ctx.diff) end)
@kopf.on_create("pods", function(ctx: KopfChangeCtx) ctx.spec = "x" end)
@kopf.on_create("pods", function(ctx: KopfChangeCtx) ctx.nmae = "x" end)
@kopf.on_create("pods", function(ctx: KopfChangeCtx) ctx.logger:inof("x") end)
@kopf.on_create("pods", function(ctx: KopfChangeCtx) ctx.logger.level = 5 end)
@kopf.on_create("pods", function(ctx: KopfChangeCtx) ctx.conditions:set(true) end)
@kopf.on_create("greetings", function(ctx: GreetingChangeCtx) print(ctx.spec.nam) end)
@kopf.on_startup(function(ctx: KopfActivityCtx) ctx.settings.posting.enabled = "x" end)
@kopf.on_startup(function(ctx: KopfActivityCtx) ctx.settings.posting.foo = 1 end)
@kopf.on_startup(function(ctx: KopfActivityCtx) ctx.settings.psoting.enabled = true end)
@kopf.daemon("pods", function(ctx: KopfBackgroundCtx) ctx.stopped:wiat(5) end)
@kopf.daemon("pods", function(ctx: KopfBackgroundCtx) ctx.stopped:wait({}) end)
!kopf.sleep({})
!kopf.sleep()
!kopf.sleep(1, 2)
@kopf.adopt(5)
@print(kopf.PRESNT)
@print(files.raed("/etc/hosts"))
!print(files.read(5))
!print(flies.read("/etc/hosts"))
!print(strings.trim(5))
!print(strings.upper("x", "y"))
@print(strings.split("x"))
@print(random.integer("1", 2))
@print(hash.sha256({ 1 }))
@print(lists.map(5, function(it: any) return it end))
@print(lists.filter({ 1 }, 5))
@metrics.gauge("x", "y")
 print(json.encode({}, { prety = true }))
 print(kube.get("pods", { nmae = "x" }))
 print(kube.delete({}, { missing_ok = "yes" }))
"#;

#[test]
fn mistakes_are_found_by_both_solvers() {
    let mut desk = Desk::new("mistakes");
    let lines: Vec<_> = MISTAKES.trim_matches('\n').lines().collect();
    let script: Vec<_> = lines.iter().map(|it| it.get(1..).expect("a mark")).collect();
    desk.script("wrong.lua", &script.join("\n"));
    let Some(told) = desk.checked(&desk.definitions) else { return };
    let found = |how: &str, line: usize| {
        told.iter().any(|(mode, place, _)| mode == how && *place == format!("wrong.lua:{line}"))
    };
    assert!(lines.len() >= 25);
    for (number, line) in (1..).zip(&lines) {
        for solver in SOLVERS {
            assert!(found(&format!("{solver} strict"), number), "{solver}: {line}");
            let expected = line.starts_with('!') || (solver == "old" && line.starts_with('@'));
            let nonstrict = found(&format!("{solver} nonstrict"), number);
            assert_eq!(nonstrict, expected, "{solver}, nonstrict: {line}");
        }
    }
}

/// Code that must not be reported as a mistake, with the types of strict scripts.
const RIGHT: &str = r#"
type Ctx = KopfChangeCtx & { by_label: KopfIndex }

local selected = { app = "x" }

local function named(ctx: KopfChangeCtx)
    ctx.logger:info("%s", ctx.name)
end

local function shared(ctx: KopfObjectCtx): boolean
    return ctx.name == "x"
end

kopf.on_create("kopfexamples", named)
kopf.on_create("kopf.dev", "kopfexamples", { id = "a", labels = { x = kopf.PRESENT } }, named)
kopf.on_create("kopf.dev", "v1", "kopfexamples", { labels = selected }, named)
kopf.on_create("v1", kopf.EVERYTHING, function() end)
kopf.on_create({ kind = "Pod", group = "" }, function() end)
kopf.on_create("pods", { when = shared, param = { 1, 2 } }, named)
kopf.on_create("pods", { when = kopf.all_({ shared, function(ctx: any) return ctx.name end }) }, named)
kopf.on_create("greetings", function(ctx: GreetingChangeCtx)
    ctx.patch.status.told = `Hello, {ctx.spec.name}`
end)
kopf.on.update(function(resource: KopfResource) return resource.plural == "pods" end, { field = { "spec", "x" }, old = 1 }, function(ctx: Ctx)
    ctx.patch.status.count = #ctx.diff
    ctx.patch.spec.field = kopf.null
    ctx.patch.metadata.labels = { a = "b" }
    ctx.patch.fns:append(function(body: any) body.spec.x = 1 end)
    ctx.memo.count = (ctx.memo.count or 0) + 1
    ctx.logger:info("%s -> %s", ctx.old, ctx.new, { extra = 1 })
    for _, change in ctx.diff do
        print(change.op, table.concat(change.field, "."), change.old, change.new)
    end
    for name, value in pairs(ctx.labels) do
        print(name, value)
    end
    local store = ctx.by_label["x=y"]
    print(store and #store, kopf.values(ctx.by_label), kopf.get(ctx.spec, "a.b[0]", 1))
    local child = { apiVersion = "v1", kind = "Pod", metadata = { labels = {} } }
    kopf.adopt(child)
    kopf.adopt({ child }, ctx.body, { strict = true, nested = "spec.template" })
    kopf.label(child, selected, { forced = true })
    kopf.info(ctx.body, "Reason", "text")
    kopf.event(ctx.body, { type = "Normal", reason = "Reason", message = "text" })
    kopf.subhandler({ id = "sub" }, function(inner: KopfChangeCtx) print(inner.name) end)
    kopf.execute()
    if ctx.retry > 3 then
        kopf.fail("never")
    end
    local made, problem = pcall(kube.create, child)
    print(made, problem, kube.get("pods", "x", { namespace = "y" }))
    error(kopf.TemporaryError("not yet", "10s"))
end)
kopf.daemon("pods", { cancellation_timeout = 1.5, initial_delay = function(_ctx: KopfBackgroundCtx) return 5 end }, function(ctx: KopfBackgroundCtx)
    while not ctx.stopped() do
        ctx.stopped:wait("5s")
    end
    print(ctx.stopped.reason, string.split("a,b", ","), table.find({ 1 }, 1), math.clamp(3, 1, 2))
end)
kopf.timer("pods", { interval = "10m", sharp = true }, function(ctx: KopfBackgroundCtx) ctx.patch.status.seen = ctx.runtime end)
kopf.index("pods", function(ctx: KopfIndexCtx) return { [ctx.namespace or ""] = ctx.name } end)
kopf.on_startup({ errors = kopf.ErrorsMode.PERMANENT }, function(ctx: KopfActivityCtx)
    ctx.settings.posting.enabled = false
    ctx.settings.watching.server_timeout = "10m"
    ctx.settings.persistence.progress_storage = kopf.StatusProgressStorage({ field = "status.mine" })
    ctx.settings.queueing.worker_limit = nil
end)
kopf.on_login(function(ctx: KopfActivityCtx)
    return kopf.login_with_kubeconfig(ctx) or kopf.ConnectionInfo({ server = "https://example.com", token = "x" })
end)
kopf.set_default_lifecycle(kopf.lifecycles.all_at_once)
local items = kopf.array()
table.insert(items, files.read("/etc/hosts"))
print(env.get("HOME", "none"), lists.reduce(items, 0, function(sum: number, it: any) return sum + #it end))
"#;
