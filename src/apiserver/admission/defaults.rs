//! Default classes: `DefaultStorageClass` and `DefaultIngressClass`.

use serde_json::Value;

use super::{NewObject, objects};
use crate::object;

/// Sets the default storage class on a claim without one, as `DefaultStorageClass` does. An empty name means no class, and is kept.
pub(super) fn storage_class(new_object: &NewObject<'_>, claim: &mut Value) {
    let legacy = annotation(claim, "volume.beta.kubernetes.io/storage-class").is_some();
    let marks = [
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ];
    if !legacy {
        set(new_object, claim, "storageClassName", ("storageclasses.storage.k8s.io", &marks));
    }
}

/// Sets the default ingress class on an ingress without one, as `DefaultIngressClass` does.
pub(super) fn ingress_class(new_object: &NewObject<'_>, ingress: &mut Value) {
    if annotation(ingress, "kubernetes.io/ingress.class").is_none() {
        let marks = ["ingressclass.kubernetes.io/is-default-class"];
        set(new_object, ingress, "ingressClassName", ("ingressclasses.networking.k8s.io", &marks));
    }
}

fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.pointer("/metadata/annotations")?.get(name)?.as_str()
}

fn set(
    new_object: &NewObject<'_>,
    object: &mut Value,
    field: &str,
    (resource, marks): (&str, &[&str]),
) {
    let classes = objects(new_object.store, resource, "").into_iter();
    let marked = classes.filter(|it| marks.iter().any(|mark| annotation(it, mark) == Some("true")));
    // Of several defaults, the newest wins; of several with the same second, the first by name.
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
