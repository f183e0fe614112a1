//! Validation of namespaces, nodes, events, quotas, leases and classes.

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{
    FieldValue, Problems, amount, amount_not_negative, immutable, maybe_one_of, meta, names, obey,
    one_of,
};
use crate::{
    object,
    refusal::{ProblemKind, ValidationProblem},
};

/// Standard resources of quotas and limits: their names have no domain.
const RESOURCES: [&str; 20] = [
    "configmaps",
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
    "storage",
];

/// Resources that are counted in integers.
const COUNTED: [&str; 9] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

/// Returns whether a name without a domain is a standard resource.
pub(super) fn standard_resource(name: &str) -> bool {
    RESOURCES.contains(&name)
        || name.starts_with("hugepages-")
        || name.starts_with("requests.hugepages-")
}

pub(in crate::native) fn namespace(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_label);
    for finalizer in FieldValue::root(new).get("spec").get("finalizers").items() {
        // Only messages about updates contain the index.
        let finalizer = if old.is_some() { finalizer } else { finalizer.named("spec.finalizers") };
        obey(&mut out, &finalizer, names::qualified_name);
        meta::standard_finalizer(&mut out, &finalizer);
    }
    let levels = pod_security(new);
    // Labels that were invalid before may stay.
    if !levels.is_empty() && old.is_none_or(|it| pod_security(it) != levels) {
        out.extend(levels);
    }
    out
}

/// Validates the labels that select a Pod Security level of a namespace.
fn pod_security(it: &Value) -> Problems {
    let mut out = Problems::new();
    let labels = FieldValue::root(it).get("metadata").get("labels");
    for (key, label) in labels.entries() {
        match key.strip_prefix("pod-security.kubernetes.io/") {
            Some("enforce" | "audit" | "warn")
                if !["privileged", "baseline", "restricted"].contains(&label.text()) =>
            {
                out.push(label.invalid("must be one of privileged, baseline, restricted"));
            }
            Some("enforce-version" | "audit-version" | "warn-version")
                if label.text() != "latest"
                    && label
                        .text()
                        .strip_prefix("v1.")
                        .is_none_or(|it| it.parse::<u32>().is_err()) =>
            {
                out.push(label.invalid("must be \"latest\" or \"v1.x\""));
            }
            _ => {}
        }
    }
    out
}

/// Validates a certificate signing request. The signer checks the content of the certificate.
pub(in crate::native) fn signing_request(new: &Value, old: Option<&Value>) -> Problems {
    const USAGES: [&str; 23] = [
        "any",
        "cert sign",
        "client auth",
        "code signing",
        "content commitment",
        "crl sign",
        "data encipherment",
        "decipher only",
        "digital signature",
        "email protection",
        "encipher only",
        "ipsec end system",
        "ipsec tunnel",
        "ipsec user",
        "key agreement",
        "key encipherment",
        "microsoft sgc",
        "netscape sgc",
        "ocsp signing",
        "s/mime",
        "server auth",
        "signing",
        "timestamping",
    ];
    let mut out = meta::object(new, old, names::path_segment);
    let spec = FieldValue::root(new).get("spec");
    let request = spec.get("request");
    let pem = STANDARD.decode(request.text()).unwrap_or_default();
    if !pem.starts_with(b"-----BEGIN CERTIFICATE REQUEST-----") {
        out.push(request.invalid("PEM block type must be CERTIFICATE REQUEST"));
    }
    let usages = spec.get("usages");
    if usages.is_empty() {
        out.push(usages.required(""));
    }
    let mut seen = BTreeSet::new();
    for usage in usages.items() {
        maybe_one_of(&mut out, &usage, &USAGES);
        if !seen.insert(usage.text()) {
            out.push(usage.duplicate());
        }
    }
    let signer = spec.get("signerName");
    let domain = signer.text().split_once('/').filter(|(domain, path)| {
        domain.contains('.') && names::dns_subdomain(domain).is_empty() && !path.is_empty()
    });
    if signer.is_empty() {
        out.push(signer.required(""));
    } else if domain.is_none() {
        let form =
            "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        out.push(signer.invalid(form));
    }
    let expiration = spec.get("expirationSeconds");
    if expiration.is_set() && expiration.number() < 600 {
        let least = "may not specify a duration less than 600 seconds (10 minutes)";
        out.push(expiration.invalid(least));
    }
    out
}

pub(in crate::native) fn node(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let spec = FieldValue::root(new).get("spec");
    // The real server reports them below the metadata.
    let taints = spec.get("taints").named("metadata.taints");
    let mut seen = BTreeSet::new();
    for it in taints.items() {
        obey(&mut out, &it.get("key"), names::qualified_name);
        let value = it.get("value");
        let problems = names::label_value(value.text());
        if !problems.is_empty() {
            out.push(value.invalid(problems.join(";")));
        }
        one_of(&mut out, &it.get("effect"), &["NoSchedule", "PreferNoSchedule", "NoExecute"]);
        if !seen.insert((it.get("key").text(), it.get("effect").text())) {
            let shown = json!({
                "Key": it.get("key").text(), "Value": value.text(), "Effect": it.get("effect").text(), "TimeAdded": null,
            });
            out.push(ValidationProblem::new(it.path.clone(), ProblemKind::Duplicate(shown)));
        }
    }
    let status = FieldValue::root(new).get("status");
    for list in ["capacity", "allocatable"].map(|it| status.get(it)) {
        for (name, value) in list.entries() {
            amount_not_negative(&mut out, &value.named(list.at(name)));
        }
    }
    if let Some(old) = old {
        let before = FieldValue::root(old).get("spec");
        let was = before.get("providerID");
        if !was.is_empty() && was.value != spec.get("providerID").value {
            let detail = "node updates may not change providerID except from \"\" to valid";
            out.push(ValidationProblem::forbidden("spec.providerID", detail));
        }
    }
    out
}

pub(in crate::native) fn event(new: &Value, _: Option<&Value>) -> Problems {
    let mut out = Problems::new();
    let it = FieldValue::root(new);
    let there = it.get("involvedObject").get("namespace");
    let here = object::meta(new, "namespace");
    let wrong = || {
        let detail = "does not match event.namespace";
        ValidationProblem::invalid(there.path.clone(), there.text(), detail)
    };
    if it.get("eventTime").is_set() {
        modern(&mut out, &it, (!there.is_empty() || here == "kube-system").then_some(()), wrong);
    } else if there.is_empty() && !matches!(here, "" | "default")
        || !there.is_empty() && there.text() != here
    {
        out.push(wrong());
    }
    let problems = names::dns_subdomain(here).into_iter();
    out.extend(problems.map(|detail| ValidationProblem::invalid("namespace", here, detail)));
    out
}

/// Validates an event with `eventTime`: such events must name their reporter.
fn modern(
    out: &mut Problems,
    it: &FieldValue<'_>,
    placed: Option<()>,
    wrong: impl Fn() -> ValidationProblem,
) {
    if placed.is_none() {
        out.push(wrong());
    }
    let controller = it.get("reportingComponent").named("reportingController");
    if controller.is_empty() {
        out.push(controller.required(""));
    }
    let text = controller.text();
    let problems = names::qualified_name(text).into_iter();
    out.extend(
        problems.map(|detail| ValidationProblem::invalid("reportingController", text, detail)),
    );
    for (field, limit) in
        [("reportingInstance", 128), ("action", 128), ("reason", 128), ("message", 1024)]
    {
        let value = it.get(field);
        if value.is_empty() && field != "message" {
            out.push(value.required(""));
        }
        if value.text().len() > limit {
            let detail = format!("can have at most {limit} characters");
            out.push(ValidationProblem::invalid(value.path.clone(), "", detail));
        }
    }
}

/// The fields that an update of an event cannot change, all but the series. Events of `events.k8s.io` must have the new form.
const FIXED_IN_EVENTS: [&str; 13] = [
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
];

pub(in crate::native) fn modern_event(new: &Value, old: Option<&Value>) -> Problems {
    let stored = (super::super::events::TWIN.to_stored)(new.clone());
    let mut out = event(&stored, None);
    let it = FieldValue::root(&stored);
    if let Some(old) = old {
        let before = (super::super::events::TWIN.to_stored)(old.clone());
        for field in FIXED_IN_EVENTS {
            immutable(&mut out, &it.get(field), &FieldValue::root(&before).get(field));
        }
        return out;
    }
    out.extend(meta::object(&stored, old, names::dns_subdomain));
    let series = it.get("series");
    if series.is_set() {
        if series.get("count").number() < 2 {
            out.push(ValidationProblem::invalid("series.count", "", "should be at least 2"));
        }
        if !series.get("lastObservedTime").is_set() {
            out.push(ValidationProblem::required("series.lastObservedTime", ""));
        }
    }
    if !it.get("eventTime").is_set() {
        out.push(it.get("eventTime").required(""));
    }
    let kind = it.get("type").text();
    if !["Normal", "Warning"].contains(&kind) {
        out.push(ValidationProblem::invalid("type", "", format!("has invalid value: {kind}")));
    }
    for field in ["firstTimestamp", "lastTimestamp", "count", "source"] {
        let value = it.get(field);
        if value.is_set() && !value.is_empty() {
            out.push(ValidationProblem::invalid(field, "", "needs to be unset"));
        }
    }
    out
}

pub(in crate::native) fn quota(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let spec = FieldValue::root(new).get("spec");
    for (name, value) in spec.get("hard").entries() {
        let wrong = |detail: String| ValidationProblem::invalid(value.path.clone(), name, detail);
        let problems = names::qualified_name(name);
        let broken = !problems.is_empty();
        out.extend(problems.into_iter().map(wrong));
        if !name.contains('/') && !standard_resource(name) {
            if !broken {
                out.push(wrong("must be a standard resource type or fully qualified".into()));
            }
            out.push(wrong("must be a standard resource for quota".into()));
        }
        amount_not_negative(&mut out, &value);
        let counted = COUNTED.contains(&name) || name.contains('/');
        if counted && amount(&value).is_some_and(|it| !it.whole()) {
            out.push(value.invalid("must be an integer"));
        }
    }
    if let Some(old) = old {
        let scopes = spec.get("scopes");
        immutable(&mut out, &scopes, &FieldValue::root(old).get("spec").get("scopes"));
    }
    out
}

pub(in crate::native) fn limit_range(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let mut seen = BTreeSet::new();
    for it in FieldValue::root(new).get("spec").get("limits").items() {
        let kind = it.get("type");
        obey(&mut out, &kind, names::qualified_name);
        let standard = ["Pod", "Container", "PersistentVolumeClaim"].contains(&kind.text());
        if !kind.is_empty() && !kind.text().contains('/') && !standard {
            out.push(kind.invalid("must be a standard limit type or fully qualified"));
        }
        if !seen.insert(kind.text()) {
            out.push(kind.duplicate());
        }
        if kind.text() == "Pod" {
            for field in ["default", "defaultRequest"] {
                if !it.get(field).is_empty() {
                    out.push(it.get(field).forbidden("may not be specified when `type` is 'Pod'"));
                }
            }
        }
        bounds(&mut out, &it);
    }
    out
}

/// Checks the order of amounts: minimum, default request, default, maximum.
fn bounds(out: &mut Problems, it: &FieldValue<'_>) {
    let pairs = [
        ("min", "max", "min", "min value", "max value"),
        ("min", "defaultRequest", "defaultRequest", "min value", "default request value"),
        ("defaultRequest", "max", "defaultRequest", "default request value", "max value"),
        (
            "defaultRequest",
            "default",
            "defaultRequest",
            "default request value",
            "default limit value",
        ),
        ("min", "default", "default", "min value", "default value"),
        ("default", "max", "default", "default value", "max value"),
    ];
    for (low, high, at, low_word, high_word) in pairs {
        for (name, small) in it.get(low).entries() {
            let Some(value) = it.get(high).value.get(name) else { continue };
            let big = FieldValue { path: String::new(), value };
            let (Some(one), Some(other)) = (amount(&small), amount(&big)) else { continue };
            if one.compare(other).is_gt() {
                let detail = format!(
                    "{low_word} {} is greater than {high_word} {}",
                    small.text(),
                    big.text()
                );
                let value = match (low, high) {
                    ("default", "max") | ("min", "defaultRequest") => big.text(),
                    _ => small.text(),
                };
                let place = it.get(at).named(format!("{}[{name}]", it.at(at)));
                out.push(ValidationProblem::invalid(place.path, value, detail));
            }
        }
    }
}

pub(in crate::native) fn lease(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let spec = FieldValue::root(new).get("spec");
    let seconds = spec.get("leaseDurationSeconds");
    if seconds.is_set() && seconds.number() <= 0 {
        out.push(seconds.invalid("must be greater than 0"));
    }
    let changes = spec.get("leaseTransitions");
    if changes.number() < 0 {
        out.push(changes.invalid("must be greater than or equal to 0"));
    }
    out
}

/// Limit for priority classes of users; greater values are reserved for the system.
const PRIORITY: i64 = 1_000_000_000;

pub(in crate::native) fn priority_class(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let it = FieldValue::root(new);
    let policy = it.get("preemptionPolicy");
    if let Some(old) = old.map(FieldValue::root) {
        if it.get("value").number() != old.get("value").number() {
            out.push(ValidationProblem::forbidden("value", "may not be changed in an update."));
        }
        immutable(&mut out, &policy, &old.get("preemptionPolicy"));
        return out;
    }
    let name = object::meta(new, "name");
    if name.starts_with("system-") {
        if !matches!(name, "system-cluster-critical" | "system-node-critical") {
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a known system priority class"
            );
            out.push(ValidationProblem::forbidden("metadata.name", detail));
        }
    } else if it.get("value").number() > PRIORITY {
        let detail = format!("maximum allowed value of a user defined priority is {PRIORITY}");
        out.push(ValidationProblem::forbidden("value", detail));
    }
    maybe_one_of(&mut out, &policy, &["PreemptLowerPriority", "Never"]);
    out
}

pub(in crate::native) fn runtime_class(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let handler = FieldValue::root(new).get("handler");
    obey(&mut out, &handler, names::dns_label);
    if let Some(old) = old {
        immutable(&mut out, &handler, &FieldValue::root(old).get("handler"));
    }
    out
}
