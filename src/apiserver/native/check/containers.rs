//! Validation of the containers of Pods.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    FieldValue, Problems, amount, amount_not_negative, maybe_one_of, names, not_negative, obey,
    one_of, port, port_or_name,
};
use crate::refusal::{ProblemKind, ValidationProblem};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const MESSAGE_POLICIES: &str = "must be 'File' or 'FallbackToLogsOnError'";
/// Standard resources of containers. Extended resources, such as `example.com/gpu`, have a domain.
const RESOURCES: [&str; 3] = ["cpu", "ephemeral-storage", "memory"];
const FIELDS: [&str; 8] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.podIP",
    "status.podIPs",
];

/// Fields of Pods that a downward API volume can show as files.
pub(super) const FILE_FIELDS: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];

/// Validates the containers of a Pod. `volumes` are the names of its volumes.
pub(super) fn main(out: &mut Problems, list: &FieldValue<'_>, volumes: &BTreeSet<&str>) {
    if list.is_empty() {
        out.push(list.required(""));
        return;
    }
    let mut seen = BTreeSet::new();
    for container in list.items() {
        let name = container.get("name");
        if name.is_empty() {
            out.push(name.required(""));
        } else {
            obey(out, &name, names::dns_label);
        }
        one(out, &container, volumes);
        if !seen.insert(name.text()) {
            out.push(name.duplicate());
        }
    }
    host_ports(out, list);
}

/// Validates the init containers of a Pod.
pub(super) fn init(
    out: &mut Problems,
    list: &FieldValue<'_>,
    others: &FieldValue<'_>,
    volumes: &BTreeSet<&str>,
) {
    if list.is_empty() {
        return;
    }
    main(out, list, volumes);
    let mut names: BTreeSet<&str> = others.items().iter().map(|it| it.get("name").text()).collect();
    for container in list.items() {
        let name = container.get("name");
        if names.contains(name.text()) {
            out.push(name.duplicate());
        }
        if !name.is_empty() {
            names.insert(name.text());
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            let field = container.get(field);
            if field.is_set() {
                out.push(field.invalid("must not be set for init containers"));
            }
        }
    }
}

fn one(out: &mut Problems, it: &FieldValue<'_>, volumes: &BTreeSet<&str>) {
    if it.get("image").is_empty() {
        out.push(it.get("image").required(""));
    }
    let lifecycle = it.get("lifecycle");
    for hook in ["postStart", "preStop"] {
        if lifecycle.get(hook).is_set() {
            handler(out, &lifecycle.get(hook));
        }
    }
    for name in ["livenessProbe", "startupProbe"] {
        probe(out, &it.get(name));
        let successes = it.get(name).get("successThreshold");
        if it.get(name).is_set() && successes.number() != 1 {
            out.push(successes.invalid("must be 1"));
        }
    }
    let policy = it.get("terminationMessagePolicy");
    match policy.text() {
        "File" | "FallbackToLogsOnError" => {}
        "" => out.push(policy.required(MESSAGE_POLICIES)),
        _ => out.push(policy.invalid(MESSAGE_POLICIES)),
    }
    probe(out, &it.get("readinessProbe"));
    ports(out, &it.get("ports"));
    env(out, &it.get("env"));
    env_from(out, &it.get("envFrom"));
    mounts(out, it, volumes);
    one_of(out, &it.get("imagePullPolicy"), &PULL_POLICIES);
    resources(out, &it.get("resources"));
    security(out, &it.get("securityContext"));
}

fn probe(out: &mut Problems, it: &FieldValue<'_>) {
    if !it.is_set() {
        return;
    }
    handler(out, it);
    for field in [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ] {
        not_negative(out, &it.get(field));
    }
}

/// Checks that a handler specifies exactly one action.
fn handler(out: &mut Problems, it: &FieldValue<'_>) {
    let set: Vec<&str> =
        ["exec", "httpGet", "tcpSocket"].into_iter().filter(|name| it.get(name).is_set()).collect();
    let Some((first, others)) = set.split_first() else {
        out.push(it.required("must specify a handler type"));
        return;
    };
    let action = it.get(first);
    match *first {
        "exec" => {
            if action.get("command").is_empty() {
                out.push(action.get("command").required(""));
            }
        }
        "httpGet" => http(out, &action),
        _ => port_or_name(out, &action.get("port")),
    }
    for other in others {
        out.push(it.get(other).forbidden("may not specify more than 1 handler type"));
    }
}

fn http(out: &mut Problems, it: &FieldValue<'_>) {
    if it.get("path").is_empty() {
        out.push(it.get("path").required(""));
    }
    port_or_name(out, &it.get("port"));
    maybe_one_of(out, &it.get("scheme"), &["HTTP", "HTTPS"]);
    for header in it.get("httpHeaders").items() {
        let name = header.get("name").named(it.at("httpHeaders"));
        obey(out, &name, names::header_name);
    }
}

fn ports(out: &mut Problems, list: &FieldValue<'_>) {
    let mut seen = BTreeSet::new();
    for it in list.items() {
        let name = it.get("name");
        if !name.is_empty() {
            let problems = names::port_name(name.text());
            if !problems.is_empty() {
                out.extend(problems.into_iter().map(|it| name.invalid(it)));
            } else if !seen.insert(name.text()) {
                out.push(name.duplicate());
            }
        }
        let inner = it.get("containerPort");
        if inner.number() == 0 {
            out.push(inner.required(""));
        } else {
            port(out, &inner);
        }
        if it.get("hostPort").number() != 0 {
            port(out, &it.get("hostPort"));
        }
        one_of(out, &it.get("protocol"), &PROTOCOLS);
    }
}

fn host_ports(out: &mut Problems, list: &FieldValue<'_>) {
    let mut seen = BTreeSet::new();
    for it in list.items().iter().flat_map(|it| it.get("ports").items()) {
        let host = it.get("hostPort");
        if host.number() == 0 {
            continue;
        }
        let (protocol, ip) = (it.get("protocol").text(), it.get("hostIP").text());
        let place = format!("{protocol}/{ip}/{}", host.number());
        if !seen.insert(place.clone()) {
            out.push(ValidationProblem::new(host.path, ProblemKind::Duplicate(place.into())));
        }
    }
}

fn env(out: &mut Problems, list: &FieldValue<'_>) {
    for it in list.items() {
        let name = it.get("name");
        if name.is_empty() {
            out.push(name.required(""));
        } else {
            obey(out, &name, names::env_name);
        }
        if it.get("valueFrom").is_set() {
            env_source(out, &it.get("valueFrom"), !it.get("value").is_empty());
        }
    }
}

fn env_source(out: &mut Problems, it: &FieldValue<'_>, has_value: bool) {
    let all = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
    let set = all.into_iter().filter(|name| it.get(name).is_set()).count();
    if it.get("fieldRef").is_set() {
        pod_field(out, &it.get("fieldRef"), &FIELDS);
    }
    let amount = it.get("resourceFieldRef");
    if amount.is_set() && amount.get("resource").is_empty() {
        out.push(amount.get("resource").required(""));
    }
    for name in ["configMapKeyRef", "secretKeyRef"] {
        let source = it.get(name);
        if source.is_set() {
            obey_text(out, &source.get("name"), names::dns_subdomain);
            if source.get("key").is_empty() {
                out.push(source.get("key").required(""));
            } else {
                obey(out, &source.get("key"), names::config_key);
            }
        }
    }
    let mut wrong =
        |detail: &str| out.push(ValidationProblem::invalid(it.path.clone(), "", detail));
    if set == 0 {
        wrong(
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        );
    } else if has_value {
        wrong("may not be specified when `value` is not empty");
    } else if set > 1 {
        wrong("may not have more than one field specified at a time");
    }
}

/// Checks a string against a rule. Unlike [`obey`](super::obey), it reports a missing string as an empty one.
fn obey_text(out: &mut Problems, field: &FieldValue<'_>, rule: fn(&str) -> Vec<String>) {
    let problems = rule(field.text()).into_iter();
    out.extend(problems.map(|it| ValidationProblem::invalid(field.path.clone(), field.text(), it)));
}

/// Validates a reference to a field of the Pod. Environment variables and files support different fields.
pub(super) fn pod_field(out: &mut Problems, it: &FieldValue<'_>, supported: &[&str]) {
    let path = it.get("fieldPath");
    if path.is_empty() {
        out.push(path.required(""));
        return;
    }
    let text = path.text();
    if let Some((head, key)) = text.strip_suffix("']").and_then(|it| it.split_once("['")) {
        match head {
            "metadata.annotations" | "metadata.labels" => {
                let key = if head.ends_with("labels") { key.into() } else { key.to_lowercase() };
                let wrong =
                    |detail| ValidationProblem::invalid(it.path.clone(), key.clone(), detail);
                out.extend(names::qualified_name(&key).into_iter().map(wrong));
            }
            _ => {
                let detail = format!(
                    "error converting fieldPath: field label does not support subscript: {text}"
                );
                out.push(path.invalid(detail));
            }
        }
    } else if FIELDS.contains(&text) || FILE_FIELDS.contains(&text) {
        if !supported.contains(&text) {
            out.push(path.unsupported(supported));
        }
    } else {
        let detail = format!("error converting fieldPath: field label not supported: {text}");
        out.push(path.invalid(detail));
    }
}

fn env_from(out: &mut Problems, list: &FieldValue<'_>) {
    for it in list.items() {
        if !it.get("prefix").is_empty() {
            obey(out, &it.get("prefix"), names::env_name);
        }
        let mut set = 0;
        for name in ["configMapRef", "secretRef"] {
            if it.get(name).is_set() {
                set += 1;
                obey_text(out, &it.get(name).get("name"), names::dns_subdomain);
            }
        }
        let mut wrong =
            |detail: &str| out.push(ValidationProblem::invalid(list.path.clone(), "", detail));
        match set {
            0 => wrong("must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => wrong("may not have more than one field specified at a time"),
        }
    }
}

fn mounts(out: &mut Problems, container: &FieldValue<'_>, volumes: &BTreeSet<&str>) {
    let list = container.get("volumeMounts");
    let mut places = BTreeSet::new();
    for it in list.items() {
        let name = it.get("name");
        if name.is_empty() {
            out.push(name.required(""));
        }
        if !volumes.contains(name.text()) {
            out.push(ValidationProblem::new(
                name.path.clone(),
                ProblemKind::NotFound(name.text().into()),
            ));
        }
        let place = it.get("mountPath");
        if place.is_empty() {
            out.push(place.required(""));
        }
        if !places.insert(place.text()) {
            out.push(place.invalid("must be unique"));
        }
        for field in ["subPath", "subPathExpr"] {
            // The real server leaves out the index in these paths.
            inner_path(out, &it.get(field).named(list.at(field)));
        }
        if !it.get("subPath").is_empty() && !it.get("subPathExpr").is_empty() {
            let detail = "subPathExpr and subPath are mutually exclusive";
            out.push(it.get("subPathExpr").invalid(detail));
        }
        let supported = ["Bidirectional", "HostToContainer", "None"];
        maybe_one_of(
            out,
            &it.get("mountPropagation").named(list.at("mountPropagation")),
            &supported,
        );
    }
}

/// Checks that a path is relative and stays below its directory.
pub(super) fn inner_path(out: &mut Problems, field: &FieldValue<'_>) {
    if field.text().starts_with('/') {
        out.push(field.invalid("must be a relative path"));
    }
    if field.text().split('/').any(|it| it == "..") {
        out.push(field.invalid("must not contain '..'"));
    }
}

fn resources(out: &mut Problems, it: &FieldValue<'_>) {
    let limits = it.get("limits");
    for (name, value) in limits.entries() {
        resource_name(out, name, &value);
        quantity(out, name, &value);
    }
    for (name, value) in it.get("requests").entries() {
        resource_name(out, name, &value);
        quantity(out, name, &value);
        let limit = limits.value.get(name);
        let limit_amount =
            limit.and_then(|value| amount(&FieldValue { path: String::new(), value }));
        let requested = it.get("requests");
        let elastic = !name.contains('/') && !name.starts_with("hugepages-");
        let order = amount(&value).zip(limit_amount).map(|(request, limit)| request.compare(limit));
        let wrong = |detail: String| {
            ValidationProblem::invalid(requested.path.clone(), value.text(), detail)
        };
        match order {
            None if !elastic => {
                out.push(limits.required("Limit must be set for non overcommitable resources"));
            }
            Some(order) if order.is_ne() && !elastic => {
                out.push(wrong(format!("must be equal to {name} limit")));
            }
            Some(order) if order.is_gt() => {
                out.push(wrong(format!(
                    "must be less than or equal to {name} limit of {}",
                    limit.and_then(Value::as_str).unwrap_or_default()
                )));
            }
            _ => {}
        }
    }
}

fn resource_name(out: &mut Problems, name: &str, field: &FieldValue<'_>) {
    let wrong = |detail: &str| ValidationProblem::invalid(field.path.clone(), name, detail);
    let problems = names::qualified_name(name);
    let broken = !problems.is_empty();
    out.extend(problems.iter().map(|it| wrong(it)));
    if name.contains('/') || name.starts_with("hugepages-") || RESOURCES.contains(&name) {
        return;
    }
    if !broken && !super::system::standard_resource(name) {
        out.push(wrong("must be a standard resource type or fully qualified"));
    }
    out.push(wrong("must be a standard resource for containers"));
}

fn quantity(out: &mut Problems, name: &str, field: &FieldValue<'_>) {
    amount_not_negative(out, field);
    if name.contains('/') && amount(field).is_some_and(|it| !it.whole()) {
        out.push(field.invalid("must be an integer"));
    }
}

/// Validates the ids of users and groups in a security context.
pub(super) fn ids(out: &mut Problems, it: &FieldValue<'_>) {
    for name in ["fsGroup", "runAsUser", "runAsGroup"] {
        let id = it.get(name);
        if id.is_set() && !(0..=i64::from(i32::MAX)).contains(&id.number()) {
            out.push(id.invalid("must be between 0 and 2147483647, inclusive"));
        }
    }
}

fn security(out: &mut Problems, it: &FieldValue<'_>) {
    ids(out, it);
    maybe_one_of(out, &it.get("procMount"), &["Default", "Unmasked"]);
    let escalation = it.get("allowPrivilegeEscalation");
    if escalation.value == &Value::Bool(false) && it.get("privileged").flag() {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        out.push(it.invalid(detail));
    }
}
