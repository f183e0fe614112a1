//! One script, from which each of its VMs is created.

use std::sync::{Arc, OnceLock, atomic::AtomicU32};

use super::world::{LENT, VmLimits};
use crate::logic::handlers::{function::ScriptId, handler::Handler, lifecycle::Chooser};
use crate::scripting::{Source, Terms, inline, values::memos::Memos};
use crate::telemetry::ScriptUsage;

/// What does not change when a VM is replaced.
pub(super) struct LuaScript {
    /// Identifies the functions of the script.
    pub(super) id: ScriptId,
    /// Its text and modules.
    pub(super) source: Source,
    /// The limits of each VM.
    pub(super) limits: VmLimits,
    /// The size of what all its VMs have stored in memos.
    pub(super) memos: Arc<Memos>,
    /// The next slot to lend for a function of a call.
    pub(super) lent: Arc<AtomicU32>,
    /// Counts its memory and its CPU time.
    pub(super) usage: ScriptUsage,
    /// Whether its calls can begin inline; known once it is loaded.
    can_be_suspended: OnceLock<bool>,
    /// The terms it runs on.
    pub(super) terms: Terms,
}

/// Why a VM is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// Its memory was full.
    Memory,
    /// A native function did not return.
    Stuck,
}

impl LuaScript {
    /// Creates a script on these terms.
    pub(super) fn new(id: ScriptId, source: Source, terms: &Terms) -> Self {
        LuaScript {
            id,
            can_be_suspended: OnceLock::new(),
            usage: terms.metrics.usage_of(&source.name, terms.limits.memory_limit),
            source,
            limits: VmLimits { sandbox: terms.limits.clone(), cpu: terms.cpu_limit },
            memos: Arc::new(Memos::new(terms.limits.memory_limit)),
            lent: Arc::new(AtomicU32::new(LENT)),
            terms: terms.clone(),
        }
    }

    /// Determines whether calls can begin inline. The time grows with the source: call it on the thread of the script.
    pub(super) fn examine_text(&self) {
        self.can_be_suspended.get_or_init(|| inline::can_be_suspended(&self.source.text));
    }

    /// Returns whether calls can begin inline.
    pub(super) fn can_be_suspended(&self) -> bool {
        self.can_be_suspended.get().is_some_and(|it| *it)
    }

    /// Logs that the VM is replaced, and counts it.
    pub(super) fn replaced(&self, reason: Reason) {
        let name = &self.source.name;
        let label = match reason {
            Reason::Memory => {
                tracing::warn!(
                    target: "kopf.scripts",
                    "Script {name} reached its memory limit and is restarted; running calls are retried. If it needs more memory, \
                     raise settings.sandbox.memory_limit."
                );
                "memory"
            }
            Reason::Stuck => {
                tracing::error!(
                    target: "kopf.scripts",
                    "Script {name} does not respond and is restarted on another thread; running calls are retried. This is a bug in \
                     kopf: please report it with the script."
                );
                "stuck"
            }
        };
        self.terms.metrics.vm_restarted(name, label);
    }

    /// Logs that the script could not be restarted.
    pub(super) fn broken(&self, problem: &str) {
        let name = &self.source.name;
        tracing::error!(
            target: "kopf.scripts",
            "Script {name} cannot be restarted: {problem}. Its handlers fail until the script is edited or the operator is restarted."
        );
    }
}

/// The declarations of a script's top level: its handlers and the default lifecycles that it set, each in order.
pub(super) type LuaDeclarations = (Vec<Handler>, Vec<Chooser>);

/// Identifies a set of declarations. A VM must declare the same as the VM it replaces, because functions are identified by position.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Print(String);

impl Print {
    /// Returns the fingerprint of these declarations.
    pub(super) fn of(declared: &LuaDeclarations) -> Self {
        Print(format!("{declared:?}"))
    }
}
