//! The kinds that are compiled into Kubernetes: resources, fields, defaults and validation.
//!
//! The order of a write: [`decode`] (drops unknown and empty fields), `defaults`, then `created` or `updated`, then `check`.

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
use crate::refusal::{Refusal, ValidationProblem};

/// The rules of a native kind. By default, every function does nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Native {
    /// The definition of its schema, such as `io.k8s.api.core.v1.Pod`.
    pub(crate) schema: &'static str,
    /// Fills in defaults. Runs after every write, before the validation.
    pub(crate) defaults: fn(&mut Value),
    /// Sets fields of a new object that only the server sets, such as the phase of a Pod; also clears fields that clients may not
    /// set. The object already has its name, namespace and uid.
    pub(crate) created: fn(&mut Value),
    /// Copies fields from the old object that this writer cannot change. Runs before the validation.
    pub(crate) updated: fn(old: &Value, new: &mut Value),
    /// Does the same for a write of the status.
    pub(crate) status_updated: fn(old: &Value, new: &mut Value),
    /// Validates a new object, or the change of an old one.
    pub(crate) check: fn(new: &Value, old: Option<&Value>) -> Vec<ValidationProblem>,
    /// Field selectors in addition to `metadata.name` and `metadata.namespace`: the name, and the JSON pointer of the value.
    pub(crate) fields: &'static [(&'static str, &'static str)],
    /// Values of selectable fields that are missing in the object, such as `false`; empty unless listed here.
    pub(crate) fields_missing: &'static [(&'static str, &'static str)],
    /// Changes of the fields in `counted` increment `metadata.generation`.
    pub(crate) generations: bool,
    /// The fields whose changes count, as JSON pointers.
    pub(crate) counted: &'static [&'static str],
    /// Fields that managed fields leave out, although clients may write them once.
    pub(crate) reset: &'static [&'static str],
    /// A PUT of an object that does not exist creates it.
    pub(crate) put_creates: bool,
    /// A deletion without a propagation policy orphans the dependents, as in the first versions of a kind.
    pub(crate) orphans: bool,
    /// Responds to a creation without storing anything; for reviews.
    pub(crate) review: Option<fn(Value) -> Result<Value, Refusal>>,
    /// Converts between the stored version and the others, if their fields differ.
    pub(crate) conversion: Option<&'static Conversion>,
    /// The `Warning` header for requests that read or write it.
    pub(crate) warning: Option<&'static str>,
    /// The resource that stores the objects of this one in another form.
    pub(crate) twin: Option<&'static Twin>,
}

/// A second view of stored objects: `events.k8s.io/v1` shows the events of the core group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Twin {
    /// The qualified resource that stores the objects.
    pub(crate) stored_as: &'static str,
    /// Converts from this view to the stored form. `decode` of this kind has run before.
    pub(crate) to_stored: fn(Value) -> Value,
    pub(crate) from_stored: fn(Value) -> Value,
}

/// Conversion between the storage version and another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conversion {
    pub(crate) version: &'static str,
    pub(crate) to_stored: fn(&mut Value),
    pub(crate) from_stored: fn(&mut Value),
}

impl Native {
    /// Returns the rules of a kind without defaults and validation.
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
