//! `kopf manifests`: everything that an operator needs in a cluster, as YAML.
//!
//! `operator.rs` lists the objects: `scripts.rs` turns the scripts into `ConfigMap`s, `workload.rs` describes what runs; the permissions
//! are those of `kopf rbac`. `form.rs` has the options of the result, `chart.rs` makes a Helm chart of it, `olm.rs` a bundle.

mod chart;
mod document;
mod form;
mod olm;
mod operator;
mod scripts;
mod workload;

use std::{fs, path::Path};

use serde_json::json;

use self::document::{ManifestDocument, yaml};
pub(super) use self::{form::FormArgs, operator::OperatorPackage};
use crate::cli::{
    args::ManifestsArgs,
    rbac::{self, Installer},
    report::{Exit, Report},
};

/// Prints or writes the manifests.
pub(super) fn run(args: &ManifestsArgs) -> Result<Exit, Report> {
    let FormArgs { kustomize, helm, olm } = &args.form;
    let installer = if olm.is_some() { Installer::Olm } else { Installer::Kopf };
    let mut operator = OperatorPackage::by(installer, &args.content)?;
    let defaults = operator.values()?;
    if let Some(directory) = olm {
        write(directory, &olm::files(&operator, &defaults)?)?;
        operator.needs.warnings.extend(olm::warnings(&operator));
    } else if let Some(directory) = helm {
        let documents = operator.documents(&chart::values())?;
        write(directory, &chart::files(&operator.name, &documents, &defaults)?)?;
    } else {
        let documents = operator.documents(&defaults)?;
        match kustomize {
            Some(directory) => write(directory, &kustomization(documents)?)?,
            None => rbac::print(&rbac::joined(documents.iter().map(|(_, text)| text.as_str()))),
        }
    }
    rbac::warn(&operator.needs.warnings);
    Ok(Exit::Success)
}

/// Returns the files of a directory for `kubectl apply -k`.
fn kustomization(documents: Vec<ManifestDocument>) -> Result<Vec<(String, String)>, Report> {
    let mut files: Vec<_> =
        documents.into_iter().map(|(stem, text)| (format!("{stem}.yaml"), text)).collect();
    let kustomization = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": files.iter().map(|(file, _)| file.as_str()).collect::<Vec<_>>(),
    });
    files.push(("kustomization.yaml".into(), yaml(&kustomization)?));
    Ok(files)
}

fn write(directory: &Path, files: &[(String, String)]) -> Result<(), Report> {
    for (file, text) in files {
        let path = directory.join(file);
        let written = path.parent().map_or(Ok(()), fs::create_dir_all);
        written.and_then(|()| fs::write(&path, text)).map_err(|problem| {
            Report::failure(format!("cannot write {}: {problem}", path.display()))
        })?;
    }
    Ok(())
}
