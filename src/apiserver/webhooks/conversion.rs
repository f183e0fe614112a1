//! `ConversionReview`: the conversion of objects of a CRD to another version, by the webhook of the CRD.
//!
//! Objects stay in the version in which they were stored. They are converted when a client requests another version, and before
//! they are stored.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::{Value, json};

use super::https::WebhookTarget;
use crate::{
    Shared, object,
    refusal::Refusal,
    resource::kind::{Kind, VersionedKind},
    schema,
    store::stored::Stored,
};

/// Time limit of a response, the same as on the real server.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of objects in one review.
const OBJECTS_MAX: usize = 500;

/// Converts stored objects to the version of a view.
pub(crate) async fn shown(
    shared: &Shared,
    view: &VersionedKind,
    mut objects: Vec<Arc<Stored>>,
) -> Result<Vec<Arc<Stored>>, Refusal> {
    let Some(kind) = converting(shared, view) else { return Ok(objects) };
    let is_other = |it: &Stored| !it.version().is_empty() && it.version() != view.version;
    let tree = |it: &Stored| it.tree(&kind.def.api_version(it.version()), &kind.def.kind);
    let others: Vec<Value> = objects.iter().filter(|it| is_other(it)).map(|it| tree(it)).collect();
    if others.is_empty() {
        return Ok(objects);
    }
    let mut converted = converted(shared, &kind, &view.version, others).await?.into_iter();
    for object in objects.iter_mut().filter(|it| is_other(it)) {
        if let Some(converted) = converted.next() {
            *object = Arc::new(Stored::of(&converted));
        }
    }
    Ok(objects)
}

/// Converts one stored object to the version of a view.
pub(crate) async fn one(
    shared: &Shared,
    view: &VersionedKind,
    object: Arc<Stored>,
) -> Result<Arc<Stored>, Refusal> {
    if converting(shared, view).is_none() {
        return Ok(object);
    }
    let all = shown(shared, view, vec![Arc::clone(&object)]).await?;
    Ok(all.into_iter().next().unwrap_or(object))
}

/// Converts one stored object to the version of a view, and returns it as a tree.
pub(crate) async fn tree(
    shared: &Shared,
    view: &VersionedKind,
    object: &Arc<Stored>,
) -> Result<Value, Refusal> {
    let object = one(shared, view, Arc::clone(object)).await?;
    Ok(view.tree(&object))
}

/// Converts an object to its stored form.
pub(crate) async fn stored(
    shared: &Shared,
    view: &VersionedKind,
    object: Value,
) -> Result<Value, Refusal> {
    let converted = converted_to_store(shared, view, &object).await?;
    Ok(converted.unwrap_or_else(|| view.stored(object)))
}

/// Converts an object to its stored form; `None` if no webhook is necessary.
pub(crate) async fn converted_to_store(
    shared: &Shared,
    view: &VersionedKind,
    object: &Value,
) -> Result<Option<Value>, Refusal> {
    let Some(kind) = converting(shared, view) else { return Ok(None) };
    let object = in_version(shared, &kind, &kind.storage.version, object.clone()).await?;
    Ok(Some(VersionedKind::new(&kind, &view.version).stored(object)))
}

/// Converts an object to another version of its kind, if the kind has a conversion webhook.
pub(crate) async fn in_version(
    shared: &Shared,
    kind: &Kind,
    version: &str,
    object: Value,
) -> Result<Value, Refusal> {
    let wanted = kind.def.api_version(version);
    let is_wanted = object.get("apiVersion").is_some_and(|it| *it == *wanted);
    if kind.storage.webhook.is_none() || version.is_empty() || is_wanted {
        return Ok(object);
    }
    let all = converted(shared, kind, version, vec![object]).await?;
    all.into_iter().next().ok_or_else(|| Refusal::unclassed("the conversion returned no object"))
}

/// Returns the kind as its CRD describes it now, if it has a conversion webhook. The view of an open watch may be older.
fn converting(shared: &Shared, view: &VersionedKind) -> Option<Arc<Kind>> {
    if view.kind.native.is_some() || view.kind.storage.version.is_empty() {
        return None;
    }
    let store = shared.store();
    let kind = &store.tables.get(&view.resource())?.kind;
    kind.storage.webhook.is_some().then(|| Arc::clone(kind))
}

/// Calls the webhook, for a limited number of objects at a time.
async fn converted(
    shared: &Shared,
    kind: &Kind,
    version: &str,
    mut objects: Vec<Value>,
) -> Result<Vec<Value>, Refusal> {
    let Some(config) = &kind.storage.webhook else { return Ok(objects) };
    let target = WebhookTarget::of(config);
    let mut all = Vec::with_capacity(objects.len());
    for object in &mut objects {
        if let Some(schema) = schema_of(kind, &version_of(object)) {
            schema::default(schema, object);
        }
    }
    for some in objects.chunks(OBJECTS_MAX) {
        let answered = ask(shared, &target, &kind.def.api_version(version), some).await;
        all.extend(answered.map_err(|why| {
            let text = |it: &Value, field: &str| {
                it.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            let first = some.first().map(|it| text(it, "apiVersion")).unwrap_or_default();
            let kind = &kind.def.kind;
            Refusal::unclassed(format!("conversion webhook for {first}, Kind={kind} failed: {why}"))
        })?);
    }
    for object in &mut all {
        if let Some(schema) = schema_of(kind, version) {
            schema::prune(schema, object);
        }
    }
    Ok(all)
}

fn schema_of<'a>(kind: &'a Kind, version: &str) -> Option<&'a schema::Schema> {
    kind.versions.get(version)?.schema.as_deref()
}

fn version_of(object: &Value) -> String {
    let api_version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    api_version.rsplit('/').next().unwrap_or_default().to_owned()
}

async fn ask(
    shared: &Shared,
    target: &WebhookTarget,
    api_version: &str,
    objects: &[Value],
) -> Result<Vec<Value>, String> {
    let uid = shared.store().identities.uid();
    let question = json!({
        "kind": "ConversionReview",
        "apiVersion": "apiextensions.k8s.io/v1",
        "request": { "uid": uid, "desiredAPIVersion": api_version, "objects": objects },
    });
    let call = shared.post.call(target, question.to_string().into());
    let answer = tokio::time::timeout(TIMEOUT, call).await;
    let answer = answer.unwrap_or_else(|_elapsed| Err("context deadline exceeded".into()))?;
    let converted = read(&uid, &answer)?;
    if converted.len() != objects.len() {
        let (is, expected) = (converted.len(), objects.len());
        return Err(format!("returned {is} objects, expected {expected}"));
    }
    let pairs = objects.iter().zip(converted);
    pairs.map(|(original, it)| checked(original, it, api_version)).collect()
}

/// Parses the response of a webhook.
fn read(uid: &str, body: &Bytes) -> Result<Vec<Value>, String> {
    let review: Value = serde_json::from_slice(body).map_err(|it| it.to_string())?;
    let text = |path: &str| review.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let given = text("/response/uid");
    if given != uid {
        return Err(format!("expected response.uid={uid:?}, got {given:?}"));
    }
    match (text("/response/result/status"), text("/response/result/message")) {
        ("Success", _) => {}
        (status, "") => {
            return Err(format!("response.result.status was '{status}', not 'Success'"));
        }
        (_, message) => return Err(message.to_owned()),
    }
    let objects = review.pointer("/response/convertedObjects").and_then(Value::as_array);
    Ok(objects.cloned().unwrap_or_default())
}

/// Returns a converted object with the metadata of the original one: a webhook can change only labels and annotations.
fn checked(original: &Value, mut converted: Value, api_version: &str) -> Result<Value, String> {
    let text = |it: &Value, path: &str| {
        it.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let given = text(&converted, "/apiVersion");
    if given != api_version {
        return Err(format!(
            "returned invalid converted object: invalid groupVersion (expected {api_version}, received {given})"
        ));
    }
    for (what, path) in [
        ("kind", "/kind"),
        ("name", "/metadata/name"),
        ("namespace", "/metadata/namespace"),
        ("UID", "/metadata/uid"),
    ] {
        let (before, after) = (text(original, path), text(&converted, path));
        if before != after {
            return Err(format!(
                "returned invalid object: must have the same {what}: {before} != {after}"
            ));
        }
    }
    let mut metadata = original.get("metadata").cloned().unwrap_or_else(|| json!({}));
    let given = converted.get("metadata").cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        object::put(&mut metadata, field, given.get(field).cloned());
    }
    object::put(&mut converted, "metadata", Some(metadata));
    Ok(converted)
}
