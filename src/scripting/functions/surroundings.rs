//! What the functions of libraries know of the script that calls them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use parking_lot::Mutex;

use super::{http::Web, loops::Loops, passage::Rooms, print::Printer, re::Patterns};
use crate::logic::access::grants::Access;
use crate::ports::Clock;
use crate::scripting::Terms;
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
    /// The files next to the script.
    pub(super) files: Files,
    /// What the script was warned of.
    pub(super) notices: Notices,
}

/// Warnings that are given once.
#[derive(Debug, Default)]
pub(super) struct Notices(Mutex<BTreeSet<String>>);

impl Notices {
    /// Returns whether there was no warning about this yet; of too many, there is none.
    pub(super) fn is_first(&self, about: &str) -> bool {
        const NOTICES_MAX: usize = 1_000;
        let mut given = self.0.lock();
        given.len() < NOTICES_MAX && given.insert(about.to_owned())
    }
}

/// Reads files next to a script, as its modules are found.
#[derive(Clone, Default)]
pub(crate) struct Files(Option<Arc<Read>>);

type Read = dyn Fn(&str) -> Result<Arc<str>, Unread> + Send + Sync;

/// Why a file was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It cannot be read, whatever is on the disk.
    Refused(String),
    /// It is not there now.
    Missing(String),
}

impl Files {
    /// Reads them with this function.
    pub(crate) fn by(
        read: impl Fn(&str) -> Result<Arc<str>, Unread> + Send + Sync + 'static,
    ) -> Self {
        Files(Some(Arc::new(read)))
    }

    /// Returns the text of a file.
    pub(super) fn read(&self, name: &str) -> Result<Arc<str>, Unread> {
        match &self.0 {
            Some(read) => read(name),
            None => Err(Unread::Missing("the script is in no directory".into())),
        }
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Files")
    }
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
            files,
            notices: Notices::default(),
        })
    }
}
