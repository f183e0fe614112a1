//! What the command line of `kopf dev` means.

use std::path::PathBuf;

use crate::cli::{
    args::DevArgs,
    config::Config,
    environment::Lookup,
    options::{self, RunOptions},
    report::Report,
};

/// `kopf dev`, understood.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cli) struct DevOptions {
    /// What is the same as for `kopf run`.
    pub(super) run: RunOptions,
    /// Files and directories with resource definitions.
    pub(super) definitions: Vec<PathBuf>,
    /// Files and directories with objects.
    pub(super) objects: Vec<PathBuf>,
    /// 0 is any free one.
    pub(super) port: u16,
    /// Where the objects are kept.
    pub(super) data: Option<PathBuf>,
    pub(super) kubeconfig: KubeconfigOption,
    /// Whether pods, deployments and the like come to life.
    pub(super) controllers: bool,
}

impl DevOptions {
    /// What is the same as for `kopf run`.
    pub(in crate::cli) fn run_mut(&mut self) -> &mut RunOptions {
        &mut self.run
    }
}

/// Where the kubeconfig is written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum KubeconfigOption {
    /// To this file.
    File(PathBuf),
    /// To a file of our choice in this directory, which only its user can enter.
    Within(PathBuf),
}

/// Joins what was typed with the environment; what was typed wins.
pub(in crate::cli) fn resolve(
    args: DevArgs,
    lookup: Lookup<'_>,
    config: Option<&Config>,
) -> Result<DevOptions, Report> {
    let kubeconfig = match args.kubeconfig {
        Some(file) => KubeconfigOption::File(file),
        None => KubeconfigOption::Within(directory(lookup)),
    };
    Ok(DevOptions {
        run: options::resolve_run(args.run, lookup, config)?,
        definitions: args.definitions,
        objects: args.objects,
        port: args.port,
        data: args.data,
        kubeconfig,
        controllers: !args.no_controllers,
    })
}

/// Where programs of this user keep what is gone with them. The last resort has our process id, as others may write there too.
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
