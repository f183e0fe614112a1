//! `kopf check`: loads scripts as `kopf run` does, and reports what they declare and every error.
//!
//! It needs no cluster, serves nothing, and calls only conversion handlers whose CRD is available. Each script is loaded separately, so
//! that an error does not hide another.

pub(super) mod args;
mod conversions;
mod findings;
mod listing;
mod samples;
mod schemas;

use std::{io::Write as _, path::PathBuf, sync::Arc};

use rustix::{io::dup, stdio::dup2_stdout};

use self::findings::CheckFindings;
pub(super) use self::schemas::{beside as kinds_beside, definition};
use crate::checker::{Rule, RuleLevel};
use crate::cli::{
    args::OutputFormat,
    env::variable,
    logging,
    options::RunOptions,
    report::{Exit, Report},
    scripts::UnloadedScripts,
};

/// Prints the level and the explanation of a rule, and how to allow what it finds.
pub(super) fn explain(rule: Rule) -> Exit {
    let level = match rule.level() {
        RuleLevel::Name => "an unknown name: rejects the script, unless reload.strict is off",
        RuleLevel::Type => "a warning; rejects the script if reload.strict is types",
        RuleLevel::Lint => "a warning",
    };
    let (name, doc) = (rule.name(), rule.doc());
    let text = format!(
        "{name}: {level}\n\n{doc}\n\nTo allow it in one line: `-- kopf: allow({name})` in Lua, `// kopf: allow({name})` in Rhai, at the end of the line or in the line before.\n"
    );
    // A closed stdout is ignored.
    let _closed = std::io::stdout().write_all(text.as_bytes());
    Exit::Success
}

/// Checks the scripts. Prints the findings, also if the scripts cannot be used.
pub(super) fn run(
    options: &RunOptions,
    output: OutputFormat,
    definitions: &[PathBuf],
    suggests: bool,
) -> Result<Exit, Report> {
    let told = |it: std::io::Error| Report::failure(format!("cannot print: {it}"));
    let mut stdout = aside().map_err(told)?;
    let findings = match UnloadedScripts::files(options).map_err(Report::from) {
        Ok(read) => check_scripts(options, read, definitions)?,
        Err(report) if report.exit == Exit::Usage => return Err(report),
        Err(report) => CheckFindings::of_report(&report, options),
    };
    let text = match output {
        OutputFormat::Json => format!("{:#}\n", findings.to_json()),
        OutputFormat::Text if suggests => {
            listing::text(&findings) + listing::suggested(&findings).as_str()
        }
        OutputFormat::Text => listing::text(&findings),
    };
    // A closed stdout is ignored.
    let _closed = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    if output == OutputFormat::Text {
        let problems = listing::problems(&findings);
        let problems =
            if logging::colors_stderr(&variable) { listing::colored(&problems) } else { problems };
        let _closed = std::io::stderr().write_all(problems.as_bytes());
    }
    Ok(if findings.is_usable() { Exit::Success } else { Exit::Failure })
}

/// Redirects stdout to stderr, so that output of scripts does not corrupt the JSON. Returns the original stdout.
fn aside() -> std::io::Result<std::fs::File> {
    let stdout = dup(std::io::stdout())?;
    dup2_stdout(std::io::stderr())?;
    Ok(stdout.into())
}

fn check_scripts(
    options: &RunOptions,
    read: UnloadedScripts,
    definitions: &[PathBuf],
) -> Result<CheckFindings, Report> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|it| Report::failure(format!("cannot start the runtime: {it}")))?;
    let findings = runtime.block_on(async {
        let kinds = Arc::new(schemas::kinds(options, definitions)?);
        let mut findings = CheckFindings::of(options, read.scripts.clone(), kinds).await;
        if findings.is_usable() && findings.converts() {
            let found = conversions::check(options, read.scripts, definitions).await?;
            findings.errors.extend(found.errors);
            findings.warnings.extend(found.warnings);
        }
        Ok(findings)
    });
    runtime.shutdown_background();
    findings
}
