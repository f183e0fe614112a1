//! `DeleteOptions`, from the body of a deletion, or from the URL if there is none.

use http::header::CONTENT_TYPE;
use serde_json::{Map, Value, json};

use super::{
    ApiRequest, body, json as reading,
    protobuf::{self, Envelope, PROTOBUF},
    query::Query,
    yaml,
};
use crate::{
    native,
    refusal::{ProblemKind, Refusal, ValidationProblem, go},
    resource::{CRDS, ResourceDef},
};

/// The place where the real server registers the options of requests; part of its messages.
const SCHEME: &str = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27";

/// The definition of protobuf bodies.
const DEFINITION: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// The propagation policies: what happens to dependents.
const POLICIES: [&str; 3] = ["Foreground", "Background", "Orphan"];

/// The options of a deletion.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    uid: Option<String>,
    version: Option<String>,
    /// One of `Orphan`, `Background`, `Foreground`.
    pub(crate) propagation: Option<String>,
    pub(crate) grace_seconds: Option<i64>,
    pub(crate) dry: bool,
    /// The deprecated `orphanDependents: false` was used: the response has the status 202.
    pub(crate) abandons_nothing: bool,
}

impl DeleteOptions {
    /// Parses the options of a request.
    pub(crate) fn parse(request: &ApiRequest, query: &Query) -> Result<Self, Refusal> {
        // As on the real server, the URL is ignored if there is a body.
        let options = if request.body.is_empty() { of_query(query)? } else { of_body(request)? };
        Self::of(&options)
    }

    /// Parses the options in a body.
    pub(crate) fn of(options: &Value) -> Result<Self, Refusal> {
        check(options)?;
        let text = |path: &str| options.pointer(path).and_then(Value::as_str).map(String::from);
        let orphans = options.get("orphanDependents").and_then(Value::as_bool);
        let abandons_nothing = orphans == Some(false);
        let orphans = orphans.map(|it| if it { "Orphan" } else { "Background" }.to_owned());
        Ok(Self {
            uid: text("/preconditions/uid"),
            version: text("/preconditions/resourceVersion"),
            propagation: text("/propagationPolicy").or(orphans),
            grace_seconds: options.get("gracePeriodSeconds").and_then(Value::as_i64),
            dry: options.get("dryRun").and_then(Value::as_array).is_some_and(|it| !it.is_empty()),
            abandons_nothing,
        })
    }

    /// Checks the preconditions: the uid and the version of the object.
    pub(crate) fn check(
        &self,
        def: &ResourceDef,
        (name, uid, version): (&str, &str, u64),
    ) -> Result<(), Refusal> {
        let (wrong_uid, wrong_version) = (
            self.uid.as_deref().filter(|it| *it != uid),
            self.version.as_deref().filter(|it| *it != version.to_string()),
        );
        if matches!(def.qualified().as_str(), "namespaces" | CRDS) {
            // These kinds have their own deletion in the real server, with other messages.
            let why = match (wrong_uid, wrong_version) {
                (Some(it), _) => format!("UID in precondition: {it}, UID in object meta: {uid}"),
                (None, Some(it)) => format!(
                    "ResourceVersion in precondition: {it}, ResourceVersion in object meta: {version}"
                ),
                (None, None) => return Ok(()),
            };
            let why = format!("Precondition failed: {why}");
            return Err(Refusal::conflict_because(def, name, &why));
        }
        if let Some(wanted) = wrong_uid {
            let why = format!(
                "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). \
                 The object might have been deleted and then recreated"
            );
            return Err(Refusal::precondition(def, name, &why));
        }
        if let Some(wanted) = wrong_version {
            let why = format!(
                "the ResourceVersion in the precondition ({wanted}) does not match \
                 the ResourceVersion in record ({version}). The object might have been modified"
            );
            return Err(Refusal::precondition(def, name, &why));
        }
        Ok(())
    }
}

fn of_query(query: &Query) -> Result<Value, Refusal> {
    let mut options = Map::new();
    if let Some(seconds) = query.integer("gracePeriodSeconds")? {
        options.insert("gracePeriodSeconds".into(), seconds.into());
    }
    if query.has("orphanDependents") {
        options.insert("orphanDependents".into(), query.flag("orphanDependents").into());
    }
    if let Some(policy) = query.all("propagationPolicy").next() {
        options.insert("propagationPolicy".into(), policy.into());
    }
    if let Some(uid) = query.all("uid").next() {
        options.insert("preconditions".into(), json!({ "uid": uid }));
    }
    options.insert("dryRun".into(), query.all("dryRun").collect());
    Ok(options.into())
}

fn of_body(request: &ApiRequest) -> Result<Value, Refusal> {
    let unread = |why: &str| {
        Refusal::bad_request(format!("couldn't get version/kind; json parse error: {why}"))
    };
    let value = match body::media_type(request.header(CONTENT_TYPE)).as_str() {
        "" | body::JSON => reading::parse(&request.body).map_err(|why| unread(&why))?,
        body::YAML => yaml::parse(&request.body)
            .map_err(|why| Refusal::bad_request(format!("yaml: {why}")))?,
        PROTOBUF => {
            let envelope = Envelope::parse(&request.body).map_err(Refusal::bad_request)?;
            check_kind(&envelope.api_version, &envelope.kind)?;
            return protobuf::message(DEFINITION, envelope.message).map_err(Refusal::bad_request);
        }
        _ => return Err(Refusal::unsupported_media_type(&body::ACCEPTED)),
    };
    let (version, kind) = body::type_meta(&value).map_err(|why| unread(&why))?;
    if version.matches('/').count() > 1 {
        return Err(Refusal::bad_request(format!("unexpected GroupVersion string: {version}")));
    }
    check_kind(&version, &kind)?;
    let mut options = value.clone();
    native::decode_as(DEFINITION, &mut options, "").map_err(Refusal::bad_request)?;
    Ok(value)
}

fn check_kind(version: &str, kind: &str) -> Result<(), Refusal> {
    if kind.is_empty() || kind == "DeleteOptions" {
        return Ok(());
    }
    let version = if version.is_empty() { "v1" } else { version };
    Err(Refusal::bad_request(format!(
        "no kind {} is registered for version {} in scheme {}",
        go::quote(kind),
        go::quote(version),
        go::quote(SCHEME)
    )))
}

fn check(options: &Value) -> Result<(), Refusal> {
    let mut problems = Vec::new();
    let policy = options.get("propagationPolicy").and_then(Value::as_str);
    if let Some(policy) = policy {
        if options.get("orphanDependents").is_some_and(Value::is_boolean) {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            problems.push(ValidationProblem::invalid("propagationPolicy", policy, why));
        }
        if !POLICIES.contains(&policy) {
            // The real server lists the word `nil`, too.
            let accepted = POLICIES.into_iter().chain(["nil"]).map(String::from).collect();
            let kind = ProblemKind::NotSupported(policy.into(), accepted);
            problems.push(ValidationProblem::new("propagationPolicy", kind));
        }
    }
    let runs = options.get("dryRun").and_then(Value::as_array);
    let runs = runs.into_iter().flatten().filter_map(Value::as_str).map(String::from);
    let runs: Vec<String> = runs.collect();
    if runs.iter().any(|it| it != "All") {
        problems.push(ValidationProblem::not_supported("dryRun", runs, &["All"]));
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Refusal::invalid("meta.k8s.io", "DeleteOptions", "", &problems))
}
