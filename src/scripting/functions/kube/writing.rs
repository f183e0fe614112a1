//! The functions of `kube` that change the cluster.

use serde_json::{Map, Value, json};

use super::{
    desk::{Desk, Spot, failed, intent, is_dry, object, option},
    reading::pod,
};
use crate::logic::{
    access::kube::{Attempt, Reference},
    text::duration,
};
use crate::ports::{BoxFuture, Demand, ErrorClass, Verb};
use crate::scripting::functions::{
    Call,
    outcome::{Failure, Outcome},
};

/// Content types.
const JSON: &str = "application/json";
const APPLY: &str = "application/apply-patch+yaml";
const PATCHES: &[(&str, &str)] = &[
    ("merge", "application/merge-patch+json"),
    ("json", "application/json-patch+json"),
    ("strategic", "application/strategic-merge-patch+json"),
];

/// How often an object is created or read that others create and delete at the same time.
const ATTEMPTS_MAX: usize = 5;

/// What becomes of what an object owns.
const PROPAGATIONS: &[&str] = &["Background", "Foreground", "Orphan"];

/// `kube.create`
pub(super) fn create(call: Call) -> BoxFuture<'static, Outcome> {
    let text = text_of(&call);
    Box::pin(async move {
        let desk = Desk::of(&call, Attempt::Create)?;
        let spot = place_of(&desk, &call).await?;
        let query = intent(&call);
        let content = Some((JSON, text));
        let demand = Demand { name: None, query, content, ..spot.demand(Verb::Create) };
        if !call.flag("exists_ok") || spot.name.is_none() {
            return Ok(desk.send_for_object(demand).await?.into());
        }
        for _ in 0..ATTEMPTS_MAX {
            let refused = match desk.send(demand.clone()).await {
                Ok(answer) => return Ok(object(&answer)?.into()),
                Err(error) => error,
            };
            let said = refused.answer.as_ref().map(|it| it.reason.as_str());
            if said != Some("AlreadyExists") {
                return Err(desk.refused(refused));
            }
            match desk.send(spot.demand(Verb::Get)).await {
                Ok(answer) => return Ok(object(&answer)?.into()),
                // It was deleted meanwhile.
                Err(error) if error.class == ErrorClass::Missing => {}
                Err(error) => return Err(desk.refused(error)),
            }
        }
        Err(failed("Conflict", format!("{} is created and deleted again and again", spot.shown())))
    })
}

/// `kube.apply`
pub(super) fn apply(call: Call) -> BoxFuture<'static, Outcome> {
    let text = text_of(&call);
    Box::pin(async move {
        let desk = Desk::of(&call, Attempt::Apply)?;
        let spot = place_of(&desk, &call).await?;
        spot.named()?;
        let mut query = intent(&call);
        if call.value("force") == true {
            query.push(("force", "true".into()));
        }
        let subresource = option(&call, "subresource").map(str::to_owned);
        let content = Some((APPLY, text));
        let demand = Demand { subresource, query, content, ..spot.demand(Verb::Patch) };
        Ok(desk.send_for_object(demand).await?.into())
    })
}

/// `kube.replace`
pub(super) fn replace(call: Call) -> BoxFuture<'static, Outcome> {
    let text = text_of(&call);
    Box::pin(async move {
        let desk = Desk::of(&call, Attempt::Replace)?;
        let spot = place_of(&desk, &call).await?;
        spot.named()?;
        let subresource = option(&call, "subresource").map(str::to_owned);
        let (query, content) = (intent(&call), Some((JSON, text)));
        let demand = Demand { subresource, query, content, ..spot.demand(Verb::Update) };
        Ok(desk.send_for_object(demand).await?.into())
    })
}

/// The text of the object that is written: made by the call itself, whose time that takes.
fn text_of(call: &Call) -> bytes::Bytes {
    call.value("object").to_string().into()
}

/// Where an object is written.
async fn place_of(desk: &Desk, call: &Call) -> Result<Spot, Failure> {
    desk.spot(Reference::of(call.value("object"))?, option(call, "namespace")).await
}

/// `kube.patch`
pub(super) fn patch(call: Call) -> BoxFuture<'static, Outcome> {
    let text = call.value("patch").to_string();
    Box::pin(async move {
        let desk = Desk::of(&call, Attempt::Patch)?;
        let patch = call.value("patch");
        let kind = option(&call, "type").unwrap_or(if patch.is_array() { "json" } else { "merge" });
        let Some((_, content_type)) = PATCHES.iter().find(|(name, _)| *name == kind) else {
            let message =
                format!("`type`: expected \"merge\", \"json\" or \"strategic\", got {kind:?}");
            return Err(Failure::Plain(message));
        };
        let expected = if kind == "json" { "a list of operations" } else { "a map of fields" };
        // An empty list is written as an empty map in one of the languages.
        let is_empty = patch.as_object().is_some_and(Map::is_empty);
        let fits = if kind == "json" { patch.is_array() || is_empty } else { patch.is_object() };
        if !fits {
            let message = format!("`patch`: expected {expected} for a patch of the type {kind:?}");
            return Err(Failure::Plain(message));
        }
        let text = if kind == "json" && is_empty { "[]".into() } else { text };
        let spot = referred(&desk, &call).await?;
        let subresource = option(&call, "subresource").map(str::to_owned);
        let content = Some((*content_type, text.into()));
        let demand =
            Demand { subresource, query: intent(&call), content, ..spot.demand(Verb::Patch) };
        Ok(desk.send_for_object(demand).await?.into())
    })
}

/// The object that is referred to.
async fn referred(desk: &Desk, call: &Call) -> Result<Spot, Failure> {
    let reference = Reference::of(call.value("object"))?;
    let spot = desk.spot(reference, option(call, "namespace")).await?;
    spot.named()?;
    Ok(spot)
}

/// `kube.delete`
pub(super) fn delete(call: Call) -> BoxFuture<'static, Outcome> {
    Box::pin(async move {
        let desk = Desk::of(&call, Attempt::Delete)?;
        let options = deletion(&call)?;
        let spot = referred(&desk, &call).await?;
        let content = Some((JSON, Value::Object(options).to_string().into()));
        let demand = Demand { content, ..spot.demand(Verb::Delete) };
        let missing_ok = call.value("missing_ok") != false;
        gone(&desk, demand, missing_ok).await
    })
}

/// Sends a request after which an object is gone. Gives whether it was there.
async fn gone(desk: &Desk, demand: Demand, missing_ok: bool) -> Outcome {
    match desk.send(demand).await {
        Ok(_) => Ok(Value::from(true).into()),
        Err(error) if error.class == ErrorClass::Missing && missing_ok => {
            Ok(Value::from(false).into())
        }
        Err(error) => Err(desk.refused(error)),
    }
}

/// How an object is to be deleted.
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

/// `kube.scale`
pub(super) fn scale(call: Call) -> BoxFuture<'static, Outcome> {
    Box::pin(async move {
        let desk = Desk::of(&call, Attempt::Patch)?;
        let spot = referred(&desk, &call).await?;
        if !spot.resource.subresources.contains("scale") {
            let message = format!("{} cannot be scaled: the resource has no scale", spot.resource);
            return Err(failed("NotScalable", message));
        }
        let patch = json!({ "spec": { "replicas": call.value("replicas") } });
        let content = Some(("application/merge-patch+json", patch.to_string().into()));
        let (subresource, query) = (Some("scale".into()), intent(&call));
        let demand = Demand { subresource, query, content, ..spot.demand(Verb::Patch) };
        Ok(desk.send_for_object(demand).await?.into())
    })
}

/// `kube.evict`
pub(super) fn evict(call: Call) -> BoxFuture<'static, Outcome> {
    Box::pin(async move {
        let desk = Desk::of(&call, Attempt::Evict)?;
        let options = deletion(&call)?;
        let spot = pod(&desk, &call).await?;
        let demand = |version: &str| {
            let eviction = json!({
                "apiVersion": version,
                "kind": "Eviction",
                "metadata": { "name": spot.name, "namespace": spot.namespace },
                "deleteOptions": options,
            });
            let content = Some((JSON, eviction.to_string().into()));
            let (subresource, query) = (Some("eviction".into()), intent(&call));
            Demand { subresource, query, content, ..spot.demand(Verb::Create) }
        };
        match gone(&desk, demand("policy/v1"), true).await {
            // Servers before 1.22 know the older form only.
            Err(Failure::Answer(refusal)) if refusal.status == Some(400) => {
                gone(&desk, demand("policy/v1beta1"), true).await
            }
            outcome => outcome,
        }
    })
}
