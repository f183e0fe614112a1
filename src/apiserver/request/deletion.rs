//! `DeleteOptions`: how a deletion is meant, from its body, or from the URL if there is none.

use http::header::CONTENT_TYPE;
use serde_json::{Map, Value, json};

use super::{
    Ask, body, json as reading,
    protobuf::{self, Envelope, PROTOBUF},
    query::Query,
    yaml,
};
use crate::{
    native,
    refusal::{Problem, ProblemKind, Refusal, go},
    resource::{CRDS, ResourceDef},
};

/// Where the real server keeps the options of requests; stands in its answers.
const SCHEME: &str = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27";

/// What protobuf holds.
const DEFINITION: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// Who may be left behind.
const POLICIES: [&str; 3] = ["Foreground", "Background", "Orphan"];

/// What a client wants.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    uid: Option<String>,
    version: Option<String>,
    /// `Orphan`, `Background` or `Foreground`
    pub(crate) propagation: Option<String>,
    pub(crate) grace_seconds: Option<i64>,
    pub(crate) dry: bool,
    /// Asked in the old way to leave nothing behind; it shows in the status of the answer.
    pub(crate) abandons_nothing: bool,
}

impl Options {
    /// Those of a request.
    pub(crate) fn parse(ask: &Ask, query: &Query) -> Result<Self, Refusal> {
        // As in the real server, a body makes the URL mean nothing.
        let options = if ask.body.is_empty() { of_query(query)? } else { of_body(ask)? };
        Self::of(&options)
    }

    /// Those that stand in a body.
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

    /// Whether it is about this object: by its name, its uid and its version.
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
            // They have deletions of their own, with other words.
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

fn of_body(ask: &Ask) -> Result<Value, Refusal> {
    let unread = |why: &str| {
        Refusal::bad_request(format!("couldn't get version/kind; json parse error: {why}"))
    };
    let value = match body::media_type(ask.header(CONTENT_TYPE)).as_str() {
        "" | body::JSON => reading::parse(&ask.body).map_err(|why| unread(&why))?,
        body::YAML => {
            yaml::parse(&ask.body).map_err(|why| Refusal::bad_request(format!("yaml: {why}")))?
        }
        PROTOBUF => {
            let envelope = Envelope::parse(&ask.body).map_err(Refusal::bad_request)?;
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
            problems.push(Problem::invalid("propagationPolicy", policy, why));
        }
        if !POLICIES.contains(&policy) {
            // The last one is a word, not the absence of one: the real server says so.
            let accepted = POLICIES.into_iter().chain(["nil"]).map(String::from).collect();
            let kind = ProblemKind::NotSupported(policy.into(), accepted);
            problems.push(Problem::new("propagationPolicy", kind));
        }
    }
    let runs = options.get("dryRun").and_then(Value::as_array);
    let runs = runs.into_iter().flatten().filter_map(Value::as_str).map(String::from);
    let runs: Vec<String> = runs.collect();
    if runs.iter().any(|it| it != "All") {
        problems.push(Problem::not_supported("dryRun", runs, &["All"]));
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Refusal::invalid("meta.k8s.io", "DeleteOptions", "", &problems))
}
