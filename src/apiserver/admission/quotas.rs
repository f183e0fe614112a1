//! `ResourceQuota`: limits the number of objects in a namespace, and the amounts that its Pods and claims request.
//!
//! The status of a quota is authoritative: a controller writes the used amounts there, and admission adds new objects to them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    limits::{amounts_of, merge, total},
    objects,
};
use crate::sorted::CollectSorted as _;
use crate::{
    native::quantity::Quantity,
    object,
    refusal::Refusal,
    resource::ResourceDef,
    store::{Store, StoreKey},
};

const QUOTAS: &str = "resourcequotas";
/// Kinds that are also counted under their plain name, without `count/`.
const PLAIN: [&str; 7] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
];

type Amounts = BTreeMap<String, Quantity>;

/// Adds a new object to the quotas of its namespace. Fails if one of them would be exceeded.
pub(super) fn charge(
    store: &mut Store,
    def: &ResourceDef,
    (namespace, object): (&str, &Value),
    dry: bool,
) -> Result<(), Refusal> {
    let resource = def.qualified();
    let forbidden = |why: &str| Refusal::forbidden(def, object::meta(object, "name"), why);
    let charges = usage(&resource, object);
    let mut changed = Vec::new();
    for mut quota in objects(store, QUOTAS, namespace) {
        if !concerns(&quota, &resource, object) {
            continue;
        }
        let name = object::meta(&quota, "name").to_owned();
        let hard = amounts_of(quota.pointer("/status/hard"));
        let mut used = amounts_of(quota.pointer("/status/used"));
        if resource == "pods"
            && let Some(missing) = unstated(&hard, object)
        {
            return Err(forbidden(&format!("failed quota: {name}: {missing}")));
        }
        let asked: Amounts = charges
            .iter()
            .filter(|it| hard.contains_key(it.0))
            .map(|(k, it)| (k.clone(), *it))
            .collect_map();
        if asked.is_empty() {
            continue;
        }
        if let Some(unknown) = asked.keys().find(|it| !used.contains_key(*it)) {
            let why = format!("status unknown for quota: {name}, resources: {unknown}");
            return Err(forbidden(&why));
        }
        let before = used.clone();
        merge(&mut used, asked.clone(), Quantity::plus);
        let over = |it: &&String| {
            used.get(*it).zip(hard.get(*it)).is_some_and(|(used, hard)| used.compare(*hard).is_gt())
        };
        let exceeded: Vec<&String> = asked.keys().filter(over).collect();
        if !exceeded.is_empty() {
            let shown = |amounts: &Amounts| {
                let all = exceeded.iter().filter_map(|it| Some((it, amounts.get(it.as_str())?)));
                let all = all.map(|(name, it)| format!("{name}={}", it.canonical()));
                all.collect::<Vec<_>>().join(",")
            };
            let (asked, before, hard) = (shown(&asked), shown(&before), shown(&hard));
            let why = format!(
                "exceeded quota: {name}, requested: {asked}, used: {before}, limited: {hard}"
            );
            return Err(forbidden(&why));
        }
        object::put_in(&mut quota, "status", "used", written(&used));
        changed.push((StoreKey::new(QUOTAS, namespace, &name), quota));
    }
    // No quota is charged for an object that another quota refuses.
    for (key, quota) in changed.into_iter().filter(|_| !dry) {
        store.put(&key, quota);
    }
    Ok(())
}

/// Returns amounts in the form of a status: canonical quantities by name.
pub(crate) fn written(amounts: &BTreeMap<String, Quantity>) -> Value {
    amounts.iter().map(|(name, it)| (name.clone(), Value::from(it.canonical()))).collect()
}

/// Returns the status of a quota for the objects of its namespace, each with its resource.
pub(crate) fn status<'a>(
    quota: &Value,
    objects: impl Iterator<Item = (&'a str, &'a Value)>,
) -> Value {
    let hard = quota.pointer("/spec/hard").cloned().unwrap_or_else(|| json!({}));
    let mut used: Amounts =
        amounts_of(Some(&hard)).into_keys().map(|it| (it, Quantity::ZERO)).collect_map();
    for (resource, object) in objects.filter(|(resource, it)| concerns(quota, resource, it)) {
        let mut charges = usage(resource, object);
        charges.retain(|name, _| used.contains_key(name));
        merge(&mut used, charges, Quantity::plus);
    }
    json!({ "hard": hard, "used": written(&used) })
}

/// Returns the amounts that one object counts for, under all names that quotas use.
fn usage(resource: &str, object: &Value) -> Amounts {
    let mut found = Amounts::from([(format!("count/{resource}"), Quantity::ONE)]);
    let mut put = |name: &str, amount: Quantity| found.insert(name.to_owned(), amount);
    let ended = matches!(object::text(object, "/status/phase"), "Succeeded" | "Failed");
    if PLAIN.contains(&resource) && (resource != "pods" || !ended) {
        put(resource, Quantity::ONE);
    }
    match resource {
        "pods" if !ended => {
            for (name, amount) in total(object, "requests") {
                put(&format!("requests.{name}"), amount);
                if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") {
                    put(&name, amount);
                }
            }
            for (name, amount) in total(object, "limits") {
                put(&format!("limits.{name}"), amount);
            }
        }
        "services" => {
            let kind = object::text(object, "/spec/type");
            if kind == "LoadBalancer" {
                put("services.loadbalancers", Quantity::ONE);
            }
            if matches!(kind, "NodePort" | "LoadBalancer") {
                let ports = object::list(object, "/spec/ports").len();
                put("services.nodeports", Quantity::of(ports));
            }
        }
        "persistentvolumeclaims" => {
            let class = object::text(object, "/spec/storageClassName");
            let storage = amounts_of(object.pointer("/spec/resources/requests"));
            let storage = storage.get("storage").copied().unwrap_or(Quantity::ZERO);
            put("requests.storage", storage);
            if !class.is_empty() {
                let class = format!("{class}.storageclass.storage.k8s.io");
                put(&format!("{class}/requests.storage"), storage);
                put(&format!("{class}/persistentvolumeclaims"), Quantity::ONE);
            }
        }
        _ => {}
    }
    found
}

/// Returns the message for a Pod that does not specify an amount in every container, although a quota of cpu or memory requires it.
fn unstated(hard: &Amounts, pod: &Value) -> Option<String> {
    let mut missing: Vec<String> = Vec::new();
    for name in hard.keys() {
        let (field, amount) = match name.as_str() {
            "cpu" | "memory" => ("requests", name.as_str()),
            name => match name.split_once('.') {
                Some((field @ ("requests" | "limits"), amount @ ("cpu" | "memory"))) => {
                    (field, amount)
                }
                _ => continue,
            },
        };
        let lists = ["/spec/containers", "/spec/initContainers"];
        let containers = lists.iter().flat_map(|it| object::list(pod, it));
        let silent: Vec<&str> = containers
            .filter(|it| it.pointer(&format!("/resources/{field}/{amount}")).is_none())
            .map(|it| object::text(it, "/name"))
            .collect();
        if !silent.is_empty() {
            missing.push(format!("{name} for: {}", silent.join(",")));
        }
    }
    (!missing.is_empty()).then(|| format!("must specify {}", missing.join("; ")))
}

/// Returns whether a quota counts an object. A quota with scopes counts only some of the Pods.
fn concerns(quota: &Value, resource: &str, object: &Value) -> bool {
    let scopes = object::strings(quota, "/spec/scopes");
    let plain = scopes.iter().all(|it| resource == "pods" && in_scope(object, it, "Exists", &[]));
    let expressions = object::list(quota, "/spec/scopeSelector/matchExpressions").iter();
    let mut expressions = expressions.map(|it| {
        let values = object::strings(it, "/values");
        let (scope, operator) = (object::text(it, "/scopeName"), object::text(it, "/operator"));
        resource == "pods" && in_scope(object, scope, operator, &values)
    });
    plain && expressions.all(|it| it)
}

fn in_scope(pod: &Value, scope: &str, operator: &str, values: &[String]) -> bool {
    let ends = object::number(pod, "/spec/activeDeadlineSeconds").is_some();
    let best_effort = total(pod, "requests").is_empty() && total(pod, "limits").is_empty();
    let class = object::text(pod, "/spec/priorityClassName");
    let listed = values.iter().any(|it| it == class);
    match (scope, operator) {
        ("Terminating", _) => ends,
        ("NotTerminating", _) => !ends,
        ("BestEffort", _) => best_effort,
        ("NotBestEffort", _) => !best_effort,
        ("PriorityClass", "In") => listed,
        ("PriorityClass", "NotIn") => !listed,
        ("PriorityClass", "DoesNotExist") => class.is_empty(),
        ("PriorityClass", _) => !class.is_empty(),
        _ => false,
    }
}
