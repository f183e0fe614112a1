//! Adapter: Lua and Rhai. One script file is one sandboxed VM and one failure domain.
//!
//! [`ScriptHost`] is the `call::Scripts` of the operator: it finds the script of a function and hands the call to its
//! engine. Engines differ only in how values and calls look inside; what a script sees is decided in `scripting/handles/ctx.rs`,
//! `handles/`, `scripting/functions/kopf.rs` and `scripting/functions/`, what a declaration means in `logic/handlers/declare/`.

mod functions;
mod handles;
mod host;
mod lua;
mod rhai;
pub mod surface;
mod values;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

pub use self::host::{Prepared, ScriptHost, ScriptSet};
use crate::call::Scripts;
use crate::logic::{
    access::grants::Grants,
    handlers::{function::ScriptId, handler::Handler, lifecycle::Chooser},
};
use crate::ports::{BoxFuture, Clock};
pub use crate::scripting::host::{
    diagnostics::LoadError,
    modules::{Digest, LoadedModule, Modules, shown as shown_module},
};
use crate::settings::{Sandbox, Settings};
use crate::telemetry::Metrics;

/// On which terms scripts run.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Where.
    pub placement: Placement,
    /// How much they may use up.
    pub limits: Sandbox,
    /// How long one call, or the top level, may compute: `settings.execution.cpu_limit`.
    pub cpu_limit: Duration,
    /// What they may reach outside of their sandbox.
    pub grants: Arc<Grants>,
    /// Where it is counted that a script had to be started afresh.
    pub metrics: Metrics,
    /// The variables of this process, at least those that are granted.
    pub environment: Arc<BTreeMap<String, String>>,
    /// What the time is for scripts.
    pub clock: Clock,
}

impl Terms {
    /// With the limits of these settings, and no grants.
    pub fn of(placement: Placement, settings: &Settings) -> Self {
        let (limits, cpu_limit) = (settings.sandbox.clone(), settings.execution.cpu_limit);
        Terms {
            placement,
            limits,
            cpu_limit,
            grants: Arc::default(),
            metrics: Metrics::default(),
            environment: Arc::default(),
            clock: Clock::system(),
        }
    }
}

impl From<Placement> for Terms {
    /// The usual limits, and no grants.
    fn from(placement: Placement) -> Self {
        Terms::of(placement, &Settings::default())
    }
}

/// Where the VMs of scripts run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Each script on threads of its own, so that a busy one delays nobody.
    Threads,
    /// On the runtime of the caller, whose clock may be paused: for tests.
    CurrentRuntime,
}

/// One script.
#[derive(Clone, Debug)]
pub struct Source {
    /// As shown in messages: the path as the user gave it.
    pub name: String,
    /// Its content.
    pub text: String,
    /// What it can load; and, when it has been loaded or could not be, what it did load.
    pub modules: Modules,
}

impl Source {
    /// A script without modules.
    pub fn alone(name: impl Into<String>, text: impl Into<String>) -> Self {
        Source { name: name.into(), text: text.into(), modules: Modules::default() }
    }
}

/// A script whose top level has run.
pub(crate) struct Loaded {
    /// Calls its functions; it knows no others.
    pub(crate) engine: Arc<dyn Scripts>,
    /// What it declared, in order.
    pub(crate) handlers: Vec<Handler>,
    /// The default lifecycles it set, in order.
    pub(crate) lifecycles: Vec<Chooser>,
}

/// Loads one script: compiles it, runs its top level, collects its declarations.
pub(crate) type Load =
    fn(ScriptId, &Source, &Terms) -> BoxFuture<'static, Result<Loaded, LoadError>>;
