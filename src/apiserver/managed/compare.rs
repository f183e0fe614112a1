//! The difference between two versions of an object, as sets of fields.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    collect::is_empty_value,
    element::{Element, same},
    set::FieldSet,
    typing::{FieldType, ManagedForm, Order, TypeSource},
};

/// The changed and removed fields.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    /// Fields that were added or have another value.
    pub(super) set: FieldSet,
    pub(super) removed: FieldSet,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.set.is_empty() && self.removed.is_empty()
    }

    /// Removes some top-level fields.
    pub(super) fn without(self, fields: &[&str]) -> Self {
        Self { set: self.set.without(fields), removed: self.removed.without(fields) }
    }
}

/// Compares two versions. A missing part counts as the same part of `zero`: the fields that the server shows in an object that no client
/// has filled in; `null` if there are none.
pub(super) fn compare(kind: FieldType<'_>, zero: &Value, old: &Value, new: &Value) -> Changes {
    let mut walk = FieldComparison::default();
    walk.node(kind, zero, Pair { old: Some(old), new: Some(new) });
    walk.changes
}

#[derive(Default)]
struct FieldComparison {
    changes: Changes,
    path: Vec<Element>,
}

/// The same field in both versions. At least one of them has it.
#[derive(Clone, Copy)]
struct Pair<'a> {
    old: Option<&'a Value>,
    new: Option<&'a Value>,
}

const NOTHING: Value = Value::Null;

impl FieldComparison {
    fn node(&mut self, kind: FieldType<'_>, zero: &Value, pair: Pair<'_>) {
        if let (Some(old), Some(new)) = (pair.old, pair.new)
            && old == new
        {
            return;
        }
        let old = pair.old.map(|it| kind.form(it));
        let new = pair.new.map(|it| kind.form(it));
        if let Some(form) = old.filter(|it| new.is_some_and(|new| new != *it)) {
            self.by_form(kind, form, zero, pair);
        }
        if let Some(form) = new.or(old) {
            self.by_form(kind, form, zero, pair);
        }
    }

    fn by_form(
        &mut self,
        kind: FieldType<'_>,
        form: ManagedForm<'_>,
        zero: &Value,
        pair: Pair<'_>,
    ) {
        let empty = |value: Option<&Value>| match (form, value) {
            (ManagedForm::Map, Some(Value::Object(fields))) => fields.is_empty(),
            (ManagedForm::List(_), Some(Value::Array(items))) => items.is_empty(),
            (ManagedForm::Map | ManagedForm::List(_), _) => true,
            (ManagedForm::Leaf, _) => false,
        };
        if form == ManagedForm::Leaf || (empty(pair.old) && empty(pair.new)) {
            return self.leaf(pair);
        }
        match form {
            ManagedForm::Leaf => {}
            ManagedForm::Map => self.map(kind, zero, pair),
            ManagedForm::List(order) => {
                if !self.list(kind, order, pair) {
                    return self.leaf(pair);
                }
            }
        }
        if pair.old.is_none() {
            self.changes.set.insert(&self.path);
        } else if pair.new.is_none() {
            self.changes.removed.insert(&self.path);
        }
    }

    fn leaf(&mut self, pair: Pair<'_>) {
        match (pair.old, pair.new) {
            (Some(old), Some(new)) if same(old, new) => {}
            (Some(_), None) => self.changes.removed.insert(&self.path),
            (_, Some(_)) => self.changes.set.insert(&self.path),
            (None, None) => {}
        }
    }

    fn map(&mut self, kind: FieldType<'_>, zero: &Value, pair: Pair<'_>) {
        let metadata = matches!(kind.node, TypeSource::Metadata);
        let old = pair.old.and_then(Value::as_object);
        let new = pair.new.and_then(Value::as_object);
        let added = new
            .into_iter()
            .flatten()
            .filter(|(name, _)| old.is_none_or(|it| !it.contains_key(*name)));
        for (name, _) in old.into_iter().flatten().chain(added) {
            // `managedFields` describes fields and is not managed itself.
            if metadata && name == "managedFields" {
                continue;
            }
            let default = zero.get(name);
            // Empty fields of metadata are never stored.
            let kept = |it: &&Value| !metadata || !is_empty_value(it);
            let (kind, _) = kind.field(name);
            let pair = Pair {
                old: old.and_then(|it| it.get(name)).filter(kept).or(default),
                new: new.and_then(|it| it.get(name)).filter(kept).or(default),
            };
            if pair.old.is_none() && pair.new.is_none() {
                continue;
            }
            self.path.push(Element::Field(name.clone()));
            self.node(kind, default.unwrap_or(&NOTHING), pair);
            self.path.pop();
        }
    }

    /// Compares the items of a list. Returns whether they can be distinguished.
    fn list(&mut self, kind: FieldType<'_>, order: Order<'_>, pair: Pair<'_>) -> bool {
        let mut items: BTreeMap<Element, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for item in pair.old.and_then(Value::as_array).into_iter().flatten() {
            let Ok(element) = kind.element(order, item) else { return false };
            items.entry(element).or_default().0.push(item);
        }
        for item in pair.new.and_then(Value::as_array).into_iter().flatten() {
            let Ok(element) = kind.element(order, item) else { return false };
            items.entry(element).or_default().1.push(item);
        }
        for (element, (old, new)) in items {
            self.path.push(element);
            match (old.as_slice(), new.as_slice()) {
                ([_] | [], [_] | []) => {
                    let pair = Pair { old: old.first().copied(), new: new.first().copied() };
                    self.node(kind.items(), &NOTHING, pair);
                }
                // Native kinds allow some duplicates, which are a single field together.
                (_, []) => self.changes.removed.insert(&self.path),
                (old, new) => {
                    let equal =
                        old.len() == new.len() && old.iter().zip(new).all(|(a, b)| same(a, b));
                    if !equal {
                        self.changes.set.insert(&self.path);
                    }
                }
            }
            self.path.pop();
        }
        true
    }
}
