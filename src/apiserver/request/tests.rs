//! Bodies with the responses of Kubernetes. Errors of decoders have messages of this server.

use serde_json::{Value, json};

use super::{
    body::{self, Expected},
    json,
    options::{Write, WriteOptions},
    query::Query,
};
use crate::{
    metadata::names,
    native::{self, OBJECT_META},
    refusal::Refusal,
};

#[derive(Clone, Copy, PartialEq)]
enum Of {
    ConfigMap,
    Widget,
}
use Of::{ConfigMap as CONFIG_MAP, Widget as WIDGET};

fn decode(of: Of, content_type: &str, body: &[u8]) -> Result<Value, Refusal> {
    let (group, kind) = match of {
        Of::ConfigMap => ("", "ConfigMap"),
        Of::Widget => ("patch.example.com", "Widget"),
    };
    let known =
        |group: &str, version: &str, kind: &str| (group, version, kind) == ("", "v1", "Pod");
    let native = of == Of::ConfigMap;
    let mut value = body::decode(
        content_type,
        body,
        Expected {
            group,
            version: "v1",
            kind,
            native,
            definition: "io.k8s.api.core.v1.ConfigMap",
            known: &known,
        },
        &mut Vec::new(),
    )?;
    let wrong = |why: String| Refusal::undecodable(kind, "v1", &why);
    let definition = if native { "io.k8s.api.core.v1.ConfigMap" } else { "" };
    native::decode_as(definition, &mut value.clone(), "").map_err(wrong)?;
    if let Some(meta) = value.get_mut("metadata").filter(|it| !it.is_null()) {
        native::decode_as(OBJECT_META, &mut meta.clone(), "metadata").map_err(wrong)?;
    }
    Ok(value)
}

#[test]
fn bodies_are_decoded_as_by_the_real_server() {
    let mut wrong = Vec::new();
    for (of, text, code, message) in BODIES {
        let got = decode(*of, "application/json", text.as_bytes());
        let got = got.map_or_else(|it| (it.code, it.message), |_| (201, String::new()));
        if got.0 != *code || !got.1.starts_with(message) {
            wrong.push(format!(
                "{text:?}\n  expected {code} {message}\n  got      {} {}",
                got.0, got.1
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), BODIES.len(), wrong.join("\n"));
}

#[test]
fn types_of_bodies_are_lenient() {
    let good = [
        "",
        "application/json",
        "application/json; charset=utf-8",
        "application/json;",
        "APPLICATION/JSON",
        "application/yaml",
        "application/yaml;x=1",
    ];
    for kind in good {
        assert!(decode(CONFIG_MAP, kind, b"{}").is_ok(), "{kind}");
    }
    let bad = ["text/plain", "application/x", "*/*", "garbage", "text/yaml", "application/*", ";"];
    let text = "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf";
    for kind in bad {
        let refusal = decode(CONFIG_MAP, kind, b"{}").expect_err(kind);
        assert_eq!((refusal.code, refusal.message.as_str()), (415, text), "{kind}");
    }
}

#[test]
fn native_bodies_need_no_kind() {
    let expected = json!({ "apiVersion": "v1", "kind": "ConfigMap" });
    for body in ["{}", "null", "{\"kind\":null}", " {\"apiVersion\":\"v1\"} "] {
        assert_eq!(decode(CONFIG_MAP, "", body.as_bytes()), Ok(expected.clone()), "{body}");
    }
    assert_eq!(decode(CONFIG_MAP, "application/yaml", b""), Ok(expected));
}

#[test]
fn yaml_bodies_are_accepted() {
    let body =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: \"1\"\n  b: |\n    x\n";
    let expected = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "a": "1", "b": "x\n" }
    });
    assert_eq!(decode(CONFIG_MAP, "application/yaml", body.as_bytes()), Ok(expected));
    let refusal = decode(CONFIG_MAP, "application/yaml", b"abc").expect_err("no object");
    let why = "expected an object, got a value of type string";
    assert!(refusal.message.ends_with(why), "{}", refusal.message);
    let refusal = decode(CONFIG_MAP, "application/yaml", b"a: [1").expect_err("cut off");
    let start = "the object provided is unrecognized (must be of type ConfigMap): yaml: line 1: ";
    assert!(refusal.message.starts_with(start), "{}", refusal.message);
    let refusal = decode(CONFIG_MAP, "application/yaml", b"metadata: {labels: {a: 1}}")
        .expect_err("a number");
    assert_eq!(
        refusal.message,
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: metadata.labels.a: expected a string, got 1"
    );
}

#[test]
fn numbers_are_converted_as_in_go() {
    let cases = [
        ("1.0", json!(1)),
        ("-0", json!(0)),
        ("-0.0", json!(0)),
        ("1e3", json!(1000)),
        ("1.5", json!(1.5)),
        ("9223372036854775807", json!(i64::MAX)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("9223372036854775808", json!(9_223_372_036_854_775_808_f64)),
        ("1e22", json!(1e22)),
        ("1e-7", json!(1e-7)),
        ("123456789012345678901234567890", json!(1.234_567_890_123_456_8e29)),
    ];
    for (text, expected) in cases {
        assert_eq!(json::parse(text.as_bytes()), Ok(expected), "{text}");
    }
    assert!(json::parse(b"1e400").expect_err("too large").starts_with("number out of range"));
}

#[test]
fn strings_are_always_unicode() {
    let cases: [(&[u8], &str); 8] = [
        (b"\"\xff\xfe\"", "\u{FFFD}\u{FFFD}"),
        (br#""\ud800x""#, "\u{FFFD}x"),
        (br#""\udc00""#, "\u{FFFD}"),
        (br#""\ud83d\ude00""#, "\u{1F600}"),
        (br#""\ud83d\u0041""#, "\u{FFFD}A"),
        (br#""\u0000""#, "\0"),
        (br#""\\ud800""#, "\\ud800"),
        (br#""a\"\u00e9""#, "a\"\u{e9}"),
    ];
    for (text, expected) in cases {
        assert_eq!(json::parse(text), Ok(json!(expected)), "{}", String::from_utf8_lossy(text));
    }
}

#[test]
fn the_last_of_equal_keys_wins() {
    assert_eq!(
        json::parse(br#"{"a":1,"b":2,"a":{"c":1,"c":2}}"#),
        Ok(json!({ "a": { "c": 2 }, "b": 2 }))
    );
}

#[test]
fn deep_bodies_are_refused_and_wide_ones_are_not() {
    let nested = |depth: usize| format!("{{\"spec\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    assert!(decode(CONFIG_MAP, "", nested(json::DEPTH_MAX - 1).as_bytes()).is_ok());
    for depth in [json::DEPTH_MAX, 10_000, 1_000_000] {
        let refusal = decode(CONFIG_MAP, "", nested(depth).as_bytes()).expect_err("too deep");
        assert_eq!(refusal.code, 400, "{depth}");
        assert!(refusal.message.contains("recursion limit"), "{}", refusal.message);
    }
    let keys: Vec<String> = (0..200_000).map(|it| format!("\"k{it}\":{it}")).collect();
    let wide = decode(CONFIG_MAP, "", format!("{{{}}}", keys.join(",")).as_bytes()).expect("wide");
    assert_eq!(wide.as_object().map(serde_json::Map::len), Some(200_002));
}

#[test]
fn objects_must_match_the_url() {
    let cases = [
        (
            json!({}),
            "the name of the object (c based on URL) was undeterminable: name must be provided",
        ),
        (
            json!({ "name": "d" }),
            "the name of the object (d) does not match the name on the URL (c)",
        ),
        (
            json!({ "name": "c", "namespace": "zz" }),
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (json!({ "name": "c" }), ""),
        (json!({ "name": "c", "namespace": "ns" }), ""),
    ];
    for (metadata, expected) in cases {
        let checked = body::check_place(&json!({ "metadata": metadata }), "c", "ns");
        assert_eq!(checked.map_or_else(|it| it.message, |()| String::new()), expected);
    }
}

#[test]
fn a_patched_object_is_still_of_its_kind() {
    let known = |_: &str, _: &str, _: &str| false;
    let native = Expected {
        group: "",
        version: "v1",
        kind: "ConfigMap",
        native: true,
        definition: "",
        known: &known,
    };
    let custom = Expected {
        group: "patch.example.com",
        version: "v1",
        kind: "Widget",
        native: false,
        definition: "",
        known: &known,
    };
    let of = "patch.example.com/v1";
    let cases = [
        (native, json!({ "apiVersion": "v1", "metadata": { "name": "c" } }), 200, ""),
        (
            custom,
            json!({ "apiVersion": of, "kind": "Pod", "metadata": { "name": "w" } }),
            422,
            "Pod.patch.example.com \"w\" is invalid: kind: Invalid value: \"Pod\": must be Widget",
        ),
        (
            custom,
            json!({ "apiVersion": "v7", "kind": "Widget", "metadata": { "name": "w" } }),
            422,
            "Widget \"w\" is invalid: apiVersion: Invalid value: \"v7\": must be patch.example.com/v1",
        ),
        (
            custom,
            json!({ "kind": "Widget" }),
            500,
            "Internal error occurred: Object 'apiVersion' is missing in 'object has no apiVersion field'",
        ),
        (
            custom,
            json!([1]),
            422,
            "the patched object is invalid: expected an object, got a value of type array",
        ),
    ];
    for (expected, patched, code, message) in cases {
        let got = body::check_patched(&patched, expected);
        let got = got.map_or_else(|it| (it.code, it.message), |()| (200, String::new()));
        assert_eq!(got, (code, message.to_owned()));
    }
}

#[test]
fn the_rules_for_names_have_the_messages_of_the_real_server() {
    let rule = |faults: Vec<String>| faults.last().cloned().unwrap_or_default();
    assert_eq!(
        rule(names::qualified_name("-")),
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
    );
    assert_eq!(
        rule(names::qualified_name("a/b/c")),
        "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
    );
    assert_eq!(
        rule(names::dns_subdomain("-")),
        r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    );
    assert_eq!(
        rule(names::dns_label("-")),
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
    );
    assert_eq!(
        rule(names::label_value("-")),
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    );
    let rule = rule(names::dns_1035_label("-"));
    assert_eq!(
        rule,
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
    );
}

#[test]
fn parameters_of_writes_are_checked() {
    let cases = [
        (
            "dryRun=x",
            Write::Patch,
            "PatchOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"x\"]: supported values: \"All\"",
        ),
        (
            "dryRun=All&dryRun=x",
            Write::Create,
            "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"All\",\"x\"]: supported values: \"All\"",
        ),
        (
            "dryRun=",
            Write::Delete,
            "DeleteOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"\"]: supported values: \"All\"",
        ),
        ("dryRun=All&dryRun=All&fieldManager=a", Write::Update, ""),
        (
            "force=x",
            Write::Patch,
            "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch",
        ),
        ("force=true", Write::Create, ""),
        (
            "fieldManager=%01",
            Write::Patch,
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Invalid value: \"\\x01\": invalid character U+0001 (at position 0)",
        ),
        ("fieldManager=%01", Write::Delete, ""),
        (
            "",
            Write::Apply,
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
        ),
        ("fieldManager=x&force=true", Write::Apply, ""),
    ];
    for (query, write, expected) in cases {
        let parsed = WriteOptions::parse(&Query::parse(query), write);
        assert_eq!(parsed.map_or_else(|it| it.message, |_| String::new()), expected, "{query}");
    }
    let parsed =
        WriteOptions::parse(&Query::parse("fieldManager=x&force&dryRun=All"), Write::Apply);
    assert_eq!(parsed, Ok(WriteOptions { dry_run: true, manager: Some("x".into()), force: true }));
}

#[test]
fn numbers_in_queries_are_numbers() {
    let query =
        Query::parse("limit=x&empty=&half=1.5&large=99999999999999999999&minus=-5&plus=%2B7&no");
    let cases = [
        ("limit", Err("strconv.ParseInt: parsing \"x\": invalid syntax")),
        ("empty", Err("strconv.ParseInt: parsing \"\": invalid syntax")),
        ("half", Err("strconv.ParseInt: parsing \"1.5\": invalid syntax")),
        ("large", Err("strconv.ParseInt: parsing \"99999999999999999999\": value out of range")),
        ("minus", Ok(Some(-5))),
        ("plus", Ok(Some(7))),
        ("missing", Ok(None)),
    ];
    for (name, expected) in cases {
        assert_eq!(
            query.integer(name).map_err(|it| it.message),
            expected.map_err(String::from),
            "{name}"
        );
    }
}

#[rustfmt::skip]
const BODIES: &[(Of, &str, u16, &str)] = &[
    (CONFIG_MAP, "", 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, "{", 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, "x", 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, "[]", 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, "1", 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, r#""s""#, 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, "null", 201, ""),
    (CONFIG_MAP, "{}", 201, ""),
    (CONFIG_MAP, r#"{"kind":1}"#, 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, r#"{"apiVersion":[]}"#, 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, r#"{"apiVersion":"v1"}"#, 201, ""),
    (CONFIG_MAP, r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}"#, 400, r#"Pod in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"apiVersion":"v2","kind":"ConfigMap"}"#, 400, r#"ConfigMap in version "v2" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"apiVersion":"a/b/c","kind":"ConfigMap"}"#, 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, r#"{"apiVersion":"x.y/v1","kind":"Z"}"#, 400, r#"Z in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"a":1,}"#, 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, r#"{"a" 1}"#, 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, "{,}", 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, "[1 2]", 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, r#"{"a":1 "b":2}"#, 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, r#"{"a":tru}"#, 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, r#"{"a":nul"#, 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, "{\"a\":\"\n\"}", 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, r#"{"a":"\x"}"#, 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, r#"{"a":"\u12x4"}"#, 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, r#"{"a":01}"#, 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, r#"{"a":-}"#, 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, r#"{"a":1.}"#, 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, r#"{"a":1e}"#, 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, "{} x", 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, "﻿{}", 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, "{'a'}", 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, r#"{"a":"b""#, 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, r#"{"a""#, 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, "[1,]", 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, "[}", 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, "{\"a\":\u{1}}", 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, "\u{7f}", 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, r#"""#, 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, "-", 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, "1e+", 400, "the object provided is unrecognized (must be of type ConfigMap):"),
    (CONFIG_MAP, r#"{"metadata":[]}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":1}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":"x"}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"name":1}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"name":"m","annotations":{"a":1}}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"name":"m","finalizers":[1]}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"name":"m","finalizers":"x"}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"name":"m","ownerReferences":[1]}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"x","uid":"u","foo":1,"controller":"x"}]}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"name":"m","managedFields":1}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"name":"m","managedFields":[1]}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"name":"m","managedFields":[{"manager":"a","time":"x","fieldsV1":{}}]}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"name":"m","uid":1}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"name":"m","creationTimestamp":"x"}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"name":"m","creationTimestamp":1}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"creationTimestamp":"2020-13-01T00:00:00Z"}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"creationTimestamp":"2020-02-30T00:00:00Z"}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"creationTimestamp":"2020-01-01T00:00:00Zx"}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"creationTimestamp":"2020-01-01 00:00:00Z"}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"creationTimestamp":"2020-01-01T00:00:00"}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"creationTimestamp":"2020-01-01T00:00:00.123+02:00"}}"#, 201, ""),
    (CONFIG_MAP, r#"{"metadata":{"name":"m","generation":"x"}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"name":"m","generation":1.5}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"name":"m","generation":99999999999999999999}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"name":"m","generation":9223372036854775808}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"name":"m","labels":{"a":true}}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"name":"m","labels":{"a":{}}}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"name":"m","labels":1}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"labels":{"a":1,"b":2},"name":"c","uid":"x"}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"labels":{"a":1},"ownerReferences":[{"name":"x"}],"name":"c"}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"labels":{"a":1},"annotations":{"q":"r"},"name":"c"}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"labels":{"a":1},"creationTimestamp":null,"name":"c"}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"labels":{"a":1},"zzz":{"y":1},"name":"c"}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"labels":{"a":1},"zzz":5,"name":"c"}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"labels":{"a":123},"name":"c"}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"labels":{"a":[1,2]},"name":"c"}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"generation":true,"name":"c"}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":"abc","data":{"a":"b"}}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"generation":5,"name":1},"kind":"ConfigMap"}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (CONFIG_MAP, r#"{"metadata":{"name":1},"zzz":2}"#, 400, r#"ConfigMap in version "v1" cannot be handled as a ConfigMap:"#),
    (WIDGET, "", 400, "the object provided is unrecognized (must be of type Widget):"),
    (WIDGET, "{", 400, "the object provided is unrecognized (must be of type Widget):"),
    (WIDGET, "null", 400, "the object provided is unrecognized (must be of type Widget): the field kind is missing"),
    (WIDGET, "{}", 400, "the object provided is unrecognized (must be of type Widget): the field kind is missing"),
    (WIDGET, r#"{"a":1}"#, 400, "the object provided is unrecognized (must be of type Widget): the field kind is missing"),
    (WIDGET, "[]", 400, "the object provided is unrecognized (must be of type Widget):"),
    (WIDGET, r#"{"kind":1}"#, 400, "the object provided is unrecognized (must be of type Widget):"),
    (WIDGET, r#"{"apiVersion":"v1"}"#, 400, "the object provided is unrecognized (must be of type Widget): the field kind is missing"),
    (WIDGET, r#"{"kind":"Widget"}"#, 400, "the API version in the data () does not match the expected API version"),
    (WIDGET, r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}"#, 400, "the API version in the data (v1) does not match the expected API version (patch.example.com/v1)"),
    (WIDGET, r#"{"apiVersion":"a/b/c","kind":"Widget"}"#, 400, "the object provided is unrecognized (must be of type Widget):"),
    (WIDGET, r#"{"apiVersion":"patch.example.com/v1","kind":"Wodget","metadata":{"name":"x"}}"#, 422, r#"Wodget.patch.example.com "x" is invalid: kind: Invalid value: "Wodget": must be Widget"#),
    (WIDGET, r#"{"apiVersion":"patch.example.com/v2","kind":"Widget","metadata":{"name":"x"}}"#, 400, "the API version in the data (patch.example.com/v2) does not match the expected API version (patch.example.com/v1)"),
    (WIDGET, r#"{"apiVersion":"patch.example.com/v1","kind":"Widget","metadata":[]}"#, 400, r#"Widget in version "v1" cannot be handled as a Widget:"#),
    (WIDGET, r#"{"apiVersion":"patch.example.com/v1","kind":"Widget","metadata":{"name":1}}"#, 400, r#"Widget in version "v1" cannot be handled as a Widget:"#),
    (WIDGET, r#"{"apiVersion":"patch.example.com/v1","kind":"Widget","metadata":{"name":"x","labels":{"a":1}}}"#, 400, r#"Widget in version "v1" cannot be handled as a Widget:"#),
    (WIDGET, r#"{"apiVersion":"patch.example.com/v1","kind":"Widget","metadata":{"name":"m","managedFields":[{"time":"x"}]}}"#, 400, r#"Widget in version "v1" cannot be handled as a Widget:"#),
    (WIDGET, r#"{"apiVersion":"patch.example.com/v1","kind":"Widget","metadata":{"name":"m","generation":"x"}}"#, 400, r#"Widget in version "v1" cannot be handled as a Widget:"#),
    (WIDGET, r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":[]}"#, 400, "the API version in the data (v1) does not match the expected API version"),
    (WIDGET, r#"{"apiVersion":"patch.example.com/v1","kind":"Widget","metadata":{"name":"x","uid":"u","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"x","uid":"u","foo":1,"controller":"x"}]}}"#, 400, r#"Widget in version "v1" cannot be handled as a Widget:"#),
];
