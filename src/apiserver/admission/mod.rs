//! Built-in admission plugins: what other objects of the cluster add to a new object, or why they reject it.
//!
//! They run in the order of the real server: additions before the webhooks, quotas after them.

mod defaults;
pub(crate) mod evictions;
mod limits;
mod pods;
pub(crate) mod quotas;

use serde_json::{Value, json};

use crate::{
    native, object, refusal::Refusal, resource::ResourceDef, store::Store, verbs::ApiCall,
};

/// The input of plugins besides the fields of a new object: its kind, its namespace, and the other objects.
struct NewObject<'a> {
    store: &'a Store,
    def: &'a ResourceDef,
    namespace: &'a str,
}

impl NewObject<'_> {
    fn forbidden(&self, object: &Value, why: &str) -> Refusal {
        Refusal::forbidden(self.def, object::meta(object, "name"), why)
    }
}

/// Returns the objects of a resource in a namespace; cluster-scoped objects are in the namespace with an empty name.
fn objects(store: &Store, resource: &str, namespace: &str) -> Vec<Value> {
    let objects = store.tables.get(resource).map(|it| &it.objects).into_iter().flatten();
    let here = objects.filter(|(place, _)| place.namespace == namespace);
    here.map(|(_, it)| it.tree("", "")).collect()
}

/// Runs the mutating plugins on a new object: defaults, limits, classes and priorities of the cluster.
pub(crate) fn complete(call: &ApiCall<'_>, object: &mut Value) -> Result<(), Refusal> {
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
    let new_object = NewObject { store: &store, def, namespace };
    match def.qualified().as_str() {
        "pods" => {
            limits::complete(&new_object, object);
            pods::prioritize(&new_object, object)?;
            native::tolerate(object);
            pods::choose_runtime(&new_object, object)?;
            limits::check(&new_object, object)
        }
        "persistentvolumeclaims" => {
            defaults::storage_class(&new_object, object);
            limits::check(&new_object, object)
        }
        "ingresses.networking.k8s.io" => {
            defaults::ingress_class(&new_object, object);
            Ok(())
        }
        "priorityclasses.scheduling.k8s.io" => pods::check_class(&new_object, object),
        _ => Ok(()),
    }
}

/// Counts a new object against the quotas of its namespace, and refuses it if it exceeds one. With `dry`, quotas are checked but
/// not updated.
pub(crate) fn charge(
    call: &ApiCall<'_>,
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

/// Sets the requesting user in a certificate signing request, whatever the client has written there.
fn sign(call: &ApiCall<'_>, object: &mut Value) {
    let user = &call.request.user;
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
