//! `kopf manifests`: everything that an operator needs in a cluster, as YAML.
//!
//! `scripts.rs` turns the scripts into `ConfigMap`s, `workload.rs` describes what runs; the permissions are those of `kopf rbac`.
//! `form.rs` has the options of the result, `chart.rs` makes a Helm chart of it, `olm.rs` a bundle.

mod chart;
mod document;
mod form;
mod olm;
mod scripts;
mod workload;

use std::{fs, path::Path};

use serde_json::{Value, json};

pub(super) use self::form::FormArgs;
use self::{
    chart::Values,
    document::{Document, yaml},
    scripts::Mounted,
    workload::Workload,
};
use crate::cli::{
    args::ManifestsArgs,
    dev::NAMESPACE,
    rbac::{self, Account, Installer, Needs, Survey},
    report::{Exit, Report},
    shared_args::ContentArgs,
};
use crate::logic::handlers::handler::Category;

/// Prints or writes the manifests.
pub(super) fn run(args: &ManifestsArgs) -> Result<Exit, Report> {
    let FormArgs { kustomize, helm, olm } = &args.form;
    let installer = if olm.is_some() { Installer::Olm } else { Installer::Kopf };
    let mut operator = Operator::by(installer, &args.content)?;
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

/// An operator to install.
pub(super) struct Operator<'a> {
    installer: Installer,
    args: &'a ContentArgs,
    pub(super) survey: Survey,
    pub(super) needs: Needs,
    pub(super) name: String,
}

impl<'a> Operator<'a> {
    /// Loads the scripts, and determines what they need.
    pub(super) fn of(args: &'a ContentArgs) -> Result<Self, Report> {
        Operator::by(Installer::Kopf, args)
    }

    fn by(installer: Installer, args: &'a ContentArgs) -> Result<Self, Report> {
        let survey = Survey::of(&args.install)?;
        let mut needs = Needs::by(installer, &survey, &args.install)?;
        if args.image.is_none() {
            needs.warnings.push(format!(
                "The image is {}. Pass --image with the registry of your cluster.",
                workload::image(args)
            ));
        }
        let name = rbac::name(&args.install, &survey)?;
        Ok(Operator { installer, args, survey, needs, name })
    }

    /// Returns the objects, in the order in which they are applied.
    pub(super) fn objects(&self) -> Result<Vec<Value>, Report> {
        let documents = self.documents(&self.values()?)?.into_iter();
        let parsed = documents.map(|(stem, text)| {
            let object = serde_saphyr::from_str(&text);
            object.map_err(|it| Report::failure(format!("{stem} is no valid YAML: {it}")))
        });
        parsed.collect()
    }

    fn values(&self) -> Result<Values<'a>, Report> {
        Ok(Values {
            namespace: rbac::namespace(&self.args.install)?,
            image: workload::image(self.args),
            resources: workload::resources(),
        })
    }
    fn documents(&self, values: &Values<'_>) -> Result<Vec<Document>, Report> {
        let Operator { installer, args, survey, needs, name } = self;
        let namespace = values.namespace;
        let mut documents = Vec::new();
        for crd in &survey.crds {
            let crd_name = crd.pointer("/metadata/name").and_then(Value::as_str).unwrap_or(name);
            documents.push((format!("crd-{crd_name}"), yaml(crd)?));
        }
        let meta = json!({ "name": name, "namespace": namespace, "labels": labels(name) });
        if namespace != NAMESPACE {
            let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
            documents.push(("namespace".into(), yaml(&object)?));
        }
        let object = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta });
        documents.push(("serviceaccount".into(), yaml(&object)?));
        let account = Account { name, namespace };
        documents.extend(rbac::documents(&needs.permissions, &survey.options.scope, &account));
        let mounted = Mounted::of(survey)?;
        for (index, map) in mounted.maps(&meta).iter().enumerate() {
            let number = if index == 0 { String::new() } else { format!("-{}", index + 1) };
            documents.push((format!("configmap{number}"), yaml(map)?));
        }
        let mut handlers = survey.registry.handlers().iter();
        let has_webhooks = handlers
            .any(|it| matches!(it.kind.category(), Category::Admission | Category::Conversion));
        let installer = *installer;
        let workload = Workload {
            installer,
            args,
            survey,
            mounted: &mounted,
            meta: &meta,
            values,
            has_webhooks,
        };
        for (stem, object) in workload.objects() {
            documents.push((stem.to_owned(), yaml(&object)?));
        }
        Ok(documents)
    }
}

fn description(name: &str) -> String {
    format!("The operator {name}, a set of scripts that kopf runs")
}

fn labels(name: &str) -> Value {
    json!({ "app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "kopf" })
}

/// Returns the files of a directory for `kubectl apply -k`.
fn kustomization(documents: Vec<Document>) -> Result<Vec<(String, String)>, Report> {
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
