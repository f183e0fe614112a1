//! Combines the command line, the environment and `kopf.yaml`.
//!
//! A pure function from [`RunArgs`], a lookup of variables and a file to [`RunOptions`]. The command line has precedence over the
//! environment, and the environment over the file.

use std::path::PathBuf;

use crate::cli::{
    args::{ClusterArgs, ColorWhen, LogArgs, LogFormat, RunArgs},
    config::Config,
    environment::{self, Environment, Lookup},
    report::Report,
};
use crate::cluster::ConfigOverrides;
use crate::features::probes::{ProbeEndpoint, UrlError};
use crate::logic::{access::grants::Grants, configure};
use crate::settings::Settings;
use webhooks::Webhooks;

mod address;
mod grants;
mod scripts;
#[cfg(test)]
mod tests;
mod webhooks;

pub use crate::cli::assignment::Assignment;
pub use crate::sources::MapOption;
pub use address::Address;
pub use scripts::ScriptOptions;

/// The resolved options of `kopf run`.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOptions {
    /// The paths of scripts; empty: the default locations, unless there are `ConfigMap`s.
    pub paths: Vec<PathBuf>,
    /// Other sources of scripts, and whether changes take effect.
    pub scripts: ScriptOptions,
    /// The cluster and the credentials.
    pub cluster: ConfigOverrides,
    /// The permissions of scripts.
    pub grants: Grants,
    /// The namespaces to serve.
    pub scope: ScopeOption,
    /// The settings, before start-up handlers change them.
    pub settings: Settings,
    /// The endpoint of the results of probes; `None`: not served.
    pub liveness: Option<ProbeEndpoint>,
    /// The address of health and metrics; `None`: not served.
    pub health: Option<Address>,
    /// The options of the log.
    pub log: LogOptions,
    /// Messages for the log, once it is open.
    pub notes: Vec<Note>,
}

/// A message for the log.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// A line at the level of information.
    Info(String),
    /// A line at the level of warnings.
    Warning(String),
}

impl Note {
    /// Returns the message without its level.
    pub fn text(&self) -> &str {
        match self {
            Note::Info(text) | Note::Warning(text) => text,
        }
    }
}

/// The namespaces to serve.
#[derive(Clone, Debug, PartialEq)]
pub enum ScopeOption {
    /// The whole cluster, as requested.
    Cluster,
    /// The whole cluster by default, with a warning.
    Unsaid,
    /// The namespaces that match one of these patterns.
    Namespaces(Vec<String>),
}

/// The options of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogOptions {
    /// The verbosity of the log.
    pub verbosity: Verbosity,
    /// The format of lines.
    pub format: LogFormat,
    /// Whether messages about an object start with its name.
    pub prefix: bool,
    /// The key of the object in JSON lines.
    pub refkey: String,
    /// Whether lines have colors.
    pub color: ColorWhen,
    /// Whether changes that no handler handles are logged.
    pub unhandled: bool,
}

impl LogOptions {
    /// Returns the options of interactive commands: only problems, as messages.
    pub(in crate::cli) fn of_commands() -> Self {
        LogOptions {
            verbosity: Verbosity::Quiet,
            format: LogFormat::Plain,
            prefix: true,
            refkey: "object".into(),
            color: ColorWhen::Auto,
            unhandled: false,
        }
    }
}

/// The verbosity of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verbosity {
    /// `-q`: warnings and errors.
    Quiet,
    /// The default: changes of objects.
    #[default]
    Normal,
    /// `-v`: also decisions of the operator, with their reasons.
    Verbose,
    /// `-d`: also the logs of libraries.
    Debug,
}

/// The priority of `--dev`.
pub(in crate::cli) const PRIORITY_DEV: i64 = 666;

/// Combines the command line with the environment and the file, in this order of precedence.
pub fn resolve_run(
    args: RunArgs,
    lookup: Lookup<'_>,
    config: Option<&Config>,
) -> Result<RunOptions, Report> {
    let variables = Environment::new(lookup, "RUN");
    refuse_modules(&args, &variables)?;
    let none = Config::default();
    let file = config.unwrap_or(&none);
    let scope = scope(&args, &variables, file)?;
    let scripts = scripts::scripts(&args, &variables, file)?;
    let grants = grants::grants(&args.grants, &variables, file)?;
    let mut settings = Settings::default();
    settings.peering.clusterwide = match scope {
        ScopeOption::Cluster | ScopeOption::Unsaid => true,
        ScopeOption::Namespaces(_) => false,
    };
    apply(&mut settings, &file.settings)?;
    apply_peering(&mut settings, &PeeringOptions::of_file(file));
    Webhooks::of_file(file).apply(&mut settings)?;
    apply(&mut settings, &environment::settings(lookup)?)?;
    apply_peering(&mut settings, &PeeringOptions::of_environment(&variables)?);
    Webhooks::of_environment(&variables)?.apply(&mut settings)?;
    let (assignments, outdated) = typed_settings(&args.settings)?;
    apply(&mut settings, &assignments)?;
    apply_peering(&mut settings, &PeeringOptions::typed(&args));
    Webhooks::typed(&args).apply(&mut settings)?;
    let mut notes: Vec<_> = config
        .map(|it| Note::Info(format!("Reading options and settings from {}.", it.path.display())))
        .into_iter()
        .collect();
    notes.extend(grants::note(&grants));
    notes.extend(file.warnings.iter().cloned().chain(outdated).map(Note::Warning));
    let of_file = |name: &str| Some(file.text(name)?.0.to_owned());
    let liveness = args.liveness.or_else(|| variables.text("LIVENESS_ENDPOINT"));
    let liveness = liveness.or_else(|| of_file("liveness"));
    let health = args.health.or_else(|| variables.text("HEALTH")).or_else(|| of_file("health"));
    Ok(RunOptions {
        scripts,
        cluster: ConfigOverrides::default(),
        grants,
        scope,
        settings,
        liveness: liveness.map(|it| endpoint(&it)).transpose()?,
        health: health.map(|it| address(&it)).transpose()?,
        log: log(args.log, &variables, file)?,
        paths: if args.paths.is_empty() { file.paths() } else { args.paths },
        notes,
    })
}

/// Rejects modules, which contain Python handlers.
fn refuse_modules(args: &RunArgs, variables: &Environment<'_>) -> Result<(), Report> {
    let place = match (args.modules.first(), variables.text("MODULES")) {
        (Some(name), _) => format!("--module {name}"),
        (None, Some(_)) => variables.name("MODULES"),
        (None, None) => return Ok(()),
    };
    Err(Report::usage(format!("{place}: Python modules are not supported"))
        .with_hint("pass script files or their directory, such as path/to/handlers.lua"))
}

fn apply(settings: &mut Settings, assignments: &[Assignment]) -> Result<(), Report> {
    for Assignment { setting, value, origin } in assignments {
        setting
            .set(settings, value)
            .map_err(|problem| Report::usage(format!("{origin}: {problem}")))?;
    }
    Ok(())
}

/// Reads `--set`. Returns the settings, and warnings about deprecated names.
fn typed_settings(typed: &[String]) -> Result<(Vec<Assignment>, Vec<String>), Report> {
    let (mut assignments, mut outdated) = (Vec::new(), Vec::new());
    for text in typed {
        let wrong = |problem: String| Report::usage(format!("--set {text}: {problem}"));
        let parts = text.split_once('=').and_then(|(name, value)| {
            let name = name.trim();
            let (group, name) = name.strip_prefix("settings.").unwrap_or(name).split_once('.')?;
            Some((group, name, value))
        });
        let (group, name, value) = parts.ok_or_else(|| {
            wrong("not a setting".into())
                .with_hint("write it as GROUP.NAME=VALUE, such as queueing.worker_limit=20")
        })?;
        let (setting, old) = configure::find(group, name).map_err(wrong)?;
        outdated.extend(old.map(|it| format!("--set {text}: {}", it.0)));
        let value = environment::value(setting, value).map_err(wrong)?;
        assignments.push(Assignment { setting, value, origin: "--set".into() });
    }
    Ok((assignments, outdated))
}

/// The options that set settings, from one source.
struct PeeringOptions {
    standalone: bool,
    name: Option<String>,
    priority: Option<i64>,
    leader_elect: bool,
    lease: Option<String>,
}

impl PeeringOptions {
    fn typed(args: &RunArgs) -> Self {
        let priority = if args.dev { Some(PRIORITY_DEV) } else { args.priority };
        PeeringOptions {
            standalone: args.standalone,
            name: args.peering.clone(),
            priority,
            leader_elect: args.leader_elect,
            lease: args.lease.clone(),
        }
    }

    fn of_environment(variables: &Environment<'_>) -> Result<Self, Report> {
        let dev = variables.flag("DEV")?.then_some(PRIORITY_DEV);
        Ok(PeeringOptions {
            standalone: variables.flag("STANDALONE")?,
            name: variables.text("PEERING"),
            priority: dev.or(variables.number("PRIORITY")?),
            leader_elect: variables.flag("LEADER_ELECT")?,
            lease: variables.text("LEASE"),
        })
    }

    fn of_file(file: &Config) -> Self {
        let dev = file.flag("dev").unwrap_or(false).then_some(PRIORITY_DEV);
        PeeringOptions {
            standalone: file.flag("standalone").unwrap_or(false),
            name: file.text("peering").map(|(name, _)| name.to_owned()),
            priority: dev.or(file.number("priority")),
            leader_elect: file.flag("leader-elect").unwrap_or(false),
            lease: file.text("lease").map(|(name, _)| name.to_owned()),
        }
    }
}

fn apply_peering(settings: &mut Settings, options: &PeeringOptions) {
    let peering = &mut settings.peering;
    // Absent does not mean false: the settings may set it, too.
    peering.standalone |= options.standalone;
    if let Some(name) = &options.name {
        peering.name.clone_from(name);
        peering.mandatory = true;
    }
    if let Some(priority) = options.priority {
        peering.priority = priority;
    }
    settings.leadership.enabled |= options.leader_elect;
    if let Some(name) = &options.lease {
        settings.leadership.name.clone_from(name);
    }
}

/// Combines the scopes: one on the command line or in the environment replaces that of the file.
fn scope(
    args: &RunArgs,
    variables: &Environment<'_>,
    file: &Config,
) -> Result<ScopeOption, Report> {
    let mut clusterwide = args.all_namespaces || variables.flag("CLUSTERWIDE")?;
    let mut namespaces = args.namespaces.clone();
    if namespaces.is_empty() {
        let listed = variables.text("NAMESPACES").unwrap_or_default();
        namespaces.extend(listed.split_whitespace().map(str::to_owned));
    }
    namespaces.extend(variables.text("NAMESPACE"));
    let mut hint =
        "also check KOPF_RUN_CLUSTERWIDE, KOPF_RUN_NAMESPACES and KOPF_RUN_NAMESPACE".to_owned();
    if !clusterwide && namespaces.is_empty() {
        clusterwide = file.flag("all-namespaces").unwrap_or(false);
        namespaces = file.texts("namespace").unwrap_or_default();
        hint = format!("both are in {}", file.path.display());
    }
    match (clusterwide, namespaces.is_empty()) {
        (true, false) => {
            Err(Report::usage("Either --namespace or --all-namespaces can be used, not both.")
                .with_hint(hint))
        }
        (true, true) => Ok(ScopeOption::Cluster),
        (false, true) => Ok(ScopeOption::Unsaid),
        (false, false) => Ok(ScopeOption::Namespaces(namespaces)),
    }
}

/// Parses a URL. As in Kopf, an invalid one is not a usage error, but fails before anything runs.
fn endpoint(url: &str) -> Result<ProbeEndpoint, Report> {
    url.parse().map_err(|error: UrlError| {
        Report::failure(error.to_string())
            .with_hint("-L/--liveness takes a URL such as http://0.0.0.0:8080/healthz")
    })
}

fn address(text: &str) -> Result<Address, Report> {
    Address::parse(text).ok_or_else(|| {
        Report::usage(format!("'{text}' is not a valid address to listen on")).with_hint(
            "--health takes HOST:PORT such as 0.0.0.0:8081, or :PORT for all addresses of this machine",
        )
    })
}

/// Returns the cluster options of the command line. Neither the environment nor the file has them, as for kubectl.
pub(in crate::cli) fn overrides(args: ClusterArgs) -> ConfigOverrides {
    let ClusterArgs { kubeconfig, context, user, groups } = args;
    ConfigOverrides { kubeconfig, context, user, groups }
}

/// Combines the logging options of the three sources.
pub(in crate::cli) fn log(
    args: LogArgs,
    variables: &Environment<'_>,
    file: &Config,
) -> Result<LogOptions, Report> {
    let verbosity = verbosity(&args, variables, file)?;
    let format = match (args.log_format, variables.choice("LOG_FORMAT")?) {
        (Some(format), _) | (None, Some(format)) => format,
        (None, None) => in_file(file, "log-format")?.unwrap_or_default(),
    };
    let color = match (args.color, variables.choice("COLOR")?) {
        (Some(color), _) | (None, Some(color)) => color,
        (None, None) => in_file(file, "color")?.unwrap_or_default(),
    };
    let said = match (args.log_prefix, args.no_log_prefix) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => variables.truth("LOG_PREFIX")?.or_else(|| file.flag("log-prefix")),
    };
    let prefix = said.unwrap_or(match format {
        LogFormat::Plain | LogFormat::Full | LogFormat::Kopf => true,
        // JSON lines have a separate key for the object.
        LogFormat::Json => false,
    });
    let refkey = args.log_refkey.or_else(|| variables.text("LOG_REFKEY"));
    let refkey = refkey.or_else(|| Some(file.text("log-refkey")?.0.to_owned()));
    let refkey = refkey.unwrap_or_else(|| "object".into());
    Ok(LogOptions { verbosity, format, prefix, refkey, color, unhandled: false })
}

/// Reads one of several words from the file.
fn in_file<T: clap::ValueEnum>(file: &Config, key: &str) -> Result<Option<T>, Report> {
    let Some((text, place)) = file.text(key) else { return Ok(None) };
    environment::choice(&format!("{place}: {key}"), text).map(Some)
}

/// Combines the options of verbosity. The most verbose one wins: `-d` over `-v` over `-q`. The file applies only if no other source
/// sets it.
fn verbosity(
    args: &LogArgs,
    variables: &Environment<'_>,
    file: &Config,
) -> Result<Verbosity, Report> {
    let debug = args.debug || variables.flag("DEBUG")?;
    let verbose = args.verbose || variables.flag("VERBOSE")?;
    let quiet = args.quiet || variables.flag("QUIET")?;
    let of_file = |key| file.flag(key).unwrap_or(false);
    let in_file = || most(of_file("debug"), of_file("verbose"), of_file("quiet"));
    Ok(most(debug, verbose, quiet).or_else(in_file).unwrap_or_default())
}

fn most(debug: bool, verbose: bool, quiet: bool) -> Option<Verbosity> {
    match (debug, verbose, quiet) {
        (true, _, _) => Some(Verbosity::Debug),
        (false, true, _) => Some(Verbosity::Verbose),
        (false, false, true) => Some(Verbosity::Quiet),
        (false, false, false) => None,
    }
}
