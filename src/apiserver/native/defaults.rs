//! Defaulting of native objects.
//!
//! As in the real server, most defaults belong to a type and apply wherever it occurs. They are applied along the types, from the
//! outside in.

use serde_json::{Map, Value, json};

use super::{
    facts::{self, GoType, GoValueType},
    image,
    quantity::Quantity,
};

type JsonObject = Map<String, Value>;

/// Fills in the defaults of an object by the name of its definition, and sorts its fields.
pub(super) fn fill(name: &str, object: &mut Value) {
    walk(name, object, rule);
}

/// Sorts the fields of an object as the real server writes them.
pub(super) fn order(name: &str, object: &mut Value) {
    // CRDs are stored as JSON, all other kinds as protobuf, which has no empty lists.
    let visit: Visit = if name.starts_with("io.k8s.apiextensions") { |_, _| {} } else { no_lists };
    walk(name, object, visit);
}

/// Replaces empty lists that are always written by null.
fn no_lists(name: &str, fields: &mut JsonObject) {
    let Some(known) = facts::go_type(name) else { return };
    for field in known.fields.iter().filter(|it| matches!(it.form, GoValueType::List(_))) {
        if let Some(value) = fields.get_mut(field.name)
            && value.as_array().is_some_and(Vec::is_empty)
        {
            *value = Value::Null;
        }
    }
}

/// Called for each struct, with the name of its definition.
type Visit = fn(&str, &mut JsonObject);

/// Visits all structs of a value, from the outside in. The depth of bodies is bounded by `decode`.
fn walk(name: &str, value: &mut Value, visit: Visit) {
    let Value::Object(fields) = value else { return };
    visit(name, fields);
    let Some(known) = facts::go_type(name) else { return };
    in_order(known, fields);
    for field in &known.fields {
        if let Some(value) = fields.get_mut(field.name) {
            inside(&field.form, value, visit);
        }
    }
}

/// Sorts fields in the order in which Go declares them.
fn in_order(known: &GoType, fields: &mut JsonObject) {
    let place = |name: &str| known.fields.iter().position(|it| it.name == name);
    if fields.keys().is_sorted_by_key(|it| place(it)) {
        return;
    }
    let mut rest = std::mem::take(fields);
    for field in &known.fields {
        if let Some(value) = rest.shift_remove(field.name) {
            fields.insert(field.name.into(), value);
        }
    }
    fields.append(&mut rest);
}

fn inside(form: &GoValueType, value: &mut Value, visit: Visit) {
    match (form, value) {
        (GoValueType::Struct(name), value) => walk(name, value, visit),
        (GoValueType::List(items), Value::Array(list)) => {
            for it in list {
                inside(items, it, visit);
            }
        }
        (GoValueType::Map(items), Value::Object(map)) => {
            for it in map.values_mut() {
                inside(items, it, visit);
            }
        }
        _ => {}
    }
}

/// Applies the defaults of one type.
fn rule(name: &str, it: &mut JsonObject) {
    // Types outside of the API groups have no defaults.
    let short = name.strip_prefix("io.k8s.api.").unwrap_or_default();
    let Some((group, rest)) = short.split_once('.') else { return };
    let kind = rest.rsplit_once('.').map_or(rest, |it| it.1);
    match (group, kind) {
        (
            "core",
            "Pod"
            | "PodSpec"
            | "Container"
            | "EphemeralContainer"
            | "Probe"
            | "HTTPGetAction"
            | "ObjectFieldSelector",
        ) => pods(kind, it),
        ("core", "Volume") => volume(it),
        ("core", _) if kind.ends_with("Source") || kind.ends_with("Projection") => source(kind, it),
        ("core", _) => core(kind, it),
        ("apps", _) => apps(kind, it),
        ("batch", _) => batch(kind, it),
        _ => others(group, kind, it),
    }
}

/// Sets a field that is missing or null.
fn put(it: &mut JsonObject, name: &str, value: impl Into<Value>) {
    if it.get(name).is_none_or(Value::is_null) {
        it.insert(name.into(), value.into());
    }
}

/// Sets a string that is missing or empty.
fn put_text(it: &mut JsonObject, name: &str, value: &str) {
    if text(it, name).is_empty() {
        it.insert(name.into(), value.into());
    }
}

/// Sets a number that is missing or zero.
fn put_number(it: &mut JsonObject, name: &str, value: i64) {
    if it.get(name).and_then(Value::as_i64).unwrap_or(0) == 0 {
        it.insert(name.into(), value.into());
    }
}

fn text<'a>(it: &'a JsonObject, name: &str) -> &'a str {
    it.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn child<'a>(it: &'a mut JsonObject, name: &str) -> Option<&'a mut JsonObject> {
    put(it, name, json!({}));
    it.get_mut(name)?.as_object_mut()
}

fn items<'a>(
    it: &'a mut JsonObject,
    name: &str,
) -> impl Iterator<Item = &'a mut JsonObject> + use<'a> {
    let list = it.get_mut(name).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

fn pods(name: &str, it: &mut JsonObject) {
    match name {
        "Pod" => pod(it),
        "PodSpec" => {
            put_text(it, "restartPolicy", "Always");
            put(it, "terminationGracePeriodSeconds", 30);
            put_text(it, "dnsPolicy", "ClusterFirst");
            same_account(it);
            put(it, "securityContext", json!({}));
            put_text(it, "schedulerName", "default-scheduler");
            if it.get("hostNetwork") == Some(&json!(true)) {
                host_ports(it);
            }
        }
        "Container" | "EphemeralContainer" => {
            let policy = image::pull_policy(text(it, "image"));
            put_text(it, "terminationMessagePath", "/dev/termination-log");
            put_text(it, "terminationMessagePolicy", "File");
            put_text(it, "imagePullPolicy", policy);
            for list in ["limits", "requests"] {
                if let Some(list) = it.get_mut("resources").and_then(|it| it.get_mut(list)) {
                    to_milli(list);
                }
            }
        }
        "Probe" => {
            put_number(it, "timeoutSeconds", 1);
            put_number(it, "periodSeconds", 10);
            put_number(it, "successThreshold", 1);
            put_number(it, "failureThreshold", 3);
        }
        "HTTPGetAction" => {
            put_text(it, "path", "/");
            put_text(it, "scheme", "HTTP");
        }
        _ => put_text(it, "apiVersion", "v1"),
    }
}

/// Copies limits to missing requests. This applies to Pods, not to templates.
fn pod(it: &mut JsonObject) {
    let Some(spec) = it.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for list in ["containers", "initContainers"] {
        for container in items(spec, list) {
            let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut)
            else {
                continue;
            };
            let Some(Value::Object(limits)) = resources.get("limits").cloned() else { continue };
            let Some(requests) = child(resources, "requests") else { continue };
            for (name, amount) in limits {
                put(requests, &name, amount);
            }
            requests.sort_keys();
        }
    }
    put(spec, "enableServiceLinks", true);
}

/// Sets `serviceAccountName` and its older name `serviceAccount` to the same value.
fn same_account(it: &mut JsonObject) {
    let account = [text(it, "serviceAccountName"), text(it, "serviceAccount")];
    let account = account.into_iter().find(|it| !it.is_empty()).map(String::from);
    if let Some(account) = account {
        it.insert("serviceAccountName".into(), account.clone().into());
        it.insert("serviceAccount".into(), account.into());
    }
}

fn host_ports(it: &mut JsonObject) {
    for list in ["containers", "initContainers"] {
        for container in items(it, list) {
            for port in items(container, "ports") {
                let inner = port.get("containerPort").and_then(Value::as_i64).unwrap_or(0);
                put_number(port, "hostPort", inner);
            }
        }
    }
}

fn to_milli(list: &mut Value) {
    for amount in list.as_object_mut().into_iter().flat_map(|it| it.values_mut()) {
        if let Some(Ok(parsed)) = amount.as_str().map(Quantity::parse) {
            *amount = parsed.to_milli().canonical().into();
        }
    }
}

fn volume(it: &mut JsonObject) {
    if !it.iter().any(|(name, value)| name != "name" && !value.is_null()) {
        it.insert("emptyDir".into(), json!({}));
    }
}

fn source(name: &str, it: &mut JsonObject) {
    match name {
        "SecretVolumeSource"
        | "ConfigMapVolumeSource"
        | "DownwardAPIVolumeSource"
        | "ProjectedVolumeSource" => put(it, "defaultMode", 420),
        "ServiceAccountTokenProjection" => put(it, "expirationSeconds", 3600),
        "HostPathVolumeSource" => put(it, "type", ""),
        "ISCSIVolumeSource" | "ISCSIPersistentVolumeSource" => {
            put_text(it, "iscsiInterface", "default");
        }
        "RBDVolumeSource" | "RBDPersistentVolumeSource" => {
            put_text(it, "pool", "rbd");
            put_text(it, "user", "admin");
            put_text(it, "keyring", "/etc/ceph/keyring");
        }
        "ScaleIOVolumeSource" | "ScaleIOPersistentVolumeSource" => {
            put_text(it, "storageMode", "ThinProvisioned");
            put_text(it, "fsType", "xfs");
        }
        "AzureDiskVolumeSource" => {
            put(it, "cachingMode", "ReadWrite");
            put(it, "fsType", "ext4");
            put(it, "readOnly", false);
            put(it, "kind", "Shared");
        }
        _ => {}
    }
}

fn core(name: &str, it: &mut JsonObject) {
    match name {
        "Secret" => put_text(it, "type", "Opaque"),
        "ServiceSpec" => service(it),
        "ReplicationController" => replication_controller(it),
        "PersistentVolumeSpec" => {
            put_text(it, "persistentVolumeReclaimPolicy", "Retain");
            put(it, "volumeMode", "Filesystem");
        }
        "PersistentVolumeClaimSpec" => put(it, "volumeMode", "Filesystem"),
        "PersistentVolumeStatus" | "PersistentVolumeClaimStatus" => {
            put_text(it, "phase", "Pending");
        }
        "LoadBalancerIngress" if !text(it, "ip").is_empty() => put_text(it, "ipMode", "VIP"),
        "NamespaceStatus" => put_text(it, "phase", "Active"),
        "EndpointPort" | "ContainerPort" => put_text(it, "protocol", "TCP"),
        "LimitRangeItem" if text(it, "type") == "Container" => limits(it),
        "NodeStatus" => {
            if let Some(capacity) = it.get("capacity").filter(|it| !it.is_null()).cloned() {
                put(it, "allocatable", capacity);
            }
        }
        _ => {}
    }
}

fn service(it: &mut JsonObject) {
    put_text(it, "sessionAffinity", "None");
    put_text(it, "type", "ClusterIP");
    if text(it, "sessionAffinity") == "None" {
        it.shift_remove("sessionAffinityConfig");
    } else if let Some(ip) = child(it, "sessionAffinityConfig").and_then(|it| child(it, "clientIP"))
    {
        put(ip, "timeoutSeconds", 10_800);
    }
    for port in items(it, "ports") {
        put_text(port, "protocol", "TCP");
        let target = port.get("targetPort").unwrap_or(&Value::Null);
        if target.is_null() || target == 0 || target == "" {
            let outer = port.get("port").cloned().unwrap_or_default();
            port.insert("targetPort".into(), outer);
        }
    }
    let kind = text(it, "type").to_owned();
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        put_text(it, "externalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP") {
        put(it, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        put(it, "allocateLoadBalancerNodePorts", true);
    }
}

fn replication_controller(it: &mut JsonObject) {
    let labels = it.get("spec").and_then(|it| it.pointer("/template/metadata/labels")).cloned();
    let Some(spec) = child(it, "spec") else { return };
    put(spec, "replicas", 1);
    if let Some(labels) = labels {
        put(spec, "selector", labels.clone());
        if let Some(meta) = child(it, "metadata") {
            put(meta, "labels", labels);
        }
    }
}

/// Fills in the defaults of a limit range: the maximum is the default limit, the default limit is the default request; without them
/// the minimum is the default request.
fn limits(it: &mut JsonObject) {
    for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")]
    {
        let Some(Value::Object(amounts)) = it.get(from).cloned() else { continue };
        let Some(target) = child(it, to) else { continue };
        for (name, amount) in amounts {
            put(target, &name, amount);
        }
        target.sort_keys();
    }
}

fn apps(name: &str, it: &mut JsonObject) {
    match name {
        "DeploymentSpec" => {
            put(it, "replicas", 1);
            if let Some(strategy) = child(it, "strategy") {
                put_text(strategy, "type", "RollingUpdate");
                if text(strategy, "type") == "RollingUpdate"
                    && let Some(rolling) = child(strategy, "rollingUpdate")
                {
                    put(rolling, "maxUnavailable", "25%");
                    put(rolling, "maxSurge", "25%");
                }
            }
            put(it, "revisionHistoryLimit", 10);
            put(it, "progressDeadlineSeconds", 600);
        }
        "DaemonSetSpec" => {
            if let Some(strategy) = child(it, "updateStrategy") {
                put_text(strategy, "type", "RollingUpdate");
                if text(strategy, "type") == "RollingUpdate"
                    && let Some(rolling) = child(strategy, "rollingUpdate")
                {
                    put(rolling, "maxUnavailable", 1);
                    put(rolling, "maxSurge", 0);
                }
            }
            put(it, "revisionHistoryLimit", 10);
        }
        "StatefulSetSpec" => stateful_set(it),
        "ReplicaSetSpec" => put(it, "replicas", 1),
        _ => {}
    }
}

fn stateful_set(it: &mut JsonObject) {
    put(it, "replicas", 1);
    put_text(it, "podManagementPolicy", "OrderedReady");
    if let Some(strategy) = child(it, "updateStrategy") {
        if text(strategy, "type").is_empty() {
            strategy.insert("type".into(), json!("RollingUpdate"));
            put(strategy, "rollingUpdate", json!({}));
        }
        if text(strategy, "type") == "RollingUpdate"
            && let Some(Value::Object(rolling)) = strategy.get_mut("rollingUpdate")
        {
            put(rolling, "partition", 0);
        }
    }
    put(it, "revisionHistoryLimit", 10);
    if let Some(policy) = child(it, "persistentVolumeClaimRetentionPolicy") {
        put_text(policy, "whenDeleted", "Retain");
        put_text(policy, "whenScaled", "Retain");
    }
    // Templates of claims are complete objects: no other type has a kind inside of a spec.
    for claim in items(it, "volumeClaimTemplates") {
        claim.insert("kind".into(), json!("PersistentVolumeClaim"));
        claim.insert("apiVersion".into(), json!("v1"));
    }
}

fn batch(name: &str, it: &mut JsonObject) {
    match name {
        "Job" => job(it),
        "CronJobSpec" => {
            put_text(it, "concurrencyPolicy", "Allow");
            put(it, "suspend", false);
            put(it, "successfulJobsHistoryLimit", 3);
            put(it, "failedJobsHistoryLimit", 1);
        }
        _ => {}
    }
}

fn job(it: &mut JsonObject) {
    let labels = it.get("spec").and_then(|it| it.pointer("/template/metadata/labels")).cloned();
    let Some(spec) = child(it, "spec") else { return };
    if !spec.contains_key("parallelism") {
        put(spec, "completions", 1);
    }
    put(spec, "parallelism", 1);
    let indexed = text(spec, "completionMode") == "Indexed";
    let own_limit = indexed && spec.get("backoffLimitPerIndex").is_some_and(|it| !it.is_null());
    put(spec, "backoffLimit", if own_limit { i64::from(i32::MAX) } else { 6 });
    put(spec, "completionMode", "NonIndexed");
    put(spec, "suspend", false);
    put(spec, "manualSelector", false);
    let policy = if spec.get("podFailurePolicy").is_some_and(|it| !it.is_null()) {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    put(spec, "podReplacementPolicy", policy);
    if let (Some(labels), Some(meta)) = (labels, child(it, "metadata")) {
        put(meta, "labels", labels);
    }
}

/// Sets the default scaling rates, if any are given: fast up, slow down.
fn autoscaler(it: &mut JsonObject) {
    put(it, "minReplicas", 1);
    let Some(behavior) = it.get_mut("behavior").and_then(Value::as_object_mut) else { return };
    let percent = json!({ "type": "Percent", "value": 100, "periodSeconds": 15 });
    let pods = json!({ "type": "Pods", "value": 4, "periodSeconds": 15 });
    if let Some(up) = child(behavior, "scaleUp") {
        put(up, "stabilizationWindowSeconds", 0);
        put(up, "selectPolicy", "Max");
        put(up, "policies", json!([pods, percent]));
    }
    if let Some(down) = child(behavior, "scaleDown") {
        put(down, "selectPolicy", "Max");
        put(down, "policies", json!([percent]));
    }
}

fn others(group: &str, name: &str, it: &mut JsonObject) {
    match (group, name) {
        ("networking", "NetworkPolicyPort") => put(it, "protocol", "TCP"),
        ("networking", "NetworkPolicySpec") => {
            let egress =
                it.get("egress").and_then(Value::as_array).is_some_and(|it| !it.is_empty());
            let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
            put(it, "policyTypes", types);
        }
        ("rbac", "RoleRef") => put_text(it, "apiGroup", "rbac.authorization.k8s.io"),
        ("rbac", "Subject") if matches!(text(it, "kind"), "User" | "Group") => {
            put_text(it, "apiGroup", "rbac.authorization.k8s.io");
        }
        ("storage", "StorageClass") => {
            put(it, "reclaimPolicy", "Delete");
            put(it, "volumeBindingMode", "Immediate");
        }
        ("storage", "CSIDriverSpec") => {
            put(it, "attachRequired", true);
            put(it, "podInfoOnMount", false);
            put(it, "storageCapacity", false);
            put(it, "requiresRepublish", false);
            put(it, "seLinuxMount", false);
            put(it, "volumeLifecycleModes", json!(["Persistent"]));
            put(it, "fsGroupPolicy", "ReadWriteOnceWithFSType");
        }
        ("admissionregistration", "ValidatingWebhook" | "MutatingWebhook") => {
            put(it, "failurePolicy", "Fail");
            put(it, "matchPolicy", "Equivalent");
            put(it, "namespaceSelector", json!({}));
            put(it, "objectSelector", json!({}));
            put(it, "timeoutSeconds", 10);
            if name == "MutatingWebhook" {
                put(it, "reinvocationPolicy", "Never");
            }
        }
        (
            "admissionregistration",
            "ValidatingAdmissionPolicySpec" | "MutatingAdmissionPolicySpec",
        ) => put(it, "failurePolicy", "Fail"),
        ("admissionregistration", "MatchResources") => {
            put(it, "matchPolicy", "Equivalent");
            put(it, "namespaceSelector", json!({}));
            put(it, "objectSelector", json!({}));
        }
        ("admissionregistration", "NamedRuleWithOperations" | "RuleWithOperations") => {
            put(it, "scope", "*");
        }
        ("admissionregistration", "ServiceReference") => put(it, "port", 443),
        ("autoscaling", "HorizontalPodAutoscalerSpec") => autoscaler(it),
        ("flowcontrol", "FlowSchemaSpec") => put_number(it, "matchingPrecedence", 1000),
        ("discovery", "EndpointPort") => {
            put(it, "name", "");
            put(it, "protocol", "TCP");
        }
        ("scheduling", "PriorityClass") => put(it, "preemptionPolicy", "PreemptLowerPriority"),
        _ => {}
    }
}
