//! Webhooks. Admission: others are asked before something is written, and may change or refuse it. Conversion: others are asked for
//! objects in another version.
//!
//! Mutating ones are asked one after the other, by the names of their configurations; validating ones see the final object.

pub(crate) mod conversion;
mod hook;
mod https;
mod review;

use serde_json::Value;

pub(crate) use self::https::https;
pub use self::https::{Post, Target};
use self::{
    hook::Hook,
    review::{Denial, Verdict},
};
use crate::{
    Shared, object,
    rbac::User,
    refusal::Refusal,
    resource::kind::View,
    store::{Key, Store},
    verbs::{Warnings, rules},
};

const MUTATING: &str = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
const VALIDATING: &str = "validatingwebhookconfigurations.admissionregistration.k8s.io";

/// What is going to be done with which object.
#[derive(Clone, Copy)]
pub(crate) struct Attempt<'a> {
    /// `CREATE`, `UPDATE` or `DELETE`
    pub(crate) operation: &'static str,
    pub(crate) view: &'a View,
    /// Empty: the object itself.
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) old: Option<&'a Value>,
    pub(crate) dry: bool,
    /// Who asks.
    pub(crate) user: &'a User,
    pub(crate) warnings: &'a Warnings,
}

/// Lets webhooks change the object that is going to be written. What they made of it is read like a body: fields that do not
/// exist go, and what is left out is filled in.
pub(crate) async fn mutate(
    shared: &Shared,
    attempt: &Attempt<'_>,
    mut object: Value,
) -> Result<Value, Refusal> {
    let hooks = hooks(&shared.store(), MUTATING, attempt, Some(&object));
    if hooks.is_empty() {
        return Ok(object);
    }
    let mut again = Vec::new();
    for (index, hook) in hooks.iter().enumerate() {
        let before = object.clone();
        object = ask_for_changes(shared, attempt, hook, object).await?;
        if object != before {
            // Those before have not seen this; they are asked once more if they want it.
            again.extend(hooks.iter().take(index).filter(|it| it.wants_to_be_asked_again));
        }
    }
    let mut asked: Vec<&Hook> = Vec::new();
    for hook in again {
        if !asked.iter().any(|it| it.name == hook.name) {
            asked.push(hook);
            object = ask_for_changes(shared, attempt, hook, object).await?;
        }
    }
    rules::read(attempt.view, &mut object)?;
    Ok(object)
}

/// Lets webhooks refuse a deletion. Mutating ones are asked too, but there is nothing to change.
pub(crate) async fn validate_deletion(
    shared: &Shared,
    attempt: &Attempt<'_>,
) -> Result<(), Refusal> {
    let hooks = hooks(&shared.store(), MUTATING, attempt, None);
    for hook in &hooks {
        ask(shared, attempt, hook, None).await?;
    }
    validate(shared, attempt, None).await
}

/// Lets webhooks refuse what is going to be written.
pub(crate) async fn validate(
    shared: &Shared,
    attempt: &Attempt<'_>,
    object: Option<&Value>,
) -> Result<(), Refusal> {
    let hooks = hooks(&shared.store(), VALIDATING, attempt, object);
    let verdicts = hooks.iter().map(|hook| ask(shared, attempt, hook, object));
    for verdict in futures::future::join_all(verdicts).await {
        verdict?;
    }
    Ok(())
}

async fn ask_for_changes(
    shared: &Shared,
    attempt: &Attempt<'_>,
    hook: &Hook,
    object: Value,
) -> Result<Value, Refusal> {
    let kind = &attempt.view.kind;
    let seen = conversion::in_version(shared, kind, &hook.version, object.clone()).await?;
    let Some(verdict) = ask(shared, attempt, hook, Some(&seen)).await? else { return Ok(object) };
    match verdict.patched(&seen) {
        Ok(patched) if patched == seen => Ok(object),
        Ok(patched) => conversion::in_version(shared, kind, &attempt.view.version, patched).await,
        Err(_problem) if hook.may_fail => Ok(object),
        Err(problem) => Err(failed(hook, &problem)),
    }
}

/// `None`: it could not be asked, which does not matter to it.
async fn ask(
    shared: &Shared,
    attempt: &Attempt<'_>,
    hook: &Hook,
    object: Option<&Value>,
) -> Result<Option<Verdict>, Refusal> {
    let uid = shared.store().identities.uid();
    let in_version = |it: Option<&Value>| {
        let (kind, object) = (&attempt.view.kind, it.cloned());
        async move {
            let Some(object) = object else { return Ok(None) };
            conversion::in_version(shared, kind, &hook.version, object).await.map(Some)
        }
    };
    let (old, object) = (in_version(attempt.old).await?, in_version(object).await?);
    let (attempt, object) = (&Attempt { old: old.as_ref(), ..*attempt }, object.as_ref());
    let question = review::question(&uid, attempt, hook, object);
    match hook.meets(&question) {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(why) => {
            let def = &attempt.view.kind.def;
            return Err(Refusal::forbidden(def, &attempt.name_of(object.or(attempt.old)), &why));
        }
    }
    if attempt.dry && !hook.knows_dry_runs {
        let why = format!("admission webhook {:?} does not support dry run", hook.name);
        return Err(Refusal::bad_request(why));
    }
    let mut target = hook.target.clone();
    // The webhook is told how much time it has.
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
        Err(_problem) if hook.may_fail => return Ok(None),
        Err(problem) => return Err(failed(hook, &problem)),
    };
    attempt.warnings.lock().extend(verdict.warnings.iter().cloned());
    match &verdict.denial {
        Some(denial) => Err(denied(hook, denial)),
        None => Ok(Some(verdict)),
    }
}

/// The webhooks that want to be asked, in their order.
fn hooks(store: &Store, kind: &str, attempt: &Attempt<'_>, object: Option<&Value>) -> Vec<Hook> {
    let Some(table) = store.tables.get(kind).filter(|it| !it.objects.is_empty()) else {
        return Vec::new();
    };
    // Nobody can lock others out of changing webhooks.
    if attempt.view.kind.def.group == "admissionregistration.k8s.io" {
        return Vec::new();
    }
    let namespace = labels_of_namespace(store, attempt);
    let configurations = table.objects.values().map(|it| it.tree("", ""));
    let hooks = configurations.flat_map(|it| Hook::all(&it, attempt));
    let objects = [object, attempt.old];
    hooks.filter(|it| it.selects(namespace.as_ref(), &objects)).collect()
}

/// The labels that namespace selectors look at; nothing for what is in no namespace.
fn labels_of_namespace(store: &Store, attempt: &Attempt<'_>) -> Option<Value> {
    let is_namespace = attempt.view.kind.def.qualified() == "namespaces";
    let name = if is_namespace { attempt.name } else { attempt.namespace };
    if name.is_empty() {
        return None;
    }
    let key = Key::new("namespaces", "", name);
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

impl Attempt<'_> {
    /// The name of the object, which a creation may only get from its body.
    fn name_of(&self, object: Option<&Value>) -> String {
        let own = object.map(|it| object::meta(it, "name")).unwrap_or_default();
        if self.name.is_empty() { own.to_owned() } else { self.name.to_owned() }
    }
}
