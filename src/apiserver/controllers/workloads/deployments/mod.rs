//! `Deployment`: one `ReplicaSet` for each template; the newest is scaled up while the old ones are scaled down.

use serde_json::{Map, Value, json};

use crate::sorted;
use crate::{
    controllers::{
        Controller, NO_STEP, ReconcileResult,
        cache::{Cache, ObjectKey, Update},
        time::DecisionTime,
        workloads::{
            claim, pods,
            pods::PODS,
            replicasets::REPLICA_SETS,
            revision,
            rollout::{self, DESIRED, MAX, REVISION, RolloutLimits, Set},
        },
        write::{FieldEdit, Write, set},
    },
    labels,
    object::{self, number},
};

mod status;

const DEPLOYMENTS: &str = "deployments.apps";
const KIND: (&str, &str) = ("apps/v1", "Deployment");
const HASH: &str = "pod-template-hash";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// Annotations of a Deployment that are not copied to its `ReplicaSet`s.
const OWN_ANNOTATIONS: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MAX,
    "deprecated.deployment.rollback.to",
];

pub(crate) const CONTROLLER: Controller = Controller {
    reads: &[DEPLOYMENTS, REPLICA_SETS, PODS],
    affected,
    reconcile,
    step: NO_STEP,
    start: &[],
};

fn affected(cache: &Cache, update: &Update<'_>, found: &mut Vec<ObjectKey>) {
    claim::affected_owners(cache, update, (DEPLOYMENTS, REPLICA_SETS), found);
    if update.key.resource != PODS || update.new.is_some() {
        return;
    }
    // With the strategy `Recreate`, a rollout waits until the last old Pod is deleted.
    let sets = update.owners().filter(|it| it.controller).filter_map(|it| cache.by_uid(&it.uid));
    let owners = sets.filter_map(|(_, it)| cache.by_uid(&it.controller()?.uid));
    found.extend(owners.filter(|(key, _)| key.resource == DEPLOYMENTS).map(|(key, _)| key.clone()));
}

/// A Deployment with its `ReplicaSet`s.
struct DeploymentView<'a> {
    key: &'a ObjectKey,
    body: &'a Value,
    limits: RolloutLimits,
    new: Option<Set<'a>>,
    /// Ordered by age, oldest first.
    old: Vec<Set<'a>>,
}

impl<'a> DeploymentView<'a> {
    fn of(key: &'a ObjectKey, body: &'a Value, mut sets: Vec<Set<'a>>) -> Self {
        sorted::sort_by_key(&mut sets, Set::age);
        let template = body.pointer("/spec/template").unwrap_or(&Value::Null);
        let hash = Self::hash(body);
        let is_new = |it: &Set<'_>| {
            let own = it.body.pointer("/spec/template").unwrap_or(&Value::Null);
            revision::same(own, template, &[HASH])
        };
        let hashed = |it: &Set<'_>| labels::of(it.body).get(HASH).is_some_and(|it| *it == hash);
        let found = sets.iter().position(is_new).or_else(|| sets.iter().position(hashed));
        let new = found.map(|it| sets.remove(it));
        Self { key, body, limits: RolloutLimits::of(body), new, old: sets }
    }

    fn hash(body: &Value) -> String {
        let template = body.pointer("/spec/template").unwrap_or(&Value::Null);
        revision::hash(template, number(body, "/status/collisionCount"))
    }

    fn paused(&self) -> bool {
        object::flag(self.body, "/spec/paused")
    }

    fn all(&self) -> impl Iterator<Item = &Set<'a>> {
        self.old.iter().chain(&self.new)
    }

    /// Returns whether the replicas of the Deployment were changed since its sets were last scaled.
    fn is_rescaled(&self) -> bool {
        let wanted = self.limits.replicas.to_string();
        let mut active = self.all().filter(|it| it.replicas > 0);
        active.any(|it| !matches!(it.annotation(DESIRED), "") && it.annotation(DESIRED) != wanted)
    }
}

fn reconcile(cache: &Cache, key: &ObjectKey, moment: &DecisionTime) -> ReconcileResult {
    let Some(body) = cache.body(key) else { return ReconcileResult::none() };
    if labels::is_empty(body.pointer("/spec/selector")) {
        return ReconcileResult::none();
    }
    let claimed = claim::claim(cache, key, body, REPLICA_SETS, KIND);
    if !claimed.writes.is_empty() {
        return claimed.writes.into();
    }
    let sets = claimed.children.iter().map(|(key, it)| Set::new(key, it)).collect();
    let mut view = DeploymentView::of(key, body, sets);
    let mut plan = ReconcileResult::none();
    if object::deleting(body) {
        status::simple(&view, &mut plan, moment);
        return plan;
    }
    if view.paused() || view.is_rescaled() {
        number_new(&view, &mut plan);
        scale(&mut view);
        write_sizes(&view, &mut plan);
        status::simple(&view, &mut plan, moment);
        return plan;
    }
    if view.limits.rolling {
        roll(&mut view, &mut plan, moment);
    } else {
        recreate(cache, &mut view, &mut plan, moment);
    }
    plan
}

/// Scales the sets after a change of the replicas only; the template is the same, so nothing is rolled out.
fn scale(view: &mut DeploymentView<'_>) {
    let limits = view.limits;
    let mut all: Vec<&mut Set<'_>> = view.old.iter_mut().chain(&mut view.new).collect();
    let active = all.iter().filter(|it| it.replicas > 0).count();
    if active <= 1 {
        // The only active one, or else the newest.
        let wanted =
            all.iter().rposition(|it| it.replicas > 0).unwrap_or(all.len().saturating_sub(1));
        if let Some(it) = all.get_mut(wanted) {
            it.replicas = limits.replicas;
        }
        return;
    }
    let settled = view
        .new
        .as_ref()
        .is_some_and(|it| it.replicas == limits.replicas && it.available() == limits.replicas);
    if settled {
        view.old.iter_mut().for_each(|it| it.replicas = 0);
    } else if limits.rolling {
        let present = number(view.body, "/status/replicas").unwrap_or(0);
        let mut sets: Vec<Set<'_>> = view.old.drain(..).chain(view.new.take()).collect();
        let new = DeploymentView::of(view.key, view.body, sets.clone()).new.map(|it| it.key);
        rollout::rescale(limits, present, &mut sets);
        sorted::sort_by_key(&mut sets, Set::age);
        let place = sets.iter().position(|it| Some(it.key) == new);
        view.new = place.map(|it| sets.remove(it));
        view.old = sets;
    }
}

fn roll(view: &mut DeploymentView<'_>, plan: &mut ReconcileResult, moment: &DecisionTime) {
    let total = |view: &DeploymentView<'_>| view.all().map(|it| it.replicas).sum::<i64>();
    if view.new.is_none() {
        let replicas = rollout::newest(view.limits, 0, total(view));
        create_new(view, replicas, plan, moment);
        return;
    }
    number_new(view, plan);
    let all = total(view);
    let limits = view.limits;
    if let Some(new) = &mut view.new {
        let wanted = rollout::newest(limits, new.replicas, all);
        if wanted == new.replicas {
            rollout::shrink_old(limits, new, &mut view.old);
        } else {
            new.replicas = wanted;
        }
    }
    write_sizes(view, plan);
    status::rolling(view, plan, moment);
    if status::is_complete(view) {
        clean_up(view, plan);
    }
}

fn recreate(
    cache: &Cache,
    view: &mut DeploymentView<'_>,
    plan: &mut ReconcileResult,
    moment: &DecisionTime,
) {
    let shrinks = view.old.iter().any(|it| it.replicas > 0);
    view.old.iter_mut().for_each(|it| it.replicas = 0);
    let mut old_pods =
        view.old.iter().flat_map(|it| cache.managed(object::meta(it.body, "uid"), PODS));
    let waits = shrinks || old_pods.any(|(_, it)| !pods::ended(it));
    if waits {
        write_sizes(view, plan);
        status::rolling(view, plan, moment);
        return;
    }
    if view.new.is_none() {
        create_new(view, view.limits.replicas, plan, moment);
        return;
    }
    number_new(view, plan);
    let replicas = view.limits.replicas;
    view.new.iter_mut().for_each(|it| it.replicas = replicas);
    write_sizes(view, plan);
    status::rolling(view, plan, moment);
    if status::is_complete(view) {
        clean_up(view, plan);
    }
}

/// Writes the sizes of sets that have not reached their desired ones yet.
fn write_sizes(view: &DeploymentView<'_>, plan: &mut ReconcileResult) {
    let (desired, max) = (view.limits.replicas.to_string(), view.limits.max().to_string());
    for it in view.all() {
        let resized = number(it.body, "/spec/replicas").unwrap_or(1) != it.replicas;
        let stale =
            it.replicas > 0 && (it.annotation(DESIRED) != desired || it.annotation(MAX) != max);
        if !resized && !stale {
            continue;
        }
        let mut edits = Vec::new();
        if resized {
            edits.push(set(["spec", "replicas"], it.replicas));
        }
        edits.push(set(["metadata", "annotations", DESIRED], desired.clone()));
        edits.push(set(["metadata", "annotations", MAX], max.clone()));
        plan.writes.push(Write::change(it.key, it.body, edits));
    }
}

fn next_revision(view: &DeploymentView<'_>) -> i64 {
    view.old.iter().map(Set::revision).max().unwrap_or(0).saturating_add(1)
}

/// Returns the annotations of the Deployment that its newest set also gets.
fn shared_annotations(view: &DeploymentView<'_>) -> Map<String, Value> {
    let all = view.body.pointer("/metadata/annotations").and_then(Value::as_object);
    let all =
        all.into_iter().flatten().filter(|(name, _)| !OWN_ANNOTATIONS.contains(&name.as_str()));
    all.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Sets the revision of the newest set; a rollback makes an old set the newest again.
fn number_new(view: &DeploymentView<'_>, plan: &mut ReconcileResult) {
    let Some(new) = &view.new else { return };
    let revision = next_revision(view).max(new.revision());
    let mut edits: Vec<FieldEdit> = Vec::new();
    for (name, value) in shared_annotations(view) {
        if value != new.annotation(&name) {
            edits.push(set(["metadata", "annotations", &name], value));
        }
    }
    if new.revision() < revision {
        edits.push(set(["metadata", "annotations", REVISION], revision.to_string()));
        let mut history: Vec<&str> = new.annotation(HISTORY).split(',').collect();
        history.push(new.annotation(REVISION));
        history.retain(|it| !it.is_empty());
        if !history.is_empty() {
            edits.push(set(["metadata", "annotations", HISTORY], history.join(",")));
        }
    }
    let seconds = |object| number(object, "/spec/minReadySeconds").unwrap_or(0);
    if seconds(new.body) != seconds(view.body) {
        edits.push(set(["spec", "minReadySeconds"], seconds(view.body)));
    }
    if !edits.is_empty() {
        plan.writes.push(Write::change(new.key, new.body, edits));
    }
    number_deployment(view, revision, plan);
}

fn number_deployment(view: &DeploymentView<'_>, revision: i64, plan: &mut ReconcileResult) {
    let revision = revision.to_string();
    if rollout::annotation(view.body, REVISION) != revision {
        let edit = set(["metadata", "annotations", REVISION], revision);
        plan.writes.push(Write::change(view.key, view.body, vec![edit]));
    }
}

/// Creates a set for the current template.
fn create_new(
    view: &DeploymentView<'_>,
    replicas: i64,
    plan: &mut ReconcileResult,
    moment: &DecisionTime,
) {
    let hash = DeploymentView::hash(view.body);
    let name = format!("{}-{hash}", view.key.name);
    let revision = next_revision(view);
    let mut template = view.body.pointer("/spec/template").cloned().unwrap_or_default();
    pods::label(&mut template, HASH, &hash);
    let mut selector = view.body.pointer("/spec/selector").cloned().unwrap_or_default();
    if let Some(fields) = selector.as_object_mut() {
        let labels = fields.entry("matchLabels").or_insert_with(|| json!({}));
        object::put(labels, HASH, Some(hash.into()));
    }
    let mut annotations = shared_annotations(view);
    annotations.insert(DESIRED.into(), view.limits.replicas.to_string().into());
    annotations.insert(MAX.into(), view.limits.max().to_string().into());
    annotations.insert(REVISION.into(), revision.to_string().into());
    let mut body = json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": view.key.namespace,
            "labels": template.pointer("/metadata/labels"),
            "annotations": annotations,
            "ownerReferences": [claim::reference(view.body, KIND)],
        },
        "spec": { "replicas": replicas, "selector": selector, "template": template },
    });
    if let (Some(seconds), Some(spec)) =
        (number(view.body, "/spec/minReadySeconds").filter(|it| *it > 0), body.get_mut("spec"))
    {
        object::put(spec, "minReadySeconds", Some(seconds.into()));
    }
    plan.writes.push(Write::Create { resource: REPLICA_SETS, body });
    number_deployment(view, revision, plan);
    status::created(view, &name, plan, moment);
}

/// Deletes old empty sets beyond the history limit, the oldest first.
fn clean_up(view: &DeploymentView<'_>, plan: &mut ReconcileResult) {
    let limit = number(view.body, "/spec/revisionHistoryLimit").unwrap_or(10);
    let limit = usize::try_from(limit).unwrap_or(0);
    let mut empty: Vec<&Set<'_>> = view.old.iter().collect();
    empty.retain(|it| {
        let seen =
            number(it.body, "/metadata/generation").unwrap_or(0) <= it.status("observedGeneration");
        it.replicas == 0 && it.status("replicas") == 0 && seen && !object::deleting(it.body)
    });
    let surplus = view.old.len().saturating_sub(limit);
    sorted::sort_by_key(&mut empty, |it| it.revision());
    let go = empty.into_iter().take(surplus);
    plan.writes.extend(go.map(|it| Write::delete(it.key, object::meta(it.body, "uid"))));
}
