//! What the functions of libraries know of the script that calls them.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    heavy::Heavy, http::Web, loops::Loops, passage::Rooms, print::Printer, re::Patterns,
    scratch::Scratch,
};
use crate::call::{Fakes, Notices};
use crate::logic::access::grants::Access;
use crate::ports::Clock;
use crate::scripting::{Terms, values::files::Files};
use crate::settings::Sandbox;
use crate::telemetry::ScriptSeries;

/// Where one script is, and what it may do.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    /// What it is granted.
    pub(super) access: Access,
    /// The variables of this process; at least what is granted.
    pub(super) environment: Arc<BTreeMap<String, String>>,
    /// How much it may use up.
    pub(crate) limits: Sandbox,
    /// The time it is.
    pub(super) clock: Clock,
    /// What `re` has compiled.
    pub(super) patterns: Patterns,
    /// The connections of `http`.
    pub(super) web: Web,
    /// What `metrics` counts.
    pub(super) series: ScriptSeries,
    /// Where `print` goes.
    pub(crate) printer: Printer,
    /// What is looped over.
    pub(super) loops: Loops,
    /// What waits for others.
    pub(super) rooms: Rooms,
    /// What computes for long on purpose.
    pub(crate) heavy: Heavy,
    /// The files next to the script.
    pub(super) files: Files,
    /// What the script was warned of.
    pub(super) notices: Notices,
    /// What `http` keeps in files.
    pub(crate) scratch: Scratch,
    /// What responds in the place of servers; only in tests.
    pub(crate) fakes: Option<Fakes>,
}

impl Surroundings {
    /// Of the script that is called so.
    pub(crate) fn of(terms: &Terms, script: &str, files: Files) -> Arc<Self> {
        Arc::new(Surroundings {
            access: terms.grants.of(script),
            environment: Arc::clone(&terms.environment),
            limits: terms.limits.clone(),
            clock: terms.clock,
            patterns: Patterns::default(),
            web: Web::default(),
            series: terms.metrics.of_script(script),
            printer: Printer::of(script, terms.logs_prints),
            loops: Loops::default(),
            rooms: Rooms::default(),
            heavy: Heavy::default(),
            files,
            notices: Notices::default(),
            scratch: Scratch::default(),
            fakes: terms.fakes.clone(),
        })
    }
}
