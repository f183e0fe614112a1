//! Selectors, compared with the responses of Kubernetes 1.20.2.

use serde_json::json;

use super::{Selector, field_text, fields::Selectable};
use crate::{metadata::names, refusal::Refusal, request::query::Query, resource::ResourceDef};

/// Expands the rules for names, which are in many messages.
fn full(text: &str) -> String {
    let rule = |faults: Vec<String>| faults.last().cloned().unwrap_or_default();
    let name = rule(names::qualified_name("-"));
    text.replace(
        "{NAME}",
        name.trim_start_matches("name part ").replacen("must", "name part must", 1).as_str(),
    )
    .replace("{SUBDOMAIN}", &rule(names::dns_subdomain("-")))
    .replace("{VALUE}", &rule(names::label_value("-")))
    .replace("{QUALIFIED}", &rule(names::qualified_name("a/b/c")))
}

fn by_labels(text: &str) -> Result<Selector, Refusal> {
    Selector::parse_for(&Query::parse(&format!("labelSelector={}", encoded(text))), &widgets())
}

fn by_fields(text: &str, selectable: &Selectable) -> Result<Selector, Refusal> {
    Selector::parse_for(&Query::parse(&format!("fieldSelector={}", encoded(text))), selectable)
}

fn encoded(text: &str) -> String {
    text.bytes().map(|it| format!("%{it:02x}")).collect::<Vec<_>>().concat()
}

fn message(parsed: Result<Selector, Refusal>) -> String {
    parsed.map_or_else(
        |it| {
            assert_eq!((it.code, it.reason.as_ref()), (400, "BadRequest"));
            it.message
        },
        |_| String::new(),
    )
}

#[test]
fn label_selectors_are_parsed_as_by_the_real_server() {
    for (text, expected) in LABEL_SELECTORS {
        assert_eq!(message(by_labels(text)), full(expected), "{text:?}");
    }
}

#[test]
fn field_selectors_are_parsed_as_by_the_real_server() {
    let kinds = [
        selectable("", "configmaps", true, &[]),
        widgets(),
        selectable("", "pods", true, &["spec.nodeName"]),
        selectable("", "nodes", false, &["spec.unschedulable"]),
        selectable("batch", "jobs", true, &["status.successful"]),
    ];
    for (kind, text, expected) in FIELD_SELECTORS {
        assert_eq!(message(by_fields(text, &kinds[*kind])), *expected, "{kind} {text:?}");
    }
}

const CONFIG_MAPS: usize = 0;
const WIDGETS: usize = 1;
const PODS: usize = 2;
const NODES: usize = 3;
const JOBS: usize = 4;

fn widgets() -> Selectable {
    selectable("patch.example.com", "widgets", true, &[])
}

fn selectable(group: &str, plural: &str, namespaced: bool, own: &[&str]) -> Selectable {
    let native = !group.contains('.');
    let def = ResourceDef { namespaced, native, ..ResourceDef::new(group, "v1", plural, "Kind") };
    Selectable::new(&def, own.iter().copied())
}

#[test]
fn label_requirements_match() {
    let labels = [("a", "b"), ("n", "7"), ("e", ""), ("x/y", "z")];
    let labels = labels.map(|(key, value)| (key.into(), value.into()));
    let cases = [
        ("", true),
        ("a", true),
        ("!a", false),
        ("z", false),
        ("!z", true),
        ("a=b", true),
        ("a=c", false),
        ("a==b", true),
        ("a!=b", false),
        ("a!=c", true),
        ("z!=c", true),
        ("z=", false),
        ("e=", true),
        ("e", true),
        ("a in (b,c)", true),
        ("a in (c)", false),
        ("z in (c)", false),
        ("a notin (c)", true),
        ("a notin (b)", false),
        ("z notin (b)", true),
        ("n>6", true),
        ("n>7", false),
        ("n<8", true),
        ("n<7", false),
        ("a>1", false),
        ("z<1", false),
        ("x/y=z", true),
        ("a=b,n>6", true),
        ("a=b,n>7", false),
        ("e in ()", true),
        ("z notin ()", true),
        ("e!=", false),
        ("a in (,b)", true),
    ];
    for (text, expected) in cases {
        let selector = by_labels(text).expect(text);
        assert_eq!(selector.matches_labels(&labels), expected, "{text}");
    }
}

#[test]
fn field_requirements_match() {
    let object = json!({
        "metadata": { "name": "a,b", "namespace": "ns" },
        "spec": { "nodeName": "n", "unschedulable": true },
    });
    let own = ["spec.nodeName", "spec.unschedulable", "status.phase"];
    let selectable = selectable("", "pods", true, &own);
    let cases = [
        ("", true),
        ("metadata.name=a\\,b", true),
        ("metadata.name!=a\\,b", false),
        ("metadata.name=c", false),
        ("metadata.namespace=ns,spec.nodeName=n", true),
        ("metadata.namespace=ns,spec.nodeName=m", false),
        ("status.phase=", true),
        ("status.phase!=Running", true),
        ("spec.unschedulable=true", true),
        ("=", true),
    ];
    for (text, expected) in cases {
        let selector = by_fields(text, &selectable).expect(text);
        let field =
            |path: &str| field_text(object.pointer(&format!("/{}", path.replace('.', "/"))));
        assert_eq!(selector.matches_fields(field), expected, "{text}");
    }
}

#[test]
fn selectors_report_their_only_name() {
    let selector = by_fields("metadata.name=x,metadata.namespace!=y", &widgets()).expect("good");
    assert_eq!(selector.name(), Some("x"));
    assert!(by_labels("").expect("good").is_empty() && !selector.is_empty());
}

#[test]
fn labels_are_refused_before_fields() {
    let query = Query::parse("fieldSelector=a%20b&labelSelector=a%20b");
    let refusal = Selector::parse_for(&query, &widgets()).expect_err("both are wrong");
    assert_eq!(
        refusal.message,
        "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"
    );
}

#[test]
fn a_long_selector_is_accepted() {
    let text = "a in (b),".repeat(50_000);
    assert!(by_labels(text.trim_end_matches(',')).is_ok());
    assert!(by_labels(&"(".repeat(100_000)).is_err());
    assert!(by_fields(&"metadata.name=a,".repeat(50_000), &widgets()).is_ok());
}

#[rustfmt::skip]
const LABEL_SELECTORS: &[(&str, &str)] = &[
    ("a", ""),
    ("!a", ""),
    ("a=b", ""),
    ("a==b", ""),
    ("a!=b", ""),
    ("a in (b)", ""),
    ("a notin ()", ""),
    ("a in (,)", ""),
    ("a in (b,)", ""),
    ("a>1", ""),
    ("a<1", ""),
    ("a>b", "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer"),
    ("a>1,b<2", ""),
    ("a>", "unable to parse requirement: values[0]: Invalid value: \"\": for 'Gt', 'Lt' operators, the value must be an integer"),
    ("a=", ""),
    ("a= b", ""),
    (" a = b ", ""),
    (",", "found ',', expected: !, identifier, or 'end of string'"),
    ("a,", "found '', expected: identifier after ','"),
    (",a", "found ',', expected: !, identifier, or 'end of string'"),
    ("a=b c", "found 'c', expected: ',' or 'end of string'"),
    ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
    ("a in", "unable to parse requirement: found '' expected: '('"),
    ("a in b", "unable to parse requirement: found 'b' expected: '('"),
    ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
    ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
    ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
    ("a in (b=c)", "unable to parse requirement: found '=', expected: ',' or ')'"),
    ("a in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
    ("(a)", "found '(', expected: !, identifier, or 'end of string'"),
    ("a=(b)", "unable to parse requirement: found '(', expected: identifier"),
    ("!a=b", "found '=', expected: ',' or 'end of string'"),
    ("!", "unable to parse requirement: found '', expected: identifier"),
    ("!!a", "unable to parse requirement: found '!', expected: identifier"),
    ("a!b", "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt"),
    ("a=!b", "unable to parse requirement: found '!', expected: identifier"),
    ("a=>b", "unable to parse requirement: found '>', expected: identifier"),
    ("=b", "found '=', expected: !, identifier, or 'end of string'"),
    ("==", "found '==', expected: !, identifier, or 'end of string'"),
    ("a===b", "unable to parse requirement: found '=', expected: identifier"),
    ("a=b=c", "found '=', expected: ',' or 'end of string'"),
    ("in", ""),
    ("in in (in)", ""),
    ("notin notin (notin)", ""),
    ("a b=c", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
    ("A.b/c", r#"unable to parse requirement: <nil>: Invalid value: "A.b/c": prefix part {SUBDOMAIN}"#),
    ("a/b/c=d", r#"unable to parse requirement: <nil>: Invalid value: "a/b/c": {QUALIFIED}"#),
    ("/a", r#"unable to parse requirement: <nil>: Invalid value: "/a": prefix part must be non-empty"#),
    ("a/", r#"unable to parse requirement: <nil>: Invalid value: "a/": name part must be non-empty; {NAME}"#),
    ("a_b/c", r#"unable to parse requirement: <nil>: Invalid value: "a_b/c": prefix part {SUBDOMAIN}"#),
    ("-a", r#"unable to parse requirement: <nil>: Invalid value: "-a": {NAME}"#),
    ("a-", r#"unable to parse requirement: <nil>: Invalid value: "a-": {NAME}"#),
    ("a=-b", r#"unable to parse requirement: values[0][a]: Invalid value: "-b": {VALUE}"#),
    ("a=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", r#"unable to parse requirement: values[0][a]: Invalid value: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": must be no more than 63 bytes"#),
    ("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", r#"unable to parse requirement: <nil>: Invalid value: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": name part must be no more than 63 bytes"#),
    ("é=1", r#"unable to parse requirement: <nil>: Invalid value: "é": {NAME}"#),
    ("a=é", r#"unable to parse requirement: values[0][a]: Invalid value: "é": {VALUE}"#),
    ("a=b\tc", "found 'c', expected: ',' or 'end of string'"),
    ("a\n=b", ""),
    ("a\0b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
    ("a=b,c in (d),!e,f", ""),
    (r"a\=b", r#"unable to parse requirement: <nil>: Invalid value: "a\\": {NAME}"#),
    (r#"a="b""#, r#"unable to parse requirement: values[0][a]: Invalid value: "\"b\"": {VALUE}"#),
    ("*", r#"unable to parse requirement: <nil>: Invalid value: "*": {NAME}"#),
    ("a in (b)c", "found 'c', expected: ',' or 'end of string'"),
    ("a in(b)", ""),
    ("a!=", ""),
    ("a>1.5", "unable to parse requirement: values[0]: Invalid value: \"1.5\": for 'Gt', 'Lt' operators, the value must be an integer"),
    ("a>-1", r#"unable to parse requirement: values[0][a]: Invalid value: "-1": {VALUE}"#),
    ("a>9999999999999999999", "unable to parse requirement: values[0]: Invalid value: \"9999999999999999999\": for 'Gt', 'Lt' operators, the value must be an integer"),
    ("a=b)", "found ')', expected: ',' or 'end of string'"),
    ("a in (b))", "found ')', expected: ',' or 'end of string'"),
    ("x=@,y=#", r#"unable to parse requirement: values[0][x]: Invalid value: "@": {VALUE}"#),
    ("x in (@,#)", r##"unable to parse requirement: values[0][x]: Invalid value: "#": {VALUE}"##),
    ("a = = b", "unable to parse requirement: found '=', expected: identifier"),
    ("a>=1", "unable to parse requirement: found '=', expected: identifier"),
    ("a<>1", "unable to parse requirement: found '>', expected: identifier"),
    ("a in (a,,b)", ""),
    ("!in", ""),
    ("a notin", "unable to parse requirement: found '' expected: '('"),
    ("a !", "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt"),
    ("x@y z", r#"unable to parse requirement: <nil>: Invalid value: "x@y": {NAME}"#),
];

#[rustfmt::skip]
const FIELD_SELECTORS: &[(usize, &str, &str)] = &[
    (CONFIG_MAPS, "metadata.name=c", ""),
    (CONFIG_MAPS, "metadata.namespace=x", ""),
    (CONFIG_MAPS, "foo=x", r#""foo" is not a known field selector: only "metadata.name", "metadata.namespace""#),
    (CONFIG_MAPS, "spec.nodeName=x", r#""spec.nodeName" is not a known field selector: only "metadata.name", "metadata.namespace""#),
    (WIDGETS, "metadata.name=c", ""),
    (WIDGETS, "metadata.namespace=x", ""),
    (WIDGETS, "foo=x", "field label not supported: foo"),
    (WIDGETS, "spec.nodeName=x", "field label not supported: spec.nodeName"),
    (WIDGETS, "a", "invalid selector: 'a'; can't understand 'a'"),
    (WIDGETS, "=", ""),
    (WIDGETS, "=x", "field label not supported: "),
    (WIDGETS, "metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
    (WIDGETS, "metadata.name=a=b", "invalid field selector: unescaped character in value: 61"),
    (WIDGETS, r"metadata.name=a\=b", ""),
    (WIDGETS, r"metadata.name=a\,b", ""),
    (WIDGETS, r"metadata.name=a\x", r"invalid field selector: invalid escape sequence: \x"),
    (WIDGETS, r"metadata.name=a\", r"invalid field selector: invalid escape sequence: \"),
    (WIDGETS, ",", ""),
    (WIDGETS, " metadata.name=c", "field label not supported:  metadata.name"),
    (WIDGETS, "metadata.name =c", "field label not supported: metadata.name "),
    (WIDGETS, "metadata.name=c,foo=bar", "field label not supported: foo"),
    (WIDGETS, "z=1,b=2", "field label not supported: b"),
    (WIDGETS, "metadata.name>c", "invalid selector: 'metadata.name>c'; can't understand 'metadata.name>c'"),
    (WIDGETS, "metadata.name=a!=b", "invalid field selector: unescaped character in value: 61"),
    (WIDGETS, "!metadata.name", "invalid selector: '!metadata.name'; can't understand '!metadata.name'"),
    (WIDGETS, "!metadata.name=c", "field label not supported: !metadata.name"),
    (WIDGETS, "metadata.name in (c)", "invalid selector: 'metadata.name in (c)'; can't understand 'metadata.name in (c)'"),
    (WIDGETS, "metadata.name!==c", "invalid field selector: unescaped character in value: 61"),
    (WIDGETS, r"a\,b=c", r"field label not supported: a\,b"),
    (PODS, "metadata.name=c", ""),
    (PODS, "metadata.namespace=x", ""),
    (PODS, "foo=x", "field label not supported: foo"),
    (PODS, "spec.nodeName=x", ""),
    (NODES, "metadata.name=c", ""),
    (NODES, "metadata.namespace=x", "field label not supported: metadata.namespace"),
    (NODES, "foo=x", "field label not supported: foo"),
    (NODES, "spec.nodeName=x", "field label not supported: spec.nodeName"),
    (JOBS, "metadata.name=c", ""),
    (JOBS, "metadata.namespace=x", ""),
    (JOBS, "foo=x", r#"field label "foo" not supported for batchv1.Job"#),
    (JOBS, "spec.nodeName=x", r#"field label "spec.nodeName" not supported for batchv1.Job"#),
];
