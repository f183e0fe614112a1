//! Requests to a server on this machine, from both languages.

mod scratch;
mod secure;

use std::{
    io::{BufRead as _, BufReader, Read, Write},
    net::TcpListener,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use ::base64::{Engine as _, engine::general_purpose::STANDARD};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::logic::{
    access::grants::{Access, Grants, Permission},
    handlers::function::ScriptId,
};
use crate::scripting::{
    LoadError, Placement, Source, Terms, functions::script_tests::checks, lua, rhai,
};
use crate::settings::Sandbox;

/// Responds to each request by its path, as long as the test runs; over TLS if a configuration is passed.
fn serve(tls: Option<Arc<ServerConfig>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let tls = tls.clone();
            thread::spawn(move || match tls {
                None => converse(stream, &format!("http://localhost:{port}")),
                Some(tls) => {
                    let session = ServerConnection::new(tls).expect("a session");
                    let stream = StreamOwned::new(session, stream);
                    converse(stream, &format!("https://localhost:{port}"));
                }
            });
        }
    });
    port
}

/// Responds to one request, and waits until the client has read enough.
fn converse(stream: impl Read + Write, own: &str) {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        match reader.read_line(&mut head) {
            Ok(0..=2) => break,
            Ok(_) => {}
            // It is not HTTP, or the client does not trust us.
            Err(_) => {
                reader.get_mut().write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").ok();
                return;
            }
        }
        let last = head.lines().last().unwrap_or_default().to_ascii_lowercase();
        if let Some(it) = last.strip_prefix("content-length: ") {
            length = it.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    if pours(reader.get_mut(), &head) {
        return;
    }
    let answer = answer(own, head.trim_end(), &String::from_utf8_lossy(&body));
    let wrote = reader.get_mut().write_all(&answer).and_then(|()| reader.get_mut().flush());
    if wrote.is_ok() && !head.starts_with("GET /cut ") {
        reader.read_line(&mut head).ok();
    }
}

/// Sends endless responses, or nearly, until the client has read enough.
#[expect(clippy::disallowed_methods, reason = "the server has threads of its own, and no runtime")]
fn pours(stream: &mut impl Write, head: &str) -> bool {
    let (more, piece, pause) = match head.split(' ').nth(1) {
        Some("/pours") => ("", vec![b'x'; 64 * 1024], Duration::ZERO),
        Some("/drips") => ("", vec![b'x'], Duration::from_millis(20)),
        Some("/headers") => ("x-a: 1\r\n", b"x-b: 2\r\n".repeat(1000), Duration::ZERO),
        Some("/promises") => ("content-length: 9000000000000\r\n\r\n", Vec::new(), Duration::ZERO),
        _ => return false,
    };
    let begin = if more.is_empty() { "\r\n" } else { more };
    let begin = format!("HTTP/1.1 200 OK\r\nconnection: close\r\n{begin}");
    let mut written = stream.write_all(begin.as_bytes());
    while written.is_ok() && !piece.is_empty() {
        thread::sleep(pause);
        written = stream.write_all(&piece);
    }
    true
}

/// Returns the response for a path; `own` is the start of a URL of this server.
fn answer(own: &str, head: &str, body: &str) -> Vec<u8> {
    let first = head.lines().next().unwrap_or_default();
    let (method, path) = first.split_once(' ').expect("a request");
    let path = path.split(' ').next().expect("a path");
    let made = |status: &str, more: &str, body: &[u8]| {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{more}\r\n"
        );
        [head.as_bytes(), body].concat()
    };
    let redirect = |status: &str, to: &str| made(status, &format!("location: {to}\r\n"), b"");
    match path.split('?').next().expect("a path") {
        "/echo" => {
            let auth = head.to_ascii_lowercase().contains("authorization:");
            let kind = head.lines().find_map(|it| it.strip_prefix("content-type: "));
            let packed = head.lines().find_map(|it| it.strip_prefix("accept-encoding: "));
            let echo = json!({
                "method": method, "path": path, "body": body, "auth": auth, "kind": kind, "packed": packed,
                "credentials": head.lines().find_map(|it| it.strip_prefix("authorization: ")),
            });
            made(
                "200 OK",
                "content-type: application/json\r\nx-a: 1\r\nx-a: 2\r\n",
                echo.to_string().as_bytes(),
            )
        }
        // The first two of three requests.
        "/busy" if BUSY.fetch_add(1, Ordering::Relaxed) % 3 < 2 => {
            made("503 Service Unavailable", "retry-after: 0\r\n", b"")
        }
        "/busy" => made("200 OK", "", b"done"),
        "/parts" => {
            let kind = head.lines().find_map(|it| it.strip_prefix("content-type: "));
            let boundary = kind.and_then(|it| it.split_once("boundary=")).expect("a boundary").1;
            made("200 OK", "", body.replace(boundary, "B").as_bytes())
        }
        "/missing" => made("404 Not Found", "", b"gone"),
        "/binary" => made("200 OK", "", &[255, 254]),
        "/large" => made("200 OK", "", &[b'x'; 2000]),
        "/found" => redirect("302 Found", "/echo"),
        "/bulk" => made("200 OK", "", &vec![b'x'; 3 << 20]),
        "/length" => {
            let kind = head.lines().find_map(|it| it.strip_prefix("content-type: "));
            let echo = json!({ "length": body.len(), "kind": kind });
            made("200 OK", "content-type: application/json\r\n", echo.to_string().as_bytes())
        }
        "/moved" if path.ends_with("?to=/length") => redirect("307 Temporary Redirect", "/length"),
        "/moved" => redirect("307 Temporary Redirect", "/echo"),
        "/loop" => redirect("302 Found", "/loop"),
        "/other" => redirect("302 Found", &format!("{own}/echo")),
        "/stranger" => {
            redirect("302 Found", &format!("{own}/echo").replace("localhost", "a.example"))
        }
        "/naked" => redirect("302 Found", &own.replace("https:", "http:")),
        "/metadata" => redirect("302 Found", "http://169.254.169.254/latest"),
        "/file" => redirect("302 Found", "file:///etc/passwd"),
        "/packed" => {
            made("200 OK", "content-encoding: gzip\r\ncontent-type: text/plain\r\n", PACKED)
        }
        "/slow" => Vec::new(),
        // Half of the announced length.
        "/half" | "/cut" => b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf of it".to_vec(),
        // No announced length, and no end.
        "/endless" => {
            let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
            format!("{head}{}", format!("64\r\n{}\r\n", "x".repeat(100)).repeat(9)).into()
        }
        _ => made("500 Internal Server Error", "", b""),
    }
}

/// Requests to a busy server.
static BUSY: AtomicUsize = AtomicUsize::new(0);

/// The string `hi`, compressed.
const PACKED: &[u8] =
    &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3, 0xcb, 0xc8, 4, 0, 0xac, 0x2a, 0x93, 0xd8, 2, 0, 0, 0];

/// Runs the top level of a script on the real clock, because the server does not follow a virtual one.
fn run(
    name: &str,
    text: &str,
    (granted, scratch_size): (&[String], usize),
) -> Result<(), LoadError> {
    let mut all = Access::default();
    for rule in granted {
        let (what, rule) = match rule.split_once(' ') {
            Some(("insecure", rule)) => (Permission::Insecure, rule),
            Some((_, rule)) => (Permission::Scratch, rule),
            None => (Permission::Net, rule.as_str()),
        };
        all.allow(what, rule, Path::new("/")).expect("a rule");
    }
    let grants = Arc::new(Grants { all, scripts: Vec::new() });
    let mut terms = Terms { grants, ..Placement::CurrentRuntime.into() };
    terms.limits.scratch_size = scratch_size;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let load = if name == "t.lua" { lua::load } else { rhai::load };
    let source = Source { modules: checks(), ..Source::alone(name, text) };
    let set = tokio::task::LocalSet::new();
    let loaded = runtime.block_on(set.run_until(load(ScriptId(1), &source, &terms)));
    loaded.map(drop)
}

/// The expected result of a call: the value at a path of the response, or a part of the error.
type Expected<'a> = Result<(&'a str, Value), &'a str>;

/// Returns a call that is the same in both languages.
fn call(method: &str, url: &str, options: &Value) -> String {
    let options = Value::from(options.to_string());
    format!("http.{method}({}, json.decode({options}))", Value::from(url))
}

/// Runs calls in both languages, with this port in place of `PORT`.
fn check(granted: &[&str], calls: &[(String, Expected<'_>)]) {
    check_with(granted, calls, Sandbox::default().scratch_size);
}

/// Runs calls with this limit of scratch files, in bytes.
fn check_with(granted: &[&str], calls: &[(String, Expected<'_>)], scratch_size: usize) {
    check_against((serve(None), scratch_size), granted, calls);
}

fn check_at(port: u16, granted: &[&str], calls: &[(String, Expected<'_>)]) {
    check_against((port, Sandbox::default().scratch_size), granted, calls);
}

fn check_against(
    (port, scratch_size): (u16, usize),
    granted: &[&str],
    calls: &[(String, Expected<'_>)],
) {
    let port = port.to_string();
    let granted: Vec<_> = granted.iter().map(|it| it.replace("PORT", &port)).collect();
    let (mut lua, mut rhai) = (LUA.to_owned(), RHAI.to_owned());
    for (call, expected) in calls {
        match expected {
            Ok((path, value)) => {
                let value = Value::from(value.to_string());
                let line = format!("check(deep.get({call}, \"{path}\"), json.decode({value}));\n");
                lua.extend(["checks.", &line]);
                rhai.extend(["checks::", &line]);
            }
            Err(error) => {
                let error = Value::from(*error);
                lua.extend([
                    "checks.fails_with(function() return ",
                    call,
                    " end, ",
                    &error.to_string(),
                    ");\n",
                ]);
                rhai.extend(["checks::fails_with(|| ", call, ", ", &error.to_string(), ");\n"]);
            }
        }
    }
    for (name, text) in [("t.lua", lua), ("t.rhai", rhai)] {
        let text = text.replace("PORT", &port);
        if let Err(problem) = run(name, &text, (&granted, scratch_size)) {
            panic!("{problem}");
        }
    }
}

const LUA: &str = "local checks = require('lib.checks')\n";
const RHAI: &str = "import `lib/checks` as checks;\n";

/// Returns a call of a path of the server on this machine.
fn own(method: &str, path: &str, options: &Value) -> String {
    call(method, &format!("http://127.0.0.1:PORT{path}"), options)
}

#[test]
fn requests_are_sent_and_responses_are_read() {
    let none = || json!({});
    let auth = || json!({ "headers": { "Authorization": "secret" } });
    check(
        &["127.0.0.1:PORT", "localhost:PORT"],
        &[
            (
                own("get", "/echo?x=1", &json!({ "query": { "y": "a b" } })),
                Ok(("json.path", json!("/echo?x=1&y=a+b"))),
            ),
            (own("get", "/echo", &none()), Ok(("status", json!(200)))),
            (own("get", "/echo", &none()), Ok(("ok", json!(true)))),
            (own("get", "/echo", &none()), Ok(("json.method", json!("GET")))),
            (own("get", "/echo", &none()), Ok(("headers.x-a", json!("1, 2")))),
            (
                own("post", "/echo", &json!({ "json": { "a": 1 } })),
                Ok(("json.body", json!("{\"a\":1}"))),
            ),
            (
                own("post", "/echo", &json!({ "json": 1 })),
                Ok(("json.kind", json!("application/json"))),
            ),
            (own("put", "/echo", &json!({ "body": "text" })), Ok(("json.body", json!("text")))),
            (
                own("patch", "/echo", &json!({ "form": { "a": "b c" } })),
                Ok(("json.body", json!("a=b+c"))),
            ),
            (
                own("post", "/echo", &json!({ "body_base64": "aGk=" })),
                Ok(("json.body", json!("hi"))),
            ),
            (own("delete", "/echo", &none()), Ok(("json.method", json!("DELETE")))),
            (
                own("request", "", &none())
                    .replace("request(", "request(\"OPTIONS\", ")
                    .replace("PORT", "PORT/echo"),
                Ok(("json.method", json!("OPTIONS"))),
            ),
            (own("get", "/missing", &none()), Ok(("status", json!(404)))),
            (own("get", "/missing", &none()), Ok(("ok", json!(false)))),
            (own("get", "/missing", &none()), Ok(("body", json!("gone")))),
            (own("get", "/binary", &none()), Ok(("body_base64", json!("//4=")))),
            (own("get", "/large", &none()), Ok(("body", json!("x".repeat(2000))))),
            (own("get", "/echo", &none()), Ok(("json.packed", json!(null)))),
            (own("get", "/packed", &none()), Ok(("body_base64", json!(STANDARD.encode(PACKED))))),
            (own("get", "/packed", &none()), Ok(("headers.content-encoding", json!("gzip")))),
            (own("post", "/found", &json!({ "body": "x" })), Ok(("json.method", json!("GET")))),
            (own("post", "/moved", &json!({ "body": "x" })), Ok(("json.body", json!("x")))),
            (own("get", "/loop", &none()), Ok(("status", json!(302)))),
            (own("get", "/found", &json!({ "redirects": 0 })), Ok(("status", json!(302)))),
            (own("get", "/echo", &auth()), Ok(("json.auth", json!(true)))),
            (own("get", "/other", &auth()), Ok(("json.auth", json!(false)))),
        ],
    );
}

#[test]
fn requests_that_are_invalid_or_not_granted_are_refused() {
    let none = || json!({});
    let get = |url: &str| call("get", url, &json!({}));
    check(
        &["127.0.0.1:PORT"],
        &[
            (
                get("http://10.0.0.1/"),
                Err(
                    "http.get: the connection to 10.0.0.1:80 is not granted to this script; --allow-net=10.0.0.1:80 would allow it",
                ),
            ),
            (get("http://[::1]:PORT/"), Err("--allow-net=[::1]:PORT would allow it")),
            (get("https://example.com/"), Err("example.com:443 is not granted")),
            (get("ftp://127.0.0.1/"), Err("http.get: `url`: expected http or https, got ftp")),
            (get("http://me:pw@127.0.0.1:PORT/"), Err("must not contain a user name")),
            (
                own("get", "/other", &none()),
                Err(
                    "redirects to http://localhost:PORT/echo: the connection to localhost:PORT is not granted",
                ),
            ),
            (
                own("get", "/metadata", &none()),
                Err("the connection to 169.254.169.254:80 is not granted"),
            ),
            (own("get", "/file", &none()), Err("expected http or https, got file")),
            (
                own("get", "/large", &json!({ "size": 100 })),
                Err("the response is larger than 100 bytes; increase the option `size`"),
            ),
            (
                own("get", "/slow", &json!({ "timeout": "200ms" })),
                Err("/slow: no complete response within 0.2 s; increase the option `timeout`"),
            ),
            (
                own("get", "/half", &json!({ "timeout": "200ms" })),
                Err("/half: no complete response within 0.2 s"),
            ),
            (own("get", "/cut", &none()), Err("/cut: end of file before message length reached")),
            (
                own("get", "/endless", &json!({ "size": 100 })),
                Err("the response is larger than 100 bytes"),
            ),
            (
                get("https://127.0.0.1:PORT/"),
                Err("the server does not use TLS on this port; use http://"),
            ),
            (
                own("get", "", &json!({ "headers": { "Host": "a" } })),
                Err("host is set by the HTTP client and cannot be changed"),
            ),
            (
                own("get", "", &json!({ "headers": { "a": "b\r\nc: d" } })),
                Err("must not contain line breaks"),
            ),
            (
                own("post", "", &json!({ "json": 1, "body": "a" })),
                Err("`json` and `body`: expected only one of them"),
            ),
            (
                own("get", "", &json!({ "ca": "no certificate" })),
                Err("`ca`: contains no certificate"),
            ),
            (
                own("request", "", &none()).replace("request(", "request(\"CONNECT\", "),
                Err("`method`: expected capital letters"),
            ),
        ],
    );
}

#[test]
fn a_star_does_not_grant_the_services_of_a_cloud() {
    let get = |url: &str| call("get", url, &json!({}));
    let refusal = Err("patterns do not grant addresses of this machine or of its cloud provider");
    check(
        &["*:*"],
        &[
            (get("http://169.254.169.254/latest"), refusal.clone()),
            (get("http://127.0.0.1:PORT/echo"), refusal.clone()),
            (get("http://2130706433:PORT/echo"), refusal.clone()),
            (get("http://[::ffff:7f00:1]:PORT/echo"), refusal),
            (get("http://localhost:PORT/echo"), Ok(("status", json!(200)))),
        ],
    );
}

#[test]
fn endless_responses_are_aborted() {
    let soon = json!({ "timeout": 0.3 });
    check(
        &["127.0.0.1:PORT"],
        &[
            (own("get", "/pours", &json!({})), Err("larger than 1048576 bytes")),
            (own("get", "/pours", &json!({ "size": 9e15 })), Err("larger than 4194304 bytes")),
            (own("get", "/drips", &soon), Err("no complete response within 0.3 s")),
            (own("get", "/slow", &soon), Err("no complete response within 0.3 s")),
            (own("get", "/promises", &json!({})), Err("/promises: ")),
            (own("get", "/headers", &json!({})), Err("/headers: ")),
        ],
    );
}

#[test]
fn requests_are_repeated_authenticated_and_sent_in_parts() {
    let auth = |it: Value| json!({ "auth": it });
    let parts = json!({
        "form": { "a": 1 },
        "files": { "plan": { "content": "x", "name": "p.jar", "type": "application/java-archive" } },
    });
    let sent = "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n\
        --B\r\nContent-Disposition: form-data; name=\"plan\"; filename=\"p.jar\"\r\n\
        Content-Type: application/java-archive\r\n\r\nx\r\n--B--\r\n";
    check(
        &["127.0.0.1:PORT"],
        &[
            (
                own("get", "/busy", &json!({ "retries": { "attempts": 3 } })),
                Ok(("body", json!("done"))),
            ),
            (
                own("post", "/busy", &json!({ "retries": { "attempts": 2, "backoff": [0.01] } })),
                Ok(("status", json!(503))),
            ),
            (own("get", "/busy", &json!({})), Ok(("body", json!("done")))),
            (
                own("get", "/echo", &auth(json!({ "user": "ann", "password": "pw" }))),
                Ok(("json.credentials", json!("Basic YW5uOnB3"))),
            ),
            (own("post", "/parts", &parts), Ok(("body", json!(sent)))),
            (
                own("get", "/", &auth(json!({ "user": "a" }))),
                Err("`auth.password`: expected a string"),
            ),
            (
                own("get", "/", &auth(json!({ "name": "a" }))),
                Err("`auth`: expected `user` and `password`, got `name`"),
            ),
            (
                own("get", "/", &json!({ "retries": { "attempts": 0 } })),
                Err("`retries.attempts`: expected a number from 1 to 20, got 0"),
            ),
            (
                own("get", "/", &json!({ "retries": { "atempts": 2 } })),
                Err("`retries`: there is no option `atempts`; did you mean `attempts`?"),
            ),
            (
                own("get", "/", &json!({ "retries": { "delay": 2 } })),
                Err(
                    "`retries`: there is no option `delay`; the options are: attempts, backoff, on",
                ),
            ),
            (
                own("get", "/", &json!({ "retries": { "attempts": 2, "on": ["x"] } })),
                Err("`retries.on`: expected a list of statuses such as 503, got \"x\""),
            ),
            (own("get", "/", &json!({ "cert": "x" })), Err("`cert` needs `key`")),
            (
                own("get", "/", &json!({ "cert": "x", "key": "y" })),
                Err("`cert`: contains no certificate"),
            ),
            (
                own("post", "/", &json!({ "files": { "a": { "name": "x" } } })),
                Err("expected a string, or a map with `content` or `content_base64`"),
            ),
            (
                own("post", "/", &json!({ "files": { "a": "x" }, "json": 1 })),
                Err("`json` and `files`: expected only one of them"),
            ),
        ],
    );
}
