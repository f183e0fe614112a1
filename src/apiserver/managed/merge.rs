//! Merges an applied configuration into an object, and removes fields that are no longer applied.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::{
    collect::{is_empty_value, present, with_named},
    element::Element,
    set::FieldSet,
    typing::{FieldType, ManagedForm, Order},
};
use crate::sorted::CollectSorted as _;

/// Returns the live value with all fields of the configuration. Existing fields keep their order, new ones follow.
pub(super) fn merge(kind: FieldType<'_>, live: &Value, config: &Value) -> Value {
    let form = kind.form(config);
    if form == ManagedForm::Leaf || form != kind.form(live) {
        return config.clone();
    }
    match (form, live, config) {
        (ManagedForm::Map, Value::Object(live), Value::Object(config)) => {
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
        (ManagedForm::List(order), Value::Array(live), Value::Array(config)) => {
            match merge_items(kind, order, (live, config)) {
                Some(items) => Value::Array(items),
                None => Value::Array(config.clone()),
            }
        }
        // An explicit null keeps an existing value, unless that is empty, too.
        (_, live, Value::Null) if !is_empty_value(live) => live.clone(),
        _ => config.clone(),
    }
}

/// Merges two lists. Items of the configuration keep their order; other items of the live list stay between the same neighbors.
fn merge_items(
    kind: FieldType<'_>,
    order: Order<'_>,
    (live, config): (&[Value], &[Value]),
) -> Option<Vec<Value>> {
    let elements = |items: &[Value]| -> Option<Vec<Element>> {
        items.iter().map(|it| kind.element(order, it).ok()).collect()
    };
    let (mine, wanted) = (elements(live)?, elements(config)?);
    let mut counts: BTreeMap<&Element, usize> = BTreeMap::new();
    for element in &mine {
        let count = counts.entry(element).or_default();
        *count = count.saturating_add(1);
    }
    // Duplicates of an applied item are replaced by it.
    let of_both = |element: &Element, config: &Value| {
        let at = mine.iter().position(|it| it == element);
        match at.and_then(|at| live.get(at)).filter(|_| counts.get(element) == Some(&1)) {
            Some(live) => merge(kind.items(), live, config),
            None => config.clone(),
        }
    };
    let is_wanted: BTreeSet<&Element> = wanted.iter().collect_set();
    let mut shared: VecDeque<&Element> =
        wanted.iter().filter(|it| counts.contains_key(it)).collect();
    let mut next = shared.pop_front();
    let mut done: BTreeSet<&Element> = BTreeSet::new();
    let mut merged = Vec::new();
    let (mut left, mut right) =
        (mine.iter().zip(live).peekable(), wanted.iter().zip(config).peekable());
    while left.peek().is_some() || right.peek().is_some() {
        if let (Some((own, _)), Some((other, config))) = (left.peek(), right.peek()) {
            if own == other {
                merged.push(of_both(other, config));
                done.insert(other);
                left.next();
                right.next();
                next = shared.pop_front();
                continue;
            }
            if is_wanted.contains(own) && next.is_some_and(|it| it != *own) {
                left.next();
                continue;
            }
        }
        if let Some((own, item)) = left.peek() {
            if !is_wanted.contains(own) {
                merged.push((*item).clone());
                left.next();
                continue;
            }
            if done.contains(own) {
                left.next();
            }
        }
        if let Some((other, config)) = right.next() {
            merged.push(of_both(other, config));
            done.insert(other);
            if next == Some(other) {
                next = shared.pop_front();
            }
        }
    }
    Some(merged)
}

/// Removes fields from a value.
pub(super) fn remove(kind: FieldType<'_>, value: &mut Value, set: &FieldSet) {
    match (kind.form(value), value) {
        (ManagedForm::Map, Value::Object(fields)) => fields.retain(|name, value| {
            let Some(node) = set.get(&Element::Field(name.clone())) else { return true };
            if node.member {
                return false;
            }
            let before = is_empty_value(value);
            remove(kind.field(name).0, value, &node.below);
            // The real server leaves null here, which native kinds do not show.
            !kind.native || before || !is_empty_value(value)
        }),
        (ManagedForm::List(order), Value::Array(items)) => items.retain_mut(|item| {
            let Ok(element) = kind.element(order, item) else { return true };
            let Some(node) = set.get(&element) else { return true };
            if !node.member {
                remove(kind.items(), item, &node.below);
            }
            !node.member
        }),
        (ManagedForm::Leaf | ManagedForm::Map | ManagedForm::List(_), _) => {}
    }
}

/// Removes fields that the manager has applied before, does not apply any more, and no other manager owns.
pub(super) fn prune(
    kind: FieldType<'_>,
    merged: Value,
    last: &FieldSet,
    managed: &FieldSet,
) -> Value {
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
    // Fields of other managers are restored, with everything below them.
    let kept = present(kind, &without(&last)).union(&with_named(kind, managed));
    let kept = present(kind, &without(&all.difference(&kept)));
    // Fields that this manager has never applied stay.
    without(&all.difference(&kept).intersection(&last))
}
