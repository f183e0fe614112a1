//! Validation of claims, volumes and storage classes.

use serde_json::Value;

use super::{FieldValue, Problems, amount, immutable, maybe_one_of, meta, names, obey, volumes};
use crate::refusal::ValidationProblem;

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const POSITIVE: &str = "must be greater than zero";

pub(in crate::native) fn claim(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let spec = FieldValue::root(new).get("spec");
    let modes = spec.get("accessModes");
    if modes.is_empty() {
        out.push(modes.required("at least 1 access mode is required"));
    }
    meta::selector(&mut out, &spec.get("selector"));
    for mode in modes.items() {
        maybe_one_of(&mut out, &mode.named(modes.path.clone()), &MODES);
    }
    let size = spec.get("resources").get("requests").get("storage");
    let size = size.named("spec.resources[storage]");
    match amount(&size) {
        None => out.push(size.required("")),
        Some(found) if found.negative() || found.zero() => out.push(size.invalid(POSITIVE)),
        Some(_) => {}
    }
    let class = spec.get("storageClassName");
    if !class.is_empty() {
        obey(&mut out, &class, names::dns_subdomain);
    }
    volumes::volume_mode(&mut out, &spec.get("volumeMode"));
    let source = spec.get("dataSource");
    if source.is_set() {
        for field in ["name", "kind"] {
            if source.get(field).is_empty() {
                out.push(source.get(field).required(""));
            }
        }
    }
    if let Some(old) = old {
        claim_changes(&mut out, new, old);
    }
    out
}

/// Checks the update of a claim: it can be bound once, and it can grow after that.
fn claim_changes(out: &mut Problems, new: &Value, old: &Value) {
    let (spec, before) = (FieldValue::root(new).get("spec"), FieldValue::root(old).get("spec"));
    let bound = FieldValue::root(old).get("status").get("phase").text() == "Bound";
    let free_name = before.get("volumeName").is_empty();
    let fixed = |it: &Value| {
        let mut it = it.clone();
        if let Some(fields) = it.as_object_mut() {
            if free_name {
                fields.shift_remove("volumeName");
            }
            if bound {
                fields.shift_remove("volumeAttributesClassName");
            }
            let requests = fields.get_mut("resources").and_then(|it| it.get_mut("requests"));
            if let Some(requests) = requests.and_then(Value::as_object_mut).filter(|_| bound) {
                requests.shift_remove("storage");
            }
        }
        it
    };
    if fixed(spec.value) != fixed(before.value) {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        out.push(spec.forbidden(detail));
        return;
    }
    let size = |it: &FieldValue<'_>| amount(&it.get("resources").get("requests").get("storage"));
    let shrunk = size(&before)
        .is_some_and(|was| size(&spec).map_or(!was.zero(), |is| is.compare(was).is_lt()));
    if shrunk {
        let path = "spec.resources.requests.storage";
        out.push(ValidationProblem::forbidden(path, "field can not be less than previous value"));
    }
}

/// The fields of a volume's spec that are not its source.
const NOT_SOURCES: [&str; 8] = [
    "capacity",
    "accessModes",
    "claimRef",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "mountOptions",
    "volumeMode",
    "nodeAffinity",
];

pub(in crate::native) fn volume(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let spec = FieldValue::root(new).get("spec");
    let modes = spec.get("accessModes");
    if modes.is_empty() {
        out.push(modes.required(""));
    }
    for mode in modes.items() {
        maybe_one_of(&mut out, &mode.named(modes.path.clone()), &MODES);
    }
    capacity(&mut out, &spec.get("capacity"));
    let policy = spec.get("persistentVolumeReclaimPolicy");
    maybe_one_of(&mut out, &policy, &["Delete", "Recycle", "Retain"]);
    let mut count = 0;
    for name in sources(spec.value) {
        let one = spec.get(name);
        if count > 0 {
            out.push(one.forbidden("may not specify more than 1 volume type"));
            continue;
        }
        count += 1;
        volumes::source(&mut out, name, &one);
        if name == "local" && !spec.get("nodeAffinity").is_set() {
            let detail = "Local volume requires node affinity";
            out.push(spec.get("nodeAffinity").required(detail));
        }
    }
    if count == 0 {
        out.push(spec.required("must specify a volume type"));
    }
    if !spec.get("storageClassName").is_empty() {
        obey(&mut out, &spec.get("storageClassName"), names::dns_subdomain);
    }
    volumes::volume_mode(&mut out, &spec.get("volumeMode"));
    if let Some(old) = old.map(FieldValue::root) {
        let before = old.get("spec");
        let same = sources(spec.value).eq(sources(before.value))
            && sources(spec.value).all(|it| spec.get(it).value == before.get(it).value);
        if !same {
            let detail = "spec.persistentvolumesource is immutable after creation";
            out.push(ValidationProblem::forbidden("spec.persistentvolumesource", detail));
        }
        let mode = spec.get("volumeMode").named("volumeMode");
        immutable(&mut out, &mode, &before.get("volumeMode"));
    }
    out
}

fn sources(spec: &Value) -> impl Iterator<Item = &str> {
    let fields = spec.as_object().into_iter().flatten();
    let fields = fields.filter(|(_, value)| !value.is_null()).map(|it| it.0.as_str());
    fields.filter(|it| !NOT_SOURCES.contains(it))
}

fn capacity(out: &mut Problems, it: &FieldValue<'_>) {
    if it.is_empty() {
        out.push(it.required(""));
    }
    if it.entries().len() != 1 || it.value.get("storage").is_none() {
        out.push(it.unsupported(&["storage"]));
    }
    for (_, value) in it.entries() {
        if amount(&value).is_some_and(|it| it.negative() || it.zero()) {
            out.push(value.invalid(POSITIVE));
        }
    }
}

pub(in crate::native) fn class(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let it = FieldValue::root(new);
    let provisioner = it.get("provisioner");
    if provisioner.is_empty() {
        out.push(provisioner.required(""));
    } else {
        let problems = names::qualified_name(&provisioner.text().to_lowercase()).into_iter();
        out.extend(problems.map(|detail| provisioner.invalid(detail)));
    }
    for (key, value) in it.get("parameters").entries() {
        if key.is_empty() {
            let detail = "field can not be empty.";
            out.push(ValidationProblem::invalid("parameters", value.text(), detail));
        }
    }
    maybe_one_of(&mut out, &it.get("reclaimPolicy"), &["Delete", "Retain"]);
    let modes = ["Immediate", "WaitForFirstConsumer"];
    maybe_one_of(&mut out, &it.get("volumeBindingMode"), &modes);
    if let Some(old) = old.map(FieldValue::root) {
        let detail = "updates to parameters are forbidden.";
        if it.get("parameters").value != old.get("parameters").value {
            out.push(ValidationProblem::forbidden("parameters", detail));
        }
        immutable(&mut out, &provisioner, &old.get("provisioner"));
        if it.get("reclaimPolicy").value != old.get("reclaimPolicy").value {
            let detail = "updates to reclaimPolicy are forbidden.";
            out.push(ValidationProblem::forbidden("reclaimPolicy", detail));
        }
        let mode = it.get("volumeBindingMode");
        immutable(&mut out, &mode, &old.get("volumeBindingMode"));
    }
    out
}
