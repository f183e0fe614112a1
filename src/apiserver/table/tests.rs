//! Tables, compared with those of a real server. The recorded objects contain each case that cells distinguish.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{jsonpath::JsonPath, *};
use crate::resource::{
    ResourceDef,
    kind::{Column, KindVersion},
};

fn kind(group: &str, plural: &str, native: bool, columns: Vec<Column>) -> Kind {
    let def = ResourceDef { native, ..ResourceDef::new(group, "v1", plural, "Any") };
    let version = KindVersion { columns, ..KindVersion::default() };
    Kind { versions: BTreeMap::from([("v1".into(), version)]), ..Kind::plain(def) }
}

fn printer(kind: &Kind, include: Include) -> Printer {
    Printer::new(kind, "v1", MetaVersion::V1, include)
}

fn time(text: &Value) -> Timestamp {
    text.as_str().unwrap().parse().unwrap()
}

fn column(name: &str, kind: &str, path: &str) -> Column {
    Column { name: name.into(), kind: kind.into(), json_path: path.into(), ..Column::default() }
}

#[test]
fn native_objects_look_as_on_the_real_server() {
    let recorded: Vec<Value> =
        serde_json::from_str(include_str!("../tests/recorded/table-native.json")).unwrap();
    assert!(recorded.len() > 80);
    let mut wrong = Vec::new();
    for record in &recorded {
        let object = &record["object"];
        let group = object["apiVersion"].as_str().unwrap().split_once('/').map_or("", |it| it.0);
        let kind = kind(group, record["resource"].as_str().unwrap(), true, Vec::new());
        let table = printer(&kind, Include::Nothing).object(object, time(&record["now"]));
        let row = &table["rows"][0];
        let name = &record["resource"];
        let cells = (&row["cells"], row.get("conditions"));
        let real = (&record["cells"], record.get("conditions"));
        if cells != real {
            wrong.push(format!("{name}: {object}\n  ours {cells:?}\n  real {real:?}"));
        }
        if let Some(columns) = record.get("columns") {
            let short = |it: &Value| json!([it["name"], it["type"], it["format"], it["priority"]]);
            let columns_here: Value =
                table["columnDefinitions"].as_array().unwrap().iter().map(short).collect();
            if columns_here != *columns {
                wrong.push(format!("{name}\n  ours {columns_here}\n  real {columns}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn custom_columns_look_as_on_the_real_server() {
    let recorded: Value =
        serde_json::from_str(include_str!("../tests/recorded/table-custom.json")).unwrap();
    // A wildcard over a map is left out: its order is random on the real server.
    let text = |column: &Value, field: &str| String::from(column[field].as_str().unwrap_or(""));
    let columns = recorded["columns"].as_array().unwrap().iter().map(|it| Column {
        name: text(it, "name"),
        kind: text(it, "type"),
        json_path: text(it, "jsonPath"),
        ..Column::default()
    });
    let columns: Vec<Column> = columns.collect();
    let names: Vec<String> = columns.iter().map(|it| it.name.clone()).collect();
    let kind = kind("present.example.com", "wides", false, columns);
    for record in recorded["rows"].as_array().unwrap() {
        let now = time(&recorded["now"]);
        let table = printer(&kind, Include::Nothing).object(&record["object"], now);
        let cells = table["rows"][0]["cells"].as_array().unwrap();
        let expected = record["cells"].as_array().unwrap();
        assert_eq!(cells.len(), expected.len());
        assert_eq!(cells[0], expected[0]);
        for (index, name) in names.iter().enumerate() {
            let (cell, expected) = (&cells[index + 1], &expected[index + 1]);
            // `1.0` counts as an integer here, too.
            let same =
                cell == expected || cell.as_f64().is_some() && cell.as_f64() == expected.as_f64();
            assert!(same, "{name}: {cell} instead of {expected}");
        }
    }
}

#[test]
fn without_columns_the_age_is_shown() {
    let kind = kind("g", "things", false, Vec::new());
    let object =
        json!({ "metadata": { "name": "a", "creationTimestamp": "2026-01-01T00:00:00Z" } });
    let now = "2026-01-01T00:05:00Z".parse().unwrap();
    let table = printer(&kind, Include::default()).object(&object, now);
    assert_eq!(table["rows"][0]["cells"], json!(["a", "5m"]));
    assert_eq!(table["columnDefinitions"][1]["type"], "date");
}

#[test]
fn a_list_keeps_its_metadata_and_a_single_object_its_version() {
    let kind = kind("", "configmaps", true, Vec::new());
    let printer = printer(&kind, Include::default());
    let object = json!({ "metadata": { "name": "a", "resourceVersion": "7" } });
    let metadata = json!({ "resourceVersion": "9", "continue": "x", "remainingItemCount": 3 });
    let now = Timestamp::UNIX_EPOCH;
    let table = printer.list(&metadata, [&object], now);
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    assert_eq!(table["metadata"], metadata);
    assert_eq!(printer.object(&object, now)["metadata"], json!({ "resourceVersion": "7" }));
}

#[test]
fn only_the_first_event_of_a_watch_has_columns() {
    let kind = kind("", "configmaps", true, Vec::new());
    let printer = printer(&kind, Include::default());
    let object = json!({ "metadata": { "name": "a" } });
    let now = Timestamp::UNIX_EPOCH;
    assert!(printer.event(&object, true, now)["columnDefinitions"].is_array());
    assert!(printer.event(&object, false, now)["columnDefinitions"].is_null());
}

#[test]
fn rows_contain_the_requested_part_of_the_object() {
    let kind = kind("g", "things", false, Vec::new());
    let object = json!({ "kind": "Thing", "metadata": { "name": "a" }, "spec": 1 });
    let row = |include| {
        printer(&kind, include).object(&object, Timestamp::UNIX_EPOCH)["rows"][0]["object"].clone()
    };
    let metadata = json!({ "name": "a" });
    let partial = json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
    });
    assert_eq!(row(Include::parse(None).unwrap()), partial);
    assert_eq!(row(Include::parse(Some("Metadata")).unwrap()), partial);
    assert_eq!(row(Include::parse(Some("None")).unwrap()), Value::Null);
    assert_eq!(row(Include::parse(Some("Object")).unwrap()), object);
    let refusal = Include::parse(Some("Foo")).unwrap_err();
    let text = "Unable to convert to Table as requested: includeObject: Invalid value: \"Foo\": must be 'Metadata', 'Object', 'None', or empty";
    assert_eq!((refusal.code, refusal.message.as_str()), (400, text));
}

#[test]
fn ages_are_rounded_more_as_they_grow() {
    for (seconds, shown) in [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (8 * 3600 - 1, "7h59m"),
        (8 * 3600, "8h"),
        (48 * 3600 - 1, "47h"),
        (48 * 3600, "2d"),
        (50 * 3600, "2d2h"),
        (8 * 86400, "8d"),
        (729 * 86400, "729d"),
        (730 * 86400, "2y"),
        (731 * 86400, "2y1d"),
        (8 * 365 * 86400, "8y"),
    ] {
        assert_eq!(age::human(seconds), shown, "{seconds}");
    }
}

#[test]
fn an_invalid_path_shows_nothing() {
    for path in ["spec", ".spec[", ".spec[?(@.a=1)]", ".spec[1:2:3:4]", ".a[?(@.b==c)]", ".a[x]"] {
        assert_eq!(JsonPath::parse(path), None, "{path}");
        let kind = kind("g", "things", false, vec![column("X", "string", path)]);
        let table = printer(&kind, Include::Nothing).object(&json!({}), Timestamp::UNIX_EPOCH);
        assert_eq!(table["rows"][0]["cells"], json!(["", null]));
    }
}

#[test]
fn hostile_paths_are_bounded() {
    let nested = ["['".repeat(100), "']".repeat(100)].concat();
    assert_eq!(JsonPath::parse(&nested), None);
    let brackets = (0..100).fold(String::from("0"), |it, _| format!("[?(@[{it}])]"));
    assert!(JsonPath::parse(&brackets).is_none_or(|it| it.find(&json!([])).is_none()));
    let many: Value = (0..5000).map(|it| json!({ "a": it })).collect();
    assert_eq!(JsonPath::parse("........").unwrap().find(&many), None);
}

#[test]
fn quantities_of_custom_cells_are_those_of_go() {
    for (value, shown) in [
        (json!(1_234_567.5), "1.2345675e+06"),
        (json!(0.000_01), "1e-05"),
        (json!(123_456.5), "123456.5"),
        (json!(u64::MAX), "1.8446744073709552e+19"),
        (
            json!({ "b": [1.0, 2.5e-9], "a": "<é\n>" }),
            "{\"a\":\"\\u003cé\\n\\u003e\",\"b\":[1,2.5e-9]}",
        ),
    ] {
        assert_eq!(go::text(&value), shown);
    }
    let kind = kind("g", "things", false, vec![column("X", "boolean", ".spec.x")]);
    let table = printer(&kind, Include::Nothing)
        .object(&json!({ "spec": { "x": 1 } }), Timestamp::UNIX_EPOCH);
    assert_eq!(table["rows"][0]["cells"][1], Value::Null);
}
