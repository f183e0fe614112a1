//! The schemas of the kinds that scripts handle: of the given CRDs, and of the kinds that are built into Kubernetes.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

use kopf_apiserver::{BuiltInKind, built_in_definition, built_in_kinds};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::conversions;
use crate::checker::ObjectKind;
use crate::cli::{dev::ManifestFiles, options::RunOptions, report::Report};

/// Returns the kinds of the CRDs, and those of Kubernetes that no CRD replaces.
pub(super) fn kinds(options: &RunOptions, given: &[PathBuf]) -> Result<Vec<ObjectKind>, Report> {
    let files = match ManifestFiles::read(&conversions::files(options, given), &[]) {
        // The default file is optional: if it cannot be read, it is ignored.
        Err(_) if given.is_empty() => None,
        files => Some(files?),
    };
    Ok(with_built_in(files.as_ref()))
}

/// Returns the kinds for scripts in a directory: those of its CRDs, and those of Kubernetes.
pub(in crate::cli) fn beside(directory: &Path) -> Vec<ObjectKind> {
    let usual = directory.join(conversions::DEFAULT);
    let files = usual.is_file().then(|| ManifestFiles::read(&[usual], &[]).ok()).flatten();
    with_built_in(files.as_ref())
}

fn with_built_in(files: Option<&ManifestFiles>) -> Vec<ObjectKind> {
    let documents = files.into_iter().flat_map(ManifestFiles::documents);
    let custom: Vec<ObjectKind> = documents.filter_map(|it| of_definition(&it.object)).collect();
    let is_free = |it: &ObjectKind| {
        !custom.iter().any(|other| other.names.iter().any(|name| it.names.contains(name)))
    };
    let built_in: Vec<ObjectKind> = built_in_kinds().iter().map(built_in).filter(is_free).collect();
    custom.into_iter().chain(built_in).collect()
}

/// Returns the kind that a CRD with one version defines; `None` for CRDs with several versions, which are not checked.
fn of_definition(definition: &Value) -> Option<ObjectKind> {
    let text = |path: &str| Some(definition.pointer(path)?.as_str()?.to_owned());
    let versions = definition.pointer("/spec/versions")?.as_array()?;
    // With several versions, only the cluster determines which one is watched.
    let [version] = versions.as_slice() else { return None };
    let short = definition.pointer("/spec/names/shortNames").and_then(Value::as_array);
    let short = short.into_iter().flatten().filter_map(|it| Some(it.as_str()?.to_owned()));
    let kind = text("/spec/names/kind")?;
    let singular = text("/spec/names/singular").unwrap_or_else(|| kind.to_lowercase());
    let names = [text("/spec/names/plural")?, singular, kind].into_iter().chain(short);
    Some(ObjectKind {
        group: text("/spec/group")?,
        version: version.get("name")?.as_str()?.to_owned(),
        names: names.collect(),
        schema: Arc::new(version.pointer("/schema/openAPIV3Schema")?.clone()),
        has_status: version.pointer("/subresources/status").is_some(),
    })
}

fn built_in(kind: &BuiltInKind) -> ObjectKind {
    let names = [kind.plural, kind.kind].into_iter().map(str::to_owned);
    let others = std::iter::once(kind.kind.to_lowercase());
    let short = kind.short_names.iter().map(|it| (*it).to_owned());
    ObjectKind {
        group: kind.group.to_owned(),
        version: kind.version.to_owned(),
        names: names.chain(others).chain(short).collect(),
        schema: Arc::new(json!({ "$ref": format!("#/definitions/{}", kind.definition) })),
        has_status: true,
    }
}

/// Returns a definition of Kubernetes. Each is parsed when it is first needed.
pub(in crate::cli) fn definition(name: &str) -> Option<Arc<Value>> {
    static KNOWN: LazyLock<Mutex<BTreeMap<String, Option<Arc<Value>>>>> =
        LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock();
    let found =
        known.entry(name.to_owned()).or_insert_with(|| built_in_definition(name).map(Arc::new));
    found.clone()
}
