//! The responses to an editor.

use std::sync::Arc;

use serde_json::json;

use super::{EditorRequest, EditorResponse, respond};
use crate::checker::{Knowledge, ObjectKind};
use crate::scripting::{Modules, Source};

fn knowledge() -> Knowledge {
    let text = json!({ "type": "string", "description": "The name of the host" });
    let spec =
        json!({ "type": "object", "properties": { "host": text, "port": { "type": "integer" } } });
    let status = json!({ "type": "object", "properties": { "phase": { "type": "string" } } });
    let kind = ObjectKind {
        group: "example.com".into(),
        version: "v1".into(),
        names: vec!["sites".into(), "Site".into()],
        schema: Arc::new(
            json!({ "type": "object", "properties": { "spec": spec, "status": status } }),
        ),
        has_status: true,
    };
    Knowledge { kinds: Arc::new(vec![kind]), ..Knowledge::default() }
}

fn source(name: &str, text: &str) -> Source {
    let helper = if name.ends_with("lua") {
        ("lib/naming.lua", "local M = {}\nfunction M.short(name) return name end\nreturn M\n")
    } else {
        ("lib/naming.rhai", "fn short(name) { name }\n")
    };
    let modules = Modules::of_texts([(helper.0.into(), helper.1.to_owned())].into());
    Source { name: name.to_owned(), text: text.to_owned(), modules }
}

/// Sends a request about the position that `|` marks.
fn at(name: &str, marked: &str, request: impl Fn(usize) -> EditorRequest) -> EditorResponse {
    let at = marked.find('¦').expect("a mark");
    respond(&source(name, &marked.replace('¦', "")), &knowledge(), request(at))
}

fn completed(name: &str, marked: &str) -> Vec<String> {
    let all = at(name, marked, EditorRequest::Completions).completions;
    all.into_iter().map(|it| it.label).collect()
}

#[track_caller]
fn offers(name: &str, marked: &str, expected: &[&str], others: &[&str]) {
    let all = completed(name, marked);
    for it in expected {
        assert!(all.iter().any(|label| label == it), "{it} in {all:?}");
    }
    for it in others {
        assert!(!all.iter().any(|label| label == it), "{it} in {all:?}");
    }
}

#[test]
fn names_are_completed_while_the_line_is_typed() {
    let lua = |inner: &str| {
        format!(
            "local mine = 1\nkopf.on_create('sites', function(ctx)\n    local x = {inner}\n    local y = 2\nend)\nlocal later = 1\n"
        )
    };
    offers(
        "x.lua",
        &lua("¦"),
        &["mine", "ctx", "kube", "string", "tostring"],
        &["later", "kopf_cursor"],
    );
    offers("x.lua", &lua("ctx.¦"), &["spec", "patch", "logger"], &["stopped"]);
    offers("x.lua", &lua("ctx.lo¦"), &["logger"], &["stopped", "mine"]);
    offers("x.lua", &lua("ctx.spec.¦"), &["host", "port"], &["spec"]);
    offers("x.lua", &lua("ctx.logger:¦"), &["info", "warning"], &["spec"]);
    offers("x.lua", &lua("kube.¦"), &["get", "apply"], &["host"]);
    offers("x.lua", &lua("kube.get('¦')"), &["sites"], &["mine"]);
    offers("x.lua", &lua("string.¦"), &["format"], &["mine"]);
    offers("x.lua", &lua("ctx.spec.host:¦"), &["upper"], &["mine"]);
    offers("x.lua", "kopf.on_create('sites', { re¦ }, print)", &["retries", "timeout"], &["kube"]);
    offers(
        "x.lua",
        "kopf.on_create('sites', function(ctx) ctx.patch.status.¦ end)",
        &["phase"],
        &[],
    );
    offers(
        "x.lua",
        "kopf.on_create('sites', function(ctx) ctx.patch.status = { ph¦ = 1 } end)",
        &["phase"],
        &[],
    );
    offers("x.lua", "local naming = require('lib/naming')\nprint(naming.¦", &["short"], &["kube"]);
    let rhai = |inner: &str| {
        format!("kopf::on_create(\"sites\", |ctx| {{\n    let x = {inner}\n    let y = 2;\n}});\n")
    };
    offers("x.rhai", &rhai("¦;"), &["ctx", "kube", "parse_json"], &["string"]);
    offers("x.rhai", &rhai("ctx.¦"), &["spec", "patch"], &["stopped"]);
    offers("x.rhai", &rhai("ctx.spec.¦;"), &["host", "port"], &["spec"]);
    offers("x.rhai", &rhai("kube::¦;"), &["get", "apply"], &["host"]);
    offers("x.rhai", &rhai("kube::get(\"¦\");"), &["sites"], &["host"]);
    offers("x.rhai", "kopf::daemon(\"sites\", |ctx| { ctx.¦ });", &["stopped"], &[]);
    offers("x.rhai", "import \"lib/naming\" as naming;\nnaming::¦;", &["short"], &["kube"]);
}

fn documented(name: &str, marked: &str) -> String {
    at(name, marked, EditorRequest::Documentation).documentation.unwrap_or_default().0
}

#[test]
fn names_are_explained_as_in_the_reference() {
    let lua = |inner: &str| {
        format!(
            "kopf.on_create('sites', {{ retries = 3 }}, function(ctx)\n    local x = {inner}\nend)\n"
        )
    };
    assert!(documented("x.lua", &lua("kube.ap¦ply({})")).contains("server-side apply"));
    assert!(documented("x.lua", &lua("ctx.lo¦gger")).contains("ctx.logger"));
    assert!(documented("x.lua", &lua("ctx.logger:inf¦o('x')")).contains("logger.info"));
    assert!(documented("x.lua", &lua("ctx.spec.hos¦t")).contains("The name of the host"));
    assert!(documented("x.lua", &lua("ku¦be.get('pods')")).contains("The Kubernetes client"));
    assert!(documented("x.lua", &lua("string.form¦at('x')")).contains("string.format"));
    assert!(
        documented("x.lua", &lua("1").replace("retries", "retr¦ies"))
            .contains("Maximum number of attempts")
    );
    assert_eq!(documented("x.lua", &lua("12¦3")), "");
    let rhai = "kopf::on_create(\"sites\", |ctx| { kube::ap¦ply(#{}); });";
    assert!(documented("x.rhai", rhai).contains("server-side apply"));
}

/// Returns the file and the line of a definition.
fn defined(name: &str, marked: &str) -> String {
    let Some(found) = at(name, marked, EditorRequest::Definition).definition else {
        return String::new();
    };
    let rest = found.text.get(found.at..).unwrap_or_default();
    let file = found.module.map(|it| it.display().to_string()).unwrap_or_default();
    format!("{file}:{}", rest.lines().next().unwrap_or_default())
}

#[test]
fn definitions_are_found() {
    assert_eq!(
        defined("x.lua", "local abc = 1\nlocal function f(abc)\n    print(ab¦c)\nend"),
        ":abc)"
    );
    assert_eq!(defined("x.lua", "local abc = 1\nprint(ab¦c)"), ":abc = 1");
    assert_eq!(defined("x.lua", "function helper() end\nhelp¦er()"), ":helper() end");
    let naming = "local naming = require('lib/naming')\n";
    assert_eq!(
        defined("x.lua", &format!("{naming}naming.sho¦rt(1)")),
        "lib/naming.lua:short(name) return name end"
    );
    assert_eq!(
        defined("x.lua", &format!("{naming}nam¦ing.short(1)")),
        "lib/naming.lua:local M = {}"
    );
    assert_eq!(defined("x.lua", "kub¦e.get('pods')"), "");
    assert_eq!(defined("x.rhai", "fn helper() {}\nhelp¦er();"), ":helper() {}");
    assert_eq!(
        defined("x.rhai", "let abc = 1;\nkopf::on_create(\"x\", |ctx| { let b = ab¦c; });"),
        ":abc = 1;"
    );
    let naming = "import \"lib/naming\" as naming;\n";
    assert_eq!(
        defined("x.rhai", &format!("{naming}naming::sho¦rt(1);")),
        "lib/naming.rhai:short(name) { name }"
    );
}

fn findings(name: &str, text: &str) -> (Vec<String>, usize) {
    let response = respond(&source(name, text), &knowledge(), EditorRequest::Findings);
    assert_eq!(response.unchecked, None);
    (response.findings.into_iter().map(|it| it.error.message).collect(), response.broken.len())
}

#[test]
fn a_line_that_is_being_typed_hides_no_other_findings() {
    let lua = "local known = 1\nkopf.on_create('sites', function(ctx)\n    local x = ctx.spec.\n    ctx.patch.staus.x = known\nend)\nhelpr()";
    let expected =
        vec!["there is no ctx.patch.staus".to_owned(), "there is no function `helpr`".into()];
    assert_eq!(findings("x.lua", lua), (expected.clone(), 1));
    let open = "kopf.on_create('sites', function(ctx)\n    local x = \"open\n    ctx.patch.staus.x = 1\nend)\nhelpr()";
    assert_eq!(findings("x.lua", open).0, expected);
    // A name that may be declared in an unparsed line is not reported.
    assert_eq!(findings("x.lua", "local 1 lost = 2\nprint(lost)"), (Vec::new(), 1));
    let rhai = "kopf::on_create(\"sites\", |ctx| {\n    let x = ctx.spec.\n    ctx.patch.staus.x = 1;\n});\nhelpr();";
    assert_eq!(findings("x.rhai", rhai).0, expected);
    for text in
        ["", "(", "\"", "--[[", "x = [[", "`{", "end", "local", "function", "kopf.on_create("]
    {
        findings("x.lua", text);
    }
    for text in
        ["", "(", "\"", "/*", "let x = `${", "}", "let", "fn", "kopf::on_create(", "#{", "|"]
    {
        findings("x.rhai", text);
    }
}

#[test]
fn tests_are_listed_with_their_positions() {
    let lua = "kopf.test('first', function(ctx) end)\n\nkopf.test(\"second\", { timeout = 3 }, function(ctx) end)\nx.test('no')";
    let tests = respond(&source("x_test.lua", lua), &knowledge(), EditorRequest::Tests).tests;
    assert_eq!(tests, [(0, "first".to_owned()), (39, "second".to_owned())]);
    let rhai = "kopf::test(\"first\", |ctx| {});";
    let tests = respond(&source("x_test.rhai", rhai), &knowledge(), EditorRequest::Tests).tests;
    assert_eq!(tests, [(0, "first".to_owned())]);
}

#[test]
fn large_sources_are_not_checked() {
    let unchecked = |text: &str| {
        respond(&source("x.lua", text), &knowledge(), EditorRequest::Findings).unchecked
    };
    let large = "x".repeat((1 << 20) + 1);
    assert_eq!(unchecked(&large).as_deref(), Some("not checked: the file is larger than 1 MiB"));
    let deep = "(".repeat(10_000);
    assert_eq!(unchecked(&deep).as_deref(), Some("not checked: the code is nested too deeply"));
}
