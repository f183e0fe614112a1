//! The two ways to write down a definition: `v1` and `v1beta1`.
//!
//! In `v1beta1`, what all versions share may stand once at the top: the schema, subresources and columns. The real server works
//! with that form inside, and its messages show it: what the versions have in common is checked at the top.

use serde_json::{Map, Value, json};

/// What may stand at the top of `v1beta1`, and its name in a version.
const SHARED: [(&str, &str); 3] = [
    ("validation", "schema"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
];

/// Whether a definition is written in the old way.
pub(super) fn is_beta(crd: &Value) -> bool {
    crd.get("apiVersion").and_then(Value::as_str) == Some("apiextensions.k8s.io/v1beta1")
}

/// Rewrites a definition as `v1`; it may be `v1` already.
pub(crate) fn to_v1(crd: &mut Value) {
    if !is_beta(crd) {
        return;
    }
    if let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) {
        ensure_versions(spec);
        spec.shift_remove("version");
        for (top, own) in SHARED {
            let Some(shared) = spec.shift_remove(top) else { continue };
            for version in versions_mut(spec) {
                version.entry(own).or_insert_with(|| shared.clone());
            }
        }
        for version in versions_mut(spec) {
            rename_paths(version.get_mut("additionalPrinterColumns"), "JSONPath", "jsonPath");
        }
        if spec.get("preserveUnknownFields") == Some(&Value::Bool(false)) {
            spec.shift_remove("preserveUnknownFields");
        }
        if let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut) {
            nest_webhook(conversion);
        }
    }
    put_version(crd, "v1");
}

/// Rewrites a definition as `v1beta1`; it may be that already.
pub(crate) fn to_v1beta1(crd: &mut Value) {
    if is_beta(crd) {
        return;
    }
    if let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) {
        hoist(spec);
        spec.entry("preserveUnknownFields").or_insert(Value::Bool(false));
        order(spec);
    }
    put_version(crd, "v1beta1");
}

/// The form that definitions are checked in. It is `v1beta1` with what the versions share at the top.
pub(super) fn to_internal(crd: &Value) -> Value {
    let mut crd = crd.clone();
    if is_beta(&crd) {
        if let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) {
            ensure_versions(spec);
            let first = versions(spec).next().and_then(|it| it.get("name")).cloned();
            if let Some(first) = first {
                spec.entry("version").or_insert(first);
            }
        }
    } else if let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) {
        hoist(spec);
    }
    crd
}

/// `v1` to the inner form.
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

fn nest_webhook(conversion: &mut Map<String, Value>) {
    let config = conversion.shift_remove("webhookClientConfig");
    let accepted = conversion.shift_remove("conversionReviewVersions");
    if config.is_none() && accepted.is_none() {
        return;
    }
    let mut webhook = Map::new();
    if let Some(config) = config {
        webhook.insert("clientConfig".into(), config);
    }
    webhook.insert("conversionReviewVersions".into(), accepted.unwrap_or_default());
    conversion.insert("webhook".into(), Value::Object(webhook));
}

/// The old way allows a single version to be named at the top only.
fn ensure_versions(spec: &mut Map<String, Value>) {
    let name = spec.get("version").and_then(Value::as_str).unwrap_or_default().to_owned();
    let missing = spec.get("versions").and_then(Value::as_array).is_none_or(Vec::is_empty);
    if missing && !name.is_empty() {
        spec.insert("versions".into(), json!([{ "name": name, "served": true, "storage": true }]));
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

fn put_version(crd: &mut Value, version: &str) {
    if let Some(fields) = crd.as_object_mut() {
        fields.insert("apiVersion".into(), format!("apiextensions.k8s.io/{version}").into());
    }
}

/// Puts fields in the order in which the real server writes them; others stay behind them.
fn order(spec: &mut Map<String, Value>) {
    const ORDER: [&str; 10] = [
        "group",
        "version",
        "names",
        "scope",
        "validation",
        "subresources",
        "versions",
        "additionalPrinterColumns",
        "conversion",
        "preserveUnknownFields",
    ];
    let mut rest = std::mem::take(spec);
    for name in ORDER {
        if let Some(value) = rest.shift_remove(name) {
            spec.insert(name.into(), value);
        }
    }
    spec.extend(rest);
}
