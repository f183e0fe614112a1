//! The objects that an operator needs to run, which its webhooks do not review: otherwise it could never start again after an outage,
//! nor could a broken policy be corrected.

use serde_json::{Value, json};

use super::label_selector;
use crate::logic::object::resource::Resource;

/// The objects of one operator that its webhooks do not review.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnObjects {
    /// The namespace of the pod, of which no object is reviewed; `None` outside of a cluster.
    pub namespace: Option<String>,
    /// Objects in other namespaces.
    pub objects: Vec<OwnObject>,
}

/// Objects of one resource in one namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnObject {
    /// The group of the resource.
    group: &'static str,
    /// The plural of the resource.
    plural: &'static str,
    namespace: String,
    /// The CEL expression that is true of their requests.
    condition: String,
}

impl OwnObject {
    fn named((group, plural): (&'static str, &'static str), namespace: &str, name: &str) -> Self {
        let condition = format!("request.name == {}", json!(name));
        OwnObject { group, plural, namespace: namespace.to_owned(), condition }
    }

    /// Returns the `ConfigMap` of this name.
    pub fn config_map(namespace: &str, name: &str) -> Self {
        OwnObject::named(("", "configmaps"), namespace, name)
    }

    /// Returns the `ConfigMap`s with these labels, as in `kubectl get -l`.
    pub fn labelled_config_maps(namespace: &str, labels: &str) -> Self {
        let requirements =
            label_selector::expressions(labels).iter().map(requirement).collect::<Vec<_>>();
        // Deletions have only the old object, and an object without labels has no such field.
        let condition = format!(
            "[object == null ? oldObject : object].exists(o, \
             [has(o.metadata.labels) ? o.metadata.labels : {{}}].exists(l, {}))",
            requirements.join(" && ")
        );
        OwnObject { condition, ..OwnObject::config_map(namespace, "") }
    }

    /// Returns the Secret of this name.
    pub fn secret(namespace: &str, name: &str) -> Self {
        OwnObject::named(("", "secrets"), namespace, name)
    }

    /// Returns the Lease of this name.
    pub fn lease(namespace: &str, name: &str) -> Self {
        OwnObject::named(("coordination.k8s.io", "leases"), namespace, name)
    }

    fn expression(&self) -> String {
        let OwnObject { group, plural, namespace, condition } = self;
        let (group, plural, namespace) = (json!(group), json!(plural), json!(namespace));
        let resource =
            format!("request.resource.group == {group} && request.resource.resource == {plural}");
        format!("({resource} && request.namespace == {namespace} && {condition})")
    }
}

/// Returns a requirement of a label selector as a CEL expression about the labels `l`.
fn requirement(expression: &Value) -> String {
    let (key, values) = (&expression["key"], &expression["values"]);
    match expression["operator"].as_str() {
        Some("In") => format!("({key} in l && l[{key}] in {values})"),
        Some("NotIn") => format!("!({key} in l && l[{key}] in {values})"),
        Some("DoesNotExist") => format!("!({key} in l)"),
        _ => format!("{key} in l"),
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
