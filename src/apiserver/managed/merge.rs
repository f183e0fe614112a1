//! Puts an applied configuration into an object, and takes out what is not applied any more.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    collect::{is_nothing, present, with_named},
    element::Element,
    set::FieldSet,
    typing::{Form, Order, Type},
};

/// The live value with all that the configuration sets. The order of what is there stays; what is new comes after it.
pub(super) fn merge(kind: Type<'_>, live: &Value, config: &Value) -> Value {
    let form = kind.form(config);
    if form == Form::Leaf || form != kind.form(live) {
        return config.clone();
    }
    match (form, live, config) {
        (Form::Map, Value::Object(live), Value::Object(config)) => {
            if live.is_empty() && config.is_empty() {
                return Value::Object(Map::new());
            }
            let mut merged = live.clone();
            for (name, config) in config {
                let value = match live.get(name) {
                    Some(live) => merge(kind.field(name).0, live, config),
                    None => config.clone(),
                };
                merged.insert(name.clone(), value);
            }
            Value::Object(merged)
        }
        (Form::List(order), Value::Array(live), Value::Array(config)) => {
            match merge_items(kind, order, (live, config)) {
                Some(items) => Value::Array(items),
                None => Value::Array(config.clone()),
            }
        }
        // An explicit null or nothing at all leaves what is there, unless that is nothing too.
        (_, live, Value::Null) if !is_nothing(live) => live.clone(),
        _ => config.clone(),
    }
}

fn merge_items(
    kind: Type<'_>,
    order: Order<'_>,
    (live, config): (&[Value], &[Value]),
) -> Option<Vec<Value>> {
    let place = |item| Some((kind.element(order, item).ok()?, item));
    let mut wanted = config.iter().map(place).collect::<Option<BTreeMap<Element, &Value>>>()?;
    let mut counts: BTreeMap<Element, usize> = BTreeMap::new();
    for item in live {
        let count = counts.entry(kind.element(order, item).ok()?).or_default();
        *count = count.saturating_add(1);
    }
    let mut merged = Vec::new();
    for item in live {
        let element = kind.element(order, item).ok()?;
        match (wanted.remove(&element), counts.get(&element)) {
            (Some(config), Some(1)) => merged.push(merge(kind.items(), item, config)),
            // Duplicates of what is applied give way to it.
            (Some(config), _) => {
                merged.push(config.clone());
                counts.insert(element, 0);
            }
            (None, Some(0)) => {}
            (None, _) => merged.push(item.clone()),
        }
    }
    for item in config {
        if let Some(config) = wanted.remove(&kind.element(order, item).ok()?) {
            merged.push(config.clone());
        }
    }
    Some(merged)
}

/// Takes fields out of a value.
pub(super) fn remove(kind: Type<'_>, value: &mut Value, set: &FieldSet) {
    match (kind.form(value), value) {
        (Form::Map, Value::Object(fields)) => fields.retain(|name, value| {
            let Some(node) = set.get(&Element::Field(name.clone())) else { return true };
            if node.member {
                return false;
            }
            let before = is_nothing(value);
            remove(kind.field(name).0, value, &node.below);
            // The real server leaves null here, which native kinds do not show.
            !kind.native || before || !is_nothing(value)
        }),
        (Form::List(order), Value::Array(items)) => items.retain_mut(|item| {
            let Ok(element) = kind.element(order, item) else { return true };
            let Some(node) = set.get(&element) else { return true };
            if !node.member {
                remove(kind.items(), item, &node.below);
            }
            !node.member
        }),
        (Form::Leaf | Form::Map | Form::List(_), _) => {}
    }
}

/// Takes out what the manager applied before, applies no more, and nobody else manages.
pub(super) fn prune(kind: Type<'_>, merged: Value, last: &FieldSet, managed: &FieldSet) -> Value {
    if last.is_empty() {
        return merged;
    }
    let last = with_named(kind, last);
    let all = present(kind, &merged);
    let without = |set: &FieldSet| {
        let mut value = merged.clone();
        remove(kind, &mut value, set);
        value
    };
    // What others manage comes back, with all that is in it.
    let kept = present(kind, &without(&last)).union(&with_named(kind, managed));
    let kept = present(kind, &without(&all.difference(&kept)));
    // And what was never applied by this manager stays.
    without(&all.difference(&kept).intersection(&last))
}
