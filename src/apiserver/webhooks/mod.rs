//! Webhooks. Admission webhooks are called before a write, and may change or refuse it. Conversion webhooks convert objects to
//! another version.
//!
//! Mutating webhooks are called one after the other, ordered by the names of their configurations; validating ones see the final
//! object.

pub(crate) mod conversion;
mod hook;
mod https;
mod review;

use serde_json::Value;

pub(crate) use self::https::https;
pub use self::https::{Post, WebhookTarget};
use self::{
    hook::Hook,
    review::{Denial, ReviewResponse},
};
use crate::{
    Shared, object,
    rbac::User,
    refusal::Refusal,
    resource::kind::VersionedKind,
    store::{Store, StoreKey},
    verbs::{Warnings, rules},
};

const MUTATING: &str = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
const VALIDATING: &str = "validatingwebhookconfigurations.admissionregistration.k8s.io";

/// An operation on an object, as webhooks see it.
#[derive(Clone, Copy)]
pub(crate) struct AdmissionRequest<'a> {
    /// One of `CREATE`, `UPDATE`, `DELETE`.
    pub(crate) operation: &'static str,
    pub(crate) view: &'a VersionedKind,
    /// Empty for the object itself.
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) old: Option<&'a Value>,
    pub(crate) dry: bool,
    /// The user of the request.
    pub(crate) user: &'a User,
    pub(crate) warnings: &'a Warnings,
}

/// Calls the mutating webhooks. Their result is decoded like a body: unknown fields are removed, and defaults are filled in.
pub(crate) async fn mutate(
    shared: &Shared,
    request: &AdmissionRequest<'_>,
    mut object: Value,
) -> Result<Value, Refusal> {
    let hooks = hooks(&shared.store(), MUTATING, request, Some(&object));
    if hooks.is_empty() {
        return Ok(object);
    }
    let mut again = Vec::new();
    for (index, hook) in hooks.iter().enumerate() {
        let before = object.clone();
        object = ask_for_changes(shared, request, hook, object).await?;
        if object != before {
            // Earlier webhooks have not seen this change; they are called again if their reinvocation policy requires it.
            again.extend(hooks.iter().take(index).filter(|it| it.reinvoked));
        }
    }
    let mut asked: Vec<&Hook> = Vec::new();
    for hook in again {
        if !asked.iter().any(|it| it.name == hook.name) {
            asked.push(hook);
            object = ask_for_changes(shared, request, hook, object).await?;
        }
    }
    rules::read(request.view, &mut object)?;
    Ok(object)
}

/// Calls all webhooks before a deletion. Mutating ones can refuse it, too, but there is no object to change.
pub(crate) async fn validate_deletion(
    shared: &Shared,
    request: &AdmissionRequest<'_>,
) -> Result<(), Refusal> {
    let hooks = hooks(&shared.store(), MUTATING, request, None);
    for hook in &hooks {
        call_hook(shared, request, hook, None).await?;
    }
    validate(shared, request, None).await
}

/// Calls the validating webhooks before a write.
pub(crate) async fn validate(
    shared: &Shared,
    request: &AdmissionRequest<'_>,
    object: Option<&Value>,
) -> Result<(), Refusal> {
    let hooks = hooks(&shared.store(), VALIDATING, request, object);
    let verdicts = hooks.iter().map(|hook| call_hook(shared, request, hook, object));
    for verdict in futures::future::join_all(verdicts).await {
        verdict?;
    }
    Ok(())
}

async fn ask_for_changes(
    shared: &Shared,
    request: &AdmissionRequest<'_>,
    hook: &Hook,
    object: Value,
) -> Result<Value, Refusal> {
    let kind = &request.view.kind;
    let seen = conversion::in_version(shared, kind, &hook.version, object.clone()).await?;
    let Some(verdict) = call_hook(shared, request, hook, Some(&seen)).await? else {
        return Ok(object);
    };
    match verdict.patched(&seen) {
        Ok(patched) if patched == seen => Ok(object),
        Ok(patched) => conversion::in_version(shared, kind, &request.view.version, patched).await,
        Err(_problem) if hook.ignores_failure => Ok(object),
        Err(problem) => Err(failed(hook, &problem)),
    }
}

/// Calls a webhook. Returns `None` if the call failed and its failure policy ignores that.
async fn call_hook(
    shared: &Shared,
    request: &AdmissionRequest<'_>,
    hook: &Hook,
    object: Option<&Value>,
) -> Result<Option<ReviewResponse>, Refusal> {
    let uid = shared.store().identities.uid();
    let in_version = |it: Option<&Value>| {
        let (kind, object) = (&request.view.kind, it.cloned());
        async move {
            let Some(object) = object else { return Ok(None) };
            conversion::in_version(shared, kind, &hook.version, object).await.map(Some)
        }
    };
    let (old, object) = (in_version(request.old).await?, in_version(object).await?);
    let (request, object) = (&AdmissionRequest { old: old.as_ref(), ..*request }, object.as_ref());
    let question = review::body(&uid, request, hook, object);
    match hook.meets(&question) {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(why) => {
            let def = &request.view.kind.def;
            return Err(Refusal::forbidden(def, &request.name_of(object.or(request.old)), &why));
        }
    }
    if request.dry && !hook.knows_dry_runs {
        let why = format!("admission webhook {:?} does not support dry run", hook.name);
        return Err(Refusal::bad_request(why));
    }
    let mut target = hook.target.clone();
    // The time limit is a parameter of the URL.
    let separator = if target.url.contains('?') { '&' } else { '?' };
    let seconds = hook.timeout.as_secs();
    target.url = format!("{}{separator}timeout={seconds}s", target.url);
    let call = shared.post.call(&target, question.to_string().into());
    let answer = match tokio::time::timeout(hook.timeout, call).await {
        Ok(answer) => answer,
        Err(_elapsed) => Err("context deadline exceeded".to_owned()),
    };
    let verdict = answer.and_then(|it| review::verdict(&uid, &it));
    let verdict = match verdict {
        Ok(verdict) => verdict,
        Err(_problem) if hook.ignores_failure => return Ok(None),
        Err(problem) => return Err(failed(hook, &problem)),
    };
    request.warnings.lock().extend(verdict.warnings.iter().cloned());
    match &verdict.denial {
        Some(denial) => Err(denied(hook, denial)),
        None => Ok(Some(verdict)),
    }
}

/// Returns the matching webhooks, in their order.
fn hooks(
    store: &Store,
    kind: &str,
    request: &AdmissionRequest<'_>,
    object: Option<&Value>,
) -> Vec<Hook> {
    let Some(table) = store.tables.get(kind).filter(|it| !it.objects.is_empty()) else {
        return Vec::new();
    };
    // Webhooks cannot block changes of webhook configurations.
    if request.view.kind.def.group == "admissionregistration.k8s.io" {
        return Vec::new();
    }
    let namespace = labels_of_namespace(store, request);
    let configurations = table.objects.values().map(|it| it.tree("", ""));
    let hooks = configurations.flat_map(|it| Hook::all(&it, request));
    let objects = [object, request.old];
    hooks.filter(|it| it.selects(namespace.as_ref(), &objects)).collect()
}

/// Returns the labels for namespace selectors; `None` for cluster-scoped objects.
fn labels_of_namespace(store: &Store, request: &AdmissionRequest<'_>) -> Option<Value> {
    let is_namespace = request.view.kind.def.qualified() == "namespaces";
    let name = if is_namespace { request.name } else { request.namespace };
    if name.is_empty() {
        return None;
    }
    let key = StoreKey::new("namespaces", "", name);
    let found = store.get(&key).map(|it| it.tree("", ""));
    let labels = found.and_then(|it| it.pointer("/metadata/labels").cloned());
    Some(labels.unwrap_or_else(|| Value::Object(serde_json::Map::new())))
}

fn failed(hook: &Hook, problem: &str) -> Refusal {
    Refusal::internal(&format!(
        "failed calling webhook {:?}: failed to call webhook: {problem}",
        hook.name
    ))
}

fn denied(hook: &Hook, denial: &Denial) -> Refusal {
    let by = format!("admission webhook {:?} denied the request", hook.name);
    let message = match (denial.message.as_str(), denial.reason.as_str()) {
        ("", "") => format!("{by} without explanation"),
        ("", reason) => format!("{by}: {reason}"),
        (message, _) => format!("{by}: {message}"),
    };
    Refusal::denied(denial.code, &denial.reason, message)
}

impl AdmissionRequest<'_> {
    /// Returns the name of the object; for a creation, it is in the body.
    fn name_of(&self, object: Option<&Value>) -> String {
        let own = object.map(|it| object::meta(it, "name")).unwrap_or_default();
        if self.name.is_empty() { own.to_owned() } else { self.name.to_owned() }
    }
}
