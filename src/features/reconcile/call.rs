//! One call of a reconcile handler: its inputs, and how its result is applied.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use serde_json::{Map, Value};

use super::requests::{ChildAddress, Requests};
use crate::call::{CallServices, Logger, Related, SeenChildren, SeenKind, SharedPatch};
use crate::logic::{
    access::kube::ResourceRef,
    background::indexing::{IndexItem, IndexKey},
    change::order,
    discovery::namespaces::NamespacePattern,
    handlers::{handler::Handler, outcome::LogLevel, reconcile::label_of, relations::RelationIds},
    object::{Object, conditions::ConditionChange, depth, resource::Resource},
    reconcile::{
        self, AppliedChild, Child, DesiredState, Family, KnownChildren, Manifest, Observed, Pace,
        Slow,
    },
    text::nanos::Nanos,
};
use crate::ports::{Cluster, LookupError};

/// The children that the garbage collector does not delete with the object, and whose request was sent, by their keys. The watch may
/// not show them yet.
#[derive(Debug, Default)]
pub struct UnownedChildren(BTreeMap<String, ChildAddress>);

impl UnownedChildren {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds those of a previous version of the handler.
    pub fn append(&mut self, mut others: UnownedChildren) {
        self.0.append(&mut others.0);
    }
}

/// The state of an object between the calls of its reconcile handler.
#[derive(Debug, Default)]
pub struct Memory {
    applied: KnownChildren,
    unowned: UnownedChildren,
    pace: Pace,
    /// The status as made by the operator's last request, as JSON, with its version.
    status: Option<(u64, Box<str>)>,
    /// Whether the last call has succeeded without reading the children: then only changes by others need another one.
    pub is_settled: bool,
    /// No call before this moment, on the clock of all daemons.
    pub not_before: Option<Nanos>,
}

impl Memory {
    /// Creates the memory of a handler that may have had a previous version.
    pub fn new(unowned: UnownedChildren) -> Self {
        Memory { unowned, ..Memory::default() }
    }

    /// Takes the unowned children, for the next version of the handler.
    pub fn take_unowned(&mut self) -> UnownedChildren {
        std::mem::take(&mut self.unowned)
    }

    /// Stores the status from the response to the operator's own request: its event may arrive later.
    pub fn note_response(&mut self, object: &Object) {
        let status = object.body().get("status").unwrap_or(&Value::Null).to_string();
        self.status = order::number(object).map(|version| (version.get(), status.into()));
    }
}

/// The time of the next call.
#[derive(Debug, Default)]
pub struct NextCall {
    /// The pause that the function has requested.
    pub requeue: Option<Duration>,
}

/// One call for one object.
pub struct Reconciliation<'a> {
    /// The reconcile handler that is called.
    pub handler: &'a Handler,
    /// The services of its calls.
    pub services: &'a CallServices,
    /// The ids of its indexes.
    pub relations: &'a RelationIds,
    /// The cluster in which children are applied.
    pub cluster: &'a dyn Cluster,
    /// The resource of the object.
    pub resource: &'a Resource,
    /// The object at present.
    pub object: &'a Object,
    /// The namespaces that the operator serves; `None` is all of them.
    pub namespaces: Option<&'a [NamespacePattern]>,
    /// The logger for lines about the object.
    pub logger: &'a Logger,
    /// The present moment, on the clock of all daemons.
    pub now: Duration,
}

impl Reconciliation<'_> {
    /// Returns the children as the watch shows them at present.
    fn observed(&self) -> Vec<Observed> {
        let mut observed = Vec::new();
        for SeenKind { related, values, .. } in self.seen() {
            let packed = values.iter().flat_map(|it| it.iter());
            observed.extend(packed.filter_map(|it| read(it, &related)));
        }
        observed
    }

    /// Returns the source of `ctx.children`: the children as the watch shows them at present.
    pub fn children(&self) -> SeenChildren {
        SeenChildren::new(self.object.header().namespace.clone(), self.seen())
    }

    /// Returns whether no call is needed because the watch shows exactly the children that the last call has left.
    pub fn is_settled(&self, memory: &mut Memory) -> bool {
        if !memory.is_settled {
            return false;
        }
        let observed = self.observed();
        observed.len() == memory.applied.len()
            && observed.iter().all(|it| reconcile::is_unchanged(it, &mut memory.applied))
    }

    fn seen(&self) -> Vec<SeenKind> {
        let parent = IndexKey::text(self.object.header().uid.as_deref().unwrap_or_default());
        let kinds = self.relations.children.iter().zip(self.handler.owned_kinds());
        let seen = kinds.map(|(id, kind)| SeenKind {
            named: kind.text.clone(),
            related: self.services.reconcilers.related(id),
            values: self.services.indexes.get(id).and_then(|it| it.get(&parent)),
        });
        seen.collect()
    }

    /// Applies the result of the function: applies and deletes children, and adds the changes of the status to the patch.
    ///
    /// # Errors
    /// If the result is invalid, or a request fails. No child is deleted before all wanted children are applied.
    pub async fn conclude(
        &self,
        result: Option<Value>,
        memory: &mut Memory,
        patch: &SharedPatch,
    ) -> Result<NextCall, String> {
        let is_lua = Path::new(self.handler.file()).extension().is_some_and(|it| it == "lua");
        let first = usize::from(is_lua);
        let wanted = DesiredState::read(result, first)?;
        let mut next = NextCall { requeue: wanted.requeue };
        let mut changed = Vec::new();
        if let Some(manifests) = wanted.children {
            let applied = self.apply_all(manifests, memory, &mut changed).await;
            let recheck = applied.inspect_err(|_| self.slow_down(memory, &mut changed))?;
            let recheck = recheck.map(|it| it.saturating_sub(self.now));
            next.requeue = next.requeue.into_iter().chain(recheck).min();
        }
        let mut status = self.status_changes(memory, &wanted.status);
        {
            let mut patch = patch.lock();
            if !status.is_empty() {
                let given = patch.merge.entry("status").or_insert_with(|| Map::new().into());
                if let Value::Object(given) = given {
                    given.append(&mut status);
                }
                changed.push("the status".to_owned());
            }
            // Without the subresource, each write of the status is another generation, and would cause another write.
            let has_status = self.resource.subresources.contains("status");
            let generation = self.object.body().pointer("/metadata/generation");
            let generation = generation.and_then(Value::as_i64).filter(|_| has_status);
            for condition in wanted.conditions {
                let condition = condition.observed(generation, self.services.clock.now());
                patch.change_condition(ConditionChange::Set(condition));
            }
        }
        self.slow_down(memory, &mut changed);
        Ok(next)
    }

    /// Deletes the children that the garbage collector does not delete with the object. The watch may lag behind, so each is read
    /// before.
    ///
    /// # Errors
    /// If a request fails.
    pub async fn delete_unowned(&self, memory: &Memory) -> Result<(), String> {
        let uid = self.object.header().uid.as_deref().unwrap_or_default();
        let mut places = memory.unowned.0.clone();
        for child in self.observed().into_iter().filter(|it| !it.is_owned_by(uid)) {
            let Observed { resource, namespace, name, key, .. } = child;
            places.insert(key, ChildAddress { resource, namespace, name });
        }
        let labels = self.handler.labels_of_children();
        for place in places.values() {
            Requests(self.cluster).delete_own(place, (&labels, uid)).await?;
        }
        Ok(())
    }

    /// Applies changed children, then deletes those that are not wanted any more. Returns the time of the next check, if one is needed.
    async fn apply_all(
        &self,
        manifests: Vec<Manifest>,
        memory: &mut Memory,
        changed: &mut Vec<String>,
    ) -> Result<Option<Duration>, String> {
        let family = Family {
            handler: &self.handler.id,
            parent: self.object,
            resource: self.resource,
            is_held: self.handler.finalizes(),
        };
        let mut children = Vec::with_capacity(manifests.len());
        for manifest in manifests {
            let resource = self.resource_of(&manifest).await?;
            let child = family.child(manifest, resource)?;
            self.check_namespace(&child)?;
            children.push(child);
        }
        let observed = self.observed();
        let label = label_of(&self.handler.id);
        let plan = reconcile::plan(&children, &observed, &mut memory.applied, (&label, self.now))?;
        let requests = Requests(self.cluster);
        let manager = reconcile::manager(&self.handler.id);
        for apply in &plan.applies {
            let Some(child) = children.get(apply.child) else { continue };
            let uid = self.object.header().uid.as_deref().unwrap_or_default();
            if !child.is_owned_by(uid) {
                let (resource, namespace) = (Arc::clone(&child.resource), child.namespace.clone());
                let place = ChildAddress { resource, namespace, name: child.name.clone() };
                memory.unowned.0.insert(child.key.clone(), place);
            }
            let before = apply.present.and_then(|it| observed.get(it));
            let seen = before.and_then(Observed::uid);
            let made = requests.apply(child, &manager, (&label, uid), seen).await?;
            if let Some(former) = &apply.former {
                let ids = self.handler.reconcile.iter().flat_map(|it| &it.formerly);
                for id in ids.filter(|it| label_of(it) == *former) {
                    requests.release(child, &reconcile::manager(id), &made).await?;
                }
            }
            let version = made.pointer("/metadata/resourceVersion").and_then(Value::as_str);
            let is_same = before.is_some_and(|it| it.version() == version);
            if before.is_some() && !is_same {
                let place = child.namespace.as_deref();
                changed.push(reconcile::shown(&child.resource, place, &child.name));
            }
            let applied = AppliedChild {
                digest: child.digest,
                content: reconcile::content_after(&made, &child.body),
                fingerprint: None,
                version: version.and_then(|it| it.parse().ok()),
                is_seen: is_same,
                at: self.now.into(),
            };
            memory.applied.insert(&child.key, applied);
        }
        let mut recheck = plan.recheck;
        for child in plan.prunes.iter().filter_map(|it| observed.get(*it)) {
            if requests.delete(child).await? {
                memory.unowned.0.remove(&child.key);
            } else {
                let again = self.now.saturating_add(reconcile::UNSEEN_MAX);
                recheck = Some(recheck.map_or(again, |it| it.min(again)));
            }
        }
        Ok(recheck)
    }

    /// Returns the resource of a wanted child, which must be of an owned kind.
    async fn resource_of(&self, manifest: &Manifest) -> Result<Arc<Resource>, String> {
        let Manifest { path, api_version, kind, .. } = manifest;
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let mut is_owned = false;
        for id in &self.relations.children {
            for resource in self.services.reconcilers.related(id).kinds {
                if resource.group == group && resource.kind == *kind {
                    is_owned = true;
                    if resource.version == version {
                        return Ok(resource);
                    }
                }
            }
        }
        let (group, version) = (group.to_owned(), version.to_owned());
        let wanted = ResourceRef::Kind { group, version, kind: kind.clone() };
        let resource = self.services.kube.resource(&wanted).await.map_err(|error| match error {
            LookupError::Api(error) => format!("{path}: {error}"),
            LookupError::Unresolved(message) => format!("{path}.kind: {message}"),
        })?;
        let is_named =
            self.handler.owned_kinds().iter().any(|it| it.selector.check(&resource, &|_, _| false));
        if is_owned || is_named {
            return Ok(resource);
        }
        let owned: Vec<_> = self.handler.owned_kinds().iter().map(|it| it.text.as_str()).collect();
        Err(format!(
            "{path}.kind: {kind} ({api_version}) is not in the option `owns` = {owned:?}: add \"{}\"",
            resource.plural
        ))
    }

    /// Refuses children that the operator could not watch.
    fn check_namespace(&self, child: &Child) -> Result<(), String> {
        let Some((namespaces, own)) = self.namespaces.zip(child.namespace.as_deref()) else {
            return Ok(());
        };
        if namespaces.iter().any(|it| it.matches(own)) {
            return Ok(());
        }
        let served: Vec<_> = namespaces.iter().map(ToString::to_string).collect();
        Err(format!(
            "{}.metadata.namespace: the operator does not serve the namespace {own:?}, only {}",
            child.path,
            served.join(", ")
        ))
    }

    fn status_changes(
        &self,
        memory: &mut Memory,
        wanted: &Map<String, Value>,
    ) -> Map<String, Value> {
        let seen = order::number(self.object).map_or(0, std::num::NonZeroU64::get);
        memory.status.take_if(|(version, _)| *version <= seen);
        // The JSON was written by `note_response`.
        let own = memory.status.as_ref().and_then(|(_, it)| depth::value(it.as_bytes()).ok());
        reconcile::changes(own.as_ref().or_else(|| self.object.body().get("status")), wanted)
    }

    fn slow_down(&self, memory: &mut Memory, changed: &mut Vec<String>) {
        let slow = memory.pace.note(changed.drain(..), self.now);
        let Some(Slow { pause, what, count, within, is_first }) = slow else { return };
        memory.not_before = Some(self.now.saturating_add(pause).into());
        let (seconds, minutes) = (pause.as_secs(), within.as_secs() / 60);
        let text = format!(
            "{} has changed {what} {count} times within {minutes} min: another handler or controller changes it back, or the function \
             returns something else at each call. Its calls are slowed down; the next one is in {seconds} s at the earliest.",
            self.handler
        );
        self.logger.log(if is_first { LogLevel::Warning } else { LogLevel::Debug }, &text);
    }
}

/// Reads a child as the index holds it.
fn read(value: &IndexItem, related: &Related) -> Option<Observed> {
    let (resource, object) = related.unpack(value)?;
    Observed::new(resource, Arc::new(object))
}
