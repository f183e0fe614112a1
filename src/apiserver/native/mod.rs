//! The kinds that are compiled into Kubernetes: what is served, their fields, defaults and rules.

use serde_json::Value;

use crate::apiserver::{refusal::Problem, schema::Schema};

/// What the server knows of a native kind beyond its names. Every function has a default that does nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Native {
    /// The name of its schema, as in `io.k8s.api.core.v1.Pod`.
    pub(crate) schema: &'static str,
    /// Fills in what clients may leave out. Runs after every write, before the checks.
    pub(crate) defaults: fn(&mut Value),
    /// What only the server sets on a new object, such as the phase of a Pod; also clears what clients may not set.
    pub(crate) created: fn(&mut Value),
    /// What a change keeps of the old object: fields that this writer cannot set. Before the checks.
    pub(crate) updated: fn(old: &Value, new: &mut Value),
    /// What is wrong with a new object, or with a change of an old one.
    pub(crate) check: fn(new: &Value, old: Option<&Value>) -> Vec<Problem>,
    /// Selectable fields beside `metadata.name` and `metadata.namespace`: the name, and the JSON pointer of its value.
    pub(crate) fields: &'static [(&'static str, &'static str)],
    /// Whether changes of the spec are counted in `metadata.generation`.
    pub(crate) generations: bool,
    /// Answers a creation without storing anything, as reviews do.
    pub(crate) review: Option<fn(Value) -> Value>,
}

impl Native {
    /// A kind without rules of its own.
    pub(crate) const fn plain(schema: &'static str) -> Self {
        Self {
            schema,
            defaults: |_| {},
            created: |_| {},
            updated: |_, _| {},
            check: |_, _| Vec::new(),
            fields: &[],
            generations: false,
            review: None,
        }
    }
}

/// A shared definition of the native kinds by its name, as in `io.k8s.api.core.v1.Pod`.
pub(crate) fn definition(_name: &str) -> Option<&'static Schema> {
    None
}
