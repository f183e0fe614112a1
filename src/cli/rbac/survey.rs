//! The scripts of an operator, and the resources that exist for them: its CRDs and the built-in kinds.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::cli::{
    args::InstallArgs,
    config, dev,
    env::variable,
    options::{self, RunOptions},
    report::Report,
    scripts::{UnloadedScripts, terms},
};
use crate::handling::choosing::Choices;
use crate::logic::{
    change::registry::Registry, discovery::served, handlers::handler::Handler,
    object::resource::Resource,
};
use crate::scripting::Source;

/// The CRD file next to an operator.
const DEFINITIONS: &str = "crd.yaml";

/// The properties of an operator that are known without a cluster.
pub(in crate::cli) struct Survey {
    pub(in crate::cli) options: RunOptions,
    pub(in crate::cli) sources: Vec<Source>,
    pub(in crate::cli) registry: Registry,
    /// All resources: built-in ones, those of the CRDs, and those that were assumed.
    pub(in crate::cli) known: Vec<Resource>,
    /// The CRDs that are given, or next to the scripts.
    pub(in crate::cli) crds: Vec<Value>,
    pub(in crate::cli) warnings: Vec<String>,
    choices: Choices,
    served: BTreeSet<Resource>,
}

impl Survey {
    /// Loads the scripts, with the CRDs that are given or next to them.
    pub(in crate::cli) fn of(args: &InstallArgs) -> Result<Self, Report> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|it| Report::failure(format!("cannot start the runtime: {it}")))?;
        let survey = runtime.block_on(Survey::load(args));
        runtime.shutdown_background();
        survey
    }

    async fn load(args: &InstallArgs) -> Result<Self, Report> {
        let run = args.to_run();
        let named = run.config.clone().or_else(|| variable("KOPF_RUN_CONFIG").map(Into::into));
        let config = config::find(named.as_deref(), &run.paths, "".as_ref())?;
        // The environment is that of this machine, not of the operator's pod.
        let options = options::resolve_run(run, &|_name| None, config.as_ref())?;
        let read = UnloadedScripts::files(&options)?;
        let sources = read.scripts.clone();
        let first = read.load(terms(&options), false).await?;
        let definitions = definitions(args, &sources);
        let files = dev::ManifestFiles::read(&definitions, &[])?;
        let dev::Kinds { known, assumed } = dev::kinds_for(&first, &files).await?;
        let mut choices = Choices::default();
        choices.ask(first.host.as_ref(), &first.registry, &known).await;
        let warnings = assumed.iter().map(|it| {
            format!("No CRD for {it}: its group and names are assumed. Pass --crd FILE.")
        });
        let crds = files.into_objects();
        let warnings = warnings.collect();
        let registry = first.registry;
        let picks = |function: &_, resource: &Resource| choices.of(function, resource);
        let served = served::choose(&registry, &known, &picks).resources;
        Ok(Survey { options, sources, registry, known, crds, warnings, choices, served })
    }

    /// Returns the resources that a handler selects, of those that the operator watches.
    pub(in crate::cli) fn resources_of(&self, handler: &Handler) -> Vec<&Resource> {
        let selected = self.selected_by(handler).into_iter();
        selected.filter(|it| self.served.contains(it)).collect()
    }

    /// Returns the resources that a handler selects, such as one for admission.
    pub(in crate::cli) fn selected_by(&self, handler: &Handler) -> Vec<&Resource> {
        let Some(selector) = &handler.selector else { return Vec::new() };
        let picks = |function: &_, resource: &Resource| self.choices.of(function, resource);
        selector.select(&self.known, &picks)
    }
}

fn definitions(args: &InstallArgs, sources: &[Source]) -> Vec<PathBuf> {
    if !args.definitions.is_empty() {
        return args.definitions.clone();
    }
    let beside = sources.iter().filter_map(|it| {
        let directories = Path::new(&it.name).ancestors().skip(1).take(2);
        directories.map(|it| it.join(DEFINITIONS)).find(|it| it.exists())
    });
    let mut found: Vec<PathBuf> = beside.collect();
    found.dedup();
    found
}
