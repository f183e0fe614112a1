//! `Priority` and `RuntimeClass`: priorities and runtimes of Pods.

use serde_json::{Map, Value, json};

use super::{NewObject, objects};
use crate::{object, refusal::Refusal, store::StoreKey};

const CLASSES: &str = "priorityclasses.scheduling.k8s.io";
const RUNTIMES: &str = "runtimeclasses.node.k8s.io";

/// Sets the priority and the preemption policy of a Pod, from its priority class or from the default class.
pub(super) fn prioritize(new_object: &NewObject<'_>, pod: &mut Value) -> Result<(), Refusal> {
    let name = object::text(pod, "/spec/priorityClassName").to_owned();
    let class = match name.as_str() {
        "" => default_class(new_object),
        "system-cluster-critical" => Some(json!({ "value": 2_000_000_000 })),
        "system-node-critical" => Some(json!({ "value": 2_000_001_000 })),
        name => {
            let found = new_object.store.get(&StoreKey::new(CLASSES, "", name));
            let why = || format!("no PriorityClass with name {name} was found");
            Some(found.ok_or_else(|| new_object.forbidden(pod, &why()))?.tree("", ""))
        }
    };
    let priority = class.as_ref().and_then(|it| object::number(it, "/value")).unwrap_or(0);
    let policy = class.as_ref().map(|it| object::text(it, "/preemptionPolicy"));
    let policy = policy.filter(|it| !it.is_empty()).unwrap_or("PreemptLowerPriority").to_owned();
    let given = object::number(pod, "/spec/priority");
    if let Some(given) = given.filter(|it| *it != priority) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed \
             {priority} from the given PriorityClass name"
        );
        return Err(new_object.forbidden(pod, &why));
    }
    let given = object::text(pod, "/spec/preemptionPolicy");
    if !given.is_empty() && *given != policy {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller \
             computed {policy} from the given PriorityClass name"
        );
        return Err(new_object.forbidden(pod, &why));
    }
    let Some(Value::Object(spec)) = pod.get_mut("spec") else { return Ok(()) };
    if let Some(default) = class.filter(|_| name.is_empty()) {
        spec.insert("priorityClassName".into(), object::meta(&default, "name").into());
    }
    spec.insert("priority".into(), priority.into());
    spec.insert("preemptionPolicy".into(), policy.into());
    Ok(())
}

/// Returns the default priority class; of several, the one with the lowest value.
fn default_class(new_object: &NewObject<'_>) -> Option<Value> {
    let classes = objects(new_object.store, CLASSES, "").into_iter();
    let defaults = classes.filter(|it| it.get("globalDefault") == Some(&json!(true)));
    defaults.min_by_key(|it| object::number(it, "/value"))
}

/// Refuses a second default priority class.
pub(super) fn check_class(new_object: &NewObject<'_>, class: &Value) -> Result<(), Refusal> {
    if class.get("globalDefault") != Some(&json!(true)) {
        return Ok(());
    }
    match default_class(new_object) {
        Some(present) => {
            let name = object::meta(&present, "name");
            let why = format!(
                "PriorityClass {name} is already marked as default. Only one default can exist"
            );
            Err(new_object.forbidden(class, &why))
        }
        None => Ok(()),
    }
}

/// Copies the overhead and the scheduling constraints of the runtime class to the Pod, as `RuntimeClass` does.
pub(super) fn choose_runtime(new_object: &NewObject<'_>, pod: &mut Value) -> Result<(), Refusal> {
    let rejected =
        |pod: &Value, why: &str| new_object.forbidden(pod, &format!("pod rejected: {why}"));
    let name = object::text(pod, "/spec/runtimeClassName").to_owned();
    let overhead = pod.pointer("/spec/overhead").filter(|it| !it.is_null()).cloned();
    let class = match name.as_str() {
        "" => Value::Null,
        name => match new_object.store.get(&StoreKey::new(RUNTIMES, "", name)) {
            Some(class) => class.tree("", ""),
            None => return Err(rejected(pod, &format!("RuntimeClass {name:?} not found"))),
        },
    };
    let wanted = class.pointer("/overhead/podFixed").filter(|it| !it.is_null());
    match (overhead, wanted) {
        (Some(overhead), Some(wanted)) if overhead != *wanted => {
            return Err(rejected(
                pod,
                "Pod's Overhead doesn't match RuntimeClass's defined Overhead",
            ));
        }
        (Some(_), None) => {
            let why = "Pod Overhead set without corresponding RuntimeClass defined Overhead";
            return Err(rejected(pod, why));
        }
        (_, Some(wanted)) => object::put_in(pod, "spec", "overhead", wanted.clone()),
        (None, None) => {}
    }
    let Some(scheduling) = class.get("scheduling") else { return Ok(()) };
    let mut selector: Map<String, Value> =
        pod.pointer("/spec/nodeSelector").and_then(Value::as_object).cloned().unwrap_or_default();
    let added = scheduling.get("nodeSelector").and_then(Value::as_object);
    for (key, value) in added.into_iter().flatten() {
        if let Some(own) = selector.get(key).filter(|it| *it != value) {
            let (value, own) = (object::text(value, ""), object::text(own, ""));
            let why = format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {own}"
            );
            return Err(rejected(pod, &why));
        }
        selector.insert(key.clone(), value.clone());
    }
    if !selector.is_empty() {
        object::put_in(pod, "spec", "nodeSelector", selector.into());
    }
    let mut tolerations = object::list(pod, "/spec/tolerations").to_vec();
    for toleration in object::list(scheduling, "/tolerations") {
        if !tolerations.contains(toleration) {
            tolerations.push(toleration.clone());
        }
    }
    if !tolerations.is_empty() {
        object::put_in(pod, "spec", "tolerations", tolerations.into());
    }
    Ok(())
}
