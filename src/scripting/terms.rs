//! On which terms scripts run: where they run, their limits, their grants; and their languages.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use crate::call::Fakes;
use crate::logic::access::grants::Grants;
use crate::ports::Clock;
use crate::settings::{Sandbox, Settings, Strict};
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
    /// Whether `print` writes to the log instead of the standard output.
    pub logs_prints: bool,
    /// What the time is for scripts.
    pub clock: Clock,
    /// What responds in the place of servers; only in tests.
    pub fakes: Option<Fakes>,
    /// Which mistakes inside of functions reject a script, if they are looked for.
    pub strict: Strict,
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
            logs_prints: false,
            clock: Clock::system(),
            fakes: None,
            strict: settings.reload.strict,
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

/// A language of scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// `.lua`
    Lua,
    /// `.rhai`
    Rhai,
}

impl Language {
    /// Returns the language of a script or a module of this name.
    pub(crate) fn of_file(name: &str) -> Self {
        let is_rhai = Path::new(name).extension().is_some_and(|it| it == "rhai");
        if is_rhai { Language::Rhai } else { Language::Lua }
    }
}
