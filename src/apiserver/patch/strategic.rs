//! Strategic merge patches: merges that use the patch strategy and the merge key of lists.
//!
//! A patch may have directives: `$patch`, `$retainKeys`, `$setElementOrder/LIST`, `$deleteFromPrimitiveList/LIST`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::sorted;
use crate::{
    refusal::{Refusal, go},
    request::json::{sorted_json, type_name},
    schema::{PatchRule, Schema, SchemaOrRef, SchemaShape},
};

const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder";
const DELETE: &str = "$deleteFromPrimitiveList";

type JsonObject = Map<String, Value>;

/// The schema of a field. Without a schema, every patch is accepted.
#[derive(Clone, Copy, Default)]
struct FieldSchema<'a> {
    schema: Option<&'a Schema>,
    /// The Go name of the type; empty for anonymous types.
    name: &'a str,
}

impl<'a> FieldSchema<'a> {
    /// Returns the schema of a field. Fails if the type does not have it.
    fn field(self, name: &str) -> Result<Self, Refusal> {
        let Some(Schema { shape: SchemaShape::Map { fields, rest, .. }, .. }) = self.schema else {
            return Ok(Self::default());
        };
        match fields.get(name).or(rest.as_ref()) {
            Some(link) => Ok(Self::of(link)),
            None if fields.is_empty() => Ok(Self::default()),
            None => Err(Refusal::unclassed(format!(
                "unable to find api field in struct {} for the json field \"{name}\"",
                self.name
            ))),
        }
    }

    fn items(self) -> Self {
        match self.schema.map(|it| &it.shape) {
            Some(SchemaShape::List { items: Some(link), .. }) => Self::of(link),
            _ => Self::default(),
        }
    }

    fn of(link: &'a SchemaOrRef) -> Self {
        let name = match link {
            SchemaOrRef::Own(_) => "",
            SchemaOrRef::Named(name) => name.rsplit('.').next().unwrap_or(name),
        };
        Self { schema: link.schema(), name }
    }

    fn rule(self) -> PatchRule {
        self.schema.map(|it| it.patch.clone()).unwrap_or_default()
    }
}

/// Merges a patch into an object.
pub(super) fn apply(
    patch: &Value,
    object: &Value,
    schema: Option<&Schema>,
) -> Result<Value, Refusal> {
    let (Value::Object(patch), Value::Object(own)) = (patch, object) else {
        return Ok(object.clone());
    };
    let name = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    merge_maps(own.clone(), patch.clone(), FieldSchema { schema, name }).map(Value::Object)
}

fn merge_maps(
    mut own: JsonObject,
    mut patch: JsonObject,
    known: FieldSchema<'_>,
) -> Result<JsonObject, Refusal> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => {
                patch.shift_remove(DIRECTIVE);
                Ok(patch)
            }
            Some("delete") => Ok(JsonObject::new()),
            _ => Err(unknown_directive(directive, &patch)),
        };
    }
    retain_keys(&mut own, &mut patch)?;
    order_lists(&mut own, &mut patch, known)?;
    for (key, value) in patch {
        let deleted = key.starts_with(DELETE);
        let key = if deleted { suffix(&key, DELETE, "primitive list")? } else { key };
        if value.is_null() {
            own.shift_remove(&key);
            continue;
        }
        let merged = match (own.get_mut(&key).map(Value::take), value) {
            (Some(Value::Object(inner)), Value::Object(fields)) => {
                Value::Object(merge_maps(inner, fields, known.field(&key)?)?)
            }
            (Some(Value::Array(items)), Value::Array(changes)) => {
                Value::Array(merge_lists(items, changes, known.field(&key)?, deleted)?)
            }
            (_, mut added) => {
                strip_directives(&mut added);
                added
            }
        };
        own.insert(key, merged);
    }
    Ok(own)
}

/// Removes directives from added values, into which nothing is merged.
fn strip_directives(added: &mut Value) {
    match added {
        Value::Object(fields) => {
            fields.shift_remove(DIRECTIVE);
            fields.values_mut().for_each(strip_directives);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_directives),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Executes `$retainKeys`: removes all other fields. The patch must not have any of them.
fn retain_keys(own: &mut JsonObject, patch: &mut JsonObject) -> Result<(), Refusal> {
    let bad = || Refusal::bad_request("invalid patch format of retainKeys");
    let Some(keys) = patch.shift_remove(RETAIN) else { return Ok(()) };
    let keys = keys.as_array().ok_or_else(bad)?;
    let keys: BTreeSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let directive = |key: &str| key.starts_with(DELETE) || key.starts_with(ORDER);
    let fits = |(key, value): (&String, &Value)| {
        value.is_null() || directive(key) || keys.contains(key.as_str())
    };
    if !patch.iter().all(fits) {
        return Err(bad());
    }
    own.retain(|key, _| keys.contains(key.as_str()));
    Ok(())
}

/// Executes `$setElementOrder`: merges these lists, and sorts their items.
fn order_lists(
    own: &mut JsonObject,
    patch: &mut JsonObject,
    known: FieldSchema<'_>,
) -> Result<(), Refusal> {
    let names: Vec<String> = patch.keys().filter(|it| it.starts_with(ORDER)).cloned().collect();
    for name in names {
        let order = patch.shift_remove(&name).unwrap_or_default();
        let order = list(order)?;
        let key = suffix(&name, ORDER, "setElementOrder list")?;
        let before = own.get(&key).cloned().map(list).transpose()?;
        let changes = patch.get(&key).cloned().map(list).transpose()?;
        let field = known.field(&key)?;
        let merge_key = field.rule().key;
        let merge_key = merge_key.as_deref();
        if let Some(changes) = &changes {
            check_order(changes, &order, merge_key)?;
        }
        let merged = match (&before, &changes) {
            (None, None) => continue,
            (Some(before), None) => before.clone(),
            (None, Some(changes)) => changes.clone(),
            (Some(before), Some(changes)) => {
                merge_lists(before.clone(), changes.clone(), field, false)?
            }
        };
        let before = before.unwrap_or_default();
        check_items(&[&before, changes.as_deref().unwrap_or_default()])?;
        let ordered = in_order(merged, &order, &before, merge_key)?;
        own.insert(key.clone(), Value::Array(ordered));
        patch.shift_remove(&key);
    }
    Ok(())
}

/// Checks that the items of a patch have the requested order.
fn check_order(changes: &[Value], order: &[Value], key: Option<&str>) -> Result<(), Refusal> {
    if changes.is_empty() || order.is_empty() {
        return Ok(());
    }
    let plain = |it: &&Value| key.is_none() || it.get(DIRECTIVE).is_none();
    let mut wanted = order.iter();
    for change in changes.iter().filter(plain) {
        let change_key = item_key(change, key)?;
        loop {
            let Some(next) = wanted.next() else {
                let (changes, order) = (go_list(changes), go_list(order));
                return Err(Refusal::unclassed(format!(
                    "The order in patch list:\n{changes}\n doesn't match {ORDER} list:\n{order}\n"
                )));
            };
            if item_key(next, key)? == change_key {
                break;
            }
        }
    }
    Ok(())
}

fn merge_lists(
    own: Vec<Value>,
    patch: Vec<Value>,
    known: FieldSchema<'_>,
    deleted: bool,
) -> Result<Vec<Value>, Refusal> {
    let rule = known.rule();
    if !rule.merge {
        return Ok(patch);
    }
    if own.is_empty() && patch.is_empty() {
        return Ok(own);
    }
    check_items(&[&own, &patch])?;
    let maps = own.first().or(patch.first()).is_some_and(Value::is_object);
    if !maps {
        let keys = |items: &[Value]| items.iter().map(sorted_json).collect::<BTreeSet<_>>();
        if deleted {
            let gone = keys(&patch);
            return Ok(own.into_iter().filter(|it| !gone.contains(&sorted_json(it))).collect());
        }
        let mut seen = BTreeSet::new();
        let all = own.iter().chain(&patch).filter(|it| seen.insert(sorted_json(it)));
        let all: Vec<Value> = all.cloned().collect();
        return in_order(all, &patch, &own, None);
    }
    let Some(key) = rule.key.as_deref() else {
        let kind = "struct";
        return Err(Refusal::unclassed(format!(
            "cannot merge lists without merge key for type {kind}"
        )));
    };
    let (own, patch) = take_directives(own, patch, key)?;
    let merged = merge_items(own.clone(), &patch, key, known.items())?;
    in_order(merged, &patch, &own, Some(key))
}

/// Executes the directives in items of the patch: deletes items, or all old ones.
fn take_directives(
    mut own: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), Refusal> {
    let mut plain = Vec::new();
    let mut gone = BTreeSet::new();
    let mut replaced = false;
    for item in patch {
        let Some(directive) = item.get(DIRECTIVE) else {
            plain.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                gone.insert(item_key(&item, Some(key))?);
            }
            Some("replace") => replaced = true,
            Some("merge") => {
                return Err(Refusal::unclassed(
                    "merging lists cannot yet be specified in the patch",
                ));
            }
            _ => {
                let fields = item.as_object().cloned().unwrap_or_default();
                return Err(unknown_directive(directive, &fields));
            }
        }
    }
    if replaced {
        return Ok((plain, Vec::new()));
    }
    own.retain(|it| it.get(key).is_none_or(|value| !gone.contains(&sorted_json(value))));
    Ok((own, plain))
}

/// Merges items with the same key, and appends others.
fn merge_items(
    mut own: Vec<Value>,
    patch: &[Value],
    key: &str,
    known: FieldSchema<'_>,
) -> Result<Vec<Value>, Refusal> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (index, item) in own.iter().enumerate() {
        if let Some(value) = item.get(key) {
            places.entry(sorted_json(value)).or_insert(index);
        }
    }
    for change in patch {
        let name = item_key(change, Some(key))?;
        if let Some(item) = places.get(&name).and_then(|it| own.get_mut(*it)) {
            if let (Value::Object(fields), Value::Object(changes)) = (item.take(), change) {
                *item = Value::Object(merge_maps(fields, changes.clone(), known)?);
                // A nested `$patch: delete` leaves an item without a key, which cannot be found again.
                if item.get(key).is_none() {
                    places.remove(&name);
                }
            }
        } else {
            places.insert(name, own.len());
            own.push(change.clone());
        }
    }
    Ok(own)
}

/// Returns the items of `wanted` in its order. Other items keep their order of `before`, each as far in front as possible.
fn in_order(
    items: Vec<Value>,
    wanted: &[Value],
    before: &[Value],
    key: Option<&str>,
) -> Result<Vec<Value>, Refusal> {
    let positions = |list: &[Value]| {
        let mut positions = BTreeMap::new();
        for (index, item) in list.iter().enumerate() {
            if let Some(value) = key.map_or(Some(item), |key| item.get(key)) {
                positions.entry(sorted_json(value)).or_insert(index);
            }
        }
        positions
    };
    let (wanted, before) = (positions(wanted), positions(before));
    let mut first: Vec<(usize, Option<usize>, Value)> = Vec::new();
    let mut others: Vec<(Option<usize>, Value)> = Vec::new();
    for item in items {
        let name = item_key(&item, key)?;
        let old = before.get(&name).copied();
        match wanted.get(&name) {
            Some(place) => first.push((*place, old, item)),
            None => others.push((old, item)),
        }
    }
    sorted::sort_by_key(&mut first, |(place, _, _)| *place);
    sorted::sort_by_key(&mut others, |(old, _)| *old);
    let mut first = first.into_iter().peekable();
    let mut others = others.into_iter().peekable();
    let mut merged = Vec::new();
    loop {
        // An old item comes first only if it was before the next wanted one.
        let other_first = match (first.peek(), others.peek()) {
            (None, None) => return Ok(merged),
            (None, Some(_)) => true,
            (Some((_, Some(place), _)), Some((Some(old), _))) => old < place,
            (Some(_), Some(_) | None) => false,
        };
        if other_first {
            merged.extend(others.next().map(|(_, item)| item));
        } else {
            merged.extend(first.next().map(|(_, _, item)| item));
        }
    }
}

/// Returns the string by which items are compared: their merge key, or the items themselves.
fn item_key(item: &Value, key: Option<&str>) -> Result<String, Refusal> {
    let Some(key) = key else { return Ok(sorted_json(item)) };
    if !item.is_object() {
        let kind = go::type_of(item);
        return Err(Refusal::unclassed(format!(
            "expected a map[string]interface {{}}, but received a {kind}"
        )));
    }
    item.get(key).map(sorted_json).ok_or_else(|| {
        let map = go::plain(item);
        Refusal::unclassed(format!("map: {map} does not contain declared merge key: {key}"))
    })
}

/// Checks that all items have the same type, and are not lists.
fn check_items(lists: &[&[Value]]) -> Result<(), Refusal> {
    let mut items = lists.iter().flat_map(|it| it.iter());
    let Some(first) = items.next() else {
        return Err(Refusal::unclassed("no elements in any of the given slices"));
    };
    if first.is_array() {
        return Err(Refusal::unprocessable());
    }
    if items.all(|it| type_name(it) == type_name(first)) {
        return Ok(());
    }
    let shown: Vec<String> = lists.iter().map(|it| go_list(it)).collect();
    let shown = shown.join(" ");
    Err(Refusal::unclassed(format!("list element types are not identical: [{shown}]")))
}

/// Returns the text after the slash of a directive.
fn suffix(name: &str, directive: &str, what: &str) -> Result<String, Refusal> {
    match name.split_once('/') {
        Some((start, key)) if start == directive => Ok(key.to_owned()),
        _ => Err(Refusal::bad_request(format!("invalid patch format of {what}"))),
    }
}

fn list(value: Value) -> Result<Vec<Value>, Refusal> {
    if let Value::Array(items) = value {
        return Ok(items);
    }
    let text = format!("expected a []interface {{}}, but received a {}", go::type_of(&value));
    Err(Refusal::unclassed(text))
}

fn unknown_directive(directive: &Value, patch: &JsonObject) -> Refusal {
    let shown = match directive.as_str() {
        Some(text) => text.into(),
        None => format!("%!s({}={})", go::type_of(directive), go::plain(directive)),
    };
    let map = go::plain(&Value::Object(patch.clone()));
    Refusal::unclassed(format!("unknown patch type: {shown} in map: {map}"))
}

fn go_list(items: &[Value]) -> String {
    let items: Vec<String> = items.iter().map(go::plain).collect();
    format!("[{}]", items.join(" "))
}
