//! Patches, compared with the responses of Kubernetes 1.20.2.

use serde_json::{Value, json};

use super::{ParsedPatch, json::PatchOperation};
use crate::{
    refusal::Refusal,
    request::json::{depth, sorted_json},
    schema::Schema,
};

/// A body, the status of the response, and the spec or the error in it.
type PatchCase = (&'static str, u16, &'static str);

fn widget() -> Value {
    json!({
        "apiVersion": "patch.example.com/v1",
        "kind": "Widget",
        "metadata": { "name": "g", "namespace": "ns" },
        "spec": {
            "a": 1, "t": "x", "l": [1, 2, 3], "m": { "x": { "y": "z" } }, "e": {}, "o": [{ "k": 1 }, { "k": 2 }]
        },
    })
}

fn deployment() -> Value {
    json!({ "kind": "PodSpec",
        "containers": [
            {
                "name": "x", "image": "i", "args": ["a", "b"], "ports": [{ "containerPort": 80 }],
                "env": [{ "name": "A", "value": "1" }, { "name": "B", "value": "2" }],
            },
            { "name": "y", "image": "j" },
        ],
        "volumes": [{ "name": "v", "emptyDir": {} }],
    })
}

/// Returns the part of the schema of a Pod that the patches below use.
fn pod_spec() -> Schema {
    let list = |strategy: &str, key: &str, items: &Value| {
        json!({
            "type": "array", "items": items,
            "x-kubernetes-patch-strategy": strategy, "x-kubernetes-patch-merge-key": key,
        })
    };
    let text = json!({ "type": "string" });
    let env = json!({ "type": "object", "properties": { "name": text, "value": text } });
    let port =
        json!({ "type": "object", "properties": { "containerPort": { "type": "integer" } } });
    let container = json!({ "type": "object", "properties": {
        "name": text, "image": text,
        "args": { "type": "array", "items": text },
        "env": list("merge", "name", &env),
        "ports": list("merge", "containerPort", &port),
    } });
    let any = json!({ "type": "object", "additionalProperties": {} });
    let volume = json!({ "type": "object", "properties": { "name": text, "emptyDir": any, "hostPath": any } });
    let named = json!({ "type": "object", "properties": { "name": text } });
    Schema::parse(&json!({ "type": "object", "properties": {
        "apiVersion": text,
        "kind": text,
        "containers": list("merge", "name", &container),
        "volumes": list("merge,retainKeys", "name", &volume),
        "imagePullSecrets": list("merge", "name", &named),
        "tolerations": { "type": "array", "items": { "type": "object", "properties": { "key": text, "operator": text } } },
    } }))
}

fn config_map() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "h", "namespace": "ns", "finalizers": ["a/b", "c/d"], "labels": { "l": "1" } },
        "data": { "a": "b" },
    })
}

fn config_map_schema() -> Schema {
    let text = json!({ "type": "string" });
    let texts = json!({ "type": "object", "additionalProperties": text });
    Schema::parse(&json!({ "type": "object", "properties": {
        "apiVersion": text,
        "kind": text,
        "metadata": { "type": "object", "properties": {
            "name": text, "namespace": text, "labels": texts,
            "finalizers": { "type": "array", "items": text, "x-kubernetes-patch-strategy": "merge" },
        } },
        "data": texts,
    } }))
}

/// Sorts keys, so that only the order of lists matters.
fn sorted(text: &str) -> String {
    sorted_json(&serde_json::from_str(text).expect("JSON"))
}

fn answer(patched: Result<Value, Refusal>, show: impl Fn(&Value) -> Value) -> (u16, String) {
    match patched {
        Ok(object) => (200, sorted_json(&show(&object))),
        Err(refusal) => (refusal.code, refusal.message),
    }
}

fn check(rows: &[PatchCase], run: impl Fn(&str) -> (u16, String)) {
    let mut wrong = Vec::new();
    for (body, code, text) in rows {
        let expected = (*code, if *code == 200 { sorted(text) } else { (*text).to_owned() });
        let got = run(body);
        // Errors of decoders are worded differently.
        let is_undecodable = got.0 == 400 && expected.0 == 400;
        if !is_undecodable && got != expected {
            wrong.push(format!("{body}\n  expected {expected:?}\n  got      {got:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

fn run(
    content_type: &str,
    body: &str,
    object: &Value,
    schema: Option<&Schema>,
) -> Result<Value, Refusal> {
    ParsedPatch::parse(content_type, body.as_bytes(), schema.is_some())?.apply(object, schema)
}

#[test]
fn json_patches_work_as_on_the_real_server() {
    check(JSON_PATCHES, |body| {
        answer(run(super::JSON, body, &widget(), None), |it| {
            it.get("spec").cloned().unwrap_or_default()
        })
    });
}

#[test]
fn merge_patches_work_as_on_the_real_server() {
    check(MERGE_PATCHES, |body| {
        answer(run(super::MERGE, body, &widget(), None), |it| {
            it.get("spec").cloned().unwrap_or_default()
        })
    });
}

#[test]
fn strategic_patches_merge_lists_by_their_keys() {
    let schema = pod_spec();
    check(POD_PATCHES, |body| {
        let (code, text) =
            answer(run(super::STRATEGIC, body, &deployment(), Some(&schema)), |it| {
                let mut it = it.clone();
                crate::object::put(&mut it, "kind", None);
                it
            });
        // The real server got the whole Deployment.
        let inside = "Invalid value: \"map[";
        match text.split_once(inside) {
            Some((start, rest)) => {
                let rest = rest.replacen("]\":", "]]]]\":", 1);
                (code, format!("{start}{inside}spec:map[template:map[spec:map[{rest}"))
            }
            None => (code, text),
        }
    });
}

#[test]
fn strategic_patches_merge_lists_of_strings() {
    let schema = config_map_schema();
    check(CONFIG_MAP_PATCHES, |body| {
        answer(run(super::STRATEGIC, body, &config_map(), Some(&schema)), |it| {
            let parts = [
                ("finalizers", "/metadata/finalizers"),
                ("labels", "/metadata/labels"),
                ("data", "/data"),
            ];
            let parts = parts
                .map(|(name, pointer)| (name, it.pointer(pointer).cloned().unwrap_or_default()));
            let full = |value: &Value| {
                !matches!(value, Value::Null) && *value != json!({}) && *value != json!([])
            };
            parts
                .into_iter()
                .filter(|(_, it)| full(it))
                .map(|(name, it)| (name.to_owned(), it))
                .collect()
        })
    });
}

#[test]
fn types_of_patches_are_exact() {
    let native = "415: Unsupported Media Type";
    let custom = "the body of the request was in an unknown format - accepted media types include: \
                  application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
    let unknown = [
        "",
        "application/json",
        "APPLICATION/MERGE-PATCH+JSON",
        "application/x",
        ";application/merge-patch+json",
    ];
    for kind in unknown {
        for (is_native, text) in [(true, native), (false, custom)] {
            let refusal = ParsedPatch::parse(kind, b"{}", is_native).expect_err(kind);
            assert_eq!((refusal.code, refusal.message.as_str()), (415, text), "{kind}");
        }
    }
    let refusal =
        ParsedPatch::parse(super::STRATEGIC, b"{}", false).expect_err("only native kinds");
    assert_eq!(refusal.message, custom);
    for kind in ["application/merge-patch+json; charset=utf-8", "application/merge-patch+json;"] {
        assert_eq!(
            ParsedPatch::parse(kind, b"{}", false),
            Ok(ParsedPatch::Merge(json!({}))),
            "{kind}"
        );
    }
}

#[test]
fn applied_configurations_are_yaml() {
    let cases: [(&str, Result<Value, &str>); 7] = [
        ("", Ok(json!({}))),
        ("null", Ok(json!({}))),
        ("a: 1\nb: [x, {c: null}]", Ok(json!({ "a": 1, "b": ["x", { "c": null }] }))),
        ("{\"a\": \"1\"}", Ok(json!({ "a": "1" }))),
        ("a: 1\n---\nb: 2", Ok(json!({ "a": 1 }))),
        (
            "[]",
            Err(
                "error decoding YAML: error unmarshaling JSON: while decoding JSON: expected an object, got a value of type array",
            ),
        ),
        (
            "1",
            Err(
                "error decoding YAML: error unmarshaling JSON: while decoding JSON: expected an object, got a value of type number",
            ),
        ),
    ];
    for (body, expected) in cases {
        let got = ParsedPatch::parse(super::APPLY, body.as_bytes(), true);
        let got = got.map_err(|it| it.message);
        assert_eq!(got, expected.map(ParsedPatch::Apply).map_err(String::from), "{body}");
    }
}

#[test]
fn hostile_yaml_is_refused() {
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..9 {
        let one = format!("*a{}", level - 1);
        let line = format!("a{level}: &a{level} [{}]\n", vec![one; 9].join(","));
        bomb.push_str(&line);
    }
    let deep = format!("a: {}{}", "[".repeat(20_000), "]".repeat(20_000));
    let indented: Vec<String> = (0..2_000).map(|it| format!("{}a:\n", " ".repeat(it))).collect();
    let indented = indented.concat();
    let dashes = format!("{}x", "- ".repeat(20_000));
    let cases = [
        (&bomb, "document contains excessive aliasing"),
        (&deep, "exceeded max depth of 10000"),
        (&indented, "exceeded max depth of 10000"),
        (&dashes, "exceeded max depth of 10000"),
    ];
    for (body, text) in cases {
        let refusal = ParsedPatch::parse(super::APPLY, body.as_bytes(), true).expect_err(text);
        let expected = format!("error decoding YAML: error converting YAML to JSON: yaml: {text}");
        assert_eq!((refusal.code, refusal.message), (400, expected));
    }
}

#[test]
fn there_are_limits_for_operations_and_copies() {
    let test = json!({ "op": "test", "path": "/spec/a", "value": 1 });
    let refusal = run(super::JSON, &json!(vec![test.clone(); 10_001]).to_string(), &widget(), None);
    let text = "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001";
    assert_eq!(refusal.map_err(|it| (it.code, it.message)), Err((413, text.into())));
    assert!(run(super::JSON, &json!(vec![test; 10_000]).to_string(), &widget(), None).is_ok());
    let copies = |count: usize| {
        let large = json!({ "op": "add", "path": "/spec/x", "value": "a".repeat(100_000) });
        let copy = |it| json!({ "op": "copy", "from": "/spec/x", "path": format!("/spec/x{it}") });
        Value::Array(std::iter::once(large).chain((0..count).map(copy)).collect()).to_string()
    };
    assert!(run(super::JSON, &copies(31), &widget(), None).is_ok());
    assert_eq!(run(super::JSON, &copies(32), &widget(), None), Err(Refusal::unprocessable()));
}

#[test]
fn no_patch_makes_an_object_too_deep() {
    let step = json!({ "op": "copy", "from": "/spec/m", "path": "/spec/m/x" });
    let doubled = json!(vec![step; 200]).to_string();
    assert_eq!(run(super::JSON, &doubled, &widget(), None), Err(Refusal::unprocessable()));
    let nested = |it: usize| json!({ "op": "add", "path": format!("/spec{}", "/a".repeat(it)), "value": {} });
    let steps: Vec<Value> = (1..2_000).map(nested).collect();
    assert_eq!(
        run(super::JSON, &json!(steps).to_string(), &widget(), None),
        Err(Refusal::unprocessable())
    );
    let object = run(super::JSON, &json!(steps[..100]).to_string(), &widget(), None)
        .expect("shallow enough");
    assert_eq!(depth(&object), 102);
    let deep = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    for kind in [super::MERGE, super::STRATEGIC, super::JSON, super::APPLY] {
        assert!(ParsedPatch::parse(kind, deep.as_bytes(), true).is_err(), "{kind}");
    }
}

#[test]
fn long_lists_are_merged_quickly() {
    let item = |it: usize| json!({ "name": format!("n{it}"), "image": "i" });
    let object =
        json!({ "kind": "PodSpec", "containers": (0..20_000).map(item).collect::<Vec<_>>() });
    let patch = json!({ "containers": (10_000..30_000).rev().map(item).collect::<Vec<_>>() });
    let merged =
        run(super::STRATEGIC, &patch.to_string(), &object, Some(&pod_spec())).expect("a merge");
    assert_eq!(merged["containers"].as_array().map(Vec::len), Some(30_000));
}

#[test]
fn an_empty_json_patch_has_no_steps() {
    assert_eq!(
        ParsedPatch::parse(super::JSON, b"[]", false),
        Ok(ParsedPatch::Json(Vec::<PatchOperation>::new()))
    );
}

#[rustfmt::skip]
const JSON_PATCHES: &[PatchCase] = &[
    ("", 400, "unexpected end of JSON input"),
    ("{", 400, "unexpected end of JSON input"),
    ("null", 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    ("{}", 400, "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
    ("1", 400, "json: cannot unmarshal number into Go value of type jsonpatch.Patch"),
    (r#""x""#, 400, "json: cannot unmarshal string into Go value of type jsonpatch.Patch"),
    ("[1]", 400, "json: cannot unmarshal number into Go value of type jsonpatch.Operation"),
    ("[[]]", 400, "json: cannot unmarshal array into Go value of type jsonpatch.Operation"),
    ("[null]", 422, "the server rejected our request due to an error in our request"),
    ("[{}]", 422, "the server rejected our request due to an error in our request"),
    ("[]", 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    ("[] x", 400, "invalid character 'x' after top-level value"),
    (r#"[{"op":"x","path":"/spec/a"}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":1,"path":"/spec/a"}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"add","path":1,"value":1}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"Add","path":"/spec/q","value":1}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"add","path":"a","value":9}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"add","path":"spec/q","value":9}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"add","path":"/spec/q","value":9}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"q":9,"t":"x"}"#),
    (r#"[{"op":"add","path":"/spec/a","value":9}]"#, 200, r#"{"a":9,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"add","path":"/spec/q/r","value":9}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"add","path":"/spec/a/b","value":9}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"add","path":"/spec/m/x/y","value":9}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":9}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"add","path":"/spec/m/n/y","value":9}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"add","path":"/spec/l/0","value":9}]"#, 200, r#"{"a":1,"e":{},"l":[9,1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"add","path":"/spec/l/3","value":9}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3,9],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"add","path":"/spec/l/4","value":9}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"add","path":"/spec/l/-","value":9}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3,9],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"add","path":"/spec/l/-1","value":9}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3,9],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"add","path":"/spec/l/-4","value":9}]"#, 200, r#"{"a":1,"e":{},"l":[9,1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"add","path":"/spec/l/-5","value":9}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"add","path":"/spec/l/x","value":9}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"add","path":"/spec/l/+1","value":9}]"#, 200, r#"{"a":1,"e":{},"l":[1,9,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"add","path":"/spec/l/01","value":9}]"#, 200, r#"{"a":1,"e":{},"l":[1,9,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"add","path":"/spec/e/a~1b~0c~01","value":9}]"#, 200, r#"{"a":1,"e":{"a/b~c~1":9},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"add","path":"/spec/o/1/k","value":9}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":9}],"t":"x"}"#),
    (r#"[{"op":"add","path":"/spec/o/2/k","value":9}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"add","path":"/spec/","value":9}]"#, 200, r#"{"":9,"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"add","path":"/spec/e//x","value":9}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"replace","path":"/spec/a","value":{"n":null}}]"#, 200, r#"{"a":{"n":null},"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"replace","path":"/spec/q","value":{"n":null}}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"q":{"n":null},"t":"x"}"#),
    (r#"[{"op":"replace","path":"/spec/q/r","value":{"n":null}}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"replace","path":"/spec/l/2","value":{"n":null}}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,{"n":null}],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"replace","path":"/spec/l/3","value":{"n":null}}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"replace","path":"/spec/l/-","value":{"n":null}}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"replace","path":"/spec/m","value":{"n":null}}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"n":null},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"replace","path":"/spec/o/0/k","value":{"n":null}}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":{"n":null}},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"remove","path":""}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"remove","path":"/spec/a"}]"#, 200, r#"{"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"remove","path":"/spec/q"}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"remove","path":"/spec/q/r"}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"remove","path":"/spec/l/0"}]"#, 200, r#"{"a":1,"e":{},"l":[2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"remove","path":"/spec/l/3"}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"remove","path":"/spec/l/-1"}]"#, 200, r#"{"a":1,"e":{},"l":[1,2],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"remove","path":"/spec/l/-3"}]"#, 200, r#"{"a":1,"e":{},"l":[2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"remove","path":"/spec/l/-4"}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"remove","path":"/spec/l/-"}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"remove","path":"/spec/m/x"}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"test","path":"/spec/a","value":1}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"test","path":"/spec/a","value":2}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"test","path":"/spec/a","value":"1"}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"test","path":"/spec/q","value":null}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"test","path":"/spec/q","value":1}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"test","path":"/spec/q/r","value":null}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"test","path":"/spec/l","value":[1,2,3]}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"test","path":"/spec/l","value":[1,2]}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"test","path":"/spec/m","value":{"x":{"y":"z"}}}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"test","path":"/spec/m","value":{"x":{"y":"z","q":1}}}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"test","path":"/spec/e","value":{}}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"test","path":"/spec/l/1","value":2}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"test","path":"/spec/t","value":"x"}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"test","path":"/spec/a","value":null}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"move","from":"/spec/a","path":"/spec/q"}]"#, 200, r#"{"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"q":1,"t":"x"}"#),
    (r#"[{"op":"copy","from":"/spec/a","path":"/spec/q"}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"q":1,"t":"x"}"#),
    (r#"[{"op":"move","from":"/spec/q","path":"/spec/r"}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"copy","from":"/spec/q","path":"/spec/r"}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"r":null,"t":"x"}"#),
    (r#"[{"op":"move","from":"/spec/m/x","path":"/spec/m"}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"y":"z"},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"copy","from":"/spec/m/x","path":"/spec/m"}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"y":"z"},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"move","from":"/spec/m","path":"/spec/m/x/q"}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"copy","from":"/spec/m","path":"/spec/m/x/q"}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"q":{"x":{"y":"z"}},"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"move","from":"/spec/l/0","path":"/spec/l/-"}]"#, 200, r#"{"a":1,"e":{},"l":[2,3,1],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"copy","from":"/spec/l/0","path":"/spec/l/-"}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3,1],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"move","from":"/spec/l/0","path":"/spec/l/2"}]"#, 200, r#"{"a":1,"e":{},"l":[2,3,1],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"copy","from":"/spec/l/0","path":"/spec/l/2"}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,1,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"move","from":"/spec/l/9","path":"/spec/q"}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"copy","from":"/spec/l/9","path":"/spec/q"}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"move","from":"/spec/a","path":"/spec/a"}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"copy","from":"/spec/a","path":"/spec/a"}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"move","from":"/spec/o/0","path":"/spec/o/1"}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":2},{"k":1}],"t":"x"}"#),
    (r#"[{"op":"copy","from":"/spec/o/0","path":"/spec/o/1"}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":1},{"k":2}],"t":"x"}"#),
    (r#"[{"op":"move","from":"","path":"/spec/q"}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"copy","from":"","path":"/spec/q"}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"move","path":"/spec/q"}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"copy","path":"/spec/q"}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"add","path":"/spec/q"}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"q":null,"t":"x"}"#),
    (r#"[{"op":"add","path":"/spec/q","value":1},{"op":"test","path":"/spec/q","value":2}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"add","path":"/spec/q","value":[]},{"op":"add","path":"/spec/q/0","value":1},{"op":"add","path":"/spec/q/0","value":2}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"q":[2,1],"t":"x"}"#),
    (r#"[{"op":"remove","path":"/spec/l/0"},{"op":"remove","path":"/spec/l/0"},{"op":"remove","path":"/spec/l/0"},{"op":"remove","path":"/spec/l/0"}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"add","path":"/spec/q","value":1.0},{"op":"add","path":"/spec/r","value":1e3},{"op":"add","path":"/spec/s","value":1.5}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"q":1,"r":1000,"s":1.5,"t":"x"}"#),
    (r#"[{"op":"add","value":1}]"#, 422, "the server rejected our request due to an error in our request"),
    (r#"[{"op":"add","path":"/spec/q","value":1,"value":2}]"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"q":2,"t":"x"}"#),
];

#[rustfmt::skip]
const MERGE_PATCHES: &[PatchCase] = &[
    ("", 400, ""),
    ("{", 400, ""),
    ("x", 400, ""),
    ("null", 400, ""),
    ("1", 400, ""),
    (r#""s""#, 400, ""),
    ("true", 400, ""),
    ("{} x", 400, ""),
    ("{}", 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"{"spec":null}"#, 200, "null"),
    (r#"{"spec":{}}"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"{"spec":{"a":null}}"#, 200, r#"{"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"{"spec":{"q":null}}"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"{"spec":{"q":{"r":null,"s":{"t":null}}}}"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"q":{"s":{}},"t":"x"}"#),
    (r#"{"spec":{"q":[null,{"r":null},[null,1]]}}"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"q":[{},[1]],"t":"x"}"#),
    (r#"{"spec":{"m":[null,{"r":null}]}}"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":[null,{"r":null}],"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"{"spec":{"l":[null,{"r":null}]}}"#, 200, r#"{"a":1,"e":{},"l":[{}],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"{"spec":{"a":{"r":null}}}"#, 200, r#"{"a":{},"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"{"spec":{"m":{"x":{"y":null,"w":[{"v":null}]}}}}"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"w":[{}]}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"{"spec":{"m":{"x":null}}}"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"{"spec":{"m":1}}"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":1,"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"{"spec":{"e":{"a":{"b":1}}}}"#, 200, r#"{"a":1,"e":{"a":{"b":1}},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"{"spec":[1,null,{"a":null}]}"#, 200, r#"[1,null,{"a":null}]"#),
    (r#"{"spec":"x"}"#, 200, r#""x""#),
    (r#"{"spec":{"l":{"a":1}}}"#, 200, r#"{"a":1,"e":{},"l":{"a":1},"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"{"spec":{"l":[]}}"#, 200, r#"{"a":1,"e":{},"l":[],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"{"spec":{"a":1.0,"b":1e2}}"#, 200, r#"{"a":1,"b":100,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"{"spec":{"a":1},"spec":{"t":"y"}}"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"y"}"#),
    (r#"{"spec":{"e":{"n":null}}}"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":"x"}"#),
    (r#"{"spec":{"t":{"n":null,"m":1}}}"#, 200, r#"{"a":1,"e":{},"l":[1,2,3],"m":{"x":{"y":"z"}},"o":[{"k":1},{"k":2}],"t":{"m":1}}"#),
];

#[rustfmt::skip]
const POD_PATCHES: &[PatchCase] = &[
    ("{}", 200, r#"{"containers":[{"name":"x","image":"i","args":["a","b"],"ports":[{"containerPort":80}],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]},{"name":"y","image":"j"}],"volumes":[{"name":"v","emptyDir":{}}]}"#),
    (r#"{"containers":[{"name":"x","image":"k"}]}"#, 200, r#"{"containers":[{"name":"x","image":"k","args":["a","b"],"ports":[{"containerPort":80}],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]},{"name":"y","image":"j"}],"volumes":[{"name":"v","emptyDir":{}}]}"#),
    (r#"{"containers":[{"name":"z","image":"k"}]}"#, 200, r#"{"containers":[{"name":"z","image":"k"},{"name":"x","image":"i","args":["a","b"],"ports":[{"containerPort":80}],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]},{"name":"y","image":"j"}],"volumes":[{"name":"v","emptyDir":{}}]}"#),
    (r#"{"containers":[{"name":"z","image":"k"},{"name":"y","image":"l"}]}"#, 200, r#"{"containers":[{"name":"z","image":"k"},{"name":"x","image":"i","args":["a","b"],"ports":[{"containerPort":80}],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]},{"name":"y","image":"l"}],"volumes":[{"name":"v","emptyDir":{}}]}"#),
    (r#"{"containers":[{"image":"k"}]}"#, 500, "map: map[image:k] does not contain declared merge key: name"),
    (r#"{"containers":[{"name":"x","$patch":"delete"}]}"#, 200, r#"{"containers":[{"name":"y","image":"j"}],"volumes":[{"name":"v","emptyDir":{}}]}"#),
    (r#"{"containers":[{"name":"nope","$patch":"delete"}]}"#, 200, r#"{"containers":[{"name":"x","image":"i","args":["a","b"],"ports":[{"containerPort":80}],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]},{"name":"y","image":"j"}],"volumes":[{"name":"v","emptyDir":{}}]}"#),
    (r#"{"containers":[{"$patch":"delete"}]}"#, 500, "map: map[$patch:delete] does not contain declared merge key: name"),
    (r#"{"containers":[{"name":"n","image":"q"},{"$patch":"replace"}]}"#, 200, r#"{"containers":[{"name":"n","image":"q"}],"volumes":[{"name":"v","emptyDir":{}}]}"#),
    (r#"{"containers":[{"$patch":"merge","name":"x"}]}"#, 500, "merging lists cannot yet be specified in the patch"),
    (r#"{"containers":[{"$patch":"foo","name":"x"}]}"#, 500, "unknown patch type: foo in map: map[$patch:foo name:x]"),
    (r#"{"containers":[{"name":"x","env":[{"name":"C","value":"3"}]}]}"#, 200, r#"{"containers":[{"name":"x","image":"i","args":["a","b"],"ports":[{"containerPort":80}],"env":[{"name":"C","value":"3"},{"name":"A","value":"1"},{"name":"B","value":"2"}]},{"name":"y","image":"j"}],"volumes":[{"name":"v","emptyDir":{}}]}"#),
    (r#"{"containers":[{"name":"x","env":[{"name":"C","value":"3"},{"name":"A","value":"9"}]}]}"#, 200, r#"{"containers":[{"name":"x","image":"i","args":["a","b"],"ports":[{"containerPort":80}],"env":[{"name":"C","value":"3"},{"name":"A","value":"9"},{"name":"B","value":"2"}]},{"name":"y","image":"j"}],"volumes":[{"name":"v","emptyDir":{}}]}"#),
    (r#"{"containers":[{"name":"x","env":[{"name":"A","$patch":"delete"}]}]}"#, 200, r#"{"containers":[{"name":"x","image":"i","args":["a","b"],"ports":[{"containerPort":80}],"env":[{"name":"B","value":"2"}]},{"name":"y","image":"j"}],"volumes":[{"name":"v","emptyDir":{}}]}"#),
    (r#"{"containers":[{"name":"x","args":["c"]}]}"#, 200, r#"{"containers":[{"name":"x","image":"i","args":["c"],"ports":[{"containerPort":80}],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]},{"name":"y","image":"j"}],"volumes":[{"name":"v","emptyDir":{}}]}"#),
    (r#"{"containers":[{"name":"x","args":null,"env":null}]}"#, 200, r#"{"containers":[{"name":"x","image":"i","ports":[{"containerPort":80}]},{"name":"y","image":"j"}],"volumes":[{"name":"v","emptyDir":{}}]}"#),
    (r#"{"containers":[{"name":"x","ports":[{"containerPort":81}]}]}"#, 200, r#"{"containers":[{"name":"x","image":"i","args":["a","b"],"ports":[{"containerPort":81},{"containerPort":80}],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]},{"name":"y","image":"j"}],"volumes":[{"name":"v","emptyDir":{}}]}"#),
    (r#"{"containers":[{"name":"x","ports":[{"port":81}]}]}"#, 500, "map: map[port:81] does not contain declared merge key: containerPort"),
    (r#"{"containers":[]}"#, 200, r#"{"containers":[{"name":"x","image":"i","args":["a","b"],"ports":[{"containerPort":80}],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]},{"name":"y","image":"j"}],"volumes":[{"name":"v","emptyDir":{}}]}"#),
    (r#"{"$setElementOrder/containers":[{"name":"y"},{"name":"x"}]}"#, 200, r#"{"containers":[{"name":"y","image":"j"},{"name":"x","image":"i","args":["a","b"],"ports":[{"containerPort":80}],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]}],"volumes":[{"name":"v","emptyDir":{}}]}"#),
    (r#"{"$setElementOrder/containers":[{"name":"y"},{"name":"x"}],"containers":[{"name":"x","image":"k"}]}"#, 200, r#"{"containers":[{"name":"y","image":"j"},{"name":"x","image":"k","args":["a","b"],"ports":[{"containerPort":80}],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]}],"volumes":[{"name":"v","emptyDir":{}}]}"#),
    (r#"{"$setElementOrder/containers":[{"name":"y"}],"containers":[{"name":"x","image":"k"}]}"#, 500, "The order in patch list:\n[map[image:k name:x]]\n doesn't match $setElementOrder list:\n[map[name:y]]\n"),
    (r#"{"$setElementOrder/containers":[{"name":"y"},{"name":"x"},{"name":"w"}],"containers":[{"name":"w","image":"k"}]}"#, 200, r#"{"containers":[{"name":"y","image":"j"},{"name":"x","image":"i","args":["a","b"],"ports":[{"containerPort":80}],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]},{"name":"w","image":"k"}],"volumes":[{"name":"v","emptyDir":{}}]}"#),
    (r#"{"$setElementOrder/containers":[{"name":"w"},{"name":"y"}],"containers":[{"name":"w","image":"k"}]}"#, 200, r#"{"containers":[{"name":"w","image":"k"},{"name":"x","image":"i","args":["a","b"],"ports":[{"containerPort":80}],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]},{"name":"y","image":"j"}],"volumes":[{"name":"v","emptyDir":{}}]}"#),
    (r#"{"$setElementOrder/containers":[{"name":"y"}],"containers":[{"name":"x","$patch":"delete"}]}"#, 200, r#"{"containers":[{"name":"y","image":"j"}],"volumes":[{"name":"v","emptyDir":{}}]}"#),
    (r#"{"$setElementOrder/containers":1}"#, 500, "expected a []interface {}, but received a int64"),
    (r#"{"$setElementOrder":[]}"#, 400, "invalid patch format of setElementOrder list"),
    (r#"{"$setElementOrder/containers":[{"foo":"y"}],"containers":[{"name":"x"}]}"#, 500, "map: map[foo:y] does not contain declared merge key: name"),
    (r#"{"$setElementOrder/nosuch":[]}"#, 500, r#"unable to find api field in struct PodSpec for the json field "nosuch""#),
    (r#"{"volumes":[{"name":"v","$retainKeys":["name","hostPath"],"hostPath":{"path":"/x"}}]}"#, 200, r#"{"containers":[{"name":"x","image":"i","args":["a","b"],"ports":[{"containerPort":80}],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]},{"name":"y","image":"j"}],"volumes":[{"name":"v","hostPath":{"path":"/x"}}]}"#),
    (r#"{"volumes":[{"name":"v","$retainKeys":["name"],"hostPath":{"path":"/x"}}]}"#, 400, "invalid patch format of retainKeys"),
    (r#"{"volumes":[{"name":"v","$retainKeys":1}]}"#, 400, "invalid patch format of retainKeys"),
    (r#"{"$patch":"replace","containers":[{"name":"q","image":"r"}]}"#, 200, r#"{"containers":[{"name":"q","image":"r"}]}"#),
    (r#"{"$patch":"merge"}"#, 500, "unknown patch type: merge in map: map[$patch:merge]"),
    (r#"{"$patch":1}"#, 500, "unknown patch type: %!s(int64=1) in map: map[$patch:1]"),
    (r#"{"$patch":"x","a":[1,"b",null,{"c":true}]}"#, 500, "unknown patch type: x in map: map[$patch:x a:[1 b <nil> map[c:true]]]"),
    (r#"{"containers":[{"name":"x","image":"1"},{"name":"x","image":"2"}]}"#, 200, r#"{"containers":[{"name":"x","image":"2","args":["a","b"],"ports":[{"containerPort":80}],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]},{"name":"y","image":"j"}],"volumes":[{"name":"v","emptyDir":{}}]}"#),
    (r#"{"containers":[{"name":"x","image":"k","args":["z"],"$setElementOrder/env":[{"name":"B"},{"name":"A"}]}]}"#, 200, r#"{"containers":[{"name":"x","image":"k","args":["z"],"ports":[{"containerPort":80}],"env":[{"name":"B","value":"2"},{"name":"A","value":"1"}]},{"name":"y","image":"j"}],"volumes":[{"name":"v","emptyDir":{}}]}"#),
    (r#"{"$retainKeys":["containers"],"containers":[{"name":"x","image":"k"}]}"#, 200, r#"{"containers":[{"name":"x","image":"k","args":["a","b"],"ports":[{"containerPort":80}],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]},{"name":"y","image":"j"}]}"#),
    (r#"{"imagePullSecrets":[{"name":"a"},{"name":"b"}]}"#, 200, r#"{"containers":[{"name":"x","image":"i","args":["a","b"],"ports":[{"containerPort":80}],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]},{"name":"y","image":"j"}],"volumes":[{"name":"v","emptyDir":{}}],"imagePullSecrets":[{"name":"a"},{"name":"b"}]}"#),
    (r#"{"tolerations":[{"key":"a","operator":"Exists"}]}"#, 200, r#"{"containers":[{"name":"x","image":"i","args":["a","b"],"ports":[{"containerPort":80}],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]},{"name":"y","image":"j"}],"volumes":[{"name":"v","emptyDir":{}}],"tolerations":[{"key":"a","operator":"Exists"}]}"#),
    (r#"{"volumes":null}"#, 200, r#"{"containers":[{"name":"x","image":"i","args":["a","b"],"ports":[{"containerPort":80}],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]},{"name":"y","image":"j"}]}"#),
];

#[rustfmt::skip]
const CONFIG_MAP_PATCHES: &[PatchCase] = &[
    ("", 400, "EOF"),
    ("{", 400, "unexpected EOF"),
    ("x", 400, "invalid character 'x' looking for beginning of value"),
    ("null", 200, r#"{"finalizers":["a/b","c/d"],"labels":{"l":"1"},"data":{"a":"b"}}"#),
    ("1", 400, "expected an object, got a value of type number"),
    ("[]", 400, "expected an object, got a value of type array"),
    (r#""s""#, 400, "json: cannot unmarshal string into Go value of type map[string]interface {}"),
    ("true", 400, "json: cannot unmarshal bool into Go value of type map[string]interface {}"),
    ("{} x", 200, r#"{"finalizers":["a/b","c/d"],"labels":{"l":"1"},"data":{"a":"b"}}"#),
    (r#"{"data":{"z":"1"}} {}"#, 200, r#"{"finalizers":["a/b","c/d"],"labels":{"l":"1"},"data":{"a":"b","z":"1"}}"#),
    (r#"{"a":}"#, 400, "invalid character '}' looking for beginning of value"),
    (r#"{"metadata":{"finalizers":["e/f"]}}"#, 200, r#"{"finalizers":["e/f","a/b","c/d"],"labels":{"l":"1"},"data":{"a":"b"}}"#),
    (r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["a/b"]}}"#, 200, r#"{"finalizers":["c/d"],"labels":{"l":"1"},"data":{"a":"b"}}"#),
    (r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["a/b"],"finalizers":["e/f"]}}"#, 200, r#"{"finalizers":["e/f","c/d"],"labels":{"l":"1"},"data":{"a":"b"}}"#),
    (r#"{"metadata":{"$setElementOrder/finalizers":["c/d","a/b"]}}"#, 200, r#"{"finalizers":["c/d","a/b"],"labels":{"l":"1"},"data":{"a":"b"}}"#),
    (r#"{"metadata":{"$setElementOrder/finalizers":["c/d","e/f","a/b"],"finalizers":["e/f"]}}"#, 200, r#"{"finalizers":["c/d","e/f","a/b"],"labels":{"l":"1"},"data":{"a":"b"}}"#),
    (r#"{"metadata":{"finalizers":["a/b","a/b"]}}"#, 200, r#"{"finalizers":["a/b","c/d"],"labels":{"l":"1"},"data":{"a":"b"}}"#),
    (r#"{"metadata":{"finalizers":["c/d","e/f","a/b"]}}"#, 200, r#"{"finalizers":["c/d","e/f","a/b"],"labels":{"l":"1"},"data":{"a":"b"}}"#),
    (r#"{"metadata":{"$deleteFromPrimitiveList":["a"]}}"#, 400, "invalid patch format of primitive list"),
    (r#"{"metadata":{"$deleteFromPrimitiveList/nope":["a"]}}"#, 200, r#"{"finalizers":["a/b","c/d"],"labels":{"l":"1"},"data":{"a":"b"}}"#),
    (r#"{"metadata":{"finalizers":[1]}}"#, 500, "list element types are not identical: [[a/b c/d] [1]]"),
    (r#"{"metadata":{"finalizers":[[1]]}}"#, 500, "list element types are not identical: [[a/b c/d] [[1]]]"),
    (r#"{"metadata":{"finalizers":[]}}"#, 200, r#"{"finalizers":["a/b","c/d"],"labels":{"l":"1"},"data":{"a":"b"}}"#),
    (r#"{"metadata":{"labels":{"$patch":"replace","x":"y"}}}"#, 200, r#"{"finalizers":["a/b","c/d"],"labels":{"x":"y"},"data":{"a":"b"}}"#),
    (r#"{"metadata":{"labels":{"$patch":"delete"}}}"#, 200, r#"{"finalizers":["a/b","c/d"],"data":{"a":"b"}}"#),
    (r#"{"metadata":{"labels":{"l":null,"m":"1","n":null}}}"#, 200, r#"{"finalizers":["a/b","c/d"],"labels":{"m":"1"},"data":{"a":"b"}}"#),
    (r#"{"metadata":{"labels":{"$retainKeys":["q"],"q":"1"}}}"#, 200, r#"{"finalizers":["a/b","c/d"],"labels":{"q":"1"},"data":{"a":"b"}}"#),
    (r#"{"kind":"Pod","apiVersion":"v9"}"#, 200, r#"{"finalizers":["a/b","c/d"],"labels":{"l":"1"},"data":{"a":"b"}}"#),
    (r#"{"data":null}"#, 200, r#"{"finalizers":["a/b","c/d"],"labels":{"l":"1"}}"#),
    (r#"{"metadata":{"$setElementOrder/finalizers":["zz"],"finalizers":["e/f"]}}"#, 500, "The order in patch list:\n[e/f]\n doesn't match $setElementOrder list:\n[zz]\n"),
    (r#"{"metadata":{"$setElementOrder/finalizers":["c/d",1]}}"#, 200, r#"{"finalizers":["a/b","c/d"],"labels":{"l":"1"},"data":{"a":"b"}}"#),
];

#[test]
fn many_steps_in_large_lists_and_maps_are_cut_short() {
    let list: Vec<Value> = vec![json!(1); 200_000];
    let map: Value = (0..50_000).map(|it| (format!("k{it}"), json!(1))).collect();
    let object = json!({ "list": list, "map": map });
    let patch = |operation: fn(usize) -> Value| {
        let operations: Vec<Value> = (0..10_000).map(operation).collect();
        let text = Value::Array(operations).to_string();
        let parsed = ParsedPatch::parse("application/json-patch+json", text.as_bytes(), true);
        parsed.expect("a patch").apply(&object, None).is_ok()
    };
    // These take as long in a large object as in a small one.
    assert!(patch(|_| json!({ "op": "add", "path": "/list/-", "value": 1 })));
    assert!(patch(|_| json!({ "op": "replace", "path": "/map/k7", "value": 1 })));
    assert!(!patch(|_| json!({ "op": "test", "path": "/list", "value": [] })));
    // Minutes, without a limit.
    assert!(!patch(|_| json!({ "op": "add", "path": "/list/0", "value": 1 })));
    assert!(!patch(|_| json!({ "op": "remove", "path": "/list/0" })));
    assert!(!patch(|it| json!({ "op": "remove", "path": format!("/map/k{it}") })));
    assert!(!patch(|_| json!({ "op": "move", "from": "/map", "path": "/map" })));
}
