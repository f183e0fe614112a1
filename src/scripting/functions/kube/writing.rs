//! The functions of `kube` that change the cluster.

use serde_json::{Map, Value, json};

use super::{
    client::{KubeClient, ObjectAddress, failed, intent, is_dry, object, option},
    reading::pod,
};
use crate::logic::{
    access::kube::{KubeVerb, Reference},
    text::duration,
};
use crate::ports::{BoxFuture, Demand, ErrorClass, Verb};
use crate::scripting::functions::{
    Call,
    outcome::{Failure, Outcome},
};

/// The content type of objects; those of patches follow.
const JSON: &str = "application/json";
const APPLY: &str = "application/apply-patch+yaml";
const PATCHES: &[(&str, &str)] = &[
    ("merge", "application/merge-patch+json"),
    ("json", "application/json-patch+json"),
    ("strategic", "application/strategic-merge-patch+json"),
];

/// Maximum number of attempts to create or read an object that others create and delete at the same time.
const ATTEMPTS_MAX: usize = 5;

/// The ways to delete the objects that an object owns.
const PROPAGATIONS: &[&str] = &["Background", "Foreground", "Orphan"];

/// Implements `kube.create`: creates an object, or reads an existing one if requested.
pub(super) fn create(call: Call) -> BoxFuture<'static, Outcome> {
    let text = text_of(&call);
    Box::pin(async move {
        let client = KubeClient::of(&call, KubeVerb::Create)?;
        let address = place_of(&client, &call).await?;
        let query = intent(&call);
        let content = Some((JSON, text));
        let demand = Demand { name: None, query, content, ..address.demand(Verb::Create) };
        if !call.flag("exists_ok") || address.name.is_none() {
            return Ok(client.send_for_object(demand).await?.into());
        }
        for _ in 0..ATTEMPTS_MAX {
            let refused = match client.send(demand.clone()).await {
                Ok(answer) => return Ok(object(answer).await?.into()),
                Err(error) => error,
            };
            let said = refused.answer.as_ref().map(|it| it.reason.as_str());
            if said != Some("AlreadyExists") {
                return Err(client.refused(refused));
            }
            match client.send(address.demand(Verb::Get)).await {
                Ok(answer) => return Ok(object(answer).await?.into()),
                // It was deleted meanwhile.
                Err(error) if error.class == ErrorClass::Missing => {}
                Err(error) => return Err(client.refused(error)),
            }
        }
        Err(failed(
            "Conflict",
            format!("{} keeps being created and deleted by another client", address.shown()),
        ))
    })
}

/// Implements `kube.apply`: applies an object with server-side apply.
pub(super) fn apply(call: Call) -> BoxFuture<'static, Outcome> {
    let text = text_of(&call);
    Box::pin(async move {
        let client = KubeClient::of(&call, KubeVerb::Apply)?;
        let address = place_of(&client, &call).await?;
        address.named()?;
        let mut query = intent(&call);
        if call.value("force") == true {
            query.push(("force", "true".into()));
        }
        let subresource = option(&call, "subresource").map(str::to_owned);
        let content = Some((APPLY, text));
        let demand = Demand { subresource, query, content, ..address.demand(Verb::Patch) };
        Ok(client.send_for_object(demand).await?.into())
    })
}

/// Implements `kube.replace`: replaces an object.
pub(super) fn replace(call: Call) -> BoxFuture<'static, Outcome> {
    let text = text_of(&call);
    Box::pin(async move {
        let client = KubeClient::of(&call, KubeVerb::Replace)?;
        let address = place_of(&client, &call).await?;
        address.named()?;
        let subresource = option(&call, "subresource").map(str::to_owned);
        let (query, content) = (intent(&call), Some((JSON, text)));
        let demand = Demand { subresource, query, content, ..address.demand(Verb::Update) };
        Ok(client.send_for_object(demand).await?.into())
    })
}

/// Returns the JSON of the object to write. The call itself creates it, so that its CPU time counts.
fn text_of(call: &Call) -> bytes::Bytes {
    call.value("object").to_string().into()
}

/// Returns the address of the object to write.
async fn place_of(client: &KubeClient, call: &Call) -> Result<ObjectAddress, Failure> {
    client.address(Reference::of(call.value("object"))?, option(call, "namespace")).await
}

/// Implements `kube.patch`: patches an object in one of several formats.
pub(super) fn patch(call: Call) -> BoxFuture<'static, Outcome> {
    let text = call.value("patch").to_string();
    Box::pin(async move {
        let client = KubeClient::of(&call, KubeVerb::Patch)?;
        let patch = call.value("patch");
        let kind = option(&call, "type").unwrap_or(if patch.is_array() { "json" } else { "merge" });
        let Some((_, content_type)) = PATCHES.iter().find(|(name, _)| *name == kind) else {
            let message =
                format!("`type`: expected \"merge\", \"json\" or \"strategic\", got {kind:?}");
            return Err(Failure::Plain(message));
        };
        let expected = if kind == "json" { "a list of operations" } else { "a map of fields" };
        // One of the languages writes an empty list as an empty map.
        let is_empty = patch.as_object().is_some_and(Map::is_empty);
        let fits = if kind == "json" { patch.is_array() || is_empty } else { patch.is_object() };
        if !fits {
            let message = format!("`patch`: expected {expected} for a patch of the type {kind:?}");
            return Err(Failure::Plain(message));
        }
        let text = if kind == "json" && is_empty { "[]".into() } else { text };
        let address = referred(&client, &call).await?;
        let subresource = option(&call, "subresource").map(str::to_owned);
        let content = Some((*content_type, text.into()));
        let demand =
            Demand { subresource, query: intent(&call), content, ..address.demand(Verb::Patch) };
        Ok(client.send_for_object(demand).await?.into())
    })
}

/// Returns the address of the object that a call refers to.
async fn referred(client: &KubeClient, call: &Call) -> Result<ObjectAddress, Failure> {
    let reference = Reference::of(call.value("object"))?;
    let address = client.address(reference, option(call, "namespace")).await?;
    address.named()?;
    Ok(address)
}

/// Implements `kube.delete`: deletes an object.
pub(super) fn delete(call: Call) -> BoxFuture<'static, Outcome> {
    Box::pin(async move {
        let client = KubeClient::of(&call, KubeVerb::Delete)?;
        let options = deletion(&call)?;
        let address = referred(&client, &call).await?;
        let content = Some((JSON, Value::Object(options).to_string().into()));
        let demand = Demand { content, ..address.demand(Verb::Delete) };
        let missing_ok = call.value("missing_ok") != false;
        gone(&client, demand, missing_ok).await
    })
}

/// Sends a request that removes an object. Returns whether it existed.
async fn gone(client: &KubeClient, demand: Demand, missing_ok: bool) -> Outcome {
    match client.send(demand).await {
        Ok(_) => Ok(Value::from(true).into()),
        Err(error) if error.class == ErrorClass::Missing && missing_ok => {
            Ok(Value::from(false).into())
        }
        Err(error) => Err(client.refused(error)),
    }
}

/// Returns the options of a deletion.
fn deletion(call: &Call) -> Result<Map<String, Value>, Failure> {
    let mut options = Map::new();
    options.insert("kind".into(), "DeleteOptions".into());
    options.insert("apiVersion".into(), "v1".into());
    if let Some(asked) = option(call, "propagation") {
        let known = PROPAGATIONS.iter().find(|it| it.eq_ignore_ascii_case(asked));
        let unknown = || {
            format!(
                "`propagation`: expected \"Background\", \"Foreground\" or \"Orphan\", got {asked:?}"
            )
        };
        options.insert("propagationPolicy".into(), (*known.ok_or_else(unknown)?).into());
    }
    if let Some(uid) = option(call, "uid") {
        options.insert("preconditions".into(), json!({ "uid": uid }));
    }
    if let Some(grace) = duration::parse(call.value("grace_period")) {
        options.insert("gracePeriodSeconds".into(), grace.as_secs().into());
    }
    if is_dry(call) {
        options.insert("dryRun".into(), json!(["All"]));
    }
    Ok(options)
}

/// Implements `kube.scale`: sets the number of replicas.
pub(super) fn scale(call: Call) -> BoxFuture<'static, Outcome> {
    Box::pin(async move {
        let client = KubeClient::of(&call, KubeVerb::Patch)?;
        let address = referred(&client, &call).await?;
        if !address.resource.subresources.contains("scale") {
            let message = format!(
                "{} cannot be scaled: the resource has no subresource `scale`",
                address.resource
            );
            return Err(failed("NotScalable", message));
        }
        let patch = json!({ "spec": { "replicas": call.value("replicas") } });
        let content = Some(("application/merge-patch+json", patch.to_string().into()));
        let (subresource, query) = (Some("scale".into()), intent(&call));
        let demand = Demand { subresource, query, content, ..address.demand(Verb::Patch) };
        Ok(client.send_for_object(demand).await?.into())
    })
}

/// Implements `kube.evict`: evicts a pod.
pub(super) fn evict(call: Call) -> BoxFuture<'static, Outcome> {
    Box::pin(async move {
        let client = KubeClient::of(&call, KubeVerb::Evict)?;
        let options = deletion(&call)?;
        let address = pod(&client, &call).await?;
        let demand = |version: &str| {
            let eviction = json!({
                "apiVersion": version,
                "kind": "Eviction",
                "metadata": { "name": address.name, "namespace": address.namespace },
                "deleteOptions": options,
            });
            let content = Some((JSON, eviction.to_string().into()));
            let (subresource, query) = (Some("eviction".into()), intent(&call));
            Demand { subresource, query, content, ..address.demand(Verb::Create) }
        };
        match gone(&client, demand("policy/v1"), true).await {
            // Servers before 1.22 know only the older form.
            Err(Failure::Answer(refusal)) if refusal.status == Some(400) => {
                gone(&client, demand("policy/v1beta1"), true).await
            }
            outcome => outcome,
        }
    })
}
