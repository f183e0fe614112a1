//! Decoding of bodies as the Go types of their kind do it: unknown and empty fields are dropped, values take their canonical form,
//! fields their order, and a value of a wrong type is an error.

use serde_json::{Map, Value, json};

use super::{
    Native, defaults,
    facts::{self, GoField, GoType, GoValueType},
    scalar,
};
use crate::{
    refusal::{
        Refusal,
        path::{push_field, push_item},
    },
    resource::kind::Kind,
};

/// The maximum depth of a body. Types that contain themselves (JSON schemas in CRDs) would allow any depth.
const DEPTH: usize = 200;
/// The definition of the metadata of every object.
pub(crate) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Converts the body of a native kind to the form in which it is stored. Returns the paths of unknown fields, which are dropped:
/// `spec.template.spec.containers[0].foo`.
///
/// Not for kinds of CRDs. A kind without a known schema keeps the body as it is.
///
/// # Errors
/// Fails if a value has a wrong type.
pub(crate) fn decode(kind: &Kind, version: &str, body: &mut Value) -> Result<Vec<String>, Refusal> {
    let Some(native) = kind.native else { return Ok(Vec::new()) };
    let decoded = decode_as(&native.schema_of(version), body, "");
    decoded.map_err(|why| Refusal::undecodable(&kind.def.kind, version, &why))
}

/// Converts a value at `path` to the form of a definition. Returns the paths of unknown fields, which are dropped.
///
/// # Errors
/// Returns the message about the first value with a wrong type.
pub(crate) fn decode_as(
    definition: &str,
    value: &mut Value,
    path: &str,
) -> Result<Vec<String>, String> {
    let Some(known) = facts::go_type(definition) else { return Ok(Vec::new()) };
    if deeper(value, DEPTH) {
        return Err(format!("nested too deeply: at most {DEPTH} levels"));
    }
    let mut walk = NativeDecoder { unknown: Vec::new() };
    walk.fields(known, value, &mut path.to_owned(), 0)?;
    Ok(walk.unknown)
}

/// Sorts the fields of an object as the real server writes them. It is the last step before storing.
pub(crate) fn order(kind: &Kind, version: &str, object: &mut Value) {
    if let Some(native) = kind.native {
        defaults::order(&native.schema_of(version), object);
    }
}

impl Native {
    /// Returns the definition of one of its versions. They differ in the last part but one.
    pub(crate) fn schema_of(&self, version: &str) -> String {
        let (rest, kind) = self.schema.rsplit_once('.').unwrap_or(("", self.schema));
        let group = rest.rsplit_once('.').map_or(rest, |it| it.0);
        format!("{group}.{version}.{kind}")
    }
}

/// Returns whether a value has more levels than this.
fn deeper(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else { return true };
    match value {
        Value::Array(items) => items.iter().any(|it| deeper(it, below)),
        Value::Object(fields) => fields.values().any(|it| deeper(it, below)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

struct NativeDecoder {
    unknown: Vec<String>,
}

/// The message about a value with a wrong type: `spec.replicas: expected an integer, got "2"`.
type TypeMismatch = String;

impl NativeDecoder {
    fn fields(
        &mut self,
        known: &GoType,
        value: &mut Value,
        path: &mut String,
        depth: usize,
    ) -> Result<(), TypeMismatch> {
        if depth > DEPTH {
            return Err("exceeded max depth".into());
        }
        let Value::Object(given) = value else {
            return Err(scalar::unexpected("an object", value, path));
        };
        let given = std::mem::take(given);
        let mut kept = Map::new();
        let start = path.len();
        let mut decoded = Map::new();
        for (name, child) in given {
            push_field(path, &name);
            match known.fields.iter().find(|it| it.name == name) {
                Some(field) if !child.is_null() => {
                    if let Some(child) = self.field(field, child, path, depth)? {
                        decoded.insert(name, child);
                    }
                }
                Some(_) => {}
                None => self.unknown.push(path.clone()),
            }
            path.truncate(start);
        }
        // Missing and null fields get their zero values; those that were dropped as empty stay away.
        for field in &known.fields {
            let child = match decoded.shift_remove(field.name) {
                Some(child) => Some(child),
                None => self.absent(field, path, depth)?,
            };
            kept.extend(child.map(|it| (field.name.to_owned(), it)));
        }
        *value = Value::Object(kept);
        Ok(())
    }

    /// Decodes a field. Returns `None` for a field that is left out when empty.
    fn field(
        &mut self,
        field: &GoField,
        mut value: Value,
        path: &mut String,
        depth: usize,
    ) -> Result<Option<Value>, TypeMismatch> {
        if value.is_null() {
            return self.absent(field, path, depth);
        }
        self.value(&field.form, &mut value, path, depth)?;
        let empty = match &value {
            Value::Null => true,
            Value::Object(it) => it.is_empty() && !field.pointer,
            Value::Array(it) => it.is_empty(),
            Value::Bool(it) => !it && !field.pointer,
            Value::String(it) => {
                it.is_empty() && !field.pointer && !matches!(field.form, GoValueType::IntOrText)
            }
            // The zero value of a quantity and of similar types does not count as empty.
            Value::Number(it) => {
                it.as_f64() == Some(0.0)
                    && !field.pointer
                    && !matches!(field.form, GoValueType::IntOrText)
            }
        };
        Ok((!(field.omit && empty)).then_some(value))
    }

    fn absent(
        &mut self,
        field: &GoField,
        path: &mut String,
        depth: usize,
    ) -> Result<Option<Value>, TypeMismatch> {
        if field.omit {
            return Ok(None);
        }
        if field.pointer {
            return Ok(Some(Value::Null));
        }
        Ok(Some(match &field.form {
            GoValueType::Text => json!(""),
            GoValueType::Bool => json!(false),
            GoValueType::Int32
            | GoValueType::Int64
            | GoValueType::Float
            | GoValueType::IntOrText => json!(0),
            GoValueType::Quantity => json!("0"),
            GoValueType::Time
            | GoValueType::MicroTime
            | GoValueType::Bytes
            | GoValueType::Any
            | GoValueType::List(_)
            | GoValueType::Map(_) => Value::Null,
            GoValueType::Struct(name) => {
                let mut value = json!({});
                if let Some(known) = facts::go_type(name) {
                    self.fields(known, &mut value, path, depth + 1)?;
                }
                value
            }
        }))
    }

    fn value(
        &mut self,
        form: &GoValueType,
        value: &mut Value,
        path: &mut String,
        depth: usize,
    ) -> Result<(), TypeMismatch> {
        if value.is_null() {
            return self.null(form, value, path, depth);
        }
        match form {
            GoValueType::Any => Ok(()),
            GoValueType::Struct(name) => match facts::go_type(name) {
                Some(known) => self.fields(known, value, path, depth + 1),
                None => Ok(()),
            },
            GoValueType::List(items) => {
                let Value::Array(list) = value else {
                    return Err(scalar::unexpected("a list", value, path));
                };
                let start = path.len();
                for (at, item) in list.iter_mut().enumerate() {
                    push_item(path, at);
                    let done = self.value(items, item, path, depth + 1);
                    path.truncate(start);
                    done?;
                }
                Ok(())
            }
            GoValueType::Map(items) => {
                let Value::Object(map) = value else {
                    return Err(scalar::unexpected("a map", value, path));
                };
                let start = path.len();
                // Go writes maps in the order of their keys.
                map.sort_keys();
                for (key, item) in map.iter_mut() {
                    push_field(path, key);
                    let done = self.value(items, item, path, depth + 1);
                    path.truncate(start);
                    done?;
                }
                Ok(())
            }
            GoValueType::Text
            | GoValueType::Bool
            | GoValueType::Int32
            | GoValueType::Int64
            | GoValueType::Float
            | GoValueType::Bytes
            | GoValueType::Quantity
            | GoValueType::Time
            | GoValueType::MicroTime
            | GoValueType::IntOrText => scalar::settle(form, value, path),
        }
    }

    /// Replaces null, as an item of a list or a map, by the zero value of its type.
    fn null(
        &mut self,
        form: &GoValueType,
        value: &mut Value,
        path: &mut String,
        depth: usize,
    ) -> Result<(), TypeMismatch> {
        *value = match form {
            GoValueType::Text | GoValueType::Bytes => json!(""),
            GoValueType::Bool => json!(false),
            GoValueType::Int32
            | GoValueType::Int64
            | GoValueType::Float
            | GoValueType::IntOrText => json!(0),
            GoValueType::Quantity => json!("0"),
            GoValueType::Struct(name) => {
                let mut value = json!({});
                if let Some(known) = facts::go_type(name) {
                    self.fields(known, &mut value, path, depth + 1)?;
                }
                value
            }
            GoValueType::Time
            | GoValueType::MicroTime
            | GoValueType::Any
            | GoValueType::List(_)
            | GoValueType::Map(_) => {
                return Ok(());
            }
        };
        Ok(())
    }
}

/// Returns the zero value of a field of a definition. For a status, this is its state before the first report.
pub(super) fn zero(definition: &str, field: &str) -> Value {
    let known = facts::go_type(definition);
    let form = known.and_then(|it| it.fields.iter().find(|it| it.name == field));
    let mut value = Value::Null;
    let mut walk = NativeDecoder { unknown: Vec::new() };
    if let Some(field) = form
        && let Err(problem) = walk.null(&field.form, &mut value, &mut String::new(), 0)
    {
        // Zero values have no wrong types.
        tracing::debug!(definition, problem, "no zero value");
    }
    value
}
