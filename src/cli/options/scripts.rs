//! Options for scripts that are not files, and for hot reload.

use std::time::Duration;

use serde_json::Value;

use crate::cli::{args::RunArgs, config::Config, environment::Environment, report::Report};
use crate::logic::text::duration;
use crate::sources::MapOption;

/// Minimum interval of polling: shorter ones have no visible effect, but keep disks busy.
const POLL_MIN: Duration = Duration::from_millis(100);

/// The resolved values of `--no-reload` and related options.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptOptions {
    /// The scripts in `ConfigMap`s.
    pub maps: Vec<MapOption>,
    /// Whether edits of these `ConfigMap`s that do not load are rejected.
    pub guard: bool,
    /// Whether changes take effect.
    pub reload: bool,
    /// The interval of polling for changes of files, if set.
    pub poll: Option<Duration>,
}

/// Combines the three sources; for each option, only the one with the highest precedence counts.
pub(super) fn scripts(
    args: &RunArgs,
    variables: &Environment<'_>,
    file: &Config,
) -> Result<ScriptOptions, Report> {
    let of_file = |key: &str| file.texts(key).unwrap_or_default();
    let nearest =
        |lists: [Vec<String>; 3]| lists.into_iter().find(|it| !it.is_empty()).unwrap_or_default();
    let names = nearest([
        args.configmaps.clone(),
        variables.list("FROM_CONFIGMAP"),
        of_file("from-configmap"),
    ]);
    // Selectors may contain spaces: a variable has only one.
    let labels = nearest([
        args.configmap_selectors.clone(),
        variables.text("FROM_CONFIGMAP_SELECTOR").into_iter().collect(),
        of_file("from-configmap-selector"),
    ]);
    let mut maps = names.iter().map(|it| named(it)).collect::<Result<Vec<_>, _>>()?;
    for selector in labels {
        maps.push(labelled(&selector)?);
    }
    let stays = args.no_reload || variables.flag("NO_RELOAD")?;
    let stays = stays || file.flag("no-reload").unwrap_or(false);
    let guard = args.guard_configmaps || variables.flag("GUARD_CONFIGMAPS")?;
    let guard = guard || file.flag("guard-configmaps").unwrap_or(false);
    if guard && maps.is_empty() {
        return Err(Report::usage("--guard-configmaps: no ConfigMaps have scripts")
            .with_hint("name them with --from-configmap or --from-configmap-selector"));
    }
    Ok(ScriptOptions { maps, guard, reload: !stays, poll: poll(args, variables, file)? })
}

fn poll(
    args: &RunArgs,
    variables: &Environment<'_>,
    file: &Config,
) -> Result<Option<Duration>, Report> {
    let typed = args.reload_poll.clone().map(|it| ("--reload-poll".to_owned(), it));
    let set = || Some((variables.name("RELOAD_POLL"), variables.text("RELOAD_POLL")?));
    let Some((origin, text)) = typed.or_else(set) else {
        let Some((poll, place)) = file.duration("reload-poll") else { return Ok(None) };
        return checked(&format!("{place}: reload-poll"), Some(poll)).map(Some);
    };
    let number = text.trim().parse::<f64>().ok().map(Value::from);
    let poll = duration::parse(&number.unwrap_or_else(|| text.clone().into()));
    checked(&format!("{origin} {text}"), poll).map(Some)
}

fn checked(what: &str, poll: Option<Duration>) -> Result<Duration, Report> {
    poll.filter(|it| *it >= POLL_MIN).ok_or_else(|| {
        Report::usage(format!("{what}: expected a duration of at least {POLL_MIN:?}"))
            .with_hint("write seconds, or a number with a unit: 2, 500ms, 1m")
    })
}

/// Reads `NAMESPACE/NAME` or `NAME`.
fn named(text: &str) -> Result<MapOption, Report> {
    let (namespace, name) = match text.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, text),
    };
    if !is_name(name) || !namespace.is_none_or(is_name) {
        return Err(Report::usage(format!("--from-configmap {text}: not the name of a ConfigMap"))
            .with_hint("write it as NAMESPACE/NAME, such as operators/scripts; or as NAME for one in the operator's own namespace"));
    }
    Ok(MapOption::Named { namespace: namespace.map(str::to_owned), name: name.to_owned() })
}

/// Returns whether the API accepts the name: otherwise its error would not mention the option.
fn is_name(text: &str) -> bool {
    let is_fine =
        |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-' || it == '.';
    let is_end = |it: Option<char>| it.is_some_and(|it| it.is_ascii_alphanumeric());
    text.chars().all(is_fine) && is_end(text.chars().next()) && is_end(text.chars().next_back())
}

fn labelled(text: &str) -> Result<MapOption, Report> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Report::usage("--from-configmap-selector is empty")
            .with_hint("pass labels, such as app=scripts"));
    }
    Ok(MapOption::Labelled(text.to_owned()))
}
