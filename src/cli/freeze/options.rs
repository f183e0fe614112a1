//! Resolves the options of `kopf freeze` and `kopf resume`.

use std::time::Duration;

use serde_json::Value;

use crate::cli::{
    args::{FreezeArgs, LogArgs, MeetingArgs, ResumeArgs},
    config::Config,
    environment::{Environment, Lookup},
    options::{self, LogOptions, Note},
    report::Report,
};
use crate::cluster::ConfigOverrides;
use crate::logic::{replicas::peering::PeeringRecord, text::duration};

/// The inputs of both commands besides the arguments.
pub(in crate::cli) struct FreezeInputs<'a> {
    /// Looks up a variable of the environment.
    pub(in crate::cli) lookup: Lookup<'a>,
    /// The default identity, without `--id`.
    pub(in crate::cli) person: String,
}

/// The default priority of a freeze: higher than that of most operators.
const PRIORITY: i64 = 100;

/// The resolved options of `kopf freeze` or `kopf resume`.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cli) struct FreezeOptions {
    /// The name of the peering objects.
    pub(super) name: String,
    /// `None`: operators of the whole cluster.
    pub(super) namespaces: Option<Vec<String>>,
    /// The key of the record.
    pub(super) identity: String,
    /// `None`: the record is removed.
    pub(super) record: Option<PeeringRecord>,
    /// The cluster and the credentials.
    pub(super) cluster: ConfigOverrides,
    /// The logging options.
    pub(super) log: LogOptions,
    /// Messages for the log, once it is open.
    pub(super) notes: Vec<Note>,
}

/// Resolves the options of `kopf freeze`: from the arguments, then from the environment.
pub(in crate::cli) fn resolve_freeze(
    args: FreezeArgs,
    origin: FreezeInputs<'_>,
) -> Result<FreezeOptions, Report> {
    let variables = Environment::new(origin.lookup, "FREEZE");
    let lifetime = args.lifetime.or_else(|| variables.text("LIFETIME"));
    let Some(lifetime) = lifetime else {
        return Err(missing(&variables, "--lifetime", "LIFETIME", "--lifetime 10m"));
    };
    let is_dev = args.dev || variables.flag("DEV")?;
    let typed = if is_dev { Some(options::PRIORITY_DEV) } else { args.priority };
    let record = PeeringRecord {
        priority: typed.or(variables.number("PRIORITY")?).unwrap_or(PRIORITY),
        lifetime: seconds(&lifetime)?,
        message: args.message.or_else(|| variables.text("MESSAGE")),
    };
    resolve((args.meeting, args.log), Some(record), &variables, origin.person)
}

/// Resolves the options of `kopf resume`: from the arguments, then from the environment.
pub(in crate::cli) fn resolve_resume(
    args: ResumeArgs,
    origin: FreezeInputs<'_>,
) -> Result<FreezeOptions, Report> {
    let variables = Environment::new(origin.lookup, "RESUME");
    resolve((args.meeting, args.log), None, &variables, origin.person)
}

fn resolve(
    (meeting, log): (MeetingArgs, LogArgs),
    record: Option<PeeringRecord>,
    variables: &Environment<'_>,
    person: String,
) -> Result<FreezeOptions, Report> {
    let Some(name) = meeting.peering.or_else(|| variables.text("PEERING")) else {
        return Err(missing(variables, "--peering", "PEERING", "--peering default"));
    };
    let is_clusterwide = meeting.all_namespaces || variables.flag("CLUSTERWIDE")?;
    let mut namespaces = meeting.namespaces;
    if namespaces.is_empty() {
        let listed = variables.text("NAMESPACES").unwrap_or_default();
        namespaces.extend(listed.split_whitespace().map(str::to_owned));
    }
    namespaces.extend(variables.text("NAMESPACE"));
    if is_clusterwide && !namespaces.is_empty() {
        return Err(Report::usage("Either --namespace or --all-namespaces can be used, not both."));
    }
    let mut notes = Vec::new();
    if !is_clusterwide && namespaces.is_empty() {
        let text = "Neither -A/--all-namespaces nor -n/--namespace is given: \
                    addressing the operators of the whole cluster, as with -A.";
        notes.push(Note::Warning(text.into()));
    }
    Ok(FreezeOptions {
        name,
        namespaces: Some(namespaces).filter(|it| !it.is_empty()),
        identity: meeting.id.or_else(|| variables.text("ID")).unwrap_or(person),
        record,
        cluster: options::overrides(meeting.cluster),
        log: options::log(log, variables, &Config::default())?,
        notes,
    })
}

fn missing(variables: &Environment<'_>, option: &str, variable: &str, example: &str) -> Report {
    let hint = format!("for example, pass {example}; or set {}", variables.name(variable));
    Report::usage(format!("{option} is required")).with_hint(hint)
}

/// Reads seconds as a number, or with a unit.
fn seconds(text: &str) -> Result<Duration, Report> {
    let number = text.trim().parse::<f64>().ok().map(Value::from);
    let lifetime = duration::parse(&number.unwrap_or_else(|| text.into()));
    lifetime.filter(|it| !it.is_zero()).ok_or_else(|| {
        Report::usage(format!("--lifetime is '{text}', which is not a duration above zero"))
            .with_hint("write seconds, or a number with a unit: 60, 10m, 2h")
    })
}
