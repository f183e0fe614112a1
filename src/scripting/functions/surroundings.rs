//! The state of a script that its library functions use.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    heavy::Heavy, http::HttpClients, loops::Loops, passage::Rooms, print::Printer, re::Patterns,
    scratch::Scratch,
};
use crate::call::{Fakes, Notices};
use crate::logic::access::grants::Access;
use crate::ports::Clock;
use crate::scripting::{Terms, values::files::FileReader};
use crate::settings::Sandbox;
use crate::telemetry::ScriptSeries;

/// The permissions, limits and state of one script.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    /// The permissions of the script.
    pub(super) access: Access,
    /// The variables of this process, at least the granted ones.
    pub(super) environment: Arc<BTreeMap<String, String>>,
    /// The limits of memory and sizes.
    pub(crate) limits: Sandbox,
    /// The clock that the script sees.
    pub(super) clock: Clock,
    /// The compiled patterns of `re`.
    pub(super) patterns: Patterns,
    /// The connections of `http`.
    pub(super) web: HttpClients,
    /// The numbers of `metrics`.
    pub(super) series: ScriptSeries,
    /// The output of `print`.
    pub(crate) printer: Printer,
    /// The open streams, whose number is limited.
    pub(super) loops: Loops,
    /// The room of pending calls.
    pub(super) rooms: Rooms,
    /// The expensive work, one job at a time.
    pub(crate) heavy: Heavy,
    /// The files next to the script.
    pub(super) files: FileReader,
    /// The warnings that were already logged.
    pub(super) notices: Notices,
    /// The scratch files of `http`.
    pub(crate) scratch: Scratch,
    /// Respond in place of servers; only in tests.
    pub(crate) fakes: Option<Fakes>,
    /// Whether requests to other servers than the cluster are refused.
    pub(super) is_dry: bool,
}

impl Surroundings {
    /// Returns the state of the script with this name in messages.
    pub(crate) fn of(terms: &Terms, script: &str, files: FileReader) -> Arc<Self> {
        Arc::new(Surroundings {
            access: terms.grants.of(script),
            environment: Arc::clone(&terms.environment),
            limits: terms.limits.clone(),
            clock: terms.clock,
            patterns: Patterns::default(),
            web: HttpClients::default(),
            series: terms.metrics.of_script(script),
            printer: Printer::of(script, terms.logs_prints),
            loops: Loops::default(),
            rooms: Rooms::default(),
            heavy: Heavy::default(),
            files,
            notices: Notices::default(),
            scratch: Scratch::default(),
            fakes: terms.fakes.clone(),
            is_dry: terms.is_dry,
        })
    }

    /// Refuses in `kopf plan` what has effects outside of the cluster, such as "send GET URL".
    pub(super) fn check_not_dry(&self, what: impl FnOnce() -> String) -> Result<(), String> {
        let refused = || Err(format!("kopf plan does not {}: skip it if ctx.dry", what()));
        if self.is_dry { refused() } else { Ok(()) }
    }
}
