//! `kopf manifests`: everything that an operator needs in a cluster, as YAML.
//!
//! `scripts.rs` turns the scripts into `ConfigMap`s, `workload.rs` describes what runs; the permissions are those of `kopf rbac`.

mod scripts;
mod workload;

use std::{fs, path::Path};

use serde_json::{Value, json};

use self::{scripts::Mounted, workload::Workload};
use crate::cli::{
    args::ManifestsArgs,
    dev::NAMESPACE,
    rbac::{self, Account, Needs, Survey},
    report::{Exit, Report},
};
use crate::logic::handlers::handler::Category;

/// A document: the stem of its file, and its text.
type Document = (String, String);

/// Prints or writes the manifests.
pub(super) fn run(args: &ManifestsArgs) -> Result<Exit, Report> {
    let survey = Survey::of(&args.install)?;
    let mut needs = Needs::of(&survey, &args.install)?;
    if args.image.is_none() {
        needs.warnings.push(format!(
            "The image is {}. Pass --image with the registry of your cluster.",
            workload::image(args)
        ));
    }
    let name = rbac::name(&args.install, &survey)?;
    let account = Account { name: &name, namespace: rbac::namespace(&args.install)? };
    let documents = documents(args, &survey, &needs, &account)?;
    rbac::warn(&needs.warnings);
    match &args.kustomize {
        None => rbac::print(&rbac::joined(documents.iter().map(|(_, text)| text.as_str()))),
        Some(directory) => write(directory, &documents)?,
    }
    Ok(Exit::Success)
}

fn documents(
    args: &ManifestsArgs,
    survey: &Survey,
    needs: &Needs,
    account: &Account<'_>,
) -> Result<Vec<Document>, Report> {
    let Account { name, namespace } = *account;
    let mut documents = Vec::new();
    for crd in &survey.crds {
        let crd_name = crd.pointer("/metadata/name").and_then(Value::as_str).unwrap_or(name);
        documents.push((format!("crd-{crd_name}"), yaml(crd)?));
    }
    let meta = json!({ "name": name, "namespace": namespace, "labels": labels(name) });
    if namespace != NAMESPACE {
        let object =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
        documents.push(("namespace".into(), yaml(&object)?));
    }
    let object = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta });
    documents.push(("serviceaccount".into(), yaml(&object)?));
    documents.extend(rbac::documents(&needs.permissions, &survey.options.scope, account));
    let mounted = Mounted::of(survey)?;
    for (index, map) in mounted.maps(&meta).iter().enumerate() {
        let number = if index == 0 { String::new() } else { format!("-{}", index + 1) };
        documents.push((format!("configmap{number}"), yaml(map)?));
    }
    let mut handlers = survey.registry.handlers().iter();
    let has_webhooks =
        handlers.any(|it| matches!(it.kind.category(), Category::Admission | Category::Conversion));
    let workload = Workload { args, survey, mounted: &mounted, meta: &meta, has_webhooks };
    for (stem, object) in workload.objects() {
        documents.push((stem.to_owned(), yaml(&object)?));
    }
    Ok(documents)
}

fn labels(name: &str) -> Value {
    json!({ "app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "kopf" })
}

fn yaml(object: &Value) -> Result<String, Report> {
    let text = serde_saphyr::to_string(object);
    let mut text = text.map_err(|it| Report::failure(format!("cannot write YAML: {it}")))?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

fn write(directory: &Path, documents: &[Document]) -> Result<(), Report> {
    let failed = |path: &Path, problem: std::io::Error| {
        Report::failure(format!("cannot write {}: {problem}", path.display()))
    };
    fs::create_dir_all(directory).map_err(|it| failed(directory, it))?;
    let files: Vec<String> = documents.iter().map(|(stem, _)| format!("{stem}.yaml")).collect();
    let kustomization = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": files,
    });
    let texts = documents.iter().map(|(_, text)| text.clone());
    let all = files.iter().cloned().zip(texts);
    for (file, text) in all.chain([("kustomization.yaml".to_owned(), yaml(&kustomization)?)]) {
        let path = directory.join(file);
        fs::write(&path, text).map_err(|it| failed(&path, it))?;
    }
    Ok(())
}
