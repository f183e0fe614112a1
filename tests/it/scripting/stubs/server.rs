//! A language server checks scripts, with the definitions.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::kopf;

/// A directory with scripts and the definitions, which is removed with this value.
struct Workspace(PathBuf);

impl Workspace {
    /// Creates an operator with `kopf init`: its `.luarc.json` is the one that users have.
    fn new(test: &str, more: &[&str]) -> Self {
        let path = std::env::temp_dir().join(format!("kopf-editor-{}-{test}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        let shown = path.to_str().expect("text");
        let (code, _, problem) = kopf(&[&["init", shown], more].concat());
        assert_eq!(code, 0, "{problem}");
        Workspace(path)
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, text).expect("a file can be written");
    }

    /// Returns the messages of the server, warnings and errors; `None` if it is not installed.
    fn checked(&self) -> Option<String> {
        let mut command = Command::new(super::program("EMMYLUA_CHECK")?);
        let output = command.arg(&self.0).args(["--severity", "warn"]).output();
        let output = output.expect("the language server runs");
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // Remaining temporary files do no harm.
        drop(fs::remove_dir_all(&self.0));
    }
}

fn examples() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut found: Vec<_> =
        fs::read_dir(root).expect("examples").flatten().map(|it| it.path()).collect();
    found.retain(|it| it.is_dir());
    found.sort();
    found
}

#[test]
fn no_false_error_is_found_in_the_examples() {
    let workspace = Workspace::new("examples", &[]);
    for example in examples() {
        let scripts = fs::read_dir(&example).expect("an example").flatten().map(|it| it.path());
        for script in scripts.filter(|it| it.extension().is_some_and(|it| it == "lua")) {
            let (folder, file) = (example.file_name(), script.file_name());
            let name = Path::new(folder.expect("a name")).join(file.expect("a name"));
            let text = fs::read_to_string(&script).expect("a script");
            workspace.file(name.to_str().expect("text"), &text);
        }
    }
    let Some(told) = workspace.checked() else { return };
    assert!(told.contains("No issues found"), "{told}");
}

#[test]
fn no_false_error_is_found_in_what_init_writes() {
    for (test, more) in [("own", &[][..]), ("crd", &["--from-crd", "examples/crd.yaml"][..])] {
        let Some(told) = Workspace::new(test, more).checked() else { return };
        assert!(told.contains("No issues found"), "{test}: {told}");
    }
}

/// One mistake in each line, and the message about it.
const MISTAKES: &[(&str, &str)] = &[
    ("kopf.on_craete('pods', function(_ctx) end)", "Undefined field `on_craete`"),
    ("kopf.on_create('pods', { retries = 'three' }, function(_ctx) end)", "expect integer?"),
    ("kopf.on_create('pods', function(ctx) ctx.logger:inof('x') end)", "Undefined field `inof`"),
    ("kopf.on_create('pods', function(ctx) print(ctx.nmae) end)", "Undefined field `nmae`"),
    ("kopf.on_create('pods', function(ctx) print(ctx.stopped) end)", "Undefined field `stopped`"),
    ("kopf.on_event('pods', function(ctx) print(ctx.diff) end)", "Undefined field `diff`"),
    ("kopf.on_create('greetings', function(ctx) print(ctx.spec.nam) end)", "Undefined field `nam`"),
    (
        "kopf.on_startup(function(ctx) ctx.settings.posting.enabled = 'x' end)",
        "Cannot assign `string` to `boolean`",
    ),
    ("kopf.on_startup(function(ctx) ctx.settings.posting.foo = 1 end)", "for `foo`"),
    ("kopf.sleep({})", "expected `kopf.Duration`"),
    ("print(files.raed('/etc/hosts'))", "Undefined field `raed`"),
];

#[test]
fn mistakes_are_found_and_what_is_right_beside_them_is_not() {
    let workspace = Workspace::new("mistakes", &[]);
    let lines: Vec<_> = MISTAKES.iter().map(|(line, _)| *line).collect();
    let script = lines.join("\n");
    workspace.file("wrong.lua", &script);
    workspace.file("right.lua", RIGHT);
    let Some(told) = workspace.checked() else { return };
    for (line, expected) in MISTAKES {
        assert!(told.contains(expected), "{line}: {expected} is not told:\n{told}");
    }
    assert!(!told.contains("right.lua"), "{told}");
    assert!(told.contains(&format!("{} warnings", MISTAKES.len())), "{told}");
}

/// Code that must not be reported as a mistake: every form of declarations, patches, memos, indexes, built-in functions of Luau.
const RIGHT: &str = r#"
---@class kopf.Ctx
---@field by_label kopf.Index

kopf.on_create("kopfexamples", function(_ctx) end)
kopf.on_create("kopf.dev", "kopfexamples", { id = "a", labels = { x = kopf.PRESENT } }, function(_ctx) end)
kopf.on_create("kopf.dev", "v1", "kopfexamples", function(_ctx) return { message = "done" } end)
kopf.on_create(kopf.EVERYTHING, { when = kopf.all_({ function(ctx) return ctx.name == "x" end }) }, function(_ctx) end)
kopf.on_create({ kind = "Pod", group = "" }, function(_ctx) end)
kopf.on.update(function(resource) return resource.plural == "pods" end, { field = { "spec", "x" }, old = 1 }, function(ctx)
    ctx.patch.status.count = #ctx.diff
    ctx.patch.spec.field = kopf.null
    ctx.patch.metadata.labels = { a = "b" }
    ctx.patch.fns:append(function(body) body.spec.x = 1 end)
    ctx.memo.count = (ctx.memo.count or 0) + 1
    ctx.logger:info("%s -> %s", ctx.old, ctx.new, { extra = 1 })
    for _, change in ipairs(ctx.diff) do
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
    kopf.label(child, { a = "b" }, { forced = true })
    kopf.info(ctx.body, "Reason", "text")
    kopf.event(ctx.body, { type = "Normal", reason = "Reason", message = "text" })
    kopf.subhandler({ id = "sub" }, function(inner) print(inner.name) end)
    kopf.execute()
    if ctx.retry > 3 then
        kopf.fail("never")
    end
    error(kopf.TemporaryError("not yet", "10s"))
end)
kopf.daemon("pods", { cancellation_timeout = 1.5, initial_delay = function(_ctx) return 5 end }, function(ctx)
    while not ctx.stopped() do
        ctx.stopped:wait("5s")
    end
    print(ctx.stopped.reason, string.split("a,b", ","), table.find({ 1 }, 1), math.clamp(3, 1, 2))
end)
kopf.timer("pods", { interval = "10m", sharp = true }, function(ctx) ctx.patch.status.seen = ctx.runtime end)
kopf.index("pods", function(ctx) return { [ctx.namespace or ""] = ctx.name } end)
kopf.on_startup({ errors = kopf.ErrorsMode.PERMANENT }, function(ctx)
    ctx.settings.posting.enabled = false
    ctx.settings.watching.server_timeout = "10m"
    ctx.settings.persistence.progress_storage = kopf.StatusProgressStorage({ field = "status.mine" })
    ctx.settings.queueing.worker_limit = nil
end)
kopf.on_login(function(ctx)
    return kopf.login_with_kubeconfig(ctx) or kopf.ConnectionInfo({ server = "https://example.com", token = "x" })
end)
kopf.set_default_lifecycle(kopf.lifecycles.all_at_once)
local items = kopf.array()
table.insert(items, files.read("/etc/hosts"))
print(env.get("HOME", "none"), items)
"#;
