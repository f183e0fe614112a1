//! One script, from which each of its VMs is created.

use std::{
    sync::{Arc, OnceLock, atomic::AtomicU32},
    time::Duration,
};

use super::functions::LENT;
use crate::logic::handlers::{function::ScriptId, handler::Handler, lifecycle::Chooser};
use crate::scripting::{Source, Terms, inline, values::memos::Memos};
use crate::settings::Sandbox;
use crate::telemetry::ScriptUsage;

/// The limits of one VM.
#[derive(Clone, Debug)]
pub(in crate::scripting) struct VmLimits {
    /// Of the VM, and of what its calls leave in memory.
    pub(in crate::scripting) sandbox: Sandbox,
    /// The CPU time of one call.
    pub(in crate::scripting) cpu: Duration,
}

/// What does not change when a VM is replaced.
pub(in crate::scripting) struct ActorScript {
    /// Identifies the functions of the script.
    pub(in crate::scripting) id: ScriptId,
    /// Its text and modules.
    pub(in crate::scripting) source: Source,
    /// The limits of each VM.
    pub(in crate::scripting) limits: VmLimits,
    /// The size of what all its VMs have stored in memos.
    pub(in crate::scripting) memos: Arc<Memos>,
    /// The next slot to lend for a function of a call.
    pub(in crate::scripting) lent: Arc<AtomicU32>,
    /// Counts its memory and its CPU time.
    pub(in crate::scripting) usage: ScriptUsage,
    /// Whether its calls can begin inline; known once it is loaded.
    can_be_suspended: OnceLock<bool>,
    /// The terms it runs on.
    pub(in crate::scripting) terms: Terms,
}

/// Why a VM is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scripting) enum Reason {
    /// Its memory was full.
    Memory,
    /// A native function did not return.
    Stuck,
}

impl ActorScript {
    /// Creates a script on these terms.
    pub(in crate::scripting) fn new(id: ScriptId, source: Source, terms: &Terms) -> Self {
        ActorScript {
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
    pub(in crate::scripting) fn examine_text(&self) {
        self.can_be_suspended.get_or_init(|| inline::can_be_suspended(&self.source.text));
    }

    /// Returns whether calls can begin inline.
    pub(in crate::scripting) fn can_be_suspended(&self) -> bool {
        self.can_be_suspended.get().is_some_and(|it| *it)
    }

    /// Logs that the VM is replaced, and counts it.
    pub(in crate::scripting) fn replaced(&self, reason: Reason) {
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
    pub(in crate::scripting) fn broken(&self, problem: &str) {
        let name = &self.source.name;
        tracing::error!(
            target: "kopf.scripts",
            "Script {name} cannot be restarted: {problem}. Its handlers fail until the script is edited or the operator is restarted."
        );
    }
}

/// The declarations of a script's top level: its handlers and the default lifecycles that it set, each in order.
pub(in crate::scripting) type Declarations = (Vec<Handler>, Vec<Chooser>);

/// Identifies a set of declarations. A VM must declare the same as the VM it replaces, because functions are identified by position.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::scripting) struct Print(String);

impl Print {
    /// Returns the fingerprint of these declarations.
    pub(in crate::scripting) fn of(declared: &Declarations) -> Self {
        Print(format!("{declared:?}"))
    }
}
