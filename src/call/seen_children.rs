//! `ctx.children`: the children of an object, as they were when the call began.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::Related;
use crate::logic::{
    background::indexing::{IndexItem, IndexValues},
    object::resource::Resource,
};

/// The children of an object at one moment. They are unpacked when a function first uses them: many functions never do.
#[derive(Debug)]
pub struct SeenChildren {
    /// The namespace of the parent.
    home: Option<String>,
    kinds: Vec<SeenKind>,
    tree: OnceLock<Arc<Value>>,
}

/// The children that one item of the option `owns` selects.
#[derive(Debug)]
pub struct SeenKind {
    /// The name of the kind in the declaration.
    pub named: String,
    /// The properties that the packed objects share.
    pub related: Related,
    /// The packed objects; `None` if there are none.
    pub values: Option<IndexValues>,
}

impl SeenChildren {
    /// Stores the children of a parent in this namespace.
    pub fn new(home: Option<String>, kinds: Vec<SeenKind>) -> Self {
        SeenChildren { home, kinds, tree: OnceLock::new() }
    }

    /// Returns the children by the plural of their kind and by name.
    pub fn tree(&self) -> Arc<Value> {
        Arc::clone(self.tree.get_or_init(|| Arc::new(self.unpacked())))
    }

    /// Returns the tree, if a function has used it.
    pub fn used_tree(&self) -> Option<&Arc<Value>> {
        self.tree.get()
    }

    /// Returns the bytes of the packed objects.
    pub fn packed_bytes(&self) -> usize {
        let packed = self.kinds.iter().filter_map(|it| it.values.as_ref()).flat_map(|it| it.iter());
        packed.map(IndexItem::packed_bytes).sum()
    }

    fn unpacked(&self) -> Value {
        let mut tree = Map::new();
        for SeenKind { named, related, values } in &self.kinds {
            let kinds = &related.kinds;
            if kinds.is_empty() {
                let name = named.rsplit('/').next().unwrap_or_default();
                let name = name.split('.').next().unwrap_or_default();
                tree.entry(name).or_insert_with(|| Value::Object(Map::new()));
            }
            for resource in kinds {
                let key = plural_in(&tree, kinds, resource);
                tree.entry(key).or_insert_with(|| Value::Object(Map::new()));
            }
            let packed = values.iter().flat_map(|it| it.iter());
            for (resource, object) in packed.filter_map(|it| related.unpack(it)) {
                let header = object.header();
                let Some(name) = header.name.clone() else { continue };
                let name = match header.namespace.as_deref() {
                    Some(other) if Some(other) != self.home.as_deref() => format!("{other}/{name}"),
                    Some(_) | None => name,
                };
                let key = plural_in(&tree, kinds, &resource);
                if let Value::Object(all) = tree.entry(key).or_insert_with(|| Map::new().into()) {
                    all.insert(name, object.into_body());
                }
            }
        }
        Value::Object(tree)
    }
}

/// Returns the key of a kind in `ctx.children`: the plural, with the group if two kinds have the same one.
fn plural_in(tree: &Map<String, Value>, kinds: &[Arc<Resource>], resource: &Resource) -> String {
    let with_group = format!("{}.{}", resource.plural, resource.group);
    let is_taken = |it: &Arc<Resource>| it.plural == resource.plural && it.group != resource.group;
    if kinds.iter().any(is_taken) && tree.contains_key(&resource.plural) {
        with_group
    } else {
        resource.plural.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::{SeenChildren, SeenKind};
    use crate::call::Related;
    use crate::logic::object::{Object, resource::Resource};

    #[test]
    fn children_are_unpacked_once_and_only_for_a_function_that_reads_them() {
        let resource = Arc::new(Resource {
            version: "v1".into(),
            plural: "configmaps".into(),
            kind: "ConfigMap".into(),
            ..Resource::default()
        });
        let mut related = Related::default();
        related.kinds.push(Arc::clone(&resource));
        let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "n", "namespace": "home" } });
        let values = Some(Arc::from([related.pack(&Object::from_value(body.clone()), &resource)]));
        let kind = SeenKind { named: "configmaps".into(), related, values };
        let seen = SeenChildren::new(Some("home".into()), vec![kind]);
        assert!(seen.tree.get().is_none());

        assert_eq!(*seen.tree(), json!({ "configmaps": { "n": body } }));
        assert!(Arc::ptr_eq(&seen.tree(), &seen.tree()));
    }
}
