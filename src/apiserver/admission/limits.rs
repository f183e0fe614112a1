//! `LimitRanger`: the minimum, maximum and default amounts of a namespace.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{NewObject, objects};
use crate::sorted::CollectSorted as _;
use crate::{native::quantity::Quantity, object, refusal::Refusal};

const ANNOTATION: &str = "kubernetes.io/limit-ranger";
/// The lists of containers, and the name of each kind in messages.
const CONTAINERS: [(&str, &str); 2] =
    [("containers", "container"), ("initContainers", "init container")];

type Amounts = BTreeMap<String, Quantity>;

fn ranges(new_object: &NewObject<'_>) -> Vec<Value> {
    objects(new_object.store, "limitranges", new_object.namespace)
}

/// Adds the default requests and limits of the namespace to containers that leave them out.
pub(super) fn complete(new_object: &NewObject<'_>, pod: &mut Value) {
    for range in ranges(new_object) {
        let items = object::list(&range, "/spec/limits").iter();
        let items: Vec<&Value> =
            items.filter(|it| object::text(it, "/type") == "Container").collect();
        let mut changes = Vec::new();
        for (list, word) in CONTAINERS {
            let containers =
                pod.pointer_mut(&format!("/spec/{list}")).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                for (field, usual, what) in
                    [("requests", "defaultRequest", "request"), ("limits", "default", "limit")]
                {
                    let added = add(container, field, items.iter().filter_map(|it| it.get(usual)));
                    if !added.is_empty() {
                        let name = object::text(container, "/name");
                        changes.push(format!("{} {what} for {word} {name}", added.join(", ")));
                    }
                }
            }
        }
        if !changes.is_empty()
            && let Some(meta) = object::meta_mut(pod)
        {
            let annotations = meta.entry("annotations").or_insert_with(|| json!({}));
            let text = format!("LimitRanger plugin set: {}", changes.join("; "));
            object::put(annotations, ANNOTATION, Some(text.into()));
        }
    }
}

/// Adds missing requests or limits to a container. Returns the names of the added ones.
fn add<'a>(
    container: &mut Value,
    field: &str,
    usual: impl Iterator<Item = &'a Value>,
) -> Vec<String> {
    let mut added: Vec<String> = Vec::new();
    let Some(container) = container.as_object_mut() else { return added };
    let resources = container.entry("resources").or_insert_with(|| json!({}));
    let Some(resources) = resources.as_object_mut() else { return added };
    for (name, amount) in usual.filter_map(Value::as_object).flatten() {
        let amounts = resources.entry(field).or_insert_with(|| Map::new().into());
        let Some(amounts) = amounts.as_object_mut() else { continue };
        if !amounts.contains_key(name) {
            amounts.insert(name.clone(), amount.clone());
            added.push(name.clone());
        }
    }
    added.sort();
    added
}

/// Refuses a Pod or a claim that violates a limit range of its namespace.
pub(super) fn check(new_object: &NewObject<'_>, it: &Value) -> Result<(), Refusal> {
    for range in ranges(new_object) {
        let items = object::list(&range, "/spec/limits").iter();
        let faults: Vec<String> = items.flat_map(|item| faults(item, it)).collect();
        match faults.as_slice() {
            [] => {}
            [one] => return Err(new_object.forbidden(it, one)),
            several => return Err(new_object.forbidden(it, &format!("[{}]", several.join(", ")))),
        }
    }
    Ok(())
}

/// Returns the messages for everything in a Pod or a claim that violates one item of a range.
fn faults(item: &Value, it: &Value) -> Vec<String> {
    let claims = it.pointer("/spec/resources").is_some();
    match object::text(item, "/type") {
        "Container" if !claims => {
            let lists = CONTAINERS.iter().map(|(list, _)| format!("/spec/{list}"));
            let containers: Vec<&Value> =
                lists.flat_map(|list| object::list(it, &list).iter()).collect();
            containers
                .iter()
                .flat_map(|it| outside(item, &asked(it, "requests"), &asked(it, "limits")))
                .collect()
        }
        "Pod" if !claims => outside(item, &total(it, "requests"), &total(it, "limits")),
        "PersistentVolumeClaim" if claims => {
            let requests = amounts_of(it.pointer("/spec/resources/requests"));
            outside(item, &requests, &requests)
        }
        _ => Vec::new(),
    }
}

/// Returns the requests or limits of a container or of the spec of a claim.
fn asked(it: &Value, field: &str) -> Amounts {
    let amounts = it.pointer(&format!("/resources/{field}"));
    amounts_of(amounts)
}

/// Returns a map of amounts as quantities. Invalid quantities were refused before, and are left out.
pub(super) fn amounts_of(it: Option<&Value>) -> Amounts {
    let amounts = it.and_then(Value::as_object).into_iter().flatten();
    amounts
        .filter_map(|(name, it)| {
            let text = it.as_str().map_or_else(|| it.to_string(), String::from);
            Some((name.clone(), Quantity::parse(&text).ok()?))
        })
        .collect_map()
}

/// Returns the requests or limits of a whole Pod: the sum of its containers, or the maximum of an init container, plus the
/// overhead.
pub(super) fn total(pod: &Value, field: &str) -> Amounts {
    let mut sum = Amounts::new();
    for container in object::list(pod, "/spec/containers") {
        merge(&mut sum, asked(container, field), Quantity::plus);
    }
    for container in object::list(pod, "/spec/initContainers") {
        if object::text(container, "/restartPolicy") == "Always" {
            merge(&mut sum, asked(container, field), Quantity::plus);
        } else {
            merge(&mut sum, asked(container, field), Quantity::larger);
        }
    }
    if field == "requests" {
        merge(&mut sum, amounts_of(pod.pointer("/spec/overhead")), Quantity::plus);
    }
    sum
}

pub(super) fn merge(sum: &mut Amounts, more: Amounts, join: fn(Quantity, Quantity) -> Quantity) {
    for (name, amount) in more {
        let joined = sum.get(&name).map_or(amount, |it| join(*it, amount));
        sum.insert(name, joined);
    }
}

fn outside(item: &Value, requests: &Amounts, limits: &Amounts) -> Vec<String> {
    let kind = object::text(item, "/type");
    let mut out = Vec::new();
    for (name, least) in amounts_of(item.get("min")) {
        let start = format!("minimum {name} usage per {kind} is {}", least.canonical());
        let less = |it: Quantity| it.compare(least).is_lt();
        match (requests.get(&name).copied(), limits.get(&name).copied()) {
            (None, _) => out.push(format!("{start}.  No request is specified")),
            (Some(it), _) if less(it) => {
                out.push(format!("{start}, but request is {}", it.canonical()));
            }
            (_, Some(it)) if less(it) => {
                out.push(format!("{start}, but limit is {}", it.canonical()));
            }
            _ => {}
        }
    }
    for (name, most) in amounts_of(item.get("max")) {
        let start = format!("maximum {name} usage per {kind} is {}", most.canonical());
        let more = |it: Quantity| it.compare(most).is_gt();
        let claim = kind == "PersistentVolumeClaim";
        match (limits.get(&name).copied(), requests.get(&name).copied()) {
            (None, _) if claim => out.push(format!("{start}.  No request is specified")),
            (None, _) => out.push(format!("{start}.  No limit is specified")),
            (Some(it), _) if more(it) && !claim => {
                out.push(format!("{start}, but limit is {}", it.canonical()));
            }
            (_, Some(it)) if more(it) => {
                out.push(format!("{start}, but request is {}", it.canonical()));
            }
            _ => {}
        }
    }
    for (name, most) in amounts_of(item.get("maxLimitRequestRatio")) {
        let start =
            format!("{name} max limit to request ratio per {kind} is {}, but ", most.canonical());
        let pair = (requests.get(&name).filter(|it| !it.zero()), limits.get(&name));
        match pair {
            (None, _) => out.push(format!("{start}no request is specified or request is 0")),
            (_, None) => out.push(format!("{start}no limit is specified or limit is 0")),
            (Some(request), Some(limit)) => {
                let ratio = limit.ratio(*request);
                if ratio > most.ratio(Quantity::ONE) {
                    out.push(format!("{start}provided ratio is {ratio:.6}"));
                }
            }
        }
    }
    out
}
