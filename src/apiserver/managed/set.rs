//! A set of fields: the tree that `fieldsV1` serializes.

use std::collections::{BTreeMap, btree_map::Entry};

use serde_json::{Map, Value};

use super::element::{Element, Parsed};
use crate::sorted::CollectSorted as _;

/// Limit of the depth of paths. Decoded bodies are not as deep.
const DEPTH_MAX: usize = 256;

/// Fields, by the first element of their paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldSet(BTreeMap<Element, FieldSetNode>);

/// A field that is in the set, or has fields below it that are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldSetNode {
    /// The field itself is in the set, not only some below it.
    pub(super) member: bool,
    /// The fields of the set below it.
    pub(super) below: FieldSet,
}

impl FieldSetNode {
    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl FieldSet {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn get(&self, element: &Element) -> Option<&FieldSetNode> {
        self.0.get(element)
    }

    /// Adds a field and those below it.
    pub(super) fn put(&mut self, element: Element, node: FieldSetNode) {
        if node.is_empty() {
            return;
        }
        match self.0.entry(element) {
            Entry::Vacant(place) => {
                place.insert(node);
            }
            Entry::Occupied(mut place) => {
                let old = place.get_mut();
                old.member |= node.member;
                old.below.extend(node.below);
            }
        }
    }

    /// Adds the field at the end of a path.
    pub(super) fn insert(&mut self, path: &[Element]) {
        let Some((last, above)) = path.split_last() else { return };
        let mut set = self;
        for element in above {
            set = &mut set.0.entry(element.clone()).or_default().below;
        }
        set.0.entry(last.clone()).or_default().member = true;
    }

    /// Adds all fields of another set.
    pub(super) fn extend(&mut self, other: Self) {
        for (element, node) in other.0 {
            self.put(element, node);
        }
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.extend(other.clone());
        all
    }

    /// Returns the fields that are not in the other set.
    pub(super) fn difference(&self, other: &Self) -> Self {
        self.combine(|element, node| match other.0.get(element) {
            None => node.clone(),
            Some(minus) => FieldSetNode {
                member: node.member && !minus.member,
                below: node.below.difference(&minus.below),
            },
        })
    }

    /// Returns the fields that are also in the other set.
    pub(super) fn intersection(&self, other: &Self) -> Self {
        self.combine(|element, node| match other.0.get(element) {
            None => FieldSetNode::default(),
            Some(too) => FieldSetNode {
                member: node.member && too.member,
                below: node.below.intersection(&too.below),
            },
        })
    }

    /// Removes some top-level fields and everything below them.
    pub(super) fn without(mut self, fields: &[&str]) -> Self {
        self.0.retain(|element, _| match element {
            Element::Field(name) => !fields.contains(&name.as_str()),
            Element::Key(_) | Element::Value(_) | Element::Index(_) => true,
        });
        self
    }

    /// Replaces the nodes of the tree; empty ones are dropped.
    pub(super) fn combine(&self, change: impl Fn(&Element, &FieldSetNode) -> FieldSetNode) -> Self {
        let nodes = self.0.iter().map(|(element, node)| (element.clone(), change(element, node)));
        Self(nodes.filter(|(_, node)| !node.is_empty()).collect_map())
    }

    /// Returns the paths of all fields in their form in messages, in the order of the real server: a level before those below it.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.list("", &mut paths);
        paths
    }

    fn list(&self, prefix: &str, paths: &mut Vec<String>) {
        let members = self.0.iter().filter(|(_, node)| node.member);
        paths.extend(members.map(|(element, _)| format!("{prefix}{element}")));
        for (element, node) in self.0.iter().filter(|(_, node)| !node.below.is_empty()) {
            node.below.list(&format!("{prefix}{element}"), paths);
        }
    }

    /// Serializes the set to `fieldsV1`.
    pub(super) fn to_json(&self) -> Value {
        Value::Object(self.to_map(false))
    }

    fn to_map(&self, member: bool) -> Map<String, Value> {
        let mut map = Map::new();
        if member && !self.is_empty() {
            map.insert(".".into(), Value::Object(Map::new()));
        }
        for (element, node) in &self.0 {
            map.insert(element.text(), Value::Object(node.below.to_map(node.member)));
        }
        map
    }

    /// Parses `fieldsV1`; `None` if it is invalid.
    pub(super) fn from_json(json: &Value) -> Option<Self> {
        Some(Self::read(json.as_object()?, 0)?.below)
    }

    fn read(map: &Map<String, Value>, depth: usize) -> Option<FieldSetNode> {
        let mut node = FieldSetNode::default();
        for (key, value) in map {
            if key == "." {
                node.member = true;
                continue;
            }
            let Parsed::Known(element) = Element::parse(key)? else { continue };
            let below = value.as_object().filter(|_| depth < DEPTH_MAX)?;
            node.below.put(element, Self::read(below, depth.saturating_add(1))?);
        }
        // A leaf of the tree is in the set itself.
        node.member |= node.below.is_empty();
        Some(node)
    }
}
