//! `PUT` and `PATCH`: change an object.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    managed, object,
    patch::ParsedPatch,
    rbac,
    refusal::Refusal,
    reply::Reply,
    request::{
        body,
        options::{Write, WriteOptions},
    },
    resource::CRDS,
    store::{Store, StoreKey, stored::Stored},
    verbs::{
        ApiCall, create, definitions, placeholders,
        rules::{self, WritablePart},
    },
    webhooks::{self, conversion},
};

/// Limit of attempts to apply a patch when others write in between; the same as on the real server.
const ATTEMPTS_MAX: usize = 5;

pub(crate) async fn update(
    call: &ApiCall<'_>,
    part: WritablePart,
    name: &str,
) -> Result<Reply, Refusal> {
    WriteOptions::parse(&call.query, Write::Update)?;
    let mut body = call.decode()?;
    body::check_place(&body, name, call.target.namespace.as_deref().unwrap_or_default())?;
    call.read(&mut body)?;
    let missing = call.shared.store().get(&call.key(name)).is_none();
    let creates = missing && call.view.kind.native.is_some_and(|it| it.put_creates);
    if part == WritablePart::Main && (creates || placeholders::is_replaced(call, name, &body)) {
        let time = call.shared.store().now();
        let ignored = ignored(call, part);
        let writer = managed::FieldManager { ignored: &ignored, ..call.writer(&time) };
        managed::track(call.view.schema(), &writer, None, &mut body);
        return create::write(call, body).await;
    }
    write(call, part, name, |old| {
        check_uid(call, name, old, &body)?;
        Ok(tracked(call, part, old, body.clone()))
    })
    .await
}

/// Refuses a body with the uid of another object.
fn check_uid(call: &ApiCall<'_>, name: &str, old: &Value, new: &Value) -> Result<(), Refusal> {
    let (wanted, present) = (object::meta(new, "uid"), object::meta(old, "uid"));
    if wanted.is_empty() || wanted == present || !call.shared.stamps {
        return Ok(());
    }
    let why = format!("UID in precondition: {wanted}, UID in object meta: {present}");
    let namespace = call.target.namespace.as_deref().unwrap_or_default();
    Err(Refusal::other_uid(&call.view.kind.def, (namespace, name), &why))
}

pub(crate) async fn patch(
    call: &ApiCall<'_>,
    part: WritablePart,
    name: &str,
) -> Result<Reply, Refusal> {
    let def = &call.view.kind.def;
    let content_type = call.request.header(http::header::CONTENT_TYPE);
    let patch = ParsedPatch::parse(content_type, &call.request.body, def.native)?;
    if let ParsedPatch::Apply(config) = &patch {
        WriteOptions::parse(&call.query, Write::Apply)?;
        return apply(call, part, name, config).await;
    }
    WriteOptions::parse(&call.query, Write::Patch)?;
    write(call, part, name, |old| {
        let mut new = patch.apply(old, call.view.schema())?;
        call.check_patched(&new, name)?;
        call.read(&mut new).map_err(|it| match it.undecodable_why() {
            Some(why) => Refusal::unfit_patch(why),
            None => it,
        })?;
        Ok(tracked(call, part, old, new))
    })
    .await
}

/// Executes a server-side apply, which may also create the object.
async fn apply(
    call: &ApiCall<'_>,
    part: WritablePart,
    name: &str,
    config: &Value,
) -> Result<Reply, Refusal> {
    let text = |name: &str| config.get(name).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if version != call.view.api_version || kind != call.view.kind.def.kind {
        let slash = if version.contains('/') { "" } else { "/" };
        let why = format!("invalid object type: {slash}{version}, Kind={kind}");
        return Err(Refusal::bad_request(why));
    }
    let force = call.query.flag("force");
    let apply = |live: Option<&Value>| {
        let time = call.shared.store().now();
        let ignored = ignored(call, part);
        let writer = managed::FieldManager { ignored: &ignored, ..call.writer(&time) };
        let mut new = managed::apply(call.view.schema(), &writer, live, config, force)?;
        call.check_patched(&new, name)?;
        call.read(&mut new)?;
        Ok(new)
    };
    let missing = call.shared.store().get(&call.key(name)).is_none();
    if part == WritablePart::Main && (missing || placeholders::is_replaced(call, name, config)) {
        check_no_uid(call, name, config)?;
        return create::write(call, apply(None)?).await;
    }
    write(call, part, name, |old| apply(Some(old))).await
}

/// Refuses to create an object by applying a body that names the uid of an existing one.
fn check_no_uid(call: &ApiCall<'_>, name: &str, config: &Value) -> Result<(), Refusal> {
    let uid = object::meta(config, "uid");
    if uid.is_empty() {
        return Ok(());
    }
    let why = format!(
        "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
    );
    Err(Refusal::conflict_because(&call.view.kind.def, name, &why))
}

/// Records the writer as the manager of the changed fields.
fn tracked(call: &ApiCall<'_>, part: WritablePart, old: &Value, mut new: Value) -> Value {
    if call.shared.stamps {
        let time = call.shared.store().now();
        let ignored = ignored(call, part);
        let writer = managed::FieldManager { ignored: &ignored, ..call.writer(&time) };
        managed::track(call.view.schema(), &writer, Some(old), &mut new);
    }
    new
}

/// Returns the top-level fields that a writer of this part cannot change.
pub(super) fn ignored(call: &ApiCall<'_>, part: WritablePart) -> Vec<&'static str> {
    let native = call.view.kind.native;
    match part {
        WritablePart::Main if call.view.has_status() => std::iter::once("status")
            .chain(native.iter().flat_map(|it| it.reset).copied())
            .collect(),
        // Writers of the status of native kinds may change metadata.
        WritablePart::Status
            if call.view.kind.def.native && call.resource() != rules::ATTACHMENTS =>
        {
            vec!["spec"]
        }
        WritablePart::Status => vec!["spec", "metadata"],
        WritablePart::Finalize => vec!["status"],
        WritablePart::Main | WritablePart::Everything => Vec::new(),
    }
}

/// Applies an edit to an object, again if others write in between.
pub(crate) async fn write(
    call: &ApiCall<'_>,
    part: WritablePart,
    name: &str,
    edit: impl Fn(&Value) -> Result<Value, Refusal>,
) -> Result<Reply, Refusal> {
    let (key, view) = (call.key(name), &call.view);
    for _attempt in 0..ATTEMPTS_MAX {
        let present = call.shared.store().get(&key);
        let present = present.ok_or_else(|| Refusal::not_found(&view.kind.def, name))?;
        let old = conversion::tree(call.shared, view, &present).await?;
        let request = call.admission_request("UPDATE", name, Some(&old));
        let new = webhooks::mutate(call.shared, &request, edit(&old)?).await?;
        let mut new = rules::updated(view, (part, call.strictness()), &old, new)?;
        managed::settle(&old, &mut new);
        rbac::escalation::check(call, Some(&old), &new)?;
        call.warn_of_finalizers(&new, Some(&old));
        webhooks::validate(call.shared, &request, Some(&new)).await?;
        if call.is_dry() {
            return Ok(Reply::Document(200, new));
        }
        let new = conversion::stored(call.shared, view, new).await?;
        // Compared in the stored form, without defaults that are added on reads.
        let is_kept_alike = !view.converts() && old.get("apiVersion") == new.get("apiVersion");
        let old = if is_kept_alike { old } else { stored_as(&present, &new) };
        if let Some(object) = swap(&mut call.shared.store(), &key, &present, (&old, new)) {
            return Ok(Reply::Object { status: 200, view: view.clone(), object });
        }
    }
    Err(Refusal::conflict(&view.kind.def, name))
}

/// Returns the stored object with the version and kind of the new one.
fn stored_as(present: &Stored, new: &Value) -> Value {
    let text = |name: &str| new.get(name).and_then(Value::as_str).unwrap_or_default();
    present.tree(text("apiVersion"), text("kind"))
}

/// Stores the new object, if the old one is still the current one. Without a difference there is no new version and no event.
pub(crate) fn swap(
    store: &mut Store,
    key: &StoreKey,
    present: &Arc<Stored>,
    (old, mut new): (&Value, Value),
) -> Option<Arc<Stored>> {
    let revision = |it: &Arc<Stored>| it.head.revision;
    if store.get(key).as_ref().map(revision) != Some(revision(present)) {
        return None;
    }
    if object::deleting(old) && !object::has_finalizers(&new) && !object::has_grace_period(&new) {
        // The last finalizer was removed. The response has the version before the removal, as on the real server.
        let last = Arc::new(Stored::of(&new));
        store.remove(key);
        return Some(last);
    }
    if key.resource == CRDS {
        definitions::settle(store, &mut new);
    }
    if new == *old {
        return Some(Arc::clone(present));
    }
    Some(store.put(key, new))
}
