//! The status of `ResourceQuota`s: what the namespace uses. Admission only adds to it.

use crate::{
    admission::quotas,
    controllers::{
        Controller, NO_STEP, Plan,
        time::Moment,
        world::{Key, News, World},
        write::{Write, set},
    },
    object,
};

const QUOTAS: &str = "resourcequotas";

pub(crate) const CONTROLLER: Controller = Controller {
    // All others are only counted.
    reads: &[QUOTAS, "persistentvolumeclaims", "pods", "services"],
    concerns,
    decide,
    step: NO_STEP,
    start: &[],
};

fn concerns(world: &World, news: &News<'_>, found: &mut Vec<Key>) {
    let here = world.within(QUOTAS, &news.key.namespace).map(|(key, _)| key.clone());
    found.extend(here.filter(|_| !news.key.namespace.is_empty()));
}

fn decide(world: &World, key: &Key, _moment: &Moment) -> Plan {
    let Some(body) = world.body(key).filter(|it| !object::deleting(it)) else {
        return Plan::none();
    };
    let nothing = serde_json::Value::Null;
    let here = world.inside(&key.namespace);
    let here =
        here.map(|(key, it)| (key.resource.as_str(), it.body.as_deref().unwrap_or(&nothing)));
    let status = quotas::status(body, here);
    if body.get("status") == Some(&status) {
        return Plan::none();
    }
    let fields = status.as_object().into_iter().flatten();
    let edits = fields.map(|(name, value)| set(["status", name], value.clone())).collect();
    vec![Write::change(key, body, edits)].into()
}
