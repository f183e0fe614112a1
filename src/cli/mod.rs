//! The command line: options, scripts, logging, signals, exit codes. The outermost layer; it joins all others.
//!
//! The only place that reads arguments and the environment, prints, and ends the process. Each step is small and has a
//! file: what was typed (`args`), what it means (`options`), the scripts (`sources`), the log (`logging`), the signals
//! (`signals`), and how a failure is told (`report`).

use std::process::ExitCode;

use clap::{Parser as _, error::ErrorKind};

use args::{Command, LowArgs};
use report::{Exit, Report};

pub mod args;
mod dev;
mod identity;
pub mod logging;
pub mod options;
pub mod report;
mod run;
pub mod signals;
pub mod sources;

/// The `kopf` command, from arguments to exit code.
pub fn main() -> ExitCode {
    let args = match LowArgs::try_parse() {
        Ok(args) => args,
        Err(problem) => return explain(&problem),
    };
    let ended = match args.command {
        Command::Run(args) => {
            options::resolve_run(args, &variable).and_then(|options| run::run(&options))
        }
        Command::Dev(args) => dev::resolve(args, &variable).and_then(|options| dev::run(&options)),
    };
    ended
        .unwrap_or_else(|report: Report| {
            report.print();
            report.exit
        })
        .into()
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Help and usage errors are clap's, the version line is Kopf's.
#[expect(clippy::print_stdout, reason = "the version is what was asked for")]
fn explain(problem: &clap::Error) -> ExitCode {
    if problem.kind() == ErrorKind::DisplayVersion {
        println!("kopf, version {}", env!("CARGO_PKG_VERSION"));
        return Exit::Success.into();
    }
    let _closed = problem.print();
    let exit = if problem.exit_code() == 0 { Exit::Success } else { Exit::Usage };
    exit.into()
}
