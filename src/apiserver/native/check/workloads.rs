//! Validation of workloads and disruption budgets.

use serde_json::{Value, json};

use super::{FieldValue, Problems, meta, names, not_negative, pods, status};
use crate::refusal::ValidationProblem;

const NO_MATCH: &str = "`selector` does not match template `labels`";

/// The spec of a kind that owns Pods by a selector.
struct PodOwnerSpec<'a> {
    spec: FieldValue<'a>,
    /// The name of the kind in messages about an empty selector.
    word: &'static str,
}

impl<'a> PodOwnerSpec<'a> {
    fn new(it: &'a Value, word: &'static str) -> Self {
        Self { spec: FieldValue::root(it).get("spec"), word }
    }

    fn selector(&self, out: &mut Problems) {
        let it = self.spec.get("selector");
        if !it.is_set() {
            out.push(it.required(""));
            return;
        }
        meta::selector(out, &it);
        if self.empty() {
            let detail = format!("empty selector is invalid for {}", self.word);
            out.push(it.invalid(detail));
        }
    }

    fn empty(&self) -> bool {
        let it = self.spec.get("selector");
        it.get("matchLabels").is_empty() && it.get("matchExpressions").is_empty()
    }

    /// Returns whether the selector is invalid.
    fn broken(&self) -> bool {
        let mut problems = Problems::new();
        meta::selector(&mut problems, &self.spec.get("selector"));
        !problems.is_empty()
    }

    /// Reports an invalid selector once more. The template is not validated then.
    fn refuse_broken(&self, out: &mut Problems, detail: &str) -> bool {
        let broken = self.broken();
        if broken {
            let it = self.spec.get("selector");
            out.push(it.invalid(detail));
        }
        broken
    }

    fn match_labels(&self, out: &mut Problems) {
        if self.broken() {
            return;
        }
        let labels = self.spec.get("template").get("metadata").get("labels");
        let selector = self.spec.get("selector");
        // A missing selector selects nothing, an empty one selects everything.
        if !selector.is_set() || !self.empty() && !meta::selects(selector.value, labels.value) {
            out.push(labels.invalid(NO_MATCH));
        }
    }

    /// Validates the template of a replica set, also inside of a deployment.
    fn replicas(&self, out: &mut Problems) {
        self.match_labels(out);
        pods::template(out, &self.spec.get("template"));
        self.forever(out, "ReplicaSet");
    }

    /// Checks that the Pods of a template are always restarted and have no deadline.
    fn forever(&self, out: &mut Problems, word: &str) {
        let spec = self.spec.get("template").get("spec");
        let policy = spec.get("restartPolicy");
        if policy.text() != "Always" {
            out.push(policy.unsupported(&["Always"]));
        }
        let deadline = spec.get("activeDeadlineSeconds");
        if deadline.is_set() {
            let detail = format!("activeDeadlineSeconds in {word} is not Supported");
            out.push(deadline.forbidden(&detail));
        }
    }

    /// Checks that the selector has not changed.
    fn same_selector(&self, out: &mut Problems, old: Option<&Value>) {
        let Some(old) = old else { return };
        let it = self.spec.get("selector");
        if it.value != FieldValue::root(old).get("spec").get("selector").value {
            out.push(it.invalid("field is immutable"));
        }
    }
}

pub(in crate::native) fn deployment(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let owner = PodOwnerSpec::new(new, "deployment");
    let spec = &owner.spec;
    not_negative(&mut out, &spec.get("replicas"));
    owner.selector(&mut out);
    if !owner.refuse_broken(&mut out, "invalid label selector") {
        owner.replicas(&mut out);
    }
    strategy(&mut out, &spec.get("strategy"));
    for field in ["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"] {
        not_negative(&mut out, &spec.get(field));
    }
    let deadline = spec.get("progressDeadlineSeconds");
    if deadline.is_set() && deadline.number() <= spec.get("minReadySeconds").number() {
        out.push(deadline.invalid("must be greater than minReadySeconds"));
    }
    owner.same_selector(&mut out, old);
    status::deployment(&mut out, new, old);
    out
}

fn strategy(out: &mut Problems, it: &FieldValue<'_>) {
    let rolling = it.get("rollingUpdate");
    match it.get("type").text() {
        "Recreate" if rolling.is_set() => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            out.push(rolling.forbidden(detail));
        }
        "Recreate" => {}
        "RollingUpdate" => {
            let down = rolling.get("maxUnavailable");
            int_or_percent(out, &down);
            int_or_percent(out, &rolling.get("maxSurge"));
            if zero(&down) && zero(&rolling.get("maxSurge")) {
                out.push(down.invalid("may not be 0 when `maxSurge` is 0"));
            }
            at_most_all(out, &down);
        }
        other => {
            out.push(not_supported(it, other, &["Recreate", "RollingUpdate"]));
        }
    }
}

/// Makes the problem of a strategy with an unknown type.
fn not_supported(it: &FieldValue<'_>, name: &str, supported: &[&str]) -> ValidationProblem {
    ValidationProblem::not_supported(
        it.path.clone(),
        json!({ "Type": name, "RollingUpdate": null }),
        supported,
    )
}

fn int_or_percent(out: &mut Problems, it: &FieldValue<'_>) {
    if it.value.is_string() {
        let problems = names::percent(it.text()).into_iter();
        out.extend(problems.map(|detail| it.invalid(detail)));
    } else {
        not_negative(out, it);
    }
}

fn percent(it: &FieldValue<'_>) -> Option<i64> {
    it.text().strip_suffix('%')?.parse().ok()
}

fn zero(it: &FieldValue<'_>) -> bool {
    percent(it).unwrap_or_else(|| it.number()) == 0
}

fn at_most_all(out: &mut Problems, it: &FieldValue<'_>) {
    if percent(it).is_some_and(|it| it > 100) {
        out.push(it.invalid("must not be greater than 100%"));
    }
}

pub(in crate::native) fn replica_set(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let owner = PodOwnerSpec::new(new, "deployment");
    not_negative(&mut out, &owner.spec.get("replicas"));
    not_negative(&mut out, &owner.spec.get("minReadySeconds"));
    owner.selector(&mut out);
    if !owner.refuse_broken(&mut out, "invalid label selector") {
        owner.replicas(&mut out);
    }
    owner.same_selector(&mut out, old);
    status::replica_set(&mut out, new, old);
    out
}

pub(in crate::native) fn replication_controller(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let spec = FieldValue::root(new).get("spec");
    not_negative(&mut out, &spec.get("minReadySeconds"));
    let selector = spec.get("selector");
    if selector.is_empty() {
        out.push(selector.required(""));
    }
    not_negative(&mut out, &spec.get("replicas"));
    let template = spec.get("template");
    if !template.is_set() {
        out.push(template.required(""));
        return out;
    }
    let labels = template.get("metadata").get("labels");
    let matches =
        selector.entries().iter().all(|(key, it)| labels.value.get(key) == Some(it.value));
    if !selector.is_empty() && !matches {
        out.push(labels.invalid(NO_MATCH));
    }
    pods::template(&mut out, &template);
    let policy = template.get("spec").get("restartPolicy");
    if policy.text() != "Always" {
        out.push(policy.unsupported(&["Always"]));
    }
    status::replica_set(&mut out, new, old);
    out
}

pub(in crate::native) fn daemon_set(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let owner = PodOwnerSpec::new(new, "daemonset");
    let spec = &owner.spec;
    meta::selector(&mut out, &spec.get("selector"));
    owner.match_labels(&mut out);
    if spec.get("selector").is_set() && owner.empty() {
        let it = spec.get("selector");
        let detail = "empty selector is invalid for daemonset";
        out.push(it.invalid(detail));
    }
    pods::template(&mut out, &spec.get("template"));
    owner.forever(&mut out, "DaemonSet");
    not_negative(&mut out, &spec.get("minReadySeconds"));
    let it = spec.get("updateStrategy");
    match it.get("type").text() {
        "OnDelete" => {}
        "RollingUpdate" => {
            let down = it.get("rollingUpdate").get("maxUnavailable");
            int_or_percent(&mut out, &down);
            if zero(&down) {
                out.push(down.invalid("cannot be 0"));
            }
            at_most_all(&mut out, &down);
        }
        other => {
            out.push(not_supported(&it, other, &["RollingUpdate", "OnDelete"]));
        }
    }
    not_negative(&mut out, &spec.get("revisionHistoryLimit"));
    owner.same_selector(&mut out, old);
    status::daemon_set(&mut out, new, old);
    out
}

pub(in crate::native) fn stateful_set(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let owner = PodOwnerSpec::new(new, "statefulset");
    let spec = &owner.spec;
    let order = spec.get("podManagementPolicy");
    if !["OrderedReady", "Parallel"].contains(&order.text()) {
        out.push(order.invalid("must be 'OrderedReady' or 'Parallel'"));
    }
    let it = spec.get("updateStrategy");
    match it.get("type").text() {
        "OnDelete" => {
            let rolling = it.get("rollingUpdate");
            if rolling.is_set() {
                let shown = json!({ "Partition": rolling.get("partition").number(), "MaxUnavailable": null });
                let detail = "only allowed for updateStrategy 'RollingUpdate'";
                out.push(ValidationProblem::invalid(rolling.path.clone(), shown, detail));
            }
        }
        "RollingUpdate" => not_negative(&mut out, &it.get("rollingUpdate").get("partition")),
        other => {
            let shown = json!({ "Type": other, "RollingUpdate": null });
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            out.push(ValidationProblem::invalid(it.path.clone(), shown, detail));
        }
    }
    not_negative(&mut out, &spec.get("replicas"));
    owner.selector(&mut out);
    if !owner.refuse_broken(&mut out, "") {
        owner.match_labels(&mut out);
        let claims = spec.get("volumeClaimTemplates").items();
        let claims = claims.iter().map(|it| it.get("metadata").get("name").text()).collect();
        pods::template_with(&mut out, &spec.get("template"), &claims);
    }
    owner.forever(&mut out, "StatefulSet");
    if let Some(old) = old {
        let old = FieldValue::root(old).get("spec");
        if fixed(spec.value) != fixed(old.value) {
            let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
            out.push(spec.forbidden(detail));
        }
        not_negative(&mut out, &spec.get("replicas"));
    }
    status::stateful_set(&mut out, new, old);
    out
}

/// The mutable fields in the spec of a stateful set.
const STATEFUL_CHANGES: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

/// Returns the spec of a stateful set without its mutable fields.
fn fixed(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Some(fields) = spec.as_object_mut() {
        for name in STATEFUL_CHANGES {
            fields.shift_remove(name);
        }
    }
    spec
}

pub(in crate::native) fn controller_revision(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let it = FieldValue::root(new);
    if !it.get("data").is_set() {
        out.push(it.get("data").required("data is mandatory"));
    }
    not_negative(&mut out, &it.get("revision"));
    if old.is_some_and(|old| FieldValue::root(old).get("data").value != it.get("data").value) {
        out.push(it.get("data").invalid("field is immutable"));
    }
    out
}

pub(in crate::native) fn disruption_budget(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let spec = FieldValue::root(new).get("spec");
    let (least, most) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
    if least.is_set() && most.is_set() {
        let shown = json!({
            "MinAvailable": least.value,
            "Selector": spec.get("selector").value,
            "MaxUnavailable": most.value,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy").value,
        });
        let detail = "minAvailable and maxUnavailable cannot be both set";
        out.push(ValidationProblem::invalid(spec.path.clone(), shown, detail));
    }
    for it in [least, most] {
        if it.is_set() {
            int_or_percent(&mut out, &it);
            at_most_all(&mut out, &it);
        }
    }
    meta::selector(&mut out, &spec.get("selector"));
    out
}
