//! Fields of native objects that only the server sets: initial statuses, addresses, and fields that updates cannot change.

use serde_json::{Map, Value, json};

use super::{check::names, decode, defaults, quantity::Quantity};
use crate::object;

/// Sets the status of a new object to its zero value, with defaults.
pub(super) fn fresh(schema: &str, it: &mut Value) {
    object::put(it, "status", Some(decode::zero(schema, "status")));
    defaults::fill(schema, it);
}

/// Fills in the defaults of a Pod, and keeps `podIP` equal to the first of `podIPs`.
pub(super) fn read_pod(it: &mut Value) {
    twice(it, "status", ("podIP", "podIPs"), |ip| json!({ "ip": ip }));
    defaults::fill("io.k8s.api.core.v1.Pod", it);
}

/// Fills in the defaults of a node, and keeps `podCIDR` equal to the first of `podCIDRs`.
pub(super) fn read_node(it: &mut Value) {
    twice(it, "spec", ("podCIDR", "podCIDRs"), |it| it);
    defaults::fill("io.k8s.api.core.v1.Node", it);
}

/// Synchronizes a field with the list that has replaced it: the field is the first item, in the form that items have.
fn twice(it: &mut Value, part: &str, (one, all): (&str, &str), item: fn(Value) -> Value) {
    let Some(Value::Object(fields)) = it.get_mut(part) else { return };
    let first = fields.get(all).and_then(|it| it.get(0)).cloned();
    match fields.get(one).filter(|it| !it.is_null() && **it != "").cloned() {
        Some(value) if first != Some(item(value.clone())) => {
            fields.insert(all.into(), json!([item(value)]));
        }
        None => {
            let value = first.map(|it| it.get("ip").cloned().unwrap_or(it));
            fields.extend(value.map(|it| (one.to_owned(), it)));
        }
        Some(_) => {}
    }
}

/// Initializes a Pod: pending, with its quality of service, and with the default tolerations.
pub(super) fn pod(it: &mut Value) {
    let class = qos_class(it);
    object::put(it, "status", Some(json!({ "phase": "Pending", "qosClass": class })));
    admitted_pod(it);
}

/// Adds what admission plugins add to a changed Pod.
pub(super) fn pod_updated(_: &Value, new: &mut Value) {
    admitted_pod(new);
}

/// Keeps the spec of a certificate signing request: it is signed.
pub(super) fn signing_request_updated(old: &Value, new: &mut Value) {
    object::put(new, "spec", old.get("spec").cloned());
}

/// Keeps the `QoS` class, which is determined at creation.
pub(super) fn pod_status_updated(old: &Value, new: &mut Value) {
    keep_in_status(old, new, "qosClass");
}

/// Keeps the time of the last transition while the phase is the same.
pub(super) fn volume_status_updated(old: &Value, new: &mut Value) {
    if old.pointer("/status/phase") == new.pointer("/status/phase") {
        keep_in_status(old, new, "lastPhaseTransitionTime");
    }
}

/// Keeps a field of the status if the client leaves it out.
fn keep_in_status(old: &Value, new: &mut Value, field: &str) {
    let Some(Value::Object(status)) = new.get_mut("status") else { return };
    let value = old.pointer(&format!("/status/{field}")).filter(|_| !status.contains_key(field));
    status.extend(value.map(|it| (field.to_owned(), it.clone())));
}

/// Adds the tolerations for lost nodes: five minutes, like the admission plugin `DefaultTolerationSeconds`.
pub(crate) fn tolerate(it: &mut Value) {
    let Some(spec) = it.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    if let Value::Array(list) = tolerations {
        for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
            let tolerated = list.iter().any(|it| tolerates(it, key));
            if !tolerated {
                list.push(json!({
                    "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
                }));
            }
        }
    }
}

fn admitted_pod(it: &mut Value) {
    tolerate(it);
    let Some(spec) = it.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if spec.get("priority").is_none() {
        spec.insert("priority".into(), json!(0));
    }
    let class = spec.get("priorityClassName").and_then(Value::as_str).unwrap_or_default();
    match class {
        "system-cluster-critical" => spec.insert("priority".into(), json!(2_000_000_000)),
        "system-node-critical" => spec.insert("priority".into(), json!(2_000_001_000)),
        _ => None,
    };
    if !spec.contains_key("enableServiceLinks") {
        spec.insert("enableServiceLinks".into(), json!(true));
    }
    spec.entry("preemptionPolicy").or_insert_with(|| json!("PreemptLowerPriority"));
    defaults::fill("io.k8s.api.core.v1.Pod", it);
}

fn tolerates(it: &Value, key: &str) -> bool {
    let text = |name: &str| it.get(name).and_then(Value::as_str).unwrap_or_default();
    (text("key") == key || text("key").is_empty()) && matches!(text("effect"), "" | "NoExecute")
}

/// Returns the `QoS` class of a Pod, by cpu and memory of all containers.
fn qos_class(pod: &Value) -> &'static str {
    let containers = ["/spec/containers", "/spec/initContainers"];
    let containers = containers.iter().filter_map(|it| pod.pointer(it)?.as_array()).flatten();
    let (mut any, mut guaranteed) = (false, true);
    for container in containers {
        let amount = |list: &str, name: &str| {
            let text = container.pointer(&format!("/resources/{list}/{name}"))?.as_str()?;
            Quantity::parse(text).ok().filter(|it| !it.zero() && !it.negative())
        };
        for name in ["cpu", "memory"] {
            let (limit, request) = (amount("limits", name), amount("requests", name));
            any |= limit.is_some() || request.is_some();
            guaranteed &= match (limit, request) {
                (Some(limit), Some(request)) => limit.compare(request).is_eq(),
                (Some(_), None) => true,
                (None, _) => false,
            };
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// Adds the label with the name before managed fields are computed, so that the namespace's creator manages it. Fills in the
/// defaults.
pub(super) fn read_namespace(it: &mut Value) {
    label_namespace(it);
    defaults::fill("io.k8s.api.core.v1.Namespace", it);
}

/// Initializes a namespace: active, with the finalizer that keeps it until it is empty.
pub(super) fn namespace(it: &mut Value) {
    object::put(it, "status", Some(json!({ "phase": "Active" })));
    let mut held = object::strings(it, "/spec/finalizers");
    if !held.iter().any(|it| it == "kubernetes") {
        held.push("kubernetes".into());
    }
    object::put(it, "spec", Some(json!({ "finalizers": held })));
    label_namespace(it);
    defaults::fill("io.k8s.api.core.v1.Namespace", it);
}

/// Adds the label with the name of the namespace, so that selectors can refer to it.
pub(crate) fn label_namespace(it: &mut Value) {
    let name = object::meta(it, "name").to_owned();
    if name.is_empty() || !names::dns_label(&name).is_empty() {
        // The validation refuses such a name.
        return;
    }
    if let Some(meta) = object::meta_mut(it)
        && let Value::Object(labels) =
            meta.entry("labels").or_insert_with(|| Value::Object(Map::new()))
    {
        labels.insert("kubernetes.io/metadata.name".into(), name.into());
    }
}

/// Keeps the spec of a namespace: its finalizers are changed through the subresource `finalize`.
pub(super) fn namespace_updated(old: &Value, new: &mut Value) {
    object::put(new, "spec", old.get("spec").cloned());
    label_namespace(new);
}

/// Taints a new node as not ready, so that it gets no Pods before its first report.
pub(super) fn node(it: &mut Value) {
    let Some(Value::Object(spec)) = it.get_mut("spec") else { return };
    let taints = spec.entry("taints").or_insert_with(|| json!([]));
    let key = "node.kubernetes.io/not-ready";
    if let Value::Array(list) = taints
        && !list.iter().any(|it| it.get("key") == Some(&json!(key)))
    {
        list.push(json!({ "key": key, "effect": "NoSchedule" }));
    }
    defaults::fill("io.k8s.api.core.v1.Node", it);
}

/// Initializes a persistent volume: pending since its creation.
pub(super) fn volume(it: &mut Value) {
    fresh("io.k8s.api.core.v1.PersistentVolume", it);
    let since = object::meta(it, "creationTimestamp").to_owned();
    if let Some(Value::Object(status)) = it.get_mut("status").filter(|_| !since.is_empty()) {
        status.insert("lastPhaseTransitionTime".into(), since.into());
    }
}

/// Adds the generated selector and labels of a Job, by its uid, unless the client sets them itself.
pub(super) fn job(it: &mut Value) {
    fresh("io.k8s.api.batch.v1.Job", it);
    let uid = object::meta(it, "uid").to_owned();
    let name = object::meta(it, "name").to_owned();
    let Some(Value::Object(spec)) = it.get_mut("spec") else { return };
    if spec.get("manualSelector") == Some(&json!(true)) {
        return;
    }
    let Some(Value::Object(template)) = spec.get_mut("template") else { return };
    let Some(Value::Object(head)) = template.get_mut("metadata") else { return };
    let before = head.get("labels").cloned();
    if let Value::Object(labels) = head.entry("labels").or_insert_with(|| json!({})) {
        for (key, value) in [("controller-uid", &uid), ("job-name", &name)] {
            labels.entry(key).or_insert_with(|| json!(value));
            labels.entry(format!("batch.kubernetes.io/{key}")).or_insert_with(|| json!(value));
        }
        labels.sort_keys();
    }
    let after = head.get("labels").cloned();
    if spec.get("selector").is_none_or(Value::is_null) {
        spec.insert("selector".into(), json!({}));
    }
    if let Some(Value::Object(selector)) = spec.get_mut("selector") {
        let labels = selector.entry("matchLabels").or_insert_with(|| json!({}));
        if let Value::Object(labels) = labels {
            labels.entry("batch.kubernetes.io/controller-uid").or_insert_with(|| json!(uid));
            labels.sort_keys();
        }
    }
    // Labels that the Job has copied from its template are the same map.
    if let (Some(after), Some(meta)) = (after, object::meta_mut(it))
        && (meta.get("labels").is_none() || meta.get("labels") == before.as_ref())
    {
        meta.insert("labels".into(), after);
    }
    defaults::fill("io.k8s.api.batch.v1.Job", it);
}

/// Counts the changes of a daemon set's template, for clients of its first version.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Adds the template generation to a daemon set without it: zero.
pub(super) fn read_daemon_set(it: &mut Value) {
    let annotations = it.pointer("/metadata/annotations");
    let count = annotations.and_then(|it| it.get(TEMPLATE_GENERATION));
    if count.is_none() {
        annotate(it, TEMPLATE_GENERATION, "0");
    }
    defaults::fill("io.k8s.api.apps.v1.DaemonSet", it);
}

pub(super) fn daemon_set(it: &mut Value) {
    annotate(it, TEMPLATE_GENERATION, "1");
    fresh("io.k8s.api.apps.v1.DaemonSet", it);
}

pub(super) fn daemon_set_updated(old: &Value, new: &mut Value) {
    let annotations = old.pointer("/metadata/annotations");
    let count = annotations.and_then(|it| it.get(TEMPLATE_GENERATION)?.as_str()?.parse().ok());
    let count: u64 = count.unwrap_or(0);
    let changed = old.pointer("/spec/template") != new.pointer("/spec/template");
    annotate(new, TEMPLATE_GENERATION, &(count + u64::from(changed)).to_string());
    defaults::fill("io.k8s.api.apps.v1.DaemonSet", new);
}

fn annotate(it: &mut Value, key: &str, value: &str) {
    if let Some(meta) = object::meta_mut(it)
        && let Value::Object(annotations) =
            meta.entry("annotations").or_insert_with(|| Value::Object(Map::new()))
    {
        annotations.insert(key.into(), value.into());
        annotations.sort_keys();
    }
}

/// The service network: 10.96.0.0/12, the default of kubeadm.
const NETWORK: u32 = 0x0a60_0000;
const HOSTS: u32 = (1 << 20) - 1;
/// The first node port, and the number of them; the defaults of Kubernetes.
const NODE_PORTS: (u32, u32) = (30_000, 2768);

/// Allocates the cluster IP of a Service, and node ports if its type has them.
///
/// They are derived from its name, not taken from a pool: with a million addresses, two Services hardly ever collide.
pub(super) fn service(it: &mut Value) {
    fresh("io.k8s.api.core.v1.Service", it);
    addresses(it);
}

fn addresses(it: &mut Value) {
    let seed = format!("{}/{}", object::meta(it, "namespace"), object::meta(it, "name"));
    let Some(Value::Object(spec)) = it.get_mut("spec") else { return };
    let kind = spec.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    if kind == "ExternalName" {
        return;
    }
    let given = spec.get("clusterIP").and_then(Value::as_str).unwrap_or_default().to_owned();
    let ip = if given.is_empty() { draw_address(&seed) } else { given };
    if spec.get("clusterIPs").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        spec.insert("clusterIPs".into(), json!([ip]));
    }
    families(spec, ip == "None");
    spec.insert("clusterIP".into(), json!(ip));
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        draw_ports(spec, &seed);
    }
    defaults::fill("io.k8s.api.core.v1.Service", it);
}

/// Sets the IP families: the cluster has only IPv4; headless Services without a selector may have both.
fn families(spec: &mut Map<String, Value>, headless: bool) {
    let selects = spec.get("selector").is_some_and(|it| !it.is_null());
    let (policy, all) = if headless && !selects {
        ("RequireDualStack", json!(["IPv4", "IPv6"]))
    } else {
        ("SingleStack", json!(["IPv4"]))
    };
    spec.entry("ipFamilyPolicy").or_insert_with(|| json!(policy));
    spec.entry("ipFamilies").or_insert(all);
}

fn draw_address(seed: &str) -> String {
    // The first ten are reserved for Services with fixed addresses, such as DNS.
    let host = hash(seed) % (HOSTS - 20) + 11;
    std::net::Ipv4Addr::from(NETWORK + host).to_string()
}

fn draw_ports(spec: &mut Map<String, Value>, seed: &str) {
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    let mut taken: Vec<u32> = Vec::new();
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        let given = port.get("nodePort").and_then(Value::as_u64).unwrap_or(0);
        if given != 0 {
            continue;
        }
        let mut drawn =
            hash(&format!("{seed}/{}", port.get("port").unwrap_or(&Value::Null))) % NODE_PORTS.1;
        while taken.contains(&drawn) && taken.len() < 2768 {
            drawn = (drawn + 1) % NODE_PORTS.1;
        }
        taken.push(drawn);
        port.insert("nodePort".into(), json!(NODE_PORTS.0 + drawn));
    }
}

/// Returns the FNV-1a hash: simple, and the same in every run.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Adds or removes addresses when the type of a Service changes. Keeps node ports that a client leaves out.
pub(super) fn service_updated(old: &Value, new: &mut Value) {
    let text = |it: &Value, name: &str| {
        let field = it.get("spec").and_then(|it| it.get(name));
        field.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let external = |it: &Value| text(it, "type") == "ExternalName";
    let node_ports = |it: &Value| matches!(text(it, "type").as_str(), "NodePort" | "LoadBalancer");
    let opened = node_ports(new);
    if !external(new) && !external(old) {
        keep_addresses(old, new);
    }
    if let Some(Value::Object(spec)) = new.get_mut("spec") {
        let list = spec.get_mut("ports").and_then(Value::as_array_mut);
        let old_ports = old.pointer("/spec/ports").and_then(Value::as_array);
        for port in list.into_iter().flatten().filter_map(Value::as_object_mut) {
            let same = |it: &&Value| {
                it.get("port") == port.get("port") && it.get("protocol") == port.get("protocol")
            };
            let before = old_ports.into_iter().flatten().find(same);
            let before = before.and_then(|it| it.get("nodePort")).cloned();
            match before {
                Some(before) if opened && !port.contains_key("nodePort") => {
                    port.insert("nodePort".into(), before);
                }
                // A port that was allocated for the previous type is removed with it.
                before if !opened && before.as_ref() == port.get("nodePort") => {
                    port.shift_remove("nodePort");
                }
                _ => {}
            }
        }
    }
    drop_with_type(old, new);
    if external(new) && !external(old) {
        let Some(Value::Object(spec)) = new.get_mut("spec") else { return };
        for name in ["ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
            spec.shift_remove(name);
        }
        for name in ["clusterIP", "clusterIPs"] {
            if spec.get(name) == old.pointer(&format!("/spec/{name}")) {
                spec.shift_remove(name);
            }
        }
    }
    if external(old) {
        addresses(new);
    } else if opened {
        let seed = format!("{}/{}", object::meta(new, "namespace"), object::meta(new, "name"));
        if let Some(Value::Object(spec)) = new.get_mut("spec") {
            draw_ports(spec, &seed);
        }
    }
    defaults::fill("io.k8s.api.core.v1.Service", new);
}

/// Removes fields that belong to the previous type of a Service, unless the client changes them.
fn drop_with_type(old: &Value, new: &mut Value) {
    const FIELDS: [(&str, &[&str]); 4] = [
        ("externalTrafficPolicy", &["NodePort", "LoadBalancer"]),
        ("healthCheckNodePort", &["LoadBalancer"]),
        ("allocateLoadBalancerNodePorts", &["LoadBalancer"]),
        ("loadBalancerClass", &["LoadBalancer"]),
    ];
    let was = object::text(old, "/spec/type");
    let is = object::text(new, "/spec/type").to_owned();
    let Some(Value::Object(spec)) = new.get_mut("spec") else { return };
    for (field, types) in FIELDS {
        let gone = types.contains(&was) && !types.contains(&is.as_str());
        if gone && spec.get(field) == old.pointer(&format!("/spec/{field}")) {
            spec.shift_remove(field);
        }
    }
}

/// Keeps addresses that a client leaves out. The first one may be changed by its old name alone.
fn keep_addresses(old: &Value, new: &mut Value) {
    let before = |name: &str| old.get("spec").and_then(|it| it.get(name));
    let kept = ["ipFamilies", "ipFamilyPolicy"].map(|name| (name, before(name).cloned()));
    let Some(Value::Object(spec)) = new.get_mut("spec") else { return };
    for (name, value) in kept {
        if let Some(value) = value.filter(|_| spec.get(name).is_none_or(Value::is_null)) {
            spec.insert(name.into(), value);
        }
    }
    let (ip, ips) = (before("clusterIP").cloned(), before("clusterIPs").cloned());
    if spec.get("clusterIP").is_none_or(|it| it.is_null() || *it == "") {
        spec.extend(ip.clone().map(|it| ("clusterIP".to_owned(), it)));
    }
    let none = spec.get("clusterIPs").and_then(Value::as_array).is_none_or(Vec::is_empty);
    if spec.get("clusterIP") == ip.as_ref() {
        if none {
            spec.extend(ips.map(|it| ("clusterIPs".to_owned(), it)));
        }
    } else if none || spec.get("clusterIPs") == ips.as_ref() {
        let first = spec.get("clusterIP").cloned();
        spec.insert("clusterIPs".into(), json!(first.into_iter().collect::<Vec<_>>()));
    }
}

/// Moves `stringData` of a secret into `data`.
pub(super) fn secret(it: &mut Value) {
    defaults::fill("io.k8s.api.core.v1.Secret", it);
    let Some(fields) = it.as_object_mut() else { return };
    let Some(Value::Object(texts)) = fields.shift_remove("stringData") else { return };
    if fields.get("data").is_none_or(Value::is_null) {
        fields.insert("data".into(), json!({}));
    }
    let Some(Value::Object(data)) = fields.get_mut("data") else { return };
    for (name, text) in texts {
        data.insert(name, json!(super::scalar::encode(text.as_str().unwrap_or_default())));
    }
    data.sort_keys();
    defaults::fill("io.k8s.api.core.v1.Secret", it);
}
