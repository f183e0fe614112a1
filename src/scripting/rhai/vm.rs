//! The current state of a script, and its restart when its memory is full.
//!
//! All data of a script belongs to its [`RhaiScript`]. If a call is aborted because the memory is full, and more than half of it is still in
//! use afterwards, the script restarts: the next call runs its top level again. Function references that the operator holds remain valid,
//! because the same text declares the same functions in the same order.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    errors,
    script::{self, RhaiScript},
};
use crate::call::Invocation;
use crate::logic::handlers::{
    function::{Function, ScriptId},
    handler::Handler,
    outcome::Raised,
};
use crate::scripting::{
    Source, Terms,
    blocking::{
        control::{self, Abort, given},
        inline::InlineFunction,
        runner::JobRunner,
    },
    values::limits,
};

/// How often a script may leak its memory, through values that contain themselves, within this time; after that, its calls fail until the
/// time has passed. Leaked memory is freed only when the process ends.
const LOSSES_MAX: usize = 4;
const LOSSES_WITHIN: Duration = Duration::from_mins(10);

/// A script, and what is needed to restart it.
pub(super) struct Vm {
    id: ScriptId,
    source: Source,
    terms: Terms,
    runner: Arc<JobRunner>,
    state: Mutex<State>,
}

struct State {
    /// `None` if the script has to restart.
    script: Option<Arc<RhaiScript>>,
    /// What the script has declared, and must declare again after a restart.
    declared: Vec<DeclaredFunction>,
    /// All slots that earlier states have assigned are below this one.
    slots: u32,
    losses: VecDeque<Instant>,
}

/// The id of a handler, and the slot and the name of its function.
#[derive(Debug, PartialEq)]
struct DeclaredFunction(Arc<str>, u32, Arc<str>);

fn declared(handlers: &[Handler]) -> Vec<DeclaredFunction> {
    let one = |it: &Handler| {
        DeclaredFunction(Arc::clone(&it.id), it.function.slot, Arc::clone(&it.function.name))
    };
    handlers.iter().map(one).collect()
}

impl Vm {
    /// Creates the state of a script that was just loaded.
    pub(super) fn new(
        id: ScriptId,
        (source, terms): (Source, Terms),
        runner: Arc<JobRunner>,
        (script, handlers): (RhaiScript, &[Handler]),
    ) -> Self {
        let state = State {
            script: Some(Arc::new(script)),
            declared: declared(handlers),
            slots: 0,
            losses: VecDeque::new(),
        };
        Vm { id, source, terms, runner, state: Mutex::new(state) }
    }

    /// Runs a job with the script, on the calling thread; restarts the script before if necessary.
    pub(super) fn with<T>(
        &self,
        job: impl FnOnce(&RhaiScript) -> Result<T, Raised>,
    ) -> Result<T, Raised> {
        let present = self.state.lock().script.clone();
        let script = match present {
            Some(script) => script,
            None => self.renew()?,
        };
        // The host keeps the error, so it gets a copy that does not count as the script's memory.
        let result = job(&script).map_err(|raised| given(|| raised.clone()));
        if matches!(control::overdue(), Some(Abort::Full(_))) {
            self.wear(&script);
        }
        result
    }

    /// Returns how a call of this function can run inline, if it can.
    pub(super) fn inline(&self, function: &Function, call: &Invocation) -> Option<InlineFunction> {
        self.state.lock().script.as_ref()?.inline(function, call)
    }

    /// Discards the state of a script that filled its memory if, after the call, more than half of the memory is still in use.
    fn wear(&self, script: &Arc<RhaiScript>) {
        let half = isize::try_from(self.terms.limits.memory_limit / 2).unwrap_or(isize::MAX);
        if control::holds() <= half {
            return;
        }
        let mut state = self.state.lock();
        // Another call may have done so already.
        if state.script.as_ref().is_some_and(|it| Arc::ptr_eq(it, script)) {
            state.script = None;
            state.slots = state.slots.max(script.slots());
            drop(state);
            self.runner.end_others();
            tracing::warn!(
                target: "kopf.scripts",
                "{}: {}. Restarting the script: the values of its variables are lost.",
                self.source.name, limits::too_much_memory(self.terms.limits.memory_limit)
            );
        }
    }

    /// Restarts the script, within the call that needs it. Fails if its top level fails or declares other handlers than before.
    fn renew(&self) -> Result<Arc<RhaiScript>, Raised> {
        self.forgive()?;
        let (id, source, terms) = (self.id, &self.source, &self.terms);
        let (mut script, handlers, _) = script::load(id, source, terms).map_err(|error| {
            // The limits of this call apply to the top level, too, and are reported as such.
            control::overdue().map_or_else(
                || Raised::of_host(format!("the script could not be restarted: {}", error.message)),
                errors::aborted,
            )
        })?;
        let mut state = self.state.lock();
        if let Some(script) = &state.script {
            // Another call has restarted it while this one waited.
            return Ok(Arc::clone(script));
        }
        if declared(&handlers) != state.declared {
            return Err(Raised::of_host(
                "the script could not be restarted: it declares different handlers now; touch its file to reload it",
            ));
        }
        // Old references to slots beyond the declared ones are invalid now, and must never refer to new functions.
        script.keep(handlers, state.slots);
        let script = Arc::new(script);
        state.script = Some(Arc::clone(&script));
        Ok(script)
    }

    /// Checks what is still in use after the old state was dropped. Other calls may still hold that state: then this call fails. Otherwise
    /// the memory is leaked, and is not counted any more; fails if that has happened too often.
    fn forgive(&self) -> Result<(), Raised> {
        // A smaller remainder leaves enough memory for the new state.
        let much = isize::try_from(self.terms.limits.memory_limit / 16).unwrap_or(isize::MAX);
        control::look_at_leftovers();
        if control::holds() <= much {
            return Ok(());
        }
        if self.runner.is_shared() {
            // Other calls of the script are about to end and still hold the old state.
            return Err(errors::aborted(Abort::Full(self.terms.limits.memory_limit)));
        }
        let mut state = self.state.lock();
        let now = control::began().unwrap_or_else(Instant::now);
        state.losses.retain(|it| now.duration_since(*it) < LOSSES_WITHIN);
        if state.losses.len() >= LOSSES_MAX {
            return Err(errors::aborted(Abort::Leaking));
        }
        state.losses.push_back(now);
        let lost = control::forgive();
        tracing::warn!(
            target: "kopf.scripts",
            "{}: {} MiB of memory cannot be freed until the process ends, because closures or values contain themselves, such as \
             a closure that captures the variable that holds it. Use a named function (`fn`) for recursion.",
            self.source.name, lost >> 20
        );
        Ok(())
    }
}

impl Drop for Vm {
    /// Drops the script on one of its threads: only these have enough stack for deeply nested values.
    fn drop(&mut self) {
        if let Some(script) = self.state.lock().script.take() {
            self.runner.drop_there(script);
        }
    }
}
