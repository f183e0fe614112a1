//! Types of custom resources.

use expect_test::expect;
use serde_json::json;

use super::CustomKind;

fn kind() -> CustomKind {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "string", "enum": ["small", "large"], "description": "How\nlarge."},
            "ports": {"type": "array", "items": {"x-kubernetes-int-or-string": true}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "storage-class": {"type": "object", "properties": {"name": {"type": "string", "default": "a"}}},
        }},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }});
    CustomKind::read(&json!({"spec": {
        "group": "example.com",
        "names": {"kind": "Database", "plural": "databases", "shortNames": ["db"]},
        "versions": [
            {"name": "v1beta1", "served": true, "storage": false},
            {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}},
        ],
    }}))
    .expect("a definition")
}

#[test]
fn a_schema_becomes_classes_of_lua() {
    let text = kind().lua();
    let (classes, _) = text.split_once("---A Database").expect("the object comes last");
    expect![[r#"

        ---@class Database.Spec.Storage_class
        ---@field name string

        ---@class Database.Spec
        ---@field size "small"|"large" How large.
        ---@field ports? (integer|string)[]
        ---@field labels? table<string, string>
        ---@field ["storage-class"]? Database.Spec.Storage_class

    "#]]
    .assert_eq(classes);
}

#[test]
fn a_schema_becomes_types_of_luau() {
    let text = kind().luau();
    assert!(text.contains("\tsize: \"small\" | \"large\",\n"), "{text}");
    assert!(text.contains("\tports: ({ number | string })?,\n"), "{text}");
    let of_spec =
        "export type DatabaseChangeCtx = KopfChangeCtxOf<DatabaseSpec, { [string]: any }>\n";
    assert!(text.contains(of_spec), "{text}");
}

#[test]
fn the_selectors_of_a_kind_are_those_that_declarations_take() {
    let alone = kind().selectors().into_iter().next().expect("three forms");
    let [alone]: [String; 1] = alone.try_into().expect("one parameter");
    assert!(alone.contains("\"databases\"") && alone.contains("\"db\""), "{alone}");
    assert!(alone.contains("\"databases.v1.example.com\""), "{alone}");
}

#[test]
fn the_error_names_what_a_crd_lacks() {
    let error = CustomKind::read(&json!({"spec": {"versions": [{"served": true}]}}));
    assert_eq!(error.expect_err("no kind"), "it has no spec.names.kind");
    let error = CustomKind::read(&json!({"spec": {"versions": [{"served": false}]}}));
    assert_eq!(error.expect_err("nothing is served"), "no version of it is served");
}
