//! The objects that an operator needs to run, which its webhooks do not review: otherwise it could never start again after an outage,
//! nor could a broken policy be corrected.

use serde_json::{Value, json};

use crate::logic::object::resource::Resource;

/// The objects of one operator that its webhooks do not review.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnObjects {
    /// The namespace of the pod, of which no object is reviewed; `None` outside of a cluster.
    pub namespace: Option<String>,
    /// Objects in other namespaces.
    pub objects: Vec<OwnObject>,
}

/// One object, or several of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnObject {
    /// The group of its resource.
    pub group: &'static str,
    /// The plural of its resource.
    pub plural: &'static str,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl OwnObject {
    /// Returns a `ConfigMap`.
    pub fn config_map(namespace: &str, name: &str) -> Self {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        OwnObject { group: "", plural: "configmaps", namespace, name }
    }

    /// Returns a Secret.
    pub fn secret(namespace: &str, name: &str) -> Self {
        OwnObject { plural: "secrets", ..OwnObject::config_map(namespace, name) }
    }

    /// Returns a Lease.
    pub fn lease(namespace: &str, name: &str) -> Self {
        let (group, plural) = ("coordination.k8s.io", "leases");
        OwnObject { group, plural, ..OwnObject::config_map(namespace, name) }
    }

    fn expression(&self) -> String {
        let OwnObject { group, plural, namespace, name } = self;
        let resource = format!(
            "request.resource.group == '{group}' && request.resource.resource == '{plural}'"
        );
        // Names of objects have no quotes.
        format!("({resource} && request.namespace == '{namespace}' && request.name == '{name}')")
    }
}

impl OwnObjects {
    /// Returns the condition by which API servers skip these objects, for a webhook with rules for these resources. `None` if the
    /// rules cover none of them.
    pub(super) fn condition(&self, resources: &[Resource]) -> Option<Value> {
        let is_covered = |it: &&OwnObject| {
            resources
                .iter()
                .any(|resource| resource.group == it.group && resource.plural == it.plural)
        };
        let covered = self.objects.iter().filter(is_covered).map(OwnObject::expression);
        let covered = covered.collect::<Vec<_>>();
        (!covered.is_empty()).then(|| {
            json!({ "name": "not-of-the-operator", "expression": format!("!({})", covered.join(" || ")) })
        })
    }
}
