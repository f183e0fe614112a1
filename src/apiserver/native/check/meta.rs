//! Validation of metadata; the same for all kinds except for the rule for names.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{FieldValue, Problems, names, names::NameRule};
use crate::sorted;
use crate::{
    metadata::{self, STANDARD_FINALIZERS},
    object,
    refusal::{ProblemKind, ValidationProblem},
};

/// Limit of all annotations together, in bytes.
const ANNOTATIONS: usize = 256 * 1024;

/// Validates the metadata of a new or changed native object.
pub(crate) fn object(new: &Value, old: Option<&Value>, rule: NameRule) -> Problems {
    let mut out = any(new, old, rule);
    for finalizer in FieldValue::root(new).get("metadata").get("finalizers").items() {
        standard_finalizer(&mut out, &finalizer);
    }
    out
}

/// Validates the metadata of any object, native or custom. Names are checked at creation only.
pub(crate) fn any(new: &Value, old: Option<&Value>, rule: NameRule) -> Problems {
    let mut out = Problems::new();
    let meta = FieldValue::root(new).get("metadata");
    if old.is_none() {
        name(&mut out, &meta, rule);
    }
    if let Some(old) = old.filter(|it| object::deleting(it)) {
        no_new_finalizers(&mut out, new, old);
    }
    labels(&mut out, &meta.get("labels"));
    annotations(&mut out, &meta.get("annotations"));
    out.extend(metadata::owners::check(meta.value.get("ownerReferences")));
    finalizers(&mut out, &meta.get("finalizers"));
    out
}

/// Refuses a finalizer without a domain that is not one of Kubernetes itself.
pub(super) fn standard_finalizer(out: &mut Problems, it: &FieldValue<'_>) {
    if !it.text().contains('/') && !STANDARD_FINALIZERS.contains(&it.text()) {
        out.push(it.invalid("name is neither a standard finalizer name nor is it fully qualified"));
    }
}

fn name(out: &mut Problems, meta: &FieldValue<'_>, rule: NameRule) {
    let generated = meta.get("generateName");
    if !generated.is_empty() {
        // A hyphen at the end is valid, because a suffix is appended.
        let text = generated.text();
        let whole = text.strip_suffix('-').map_or_else(|| text.to_owned(), |it| format!("{it}a"));
        out.extend(rule(&whole).into_iter().map(|it| generated.invalid(it)));
    }
    let name = meta.get("name");
    if name.is_empty() {
        out.push(name.required("name or generateName is required"));
    } else {
        super::obey(out, &name, rule);
    }
}

fn no_new_finalizers(out: &mut Problems, new: &Value, old: &Value) {
    let before: BTreeSet<String> = object::finalizers(old).into_iter().collect();
    let mut extra: Vec<String> =
        object::finalizers(new).into_iter().filter(|it| !before.contains(it)).collect();
    extra.sort();
    extra.dedup();
    if !extra.is_empty() {
        let quoted: Vec<String> = extra.iter().map(|it| format!("{it:?}")).collect();
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            quoted.join(", ")
        );
        out.push(ValidationProblem::forbidden("metadata.finalizers", detail));
    }
}

/// Validates the keys and values of labels. All problems are reported for the whole map.
pub(crate) fn labels(out: &mut Problems, field: &FieldValue<'_>) {
    for (key, value) in sorted(field) {
        let about =
            |text: &str, detail| ValidationProblem::invalid(field.path.clone(), text, detail);
        out.extend(names::qualified_name(key).into_iter().map(|it| about(key, it)));
        let value = value.text();
        out.extend(names::label_value(value).into_iter().map(|it| about(value, it)));
    }
}

/// Returns entries sorted by key. Go iterates in random order, so no order can be reproduced.
fn sorted<'a>(field: &FieldValue<'a>) -> Vec<(&'a str, FieldValue<'a>)> {
    let mut entries = field.entries();
    sorted::sort_by_key(&mut entries, |it| it.0);
    entries
}

pub(crate) fn annotations(out: &mut Problems, field: &FieldValue<'_>) {
    let mut size = 0;
    for (key, value) in sorted(field) {
        let problems = names::qualified_name(&key.to_lowercase()).into_iter();
        out.extend(problems.map(|it| ValidationProblem::invalid(field.path.clone(), key, it)));
        size += key.len() + value.text().len();
    }
    if size > ANNOTATIONS {
        out.push(ValidationProblem::new(
            field.path.clone(),
            ProblemKind::TooLong("".into(), ANNOTATIONS),
        ));
    }
}

fn finalizers(out: &mut Problems, field: &FieldValue<'_>) {
    for finalizer in field.items() {
        super::obey(out, &finalizer.named(field.path.clone()), names::qualified_name);
    }
    let has = |name: &str| field.items().iter().any(|it| it.text() == name);
    if has("orphan") && has("foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        out.push(field.invalid(detail));
    }
}

/// Validates a label selector.
pub(crate) fn selector(out: &mut Problems, field: &FieldValue<'_>) {
    labels(out, &field.get("matchLabels"));
    for rule in field.get("matchExpressions").items() {
        let values = rule.get("values");
        match rule.get("operator").text() {
            "In" | "NotIn" if values.is_empty() => {
                out.push(values.required("must be specified when `operator` is 'In' or 'NotIn'"));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                out.push(values.forbidden(
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                ));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => out.push(ValidationProblem::invalid(
                rule.at("operator"),
                other,
                "not a valid selector operator",
            )),
        }
        super::obey(out, &rule.get("key"), names::qualified_name);
    }
}

/// Returns whether a label selector matches labels. An invalid one matches none.
pub(crate) fn selects(selector: &Value, labels: &Value) -> bool {
    let label = |key: &str| labels.get(key).and_then(Value::as_str);
    let field = FieldValue::root(selector);
    let equal =
        field.get("matchLabels").entries().iter().all(|(key, it)| label(key) == Some(it.text()));
    equal
        && field.get("matchExpressions").items().iter().all(|rule| {
            let value = label(rule.get("key").text());
            let listed = rule.get("values").items().iter().any(|it| Some(it.text()) == value);
            match rule.get("operator").text() {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}
