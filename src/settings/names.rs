//! Names on objects: paths of fields, and the prefix of annotations.

/// A path of keys into an object: `spec.field` is `["spec", "field"]`; the empty path is the object itself.
pub type FieldPath = Vec<String>;

/// The prefix of annotations and of the finalizer, shared with Kopf.
pub const PREFIX: &str = "kopf.zalando.org";
