//! Resolves the command line of `kopf dev`.

use std::path::{Path, PathBuf};

use super::access::DevAccess;
use crate::cli::{
    args::DevArgs,
    config::Config,
    environment::Lookup,
    options::{self, RunOptions},
    report::Report,
};

/// The files next to the scripts that are used by default.
const DEFINITIONS: &str = "crd.yaml";
const OBJECTS: &str = "object.yaml";

/// The resolved options of `kopf dev`.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cli) struct DevOptions {
    /// The options shared with `kopf run`.
    pub(super) run: RunOptions,
    /// Files and directories of CRDs.
    pub(super) definitions: Vec<PathBuf>,
    /// Files and directories with objects.
    pub(super) objects: Vec<PathBuf>,
    /// 0 is any free port.
    pub(super) port: u16,
    /// The file that persists the objects.
    pub(super) data: Option<PathBuf>,
    pub(super) kubeconfig: KubeconfigOption,
    /// Whether the controllers of pods, deployments and the like run.
    pub(super) controllers: bool,
    /// The permissions of the operator.
    pub(super) access: DevAccess,
}

impl DevOptions {
    /// Returns the options shared with `kopf run`.
    pub(in crate::cli) fn run_mut(&mut self) -> &mut RunOptions {
        &mut self.run
    }
}

/// The location of the kubeconfig.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum KubeconfigOption {
    /// A file that the user names.
    File(PathBuf),
    /// A generated file in this directory, which only its user can enter.
    Within(PathBuf),
}

/// Combines the command line with the environment; the command line has precedence.
pub(in crate::cli) fn resolve(
    args: DevArgs,
    lookup: Lookup<'_>,
    config: Option<&Config>,
) -> Result<DevOptions, Report> {
    if args.foreign_kubeconfig.is_some() {
        let hint = "--write-kubeconfig FILE chooses where its kubeconfig is written; `kopf run --kubeconfig FILE` uses a cluster";
        return Err(Report::usage("kopf dev has its own API server, so it uses no kubeconfig")
            .with_hint(hint));
    }
    let kubeconfig = match args.kubeconfig {
        Some(file) => KubeconfigOption::File(file),
        None => KubeconfigOption::Within(directory(lookup)),
    };
    let beside = |given: Vec<PathBuf>, name: &str| {
        let found = Some(home(&args.run.paths).join(name)).filter(|it| it.is_file());
        if given.is_empty() { found.into_iter().collect() } else { given }
    };
    let definitions = beside(args.definitions, DEFINITIONS);
    let objects = beside(args.objects, OBJECTS);
    let mut run = options::resolve_run(args.run, lookup, config)?;
    run.log.unhandled = true;
    Ok(DevOptions {
        run,
        definitions,
        objects,
        port: args.port,
        data: args.data,
        kubeconfig,
        controllers: !args.no_controllers,
        access: DevAccess::resolve(&args.access)?,
    })
}

/// Returns the directory of the scripts, where `kopf init` writes a CRD and an object, too.
fn home(paths: &[PathBuf]) -> &Path {
    match paths.first() {
        None => Path::new(""),
        Some(path) if path.is_dir() => path,
        Some(path) => path.parent().unwrap_or(Path::new("")),
    }
}

/// Returns the directory for temporary files of this user. The last resort contains the process id, because others may write there, too.
fn directory(lookup: Lookup<'_>) -> PathBuf {
    let place = |name: &str, below: &str| {
        let base = lookup(name).map(PathBuf::from).filter(|it| it.is_absolute())?;
        Some(base.join(below))
    };
    place("XDG_RUNTIME_DIR", "kopf")
        .or_else(|| place("XDG_CACHE_HOME", "kopf"))
        .or_else(|| place("HOME", ".cache/kopf"))
        .unwrap_or_else(|| std::env::temp_dir().join(format!("kopf-{}", std::process::id())))
}
