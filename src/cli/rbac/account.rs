//! The service account of an operator, as roles name it.

use super::survey::Survey;
use crate::cli::{args::InstallArgs, dev::NAMESPACE, report::Report};

/// The name of an operator if the directory of its scripts has no usable name.
const NAME: &str = "my-operator";
/// Maximum length of the names of most objects that become DNS labels in Kubernetes.
const NAME_MAX: usize = 63;

/// The service account of an operator.
pub(in crate::cli) struct Account<'a> {
    pub(in crate::cli) name: &'a str,
    pub(in crate::cli) namespace: &'a str,
}

/// Returns the namespace in which the operator runs.
pub(in crate::cli) fn namespace(args: &InstallArgs) -> Result<&str, Report> {
    let namespace = args.namespace.as_deref().unwrap_or(NAMESPACE);
    if is_label(namespace) {
        return Ok(namespace);
    }
    let problem = format!("--namespace: not a name of a namespace: '{namespace}'");
    Err(Report::usage(problem).with_hint("use lower-case letters, digits and dashes"))
}

/// Returns the name of the operator: the given one, or that of the directory of its scripts.
pub(in crate::cli) fn name(args: &InstallArgs, survey: &Survey) -> Result<String, Report> {
    if let Some(name) = &args.name {
        if is_label(name) {
            return Ok(name.clone());
        }
        let problem = format!("--name: not a name of an object: '{name}'");
        let hint = format!("use at most {NAME_MAX} lower-case letters, digits and dashes");
        return Err(Report::usage(problem).with_hint(hint));
    }
    let script = survey.sources.first().and_then(|it| std::path::absolute(&it.name).ok());
    let parents = script.iter().flat_map(|it| it.ancestors().skip(1));
    let mut names = parents.filter_map(|it| Some(it.file_name()?.to_str()?.to_lowercase()));
    let usual = |it: &String| is_label(it) && it != "handlers";
    Ok(names.by_ref().take(2).find(usual).unwrap_or_else(|| NAME.into()))
}

fn is_label(name: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
    (1..=NAME_MAX).contains(&name.len())
        && name.chars().all(is_plain)
        && !name.starts_with('-')
        && !name.ends_with('-')
}
