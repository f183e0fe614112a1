//! The schemas in a document: those of the served kinds, and those that they refer to.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value};

use super::publish;
use crate::resource::kind::Kind;

/// The part of `meta.k8s.io` that requests and responses of all kinds use.
pub(super) const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// Group, version and kind.
type Gvk = (String, String, String);

/// OpenAPI v2 schemas by name.
#[derive(Debug, Default)]
pub(super) struct OpenApiDefinitions {
    pub(super) all: Map<String, Value>,
    names: BTreeMap<Gvk, String>,
}

impl OpenApiDefinitions {
    /// Selects the definitions that the served kinds need from those of all native kinds.
    pub(super) fn collect(kinds: &[Arc<Kind>], mut natives: Map<String, Value>) -> Self {
        let mut found = Self::default();
        let names = index(&natives);
        let mut wanted: Vec<String> =
            ["DeleteOptions", "ListMeta", "ObjectMeta", "Patch", "Status"]
                .map(|it| format!("{META}{it}"))
                .into();
        let scale = ("autoscaling".into(), "v1".into(), "Scale".into());
        wanted.extend(names.get(&scale).cloned());
        for kind in kinds {
            for version in &kind.def.versions {
                if !kind.def.native {
                    found.publish(kind, version);
                    continue;
                }
                for suffix in ["", "List"] {
                    let gvk = gvk(&kind.def.group, version, &format!("{}{suffix}", kind.def.kind));
                    if let Some(name) = names.get(&gvk) {
                        wanted.push(name.clone());
                        found.names.insert(gvk, name.clone());
                    }
                }
            }
        }
        if let Some(name) = names.get(&scale) {
            found.names.insert(scale, name.clone());
        }
        // Each definition is taken once, so the loop ends even if definitions refer to each other.
        while let Some(name) = wanted.pop() {
            if let Some(schema) = natives.shift_remove(&name) {
                references(&schema, &mut wanted);
                found.all.insert(name, schema);
            }
        }
        found.all.sort_keys();
        found
    }

    /// Returns the name of the definition of a kind.
    pub(super) fn name(&self, group: &str, version: &str, kind: &str) -> Option<&str> {
        self.names.get(&gvk(group, version, kind)).map(String::as_str)
    }

    /// Adds the definitions of a kind of a CRD, and of its list.
    fn publish(&mut self, kind: &Kind, version: &str) {
        let def = &kind.def;
        let name = publish::name(&def.group, version, &def.kind);
        let schema = kind.versions.get(version).and_then(|it| it.raw_schema.as_deref());
        let list = publish::list(def, version, &name);
        self.names.insert(gvk(&def.group, version, &def.kind), name.clone());
        self.names
            .insert(gvk(&def.group, version, &format!("{}List", def.kind)), format!("{name}List"));
        self.all.insert(format!("{name}List"), list);
        self.all.insert(name, publish::object(def, version, schema));
    }
}

fn gvk(group: &str, version: &str, kind: &str) -> Gvk {
    (group.into(), version.into(), kind.into())
}

/// Returns the definition of each kind. Some definitions, such as `DeleteOptions`, describe many kinds.
fn index(definitions: &Map<String, Value>) -> BTreeMap<Gvk, String> {
    let mut index = BTreeMap::new();
    for (name, schema) in definitions {
        let kinds = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
        for kind in kinds.into_iter().flatten() {
            let text = |field: &str| kind.get(field).and_then(Value::as_str).unwrap_or_default();
            index.insert(gvk(text("group"), text("version"), text("kind")), name.clone());
        }
    }
    index
}

/// Collects the names of the definitions that a schema refers to.
fn references(schema: &Value, found: &mut Vec<String>) {
    let mut waiting = vec![schema];
    while let Some(value) = waiting.pop() {
        match value {
            Value::Object(fields) => {
                let name = fields.get("$ref").and_then(Value::as_str);
                found.extend(name.and_then(|it| it.rsplit('/').next()).map(String::from));
                waiting.extend(fields.values());
            }
            Value::Array(items) => waiting.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}
