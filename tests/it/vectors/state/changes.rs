//! Diffs and causes.

use std::sync::Arc;

use kopf::{
    logic::{
        change::cause,
        object::{
            Object,
            diff::{self, Diff, DiffItem, DiffOperation, DiffScope},
            fields,
            reason::EventType,
        },
    },
    settings::PersistenceSettings,
};
use serde_json::{Value, json};

use super::{
    diffbase_storage, expect_error, extra_fields, field, flag, progress_storage, sorted, text,
};
use crate::vectors::{run, same};

#[test]
fn diffs() {
    run("diff", |vector| {
        let input = &vector.input;
        let scope = match text(&input["scope"]) {
            "left" => DiffScope::Left,
            "right" => DiffScope::Right,
            _ => DiffScope::Full,
        };
        let mut diff = diff::scoped(&input["a"], &input["b"], scope);
        for item in &mut diff {
            item.field.splice(0..0, field(&input["path"]));
        }
        same("diff", &sorted(&diff), &vector.expected)
    });
}

#[test]
fn diff_reduce() {
    run("diff-reduce", |vector| {
        let items = vector.input["diff"].as_array().expect("a diff");
        let diff: Diff = items.iter().map(item).collect();
        let reduced = diff::reduce(&diff, &field(&vector.input["path"]));
        let expected: Diff = vector.expected.as_array().expect("a diff").iter().map(item).collect();
        same("diff", &sorted(&reduced), &sorted(&expected))
    });
}

fn item(item: &Value) -> DiffItem {
    let operation = match text(&item[0]) {
        "add" => DiffOperation::Add,
        "change" => DiffOperation::Change,
        "remove" => DiffOperation::Remove,
        other => panic!("unknown operation {other}"),
    };
    DiffItem { operation, field: field(&item[1]), old: item[2].clone(), new: item[3].clone() }
}

#[test]
fn cause_adjustment() {
    run("cause-adjustment", |vector| {
        let input = &vector.input;
        let essences = essences(input);
        let object = Object::from_value(json!({}));
        let change =
            cause::compare(&PersistenceSettings::default(), &object, None, false, essences);
        let path = Some(field(&input["field"])).filter(|_| !input["field"].is_null());
        let narrowed = change.narrowed(path.as_ref());
        let actual = json!({
            "old": narrowed.old,
            "new": narrowed.new,
            "diff": sorted(&narrowed.diff),
        });
        same("narrowed", &actual, &vector.expected)
    });
}

#[test]
fn cause_detection() {
    run("cause-detection", |vector| {
        let result = detected(&vector.input);
        if vector.expects_error() {
            return expect_error(result);
        }
        let change = result?;
        let actual = json!({
            "reason": change.reason.as_str(),
            "initial": change.initial,
            "deleted": change.deleted,
            "old": change.old,
            "new": change.new,
            "diff": sorted(&change.diff),
        });
        same("change", &actual, &vector.expected)
    });
}

fn detected(input: &Value) -> Result<cause::Change, String> {
    let persistence = PersistenceSettings {
        finalizer: text(&input["finalizer"]).to_owned(),
        progress_storage: progress_storage(&input["progress"]),
        diffbase_storage: diffbase_storage(&input["diffbase"]),
        ..PersistenceSettings::default()
    };
    // Through bytes, as objects come.
    let object = Object::parse(input["body"].to_string().into()).map_err(|it| it.to_string())?;
    let event_type = match text(&input["type"]) {
        "" => None,
        "ADDED" => Some(EventType::Added),
        "MODIFIED" => Some(EventType::Modified),
        "DELETED" => Some(EventType::Deleted),
        other => return Err(format!("unknown type {other}")),
    };
    let initial = flag(&input["initial"]);
    if input["op"] == "full" {
        let extra = extra_fields(&input["extra_fields"]);
        return cause::examine(&persistence, &object, event_type, initial, &extra)
            .map_err(|it| it.to_string());
    }
    Ok(cause::compare(&persistence, &object, event_type, initial, essences(input)))
}

fn essences(input: &Value) -> (Option<Arc<Value>>, Arc<Value>) {
    let old = Some(input["old"].clone()).filter(|it| !it.is_null());
    (old.map(Arc::new), Arc::new(input["new"].clone()))
}

#[test]
fn dicts_utils() {
    run("dicts-utils", |vector| {
        let result = computed(&vector.input);
        match result {
            _ if vector.expects_error() => expect_error(result),
            Ok(value) => same("value", &value, &vector.expected["value"]),
            Err(error) => Err(error.to_string()),
        }
    });
}

fn computed(input: &Value) -> Result<Value, fields::FieldError> {
    let paths = |list: &Value| -> Result<Vec<_>, _> {
        list.as_array().into_iter().flatten().map(fields::parse).collect()
    };
    let target = if input["op"] == "cherrypick" { &input["dst"] } else { &input["d"] };
    let mut map = super::map(target);
    match text(&input["op"]) {
        "parse" => return Ok(json!(fields::parse(&input["field"])?)),
        "resolve" => {
            let path = fields::parse(&input["field"])?;
            let found = match input.get("default") {
                Some(default) => fields::get(&input["d"], &path).unwrap_or(default),
                None => fields::resolve(&input["d"], &path)?,
            };
            return Ok(found.clone());
        }
        "walk" => return Ok(json!(fields::walk(&input["objs"], &paths(&input["nested"])?)?)),
        "ensure" => {
            fields::ensure(&mut map, &fields::parse(&input["field"])?, input["value"].clone())?;
        }
        "remove" => fields::remove(&mut map, &fields::parse(&input["field"])?)?,
        "cherrypick" => fields::cherrypick(&input["src"], &mut map, &paths(&input["fields"])?)?,
        op => panic!("unknown op {op}"),
    }
    Ok(Value::Object(map))
}
