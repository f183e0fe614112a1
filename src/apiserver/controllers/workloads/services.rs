//! Endpoints and `EndpointSlice`s of a Service, from the Pods that it selects.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::sorted;
use crate::{
    controllers::{
        Controller, NO_STEP, ReconcileResult,
        cache::{Cache, ObjectKey, Update},
        time::DecisionTime,
        workloads::{
            claim,
            pods::{self, PODS},
        },
        write::{Write, set, unset},
    },
    labels,
    object::{self, number, text},
};

const SERVICES: &str = "services";
const ENDPOINTS: &str = "endpoints";
const SLICES: &str = "endpointslices.discovery.k8s.io";
const KIND: (&str, &str) = ("v1", "Service");
const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslice-controller.k8s.io";
const HEADLESS: &str = "service.kubernetes.io/headless";
/// Limit of endpoints in a slice; the default of the real controller.
const SLICE_MAX: usize = 100;

pub(crate) const CONTROLLER: Controller = Controller {
    reads: &[SERVICES, PODS, ENDPOINTS, SLICES],
    affected,
    reconcile,
    step: NO_STEP,
    start: &[],
};

fn affected(cache: &Cache, update: &Update<'_>, found: &mut Vec<ObjectKey>) {
    match update.key.resource.as_str() {
        SERVICES => found.push(update.key.clone()),
        ENDPOINTS => {
            let service = ObjectKey { resource: SERVICES.into(), ..update.key.clone() };
            found.extend(Some(service).filter(|it| cache.get(it).is_some()));
        }
        SLICES => {
            let owners = update.owners().filter_map(|it| cache.by_uid(&it.uid));
            found.extend(
                owners.filter(|(key, _)| key.resource == SERVICES).map(|(key, _)| key.clone()),
            );
        }
        PODS => {
            let sides =
                || update.old.into_iter().chain(update.new).filter_map(|it| it.body.as_ref());
            let services = cache.within(SERVICES, &update.key.namespace);
            let selecting = services.filter(|(_, it)| {
                let selector = it.body.as_ref().and_then(|it| it.pointer("/spec/selector"));
                sides().any(|pod| labels::has_all(selector, labels::of(pod)))
            });
            found.extend(selecting.map(|(key, _)| key.clone()));
        }
        _ => {}
    }
}

/// A Pod behind a Service.
struct Backend {
    ip: String,
    ready: bool,
    terminating: bool,
    /// The address in the form of Endpoints.
    address: Value,
    /// The ports of the Service, resolved for this Pod.
    ports: Vec<Value>,
}

fn reconcile(cache: &Cache, key: &ObjectKey, _moment: &DecisionTime) -> ReconcileResult {
    let endpoints = ObjectKey { resource: ENDPOINTS.into(), ..key.clone() };
    let Some(body) = cache.body(key).filter(|it| !object::deleting(it)) else {
        // Slices have an owner reference; Endpoints only have the same name.
        let left = cache.get(&endpoints).map(|it| Write::delete(&endpoints, &it.uid));
        return left.into_iter().collect::<Vec<_>>().into();
    };
    let selector = body.pointer("/spec/selector");
    if labels::is_empty(Some(&json!({ "matchLabels": selector })))
        || text(body, "/spec/type") == "ExternalName"
    {
        return ReconcileResult::none();
    }
    let mut backends = backends(cache, key, body);
    sorted::sort_by(&mut backends, |a, b| {
        (&a.ip, a.address.to_string()).cmp(&(&b.ip, b.address.to_string()))
    });
    let mut writes = Vec::new();
    if cache.def(ENDPOINTS).is_some() {
        writes.push(write_endpoints(cache, &endpoints, body, &backends));
    }
    if cache.def(SLICES).is_some() {
        write_slices(cache, key, body, &backends, &mut writes);
    }
    writes.into()
}

fn backends(cache: &Cache, key: &ObjectKey, service: &Value) -> Vec<Backend> {
    let selector = service.pointer("/spec/selector");
    let all = cache.within(PODS, &key.namespace).filter_map(|(_, it)| it.body.as_ref());
    let selected = all.filter(|it| labels::has_all(selector, labels::of(it)) && !pods::ended(it));
    selected.filter_map(|pod| backend(key, service, pod)).collect()
}

fn backend(key: &ObjectKey, service: &Value, pod: &Arc<Value>) -> Option<Backend> {
    let ip = text(pod, "/status/podIP");
    if ip.is_empty() {
        return None;
    }
    let node = Some(text(pod, "/spec/nodeName")).filter(|it| !it.is_empty());
    let hostname = text(pod, "/spec/hostname");
    let named = !hostname.is_empty() && text(pod, "/spec/subdomain") == key.name;
    let mut address = json!({});
    object::put(&mut address, "ip", Some(ip.into()));
    object::put(&mut address, "hostname", Some(hostname).filter(|_| named).map(Value::from));
    object::put(&mut address, "nodeName", node.map(Value::from));
    let target = json!({
        "kind": "Pod",
        "namespace": key.namespace,
        "name": object::meta(pod, "name"),
        "uid": object::meta(pod, "uid"),
    });
    object::put(&mut address, "targetRef", Some(target));
    let always = object::flag(service, "/spec/publishNotReadyAddresses");
    let terminating = object::deleting(pod);
    Some(Backend {
        ip: ip.into(),
        ready: always || (pods::ready(pod) && !terminating),
        terminating: terminating && !always,
        address,
        ports: ports(service, pod),
    })
}

/// Returns the ports of a Service resolved for a Pod. Named ports that the Pod does not have are left out.
fn ports(service: &Value, pod: &Value) -> Vec<Value> {
    let wanted = service.pointer("/spec/ports").and_then(Value::as_array);
    let resolve = |port: &Value| {
        let target = port.get("targetPort").or_else(|| port.get("port"))?;
        let protocol = port.get("protocol").and_then(Value::as_str).unwrap_or("TCP");
        let number = match target.as_str() {
            None => target.as_i64().filter(|it| *it > 0).or_else(|| number(port, "/port"))?,
            Some(name) => named_port(pod, name, protocol)?,
        };
        let mut resolved = json!({});
        let name = port.get("name").filter(|it| **it != "").cloned();
        object::put(&mut resolved, "name", name);
        object::put(&mut resolved, "port", Some(number.into()));
        object::put(&mut resolved, "protocol", Some(protocol.into()));
        object::put(&mut resolved, "appProtocol", port.get("appProtocol").cloned());
        Some(resolved)
    };
    wanted.into_iter().flatten().filter_map(resolve).collect()
}

fn named_port(pod: &Value, name: &str, protocol: &str) -> Option<i64> {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array);
    let ports = containers.into_iter().flatten().filter_map(|it| it.get("ports")?.as_array());
    let found = ports.flatten().find(|it| {
        it.get("name").and_then(Value::as_str) == Some(name)
            && it.get("protocol").and_then(Value::as_str).unwrap_or("TCP") == protocol
    });
    number(found?, "/containerPort")
}

/// Groups backends by their ports: a subset or a slice has one list of ports.
fn grouped(backends: &[Backend]) -> Vec<(&[Value], Vec<&Backend>)> {
    let mut groups: Vec<(&[Value], Vec<&Backend>)> = Vec::new();
    for backend in backends {
        match groups.iter_mut().find(|(ports, _)| *ports == backend.ports.as_slice()) {
            Some((_, group)) => group.push(backend),
            None => groups.push((&backend.ports, vec![backend])),
        }
    }
    groups
}

fn write_endpoints(cache: &Cache, at: &ObjectKey, service: &Value, backends: &[Backend]) -> Write {
    let mut subsets: Vec<Value> = Vec::new();
    for (ports, group) in grouped(backends) {
        // Terminating Pods are in neither list.
        let pick = |ready: bool| -> Vec<Value> {
            let picked = group.iter().filter(|it| it.ready == ready && !it.terminating);
            picked.map(|it| it.address.clone()).collect()
        };
        let mut subset = json!({});
        for (field, addresses) in [("addresses", pick(true)), ("notReadyAddresses", pick(false))] {
            object::put(
                &mut subset,
                field,
                Some(addresses).filter(|it| !it.is_empty()).map(Value::from),
            );
        }
        if subset.as_object().is_some_and(serde_json::Map::is_empty) {
            continue;
        }
        if !ports.is_empty() {
            object::put(&mut subset, "ports", Some(ports.into()));
        }
        subsets.push(subset);
    }
    let subsets =
        Some(Value::from(subsets)).filter(|it| it.as_array().is_some_and(|it| !it.is_empty()));
    let labels = labels_of(service);
    if let Some(old) = cache.body(at) {
        let edit = |field: &'static str, value: Option<Value>| {
            value.map_or_else(|| unset([field]), |it| set([field], it))
        };
        let mut edits = vec![edit("subsets", subsets)];
        if !labels::of(old).is_null() || !labels.is_null() {
            edits.push(if labels.is_null() {
                unset(["metadata", "labels"])
            } else {
                set(["metadata", "labels"], labels)
            });
        }
        return Write::change(at, old, edits);
    }
    let mut body = json!({
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": { "name": at.name, "namespace": at.namespace },
    });
    if !labels.is_null() {
        object::set_meta(&mut body, "labels", labels);
    }
    object::put(&mut body, "subsets", subsets);
    Write::Create { resource: ENDPOINTS, body }
}

/// Returns the labels of a Service for its Endpoints; null if there are none.
fn labels_of(service: &Value) -> Value {
    let mut labels = labels::of(service).clone();
    if text(service, "/spec/clusterIP") == "None" {
        if labels.is_null() {
            labels = json!({});
        }
        object::put(&mut labels, HEADLESS, Some("".into()));
    }
    labels
}

fn write_slices(
    cache: &Cache,
    key: &ObjectKey,
    service: &Value,
    backends: &[Backend],
    writes: &mut Vec<Write>,
) {
    let own = |it: &Value| labels::of(it).get(MANAGED_BY).and_then(Value::as_str) == Some(MANAGER);
    let mut known = cache.managed(object::meta(service, "uid"), SLICES).filter(|(_, it)| own(it));
    let mut wanted: Vec<(Value, Value)> = Vec::new();
    for (ports, group) in grouped(backends) {
        for chunk in group.chunks(SLICE_MAX) {
            let endpoints: Vec<Value> = chunk.iter().map(|it| endpoint(it)).collect();
            // An empty list of ports is stored as null, so it would look changed and be written repeatedly.
            let ports = if ports.is_empty() { Value::Null } else { Value::from(ports) };
            wanted.push((ports, endpoints.into()));
        }
    }
    // A Service without Pods has one empty slice.
    if wanted.is_empty() {
        wanted.push((Value::Null, json!([])));
    }
    let mut labels =
        Some(labels_of(service)).filter(|it| !it.is_null()).unwrap_or_else(|| json!({}));
    object::put(&mut labels, MANAGED_BY, Some(MANAGER.into()));
    object::put(&mut labels, SERVICE_NAME, Some(key.name.clone().into()));
    let version =
        cache.def(SLICES).and_then(|it| it.versions.first().map(|name| it.api_version(name)));
    for (ports, endpoints) in wanted {
        if let Some((at, it)) = known.next() {
            let edits = vec![
                set(["endpoints"], endpoints),
                set(["ports"], ports),
                set(["metadata", "labels"], labels.clone()),
            ];
            writes.push(Write::change(at, it, edits));
            continue;
        }
        let body = json!({
            "apiVersion": version,
            "kind": "EndpointSlice",
            "metadata": {
                "generateName": format!("{}-", key.name),
                "namespace": key.namespace,
                "labels": labels,
                "ownerReferences": [claim::reference(service, KIND)],
            },
            "addressType": "IPv4",
            "endpoints": endpoints,
            "ports": ports,
        });
        writes.push(Write::Create { resource: SLICES, body });
    }
    writes.extend(known.map(|(at, it)| Write::delete(at, object::meta(it, "uid"))));
}

fn endpoint(backend: &Backend) -> Value {
    let mut endpoint = json!({
        "addresses": [backend.ip],
        "conditions": {
            "ready": backend.ready,
            "serving": backend.ready,
            "terminating": backend.terminating,
        },
    });
    for field in ["hostname", "nodeName", "targetRef"] {
        object::put(&mut endpoint, field, backend.address.get(field).cloned());
    }
    endpoint
}
