//! One script, as each of its VMs is made from it.

use std::sync::{Arc, atomic::AtomicU32};

use super::world::{LENT, Limits};
use crate::logic::handlers::{function::ScriptId, handler::Handler, lifecycle::Chooser};
use crate::scripting::{Source, Terms, values::memos::Memos};
use crate::telemetry::ScriptUsage;

/// What does not change when a VM is replaced.
pub(super) struct Script {
    /// Its functions are known by this.
    pub(super) id: ScriptId,
    /// Its text and modules.
    pub(super) source: Source,
    /// What each VM may use up.
    pub(super) limits: Limits,
    /// What it has put into memos, whichever VM did.
    pub(super) memos: Arc<Memos>,
    /// The next slot for a function that a call leaves behind.
    pub(super) lent: Arc<AtomicU32>,
    /// Counts its memory and its CPU time.
    pub(super) usage: ScriptUsage,
    /// The terms it runs on.
    pub(super) terms: Terms,
}

/// Why a VM is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// Its memory was full.
    Memory,
    /// A native did not return.
    Stuck,
}

impl Script {
    /// Creates a script on these terms.
    pub(super) fn new(id: ScriptId, source: Source, terms: &Terms) -> Self {
        let usage = terms.metrics.usage_of(&source.name, terms.limits.memory_limit);
        Script {
            id,
            source,
            usage,
            limits: Limits { sandbox: terms.limits.clone(), cpu: terms.cpu_limit },
            memos: Arc::new(Memos::new(terms.limits.memory_limit)),
            lent: Arc::new(AtomicU32::new(LENT)),
            terms: terms.clone(),
        }
    }

    /// Logs that its VM is replaced, and counts it.
    pub(super) fn replaced(&self, reason: Reason) {
        let name = &self.source.name;
        match reason {
            Reason::Memory => tracing::warn!(
                target: "kopf.scripts",
                "Script {name} has filled its memory and is started afresh; its running calls are made again. \
                 If it needs so much, raise settings.sandbox.memory_limit."
            ),
            Reason::Stuck => tracing::error!(
                target: "kopf.scripts",
                "Script {name} does not respond and is started afresh on another thread; its running calls are made again. \
                 This is a bug of the operator: please report it with the script."
            ),
        }
        self.terms.metrics.vm_restarted(name, reason.label());
    }

    /// Logs that it could not be restarted.
    pub(super) fn broken(&self, problem: &str) {
        let name = &self.source.name;
        tracing::error!(
            target: "kopf.scripts",
            "Script {name} cannot be started afresh: {problem}. Its handlers fail until it can; edit it, or restart the operator."
        );
    }
}

impl Reason {
    fn label(self) -> &'static str {
        match self {
            Reason::Memory => "memory",
            Reason::Stuck => "stuck",
        }
    }
}

/// What the top level of a script declared: its handlers and the default lifecycles it set, each in order.
pub(super) type Declared = (Vec<Handler>, Vec<Chooser>);

/// What identifies a set of declarations: a VM must declare what the one before it did, or its functions would be others.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Print(String);

impl Print {
    /// Returns the print of these declarations.
    pub(super) fn of(declared: &Declared) -> Self {
        Print(format!("{declared:?}"))
    }
}
