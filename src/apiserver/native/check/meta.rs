//! What is wrong with the metadata of an object; the same for all kinds, but for the rule of names.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Problems, Spot, names, names::NameRule};
use crate::{
    metadata::{self, STANDARD_FINALIZERS},
    object,
    refusal::{Problem, ProblemKind},
};

/// All annotations together, in bytes.
const ANNOTATIONS: usize = 256 * 1024;

/// The metadata of a native object, new or changed.
pub(crate) fn object(new: &Value, old: Option<&Value>, rule: NameRule) -> Problems {
    let mut out = any(new, old, rule);
    for finalizer in Spot::root(new).get("metadata").get("finalizers").items() {
        standard_finalizer(&mut out, &finalizer);
    }
    out
}

/// The metadata of any object, native or not. Names are checked once.
pub(crate) fn any(new: &Value, old: Option<&Value>, rule: NameRule) -> Problems {
    let mut out = Problems::new();
    let meta = Spot::root(new).get("metadata");
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

/// Names without a domain are for Kubernetes itself.
pub(super) fn standard_finalizer(out: &mut Problems, it: &Spot<'_>) {
    if !it.text().contains('/') && !STANDARD_FINALIZERS.contains(&it.text()) {
        out.push(it.invalid("name is neither a standard finalizer name nor is it fully qualified"));
    }
}

fn name(out: &mut Problems, meta: &Spot<'_>, rule: NameRule) {
    let generated = meta.get("generateName");
    if !generated.is_empty() {
        // What is appended makes a hyphen at the end good.
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
        out.push(Problem::forbidden("metadata.finalizers", detail));
    }
}

/// Keys and values of labels. All problems are about the whole map.
pub(crate) fn labels(out: &mut Problems, spot: &Spot<'_>) {
    for (key, value) in sorted(spot) {
        let about = |text: &str, detail| Problem::invalid(spot.path.clone(), text, detail);
        out.extend(names::qualified_name(key).into_iter().map(|it| about(key, it)));
        let value = value.text();
        out.extend(names::label_value(value).into_iter().map(|it| about(value, it)));
    }
}

/// Go walks maps in any order; we go by the keys.
fn sorted<'a>(spot: &Spot<'a>) -> Vec<(&'a str, Spot<'a>)> {
    let mut entries = spot.entries();
    entries.sort_by_key(|it| it.0);
    entries
}

pub(crate) fn annotations(out: &mut Problems, spot: &Spot<'_>) {
    let mut size = 0;
    for (key, value) in sorted(spot) {
        let problems = names::qualified_name(&key.to_lowercase()).into_iter();
        out.extend(problems.map(|it| Problem::invalid(spot.path.clone(), key, it)));
        size += key.len() + value.text().len();
    }
    if size > ANNOTATIONS {
        out.push(Problem::new(spot.path.clone(), ProblemKind::TooLong("".into(), ANNOTATIONS)));
    }
}

fn finalizers(out: &mut Problems, spot: &Spot<'_>) {
    for finalizer in spot.items() {
        super::obey(out, &finalizer.named(spot.path.clone()), names::qualified_name);
    }
    let has = |name: &str| spot.items().iter().any(|it| it.text() == name);
    if has("orphan") && has("foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        out.push(spot.invalid(detail));
    }
}

/// A label selector.
pub(crate) fn selector(out: &mut Problems, spot: &Spot<'_>) {
    labels(out, &spot.get("matchLabels"));
    for rule in spot.get("matchExpressions").items() {
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
            other => out.push(Problem::invalid(
                rule.at("operator"),
                other,
                "not a valid selector operator",
            )),
        }
        super::obey(out, &rule.get("key"), names::qualified_name);
    }
}

/// Whether a label selector selects these labels. A broken one selects nothing.
pub(crate) fn selects(selector: &Value, labels: &Value) -> bool {
    let label = |key: &str| labels.get(key).and_then(Value::as_str);
    let spot = Spot::root(selector);
    let equal =
        spot.get("matchLabels").entries().iter().all(|(key, it)| label(key) == Some(it.text()));
    equal
        && spot.get("matchExpressions").items().iter().all(|rule| {
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
