//! The admission that is compiled into Kubernetes: what other objects of a cluster add to a new object, or why it is refused.
//!
//! It runs in the order of the real server: additions before the webhooks, quotas after them.

mod defaults;
pub(crate) mod evictions;
mod limits;
mod pods;
pub(crate) mod quotas;

use serde_json::{Value, json};

use crate::{native, object, refusal::Refusal, resource::ResourceDef, store::Store, verbs::Call};

/// A new object on its way in.
struct Newcomer<'a> {
    store: &'a Store,
    def: &'a ResourceDef,
    namespace: &'a str,
}

impl Newcomer<'_> {
    fn forbidden(&self, object: &Value, why: &str) -> Refusal {
        Refusal::forbidden(self.def, object::meta(object, "name"), why)
    }
}

/// The objects of a resource in a namespace; those without one are in the namespace of no name.
fn objects(store: &Store, resource: &str, namespace: &str) -> Vec<Value> {
    let objects = store.tables.get(resource).map(|it| &it.objects).into_iter().flatten();
    let here = objects.filter(|(place, _)| place.namespace == namespace);
    here.map(|(_, it)| it.tree("", "")).collect()
}

/// Adds what the cluster has for a new object.
pub(crate) fn complete(call: &Call<'_>, object: &mut Value) -> Result<(), Refusal> {
    let def = &call.view.kind.def;
    if !def.native {
        return Ok(());
    }
    if def.kind == "CertificateSigningRequest" {
        sign(call, object);
    }
    if !call.shared.admission {
        return Ok(());
    }
    let store = call.shared.store();
    let namespace = call.target.namespace.as_deref().unwrap_or_default();
    let newcomer = Newcomer { store: &store, def, namespace };
    match def.qualified().as_str() {
        "pods" => {
            limits::complete(&newcomer, object);
            pods::prioritize(&newcomer, object)?;
            native::tolerate(object);
            pods::choose_runtime(&newcomer, object)?;
            limits::check(&newcomer, object)
        }
        "persistentvolumeclaims" => {
            defaults::storage_class(&newcomer, object);
            limits::check(&newcomer, object)
        }
        "ingresses.networking.k8s.io" => {
            defaults::ingress_class(&newcomer, object);
            Ok(())
        }
        "priorityclasses.scheduling.k8s.io" => pods::check_class(&newcomer, object),
        _ => Ok(()),
    }
}

/// Counts a new object against the quotas of its namespace, and refuses what exceeds them. Nothing is written for one that is not going
/// to be created.
pub(crate) fn charge(
    call: &Call<'_>,
    store: &mut Store,
    object: &Value,
    dry: bool,
) -> Result<(), Refusal> {
    let def = &call.view.kind.def;
    let namespace = call.target.namespace.as_deref().unwrap_or_default();
    if !call.shared.admission || namespace.is_empty() {
        return Ok(());
    }
    quotas::charge(store, def, (namespace, object), dry)
}

/// Who asks for a certificate is part of the request, whatever the client writes.
fn sign(call: &Call<'_>, object: &mut Value) {
    let user = &call.ask.user;
    let mut wanted = json!({ "username": user.name, "groups": user.groups });
    if !user.uid.is_empty() {
        object::put(&mut wanted, "uid", Some(user.uid.as_str().into()));
    }
    if !user.extra.is_empty() {
        object::put(&mut wanted, "extra", Some(json!(user.extra)));
    }
    let Some(Value::Object(spec)) = object.get_mut("spec") else { return };
    for field in ["username", "uid", "groups", "extra"] {
        match wanted.get(field).cloned() {
            Some(value) => spec.insert(field.into(), value),
            None => spec.shift_remove(field),
        };
    }
}
