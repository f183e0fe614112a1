//! The functions of `kube` that do not change the cluster.

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_STANDARD as STANDARD};
use serde_json::{Value, json};

use super::client::{KubeClient, ObjectAddress, failed, object, object_as, option, selected, text};
use crate::logic::{
    access::kube::{ALL_NAMESPACES, KubeVerb, ListPart, Reference, read_list, selector},
    text::{duration, size},
};
use crate::ports::{BoxFuture, Demand, ErrorClass, Verb, is_allowed};
use crate::scripting::functions::{
    Call,
    call::aside,
    outcome::{Datum, Failure, Outcome},
    passage::Passage,
};

/// Maximum number of objects in one response, as in kubectl.
const CHUNK: u64 = 500;
/// Objects in a script take at least this many times the size of their JSON.
const SHARE: usize = 4;
/// Maximum number of restarts of a list that has changed too much while it was read.
const RESTARTS_MAX: usize = 3;

/// Implements `kube.get`: reads one object.
pub(super) fn get(call: Call) -> BoxFuture<'static, Outcome> {
    Box::pin(async move {
        let client = KubeClient::of(&call, KubeVerb::Read)?;
        let mut wanted = selected(&call)?;
        wanted.name = option(&call, "name").map(str::to_owned).or(wanted.name);
        if wanted.name.is_none() {
            return Err(Failure::Plain(nameless(&call)));
        }
        let address = client.address(wanted, option(&call, "namespace")).await?;
        match client.send(address.demand(Verb::Get)).await {
            Ok(answer) => Ok(object(answer).await?.into()),
            Err(error) if error.class == ErrorClass::Missing => Ok(Value::Null.into()),
            Err(error) => Err(client.refused(error)),
        }
    })
}

/// Implements `kube.secret`: reads the decoded values of a Secret.
pub(super) fn secret(call: Call) -> BoxFuture<'static, Outcome> {
    Box::pin(async move {
        let client = KubeClient::of(&call, KubeVerb::Read)?;
        let name = call.text("name");
        let reference =
            json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name } });
        let address =
            client.address(Reference::of(&reference)?, option(&call, "namespace")).await?;
        let shown = address.shown();
        match client.send(address.demand(Verb::Get)).await {
            Ok(answer) => Ok(Datum::Map(object_as(answer, move |it| decoded(&it, &shown)).await??)),
            Err(error) if error.class == ErrorClass::Missing => Ok(Value::Null.into()),
            Err(error) => Err(client.refused(error)),
        }
    })
}

/// Returns the decoded values of a Secret.
fn decoded(secret: &Value, shown: &str) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let data = secret.get("data").and_then(Value::as_object).into_iter().flatten();
    let decoded = data.map(|(key, value)| {
        let bytes = STANDARD.decode(value.as_str().unwrap_or_default());
        Ok((key.clone(), bytes.map_err(|error| format!("{shown}: {key}: {error}"))?))
    });
    decoded.collect::<Result<_, String>>().map_err(Failure::Plain)
}

/// Returns the error of a name that was omitted, or passed at a wrong position.
fn nameless(call: &Call) -> String {
    match (option(call, "selector"), option(call, "selector2")) {
        (Some(resource), Some(name)) if !resource.contains(['/', '.']) => format!(
            "the option `name` is missing: pass the name of the object there, not after the resource ({resource:?}, \
             {name:?})"
        ),
        (_, _) => "the option `name` is missing: pass the name of the object".into(),
    }
}

/// Implements `kube.list`: reads all objects that match.
pub(super) fn list(mut call: Call) -> BoxFuture<'static, Outcome> {
    Box::pin(async move {
        let client = KubeClient::of(&call, KubeVerb::Read)?;
        let resource = client.resource(&selected(&call)?.resource).await?;
        let namespace = client.place(&resource, option(&call, "namespace")).await?;
        let query = selectors(&call)?;
        let demand = Demand {
            verb: Verb::List,
            resource,
            namespace,
            name: None,
            subresource: None,
            query,
            content: None,
        };
        let limit = call.value("limit").as_u64();
        let room = call.surroundings.limits.memory_limit / SHARE;
        let mut passage = call.passage.take();
        for _ in 0..RESTARTS_MAX {
            match all(&client, &demand, (limit, room), &mut passage).await? {
                ListReading::All(objects) => return Ok(Value::Array(objects).into()),
                ListReading::Expired => {}
                ListReading::Outgrown => {
                    let Some(crowded) = passage.take() else { continue };
                    passage = crowded.alone().await;
                }
            }
        }
        let message = format!("the list of {} changes faster than it can be read", demand.resource);
        Err(failed("Expired", message))
    })
}

/// The result of reading a list.
enum ListReading {
    All(Vec<Value>),
    /// The list must be read again: it has changed too much meanwhile.
    Expired,
    /// The list must be read again, alone: it does not fit next to other pending responses of the script.
    Outgrown,
}

/// Reads all parts of a list.
async fn all(
    client: &KubeClient,
    demand: &Demand,
    (limit, room): (Option<u64>, usize),
    passage: &mut Option<Passage>,
) -> Result<ListReading, Failure> {
    let (mut objects, mut token, mut size) = (Vec::new(), None::<String>, 0_usize);
    loop {
        let taken = u64::try_from(objects.len()).unwrap_or(u64::MAX);
        let chunk = limit.map_or(CHUNK, |it| it.saturating_sub(taken).min(CHUNK));
        if chunk == 0 {
            return Ok(ListReading::All(objects));
        }
        let mut next = demand.clone();
        next.query.push(("limit", chunk.to_string()));
        let is_first = token.is_none();
        next.query.extend(token.take().map(|it| ("continue", it)));
        let answer = match client.send(next).await {
            Ok(answer) => answer,
            Err(error) if error.class == ErrorClass::Expired && !is_first => {
                return Ok(ListReading::Expired);
            }
            Err(error) => return Err(client.refused(error)),
        };
        size = size.saturating_add(answer.len());
        if size > room {
            return Err(Failure::Plain(format!(
                "the list of {} is larger than {}, the limit for this script (settings.sandbox.memory_limit): narrow it with `namespace`, `label_selector` or `limit`",
                demand.resource,
                size::shown(room)
            )));
        }
        if passage.as_mut().is_some_and(|it| !it.grow(size)) {
            return Ok(ListReading::Outgrown);
        }
        let part = aside(answer.len(), move || read_list(&answer)).await?;
        let part =
            part.map_err(|it| Failure::Plain(format!("the response is not a list: {it}")))?;
        let ListPart { objects: more, token: rest } = part;
        objects.extend(more);
        token = rest;
        if token.is_none() {
            return Ok(ListReading::All(objects));
        }
    }
}

/// Returns the options that restrict what is listed or watched, as a query.
pub(super) fn selectors(call: &Call) -> Result<Vec<(&'static str, String)>, Failure> {
    let mut query = Vec::new();
    for (name, parameter) in
        [("label_selector", "labelSelector"), ("field_selector", "fieldSelector")]
    {
        let text = selector(call.value(name)).map_err(|it| format!("`{name}`: {it}"))?;
        query.extend(text.map(|it| (parameter, it)));
    }
    Ok(query)
}

/// Implements `kube.logs`: reads the log of a container.
pub(super) fn logs(call: Call) -> BoxFuture<'static, Outcome> {
    Box::pin(async move {
        let client = KubeClient::of(&call, KubeVerb::Read)?;
        let address = pod(&client, &call).await?;
        let room = call.surroundings.limits.string_size;
        let mut query = vec![("limitBytes", room.to_string())];
        query.extend(option(&call, "container").map(|it| ("container", it.to_owned())));
        query.extend(call.value("tail").as_u64().map(|it| ("tailLines", it.to_string())));
        let since = duration::parse(call.value("since"));
        query.extend(since.map(|it| ("sinceSeconds", seconds_up(it).to_string())));
        for flag in ["previous", "timestamps"] {
            if call.value(flag) == true {
                query.push((flag, "true".into()));
            }
        }
        let demand = Demand { subresource: Some("log".into()), query, ..address.demand(Verb::Get) };
        let answer = client.send(demand).await.map_err(|it| client.refused(it))?;
        Ok(Value::from(text(answer).await?).into())
    })
}

/// Returns the duration in seconds, rounded up, at least 1: the server accepts no others.
fn seconds_up(duration: Duration) -> u64 {
    let more = u64::from(duration.subsec_nanos() > 0);
    duration.as_secs().saturating_add(more).max(1)
}

/// Returns the pod of a call, by its name or as an object.
pub(super) async fn pod(client: &KubeClient, call: &Call) -> Result<ObjectAddress, Failure> {
    let pod = call.value("pod");
    let reference = match pod {
        Value::String(name) if !name.is_empty() => {
            let resource = crate::logic::access::kube::ResourceRef::Kind {
                group: String::new(),
                version: "v1".into(),
                kind: "Pod".into(),
            };
            Reference { resource, name: Some(name.clone()), namespace: None, uid: None }
        }
        Value::Object(_) => Reference::of(pod)?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::String(_) => {
            let message = "`pod`: expected the name of a pod, or the pod itself";
            return Err(Failure::Plain(message.into()));
        }
    };
    let address = client.address(reference, option(call, "namespace")).await?;
    address.named()?;
    Ok(address)
}

/// Implements `kube.can_i`: asks the API server whether an action is permitted.
pub(super) fn can_i(call: Call) -> BoxFuture<'static, Outcome> {
    Box::pin(async move {
        let client = KubeClient::of(&call, KubeVerb::Read)?;
        let resource = client.resource(&selected(&call)?.resource).await?;
        let namespace = match option(&call, "namespace") {
            Some(ALL_NAMESPACES) => None,
            option => client.place(&resource, option).await?,
        };
        let attributes = json!({
            "verb": call.text("verb"),
            "group": resource.group,
            "version": resource.version,
            "resource": resource.plural,
            "subresource": call.text("subresource"),
            "name": call.text("name"),
            "namespace": namespace.unwrap_or_default(),
        });
        let review = client.send_for_object(Demand::access_review(&attributes)).await?;
        Ok(Value::from(is_allowed(&review)).into())
    })
}

/// Implements `kube.version`: reads the version of the API server.
pub(super) fn version(call: Call) -> BoxFuture<'static, Outcome> {
    Box::pin(async move {
        let client = KubeClient::of(&call, KubeVerb::Read)?;
        let asked = client.kube.with(|cluster| async move { cluster.version().await }).await;
        let answer = asked.map_err(|it| client.refused(it))?;
        let version: Value = serde_json::from_slice(&answer)
            .map_err(|it| Failure::Plain(format!("the response is invalid: {it}")))?;
        Ok(version.into())
    })
}
