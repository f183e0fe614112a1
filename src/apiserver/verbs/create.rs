//! `POST`: creates an object.

use serde_json::Value;

use crate::{
    admission, managed, metadata, object, rbac,
    refusal::Refusal,
    reply::Reply,
    request::options::{Write, WriteOptions},
    resource::CRDS,
    store::{Store, StoreKey},
    verbs::{
        ApiCall, definitions, modify, placeholders,
        rules::{self, WritablePart},
    },
    webhooks::{self, conversion},
};

pub(crate) async fn create(call: &ApiCall<'_>) -> Result<Reply, Refusal> {
    WriteOptions::parse(&call.query, Write::Create)?;
    let mut object = call.decode()?;
    check_definition(call, object::meta(&object, "name"))?;
    if call.shared.stamps && !object::meta(&object, "resourceVersion").is_empty() {
        let why = "resourceVersion should not be set on objects to be created";
        return Err(Refusal::unclassed(why));
    }
    call.read(&mut object)?;
    if call.shared.stamps {
        metadata::reset(&mut object);
        let time = call.shared.store().now();
        let ignored = modify::ignored(call, WritablePart::Main);
        let writer = managed::FieldManager { ignored: &ignored, ..call.writer(&time) };
        managed::track(call.view.schema(), &writer, None, &mut object);
    }
    if let Some(review) = call.view.kind.native.and_then(|it| it.review) {
        let namespace = call.target.namespace.as_deref().unwrap_or_default();
        let asked = rules::placed(namespace, object)?;
        let answered = review(asked.clone())?;
        return Ok(Reply::Document(201, rbac::reviews::add_result(call, &asked, answered)));
    }
    write(call, object).await
}

/// Validates a new object, and stores it unless it is a dry run.
pub(crate) async fn write(call: &ApiCall<'_>, object: Value) -> Result<Reply, Refusal> {
    if call.request.method != "POST" {
        rbac::authorize_creation(call.shared, call.request)?;
    }
    let namespace = call.target.namespace.as_deref().unwrap_or_default();
    let def = &call.view.kind.def;
    let object = rules::placed(namespace, object)?;
    check_namespace(call, namespace, object::meta(&object, "name"))?;
    let mut object = object;
    admission::complete(call, &mut object)?;
    let request = call.admission_request("CREATE", "", None);
    let mut object = webhooks::mutate(call.shared, &request, object).await?;
    let is_versioned = names_version(call, &object);
    stamp(&mut call.shared.store(), call, &mut object);
    let object = rules::created(&call.view, object, call.strictness())?;
    rbac::escalation::check(call, None, &object)?;
    call.warn_of_finalizers(&object, None);
    webhooks::validate(call.shared, &request, Some(&object)).await?;
    let key = call.key(object::meta(&object, "name"));
    let mut converted = None;
    if !call.is_dry() {
        converted = conversion::converted_to_store(call.shared, &call.view, &object).await?;
    }
    let mut store = call.shared.store();
    if is_versioned && !call.is_dry() {
        let why = "resourceVersion should not be set on objects to be created";
        return Err(Refusal::unclassed(why));
    }
    let placeholders = placeholders::in_the_way(&store, &key, &object);
    let is_taken = store.get(&key).is_some() && !placeholders.contains(&key);
    admission::charge(call, &mut store, &object, is_taken || call.is_dry())?;
    if is_taken {
        return Err(Refusal::already_exists(def, &key.place.name));
    }
    if call.is_dry() {
        return Ok(Reply::Document(201, object));
    }
    for placeholder in placeholders {
        store.remove(&placeholder);
    }
    let mut stored = converted.unwrap_or_else(|| call.view.stored(object));
    if key.resource == CRDS {
        definitions::settle(&store, &mut stored);
    }
    let stored = store.put(&key, stored);
    Ok(Reply::Object { status: 201, view: call.view.clone(), object: stored })
}

/// Refuses new objects of a CRD that is being deleted.
fn check_definition(call: &ApiCall<'_>, name: &str) -> Result<(), Refusal> {
    let def = &call.view.kind.def;
    if def.native {
        return Ok(());
    }
    // A CRD is named after its resource.
    let definition = call.shared.store().get(&StoreKey::new(CRDS, "", &def.qualified()));
    if definition.is_some_and(|it| object::deleting(&it.tree("", ""))) {
        return Err(Refusal::terminating_definition(def, name));
    }
    Ok(())
}

/// Returns whether a new object has a resource version, which is not allowed. Objects that a `PUT` or a patch creates may have one.
fn names_version(call: &ApiCall<'_>, object: &Value) -> bool {
    let version = object::meta(object, "resourceVersion").parse::<u64>();
    call.shared.stamps && call.request.method == "POST" && version.is_ok_and(|it| it > 0)
}

/// Refuses objects in a namespace that does not exist or is being deleted.
fn check_namespace(call: &ApiCall<'_>, namespace: &str, name: &str) -> Result<(), Refusal> {
    if namespace.is_empty() || !call.shared.cluster {
        return Ok(());
    }
    let store = call.shared.store();
    let Some(found) = store.get(&StoreKey::new("namespaces", "", namespace)) else {
        let def = store.tables.get("namespaces").map(|it| &it.kind.def);
        return Err(
            def.map_or_else(Refusal::unknown_resource, |it| Refusal::not_found(it, namespace))
        );
    };
    if object::deleting(&found.tree("", "")) {
        return Err(Refusal::terminating(&call.view.kind.def, namespace, name));
    }
    Ok(())
}

/// Replaces the metadata that clients cannot set by that of the server.
fn stamp(store: &mut Store, call: &ApiCall<'_>, object: &mut Value) {
    if call.shared.stamps {
        metadata::reset(object);
    }
    rules::name(object, &mut store.identities);
    if !call.shared.stamps {
        return;
    }
    object::set_meta(object, "uid", store.identities.uid());
    object::set_meta(object, "creationTimestamp", store.now());
    if call.view.kind.counts_generations() {
        object::set_meta(object, "generation", 1);
    }
}
