//! The objects of an operator in a cluster.

use serde_json::{Value, json};

use super::{
    chart::ChartValues,
    document::{ManifestDocument, yaml},
    scripts::Mounted,
    workload::{self, Workload},
};
use crate::cli::{
    dev::NAMESPACE,
    rbac::{self, Account, Installer, Needs, Survey},
    report::Report,
    shared_args::ContentArgs,
};
use crate::logic::handlers::handler::Category;

/// An operator to install.
pub(in crate::cli) struct OperatorPackage<'a> {
    installer: Installer,
    args: &'a ContentArgs,
    pub(in crate::cli) survey: Survey,
    pub(in crate::cli) needs: Needs,
    pub(in crate::cli) name: String,
}

impl<'a> OperatorPackage<'a> {
    /// Loads the scripts, and determines the permissions that they need.
    pub(in crate::cli) fn of(args: &'a ContentArgs) -> Result<Self, Report> {
        OperatorPackage::by(Installer::Kopf, args)
    }

    pub(super) fn by(installer: Installer, args: &'a ContentArgs) -> Result<Self, Report> {
        let survey = Survey::of(&args.install)?;
        let mut needs = Needs::by(installer, &survey, &args.install)?;
        if args.image.is_none() {
            needs.warnings.push(format!(
                "The image is {}. Pass --image with the registry of your cluster.",
                workload::image(args)
            ));
        }
        let name = rbac::name(&args.install, &survey)?;
        Ok(OperatorPackage { installer, args, survey, needs, name })
    }

    /// Returns the objects, in the order in which they are applied.
    pub(in crate::cli) fn objects(&self) -> Result<Vec<Value>, Report> {
        let documents = self.documents(&self.values()?)?.into_iter();
        let parsed = documents.map(|(stem, text)| {
            let object = serde_saphyr::from_str(&text);
            object.map_err(|it| Report::failure(format!("{stem} is not valid YAML: {it}")))
        });
        parsed.collect()
    }

    pub(super) fn values(&self) -> Result<ChartValues<'a>, Report> {
        Ok(ChartValues {
            namespace: rbac::namespace(&self.args.install)?,
            image: workload::image(self.args),
            resources: workload::resources(),
        })
    }
    pub(super) fn documents(
        &self,
        values: &ChartValues<'_>,
    ) -> Result<Vec<ManifestDocument>, Report> {
        let OperatorPackage { installer, args, survey, needs, name } = self;
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

fn labels(name: &str) -> Value {
    json!({ "app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "kopf" })
}
