//! `kopf freeze` and `kopf resume`: pause and resume operators.

mod options;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::cli::{
    identity,
    options::Note,
    report::{Exit, Report},
    run,
};
use crate::cluster::ConnectOptions;
use crate::features::peering::{Command, CommandProblem};
use crate::ports::Clock;
use crate::reactor::Connecting;
use crate::settings::Settings;

pub(super) use options::{FreezeInputs, FreezeOptions, resolve_freeze, resolve_resume};

/// Writes or removes the record.
pub(super) fn run(options: &FreezeOptions) -> Result<Exit, Report> {
    let clock = Clock::system();
    let _log = run::start_log(&options.log, &options.notes, clock)?;
    run::on_runtime(&options.log, async {
        tracing::info!(target: "kopf.auth", "Initial authentication has been initiated.");
        let overrides = options.cluster.clone();
        let connect = run::connect(ConnectOptions { overrides, ..ConnectOptions::default() }, None);
        let connecting = Connecting { settings: Settings::default(), login: None };
        let cluster = connect(connecting).await;
        let cluster = cluster.map_err(|it| report(&CommandProblem::Api(it)))?;
        tracing::info!(target: "kopf.auth", "Initial authentication has finished.");
        let command = Command {
            cluster: Arc::clone(&cluster),
            clock,
            name: options.name.clone(),
            namespaces: options.namespaces.clone(),
            identity: options.identity.clone(),
            record: options.record.clone(),
        };
        command.run().await.map_err(|it| report(&it))?;
        Ok(Exit::Success)
    })
}

/// Returns the identity of the user who runs the command.
pub(super) fn person() -> String {
    identity::of_person()
}

/// Adds warnings about unused variables.
pub(super) fn note(options: &mut FreezeOptions, warnings: Vec<String>) {
    options.notes.extend(warnings.into_iter().map(Note::Warning));
}

fn report(problem: &CommandProblem) -> Report {
    let report = Report::failure(problem.to_string());
    match problem.hint() {
        Some(hint) => report.with_hint(hint),
        None => report,
    }
}
