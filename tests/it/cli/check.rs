//! `kopf check`, and the grants of the command line, as users see them.

use std::{fs, path::PathBuf};

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::text;

/// A directory that is removed at the end of its test.
pub(super) struct Directory(PathBuf);

impl Directory {
    pub(super) fn with(test: &str, files: &[(&str, &str)]) -> Self {
        let path = std::env::temp_dir().join(format!("kopf-check-{}-{test}", std::process::id()));
        fs::remove_dir_all(&path).ok();
        fs::create_dir_all(&path).expect("a directory");
        for (name, content) in files {
            let file = path.join(name);
            fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
            fs::write(file, content).expect("a file");
        }
        Directory(path)
    }

    /// Runs the binary in this directory. Returns the exit code, stdout, stderr.
    pub(super) fn kopf(&self, args: &[&str], variables: &[(&str, &str)]) -> (i32, String, String) {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_kopf"))
            .args(args)
            .env_clear()
            .envs(variables.iter().copied())
            .current_dir(&self.0)
            .output()
            .expect("the binary runs");
        let code = output.status.code().expect("an exit code");
        (code, text(&output.stdout), text(&output.stderr))
    }

    pub(super) fn write(&self, name: &str, content: &str) {
        fs::write(self.0.join(name), content).expect("a file");
    }

    /// Returns the paths of the files in a directory, sorted.
    pub(super) fn files(&self, directory: &str) -> Vec<String> {
        let files = fs::read_dir(self.0.join(directory)).expect("a directory");
        let name = |it: fs::DirEntry| it.file_name().into_string().expect("a name");
        let mut paths: Vec<_> =
            files.map(|it| format!("{directory}/{}", name(it.expect("a file")))).collect();
        paths.sort();
        paths
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).expect("a file")
    }

    pub(super) fn check(&self, args: &[&str]) -> (i32, String, String) {
        self.kopf(&[&["check"], args].concat(), &[])
    }

    pub(super) fn json(&self, args: &[&str]) -> (i32, Value) {
        let (code, stdout, stderr) = self.check(&[args, &["--output=json"]].concat());
        let answer = serde_json::from_str(&stdout);
        (code, answer.unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}")))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

pub(super) fn is(actual: &str, expected: &Expect) {
    expected.assert_eq(actual);
}

const LUA: &str = r#"
print("loading")
local names = require("lib.names")
local function is_big(ctx) return true end
function create_fn(ctx) end
kopf.on_create("kopfexamples", { labels = { app = kopf.PRESENT, tier = "x" }, retries = 3, timeout = "10m", when = is_big }, create_fn)
kopf.timer("kopf.dev/v1", "kopfexamples", { interval = 10, sharp = true, id = "tick" }, function() end)
kopf.on_field("pods", { field = "spec.x", old = 1, new = kopf.ABSENT }, function() end)
kopf.on_startup(function(ctx) end)
"#;

const RHAI: &str = r#"
import "lib/names" as names;
fn create_fn(ctx) { }
kopf::on_create(kopf::EVERYTHING, #{ annotations: #{ a: kopf::ABSENT }, param: "p" }, create_fn);
"#;

#[test]
fn handlers_are_listed_with_their_resources_filters_and_options() {
    let files = [
        ("a.lua", LUA),
        ("b.rhai", RHAI),
        ("lib/names.lua", "return {}"),
        ("lib/names.rhai", ""),
        ("_module.lua", "error('never loaded')"),
    ];
    let here = Directory::with("list", &files);
    let (code, stdout, stderr) = here.check(&["."]);
    assert_eq!((code, stderr.as_str()), (0, "loading\n"));
    is(
        &stdout,
        &expect![[r#"
        ./a.lua
          on_create   kopfexamples              create_fn     ./a.lua:6
                        labels app present, tier="x"; when is_big
                        timeout 600; retries 3
          timer       kopfexamples.kopf.dev/v1  tick          ./a.lua:7
                        interval 10; sharp
          on_field    pods                      field/spec.x  ./a.lua:8
                        field spec.x; old 1; new absent
          on_startup                            startup       ./a.lua:9
        ./b.rhai
          on_create  everything  create_fn  ./b.rhai:4
                       annotations a absent
                       param "p"
        limits of a script: 1 s of CPU time per call, 64 MiB of memory, 200 nested calls, 4 MiB per string, 100000 coroutines, 1 MiB per result
        2 scripts, 5 handlers, 0 errors, 0 warnings
    "#]],
    );
    let (code, answer) = here.json(&["a.lua", "b.rhai"]);
    assert_eq!((code, &answer["version"], &answer["ok"]), (0, &json!(1), &json!(true)));
    assert_eq!(answer["scripts"][0]["modules"], json!(["lib/names.lua"]));
    assert_eq!(answer["scripts"][1]["modules"], json!(["lib/names.rhai"]));
    assert_eq!(answer["limits"]["sandbox.memory_limit"], 64 << 20);
    assert_eq!(
        answer["scripts"][0]["handlers"][0],
        json!({
            "declaration": "on_create",
            "id": "create_fn",
            "function": "create_fn",
            "location": "a.lua:6",
            "resource": "kopfexamples",
            "selector": {"name": "kopfexamples"},
            "filters": {
                "labels": {"app": {"present": true}, "tier": {"equals": "x"}},
                "when": "is_big",
            },
            "options": {"timeout": 600, "retries": 3},
        })
    );
    assert_eq!(answer["scripts"][1]["handlers"][0]["selector"], json!({"everything": true}));
}

#[test]
fn all_mistakes_are_told() {
    let files = [
        ("a.lua", "kopf.on_create('kex', {retrys = 3}, print)"),
        ("b.rhai", "\n  let x = ;"),
        ("c.lua", "kopf.on_create('kex', {id = 'x'}, function() end)"),
        ("d.rhai", "\nkopf::on_create(\"kex\", #{ id: \"x\" }, |ctx| 1);"),
        ("e.lua", "files.red('x')"),
        ("f.rhai", "files.red(\"x\");"),
        ("g.lua", "require('nothing')"),
        ("h.rhai", "import \"nothing\" as x;"),
    ];
    let here = Directory::with("mistakes", &files);
    let (code, _, stderr) = here.check(&["."]);
    assert_eq!(code, 1);
    is(
        &stderr,
        &expect![[r#"
            error: ./a.lua:1:24: kopf.on_create has no option `retrys`
              |
            1 | kopf.on_create('kex', {retrys = 3}, print)
              |                        ^^^^^^
            hint: did you mean `retries`?
            error: ./b.rhai:2: Syntax error: Unexpected ';'
              |
            2 |   let x = ;
              |   ^^^^^^^^^
            error: ./e.lua:1: there is no files.red; did you mean `files.read`?
              |
            1 | files.red('x')
              | ^^^^^^^^^^^^^^
            error: ./f.rhai:1: there is no files.red; did you mean `files.read`?
              |
            1 | files.red("x");
              | ^^^^^^^^^^^^^^^
            error: ./g.lua:1: module 'nothing' not found: there is no ./nothing.lua
              |
            1 | require('nothing')
              | ^^^^^^^^^^^^^^^^^^
            error: ./h.rhai:1: module 'nothing' not found: there is no ./nothing.rhai
              |
            1 | import "nothing" as x;
              | ^^^^^^^^^^^^^^^^^^^^^^
            error: ./d.rhai:2: two functions of on_create for one resource have the id 'x', at ./c.lua:1 and at ./d.rhai:2: give one of them an `id`
              |
            2 | kopf::on_create("kex", #{ id: "x" }, |ctx| 1);
              | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        "#]],
    );
    let (code, answer) = here.json(&["a.lua", "c.lua"]);
    assert_eq!((code, &answer["ok"]), (1, &json!(false)));
    assert_eq!(answer["scripts"][0]["ok"], false);
    assert_eq!(answer["scripts"][1]["handlers"][0]["id"], "x");
    assert_eq!(
        answer["errors"],
        json!([{
            "file": "a.lua",
            "line": 1,
            "column": 24,
            "length": 6,
            "source": "kopf.on_create('kex', {retrys = 3}, print)",
            "message": "kopf.on_create has no option `retrys`",
            "hint": "did you mean `retries`?",
        }])
    );
}

#[test]
fn oddities_are_warned_of_and_do_not_fail() {
    let files = [
        ("a.lua", "-- nothing"),
        ("b.lua", "kopf.on_update('kex', {field = 'spec.x', old = 1, new = 1}, function() end)"),
        ("kopf.yaml", "scripts: {c.lua: {allow-env: X}}"),
    ];
    let here = Directory::with("odd", &files);
    let (code, stdout, stderr) = here.check(&["a.lua"]);
    assert_eq!(code, 0);
    is(
        &format!("{stdout}{stderr}"),
        &expect![[r#"
            a.lua: no handlers
            limits of a script: 1 s of CPU time per call, 64 MiB of memory, 200 nested calls, 4 MiB per string, 100000 coroutines, 1 MiB per result
            1 script, 0 handlers, 0 errors, 2 warnings
            warning: Permissions are granted to c.lua, but there is no script with this name.
            warning: The scripts declare no handlers. Declare handlers at the top level, for example with kopf.on_create("RESOURCE", FUNCTION).
        "#]],
    );
    let (code, _, stderr) = here.check(&["b.lua"]);
    assert_eq!(code, 0);
    is(
        &stderr,
        &expect![["
            warning: Permissions are granted to c.lua, but there is no script with this name.
            warning: b.lua:1: the handler 'update/spec.x' is never called: `old` and `new` are equal.
        "]],
    );
}

#[test]
fn what_cannot_be_read_is_told_in_both_forms() {
    let here = Directory::with("unread", &[("x.txt", "")]);
    let (code, stdout, stderr) = here.check(&["nope.lua"]);
    assert_eq!(code, 1);
    is(
        &format!("{stdout}{stderr}"),
        &expect![[r"
        0 scripts, 0 handlers, 1 error, 0 warnings
        error: there is no file or directory 'nope.lua'
        hint: check the spelling and the current directory
    "]],
    );
    let (code, answer) = here.json(&["x.txt"]);
    assert_eq!((code, &answer["scripts"]), (1, &json!([])));
    assert_eq!(answer["errors"][0]["file"], Value::Null);
    let (code, stdout, stderr) = here.check(&["--output=json"]);
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(stderr.starts_with("error: no scripts given"), "{stderr}");
}

const READER: &str = "env.get('APP_A') env.get('APP_B') files.exists('conf/x')
kopf.on_startup(function() end)";

#[test]
fn grants_come_from_options_variables_and_the_file() {
    let files = [("a.lua", READER), ("conf/x", "")];
    let here = Directory::with("grants", &files);
    let code = |args: &[&str], variables: &[(&str, &str)]| {
        here.kopf(&[&["check", "a.lua"], args].concat(), variables).0
    };
    assert_eq!(code(&[], &[]), 1);
    assert_eq!(code(&["--allow-env=APP_A,APP_B", "--allow-read=conf"], &[]), 0);
    assert_eq!(code(&["--allow-env=APP_A", "--allow-env=APP_B", "--allow-read=conf/x"], &[]), 0);
    assert_eq!(code(&["--allow-env=APP_A", "--allow-read=conf"], &[]), 1);
    let set = [("KOPF_RUN_ALLOW_ENV", "APP_A APP_B"), ("KOPF_RUN_ALLOW_READ", "other,conf")];
    assert_eq!(code(&[], &set), 0);
    assert_eq!(code(&["--allow-env=X"], &set), 1, "the nearest counts");
    fs::create_dir(here.0.join("etc")).expect("a directory");
    let file = |text: &str| fs::write(here.0.join("etc/kopf.yaml"), text).expect("a file");
    let config = ["--config", "etc/kopf.yaml"];
    file("allow-env: APP_A,APP_B\nallow-read: [../conf]\n");
    assert_eq!(code(&config, &[]), 0);
    file(
        "allow-env: APP_A\nallow-read: conf\nscripts:\n  a.lua: {allow-env: [APP_B], allow-read: ../conf}\n",
    );
    assert_eq!(code(&config, &[]), 0);
    file("allow-env: APP_A\nscripts:\n  b.lua: {allow-env: [APP_B], allow-read: ../conf}\n");
    assert_eq!(code(&config, &[]), 1, "another script");
}

#[test]
fn wrong_grants_are_usage_errors_with_their_place_and_an_example() {
    let here = Directory::with("wrong", &[("a.lua", "kopf.on_startup(function() end)")]);
    let file = |text: &str| fs::write(here.0.join("kopf.yaml"), text).expect("a file");
    let told = |args: &[&str], variables: &[(&str, &str)]| {
        let (code, _, stderr) = here.kopf(&[&["check", "a.lua"], args].concat(), variables);
        assert_eq!(code, 2, "{stderr}");
        stderr
    };
    let mut all = told(&["--allow-net=example.com"], &[]);
    all.push_str(&told(&["--allow-env="], &[]));
    all.push_str(&told(&[], &[("KOPF_RUN_ALLOW_NET", "https://example.com/")]));
    for text in [
        "allow-net: example.com:443:80\n",
        "allow-net: 443\n",
        "allow-ent: X\n",
        "scripts:\n  a.lua:\n    allow-raed: /etc\n",
        "scripts:\n  a.lua: {allow-env: [A=1]}\n",
        "scripts: [a.lua]\n",
        "health: 8081\n",
    ] {
        file(text);
        all.push_str(&told(&[], &[]));
    }
    is(
        &all,
        &expect![[r#"
            error: --allow-net: 'example.com' has no port: write example.com:443, or example.com:* for all ports
            hint: --allow-net takes HOST:PORT, such as api.example.com:443, *.example.com:443, [::1]:8080 or localhost:*
            error: --allow-env: the value is empty
            hint: --allow-env takes the name of a variable or a pattern, such as MYAPP_TOKEN or MYAPP_*
            error: KOPF_RUN_ALLOW_NET: 'https://example.com/' is a URL: pass only the host and its port: example.com:443
            hint: --allow-net takes HOST:PORT, such as api.example.com:443, *.example.com:443, [::1]:8080 or localhost:*
            error: kopf.yaml:1: allow-net: 'example.com:443' in 'example.com:443:80' is not a host name
            hint: --allow-net takes HOST:PORT, such as api.example.com:443, *.example.com:443, [::1]:8080 or localhost:*
            error: kopf.yaml:1: allow-net: expected a string or a list of strings, got 443
            error: kopf.yaml:1: there is no option `allow-ent`
            hint: did you mean `allow-net`?
            error: kopf.yaml:3: a script has no option `allow-raed`
            hint: did you mean `allow-read`?
            error: kopf.yaml:2: allow-env: 'A=1' has a value: pass only the name of a variable
            hint: --allow-env takes the name of a variable or a pattern, such as MYAPP_TOKEN or MYAPP_*
            error: kopf.yaml:1: expected scripts with their permissions, such as `handlers.lua: {allow-env: APP_*}`, got ["a.lua"]
            error: kopf.yaml:1: health: expected a string, got 8081
            hint: write health: "0.0.0.0:8081"
        "#]],
    );
}

const LINKS: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: links.kopf.dev }
spec:
  group: kopf.dev
  scope: Namespaced
  names: { plural: links, singular: link, kind: Link, listKind: LinkList }
  versions:
  - name: v1
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [address]
            properties: { address: { type: string, pattern: "^[a-z]+:[1-9][0-9]?$" } }
  - name: v2
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [host, port]
            properties:
              host: { type: string, pattern: "^[a-z]+$" }
              port: { type: integer, minimum: 1, maximum: 99 }
              tls: { type: boolean }
"#;

const UP: &str = r#"
kopf.on_convert("links", { from = "v1", to = "v2" }, function(ctx)
    local host, port = ctx.spec.address:match("^(.+):(.+)$")
    local object = kopf.copy(ctx.body)
    object.spec = { host = host, port = tonumber(port) }
    if ctx.annotations.tls then object.spec.tls = ctx.annotations.tls == "true" object.metadata.annotations = nil end
    return object
end)
"#;

const DOWN: &str = r#"
kopf.on_convert("links", { from = "v2", to = "v1" }, function(ctx)
    local object = kopf.copy(ctx.body)
    object.spec = { address = `{ctx.spec.host}:{ctx.spec.port}` }
    if ctx.spec.tls ~= nil then object.metadata.annotations = { tls = tostring(ctx.spec.tls) } end
    return object
end)
"#;

#[test]
fn conversions_are_tried_there_and_back_on_objects_of_the_schema() {
    let lossy = DOWN.replace("ctx.spec.tls ~= nil", "false");
    let wrong = DOWN.replace(":{ctx", "-{ctx");
    let unknown = UP.replace("port = tonumber(port)", "port = tonumber(port), scheme = \"x\"");
    let failing = UP.replace("local host", "error(\"no such place\") local host");
    for (name, script, problem) in [
        ("fine", format!("{UP}{DOWN}"), None),
        (
            "lossy",
            format!("{UP}{lossy}"),
            Some("the conversion from v2 to v1 and back changes spec.tls from "),
        ),
        (
            "wrong",
            format!("{UP}{wrong}"),
            Some("the conversion from v2 to v1 returns an invalid object: "),
        ),
        (
            "unknown",
            format!("{unknown}{DOWN}"),
            Some(
                "the conversion from v1 to v2 sets spec.scheme, which the schema of v2 does not have",
            ),
        ),
        (
            "failing",
            format!("{failing}{DOWN}"),
            Some("the handler 'convert/v1-v2' failed to convert Link default/sample-"),
        ),
        (
            "missing",
            UP.to_owned(),
            Some("no chain of on_convert handlers converts Link default/sample-"),
        ),
    ] {
        let here = Directory::with(
            &format!("conversions-{name}"),
            &[("a.lua", &script), ("crd.yaml", LINKS)],
        );
        let (code, _, stderr) = here.check(&["a.lua"]);
        match problem {
            None => assert_eq!((code, stderr.as_str()), (0, ""), "{name}"),
            Some(problem) => {
                assert_eq!(code, 1, "{name}: {stderr}");
                assert!(
                    stderr.contains("error: crd.yaml:2: ") && stderr.contains(problem),
                    "{name}: {stderr}"
                );
            }
        }
        let again = here.check(&["a.lua"]).2;
        assert_eq!(again, stderr, "each run makes the same objects");
    }
    let here = Directory::with("conversions-unknown-crd", &[("a.lua", UP)]);
    let (code, _, stderr) = here.check(&["a.lua"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("Converter 'convert/v1-v2' (a.lua:2) was not tested: pass the CRD"),
        "{stderr}"
    );
}

#[test]
fn webhooks_are_listed_and_those_of_own_writes_are_warned_of() {
    let script = r#"
kopf.on_validate("leases", { id = "check", operations = { "UPDATE" }, timeout = 5 }, function(ctx) end)
kopf.on_mutate("leases", { id = "ours", namespace_selector = { team = "a" }, ignore_failures = true }, function(ctx) end)
kopf.on_validate("pods", { id = "status", subresource = "*" }, function(ctx) end)
"#;
    let here = Directory::with("webhooks", &[("a.lua", script)]);
    let (code, stdout, stderr) = here.check(&["a.lua"]);
    assert_eq!(code, 0);
    for line in [
        "webhook check: UPDATE of leases; failurePolicy Fail; timeout 5 s",
        "webhook ours: * of leases; failurePolicy Ignore; timeout 30 s",
        "webhook status: * of pods, pods/*; failurePolicy Fail; timeout 30 s",
    ] {
        assert!(stdout.contains(line), "{stdout}");
    }
    let warning = "Webhook 'check' (a.lua:2) reviews what the operator itself writes: leases, for the election of its leader.";
    assert_eq!(stderr.matches("warning: ").count(), 1, "{stderr}");
    assert!(stderr.contains(warning), "{stderr}");
    let (_, found) = here.json(&["a.lua"]);
    let webhook = &found["scripts"][0]["handlers"][0]["webhook"];
    assert_eq!((&webhook["name"], &webhook["timeoutSeconds"]), (&json!("check"), &json!(5)));
}

#[test]
fn handlers_that_store_values_of_secrets_are_warned_of() {
    let script = r#"
kopf.on_create("secrets", function(ctx) end)
kopf.on_event("secrets", function(ctx) end)
kopf.on_create("pods", function(ctx) end)
"#;
    let directory = Directory::with("plain-secrets", &[("a.lua", script)]);
    let warnings = |args: &[&str]| {
        let (code, found) = directory.json(args);
        assert_eq!(code, 0);
        found["warnings"].clone()
    };
    assert_eq!(warnings(&["a.lua"]), json!([]));
    assert_eq!(
        warnings(&["a.lua", "--set=persistence.plain_secrets=true"]),
        json!([
            "a.lua:2: the handler 'create' stores values of Secrets unmasked in annotations and logs them, \
because persistence.plain_secrets is set."
        ])
    );
}
