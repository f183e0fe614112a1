//! Sets of scripts that were tried, and the modules that their scripts use.

use std::{collections::BTreeMap, path::PathBuf};

use super::{fingerprint::Fingerprint, problem::SourceProblem};
use crate::scripting::{Modules, Source, shown_module};
use crate::sorted::CollectSorted as _;

/// A set of scripts that is being loaded, or was loaded.
#[derive(Clone, Debug, Default)]
pub struct LoadAttempt {
    /// Without modules: they are known when the set is loaded, and some even later.
    pub(super) scripts: Fingerprint,
    /// The parts of modules that the scripts use, by the name of the script.
    pub(super) modules: BTreeMap<String, Modules>,
}

impl LoadAttempt {
    /// Creates the attempt for a set that was read.
    pub fn of(scripts: &[Source]) -> Self {
        let mut fingerprint = Fingerprint::default();
        for script in scripts {
            fingerprint.add(&script.name, &script.text);
        }
        LoadAttempt::new(scripts, fingerprint)
    }

    /// Creates the attempt for scripts with this fingerprint.
    pub(super) fn new(scripts: &[Source], fingerprint: Fingerprint) -> Self {
        let modules = scripts.iter().map(|it| (it.name.clone(), it.modules.clone()));
        LoadAttempt { scripts: fingerprint, modules: modules.collect_map() }
    }

    /// Creates the attempt for a set that could not be read.
    pub fn of_problem(problem: &SourceProblem) -> Self {
        let scripts = Fingerprint::of_problem(&problem.message);
        LoadAttempt { scripts, modules: BTreeMap::new() }
    }

    /// Returns the fingerprints, with the modules as they were loaded.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        let mut fingerprint = self.scripts.clone();
        for (script, modules) in &self.modules {
            for module in modules.taken() {
                fingerprint.add_module(shown_module(script, &module.name), script, module.digest);
            }
        }
        fingerprint
    }
}

/// The modules in use.
#[derive(Clone, Debug, Default)]
pub(super) struct ModulePaths {
    /// Their names, by the name of the script.
    pub(super) names: BTreeMap<String, Vec<PathBuf>>,
    /// The files of all these modules.
    pub(super) paths: Vec<PathBuf>,
}

impl ModulePaths {
    pub(super) fn of(attempts: [&LoadAttempt; 2]) -> Self {
        let mut known = ModulePaths::default();
        let modules = attempts.into_iter().flat_map(|it| &it.modules);
        for (script, modules) in modules {
            for module in modules.taken() {
                known.names.entry(script.clone()).or_default().push(module.name);
                known.paths.extend(module.path);
            }
        }
        known
    }

    /// Returns the fingerprints of scripts with the current content of their modules.
    pub(super) fn fingerprint(&self, scripts: &[Source]) -> Fingerprint {
        let mut fingerprint = Fingerprint::default();
        for Source { name, text, modules } in scripts {
            fingerprint.add(name, text);
            for module in self.names.get(name).into_iter().flatten() {
                fingerprint.add_module(shown_module(name, module), name, modules.digest(module));
            }
        }
        fingerprint
    }
}
