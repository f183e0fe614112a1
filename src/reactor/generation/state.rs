//! The generation that took over last: its indexes and settings, and what its handlers wait for.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

use super::candidates::ReadyCandidate;
use crate::call::{CallServices, LiveGeneration, Scripts};
use crate::features::indexes::{Gate, Ids};
use crate::logic::{
    background::stopping::StopReason,
    change::registry::Registry,
    generation::{self, Generation, Version},
    handlers::{function::ScriptId, handler::Kind},
};
use crate::ports::Pauses;
use crate::reactor::generation::shared::OperatorContext;
use crate::settings::Settings;
use crate::sorted::CollectSorted as _;

/// Maximum time that new handlers of a generation wait for its new indexes.
const GATE_MAX: Duration = Duration::from_secs(10);

/// The parts of the streams' contexts that belong to one generation.
pub(in crate::reactor) struct GenerationState {
    /// The generation, and the services of its calls.
    pub(in crate::reactor) live: Arc<LiveGeneration>,
    /// The settings as the latest start-up handlers have left them.
    pub(in crate::reactor) settings: Arc<Settings>,
    /// The number of the current pass over the streams.
    pub(super) version: Version,
    /// The indexes that the generation has added.
    pub(super) new_indexes: BTreeSet<Arc<str>>,
    /// The indexes that the new handlers wait for.
    pub(super) gate: Option<Gate>,
    /// The indexes that each script may use.
    pub(super) uses: Arc<BTreeMap<ScriptId, Ids>>,
    /// Whether some values in the indexes may come from handlers that have changed.
    pub(in crate::reactor) has_outdated_values: bool,
    /// The reason for stopping daemons and timers whose resource no handler selects any more.
    pub(in crate::reactor) stop_reason: StopReason,
}

impl GenerationState {
    /// Returns the state of the first generation.
    pub(in crate::reactor) fn first(operator: &OperatorContext, settings: Arc<Settings>) -> Self {
        let live = operator.current.get();
        GenerationState {
            settings,
            version: live.generation.version,
            new_indexes: BTreeSet::new(),
            gate: None,
            uses: uses(&*operator.scripts, &live.generation.registry),
            has_outdated_values: false,
            stop_reason: StopReason::ResourceDeleted,
            live,
        }
    }

    /// Starts another pass over the streams.
    pub(in crate::reactor) fn next_pass(&mut self) {
        self.version = self.version.next_pass();
    }

    /// Takes over from the previous generation. The streams follow in the next pass.
    pub(in crate::reactor) fn take_over(
        &mut self,
        ready: &ReadyCandidate,
        operator: &OperatorContext,
        pauses: &Pauses,
    ) {
        let (before, new) = (Arc::clone(&self.live), &ready.generation);
        if let Some(settings) = &ready.settings {
            *operator.settings.lock() = settings.clone();
            self.settings = Arc::new(settings.clone());
            operator.scripts.configure(settings);
        }
        warn_of_logins(&before.generation, new);
        let refilled = generation::refilled(&before.generation.registry, &new.registry);
        let known = &before.services.indexes;
        let indexes = known.next(new.registry.indexes(), &refilled, new.version);
        let mut services = Arc::clone(&before.services);
        if !indexes.are(known) {
            services = Arc::new(CallServices { indexes, ..CallServices::clone(&services) });
        }
        let ids: BTreeSet<_> =
            new.registry.handlers().iter().map(|it| Arc::clone(&it.id)).collect_set();
        services.failures.keep_handlers(|it| ids.contains(it));
        self.version = new.version;
        self.uses = uses(&*operator.scripts, &new.registry);
        self.new_indexes = new.registry.indexes();
        self.new_indexes.retain(|it| known.get(it).is_none());
        // After a pause, all objects arrive as at a start.
        let until = (!pauses.is_paused()).then(|| Instant::now() + GATE_MAX);
        self.gate = (!self.new_indexes.is_empty()).then_some(Gate { version: new.version, until });
        self.has_outdated_values |= !refilled.is_empty();
        self.stop_reason = StopReason::ScriptReloaded;
        self.live = operator.current.set(LiveGeneration { generation: new.clone(), services });
    }
}

/// Returns the indexes that each script may use: those that it fills, and those that it names.
fn uses(scripts: &dyn Scripts, registry: &Registry) -> Arc<BTreeMap<ScriptId, Ids>> {
    let indexes = registry.indexes();
    let mut uses = BTreeMap::<_, Ids>::new();
    for handler in registry.handlers() {
        let script = handler.function.script;
        let may_use = |it: &&Arc<str>| scripts.may_use_index(script, it);
        let used = uses
            .entry(script)
            .or_insert_with(|| indexes.iter().filter(may_use).cloned().collect_set());
        if handler.kind == Kind::Index {
            used.insert(Arc::clone(&handler.id));
        }
    }
    Arc::new(uses)
}

/// Warns that an edit has no effect if it adds the first handler of logins or tunnels, or removes the last one.
fn warn_of_logins(before: &Generation, now: &Generation) {
    for (kind, instead) in [
        (Kind::Login, "different credentials are used"),
        (Kind::Tunnel, "webhooks use a different URL"),
    ] {
        let has_any = |it: &Generation| !it.registry.activities(kind).is_empty();
        let declared = kind.declared_by();
        let effect = match (has_any(before), has_any(now)) {
            (false, true) => format!("The first {declared} handler was added: it is called"),
            (true, false) => format!("The last {declared} handler was removed: {instead}"),
            (true, true) | (false, false) => continue,
        };
        tracing::warn!(target: "kopf.reactor", "{effect} only after a restart of the operator.");
    }
}
