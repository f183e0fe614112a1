//! Classes that are marked as the default one.

use serde_json::Value;

use super::{Newcomer, objects};
use crate::object;

/// `DefaultStorageClass`: a claim that names no class gets the default one. The empty name means none.
pub(super) fn storage_class(newcomer: &Newcomer<'_>, claim: &mut Value) {
    let legacy = annotation(claim, "volume.beta.kubernetes.io/storage-class").is_some();
    let marks = [
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ];
    if !legacy {
        set(newcomer, claim, "storageClassName", ("storageclasses.storage.k8s.io", &marks));
    }
}

/// `DefaultIngressClass`: the same for an ingress.
pub(super) fn ingress_class(newcomer: &Newcomer<'_>, ingress: &mut Value) {
    if annotation(ingress, "kubernetes.io/ingress.class").is_none() {
        let marks = ["ingressclass.kubernetes.io/is-default-class"];
        set(newcomer, ingress, "ingressClassName", ("ingressclasses.networking.k8s.io", &marks));
    }
}

fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.pointer("/metadata/annotations")?.get(name)?.as_str()
}

fn set(
    newcomer: &Newcomer<'_>,
    object: &mut Value,
    field: &str,
    (resource, marks): (&str, &[&str]),
) {
    let classes = objects(newcomer.store, resource, "").into_iter();
    let marked = classes.filter(|it| marks.iter().any(|mark| annotation(it, mark) == Some("true")));
    // Of several, the newest; of several of one second, the first by name.
    let created = |it: &Value| object::meta(it, "creationTimestamp").to_owned();
    let name = |it: &Value| object::meta(it, "name").to_owned();
    let default = marked.min_by(|left, right| {
        created(right).cmp(&created(left)).then_with(|| name(left).cmp(&name(right)))
    });
    let (Some(default), Some(Value::Object(spec))) = (default, object.get_mut("spec")) else {
        return;
    };
    if spec.get(field).is_none_or(Value::is_null) {
        spec.insert(field.into(), name(&default).into());
    }
}
