//! Children: how they are marked, recognized and owned.

use kopf_json::values::fingerprint;
use serde_json::{Map, Value, json};
use std::sync::Arc;

use super::{Manifest, contains, digest_text};
use crate::logic::{
    access::kube::without_nulls,
    handlers::reconcile::label_of,
    object::{
        Header, Object,
        reference::{self, Ownership},
        resource::Resource,
    },
};

/// The start of the names of field managers: the id of the handler follows.
const MANAGER: &str = "kopf-";
/// Maximum number of bytes of a field manager.
const MANAGER_MAX: usize = 128;
/// The label with the handler that has applied a child.
const HANDLER: &str = "kopf.dev/reconciler";
/// The label with the uid of the parent.
const PARENT: &str = "kopf.dev/parent";
/// The annotation with the digest of the applied body.
const DIGEST: &str = "kopf.dev/applied";

/// The parent of children, and the handler that applies them.
#[derive(Clone, Copy, Debug)]
pub struct Family<'a> {
    /// The id of the handler.
    pub handler: &'a str,
    /// The parent: the object that the handler is called for.
    pub parent: &'a Object,
    /// The resource of the parent.
    pub resource: &'a Resource,
    /// Whether the parent keeps its finalizer until the handler has deleted the children without an owner reference.
    pub is_held: bool,
}

/// A child as it is applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// Its path in the result of the function.
    pub path: String,
    /// The resource of the child.
    pub resource: Arc<Resource>,
    /// Its namespace; `None` if it is cluster-scoped.
    pub namespace: Option<String>,
    /// The name of the child.
    pub name: String,
    /// Its key among the children.
    pub key: String,
    /// The body to apply.
    pub body: Value,
    /// The digest of the body.
    pub digest: u64,
}

/// A child that exists on the cluster.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The resource of the child.
    pub resource: Arc<Resource>,
    /// The namespace of the child; `None` if it is cluster-scoped.
    pub namespace: Option<String>,
    /// The name of the child.
    pub name: String,
    /// Its key among the children.
    pub key: String,
    /// The child. Its body is parsed only if it is needed: most calls find the children as they were.
    pub object: Arc<Object>,
}

/// Returns the key of a child of an object, whatever its version.
fn key_of(resource: &Resource, namespace: Option<&str>, name: &str) -> String {
    let Resource { group, kind, .. } = resource;
    format!("{kind}.{group}/{}/{name}", namespace.unwrap_or_default())
}

/// Returns the name of a child in messages: `Deployment default/web`.
pub fn shown(resource: &Resource, namespace: Option<&str>, name: &str) -> String {
    let place = namespace.map(|it| format!("{it}/")).unwrap_or_default();
    format!("{} {place}{name}", resource.kind)
}

/// Returns the field manager of a handler.
pub fn manager(handler: &str) -> String {
    let whole = format!("{MANAGER}{handler}");
    if whole.len() <= MANAGER_MAX && whole.chars().all(|it| !it.is_control()) {
        return whole;
    }
    format!("{MANAGER}{}", label_of(handler))
}

/// Returns the uid of the parent of an object that a handler with one of these labels has applied.
pub fn parent_of<'a>(header: &'a Header, labels: &[String]) -> Option<&'a str> {
    let handler = header.labels.get(HANDLER)?.as_str()?;
    let is_ours = labels.iter().any(|it| it == handler);
    header.labels.get(PARENT)?.as_str().filter(|it| is_ours && !it.is_empty())
}

/// Returns the handler label and the parent's uid of an object, as far as it has them.
pub fn identity_of(body: &Value) -> (Option<&str>, Option<&str>) {
    let label = |name: &str| body.get("metadata")?.get("labels")?.get(name)?.as_str();
    (label(HANDLER), label(PARENT))
}

impl Child {
    /// Returns whether the garbage collector deletes it with its parent.
    pub fn is_owned_by(&self, parent: &str) -> bool {
        is_owned_by(&self.body, parent)
    }
}

fn is_owned_by(body: &Value, parent: &str) -> bool {
    let owners = body.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().any(|it| it.get("uid").is_some_and(|it| it == parent))
}

impl Observed {
    /// Takes a child as the watch shows it; `None` if it has no name.
    pub fn new(resource: Arc<Resource>, object: Arc<Object>) -> Option<Self> {
        let (namespace, name) = (object.header().namespace.clone(), object.header().name.clone()?);
        let key = key_of(&resource, namespace.as_deref(), &name);
        Some(Observed { resource, namespace, name, key, object })
    }

    /// Returns the version of the object.
    pub fn version(&self) -> Option<&str> {
        self.object.header().resource_version.as_deref()
    }

    /// Returns the uid, which distinguishes it from an earlier child of the same name.
    pub fn uid(&self) -> Option<&str> {
        self.object.header().uid.as_deref()
    }

    /// Returns whether it is being deleted.
    pub fn is_ending(&self) -> bool {
        self.object.header().deletion_timestamp.is_some()
    }

    /// Returns the digest of the body that was applied last.
    pub fn digest(&self) -> Option<&str> {
        self.object.header().annotations.get(DIGEST)?.as_str()
    }

    /// Returns the label of the handler that has applied it.
    pub fn handler(&self) -> Option<&str> {
        self.object.header().labels.get(HANDLER)?.as_str()
    }

    /// Returns whether the garbage collector deletes it with its parent.
    pub fn is_owned_by(&self, parent: &str) -> bool {
        is_owned_by(self.body(), parent)
    }

    /// Returns whether the object has all fields that are applied to a child.
    pub fn has_all_of(&self, child: &Child) -> bool {
        // Most have them as they were written, which is detected without building their trees.
        child.body.as_object().is_some_and(|it| self.object.is_known_to_contain(it))
            || contains(self.body(), &child.body)
    }

    /// Returns the body as a tree, which is parsed when it is first used.
    pub fn body(&self) -> &Value {
        self.object.body()
    }
}

impl Family<'_> {
    /// Returns a wanted child as it is applied: in its namespace, with its marks and its owner.
    ///
    /// # Errors
    /// Fails if it cannot be a child; the error is the reason.
    pub fn child(&self, manifest: Manifest, resource: Arc<Resource>) -> Result<Child, String> {
        let Manifest { path, namespace, name, mut body, .. } = manifest;
        let parent = self.parent.header();
        let home = parent.namespace.as_deref();
        let namespace = match (resource.namespaced, namespace) {
            (true, Some(it)) => Some(it),
            (true, None) => Some(home.map(str::to_owned).ok_or_else(|| {
                format!("{path}.metadata.namespace is missing: the parent is cluster-scoped")
            })?),
            (false, None) => None,
            (false, Some(it)) => {
                let kind = &resource.kind;
                return Err(format!(
                    "{path}.metadata.namespace is {it:?}, but {kind} is cluster-scoped"
                ));
            }
        };
        self.check_ancestors(&path, &resource, namespace.as_deref(), &name)?;
        let can_be_owned = home.is_none() || home == namespace.as_deref();
        if !can_be_owned && !self.is_held {
            let place = namespace
                .as_ref()
                .map_or("is cluster-scoped".to_owned(), |it| format!("is in the namespace {it:?}"));
            return Err(format!(
                "{path}: it {place}, so it cannot have an owner reference to its parent, and it would never be deleted: set the option `finalizer = true` or `finalize`"
            ));
        }
        let mut meta = match body.remove("metadata") {
            Some(Value::Object(meta)) => meta,
            Some(_) | None => Map::new(),
        };
        for set in [
            "resourceVersion",
            "uid",
            "managedFields",
            "creationTimestamp",
            "generation",
            "selfLink",
        ] {
            meta.shift_remove(set);
        }
        meta.insert("name".into(), name.clone().into());
        if let Some(namespace) = &namespace {
            meta.insert("namespace".into(), namespace.clone().into());
        }
        let uid = parent.uid.clone().unwrap_or_default();
        let marks = [(HANDLER, label_of(self.handler).into()), (PARENT, uid.into())];
        set_in(&mut meta, "labels", marks);
        if can_be_owned {
            let owners = self.owners(meta.get("ownerReferences"));
            meta.insert("ownerReferences".into(), owners);
        }
        body.insert("metadata".into(), Value::Object(meta));
        let mut body = Value::Object(body);
        without_nulls(&mut body);
        let digest = fingerprint(&body);
        if let Some(Value::Object(meta)) = body.get_mut("metadata") {
            set_in(meta, "annotations", [(DIGEST, digest_text(digest).into())]);
        }
        let key = key_of(&resource, namespace.as_deref(), &name);
        Ok(Child { path, resource, namespace, name, key, body, digest })
    }

    /// Rejects the parent itself and its owners: each would wait for the deletion of the other.
    fn check_ancestors(
        &self,
        path: &str,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<(), String> {
        let parent = self.parent.header();
        let is_same_kind =
            |kind: &str, group: &str| resource.kind == kind && resource.group == group;
        if is_same_kind(&self.resource.kind, &self.resource.group)
            && parent.name.as_deref() == Some(name)
            && parent.namespace.as_deref() == namespace
        {
            return Err(format!("{path}: it is its own parent"));
        }
        let body = self.parent.body();
        let owners = body.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        for owner in owners.into_iter().flatten() {
            let text = |key: &str| owner.get(key).and_then(Value::as_str).unwrap_or_default();
            let group = text("apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
            let is_near = namespace.is_none() || namespace == parent.namespace.as_deref();
            if is_same_kind(text("kind"), group) && text("name") == name && is_near {
                return Err(format!(
                    "{path}: {} {name:?} owns the parent, so it cannot be its child",
                    resource.kind
                ));
            }
        }
        Ok(())
    }

    /// Returns the owners that the function has set, and the parent.
    fn owners(&self, given: Option<&Value>) -> Value {
        let reference = self.resource.reference_to(self.parent.header());
        let own = Value::Object(reference::owner_of(&reference, Ownership::default()));
        let given = given.and_then(Value::as_array).cloned().unwrap_or_default();
        let others = given.into_iter().filter(|it| it.get("uid") != own.get("uid"));
        let has_controller = |it: &Value| it.get("controller") == Some(&json!(true));
        let mut all: Vec<_> = others.collect();
        if !all.iter().any(has_controller) {
            all.push(own);
        } else if let Value::Object(mut own) = own {
            own.insert("controller".into(), false.into());
            all.push(own.into());
        }
        Value::Array(all)
    }
}

/// Sets fields of the map under a key; anything else there is replaced.
fn set_in<const N: usize>(fields: &mut Map<String, Value>, key: &str, set: [(&str, Value); N]) {
    let mut map = match fields.shift_remove(key) {
        Some(Value::Object(map)) => map,
        Some(_) | None => Map::new(),
    };
    map.extend(set.map(|(name, value)| (name.to_owned(), value)));
    fields.insert(key.to_owned(), Value::Object(map));
}
