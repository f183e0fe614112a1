//! `POST`: a new object.

use serde_json::Value;

use crate::apiserver::{
    object,
    refusal::Refusal,
    reply::Reply,
    store::{Key, Store},
    verbs::{Call, rules},
    webhooks,
};

pub(crate) async fn create(call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = call.decode()?;
    write(call, body).await
}

/// Checks a new object, and writes it unless the run is dry.
pub(crate) async fn write(call: &Call<'_>, body: Value) -> Result<Reply, Refusal> {
    let namespace = call.target.namespace.as_deref().unwrap_or_default();
    let def = &call.view.kind.def;
    check_namespace(call, namespace, object::meta(&body, "name"))?;
    let mut object = rules::placed(namespace, body)?;
    {
        let mut store = call.shared.store();
        rules::name(&mut object, &mut store.identities);
        if call.shared.stamps {
            stamp(&mut store, call, &mut object);
        }
    }
    let attempt = call.attempt("CREATE", "", None);
    let object = webhooks::mutate(call.shared, &attempt, object).await?;
    let object = rules::created(&call.view, object)?;
    webhooks::validate(call.shared, &attempt, Some(&object)).await?;
    let key = call.key(object::meta(&object, "name"));
    let mut store = call.shared.store();
    if store.get(&key).is_some() {
        return Err(Refusal::already_exists(def, &key.place.name));
    }
    if call.is_dry() {
        return Ok(Reply::Document(201, object));
    }
    let stored = store.put(&key, object);
    Ok(Reply::Object { status: 201, view: call.view.clone(), object: stored })
}

/// Nothing is created where there is no namespace, or in one that goes away.
fn check_namespace(call: &Call<'_>, namespace: &str, name: &str) -> Result<(), Refusal> {
    if namespace.is_empty() || !call.shared.cluster {
        return Ok(());
    }
    let store = call.shared.store();
    let Some(found) = store.get(&Key::new("namespaces", "", namespace)) else {
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

/// The server's own fields, instead of those that the client sends.
fn stamp(store: &mut Store, call: &Call<'_>, object: &mut Value) {
    let Some(meta) = object::meta_mut(object) else { return };
    meta.retain(|field, _| {
        matches!(field.as_str(), "name" | "namespace")
            || !rules::OWN_FIELDS.contains(&field.as_str())
    });
    meta.insert("uid".into(), store.identities.uid().into());
    meta.insert("creationTimestamp".into(), store.now().into());
    if call.view.kind.counts_generations() {
        meta.insert("generation".into(), 1.into());
    }
}
