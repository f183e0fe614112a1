//! The present state of a script, and its replacement when it has filled its memory.
//!
//! Everything that a script keeps lives in its [`Script`]. When a call is aborted because the memory is full, and most of it
//! is still in use after the call, the script starts afresh: its top level runs again, by the next call. The references
//! that the inner side holds mean the same functions as before, because the same text declares them in the same order.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    control::{self, Abort, given},
    errors,
    runner::Runner,
    script::{self, Script},
};
use crate::call::Invocation;
use crate::logic::handlers::{
    function::{Function, ScriptId},
    handler::Handler,
    outcome::Raised,
};
use crate::scripting::{Source, Terms, values::limits};

/// A script may lose its memory to values that contain themselves so often within this time; then it is stopped until that
/// has passed. Such memory comes back only when the process ends.
const LOSSES_MAX: usize = 4;
const LOSSES_WITHIN: Duration = Duration::from_mins(10);

/// A script, and how to make it anew.
pub(super) struct Vm {
    id: ScriptId,
    source: Source,
    terms: Terms,
    runner: Arc<Runner>,
    state: Mutex<State>,
}

struct State {
    /// `None` if it has to start afresh.
    script: Option<Arc<Script>>,
    /// What it declared: what it has to declare again.
    declared: Vec<Declared>,
    /// The slots that were given away.
    slots: u32,
    losses: VecDeque<Instant>,
}

/// A handler and the place of its function.
#[derive(Debug, PartialEq)]
struct Declared(Arc<str>, u32, Arc<str>);

fn declared(handlers: &[Handler]) -> Vec<Declared> {
    let one = |it: &Handler| {
        Declared(Arc::clone(&it.id), it.function.slot, Arc::clone(&it.function.name))
    };
    handlers.iter().map(one).collect()
}

impl Vm {
    /// Creates the state of a script that was just loaded.
    pub(super) fn new(
        id: ScriptId,
        (source, terms): (Source, Terms),
        runner: Arc<Runner>,
        (script, handlers): (Script, &[Handler]),
    ) -> Self {
        let state = State {
            script: Some(Arc::new(script)),
            declared: declared(handlers),
            slots: 0,
            losses: VecDeque::new(),
        };
        Vm { id, source, terms, runner, state: Mutex::new(state) }
    }

    /// Runs a job with the script, on one of its threads.
    pub(super) fn with<T>(
        &self,
        job: impl FnOnce(&Script) -> Result<T, Raised>,
    ) -> Result<T, Raised> {
        let present = self.state.lock().script.clone();
        let script = match present {
            Some(script) => script,
            None => self.renew()?,
        };
        // An error is the host's. The copy outlives the original, which is the script's.
        let result = job(&script).map_err(|raised| given(|| raised.clone()));
        if matches!(control::overdue(), Some(Abort::Full(_))) {
            self.wear(&script);
        }
        result
    }

    /// Returns whether a call of this function is short.
    pub(super) fn is_short(&self, function: &Function, call: &Invocation) -> bool {
        let state = self.state.lock();
        state.script.as_ref().is_some_and(|it| it.is_short(function, call))
    }

    /// The memory was full. If it is still, without what the call had, the script cannot go on as it is.
    fn wear(&self, script: &Arc<Script>) {
        let half = isize::try_from(self.terms.limits.memory_limit / 2).unwrap_or(isize::MAX);
        if control::holds() <= half {
            return;
        }
        let mut state = self.state.lock();
        // Another call may have been first.
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

    /// Restarts the script, within the call that needs it.
    fn renew(&self) -> Result<Arc<Script>, Raised> {
        self.forgive()?;
        let (id, source, terms) = (self.id, &self.source, &self.terms);
        let (mut script, handlers, _) = script::load(id, source, terms).map_err(|error| {
            // The limits of this call hold for the top level too, and are told as such.
            control::overdue().map_or_else(
                || Raised::of_host(format!("the script could not be restarted: {}", error.message)),
                errors::aborted,
            )
        })?;
        let mut state = self.state.lock();
        if let Some(script) = &state.script {
            // Another call was faster while this one waited.
            return Ok(Arc::clone(script));
        }
        if declared(&handlers) != state.declared {
            return Err(Raised::of_host(
                "the script could not be restarted: it declares different handlers now; touch its file to reload it",
            ));
        }
        // References of before to later slots mean nothing now, and must never mean something else.
        script.keep(handlers, state.slots);
        let script = Arc::new(script);
        state.script = Some(Arc::clone(&script));
        Ok(script)
    }

    /// Looks at what is left when the old state is gone: memory that nobody can reach any more.
    fn forgive(&self) -> Result<(), Raised> {
        // Less is no reason to stop anything: there is room for the new state.
        let much = isize::try_from(self.terms.limits.memory_limit / 16).unwrap_or(isize::MAX);
        control::look_at_leftovers();
        if control::holds() <= much {
            return Ok(());
        }
        if self.runner.is_shared() {
            // Others of its calls are about to end, and hold the old state.
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
    /// Drops the script on one of its threads: values may be nested so deep that only these have the stack for it.
    fn drop(&mut self) {
        if let Some(script) = self.state.lock().script.take() {
            self.runner.drop_there(script);
        }
    }
}
