//! `kopf check --crd FILE`: converts objects generated from the schema of each version to every other version and back.
//!
//! The embedded server decides which objects are valid; the handlers are called as for a review of an API server.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use kopf_apiserver::ApiServer;
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::samples::Random;
use crate::call::{LiveGeneration, Memo, Scripts};
use crate::cli::{
    dev::{FileObject, ManifestFiles, NAMESPACE},
    options::RunOptions,
    report::Report,
    scripts,
};
use crate::features::admission::{AdmissionHandlers, OperatorReviewer};
use crate::logic::{
    change::{registry::Registry, selection::Selected},
    generation::Generation,
    handlers::handler::Kind,
    object::{diff, resource::Resource},
};
use crate::ports::{Clock, ReviewClient, ReviewRequest, Reviewer as _};
use crate::scripting::{LoadError, ScriptHost, Source};
use crate::telemetry::Metrics;

/// The CRD file next to an operator.
pub(super) const DEFAULT: &str = "crd.yaml";
/// Number of objects of each version that are converted.
const SAMPLES: usize = 25;
/// Maximum number of objects that are generated to find this many valid ones.
const TRIES: usize = 400;

/// The findings of the check.
#[derive(Default)]
pub(super) struct ConversionFindings {
    pub(super) errors: Vec<LoadError>,
    pub(super) warnings: Vec<String>,
}

/// Returns the files of CRDs: those of the option, or else the one next to the scripts.
pub(super) fn files(options: &RunOptions, given: &[PathBuf]) -> Vec<PathBuf> {
    if !given.is_empty() {
        return given.to_vec();
    }
    let first = options.paths.first().map_or(Path::new(""), PathBuf::as_path);
    let directory = if first.is_dir() { Some(first) } else { first.parent() };
    let usual = directory.unwrap_or(Path::new("")).join(DEFAULT);
    if usual.is_file() { vec![usual] } else { Vec::new() }
}

/// Checks the conversions of these scripts. Scripts that cannot be loaded are reported elsewhere.
pub(super) async fn check(
    options: &RunOptions,
    sources: Vec<Source>,
    given: &[PathBuf],
) -> Result<ConversionFindings, Report> {
    let mut findings = ConversionFindings::default();
    let loaded = ScriptHost::load(sources, scripts::terms(options)).await;
    let Some((host, registry)) =
        loaded.ok().and_then(|(host, handlers)| Some((host, Registry::new(handlers).ok()?)))
    else {
        return Ok(findings);
    };
    let mut unchecked = registry.activities(Kind::Convert);
    let files = ManifestFiles::read(&files(options, given), &[])?;
    let host = Arc::new(host);
    for definition in files.documents() {
        let resource = resource_of(&definition.object);
        let handlers = registry.for_resource(&resource, &|_, _| false).admission;
        unchecked.retain(|it| !handlers.iter().any(|other| Arc::ptr_eq(it, other)));
        if handlers.iter().any(|it| it.kind == Kind::Convert) {
            let reviewer = reviewer(&host, &registry, (resource, handlers), options);
            let check = Check::start(definition, reviewer).await?;
            check.run(&mut findings).await;
        }
    }
    for handler in unchecked {
        let location = &handler.location;
        findings.warnings.push(format!(
            "{handler} ({location}) was not tested: pass the CRD of its objects with --crd FILE."
        ));
    }
    Ok(findings)
}

/// Returns the resource that a CRD defines.
fn resource_of(crd: &Value) -> Resource {
    let text =
        |path: &str| crd.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let texts = |path: &str| {
        let all = crd.pointer(path).and_then(Value::as_array).into_iter().flatten();
        all.filter_map(|it| it.as_str().map(str::to_owned)).collect()
    };
    Resource {
        group: text("/spec/group"),
        version: names(crd).into_iter().next().unwrap_or_default(),
        plural: text("/spec/names/plural"),
        kind: text("/spec/names/kind"),
        singular: text("/spec/names/singular"),
        shortcuts: texts("/spec/names/shortNames"),
        categories: texts("/spec/names/categories"),
        namespaced: text("/spec/scope") == "Namespaced",
        preferred: true,
        ..Resource::default()
    }
}

/// Returns the versions that a CRD serves.
fn names(crd: &Value) -> Vec<String> {
    let all = crd.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    let served = all.filter(|it| it.get("served").is_some_and(|it| *it == true));
    served.filter_map(|it| it.get("name")?.as_str().map(str::to_owned)).collect()
}

fn reviewer(
    host: &Arc<ScriptHost>,
    registry: &Registry,
    (resource, handlers): (Resource, Selected),
    options: &RunOptions,
) -> OperatorReviewer {
    let generation = Generation::new(registry.clone(), None);
    let live = LiveGeneration { generation, ..LiveGeneration::default() };
    let served = AdmissionHandlers {
        live: Arc::new(live),
        execution: options.settings.execution.clone(),
        resources: vec![(Arc::new(resource), handlers)],
    };
    let reviewer = OperatorReviewer {
        scripts: Arc::clone(host) as Arc<dyn Scripts>,
        clock: Clock::system(),
        memo: Memo::default(),
        recall: Arc::new(|_| None),
        metrics: Metrics::default(),
        serving: Mutex::default(),
    };
    reviewer.serve(served);
    reviewer
}

/// The check of one CRD.
struct Check {
    reviewer: OperatorReviewer,
    /// Accesses the server that decides which objects are valid.
    client: Client,
    definition: Value,
    /// The start of the CRD, as `file:line`.
    place: String,
}

impl Check {
    async fn start(definition: &FileObject, reviewer: OperatorReviewer) -> Result<Self, Report> {
        let server = ApiServer::builder().cluster(true).build();
        let mut crd = definition.object.clone();
        if let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) {
            spec.shift_remove("conversion");
        }
        let versions = crd.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
        for version in versions.into_iter().flatten().filter_map(Value::as_object_mut) {
            // With a status subresource, creations would drop the status.
            version.shift_remove("subresources");
        }
        let client = Client::new(server, NAMESPACE);
        let (definition, place) = (definition.object.clone(), definition.place.clone());
        let check = Check { reviewer, client, definition, place };
        let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        check.post(crds.to_owned(), &crd).await.map_err(|why| {
            Report::failure(format!("{}: the CRD is invalid: {why}", check.place))
        })?;
        Ok(check)
    }

    async fn run(&self, findings: &mut ConversionFindings) {
        let versions = names(&self.definition);
        for from in &versions {
            let samples = match self.samples(from).await {
                Ok(samples) => samples,
                Err(why) => {
                    let place = &self.place;
                    findings.warnings.push(format!(
                        "{place}: conversions from {from} were not tested: cannot create a valid object from the schema: {why}"
                    ));
                    continue;
                }
            };
            for to in versions.iter().filter(|it| *it != from) {
                if let Err(message) = self.there_and_back(&samples, from, to).await {
                    let file = self.place.clone();
                    let hint = None;
                    findings.errors.push(LoadError {
                        file,
                        line: None,
                        columns: None,
                        source_line: None,
                        message,
                        hint,
                    });
                }
            }
        }
    }

    /// Generates valid objects of a version. Fails with the last rejection if there are none.
    async fn samples(&self, version: &str) -> Result<Vec<Value>, String> {
        let all = self.definition.pointer("/spec/versions").and_then(Value::as_array);
        let is_it = |it: &&Value| it.get("name").is_some_and(|it| it == version);
        let found = all.into_iter().flatten().find(is_it);
        let schema = found.and_then(|it| it.pointer("/schema/openAPIV3Schema"));
        let schema = schema.ok_or("it has no schema")?;
        let mut random = Random::new(0);
        let (mut samples, mut refusal) = (Vec::new(), String::new());
        for number in 0..TRIES {
            let mut object = random.value(schema, 0);
            self.complete(&mut object, version, number);
            match self.valid(version, &object).await {
                Ok(object) => samples.push(object),
                Err(why) => refusal = why,
            }
            if samples.len() == SAMPLES {
                break;
            }
        }
        if samples.is_empty() { Err(refusal) } else { Ok(samples) }
    }

    fn complete(&self, object: &mut Value, version: &str, number: usize) {
        let Some(fields) = object.as_object_mut() else { return };
        let text = |path: &str| self.definition.pointer(path).cloned().unwrap_or_default();
        let group = text("/spec/group");
        let group = group.as_str().unwrap_or_default();
        fields.insert("apiVersion".into(), format!("{group}/{version}").into());
        fields.insert("kind".into(), text("/spec/names/kind"));
        let name = format!("sample-{number}");
        let namespace = self.is_namespaced().then_some(NAMESPACE);
        let mut metadata = json!({ "name": name, "labels": { "sample": "yes" } });
        if let (Some(namespace), Some(fields)) = (namespace, metadata.as_object_mut()) {
            fields.insert("namespace".into(), namespace.into());
        }
        fields.insert("metadata".into(), metadata);
    }

    fn is_namespaced(&self) -> bool {
        self.definition.pointer("/spec/scope").is_some_and(|it| it == "Namespaced")
    }

    /// Returns an object as the server would store it in this version.
    async fn valid(&self, version: &str, object: &Value) -> Result<Value, String> {
        let text =
            |path: &str| self.definition.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let (group, plural) = (text("/spec/group"), text("/spec/names/plural"));
        let namespace =
            if self.is_namespaced() { format!("namespaces/{NAMESPACE}/") } else { String::new() };
        let path = format!("/apis/{group}/{version}/{namespace}{plural}?dryRun=All");
        let mut stored = self.post(path, object).await?;
        // Of the metadata, only the fields that clients write.
        if let Some(fields) = stored.as_object_mut() {
            fields.insert("metadata".into(), object.get("metadata").cloned().unwrap_or_default());
        }
        Ok(stored)
    }

    async fn post(&self, path: String, object: &Value) -> Result<Value, String> {
        let request = http::Request::post(path).header("content-type", "application/json");
        let request = request.body(object.to_string().into_bytes());
        let request = request.map_err(|it| it.to_string())?;
        let sent = self.client.request::<Value>(request).await;
        sent.map_err(|it| {
            if let kube::Error::Api(status) = it { status.message } else { it.to_string() }
        })
    }

    /// Converts objects to another version and back. Fails with the first problem.
    async fn there_and_back(&self, samples: &[Value], from: &str, to: &str) -> Result<(), String> {
        let there = self.convert(samples, to).await?;
        let mut valid = Vec::with_capacity(there.len());
        for (sample, converted) in samples.iter().zip(&there) {
            let object = self.valid(to, converted).await.map_err(|why| {
                format!("the conversion from {from} to {to} returns an invalid object: {why}\n  {sample}")
            })?;
            if let Some(lost) = lost(converted, &object) {
                return Err(format!(
                    "the conversion from {from} to {to} sets {lost}, which the schema of {to} does not have\n  {sample}"
                ));
            }
            valid.push(object);
        }
        let back = self.convert(&valid, from).await?;
        for (sample, object) in samples.iter().zip(&back) {
            let object = self.valid(from, object).await.map_err(|why| {
                format!(
                    "the conversion from {from} to {to} and back returns an invalid object: {why}\n  {sample}"
                )
            })?;
            if let Some(change) = diff::diff(sample, &object).first() {
                let (field, old, new) = (change.field.join("."), &change.old, &change.new);
                return Err(format!(
                    "the conversion from {from} to {to} and back changes {field} from {old} to {new}\n  {sample}"
                ));
            }
        }
        Ok(())
    }

    async fn convert(&self, objects: &[Value], to: &str) -> Result<Vec<Value>, String> {
        let group = self.definition.pointer("/spec/group").and_then(Value::as_str);
        let version = format!("{}/{to}", group.unwrap_or_default());
        let review = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": { "uid": "check", "desiredAPIVersion": version, "objects": objects },
        });
        let request = ReviewRequest {
            handler: None,
            body: review.to_string().into(),
            client: ReviewClient::default(),
            deadline: None,
        };
        let answer = self.reviewer.review(request).await.map_err(|it| it.to_string())?;
        let mut answer: Value = serde_json::from_slice(&answer).map_err(|it| it.to_string())?;
        if let Some(message) = answer.pointer("/response/result/message").and_then(Value::as_str) {
            return Err(message.to_owned());
        }
        match answer.pointer_mut("/response/convertedObjects").map(Value::take) {
            Some(Value::Array(objects)) => Ok(objects),
            _ => Err("the review has no objects".to_owned()),
        }
    }
}

/// Returns the first field that a server has dropped.
fn lost(before: &Value, after: &Value) -> Option<String> {
    let changes = diff::diff(before, after);
    let removed = changes.iter().find(|it| it.new.is_null() && !it.old.is_null());
    removed.map(|it| it.field.join("."))
}
