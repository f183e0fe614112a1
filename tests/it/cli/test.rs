//! `kopf test` as users see it. No cluster is needed, and no time passes.

use expect_test::{Expect, expect};

use super::check::Directory;

const OPERATOR: &str = r#"
kopf.on_create("volumes.example.com", function(ctx)
    if ctx.spec.size == "big" then
        kopf.fail("too big")
    end
    ctx.patch.status.phase = "Ready"
end)
kopf.timer("volumes.example.com", { interval = "1h", initial_delay = "1h" }, function(ctx)
    ctx.memo.hours = (ctx.memo.hours or 0) + 1
    ctx.patch.status.hours = ctx.memo.hours
end)
"#;
const LUA: &str = r#"
local function volume(size)
    return kube.create({
        apiVersion = "example.com/v1", kind = "Volume", metadata = { name = "one" }, spec = { size = size },
    })
end
local function phase_of(object)
    return kopf.get(object, "status.phase")
end

kopf.test("a volume gets ready", function(ctx)
    check.equal(ctx.activity, "test")
    check.equal(phase_of(kube.wait(volume("small"), phase_of)), "Ready")
end)
kopf.test("a day of a volume", { timeout = "2d" }, function()
    local object = volume("small")
    kopf.sleep("1d")
    check.that(kube.get(object).status.hours >= 23, "hours")
end)
kopf.test("a big volume gets ready", function()
    kube.wait(volume("big"), phase_of, "1m")
end)
kopf.test("a volume is large", function()
    local object = volume("small")
    kopf.sleep(1)
    check.equal(object.spec, { size = "large" }, "the spec")
end)
"#;
const RHAI: &str = r#"
fn volume(size) {
    kube.create(#{
        apiVersion: "example.com/v1", kind: "Volume", metadata: #{ name: "one" }, spec: #{ size: size },
    })
}

kopf::test("a volume gets ready", |ctx| {
    check.equal(ctx.activity, "test");
    let ready = kube.wait(volume("small"), |it| kopf.get(it, "status.phase"));
    check.equal(ready.status.phase, "Ready");
});
kopf::test("a day of a volume", #{ timeout: "2d" }, |ctx| {
    let object = volume("small");
    kopf.sleep("1d");
    check.that(kube.get(object).status.hours >= 23, "hours");
});
kopf::test("a big volume gets ready", |ctx| {
    kube.wait(volume("big"), |it| kopf.get(it, "status.phase"), "1m");
});
kopf::test("a volume is large", |ctx| {
    let object = volume("small");
    kopf.sleep(1);
    check.equal(object.spec, #{ size: "large" }, "the spec");
});
"#;

fn operator(test: &str, files: &[(&str, &str)]) -> Directory {
    Directory::with(&format!("test-{test}"), &[&[("handlers.lua", OPERATOR)], files].concat())
}

fn check(directory: &Directory, args: &[&str], code: i32, expected: &Expect) {
    let (ended, told, problem) = directory.kopf(&[&["test"], args].concat(), &[]);
    expected.assert_eq(&format!("{told}{problem}"));
    assert_eq!(ended, code);
}

#[test]
fn each_test_is_told_and_a_failed_one_with_its_line_and_the_log() {
    let own = operator("lua", &[("tests/volume_test.lua", LUA)]);
    check(
        &own,
        &[],
        1,
        &expect![[r#"
            ok      tests/volume_test.lua: a volume gets ready
            ok      tests/volume_test.lua: a day of a volume
            FAILED  tests/volume_test.lua: a big volume gets ready
                tests/volume_test.lua:21: kube.wait: volumes.v1.example.com 'one' in 'default' did not meet the condition of the function within 60 s
                    kube.wait(volume("big"), phase_of, "1m")
                stack traceback:
                    tests/volume_test.lua:21
                the log of the operator:
                [2030-01-01 00:00:00,000] auth       [INFO    ] Initial authentication has been initiated.
                [2030-01-01 00:00:00,000] auth       [INFO    ] Initial authentication has finished.
                [2030-01-01 00:00:00,100] objects    [ERROR   ] [default/one] Handler 'create' failed permanently (attempt 1): too big (to try again: kopf retry volume/one -n default)
                [2030-01-01 00:00:00,100] objects    [INFO    ] [default/one] Creation is processed: 0 succeeded; 1 failed.
            FAILED  tests/volume_test.lua: a volume is large
                tests/volume_test.lua:26: check.equal: the spec: expected {"size":"large"}, got {"size":"small"}
                    check.equal(object.spec, { size = "large" }, "the spec")
                stack traceback:
                    tests/volume_test.lua:26
                the log of the operator:
                [2030-01-01 00:00:00,000] auth       [INFO    ] Initial authentication has been initiated.
                [2030-01-01 00:00:00,000] auth       [INFO    ] Initial authentication has finished.
                [2030-01-01 00:00:00,100] objects    [INFO    ] [default/one] Handler 'create' succeeded.
                [2030-01-01 00:00:00,100] objects    [INFO    ] [default/one] Creation is processed: 1 succeeded; 0 failed.

            4 tests, 2 failed
        "#]],
    );
}

#[test]
fn tests_in_rhai_are_told_alike() {
    let own = operator("rhai", &[("volume_test.rhai", RHAI)]);
    check(
        &own,
        &[],
        1,
        &expect![[r#"
            ok      volume_test.rhai: a volume gets ready
            ok      volume_test.rhai: a day of a volume
            FAILED  volume_test.rhai: a big volume gets ready
                volume_test.rhai:19:10: kube.wait: volumes.v1.example.com 'one' in 'default' did not meet the condition of the function within 60 s
                    kube.wait(volume("big"), |it| kopf.get(it, "status.phase"), "1m");
                stack traceback:
                    volume_test.rhai:19
                the log of the operator:
                [2030-01-01 00:00:00,000] auth       [INFO    ] Initial authentication has been initiated.
                [2030-01-01 00:00:00,000] auth       [INFO    ] Initial authentication has finished.
                [2030-01-01 00:00:00,100] objects    [ERROR   ] [default/one] Handler 'create' failed permanently (attempt 1): too big (to try again: kopf retry volume/one -n default)
                [2030-01-01 00:00:00,100] objects    [INFO    ] [default/one] Creation is processed: 0 succeeded; 1 failed.
            FAILED  volume_test.rhai: a volume is large
                volume_test.rhai:24:11: check.equal: the spec: expected {"size":"large"}, got {"size":"small"}
                    check.equal(object.spec, #{ size: "large" }, "the spec");
                stack traceback:
                    volume_test.rhai:24
                the log of the operator:
                [2030-01-01 00:00:00,000] auth       [INFO    ] Initial authentication has been initiated.
                [2030-01-01 00:00:00,000] auth       [INFO    ] Initial authentication has finished.
                [2030-01-01 00:00:00,100] objects    [INFO    ] [default/one] Handler 'create' succeeded.
                [2030-01-01 00:00:00,100] objects    [INFO    ] [default/one] Creation is processed: 1 succeeded; 0 failed.

            4 tests, 2 failed
        "#]],
    );
    check(
        &own,
        &["--only", "gets ready", "volume_test.rhai"],
        1,
        &expect![[r#"
            ok      volume_test.rhai: a volume gets ready
            FAILED  volume_test.rhai: a big volume gets ready
                volume_test.rhai:19:10: kube.wait: volumes.v1.example.com 'one' in 'default' did not meet the condition of the function within 60 s
                    kube.wait(volume("big"), |it| kopf.get(it, "status.phase"), "1m");
                stack traceback:
                    volume_test.rhai:19
                the log of the operator:
                [2030-01-01 00:00:00,000] auth       [INFO    ] Initial authentication has been initiated.
                [2030-01-01 00:00:00,000] auth       [INFO    ] Initial authentication has finished.
                [2030-01-01 00:00:00,100] objects    [ERROR   ] [default/one] Handler 'create' failed permanently (attempt 1): too big (to try again: kopf retry volume/one -n default)
                [2030-01-01 00:00:00,100] objects    [INFO    ] [default/one] Creation is processed: 0 succeeded; 1 failed.

            2 tests, 1 failed
        "#]],
    );
}

#[test]
fn every_run_is_the_same_to_the_last_line_of_the_log() {
    let own = operator("same", &[("tests/volume_test.lua", LUA)]);
    let run = || own.kopf(&["test", "--verbose"], &[]);
    let (first, second) = (run(), run());
    assert!(first.1.contains("objects    [DEBUG   ]"), "{}", first.1);
    assert_eq!(first, second);
}

#[test]
fn a_file_of_objects_with_comments_only_is_warned_of() {
    let own = operator(
        "comments",
        &[("tests/volume_test.lua", LUA), ("none.yaml", "# Nothing yet:\n# kind: Volume\n---\n")],
    );
    let args = ["test", "--only", "gets ready", "--apply", "none.yaml", "--verbose"];
    let (code, told, problem) = own.kopf(&args, &[]);
    assert_eq!(code, 1, "{told}{problem}");
    assert!(told.contains("ok      tests/volume_test.lua: a volume gets ready"), "{told}{problem}");
    let warning = "[WARNING ] 'none.yaml' contains no objects: it is ignored.";
    assert!(told.contains(warning), "{told}{problem}");
}

#[test]
fn definitions_and_objects_of_files_are_there_before_each_test() {
    let definition = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: volumes.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: volumes, singular: volume, kind: Volume}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {size: {type: string, default: small}}}
            status: {type: object, x-kubernetes-preserve-unknown-fields: true}
";
    let object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: here}\ndata: {a: b}\n";
    let test = r#"
        for i = 1, 2 do
            kopf.test("what is there, " .. i, function()
                check.equal(kube.get("configmaps", { name = "here" }).data, { a = "b" })
                kube.delete({ apiVersion = "v1", kind = "ConfigMap", name = "here" })
                local created = kube.create({ apiVersion = "example.com/v1", kind = "Volume", metadata = { name = "a" }, spec = {} })
                check.equal(created.spec.size, "small", "the default of the definition")
            end)
        end
    "#;
    let files = [("crd.yaml", definition), ("map.yaml", object), ("tests/there_test.lua", test)];
    let own = operator("files", &files);
    check(
        &own,
        &["--apply", "map.yaml"],
        0,
        &expect![[r"
        ok      tests/there_test.lua: what is there, 1
        ok      tests/there_test.lua: what is there, 2

        2 tests, all passed
    "]],
    );
    check(
        &own,
        &["--apply", "none.yaml"],
        1,
        &expect![[r"
        error: there is no file or directory 'none.yaml'
        hint: check the spelling and the current directory
    "]],
    );
}

#[test]
fn what_cannot_be_tested_is_told_with_what_to_do() {
    let broken = "kopf.test('unfinished', function() end";
    let files = [
        ("tests/broken_test.lua", broken),
        ("tests/fine_test.rhai", "kopf::test(\"fine\", |ctx| ());"),
    ];
    let own = operator("broken", &files);
    check(
        &own,
        &[],
        1,
        &expect![[r"
        FAILED  tests/broken_test.lua
            tests/broken_test.lua:1: Expected ')' (to close '(' at column 10), got <eof>
              |
            1 | kopf.test('unfinished', function() end
              | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        ok      tests/fine_test.rhai: fine

        2 tests, 1 failed
    "]],
    );
    check(
        &own,
        &["--only", "nothing of it", "tests/fine_test.rhai"],
        1,
        &expect![[r#"
            error: no test name contains "nothing of it"
            hint: declare tests with kopf.test("NAME", FUNCTION)
        "#]],
    );
    check(
        &own,
        &["nowhere"],
        2,
        &expect![[r"
        error: there is no file or directory 'nowhere'
    "]],
    );
    check(
        &own,
        &["--only", "fine", "tests"],
        1,
        &expect![[r"
            FAILED  tests/broken_test.lua
                tests/broken_test.lua:1: Expected ')' (to close '(' at column 10), got <eof>
                  |
                1 | kopf.test('unfinished', function() end
                  | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            ok      tests/fine_test.rhai: fine

            2 tests, 1 failed
        "]],
    );
    check(
        &own,
        &["--operator", "none.lua"],
        1,
        &expect![[r"
            error: there is no file or directory 'none.lua'
            hint: check the spelling and the current directory
        "]],
    );
}

#[test]
fn an_operator_without_tests_and_tests_without_an_operator_are_told_what_to_add() {
    let none = Directory::with("test-none", &[("handlers.lua", OPERATOR)]);
    check(
        &none,
        &[],
        1,
        &expect![[r"
        error: there are no tests in '.'
        hint: tests are files such as tests/greeting_test.lua; `kopf init` writes examples
    "]],
    );
    let no_operator = Directory::with("test-alone", &[("tests/fine_test.lua", "")]);
    check(
        &no_operator,
        &[],
        1,
        &expect![["
            error: no operator to test in '.': found no handlers.lua, handlers.rhai or handlers/
            hint: pass its scripts with --operator PATH
        "]],
    );
}

#[test]
fn an_operator_that_does_not_start_or_a_test_that_does_not_end_fails() {
    let stuck = r#"
        kopf.test("it ends", { timeout = "1h" }, function()
            for event in kube.watch("volumes") do print(event.type) end
        end)
        kopf.test("it is short", function() while true do end end)
    "#;
    let own = operator(
        "stuck",
        &[
            ("tests/stuck_test.lua", stuck),
            (
                "bad.lua",
                "kopf.on_startup({ errors = 'permanent' }, function() error('no key') end)",
            ),
        ],
    );
    check(
        &own,
        &[],
        1,
        &expect![[r#"
            FAILED  tests/stuck_test.lua: it ends
                the test did not finish within 3600 s of virtual time; increase the option `timeout` of kopf.test
                the log of the operator:
                [2030-01-01 00:00:00,000] auth       [INFO    ] Initial authentication has been initiated.
                [2030-01-01 00:00:00,000] auth       [INFO    ] Initial authentication has finished.
            FAILED  tests/stuck_test.lua: it is short
                tests/stuck_test.lua:5: the call used more than 1 s of CPU time and was aborted (settings.execution.cpu_limit)
                    kopf.test("it is short", function() while true do end end)
                stack traceback:
                    tests/stuck_test.lua:5
                the log of the operator:
                [2030-01-01 00:00:00,000] auth       [INFO    ] Initial authentication has been initiated.
                [2030-01-01 00:00:00,000] auth       [INFO    ] Initial authentication has finished.

            2 tests, 2 failed
        "#]],
    );
    check(
        &own,
        &["--operator", "bad.lua", "--only", "ends"],
        1,
        &expect![[r"
            FAILED  tests/stuck_test.lua: it ends
                the operator has stopped: startup failed: 'startup': no key
                the log of the operator:
                [2030-01-01 00:00:00,000] activities.startup [ERROR   ] Activity 'startup' failed permanently (attempt 1): no key
                    bad.lua:1: no key
                        kopf.on_startup({ errors = 'permanent' }, function() error('no key') end)
                    stack traceback:
                        bad.lua:1

            1 test, 1 failed
        "]],
    );
}

#[test]
fn a_test_has_a_text_and_a_function() {
    for (text, told) in [
        (
            "kopf.test(function() end)",
            "kopf.test: the first argument must be a string that describes the test",
        ),
        (
            "kopf.test('a', 'b', function() end)",
            "kopf.test: the first argument must be a string that describes the test",
        ),
        ("kopf.test('a', { retries = 3 }, function() end)", "test has no option `retries`"),
        ("kopf.test('a')", "kopf.test: the last argument must be the handler function"),
    ] {
        let own = operator("wrong", &[("tests/wrong_test.lua", text)]);
        let (code, stdout, _) = own.kopf(&["test"], &[]);
        assert_eq!(code, 1);
        assert!(stdout.contains(told), "{stdout}");
    }
}

#[test]
fn an_operator_of_tests_alone_is_told_who_runs_them() {
    let own = operator("run", &[("one_test.lua", "kopf.test('one', function() end)")]);
    let (code, _, log) = own.kopf(
        &["run", "-A", "--log-format=plain", "one_test.lua"],
        &[("KUBECONFIG", "/nowhere"), ("HOME", "/nowhere")],
    );
    assert_eq!(code, 1, "there is no cluster");
    assert!(log.contains("The scripts declare no handlers"), "{log}");
    let told = "The scripts declare tests, which the operator ignores: run them with `kopf test`.";
    assert!(log.contains(told), "{log}");
}
