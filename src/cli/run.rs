//! `kopf run`: load the scripts, connect, run the operator until it ends or a signal ends it.

use std::path::Path;

use crate::cli::{
    logging,
    options::RunOptions,
    report::{Exit, Report},
    sources,
};
use crate::ports::Clock;

/// Runs an operator. Returns how the process should end, or why it could not run.
pub(super) fn run(options: &RunOptions) -> Result<Exit, Report> {
    let clock = Clock::system();
    let sources = sources::read_all(&options.paths, Path::new(""))?;
    logging::install(options.log.clone(), clock)
        .map_err(|problem| Report::failure(format!("cannot start the log: {problem}")))?;
    Err(Report::failure(format!("{} scripts, but this build has no reactor", sources.len())))
}
