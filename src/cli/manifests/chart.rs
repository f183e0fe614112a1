//! The manifests as a Helm chart: parts that differ between clusters become values.

use serde_json::{Value, json};

use super::document::{ManifestDocument, description, yaml};
use crate::cli::report::Report;

/// The parts that differ between clusters, as they are written in manifests.
pub(super) struct ChartValues<'a> {
    pub(super) namespace: &'a str,
    pub(super) image: String,
    pub(super) resources: Value,
}

/// Placeholder names in the manifests of a chart, and the expressions that replace them.
const EXPRESSIONS: [(&str, &str); 3] = [
    (NAMESPACE, "{{ .Release.Namespace }}"),
    (IMAGE, "{{ toJson .Values.image }}"),
    (RESOURCES, "{{ toJson .Values.resources }}"),
];
const NAMESPACE: &str = "kopf-chart-namespace";
const IMAGE: &str = "kopf-chart-image";
const RESOURCES: &str = "kopf-chart-resources";

/// Returns the placeholder values of a chart.
pub(super) fn values() -> ChartValues<'static> {
    ChartValues { namespace: NAMESPACE, image: IMAGE.into(), resources: RESOURCES.into() }
}

/// Returns the files of a chart with these manifests, which were made with [`values`].
pub(super) fn files(
    name: &str,
    documents: &[ManifestDocument],
    defaults: &ChartValues<'_>,
) -> Result<Vec<(String, String)>, Report> {
    let version = env!("CARGO_PKG_VERSION");
    let chart = json!({
        "apiVersion": "v2",
        "name": name,
        "description": description(name),
        "type": "application",
        "version": "0.1.0",
        "appVersion": version,
    });
    let values = json!({ "image": defaults.image, "resources": defaults.resources });
    let mut files =
        vec![("Chart.yaml".to_owned(), yaml(&chart)?), ("values.yaml".to_owned(), yaml(&values)?)];
    // The release has its namespace already.
    let documents = documents.iter().filter(|(stem, _)| stem != "namespace");
    files.extend(documents.map(|(stem, text)| (format!("templates/{stem}.yaml"), template(text))));
    Ok(files)
}

/// Returns a manifest as a template that Helm renders to the same text, except for the values.
fn template(manifest: &str) -> String {
    // Scripts may contain templates, too.
    let mut text = manifest.replace("{{", r#"{{ "{{" }}"#);
    for (name, expression) in EXPRESSIONS {
        text = text.replace(name, expression);
    }
    text
}
