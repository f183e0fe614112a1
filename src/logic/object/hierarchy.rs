//! Helpers for dependent objects: labels, names, namespaces, owner references.
//!
//! They change objects that a script is about to send; nothing is sent here. Each function takes one object, or lists of objects
//! nested to any depth, in which nulls are skipped. The contract is `tests/vectors/hierarchies.json`.

use std::fmt;

use serde_json::{Map, Value};

use super::reference::{self, Ownership};
use crate::settings::FieldPath;

/// The reason why objects cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HierarchyError {
    /// No owner was given, and no object is being handled.
    NoOwner,
    /// No name was given, and the owner has none.
    NoName,
    /// The labels are not a map.
    LabelsNotMap,
    /// A value that is not an object where one is expected.
    NotObject,
    /// A value on the path to this key is not a map.
    NotMap(String),
}

/// The options of an adoption.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Adoption {
    /// Overwrite the fields that the objects already have.
    pub forced: bool,
    /// Use the name of the owner itself, not as a prefix.
    pub strict: bool,
    /// Also label the structures in these fields, such as the template of pods.
    pub nested: Vec<FieldPath>,
}

/// Returns the object that is being handled, for calls without an owner.
pub fn implicit_owner(handled: Option<&Value>) -> Result<&Value, HierarchyError> {
    handled.ok_or(HierarchyError::NoOwner)
}

/// Returns the labels of the owner, for its dependents; may be empty.
pub fn labels_of(owner: &Value) -> Value {
    let labels = owner.pointer("/metadata/labels").filter(|it| !it.is_null());
    labels.cloned().unwrap_or_else(|| Value::Object(Map::new()))
}

/// Returns the name of the owner, for its dependents.
pub fn name_of(owner: &Value) -> Option<&str> {
    owner.pointer("/metadata/name")?.as_str()
}

/// Returns the namespace of the owner, for its dependents; `None` for cluster-scoped owners.
pub fn namespace_of(owner: &Value) -> Option<&str> {
    owner.pointer("/metadata/namespace")?.as_str()
}

/// Adds everything from an owner: the reference, a name, the namespace, the labels.
pub fn adopt(objects: &mut Value, owner: &Value, how: &Adoption) -> Result<(), HierarchyError> {
    append_owner_reference(objects, owner, Ownership::default())?;
    harmonize_naming(objects, name_of(owner), how.forced, how.strict)?;
    adjust_namespace(objects, namespace_of(owner), how.forced)?;
    label(objects, &labels_of(owner), how.forced, &how.nested)
}

/// Adds labels; existing ones are kept unless `forced`.
pub fn label(
    objects: &mut Value,
    labels: &Value,
    forced: bool,
    nested: &[FieldPath],
) -> Result<(), HierarchyError> {
    let labels = labels.as_object().ok_or(HierarchyError::LabelsNotMap)?;
    each(objects, nested, &mut |object| {
        let present = stanza(metadata(object)?, "labels")?;
        for (key, value) in labels {
            if forced || !present.contains_key(key) {
                present.insert(key.clone(), value.clone());
            }
        }
        Ok(())
    })
}

/// Sets `metadata.generateName` of objects to `NAME-`, or `metadata.name` if `strict`. Objects with either keep it unless `forced`.
pub fn harmonize_naming(
    objects: &mut Value,
    name: Option<&str>,
    forced: bool,
    strict: bool,
) -> Result<(), HierarchyError> {
    let name = name.ok_or(HierarchyError::NoName)?;
    let (key, other, value) = if strict {
        ("name", "generateName", name.to_owned())
    } else {
        ("generateName", "name", format!("{name}-"))
    };
    each(objects, &[], &mut |object| {
        let meta = metadata(object)?;
        if forced || !(meta.contains_key("name") || meta.contains_key("generateName")) {
            meta.shift_remove(other);
            meta.insert(key.to_owned(), value.as_str().into());
        }
        Ok(())
    })
}

/// Sets the namespace of objects without one, or of all if `forced`. `None` writes a null.
pub fn adjust_namespace(
    objects: &mut Value,
    namespace: Option<&str>,
    forced: bool,
) -> Result<(), HierarchyError> {
    each(objects, &[], &mut |object| {
        let meta = metadata(object)?;
        if forced || meta.get("namespace").is_none_or(Value::is_null) {
            meta.insert("namespace".to_owned(), namespace.into());
        }
        Ok(())
    })
}

/// Adds a reference to the owner, unless one with the same uid exists, which is kept unchanged.
pub fn append_owner_reference(
    objects: &mut Value,
    owner: &Value,
    ownership: Ownership,
) -> Result<(), HierarchyError> {
    let reference = reference::owner(owner, ownership);
    each(objects, &[], &mut |object| {
        let present = references(object)?;
        if !present.iter().any(|it| it.get("uid") == reference.get("uid")) {
            present.push(reference.clone().into());
        }
        Ok(())
    })
}

/// Removes all references to the owner.
pub fn remove_owner_reference(objects: &mut Value, owner: &Value) -> Result<(), HierarchyError> {
    let uid = owner.pointer("/metadata/uid").cloned();
    each(objects, &[], &mut |object| {
        references(object)?.retain(|it| it.get("uid") != uid.as_ref());
        Ok(())
    })
}

type Act<'a> = &'a mut dyn FnMut(&mut Map<String, Value>) -> Result<(), HierarchyError>;

/// Calls `act` for every object, and for the structures in its nested fields as if they were objects.
fn each(objects: &mut Value, nested: &[FieldPath], act: Act<'_>) -> Result<(), HierarchyError> {
    match objects {
        Value::Null => Ok(()),
        Value::Array(items) => items.iter_mut().try_for_each(|it| each(it, nested, act)),
        Value::Object(object) => {
            act(object)?;
            for field in nested {
                if let Some(part) = part(object, field)? {
                    act(part.as_object_mut().ok_or(HierarchyError::NotObject)?)?;
                }
            }
            Ok(())
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Err(HierarchyError::NotObject),
    }
}

/// Returns the value in a field; `None` if a key on the path is missing.
fn part<'a>(
    object: &'a mut Map<String, Value>,
    field: &[String],
) -> Result<Option<&'a mut Value>, HierarchyError> {
    let Some((first, rest)) = field.split_first() else { return Ok(None) };
    let mut current = object.get_mut(first);
    for key in rest {
        let Some(value) = current else { return Ok(None) };
        let map = value.as_object_mut().ok_or_else(|| HierarchyError::NotMap(key.clone()))?;
        current = map.get_mut(key);
    }
    Ok(current)
}

fn metadata(object: &mut Map<String, Value>) -> Result<&mut Map<String, Value>, HierarchyError> {
    stanza(object, "metadata")
}

fn stanza<'a>(
    map: &'a mut Map<String, Value>,
    key: &str,
) -> Result<&'a mut Map<String, Value>, HierarchyError> {
    map.entry(key)
        .or_insert_with(|| Value::Object(Map::new()))
        .as_object_mut()
        .ok_or_else(|| HierarchyError::NotMap(key.to_owned()))
}

fn references(object: &mut Map<String, Value>) -> Result<&mut Vec<Value>, HierarchyError> {
    metadata(object)?
        .entry("ownerReferences")
        .or_insert_with(|| Value::Array(Vec::new()))
        .as_array_mut()
        .ok_or_else(|| HierarchyError::NotMap("ownerReferences".to_owned()))
}

impl fmt::Display for HierarchyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HierarchyError::NoOwner => {
                f.write_str("the owner must be set explicitly: no object is being handled")
            }
            HierarchyError::NoName => {
                f.write_str("the name must be set explicitly: the owner has none")
            }
            HierarchyError::LabelsNotMap => f.write_str("labels must be a map"),
            HierarchyError::NotObject => f.write_str("expected an object or a list of objects"),
            HierarchyError::NotMap(key) => write!(f, "the structure is not a map at {key:?}"),
        }
    }
}

impl std::error::Error for HierarchyError {}
