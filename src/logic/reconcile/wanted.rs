//! The result of the function of a reconcile handler.

use std::{io, time::Duration};

use serde_json::{Map, Value};

use crate::logic::{
    object::{
        conditions::{self, Condition, ConditionStatus},
        measure::{ITEMS_MAX, items_of},
    },
    text::{duration, nearest::nearest},
};

/// Maximum number of children of one object.
const CHILDREN_MAX: usize = 2000;
/// Maximum size of one child, as JSON: the maximum that API servers accept.
const CHILD_BYTES_MAX: usize = 3 << 19;
/// Maximum size of all children of one object, as JSON.
const BYTES_MAX: usize = 32 << 20;
/// The fields of a result.
const FIELDS: [&str; 4] = ["children", "status", "conditions", "requeue"];

/// The state that the function of a reconcile handler requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DesiredState {
    /// The children that must exist; `None` changes nothing about them.
    pub children: Option<Vec<Manifest>>,
    /// The fields of the status to set.
    pub status: Map<String, Value>,
    /// The conditions to set, without times.
    pub conditions: Vec<WantedCondition>,
    /// The pause until the next call.
    pub requeue: Option<Duration>,
}

/// One wanted child, as the function returned it.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// Its path in the result, such as `children[2]`.
    pub path: String,
    /// `apiVersion`
    pub api_version: String,
    /// `kind`
    pub kind: String,
    /// `metadata.namespace`
    pub namespace: Option<String>,
    /// `metadata.name`
    pub name: String,
    /// The whole manifest, with the fields above.
    pub body: Map<String, Value>,
}

/// One condition that the function returned, without its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedCondition {
    kind: String,
    status: ConditionStatus,
    reason: String,
    message: String,
}

impl WantedCondition {
    /// Returns the condition with the time and the generation of the observation.
    pub fn observed(self, generation: Option<i64>, now: jiff::Timestamp) -> Condition {
        let WantedCondition { kind, status, reason, message } = self;
        Condition { kind, status, reason, message, observed_generation: generation, now }
    }
}

/// Checks the result of `finalize`. Values of last statements, such as a created object, are ignored.
///
/// # Errors
/// Fails if it has a field of those that the reconcile function returns, because nothing is applied any more.
pub fn check_finalized(result: Option<&Value>) -> Result<(), String> {
    let fields = result.and_then(Value::as_object).filter(|it| !it.contains_key("apiVersion"));
    match FIELDS.iter().find(|field| fields.is_some_and(|it| it.contains_key(**field))) {
        Some(field) => Err(format!(
            "`finalize` returned `{field}`, but must return nil: the object is being deleted"
        )),
        None => Ok(()),
    }
}

impl DesiredState {
    /// Reads a result; `first` is the number of the first item of a list in the language of the script.
    ///
    /// # Errors
    /// Fails if the result is invalid; the error has the path in the result.
    pub fn read(result: Option<Value>, first: usize) -> Result<DesiredState, String> {
        let mut fields = match result {
            None | Some(Value::Null) => return Ok(DesiredState::default()),
            Some(Value::Object(fields)) => fields,
            Some(other) => {
                let hint = "return { children = …, status = … }, or nil";
                return Err(format!("it returned {}, not a map: {hint}", described(&other)));
            }
        };
        if fields.contains_key("apiVersion") && fields.contains_key("kind") {
            return Err("it returned a whole object: children belong into a list, { children = { object } }".into());
        }
        if let Some(field) = fields.keys().find(|it| !FIELDS.contains(&it.as_str())) {
            let near = nearest(field, FIELDS).map(|it| format!(", did you mean `{it}`?"));
            let near = near.unwrap_or_else(|| format!(", only {FIELDS:?}"));
            return Err(format!("the result has an unknown field `{field}`{near}"));
        }
        let mut given = |name: &str| fields.shift_remove(name).filter(|it| !it.is_null());
        let children = given("children").map(|it| children(it, first)).transpose()?;
        let status = match given("status") {
            None => Map::new(),
            Some(Value::Object(fields)) => fields,
            Some(Value::Array(items)) if items.is_empty() => Map::new(),
            Some(other) => {
                return Err(format!("status: expected a map, got {}", described(&other)));
            }
        };
        if status.contains_key("conditions") {
            return Err(
                "status.conditions: conditions belong into the field `conditions` of the result"
                    .into(),
            );
        }
        let count = items_of(&status);
        if count > ITEMS_MAX {
            return Err(format!("status would have more than {ITEMS_MAX} items: {count}"));
        }
        let conditions = given("conditions").map(|it| conditions_of(it, first)).transpose()?;
        let requeue = given("requeue").map(|it| requeue(&it)).transpose()?;
        Ok(DesiredState { children, status, conditions: conditions.unwrap_or_default(), requeue })
    }
}

fn requeue(value: &Value) -> Result<Duration, String> {
    duration::parse(value).ok_or_else(|| {
        format!("requeue: expected {}, got {}", duration::EXPECTED, described(value))
    })
}

/// Returns the items of a list with their paths. An empty map is an empty list in one of the languages.
fn items(name: &str, value: Value, first: usize) -> Result<Vec<(String, Value)>, String> {
    match value {
        Value::Array(items) => {
            let path = |index: usize| format!("{name}[{}]", index + first);
            Ok(items.into_iter().enumerate().map(|(index, it)| (path(index), it)).collect())
        }
        Value::Object(fields) if fields.is_empty() => Ok(Vec::new()),
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Err(format!("{name}: expected a list, got {}", described(&value)))
        }
    }
}

fn children(value: Value, first: usize) -> Result<Vec<Manifest>, String> {
    let items = items("children", value, first)?;
    if items.len() > CHILDREN_MAX {
        let count = items.len();
        return Err(format!("children: {count} objects, at most {CHILDREN_MAX} are supported"));
    }
    let (mut children, mut total) = (Vec::with_capacity(items.len()), 0_usize);
    // Nulls are left out, so that a child can be optional.
    for (path, item) in items.into_iter().filter(|(_, it)| !it.is_null()) {
        let bytes = size_of(&item);
        total = total.saturating_add(bytes);
        if bytes > CHILD_BYTES_MAX {
            return Err(format!("{path}: {bytes} bytes, at most {CHILD_BYTES_MAX} are supported"));
        }
        if total > BYTES_MAX {
            return Err(format!("children: they are larger than {BYTES_MAX} bytes together"));
        }
        children.push(manifest(path, item)?);
    }
    Ok(children)
}

/// Returns the number of bytes of a value as JSON.
fn size_of(value: &Value) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting does not fail, and neither does writing a value.
    serde_json::to_writer(&mut count, value).map_or(usize::MAX, |()| count.0)
}

fn manifest(path: String, item: Value) -> Result<Manifest, String> {
    let body = match item {
        Value::Object(body) => body,
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)) => {
            return Err(format!("{path}: expected an object, got {}", described(&other)));
        }
    };
    let found = |field: &str| match field.split_once('.') {
        Some((outer, inner)) => body.get(outer)?.get(inner),
        None => body.get(field),
    };
    let text = |field: &str| match found(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(it)) => Ok(Some(it.clone()).filter(|it| !it.is_empty())),
        Some(other) => Err(format!("{path}.{field}: expected a string, got {}", described(other))),
    };
    let required = |field: &str| {
        text(field)?.ok_or_else(|| {
            let generated = found("metadata.generateName").is_some_and(|it| !it.is_null());
            let hint = if field == "metadata.name" && generated {
                "; children need fixed names, `generateName` would create another object at each call"
            } else {
                ""
            };
            format!("{path}.{field} is missing{hint}")
        })
    };
    let (api_version, kind) = (required("apiVersion")?, required("kind")?);
    for field in ["metadata", "metadata.labels", "metadata.annotations"] {
        let odd = found(field).filter(|it| !it.is_null() && !it.is_object());
        let is_empty = |it: &Value| it.as_array().is_some_and(Vec::is_empty);
        if let Some(other) = odd.filter(|it| !is_empty(it)) {
            return Err(format!("{path}.{field}: expected a map, got {}", described(other)));
        }
    }
    let (name, namespace) = (required("metadata.name")?, text("metadata.namespace")?);
    Ok(Manifest { path, api_version, kind, namespace, name, body })
}

fn conditions_of(value: Value, first: usize) -> Result<Vec<WantedCondition>, String> {
    let mut all: Vec<WantedCondition> = Vec::new();
    for (path, item) in items("conditions", value, first)? {
        let at = |problem: String| format!("{path}: {problem}");
        let fields = item
            .as_object()
            .ok_or_else(|| format!("{path}: expected a map, got {}", described(&item)))?;
        let known = ["type", "status", "reason", "message"];
        if let Some(odd) = fields.keys().find(|it| !known.contains(&it.as_str())) {
            return Err(format!("{path}.{odd}: a condition has only {known:?}"));
        }
        let text = |field: &str| match fields.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(it)) => Ok(Some(it.as_str())),
            Some(other) => {
                Err(format!("{path}.{field}: expected a string, got {}", described(other)))
            }
        };
        let kind = text("type")?.ok_or_else(|| format!("{path}.type is missing"))?.to_owned();
        conditions::check_kind(&kind).map_err(at)?;
        let status =
            ConditionStatus::read(fields.get("status").unwrap_or(&Value::Null)).map_err(at)?;
        let reason = conditions::reason(text("reason")?, &kind, status).map_err(at)?;
        let message = conditions::message(text("message")?, &reason);
        if all.iter().any(|it| it.kind == kind) {
            return Err(format!("{path}.type: there are two conditions of the type {kind:?}"));
        }
        all.push(WantedCondition { kind, status, reason, message });
    }
    Ok(all)
}

/// Returns a description of a value, for errors: short values as they are.
fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(it) => it.to_string(),
        Value::Number(it) => it.to_string(),
        Value::String(it) if it.chars().count() <= 40 => format!("{it:?}"),
        Value::String(_) => "a string".into(),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "a map".into(),
    }
}
