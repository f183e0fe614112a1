//! Creates the contexts of streams: the first one of a stream, and the next one after its handlers have changed.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::state::GenerationState;
use crate::call::ObjectPacker;
use crate::features::{daemons, indexes::ReadinessHold};
use crate::logic::{
    change::registry::ResourceHandlers,
    generation,
    handlers::{lifecycle::Lifecycle, selector::settings_of},
};
use crate::reactor::{
    generation::shared::{OperatorContext, Shared},
    object::context::StreamContext,
    observer::Target,
};
use crate::settings::Settings;
use crate::sorted::CollectSorted as _;

/// The sources of all streams' contexts.
#[derive(Clone, Copy)]
pub(in crate::reactor) struct Contexts<'a> {
    /// Shared by the whole operator.
    pub(in crate::reactor) operator: &'a OperatorContext,
    /// Shared by all streams.
    pub(in crate::reactor) shared: &'a Shared<'a>,
    /// The state of the live generation.
    pub(in crate::reactor) state: &'a GenerationState,
    /// The order of handlers, unless scripts set one.
    pub(in crate::reactor) lifecycle: Lifecycle,
}

impl Contexts<'_> {
    /// Returns the next context for a target; `None` if the previous one is still valid.
    pub(in crate::reactor) fn next(
        &self,
        target: &Target,
        before: Option<&StreamContext>,
        handlers: Arc<ResourceHandlers>,
    ) -> Option<StreamContext> {
        let Contexts { operator, shared, state, lifecycle } = *self;
        let services = &state.live.services;
        let lifecycle = state.live.generation.lifecycle.clone().unwrap_or_else(|| lifecycle.into());
        let mut settings = settings_of(&target.0, &state.settings);
        if let Some(same) = before.filter(|it| it.settings == settings) {
            settings = Arc::clone(&same.settings);
        }
        let is_as_good = |it: &StreamContext| {
            it.handlers.are(&handlers)
                && it.lifecycle == lifecycle
                && it.services.indexes.are(&services.indexes)
                && Arc::ptr_eq(&it.settings, &settings)
        };
        if before.is_some_and(is_as_good) {
            return None;
        }
        let background = self.background(target, before, &settings);
        background.handlers.renew(&handlers.spawning, services);
        for handler in handlers.indexing.iter().filter(|it| it.relation.is_some()) {
            services.reconcilers.learn(&handler.id, &target.0);
        }
        let gate = match before {
            Some(before) if !generation::has_new(&before.handlers, &handlers) => {
                before.gate.clone()
            }
            Some(_) | None => state.gate.clone(),
        };
        Some(StreamContext {
            hold: self.hold(target, before, &handlers),
            gate,
            uses: Arc::clone(&state.uses),
            replaced: CancellationToken::new(),
            version: state.version,
            handlers,
            resource: before.map_or_else(|| Arc::clone(&target.0), |it| Arc::clone(&it.resource)),
            cluster: Arc::clone(shared.cluster),
            scripts: Arc::clone(&operator.scripts),
            settings,
            clock: operator.steady,
            lifecycle,
            lifecycle_cooldown: Arc::default(),
            memo: operator.memo.clone(),
            start: shared.start,
            retries: Arc::clone(&shared.retries),
            memories: Arc::clone(&shared.memories),
            services: Arc::clone(services),
            background,
            pauses: shared.pauses.clone(),
            leadership: shared.leadership.clone(),
            numbers: match before {
                Some(before) => Arc::clone(&before.numbers),
                None => operator.health.metrics().queue(target.0.to_string()),
            },
            health: operator.health.clone(),
        })
    }

    /// Returns the shared state of daemons and timers. It stays with the stream, because running daemons belong to it.
    fn background(
        &self,
        target: &Target,
        before: Option<&StreamContext>,
        settings: &Arc<Settings>,
    ) -> Arc<daemons::Base> {
        let Contexts { operator, shared, .. } = *self;
        let before = before.map(|it| &it.background);
        if let Some(same) = before.filter(|it| Arc::ptr_eq(&it.settings, settings)) {
            return Arc::clone(same);
        }
        let packer = || Arc::new(ObjectPacker::of(Arc::clone(&target.0)));
        Arc::new(daemons::Base {
            resource: Arc::clone(&target.0),
            packer: before.map_or_else(packer, |it| Arc::clone(&it.packer)),
            cluster: Arc::clone(shared.cluster),
            scripts: Arc::clone(&operator.scripts),
            settings: Arc::clone(settings),
            clock: operator.steady,
            daemons: Arc::clone(&shared.daemons),
            handlers: before.map(|it| Arc::clone(&it.handlers)).unwrap_or_default(),
            readiness: shared.readiness.clone(),
            namespaces: shared.namespaces.clone(),
            metrics: operator.health.metrics().clone(),
        })
    }

    /// Returns the stream's part in the readiness of the indexes. Objects that must be indexed again are waited for again.
    fn hold(
        &self,
        (resource, place): &Target,
        before: Option<&StreamContext>,
        handlers: &ResourceHandlers,
    ) -> Arc<ReadinessHold> {
        let Contexts { shared, state, .. } = *self;
        let own = handlers.indexing.iter().map(|it| Arc::clone(&it.id)).collect_set();
        let is_new = !state.new_indexes.is_disjoint(&own);
        let version = is_new.then_some(state.live.generation.version);
        if let Some(before) = before {
            let indexes = &state.live.services.indexes;
            let unfilled = indexes.unfilled_since(&before.services.indexes);
            if unfilled.is_disjoint(&own) {
                return Arc::clone(&before.hold);
            }
            return Arc::new(before.hold.renewed(own, version));
        }
        let place = place.as_deref().map_or_else(String::new, |it| format!(" in '{it}'"));
        let name = format!("{resource}{place}");
        Arc::new(if own.is_empty() {
            shared.readiness.unindexed(name)
        } else {
            shared.readiness.indexed(name, own, version)
        })
    }
}
