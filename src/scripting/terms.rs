//! The terms on which scripts run: placement, limits, grants; and their languages.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use tokio::task::{JoinError, spawn_blocking};

use crate::call::Fakes;
use crate::logic::access::grants::Grants;
use crate::ports::Clock;
use crate::settings::{Sandbox, Settings, Strict};
use crate::telemetry::Metrics;

/// The terms on which scripts run.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Where their VMs run.
    pub placement: Placement,
    /// The limits of memory and sizes.
    pub limits: Sandbox,
    /// Maximum CPU time of one call or of the top level: `settings.execution.cpu_limit`.
    pub cpu_limit: Duration,
    /// What they may access outside of their sandbox.
    pub grants: Arc<Grants>,
    /// Counts restarts of scripts.
    pub metrics: Metrics,
    /// The variables of this process, at least those that are granted.
    pub environment: Arc<BTreeMap<String, String>>,
    /// Whether `print` writes to the log instead of the standard output.
    pub logs_prints: bool,
    /// The clock that scripts see.
    pub clock: Clock,
    /// Respond in place of servers; only in tests.
    pub fakes: Option<Fakes>,
    /// Whether requests to other servers than the cluster are refused: `kopf plan`.
    pub is_dry: bool,
    /// Which errors in the bodies of functions reject a script, if it is checked for them.
    pub strict: Strict,
}

impl Terms {
    /// Returns terms with the limits of these settings, and no grants.
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
            is_dry: false,
            strict: settings.reload.strict,
        }
    }
}

impl From<Placement> for Terms {
    /// Returns terms with the default limits, and no grants.
    fn from(placement: Placement) -> Self {
        Terms::of(placement, &Settings::default())
    }
}

/// Where the VMs of scripts run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Each script on separate threads, so that a busy one delays no other.
    Threads,
    /// On the runtime of the caller, whose clock may be paused: for tests.
    CurrentRuntime,
}

impl Placement {
    /// Does work that grows with the source of a script, on another thread: the operator continues meanwhile.
    ///
    /// # Errors
    /// Fails if the work panics.
    pub(super) async fn run_blocking<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        match self {
            Placement::Threads => spawn_blocking(work).await,
            Placement::CurrentRuntime => Ok(work()),
        }
    }
}

/// A language of scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Luau, in files `*.lua`.
    Lua,
    /// Rhai, in files `*.rhai`.
    Rhai,
}

impl Language {
    /// Returns the language of a script or a module of this name.
    pub(crate) fn of_file(name: &str) -> Self {
        let is_rhai = Path::new(name).extension().is_some_and(|it| it == "rhai");
        if is_rhai { Language::Rhai } else { Language::Lua }
    }
}
