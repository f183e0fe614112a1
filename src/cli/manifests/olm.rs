//! The manifests as a bundle of the Operator Lifecycle Manager (`registry+v1`).
//!
//! OLM creates the service account, the roles, the Deployment and the webhooks from the `ClusterServiceVersion`, and the other objects
//! as they are. An `OperatorGroup` determines the namespaces. A bundle must not name its own namespace.

use std::{collections::BTreeSet, io::Write as _};

use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};

use super::{
    chart::ChartValues,
    document::{ManifestDocument, description, yaml},
    operator::OperatorPackage,
    workload::Workload,
};
use crate::cli::{options::ScopeOption, rbac::PermissionScope, report::Report};
use crate::logic::{
    admission::{
        configuration::{self, ClientConfig, Extent, Service, WebhookEndpoint},
        own_objects::OwnObjects,
    },
    handlers::handler::{Category, Kind},
};

/// The version of the content that users write, as in charts.
const VERSION: &str = "0.1.0";
/// The channel of bundles whose authors name none.
const CHANNEL: &str = "alpha";
/// OLM uses the name and the version as the value of a label.
const NAME_MAX: usize = 63;
/// OLM unpacks a bundle to one `ConfigMap`, compressed.
const BYTES_MAX: usize = 1 << 20;
/// The name of webhooks, after that of their handler.
const WEBHOOKS: &str = "auto.kopf.dev";
/// Kinds that OLM creates itself or does not support.
const OF_OLM: [&str; 8] = [
    "ClusterRole",
    "ClusterRoleBinding",
    "Deployment",
    "Namespace",
    "Role",
    "RoleBinding",
    "Service",
    "ServiceAccount",
];

/// Returns the files of a bundle.
pub(super) fn files(
    operator: &OperatorPackage<'_>,
    values: &ChartValues<'_>,
) -> Result<Vec<(String, String)>, Report> {
    let name = &operator.name;
    let label = format!("{name}.v{VERSION}");
    if label.len() > NAME_MAX {
        let problem = format!("'{label}' has {} characters; OLM allows {NAME_MAX}", label.len());
        return Err(Report::failure(problem).with_hint("choose a shorter name with --name"));
    }
    let documents = operator.documents(values)?;
    let mut files = Vec::new();
    for (stem, mut object) in parsed(&documents)? {
        if OF_OLM.iter().any(|it| object.get("kind").is_some_and(|kind| kind == it)) {
            continue;
        }
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("namespace");
        }
        files.push((format!("manifests/{stem}.yaml"), yaml(&object)?));
    }
    let version = version(operator, values, &label, &documents)?;
    files.push((format!("manifests/{name}.clusterserviceversion.yaml"), yaml(&version)?));
    let annotations = annotations(name);
    let listed: serde_json::Map<_, _> =
        annotations.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
    files.push(("metadata/annotations.yaml".into(), yaml(&json!({ "annotations": listed }))?));
    check_size(&files)?;
    files.push(("bundle.Dockerfile".into(), dockerfile(&annotations)));
    Ok(files)
}

fn parsed(documents: &[ManifestDocument]) -> Result<Vec<(String, Value)>, Report> {
    let parsed = documents.iter().map(|(stem, text)| {
        let object = serde_saphyr::from_str(text);
        let object = object.map_err(|it| Report::failure(format!("{stem} is not YAML: {it}")))?;
        Ok((stem.clone(), object))
    });
    parsed.collect()
}

/// Returns the `ClusterServiceVersion` that describes the operator to OLM.
fn version(
    operator: &OperatorPackage<'_>,
    values: &ChartValues<'_>,
    label: &str,
    documents: &[ManifestDocument],
) -> Result<Value, Report> {
    let OperatorPackage { name, survey, needs, .. } = operator;
    let all = parsed(documents)?;
    let is = |kind: &'static str| {
        move |it: &&(String, Value)| it.1.get("kind").is_some_and(|it| it == kind)
    };
    let owned: Vec<_> =
        all.iter().filter(is("CustomResourceDefinition")).flat_map(|it| owned(&it.1)).collect();
    let deployment = all.iter().find(is("Deployment")).and_then(|it| it.1.get("spec"));
    let is_whole = matches!(survey.options.scope, ScopeOption::Cluster | ScopeOption::Unsaid);
    let (clusterwide, within): (&[PermissionScope], &[PermissionScope]) = if is_whole {
        (&[PermissionScope::Cluster, PermissionScope::Served], &[PermissionScope::Own])
    } else {
        (&[PermissionScope::Cluster], &[PermissionScope::Served, PermissionScope::Own])
    };
    let permissions = |places: &[PermissionScope]| {
        let rules: Vec<_> = needs.permissions.rules(places).into_iter().map(|it| it.rule).collect();
        let granted = json!([{ "serviceAccountName": name, "rules": rules }]);
        if rules.is_empty() { json!([]) } else { granted }
    };
    let webhooks = webhooks(operator);
    let converts = webhooks.iter().any(|it| it["type"] == "ConversionWebhook");
    if converts && !is_whole {
        let problem =
            "OLM supports conversion webhooks only of operators that serve all namespaces";
        return Err(Report::failure(problem).with_hint("remove -n, or the conversion handlers"));
    }
    let modes = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"];
    let modes =
        modes.map(|it| json!({ "type": it, "supported": (it == "AllNamespaces") == is_whole }));
    let labels = json!({ "app.kubernetes.io/name": name });
    Ok(json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": { "name": label },
        "spec": {
            "displayName": name,
            "description": description(name),
            "version": VERSION,
            "installModes": modes,
            "install": {
                "strategy": "deployment",
                "spec": {
                    "clusterPermissions": permissions(clusterwide),
                    "permissions": permissions(within),
                    "deployments": [{ "name": name, "label": labels, "spec": deployment }],
                },
            },
            "customresourcedefinitions": { "owned": owned },
            "webhookdefinitions": webhooks,
            "relatedImages": [{ "name": "kopf", "image": values.image }],
        },
    }))
}

/// Returns a CRD as the `ClusterServiceVersion` names it: once for each version.
fn owned(crd: &Value) -> Vec<Value> {
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    let kind = crd.pointer("/spec/names/kind");
    let of_version = |it: &Value| {
        json!({
            "name": crd.pointer("/metadata/name"),
            "version": it["name"],
            "kind": kind,
            "displayName": kind,
        })
    };
    versions.map(of_version).collect()
}

/// Returns the webhooks, which OLM configures and for which it makes certificates.
fn webhooks(operator: &OperatorPackage<'_>) -> Vec<Value> {
    let OperatorPackage { name, survey, .. } = operator;
    let handlers = survey.registry.handlers().iter();
    let rules: Vec<_> = handlers
        .map(|it| (it.clone(), survey.selected_by(it).into_iter().cloned().collect()))
        .collect();
    let (namespace, path) = (String::new(), String::new());
    let service = Service { namespace, name: name.clone(), port: None, path };
    let client = ClientConfig { endpoint: WebhookEndpoint::Service(service), ca: None };
    let common = |kind: &str, webhook: &Value| {
        json!({
            "type": kind,
            "deploymentName": name,
            "containerPort": 443,
            "targetPort": Workload::WEBHOOK_PORT,
            "webhookPath": webhook.pointer("/clientConfig/service/path"),
        })
    };
    let mut all = Vec::new();
    for (kind, told) in
        [(Kind::Validate, "ValidatingAdmissionWebhook"), (Kind::Mutate, "MutatingAdmissionWebhook")]
    {
        for mut webhook in configuration::webhooks(
            kind,
            &rules,
            (WEBHOOKS, &client),
            &OwnObjects::default(),
            Extent::All,
        ) {
            let mut of_olm = common(told, &webhook);
            if let (Some(of_olm), Some(given)) = (of_olm.as_object_mut(), webhook.as_object_mut()) {
                of_olm.extend(given.remove("name").map(|it| ("generateName".to_owned(), it)));
                // OLM selects the namespaces by the OperatorGroup.
                for field in ["clientConfig", "namespaceSelector", "matchConditions"] {
                    given.remove(field);
                }
                given.retain(|_, value| !value.is_null());
                of_olm.append(given);
            }
            all.push(of_olm);
        }
    }
    let converting = rules.iter().filter(|it| it.0.kind.category() == Category::Conversion);
    let crds: BTreeSet<String> =
        converting.flat_map(|it| &it.1).map(|it| format!("{}.{}", it.plural, it.group)).collect();
    for crd in crds {
        let conversion = configuration::conversion(&crd, &client);
        let mut of_olm =
            common("ConversionWebhook", conversion.get("webhook").unwrap_or(&Value::Null));
        let more = json!({
            "generateName": format!("{crd}.{WEBHOOKS}"),
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "conversionCRDs": [crd],
        });
        if let (Some(of_olm), Value::Object(mut more)) = (of_olm.as_object_mut(), more) {
            of_olm.append(&mut more);
        }
        all.push(of_olm);
    }
    all
}

/// Returns warnings about options of scripts that OLM does not support.
pub(super) fn warnings(operator: &OperatorPackage<'_>) -> Vec<String> {
    let survey = &operator.survey;
    let mut warnings = Vec::new();
    for handler in survey.registry.handlers() {
        let options = &handler.admission;
        if options.match_conditions.is_some() || options.namespace_selector.is_some() {
            warnings.push(format!(
                "{}: OLM has no match_conditions and no namespace_selector: handler '{}' is also called for other requests.",
                handler.location, handler.id
            ));
        }
    }
    let has_webhooks = survey
        .registry
        .handlers()
        .iter()
        .any(|it| Category::WEBHOOKS.contains(&it.kind.category()));
    let sets_name = survey.sources.iter().filter(|it| it.text.contains("admission.managed"));
    warnings.extend(sets_name.filter(|_| has_webhooks).map(|it| {
        format!(
            "{}: OLM configures the webhooks. Do not set admission.managed: the operator would configure them, too.",
            it.name
        )
    }));
    warnings
}

/// Returns the annotations of the bundle, which catalogs read.
fn annotations(name: &str) -> Vec<(String, String)> {
    let annotations = [
        ("mediatype", "registry+v1"),
        ("manifests", "manifests/"),
        ("metadata", "metadata/"),
        ("package", name),
        ("channels", CHANNEL),
        ("channel.default", CHANNEL),
    ];
    let full = |key: &str| format!("operators.operatorframework.io.bundle.{key}.v1");
    annotations.map(|(key, value)| (full(key), value.to_owned())).into()
}

fn dockerfile(annotations: &[(String, String)]) -> String {
    let labels = annotations.iter().map(|(key, value)| format!("LABEL {key}={value}"));
    let labels = labels.collect::<Vec<_>>().join("\n");
    format!("FROM scratch\n\n{labels}\n\nCOPY manifests /manifests/\nCOPY metadata /metadata/\n")
}

fn check_size(files: &[(String, String)]) -> Result<(), Report> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    let written = files.iter().try_for_each(|(_, text)| packed.write_all(text.as_bytes()));
    let size = written.and_then(|()| packed.finish()).map_or(usize::MAX, |it| it.len());
    if size <= BYTES_MAX {
        return Ok(());
    }
    let problem = format!("the bundle has {size} bytes, compressed; OLM unpacks {BYTES_MAX}");
    Err(Report::failure(problem).with_hint("build an image with the scripts"))
}
