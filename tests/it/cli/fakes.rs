//! Fakes of `kopf test`: servers, commands and Jobs whose responses come from functions of a test.

use expect_test::{Expect, expect};

use super::check::Directory;

const OPERATOR: &str = r#"
kopf.on_create("configmaps", { backoff = 30, retries = 2, when = function(ctx) return ctx.namespace == "default" and ctx.name ~= "kube-root-ca.crt" end }, function(ctx)
    local data = ctx.body.data or {}
    if data.post then
        local made = http.post("https://api.example.com/items", {
            query = { dry = "no" },
            json = { name = ctx.name },
            auth = { user = "kopf", password = "secret" },
            headers = { ["X-Team"] = "ops" },
        })
        ctx.patch.metadata.annotations.made = `{made.status} {made.json.id} {made.headers["x-kind"]}`
    elseif data.upload then
        local made = http.post(data.upload, { form = { kind = "log" }, files = { file = { content = "a\nb", name = "x.log" } }, retries = { attempts = 3, on = { 503 } } })
        ctx.patch.metadata.annotations.made = made.body
    elseif data.get then
        local ok, problem = pcall(http.get, data.get)
        ctx.patch.metadata.annotations.made = if ok then problem.body else (problem.reason or tostring(problem))
    elseif data.exec then
        local got = kube.exec("web", { "sh", "-c", data.exec }, { stdin = "in" })
        ctx.patch.metadata.annotations.made = `{got.code} {got.stdout} {got.stderr}`
    elseif data.copy then
        kube.copy_to("web", "/etc/key", "\255\0", { mode = 384 })
        local size = #kube.copy_from("web", data.copy)
        ctx.patch.metadata.annotations.made = tostring(size)
    elseif data.run then
        local got = kube.run("busybox", { "sh", "-c", data.run }, { env = { A = "1" } })
        ctx.patch.metadata.annotations.made = `{got.code} {got.log}`
    end
end)
"#;
const GRANT: &str = "--allow-net=*.example.com:*";

const LUA: &str = r#"
local function made(data)
    local map = kube.create({ apiVersion = "v1", kind = "ConfigMap", metadata = { name = "one" }, data = data })
    return kube.wait(map, function(it) return kopf.get(it, "metadata.annotations.made") end, "1h").metadata.annotations.made
end
local function pod(annotations)
    local web = { name = "web", annotations = annotations }
    local object = kube.create({ apiVersion = "v1", kind = "Pod", metadata = web, spec = { containers = { { name = "main", image = "x" } } } })
    kube.wait(object, "condition=Ready", "1m")
end

kopf.test("http: what is sent, and what is answered", function()
    fake.http("https://api.example.com/*", function(request)
        check.equal(request.json, { name = "one" })
        return { status = 201, json = { id = 5 }, headers = { ["X-Kind"] = "item" } }
    end)
    check.equal(made({ post = "yes" }), "201 5 item")
    local sent = fake.calls("http")
    check.equal(#sent, 1)
    check.equal(sent[1].method, "POST")
    check.equal(sent[1].url, "https://api.example.com/items?dry=no")
    check.equal(sent[1].query, { dry = "no" })
    check.equal(sent[1].body, '{"name":"one"}')
    check.equal(sent[1].auth, { user = "kopf", password = "secret" })
    check.equal(sent[1].headers["x-team"], "ops")
    check.equal(sent[1].headers.authorization, "Basic a29wZjpzZWNyZXQ=")
end)

kopf.test("http: files, retries, and fakes before others", function()
    local attempts = {}
    fake.http("https://up.example.com/log", function() return "never asked" end)
    fake.http("https://up.example.com/*", function(request)
        table.insert(attempts, time.now())
        check.equal(request.form, { kind = "log" })
        check.equal(request.files, { file = { content = "a\nb", name = "x.log", type = "application/octet-stream" } })
        if #attempts < 3 then
            return { status = 503, headers = { ["Retry-After"] = 7 } }
        end
        return "taken"
    end)
    check.equal(made({ upload = "https://up.example.com/log" }), "taken")
    check.equal(attempts[3] - attempts[1], 14)
    check.equal(#fake.calls("http"), 3)
end)

kopf.test("http: a redirect, no response, and a slow one", function()
    fake.http("https://a.example.com/", function() return { status = 302, headers = { location = "https://b.example.com/x" } } end)
    fake.http("https://b.example.com/x", function() return { error = "Unreachable", message = "refused" } end)
    check.equal(made({ get = "https://a.example.com/" }), "Unreachable")
    kube.delete({ apiVersion = "v1", kind = "ConfigMap", metadata = { name = "one" } })
    fake.http("https://b.example.com/x", function() kopf.sleep("1m") return "late" end)
    check.equal(made({ get = "https://a.example.com/" }), "Timeout")
end)

kopf.test("exec: commands, copies, and what the pod says itself", function()
    pod({})
    fake.exec(function(call)
        if call.copy_to then
            check.equal(call, { pod = "web", namespace = "default", container = "main", copy_to = "/etc/key", data_base64 = "/wA=" })
            return {}
        elseif call.copy_from == "/log/a" then
            return { data_base64 = "AAEC" }
        elseif call.copy_from then
            return { code = 2, stderr = "no such file" }
        end
        check.equal(call, { pod = "web", namespace = "default", container = "main", command = { "sh", "-c", "make" }, stdin = "in" })
        return { stdout = "half", stderr = "no disk", code = 3 }
    end)
    check.equal(made({ exec = "make" }), "3 half no disk")
    kube.delete({ apiVersion = "v1", kind = "ConfigMap", metadata = { name = "one" } })
    check.equal(made({ copy = "/log/a" }), "3")
    check.equal(#fake.calls("exec"), 3)
end)

kopf.test("run: the log and the code, once", function()
    fake.run(function(call)
        check.equal(call.image, "busybox")
        check.equal(call.command, { "sh", "-c", "make" })
        check.equal(call.env, { A = "1" })
        check.equal(call.namespace, "default")
        return { log = "half\ndone", code = 4 }
    end)
    check.equal(made({ run = "make" }), "4 half\ndone")
    check.equal(#fake.calls("run"), 1)
end)
"#;

const RHAI: &str = r#"
fn made(data) {
    let map = kube::create(#{ apiVersion: "v1", kind: "ConfigMap", metadata: #{ name: "one" }, data: data });
    kube::wait(map, |it| kopf::get(it, "metadata.annotations.made"), "1h").metadata.annotations.made
}
fn pod() {
    let object = kube::create(#{ apiVersion: "v1", kind: "Pod", metadata: #{ name: "web" }, spec: #{ containers: [#{ name: "main", image: "x" }] } });
    kube::wait(object, "condition=Ready", "1m");
}

kopf::test("http: what is sent, and what is answered", || {
    fake::http("https://api.example.com/*", |request| {
        check::equal(request.json, #{ name: "one" });
        #{ status: 201, json: #{ id: 5 }, headers: #{ "X-Kind": "item" } }
    });
    check::equal(made(#{ post: "yes" }), "201 5 item");
    let sent = fake::calls("http");
    check::equal(sent.len(), 1);
    check::equal(sent[0].method, "POST");
    check::equal(sent[0].url, "https://api.example.com/items?dry=no");
    check::equal(sent[0].query, #{ dry: "no" });
    check::equal(sent[0].body, "{\"name\":\"one\"}");
    check::equal(sent[0].auth, #{ user: "kopf", password: "secret" });
    check::equal(sent[0].headers["x-team"], "ops");
    check::equal(sent[0].headers.authorization, "Basic a29wZjpzZWNyZXQ=");
});

kopf::test("http: files, retries, and fakes before others", || {
    let attempts = [];
    fake::http("https://up.example.com/log", || "never asked");
    fake::http("https://up.example.com/*", |request| {
        attempts.push(time::now());
        check::equal(request.form, #{ kind: "log" });
        check::equal(request.files, #{ file: #{ content: "a\nb", name: "x.log", type: "application/octet-stream" } });
        if attempts.len() < 3 {
            return #{ status: 503, headers: #{ "Retry-After": 7 } };
        }
        "taken"
    });
    check::equal(made(#{ upload: "https://up.example.com/log" }), "taken");
    check::equal(attempts[2] - attempts[0], 14);
    check::equal(fake::calls("http").len(), 3);
});

kopf::test("http: a redirect, no response, and a slow one", || {
    fake::http("https://a.example.com/", || #{ status: 302, headers: #{ location: "https://b.example.com/x" } });
    fake::http("https://b.example.com/x", || #{ error: "Unreachable", message: "refused" });
    check::equal(made(#{ get: "https://a.example.com/" }), "Unreachable");
    kube::delete(#{ apiVersion: "v1", kind: "ConfigMap", metadata: #{ name: "one" } });
    fake::http("https://b.example.com/x", || { kopf::sleep("1m"); "late" });
    check::equal(made(#{ get: "https://a.example.com/" }), "Timeout");
});

kopf::test("exec: commands, copies, and what the pod says itself", || {
    pod();
    fake::exec(|it| {
        if "copy_to" in it {
            check::equal(it, #{ pod: "web", namespace: "default", container: "main", copy_to: "/etc/key", data_base64: "/wA=" });
            return #{};
        }
        if it?.copy_from == "/log/a" {
            return #{ data_base64: "AAEC" };
        }
        if "copy_from" in it {
            return #{ code: 2, stderr: "no such file" };
        }
        check::equal(it, #{ pod: "web", namespace: "default", container: "main", command: ["sh", "-c", "make"], stdin: "in" });
        #{ stdout: "half", stderr: "no disk", code: 3 }
    });
    check::equal(made(#{ exec: "make" }), "3 half no disk");
    kube::delete(#{ apiVersion: "v1", kind: "ConfigMap", metadata: #{ name: "one" } });
    check::equal(made(#{ copy: "/log/a" }), "3");
    check::equal(fake::calls("exec").len(), 3);
});

kopf::test("run: the log and the code, once", || {
    fake::run(|it| {
        check::equal(it.image, "busybox");
        check::equal(it.command, ["sh", "-c", "make"]);
        check::equal(it.env, #{ A: "1" });
        check::equal(it.namespace, "default");
        #{ log: "half\ndone", code: 4 }
    });
    check::equal(made(#{ run: "make" }), "4 half\ndone");
    check::equal(fake::calls("run").len(), 1);
});
"#;

fn run(name: &str, test: (&str, &str), args: &[&str]) -> (i32, String) {
    let (file, text) = test;
    let own =
        Directory::with(&format!("fakes-{name}"), &[("handlers.lua", OPERATOR), (file, text)]);
    let (ended, told, problem) = own.kopf(&[&["test", GRANT], args].concat(), &[]);
    (ended, format!("{told}{problem}"))
}

/// Checks the lines about tests, and those of the log about objects.
fn check(name: &str, test: (&str, &str), code: i32, expected: &Expect) {
    let (ended, told) = run(name, test, &[]);
    let is_wanted = |it: &&str| !it.contains("] auth ");
    let told: Vec<_> = told.lines().filter(is_wanted).collect();
    expected.assert_eq(&told.join("\n"));
    assert_eq!(ended, code);
}

#[test]
fn fakes_respond_in_the_place_of_servers_containers_and_jobs() {
    let (code, told) = run("lua", ("tests/fakes_test.lua", LUA), &[]);
    assert_eq!(code, 0, "{told}");
    let (code, told) = run("rhai", ("tests/fakes_test.rhai", RHAI), &[]);
    assert_eq!(code, 0, "{told}");
}

#[test]
fn a_call_without_a_fake_fails_and_says_so() {
    let test = r#"
kopf.test("none", function()
    kube.create({ apiVersion = "v1", kind = "ConfigMap", metadata = { name = "one" }, data = { post = "yes" } })
    kopf.sleep(1)
    fake.http("https://other.example.com/*", function() return nil end)
    kube.create({ apiVersion = "v1", kind = "ConfigMap", metadata = { name = "two" }, data = { upload = "http://forbidden.example.org/" } })
    kopf.sleep(1)
    kube.create({ apiVersion = "v1", kind = "ConfigMap", metadata = { name = "three" }, data = { upload = "https://other.example.com/x" } })
    kopf.sleep(1)
    kube.create({ apiVersion = "v1", kind = "ConfigMap", metadata = { name = "four" }, data = { exec = "make" } })
    kopf.sleep(1)
    kube.create({ apiVersion = "v1", kind = "Pod", metadata = { name = "web" }, spec = { containers = { { name = "main", image = "x" } } } })
    kopf.sleep(10)
    kube.create({ apiVersion = "v1", kind = "ConfigMap", metadata = { name = "five" }, data = { exec = "make" } })
    kopf.sleep(1)
    check.that(false)
end)
"#;
    check(
        "none",
        ("none_test.lua", test),
        1,
        &expect![[r#"
            FAILED  none_test.lua: none
                none_test.lua:16: check.that: expected a value other than false and nil, got false
                    check.that(false)
                stack traceback:
                    none_test.lua:16
                the log of the operator:
                [2030-01-01 00:00:00,100] objects    [WARNING ] [default/one] Handler 'create' failed (attempt 1 of 2), retrying in 30 s: http.post: no fake responds to POST https://api.example.com/items?dry=no: the test declares no fake; declare fake.http("https://api.example.com/items?dry=no", FUNCTION) in the test
                    handlers.lua:5: http.post: no fake responds to POST https://api.example.com/items?dry=no: the test declares no fake; declare fake.http("https://api.example.com/items?dry=no", FUNCTION) in the test
                        local made = http.post("https://api.example.com/items", {
                    stack traceback:
                        handlers.lua:5
                [2030-01-01 00:00:01,100] objects    [WARNING ] [default/two] Handler 'create' failed (attempt 1 of 2), retrying in 30 s: http.post: the connection to forbidden.example.org:80 is not granted to this script; --allow-net=forbidden.example.org:80 would allow it
                    handlers.lua:13: http.post: the connection to forbidden.example.org:80 is not granted to this script; --allow-net=forbidden.example.org:80 would allow it
                        local made = http.post(data.upload, { form = { kind = "log" }, files = { file = { content = "a\nb", name = "x.log" } }, retries = { attempts = 3, on = { 503 } }…
                    stack traceback:
                        handlers.lua:13
                [2030-01-01 00:00:02,100] objects    [WARNING ] [default/three] Handler 'create' failed (attempt 1 of 2), retrying in 30 s: http.post: no fake responds to POST https://other.example.com/x: the test declares fakes for ["https://other.example.com/*"]; declare fake.http("https://other.example.com/x", FUNCTION) in the test
                    handlers.lua:13: http.post: no fake responds to POST https://other.example.com/x: the test declares fakes for ["https://other.example.com/*"]; declare fake.http("https://other.example.com/x", FUNCTION) in the test
                        local made = http.post(data.upload, { form = { kind = "log" }, files = { file = { content = "a\nb", name = "x.log" } }, retries = { attempts = 3, on = { 503 } }…
                    stack traceback:
                        handlers.lua:13
                [2030-01-01 00:00:03,100] objects    [WARNING ] [default/four] Handler 'create' failed (attempt 1 of 2), retrying in 30 s: kube.exec: cannot create pods.v1/exec 'web' in 'default': 404 Not Found: pods "web" not found
                    handlers.lua:19: kube.exec: cannot create pods.v1/exec 'web' in 'default': 404 Not Found: pods "web" not found
                        local got = kube.exec("web", { "sh", "-c", data.exec }, { stdin = "in" })
                    stack traceback:
                        handlers.lua:19
                [2030-01-01 00:00:14,100] objects    [WARNING ] [default/five] Handler 'create' failed (attempt 1 of 2), retrying in 30 s: kube.exec: cannot create pods.v1/exec 'web' in 'default': invalid response: the command could not be run: Internal error occurred: no fake responds to ["sh","-c","make"] in the pod web: declare fake.exec(FUNCTION) in the test, or give the pod the annotation dev.kopf/exec-stdout
                    handlers.lua:19: kube.exec: cannot create pods.v1/exec 'web' in 'default': invalid response: the command could not be run: Internal error occurred: no fake responds to ["sh","-c","make"] in the pod web: declare fake.exec(FUNCTION) in the test, or give the pod the annotation dev.kopf/exec-stdout
                        local got = kube.exec("web", { "sh", "-c", data.exec }, { stdin = "in" })
                    stack traceback:
                        handlers.lua:19

            1 test, 1 failed"#]],
    );
}

#[test]
fn an_error_in_a_fake_fails_the_test_at_its_line() {
    let test = r#"
local function post(name)
    kube.create({ apiVersion = "v1", kind = "ConfigMap", metadata = { name = "one" }, data = { post = "yes" } })
    kopf.sleep("1m")
end
kopf.test("a check", function()
    fake.http("*", function(request)
        check.equal(request.json.name, "two")
    end)
    post()
end)
kopf.test("a field", function()
    fake.http("*", function() return { stauts = 404 } end)
    post()
end)
kopf.test("a status", function()
    fake.http("*", function() return { status = 99 } end)
    post()
end)
kopf.test("what", function()
    fake.calls("https")
end)
"#;
    check(
        "errors",
        ("errors_test.lua", test),
        1,
        &expect![[r#"
            FAILED  errors_test.lua: a check
                errors_test.lua:8: check.equal: expected "two", got "one"
                    check.equal(request.json.name, "two")
                stack traceback:
                    errors_test.lua:8
                the log of the operator:
                [2030-01-01 00:00:00,100] objects    [WARNING ] [default/one] Handler 'create' failed (attempt 1 of 2), retrying in 30 s: http.post: the function of fake.http has failed: check.equal: expected "two", got "one"
                    handlers.lua:5: http.post: the function of fake.http has failed: check.equal: expected "two", got "one"
                        local made = http.post("https://api.example.com/items", {
                    stack traceback:
                        handlers.lua:5
            FAILED  errors_test.lua: a field
                errors_test.lua:13: fake.http: what the function returns: there is no field `stauts`; did you mean `status`?
                the log of the operator:
                [2030-01-01 00:00:00,100] objects    [WARNING ] [default/one] Handler 'create' failed (attempt 1 of 2), retrying in 30 s: http.post: the function of fake.http has failed: errors_test.lua:13: fake.http: what the function returns: there is no field `stauts`; did you mean `status`?
                    handlers.lua:5: http.post: the function of fake.http has failed: errors_test.lua:13: fake.http: what the function returns: there is no field `stauts`; did you mean `status`?
                        local made = http.post("https://api.example.com/items", {
                    stack traceback:
                        handlers.lua:5
            FAILED  errors_test.lua: a status
                errors_test.lua:17: fake.http: what the function returns: `status`: expected a number from 200 to 599, got 99
                the log of the operator:
                [2030-01-01 00:00:00,100] objects    [WARNING ] [default/one] Handler 'create' failed (attempt 1 of 2), retrying in 30 s: http.post: the function of fake.http has failed: errors_test.lua:17: fake.http: what the function returns: `status`: expected a number from 200 to 599, got 99
                    handlers.lua:5: http.post: the function of fake.http has failed: errors_test.lua:17: fake.http: what the function returns: `status`: expected a number from 200 to 599, got 99
                        local made = http.post("https://api.example.com/items", {
                    stack traceback:
                        handlers.lua:5
            FAILED  errors_test.lua: what
                errors_test.lua:21: fake.calls: `what`: expected "http", "exec" or "run", got "https"; did you mean `http`?
                    fake.calls("https")
                stack traceback:
                    errors_test.lua:21
                the log of the operator:

            4 tests, 4 failed"#]],
    );
}

#[test]
fn an_error_in_a_fake_in_rhai_fails_the_test_at_its_line() {
    let test = r#"
kopf::test("a check", || {
    fake::http("*", |request| check::equal(request.json.name, "two"));
    kube::create(#{ apiVersion: "v1", kind: "ConfigMap", metadata: #{ name: "one" }, data: #{ post: "yes" } });
    kopf::sleep("1m");
});
kopf::test("parameters", || {
    fake::http("*", |a, b, c| a);
});
"#;
    check(
        "errors-rhai",
        ("errors_test.rhai", test),
        1,
        &expect![[r#"
        FAILED  errors_test.rhai: a check
            errors_test.rhai:3:38: check.equal: expected "two", got "one"
                fake::http("*", |request| check::equal(request.json.name, "two"));
            stack traceback:
                errors_test.rhai:3
            the log of the operator:
            [2030-01-01 00:00:00,100] objects    [WARNING ] [default/one] Handler 'create' failed (attempt 1 of 2), retrying in 30 s: http.post: the function of fake.http has failed: check.equal: expected "two", got "one"
                handlers.lua:5: http.post: the function of fake.http has failed: check.equal: expected "two", got "one"
                    local made = http.post("https://api.example.com/items", {
                stack traceback:
                    handlers.lua:5
        FAILED  errors_test.rhai: parameters
            errors_test.rhai:8:11: fake.http: the function has 3 parameters: a fake takes one, the call
                fake::http("*", |a, b, c| a);
            stack traceback:
                errors_test.rhai:8
            the log of the operator:

        2 tests, 2 failed"#]],
    );
}

#[test]
fn fakes_are_for_tests_only() {
    for (file, text) in [
        ("top.lua", "fake.http(\"*\", function() end)\n"),
        ("top.rhai", "fake::http(\"*\", || ());\n"),
    ] {
        let own = Directory::with("fakes-top", &[(file, text)]);
        let (code, told, problem) = own.kopf(&["check", file], &[]);
        assert_eq!(code, 1, "{told}{problem}");
        let expected = "fake.http: fakes are only available in tests that `kopf test` runs";
        assert!(problem.contains(expected), "{told}{problem}");
    }
    let (code, told) = run(
        "top-test",
        ("top_test.lua", "fake.run(function() end)\nkopf.test(\"a\", function() end)"),
        &[],
    );
    assert_eq!(code, 1);
    assert!(
        told.contains("fake.run: call it inside a test, in the function of `kopf.test`"),
        "{told}"
    );
}
