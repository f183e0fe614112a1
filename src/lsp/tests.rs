//! The server, over a pipe.

use std::{
    io::{BufReader, Cursor},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::{Value, json};

use super::{
    LspEnd, Schemas, Server, convert,
    framing::{Incoming, read},
    serve,
};
use crate::checker::ObjectKind;

fn kinds(_directory: &Path) -> Vec<ObjectKind> {
    let spec = json!({ "type": "object", "properties": { "host": { "type": "string" } } });
    vec![ObjectKind {
        group: "example.com".into(),
        version: "v1".into(),
        names: vec!["sites".into()],
        schema: Arc::new(json!({ "type": "object", "properties": { "spec": spec } })),
        has_status: true,
    }]
}

const SCHEMAS: Schemas = Schemas { kinds, definitions: |_| None };

#[derive(Clone, Default)]
struct SharedOutput(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for SharedOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn framed(body: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

/// Sends all messages, and returns the responses.
fn talk(input: &[String]) -> (Vec<Value>, LspEnd) {
    let output = SharedOutput::default();
    let end = serve(Cursor::new(input.concat()), output.clone(), SCHEMAS).expect("a pipe");
    (messages(&output), end)
}

fn messages(output: &SharedOutput) -> Vec<Value> {
    let bytes = output.0.lock().expect("the server is gone").clone();
    let text = String::from_utf8(bytes).expect("UTF-8");
    let mut messages = Vec::new();
    let mut rest = text.as_str();
    while let Some((header, after)) = rest.split_once("\r\n\r\n") {
        let length: usize =
            header.trim_start_matches("Content-Length: ").parse().expect("a length");
        let (body, next) = after.split_at(length);
        messages.push(serde_json::from_str(body).expect("JSON"));
        rest = next;
    }
    messages
}

fn request(id: i32, method: &str, params: &Value) -> String {
    framed(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string())
}

fn notify(method: &str, params: &Value) -> String {
    framed(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string())
}

fn begin() -> String {
    [request(0, "initialize", &json!({ "capabilities": {} })), notify("initialized", &json!({}))]
        .concat()
}

fn open(name: &str, text: &str) -> String {
    let document = json!({ "uri": format!("file:///nowhere/{name}"), "languageId": "x", "version": 1, "text": text });
    notify("textDocument/didOpen", &json!({ "textDocument": document }))
}

fn place(name: &str, line: u32, character: u32) -> Value {
    json!({ "textDocument": { "uri": format!("file:///nowhere/{name}") }, "position": { "line": line, "character": character } })
}

fn shutdown() -> String {
    [request(99, "shutdown", &Value::Null), notify("exit", &Value::Null)].concat()
}

fn result(messages: &[Value], id: i32) -> &Value {
    let found = messages.iter().find(|it| it["id"] == id && it.get("method").is_none());
    &found.unwrap_or_else(|| panic!("no response {id} in {messages:?}"))["result"]
}

fn diagnostics(messages: &[Value]) -> Vec<(u64, u64, String)> {
    let mut all =
        messages.iter().rev().filter(|it| it["method"] == "textDocument/publishDiagnostics");
    let last = all.next().expect("diagnostics");
    let of = |it: &Value| {
        let start = &it["range"]["start"];
        let number = |key: &str| start[key].as_u64().expect("a number");
        (number("line"), number("character"), it["code"].as_str().expect("a code").to_owned())
    };
    last["params"]["diagnostics"].as_array().expect("a list").iter().map(of).collect()
}

#[test]
fn an_editor_is_served_until_it_shuts_down() {
    let text = "local ab = 1\nkopf.on_create('sites', function(ctx)\n    print(ab, ctx.spec.host, kube.get)\n    ctx.spec.\nend)\nkopf.test('it works', print)";
    let input = [
        begin(),
        open("x.lua", text),
        request(1, "textDocument/completion", &place("x.lua", 3, 13)),
        request(2, "textDocument/hover", &place("x.lua", 2, 35)),
        request(3, "textDocument/definition", &place("x.lua", 2, 11)),
        request(
            4,
            "textDocument/codeLens",
            &json!({ "textDocument": { "uri": "file:///nowhere/x.lua" } }),
        ),
        shutdown(),
    ];
    let (messages, end) = talk(&input);
    assert_eq!(end, LspEnd::Orderly);
    assert_eq!(result(&messages, 0)["serverInfo"]["name"], "kopf");
    assert_eq!(result(&messages, 1)[0]["label"], "host");
    let hover = result(&messages, 2)["contents"]["value"].as_str().expect("Markdown");
    assert!(hover.contains("kube.get"), "{hover}");
    let start = json!({ "line": 0, "character": 6 });
    assert_eq!(result(&messages, 3)["range"]["start"], start);
    let command = &result(&messages, 4)[0]["command"];
    assert_eq!(command["arguments"], json!(["/nowhere/x.lua", "it works"]));
}

#[test]
fn mistakes_are_reported_for_the_document_as_it_is_typed() {
    let uri = "file:///nowhere/x.lua";
    let changed = |version: i32, text: &str| {
        let document = json!({ "uri": uri, "version": version });
        notify(
            "textDocument/didChange",
            &json!({ "textDocument": document, "contentChanges": [{ "text": text }] }),
        )
    };
    // The end of the input is detected only when no message waits.
    let (messages, end) = talk(&[
        begin(),
        open("x.lua", "helpr()"),
        changed(2, "-- äö😀\nlocal s = 'ä😀' .. helpr()"),
    ]);
    assert_eq!(end, LspEnd::Abrupt);
    assert_eq!(diagnostics(&messages), [(1, 19, "unknown-function".to_owned())]);
    let (messages, _) = talk(&[begin(), open("x.lua", "print(\n  helpr()")]);
    let codes: Vec<_> = diagnostics(&messages).into_iter().map(|it| it.2).collect();
    assert_eq!(codes, ["syntax", "unknown-function"]);
    let (messages, _) = talk(&[begin(), open("x.lua", &"x".repeat((1 << 20) + 1))]);
    assert_eq!(diagnostics(&messages), [(0, 0, "unchecked".to_owned())]);
    let close = notify("textDocument/didClose", &json!({ "textDocument": { "uri": uri } }));
    let (messages, _) = talk(&[begin(), open("x.lua", "helpr()"), close]);
    assert_eq!(diagnostics(&messages), []);
}

fn errors(messages: &[Value]) -> Vec<i64> {
    messages.iter().filter_map(|it| it["error"]["code"].as_i64()).collect()
}

#[test]
fn invalid_requests_get_an_error_and_the_server_continues() {
    let cases = [
        (framed("{"), -32700),
        (framed("[1, 2]"), -32600),
        (framed("{\"jsonrpc\": \"2.0\"}"), -32600),
        (request(5, "textDocument/rename", &json!({})), -32601),
        (request(5, "textDocument/hover", &json!({ "x": 1 })), -32602),
        (request(5, "textDocument/hover", &place("other.lua", 0, 0)), -32602),
        (format!("Content-Length: {}\r\n\r\n{}", (8 << 20) + 1, " ".repeat((8 << 20) + 1)), -32600),
    ];
    for (broken, expected) in cases {
        let shown: String = broken.chars().take(80).collect();
        let (messages, end) = talk(&[begin(), broken, shutdown()]);
        assert_eq!((errors(&messages), end), (vec![expected], LspEnd::Orderly), "{shown}");
    }
    let (messages, _) = talk(&[request(1, "textDocument/hover", &place("x.lua", 0, 0)), begin()]);
    assert_eq!(errors(&messages), [-32002]);
    let after = request(1, "textDocument/hover", &place("x.lua", 0, 0));
    let (messages, _) = talk(&[begin(), request(98, "shutdown", &Value::Null), after]);
    assert_eq!(errors(&messages), [-32600]);
    let lost = notify(
        "textDocument/didChange",
        &json!({ "textDocument": { "uri": "file:///x", "version": 1 }, "contentChanges": [] }),
    );
    let (messages, _) = talk(&[begin(), lost, shutdown()]);
    assert!(messages.iter().any(|it| it["method"] == "window/logMessage"), "{messages:?}");
    // Input that does not follow the protocol ends the server.
    assert_eq!(talk(&["hello\n".repeat(10)]).1, LspEnd::Abrupt);
    assert_eq!(
        talk(&["Content-Length: 99999999999999999999\r\n\r\n".to_owned()]).1,
        LspEnd::Abrupt
    );
    assert_eq!(talk(&["Content-Length: 10\r\n\r\n{}".to_owned()]).1, LspEnd::Abrupt);
}

#[test]
fn cancelled_requests_are_not_handled() {
    let hover = request(7, "textDocument/hover", &place("x.lua", 0, 1));
    let cancel = notify("$/cancelRequest", &json!({ "id": 7 }));
    let input = [begin(), open("x.lua", "kube.get()"), hover, cancel].concat();
    let (output, mut input) = (SharedOutput::default(), BufReader::new(Cursor::new(input)));
    let mut server = Server::new(output.clone(), SCHEMAS);
    // All messages are queued before the first one is handled.
    while let Some(incoming) = read(&mut input) {
        server.push(incoming);
    }
    let (_, receiver) = std::sync::mpsc::channel();
    assert_eq!(server.run(&receiver).expect("a pipe"), LspEnd::Abrupt);
    assert_eq!(errors(&messages(&output)), [-32800]);
}

#[test]
fn at_most_two_hundred_documents_are_open() {
    let many: String = (0..201).map(|it| open(&format!("x{it}.lua"), "")).collect();
    let (messages, _) = talk(&[begin(), many, shutdown()]);
    let logged = messages.iter().filter(|it| it["method"] == "window/logMessage");
    let logged: Vec<_> =
        logged.map(|it| it["params"]["message"].as_str().unwrap_or_default()).collect();
    assert_eq!(logged, ["kopf lsp: textDocument/didOpen ignored: more than 200 files are open"]);
}

#[test]
fn positions_are_counted_in_utf_16() {
    let text = "aä😀b\r\nc";
    for (line, character, at) in [(0, 0, 0), (0, 1, 1), (0, 2, 3), (0, 4, 7), (0, 5, 8), (1, 1, 11)]
    {
        let position = lsp_types::Position { line, character };
        assert_eq!(convert::offset(text, position), at, "{line}:{character}");
        assert_eq!(convert::position(text, at), position, "{at}");
    }
    let position = |line, character| lsp_types::Position { line, character };
    assert_eq!(convert::offset(text, position(0, 99)), 8);
    assert_eq!(convert::offset(text, position(99, 0)), text.len());
    assert_eq!(convert::position(text, 999), position(1, 1));
}

#[test]
fn headers_are_read_as_clients_write_them() {
    let body = "{\"jsonrpc\":\"2.0\",\"method\":\"x\"}";
    let input = format!("content-type: x\r\nCONTENT-LENGTH:{}\r\n\r\n{body}", body.len());
    let mut input = BufReader::new(Cursor::new(input));
    assert!(matches!(read(&mut input), Some(Incoming::Message(_))));
    assert!(read(&mut input).is_none());
}
