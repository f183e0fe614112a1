//! `kopf rbac`: the permissions that an operator needs.
//!
//! `survey.rs` loads the scripts and the kinds that exist for them; `needs.rs` knows what the operator and the functions of `kube` do;
//! `permissions.rs` and `roles.rs` turn this into rules; `verify.rs` asks a server whether it grants them.

mod needs;
mod permissions;
mod record;
mod roles;
mod survey;
mod verify;

use std::io::Write as _;

use crate::cli::{
    args::InstallArgs,
    dev::NAMESPACE,
    report::{Exit, Report},
};

pub(super) use self::{
    needs::Needs,
    record::Record,
    roles::{Account, documents},
    survey::Survey,
    verify::verify,
};

/// The name of an operator whose scripts are in no directory with a usable name.
const NAME: &str = "my-operator";
/// Kubernetes: the longest name of most objects that become DNS labels.
const NAME_MAX: usize = 63;

/// Prints the roles and bindings.
pub(super) fn generate(args: &InstallArgs) -> Result<Exit, Report> {
    let survey = Survey::of(args)?;
    let needs = Needs::of(&survey, args)?;
    let (name, namespace) = (name(args, &survey)?, namespace(args)?);
    let account = Account { name: &name, namespace };
    let documents = documents(&needs.permissions, &survey.options.scope, &account);
    warn(&needs.warnings);
    print(&joined(documents.iter().map(|(_, text)| text.as_str())));
    Ok(Exit::Success)
}

/// Returns the namespace in which the operator runs.
pub(super) fn namespace(args: &InstallArgs) -> Result<&str, Report> {
    let namespace = args.namespace.as_deref().unwrap_or(NAMESPACE);
    if is_label(namespace) {
        return Ok(namespace);
    }
    let problem = format!("--namespace: not a name of a namespace: '{namespace}'");
    Err(Report::usage(problem).with_hint("use lower-case letters, digits and dashes"))
}

/// Returns the name of the operator: the given one, or that of the directory of its scripts.
pub(super) fn name(args: &InstallArgs, survey: &Survey) -> Result<String, Report> {
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

/// Joins YAML documents.
pub(super) fn joined<'a>(documents: impl IntoIterator<Item = &'a str>) -> String {
    documents.into_iter().collect::<Vec<_>>().join("---\n")
}

/// Prints warnings to stderr. A closed stderr is ignored.
pub(super) fn warn(warnings: &[String]) {
    for warning in warnings {
        let _closed = writeln!(std::io::stderr(), "warning: {warning}");
    }
}

/// Prints a text. A closed stdout is ignored.
pub(super) fn print(text: &str) {
    let _closed = std::io::stdout().write_all(text.as_bytes());
}
