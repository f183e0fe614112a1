//! One object as YAML.

use serde_json::Value;

use crate::cli::report::Report;

/// A document: the stem of its file, and its text.
pub(super) type ManifestDocument = (String, String);

/// Returns an object as YAML, with a line end.
pub(super) fn yaml(object: &Value) -> Result<String, Report> {
    let text = serde_saphyr::to_string(object);
    let mut text = text.map_err(|it| Report::failure(format!("cannot write YAML: {it}")))?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// Returns the description of an operator for charts and catalogs.
pub(super) fn description(name: &str) -> String {
    format!("The operator {name}: scripts that kopf runs")
}
