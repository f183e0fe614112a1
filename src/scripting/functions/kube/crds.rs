//! `kube.apply_crd`: CRDs that an operator brings along.

use std::{borrow::Cow, path::Path, time::Duration};

use bytes::Bytes;
use serde_json::Value;
use tokio::time::{self, Instant};

use super::{
    client::{KubeClient, ObjectAddress, failed, intent},
    watching::TIMEOUT_DEFAULT,
};
use crate::logic::access::kube::{KubeVerb, Reference};
use crate::ports::{BoxFuture, Demand, Verb};
use crate::scripting::functions::{
    Call, files,
    outcome::{Failure, Outcome},
    surroundings::Surroundings,
    yaml,
};

/// Maximum number of CRDs of one call.
const CRDS_MAX: usize = 100;
/// The pause between two reads of a CRD.
const PAUSE: Duration = Duration::from_millis(200);
const APPLY: &str = "application/apply-patch+yaml";

/// Implements `kube.apply_crd`: applies CRDs and waits until they are served.
pub(super) fn apply_crd(call: Call) -> BoxFuture<'static, Outcome> {
    Box::pin(async move {
        let client = KubeClient::of(&call, KubeVerb::Apply)?;
        let (call, definitions) = definitions(call).await?;
        let deadline = Instant::now() + call.duration("timeout").unwrap_or(TIMEOUT_DEFAULT);
        let mut applied = Vec::new();
        for (definition, text) in &definitions {
            let address = client.address(Reference::of(definition)?, None).await?;
            let mut query = intent(&call);
            query.push(("force", "true".into()));
            let content = Some((APPLY, text.clone()));
            let demand = Demand { query, content, ..address.demand(Verb::Patch) };
            client.send_for_object(demand).await?;
            applied.push(address);
        }
        let mut established = Vec::new();
        for (address, (definition, _)) in applied.iter().zip(&definitions) {
            established.push(until_established(&client, address, deadline).await?);
            let group = definition.pointer("/spec/group").and_then(Value::as_str);
            client.kube.forget(group.unwrap_or_default());
        }
        let is_one = call.value("crd").is_object() || established.len() == 1;
        let only = if is_one { established.pop() } else { None };
        Ok(only.unwrap_or(Value::Array(established)).into())
    })
}

/// Reads the CRDs of a call, possibly from a file, and returns them with their JSON. This takes place on another thread.
async fn definitions(call: Call) -> Result<(Call, Vec<(Value, Bytes)>), Failure> {
    let read = move || {
        let definitions = parsed(&call);
        (call, definitions)
    };
    let done = tokio::task::spawn_blocking(read).await;
    let (call, definitions) = done.map_err(|it| Failure::Plain(it.to_string()))?;
    Ok((call, definitions?))
}

fn parsed(call: &Call) -> Result<Vec<(Value, Bytes)>, Failure> {
    let definitions = match call.value("crd") {
        Value::Object(fields) => vec![Value::Object(fields.clone())],
        Value::String(text) => yaml::read_all(&content(call, text)?)
            .map_err(|it| Failure::Plain(format!("`crd`: {it}")))?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            return Err("`crd`: expected a map, YAML, or the path of a file".into());
        }
    };
    check(&definitions)?;
    let texts = definitions.into_iter().map(|it| {
        let text = it.to_string().into();
        (it, text)
    });
    Ok(texts.collect())
}

/// Returns the content of a file, or the text itself if it is not a path.
fn content<'a>(call: &Call, text: &'a str) -> Result<Cow<'a, str>, Failure> {
    let is_path = !text.contains('\n')
        && Path::new(text)
            .extension()
            .is_some_and(|it| ["yaml", "yml", "json"].iter().any(|known| it == *known));
    if !is_path {
        return Ok(Cow::Borrowed(text));
    }
    let Surroundings { access, limits, .. } = &*call.surroundings;
    Ok(Cow::Owned(files::read(access, text, limits.string_size)?))
}

fn check(definitions: &[Value]) -> Result<(), Failure> {
    if definitions.is_empty() {
        return Err("`crd`: contains no CRD".into());
    }
    if definitions.len() > CRDS_MAX {
        return Err(format!("`crd`: contains more than {CRDS_MAX} CRDs").into());
    }
    for (place, definition) in definitions.iter().enumerate() {
        let kind = definition.get("kind").and_then(Value::as_str).unwrap_or_default();
        if kind != "CustomResourceDefinition" {
            let found =
                if kind.is_empty() { "no kind".to_owned() } else { format!("the kind {kind:?}") };
            return Err(format!(
                "`crd`: document {} has {found}, not \"CustomResourceDefinition\"; kube.apply applies other objects",
                place + 1
            )
            .into());
        }
    }
    Ok(())
}

/// Waits until the API server serves the objects of a CRD.
async fn until_established(
    client: &KubeClient,
    address: &ObjectAddress,
    deadline: Instant,
) -> Result<Value, Failure> {
    loop {
        let definition = client.send_for_object(address.demand(Verb::Get)).await?;
        if condition(&definition, "Established", "True").is_some() {
            return Ok(definition);
        }
        if let Some(message) = condition(&definition, "NamesAccepted", "False") {
            let message =
                format!("{} cannot be served by the API server: {message}", address.shown());
            return Err(failed("NamesNotAccepted", message));
        }
        if Instant::now() >= deadline {
            let message =
                format!("{} was not served by the API server before the timeout", address.shown());
            return Err(failed("Timeout", message));
        }
        time::sleep_until(deadline.min(Instant::now() + PAUSE)).await;
    }
}

/// Returns the message of a condition, if it has this status.
fn condition<'a>(definition: &'a Value, kind: &str, status: &str) -> Option<&'a str> {
    let conditions = definition.pointer("/status/conditions")?.as_array()?;
    let found = conditions.iter().find(|it| it["type"] == kind && it["status"] == status)?;
    Some(found.get("message").and_then(Value::as_str).unwrap_or_default())
}
