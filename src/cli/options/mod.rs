//! What the command line and the environment mean together.
//!
//! A pure function from [`RunArgs`] and a lookup of variables to [`RunOptions`]: convert once, at the edge.

use std::path::PathBuf;

use clap::ValueEnum as _;

use crate::cli::{
    args::{LogArgs, LogFormat, RunArgs},
    report::Report,
};
use crate::features::probes::{Endpoint, UrlError};

mod address;
#[cfg(test)]
mod tests;

pub use address::Address;

/// `kopf run`, understood.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOptions {
    /// Where to look for scripts; empty: the usual places.
    pub paths: Vec<PathBuf>,
    /// What to serve.
    pub scope: ScopeOption,
    /// Whether other operators are ignored.
    pub standalone: bool,
    /// Where the probe handlers are asked.
    pub liveness: Option<Endpoint>,
    /// Where health and metrics are served.
    pub health: Option<Address>,
    /// How to log.
    pub log: LogOptions,
}

/// Which namespaces to serve.
#[derive(Clone, Debug, PartialEq)]
pub enum ScopeOption {
    /// The whole cluster, as asked for.
    Cluster,
    /// The whole cluster, because nothing was said: worth a warning.
    Unsaid,
    /// The namespaces that match one of these patterns.
    Namespaces(Vec<String>),
}

/// How to log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogOptions {
    /// How much.
    pub verbosity: Verbosity,
    /// In which format.
    pub format: LogFormat,
    /// Whether messages about an object start with its name.
    pub prefix: bool,
    /// The key of the object in JSON lines.
    pub refkey: String,
}

/// How much to log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verbosity {
    /// `-q`: warnings and errors.
    Quiet,
    /// What happened to objects.
    #[default]
    Normal,
    /// `-v`: also what the operator decided and why.
    Verbose,
    /// `-d`: also what the libraries below it log.
    Debug,
}

/// Looks up an environment variable; unset ones are `None`.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Joins what was typed with the environment; what was typed wins.
pub fn resolve_run(args: RunArgs, lookup: Lookup<'_>) -> Result<RunOptions, Report> {
    let environment = Environment(lookup);
    Ok(RunOptions {
        scope: scope(&args, &environment)?,
        standalone: args.standalone || environment.flag("STANDALONE")?,
        liveness: liveness(args.liveness, &environment)?,
        health: health(args.health, &environment)?,
        log: log(args.log, &environment)?,
        paths: args.paths,
    })
}

fn scope(args: &RunArgs, environment: &Environment<'_>) -> Result<ScopeOption, Report> {
    let clusterwide = args.all_namespaces || environment.flag("CLUSTERWIDE")?;
    let mut namespaces = args.namespaces.clone();
    if namespaces.is_empty() {
        let listed = environment.text("NAMESPACES").unwrap_or_default();
        namespaces.extend(listed.split_whitespace().map(str::to_owned));
    }
    namespaces.extend(environment.text("NAMESPACE"));
    match (clusterwide, namespaces.is_empty()) {
        (true, false) => {
            Err(Report::usage("Either --namespace or --all-namespaces can be used, not both.")
                .with_hint(
                    "check KOPF_RUN_CLUSTERWIDE, KOPF_RUN_NAMESPACES and KOPF_RUN_NAMESPACE too",
                ))
        }
        (true, true) => Ok(ScopeOption::Cluster),
        (false, true) => Ok(ScopeOption::Unsaid),
        (false, false) => Ok(ScopeOption::Namespaces(namespaces)),
    }
}

/// A wrong URL fails as with Kopf, not as a usage error, but before anything runs.
fn liveness(
    typed: Option<String>,
    environment: &Environment<'_>,
) -> Result<Option<Endpoint>, Report> {
    let Some(url) = typed.or_else(|| environment.text("LIVENESS_ENDPOINT")) else {
        return Ok(None);
    };
    url.parse().map(Some).map_err(|error: UrlError| {
        Report::failure(error.to_string())
            .with_hint("-L/--liveness takes a URL such as http://0.0.0.0:8080/healthz")
    })
}

fn health(typed: Option<String>, environment: &Environment<'_>) -> Result<Option<Address>, Report> {
    let Some(text) = typed.or_else(|| environment.text("HEALTH")) else { return Ok(None) };
    Address::parse(&text).map(Some).ok_or_else(|| {
        Report::usage(format!("'{text}' is no address to listen on"))
            .with_hint("--health takes HOST:PORT such as 0.0.0.0:8081, or :PORT for all addresses of this machine")
    })
}

fn log(args: LogArgs, environment: &Environment<'_>) -> Result<LogOptions, Report> {
    let verbosity = verbosity(&args, environment)?;
    let format = match args.log_format {
        Some(format) => format,
        None => environment.log_format()?.unwrap_or_default(),
    };
    let typed = match (args.log_prefix, args.no_log_prefix) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => environment.truth("LOG_PREFIX")?,
    };
    let prefix = typed.unwrap_or(match format {
        LogFormat::Plain | LogFormat::Full => true,
        // There the object has a key of its own.
        LogFormat::Json => false,
    });
    let refkey = args.log_refkey.or_else(|| environment.text("LOG_REFKEY"));
    Ok(LogOptions { verbosity, format, prefix, refkey: refkey.unwrap_or_else(|| "object".into()) })
}

/// More wins over less: `-d` over `-v` over `-q`.
fn verbosity(args: &LogArgs, environment: &Environment<'_>) -> Result<Verbosity, Report> {
    let debug = args.debug || environment.flag("DEBUG")?;
    let verbose = args.verbose || environment.flag("VERBOSE")?;
    let quiet = args.quiet || environment.flag("QUIET")?;
    Ok(match (debug, verbose, quiet) {
        (true, _, _) => Verbosity::Debug,
        (false, true, _) => Verbosity::Verbose,
        (false, false, true) => Verbosity::Quiet,
        (false, false, false) => Verbosity::Normal,
    })
}

/// The variables of `kopf run`, without their common prefix.
struct Environment<'a>(Lookup<'a>);

impl Environment<'_> {
    /// An empty variable is the same as an unset one.
    fn text(&self, name: &str) -> Option<String> {
        (self.0)(&format!("KOPF_RUN_{name}")).filter(|it| !it.is_empty())
    }

    fn flag(&self, name: &str) -> Result<bool, Report> {
        Ok(self.truth(name)?.unwrap_or(false))
    }

    fn truth(&self, name: &str) -> Result<Option<bool>, Report> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match text.trim().to_ascii_lowercase().as_str() {
            "1" | "true" | "t" | "yes" | "y" | "on" => Ok(Some(true)),
            "0" | "false" | "f" | "no" | "n" | "off" => Ok(Some(false)),
            _ => Err(Report::usage(format!("KOPF_RUN_{name} is '{text}', which is no boolean"))
                .with_hint("use one of: true, false, yes, no, on, off, 1, 0")),
        }
    }

    fn log_format(&self) -> Result<Option<LogFormat>, Report> {
        let Some(text) = self.text("LOG_FORMAT") else { return Ok(None) };
        let ignore_case = true;
        LogFormat::from_str(&text, ignore_case).map(Some).map_err(|_problem| {
            Report::usage(format!("KOPF_RUN_LOG_FORMAT is '{text}', which is no log format"))
                .with_hint("use one of: plain, full, json")
        })
    }
}
