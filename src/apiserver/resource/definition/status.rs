//! The status of a CRD: accepted names and conditions. On a real server, controllers write it.

use serde_json::{Map, Value, json};

use super::{defaults, structure};

/// The annotation that allows CRDs in the groups of Kubernetes itself.
pub(super) const APPROVAL: &str = "api-approved.kubernetes.io";

/// Returns the status as the controllers would write it. `others` are the existing CRDs; `time` is now, RFC 3339.
///
/// A condition with the same status keeps its time.
pub(crate) fn status(crd: &Value, others: &[&Value], time: &str) -> Value {
    let taken = NamesInUse::by(crd, others);
    let (accepted, conflict) = names(crd, &taken);
    let established_before = condition(crd, "Established")
        .is_some_and(|it| it.get("status").is_some_and(|it| it == "True"));
    let mut conditions: Vec<Value> =
        crd.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut put = |kind: &str, status: &str, reason: &str, message: &str| {
        set_condition(&mut conditions, time, [kind, status, reason, message]);
    };
    if let Some((status, reason, message)) = approval(crd) {
        put("KubernetesAPIApprovalPolicyConformant", status, reason, &message);
    }
    if let Some(message) = structure::complaint(crd) {
        put("NonStructuralSchema", "True", "Violations", &message);
    }
    match &conflict {
        Some((reason, message)) => put("NamesAccepted", "False", reason, message),
        None => put("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
    }
    // An established CRD stays established.
    match &conflict {
        _ if established_before => {}
        Some(_) => put("Established", "False", "NotAccepted", "not all names are accepted"),
        None => {
            put(
                "Established",
                "True",
                "InitialNamesAccepted",
                "the initial names have been accepted",
            );
        }
    }
    json!({ "conditions": conditions, "acceptedNames": accepted, "storedVersions": stored_versions(crd) })
}

/// The names in use within a group.
#[derive(Default)]
struct NamesInUse {
    resources: Vec<String>,
    kinds: Vec<String>,
}

impl NamesInUse {
    fn by(crd: &Value, others: &[&Value]) -> Self {
        let group = |it: &Value| it.pointer("/spec/group").cloned();
        let name = |it: &Value| it.pointer("/metadata/name").cloned();
        let mut all = Self::default();
        for other in others.iter().filter(|it| group(it) == group(crd) && name(it) != name(crd)) {
            let names = other.pointer("/status/acceptedNames");
            let one = |field: &str| {
                let text = names.and_then(|it| it.get(field)).and_then(Value::as_str);
                text.filter(|it| !it.is_empty()).map(String::from)
            };
            let short = names.and_then(|it| it.get("shortNames")).and_then(Value::as_array);
            let short = short.into_iter().flatten().filter_map(Value::as_str).map(String::from);
            all.resources.extend(one("plural").into_iter().chain(one("singular")).chain(short));
            all.kinds.extend(one("kind").into_iter().chain(one("listKind")));
        }
        all
    }
}

/// Returns the accepted names, and the last conflict about the others.
fn names(crd: &Value, taken: &NamesInUse) -> (Value, Option<(&'static str, String)>) {
    let wanted = crd.pointer("/spec/names").and_then(Value::as_object).cloned().unwrap_or_default();
    let before = crd.pointer("/status/acceptedNames").and_then(Value::as_object).cloned();
    let before = before.unwrap_or_default();
    let mut accepted = before.clone();
    let mut conflict = None;
    let in_use = |name: &str| format!("{name:?} is already in use");
    for (field, reason) in [("plural", "PluralConflict"), ("singular", "SingularConflict")] {
        single(field, (&wanted, &before), &taken.resources, &mut accepted)
            .then(|| conflict = Some((reason, in_use(text(&wanted, field)))));
    }
    let short: Vec<String> = texts(&wanted, "shortNames");
    let own = texts(&before, "shortNames");
    let clashes: Vec<String> = short
        .iter()
        .filter(|it| !own.contains(it) && taken.resources.contains(it))
        .map(|it| in_use(it))
        .collect();
    match clashes.as_slice() {
        [] => put_list(&mut accepted, "shortNames", &short),
        [one] => conflict = Some(("ShortNamesConflict", one.clone())),
        several => conflict = Some(("ShortNamesConflict", format!("[{}]", several.join(", ")))),
    }
    for (field, reason) in [("kind", "KindConflict"), ("listKind", "ListKindConflict")] {
        single(field, (&wanted, &before), &taken.kinds, &mut accepted)
            .then(|| conflict = Some((reason, in_use(text(&wanted, field)))));
    }
    put_list(&mut accepted, "categories", &texts(&wanted, "categories"));
    (ordered(accepted), conflict)
}

/// Accepts a name, unless another CRD uses it. Returns whether there is a conflict.
fn single(
    field: &str,
    (wanted, before): (&Map<String, Value>, &Map<String, Value>),
    taken: &[String],
    accepted: &mut Map<String, Value>,
) -> bool {
    let name = text(wanted, field);
    if name != text(before, field) && taken.iter().any(|it| it == name) {
        return true;
    }
    accepted.insert(field.into(), name.into());
    false
}

fn text<'a>(names: &'a Map<String, Value>, field: &str) -> &'a str {
    names.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn texts(names: &Map<String, Value>, field: &str) -> Vec<String> {
    let items = names.get(field).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(String::from).collect()
}

fn put_list(names: &mut Map<String, Value>, field: &str, items: &[String]) {
    if items.is_empty() {
        names.shift_remove(field);
    } else {
        names.insert(field.into(), items.into());
    }
}

/// Sorts names as the real server writes them: always with a plural and a kind.
fn ordered(mut names: Map<String, Value>) -> Value {
    let mut out = Map::new();
    for field in ["plural", "singular", "shortNames", "kind", "listKind", "categories"] {
        let value = names.shift_remove(field).filter(|it| *it != "");
        match value {
            Some(value) => out.insert(field.into(), value),
            None if matches!(field, "plural" | "kind") => out.insert(field.into(), "".into()),
            None => None,
        };
    }
    Value::Object(out)
}

fn stored_versions(crd: &Value) -> Vec<Value> {
    let known = crd.pointer("/status/storedVersions").and_then(Value::as_array).cloned();
    let mut all = known.unwrap_or_default();
    let current = defaults::storage_version(crd);
    all.extend(current.filter(|it| !all.contains(it)));
    all
}

/// Adds the storage version to the stored versions.
pub(super) fn remember_storage(crd: &mut Value) {
    let all = stored_versions(crd);
    if let Some(status) = crd.get_mut("status").and_then(Value::as_object_mut) {
        status.insert("storedVersions".into(), all.into());
    }
}

fn condition<'a>(crd: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = crd.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|it| it.get("type").is_some_and(|it| it == kind))
}

fn set_condition(
    conditions: &mut Vec<Value>,
    time: &str,
    [kind, status, reason, message]: [&str; 4],
) {
    let known = conditions.iter_mut().find(|it| it.get("type").is_some_and(|it| it == kind));
    let time = match &known {
        Some(it) if it.get("status").is_some_and(|it| it == status) => {
            it.get("lastTransitionTime").cloned().unwrap_or_else(|| time.into())
        }
        _ => time.into(),
    };
    let new = json!({
        "type": kind,
        "status": status,
        "lastTransitionTime": time,
        "reason": reason,
        "message": message,
    });
    match known {
        Some(known) => *known = new,
        None => conditions.push(new),
    }
}

/// The meaning of the annotation for approval.
pub(super) enum Approval {
    /// The group is not protected.
    NotNeeded,
    Missing,
    Invalid,
    Approved(String),
    Bypassed(String),
}

/// Parses the annotation of a CRD.
pub(super) fn approval_of(crd: &Value) -> Approval {
    let group = crd.pointer("/spec/group").and_then(Value::as_str).unwrap_or_default();
    let protected = ["k8s.io", "kubernetes.io"];
    if !protected.iter().any(|it| group == *it || group.ends_with(&format!(".{it}"))) {
        return Approval::NotNeeded;
    }
    let annotations = crd.pointer("/metadata/annotations");
    let text = annotations.and_then(|it| it.get(APPROVAL)).and_then(Value::as_str);
    match text {
        None | Some("") => Approval::Missing,
        Some(text) if text.starts_with("unapproved") => Approval::Bypassed(text.into()),
        Some(text) if is_url(text) => Approval::Approved(text.into()),
        Some(_) => Approval::Invalid,
    }
}

fn is_url(text: &str) -> bool {
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let host = rest.split('/').next().unwrap_or_default();
    !scheme.is_empty() && !host.is_empty() && !text.contains(' ')
}

fn approval(crd: &Value) -> Option<(&'static str, &'static str, String)> {
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let must = format!("protected groups must have approval annotation {APPROVAL:?}");
    match approval_of(crd) {
        Approval::NotNeeded => None,
        Approval::Missing => Some(("False", "MissingAnnotation", format!("{must}, {see}"))),
        Approval::Invalid => Some((
            "False",
            "InvalidAnnotation",
            format!("{must} with either a URL or a reason starting with \"unapproved\", {see}"),
        )),
        Approval::Approved(url) => {
            Some(("True", "ApprovedAnnotation", format!("approved in {url}")))
        }
        Approval::Bypassed(text) => {
            Some(("False", "UnapprovedAnnotation", format!("not approved: {text:?}")))
        }
    }
}
