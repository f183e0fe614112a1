//! Reads what identifies an object: its body, or a part of it.

use serde_json::Value;

use super::ResourceRef;

/// Identifies an object, or one that is still to be created.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// The resource that the object belongs to.
    pub resource: ResourceRef,
    /// Its name; `None` if the server generates one.
    pub name: Option<String>,
    /// Its namespace, if given.
    pub namespace: Option<String>,
    /// Its uid, if it exists.
    pub uid: Option<String>,
}

impl Reference {
    /// Reads a body, or a reference as in Kubernetes events and `metadata.ownerReferences`.
    ///
    /// # Errors
    /// Fails if it has no kind.
    pub fn of(body: &Value) -> Result<Self, String> {
        let text = |pointer: &str| {
            let found = body.pointer(pointer).and_then(Value::as_str);
            found.filter(|it| !it.is_empty()).map(str::to_owned)
        };
        let missing = |field: &str| {
            format!("the object has no `{field}`: it needs `apiVersion`, `kind` and `metadata`")
        };
        let api_version = text("/apiVersion").ok_or_else(|| missing("apiVersion"))?;
        let kind = text("/kind").ok_or_else(|| missing("kind"))?;
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
        let (group, version) = (group.to_owned(), version.to_owned());
        Ok(Reference {
            resource: ResourceRef::Kind { group, version, kind },
            name: text("/metadata/name").or_else(|| text("/name")),
            namespace: text("/metadata/namespace").or_else(|| text("/namespace")),
            uid: text("/metadata/uid").or_else(|| text("/uid")),
        })
    }
}
