//! The internal form of CRDs, in which they are validated: fields that all versions share (the schema, subresources and columns)
//! are at the top of the spec. Messages refer to this form.

use serde_json::{Map, Value};

/// The fields that can be shared, and their names in a version.
const SHARED: [(&str, &str); 3] = [
    ("validation", "schema"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
];

/// Converts a CRD to the internal form.
pub(super) fn to_internal(crd: &Value) -> Value {
    let mut crd = crd.clone();
    if let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) {
        hoist(spec);
    }
    crd
}

/// Moves shared fields of the versions to the top of the spec.
fn hoist(spec: &mut Map<String, Value>) {
    let first = versions(spec).next().and_then(|it| it.get("name")).cloned();
    if let Some(first) = first {
        spec.insert("version".into(), first);
    }
    for version in versions_mut(spec) {
        rename_paths(version.get_mut("additionalPrinterColumns"), "jsonPath", "JSONPath");
    }
    for (top, own) in SHARED {
        let first = versions(spec).next().and_then(|it| it.get(own)).cloned();
        let Some(shared) = first else { continue };
        let same = versions(spec).all(|it| it.get(own) == Some(&shared));
        if same {
            spec.insert(top.into(), shared);
            for version in versions_mut(spec) {
                version.shift_remove(own);
            }
        }
    }
    if let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut) {
        let webhook = conversion.shift_remove("webhook");
        if let Some(config) = webhook.as_ref().and_then(|it| it.get("clientConfig")) {
            conversion.insert("webhookClientConfig".into(), config.clone());
        }
        if let Some(accepted) = webhook.as_ref().and_then(|it| it.get("conversionReviewVersions")) {
            conversion.insert("conversionReviewVersions".into(), accepted.clone());
        }
    }
}

fn rename_paths(columns: Option<&mut Value>, from: &str, to: &str) {
    let columns = columns.and_then(Value::as_array_mut).into_iter().flatten();
    for column in columns.filter_map(Value::as_object_mut) {
        if let Some(path) = column.shift_remove(from) {
            column.insert(to.into(), path);
        }
    }
}

fn versions(spec: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    spec.get("versions").and_then(Value::as_array).into_iter().flatten()
}

fn versions_mut(spec: &mut Map<String, Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    let versions = spec.get_mut("versions").and_then(Value::as_array_mut).into_iter().flatten();
    versions.filter_map(Value::as_object_mut)
}
