//! The status of `ResourceQuota`s: the usage of a namespace. Admission only adds to it.

use crate::{
    admission::quotas,
    controllers::{
        Controller, NO_STEP, ReconcileResult,
        cache::{Cache, ObjectKey, Update},
        time::DecisionTime,
        write::{Write, set},
    },
    object,
};

const QUOTAS: &str = "resourcequotas";

pub(crate) const CONTROLLER: Controller = Controller {
    // All other resources are only counted.
    reads: &[QUOTAS, "persistentvolumeclaims", "pods", "services"],
    affected,
    reconcile,
    step: NO_STEP,
    start: &[],
};

fn affected(cache: &Cache, update: &Update<'_>, found: &mut Vec<ObjectKey>) {
    let here = cache.within(QUOTAS, &update.key.namespace).map(|(key, _)| key.clone());
    found.extend(here.filter(|_| !update.key.namespace.is_empty()));
}

fn reconcile(cache: &Cache, key: &ObjectKey, _moment: &DecisionTime) -> ReconcileResult {
    let Some(body) = cache.body(key).filter(|it| !object::deleting(it)) else {
        return ReconcileResult::none();
    };
    let nothing = serde_json::Value::Null;
    let here = cache.inside(&key.namespace);
    let here =
        here.map(|(key, it)| (key.resource.as_str(), it.body.as_deref().unwrap_or(&nothing)));
    let status = quotas::status(body, here);
    if body.get("status") == Some(&status) {
        return ReconcileResult::none();
    }
    let fields = status.as_object().into_iter().flatten();
    let edits = fields.map(|(name, value)| set(["status", name], value.clone())).collect();
    vec![Write::change(key, body, edits)].into()
}
