//! The kinds that are compiled into Kubernetes: what is served, their fields, defaults and rules.
//!
//! The order of a write: [`decode`] (drops what is unknown or empty), `defaults`, then `created` or `updated`, then `check`.

mod autoscalers;
mod check;
mod decode;
mod defaults;
mod events;
pub(crate) mod facts;
mod image;
pub(crate) mod kinds;
mod lifecycle;
mod published;
pub(crate) mod quantity;
mod reviews;
mod rules;
mod scalar;
#[cfg(test)]
mod tests;

use serde_json::Value;

pub use self::published::{BuiltInKind, built_in_definition, built_in_kinds};
pub(crate) use self::{
    decode::{OBJECT_META, decode, decode_as, order},
    facts::{definition, raw_definitions},
    kinds::{kinds, subresources},
    lifecycle::{label_namespace, tolerate},
};
use crate::refusal::{Problem, Refusal};

/// What the server knows of a native kind beyond its names. Every function has a default that does nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Native {
    /// The name of its schema, as in `io.k8s.api.core.v1.Pod`.
    pub(crate) schema: &'static str,
    /// Fills in what clients may leave out. Runs after every write, before the checks.
    pub(crate) defaults: fn(&mut Value),
    /// What only the server sets on a new object, such as the phase of a Pod; also clears what clients may not set.
    /// The object has its name, namespace and uid by then.
    pub(crate) created: fn(&mut Value),
    /// What a change keeps of the old object: fields that this writer cannot set. Before the checks.
    pub(crate) updated: fn(old: &Value, new: &mut Value),
    /// What a write of the status keeps of the old object, in the same way.
    pub(crate) status_updated: fn(old: &Value, new: &mut Value),
    /// What is wrong with a new object, or with a change of an old one.
    pub(crate) check: fn(new: &Value, old: Option<&Value>) -> Vec<Problem>,
    /// Selectable fields beside `metadata.name` and `metadata.namespace`: the name, and the JSON pointer of its value.
    pub(crate) fields: &'static [(&'static str, &'static str)],
    /// What a selectable field is when it is missing in the object, such as `false`; empty unless listed here.
    pub(crate) fields_missing: &'static [(&'static str, &'static str)],
    /// Whether changes are counted in `metadata.generation`.
    pub(crate) generations: bool,
    /// The changes that are counted, as JSON pointers.
    pub(crate) counted: &'static [&'static str],
    /// Fields that a client does not manage although it may write them once.
    pub(crate) reset: &'static [&'static str],
    /// Whether a PUT of an object that does not exist creates it.
    pub(crate) put_creates: bool,
    /// Whether a deletion that does not say otherwise leaves behind what the object owns, as it was in the first versions.
    pub(crate) orphans: bool,
    /// Answers a creation without storing anything, as reviews do.
    pub(crate) review: Option<fn(Value) -> Result<Value, Refusal>>,
    /// Between the stored version and the others, if their shapes differ.
    pub(crate) conversion: Option<&'static Conversion>,
    /// What clients that read or write it are warned of.
    pub(crate) warning: Option<&'static str>,
    /// The same objects are served by another resource too, under another shape.
    pub(crate) twin: Option<&'static Twin>,
}

/// A second view of stored objects: `events.k8s.io/v1` shows the events of the core group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Twin {
    /// The qualified plural of the resource that stores the objects.
    pub(crate) stored_as: &'static str,
    /// From this view to the stored shape. The body went through `decode` of this kind before.
    pub(crate) to_stored: fn(Value) -> Value,
    pub(crate) from_stored: fn(Value) -> Value,
}

/// How objects are translated between the version that they are stored in and another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conversion {
    pub(crate) version: &'static str,
    pub(crate) to_stored: fn(&mut Value),
    pub(crate) from_stored: fn(&mut Value),
}

impl Native {
    /// A kind without rules of its own.
    pub(crate) const fn plain(schema: &'static str) -> Self {
        Self {
            schema,
            defaults: |_| {},
            created: |_| {},
            updated: |_, _| {},
            status_updated: |_, _| {},
            check: |_, _| Vec::new(),
            fields: &[],
            fields_missing: &[],
            generations: false,
            counted: &["/spec"],
            reset: &[],
            put_creates: false,
            orphans: false,
            review: None,
            conversion: None,
            warning: None,
            twin: None,
        }
    }
}
