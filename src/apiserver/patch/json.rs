//! JSON patches, RFC 6902, with the deviations of the real server: a `replace` of a missing field adds it, indexes may count from
//! the end, and a missing value is `null`.

use serde_json::{Map, Value};

use crate::{refusal::Refusal, request::json};

/// Limit of operations, the same as on the real server.
const OPERATIONS_MAX: usize = 10_000;
/// Limit of bytes that all `copy` operations of a patch may add; the real server uses the limit of bodies.
const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Limit of values that all operations of a patch may visit or shift: many small steps in large lists and maps would take minutes.
/// This takes about a second; the real server gives up after one minute.
const WORK_MAX: usize = 50_000_000;

/// One operation of a patch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PatchOperation {
    /// Unknown operations fail when they are applied, not when they are parsed.
    kind: String,
    path: Option<String>,
    from: Option<String>,
    value: Value,
}

/// Parses a patch. Fails with the refusal of the real server.
pub(crate) fn parse(body: &[u8]) -> Result<Vec<PatchOperation>, Refusal> {
    let undecodable = |why: &str| Refusal::bad_request(format!("error decoding patch: {why}"));
    let wrong = |value: &Value, of: &str| {
        undecodable(&format!("expected {of}, got a value of type {}", json::type_name(value)))
    };
    let items = match json::parse(body) {
        Ok(Value::Array(items)) => items,
        Ok(Value::Null) => Vec::new(),
        Ok(other) => return Err(wrong(&other, "a list of operations")),
        Err(why) => return Err(undecodable(&why)),
    };
    let operation = |item: Value| match item {
        Value::Object(fields) => Ok(PatchOperation::read(fields)),
        Value::Null => Ok(PatchOperation::read(Map::new())),
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Err(wrong(&other, "an operation"))
        }
    };
    let operations: Vec<PatchOperation> =
        items.into_iter().map(operation).collect::<Result<_, _>>()?;
    if operations.len() > OPERATIONS_MAX {
        return Err(Refusal::too_many_operations(operations.len(), OPERATIONS_MAX));
    }
    Ok(operations)
}

impl PatchOperation {
    fn read(mut fields: Map<String, Value>) -> Self {
        let mut text = |name: &str| match fields.get_mut(name).map(Value::take) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let (kind, path, from) = (text("op"), text("path"), text("from"));
        let value = fields.get_mut("value").map(Value::take).unwrap_or_default();
        Self { kind: kind.unwrap_or_default(), path, from, value }
    }
}

/// Applies all operations or none. `None` if one of them fails; the real server does not report the reason.
pub(crate) fn apply(operations: &[PatchOperation], object: &Value) -> Option<Value> {
    let mut object = object.clone();
    let mut left = PatchBudget { work: WORK_MAX, copied_bytes: COPIED_BYTES_MAX };
    for operation in operations {
        step(operation, &mut object, &mut left)?;
    }
    Some(object)
}

/// The remaining budget of a patch.
struct PatchBudget {
    work: usize,
    copied_bytes: usize,
}

impl PatchBudget {
    fn spend(&mut self, work: usize) -> Option<()> {
        self.work = self.work.checked_sub(work)?;
        Some(())
    }
}

fn step(operation: &PatchOperation, object: &mut Value, left: &mut PatchBudget) -> Option<()> {
    let path = operation.path.as_deref()?;
    match operation.kind.as_str() {
        "add" => {
            shallow(path, &operation.value, left)?;
            locate(object, path)?.add(operation.value.clone(), left)
        }
        "replace" => {
            shallow(path, &operation.value, left)?;
            locate(object, path)?.replace(operation.value.clone())
        }
        "remove" => locate(object, path)?.remove(left).map(drop),
        "test" => (*locate(object, path)?.get()? == operation.value).then_some(()),
        "move" => {
            let from = operation.from.as_deref()?;
            let value = locate(object, from)?.remove(left)?;
            shallow(path, &value, left)?;
            locate(object, path)?.add(value, left)
        }
        "copy" => {
            let value = locate(object, operation.from.as_deref()?)?.get()?.clone();
            let bytes = serde_json::to_vec(&value).ok()?.len();
            left.copied_bytes = left.copied_bytes.checked_sub(bytes)?;
            shallow(path, &value, left)?;
            locate(object, path)?.add(value, left)
        }
        _ => None,
    }
}

/// Checks that the object does not become too deep with this value at this path.
fn shallow(path: &str, value: &Value, left: &mut PatchBudget) -> Option<()> {
    let above = path.matches('/').count();
    let (depth, count) = json::extent(value);
    left.spend(count)?;
    (above + depth <= json::DEPTH_MAX).then_some(())
}

/// A field or an item, which may not exist yet.
struct PatchLocation<'a> {
    parent: Parent<'a>,
    key: String,
}

enum Parent<'a> {
    Map(&'a mut Map<String, Value>),
    List(&'a mut Vec<Value>),
}

/// Finds the parent of a path. The whole object has none: it cannot be replaced.
fn locate<'a>(object: &'a mut Value, path: &str) -> Option<PatchLocation<'a>> {
    // Like the real server, this ignores the text before the first slash.
    let (_, path) = path.split_once('/')?;
    let (above, key) = match path.rsplit_once('/') {
        Some((above, key)) => (Some(above), key),
        None => (None, path),
    };
    let mut parent = object;
    for part in above.into_iter().flat_map(|it| it.split('/')) {
        parent = match parent {
            Value::Object(fields) => fields.get_mut(&unescape(part))?,
            Value::Array(items) => {
                let at = index(part, items.len())?;
                items.get_mut(at)?
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        };
    }
    let parent = match parent {
        Value::Object(fields) => Parent::Map(fields),
        Value::Array(items) => Parent::List(items),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    };
    Some(PatchLocation { parent, key: unescape(key) })
}

impl PatchLocation<'_> {
    /// Returns the value: a missing field is `null`, a missing item an error.
    fn get(&self) -> Option<&Value> {
        match &self.parent {
            Parent::Map(fields) => Some(fields.get(&self.key).unwrap_or(&Value::Null)),
            Parent::List(items) => items.get(index(&self.key, items.len())?),
        }
    }

    fn add(self, value: Value, left: &mut PatchBudget) -> Option<()> {
        match self.parent {
            Parent::Map(fields) => {
                fields.insert(self.key, value);
            }
            Parent::List(items) if self.key == "-" => items.push(value),
            Parent::List(items) => {
                let at = index(&self.key, items.len() + 1)?;
                left.spend(items.len().saturating_sub(at))?;
                items.insert(at, value);
            }
        }
        Some(())
    }

    fn replace(self, value: Value) -> Option<()> {
        match self.parent {
            Parent::Map(fields) => {
                fields.insert(self.key, value);
            }
            Parent::List(items) => {
                let at = index(&self.key, items.len())?;
                *items.get_mut(at)? = value;
            }
        }
        Some(())
    }

    fn remove(self, left: &mut PatchBudget) -> Option<Value> {
        match self.parent {
            Parent::Map(fields) => {
                // All later fields are shifted.
                left.spend(fields.len())?;
                fields.shift_remove(&self.key)
            }
            Parent::List(items) => {
                let at = index(&self.key, items.len())?;
                left.spend(items.len().saturating_sub(at))?;
                Some(items.remove(at))
            }
        }
    }
}

/// Parses an index below `size`; a negative one counts from the end.
fn index(key: &str, size: usize) -> Option<usize> {
    let number: i64 = key.parse().ok()?;
    let at = match usize::try_from(number) {
        Ok(at) => at,
        Err(_negative) => size.checked_sub(usize::try_from(number.unsigned_abs()).ok()?)?,
    };
    (at < size).then_some(at)
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}
