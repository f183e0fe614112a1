//! The command line: options, scripts, logging, signals, exit codes. The outermost layer; it joins all others.
//!
//! The only place that reads arguments and the environment, prints, and ends the process. Each step has its own file: the command
//! line (`args`), the variables (`environment`), `kopf.yaml` (`config`), their combination (`options`), the scripts (`sources`) and
//! their changes (`reload`), the log (`logging`), the signals (`signals`), and errors (`report`).

use std::{path::Path, process::ExitCode};

use clap::{CommandFactory as _, Parser as _, error::ErrorKind};

use crate::checker::Rule;
use args::{Command, LowArgs, RunArgs, RunCommand};
use config::Config;
use env::variable;
use freeze::FreezeOptions;
use options::{Note, RunOptions};
use report::{Exit, Report};

mod after_help;
pub mod args;
mod assignment;
mod check;
mod coalescing;
pub mod config;
pub mod deploy;
mod dev;
mod docs;
mod env;
pub mod environment;
mod freeze;
mod health_server;
mod identity;
mod init;
pub mod logging;
mod lsp;
mod manifests;
mod memory_trim;
pub mod objects;
pub mod options;
pub mod plan;
mod process;
mod rbac;
pub mod report;
mod run;
mod scripts;
pub mod shared_args;
pub mod signals;
mod stubs;
mod summary;
mod test;

/// Runs the `kopf` command. Returns its exit code.
pub fn main() -> ExitCode {
    let args = match LowArgs::try_parse() {
        Ok(args) => args,
        Err(problem) => return explain(&problem),
    };
    let ended = match args.command {
        Command::Run(args) => start_run(args),
        Command::Dev(args) => start_dev(args),
        Command::Check(args) => start_check(args),
        Command::Test(args) => start_test(&args),
        Command::Plan(args) => start_plan(&args),
        Command::Init(args) => init::run(&args),
        Command::Manifests(args) => manifests::run(&args),
        Command::Deploy(args) => deploy::deploy(&args),
        Command::Undeploy(args) => deploy::undeploy(&args),
        Command::Rbac(args::RbacCommand::Generate(args)) => rbac::generate(&args),
        Command::Rbac(args::RbacCommand::Verify(args)) => rbac::verify(&args),
        Command::Docs(args) => docs::run(&args),
        Command::Lsp => lsp::run(),
        Command::Stubs(args) => stubs::run(&args),
        Command::Freeze(args) => start_freeze(freeze::resolve_freeze(args, origin())),
        Command::Resume(args) => start_freeze(freeze::resolve_resume(args, origin())),
        Command::Status(args) => objects::status(&args),
        Command::Retry(args) => objects::retry(&args),
        Command::Suspend(args) => objects::suspend(&args, Some(&freeze::person())),
        Command::Unsuspend(args) => objects::suspend(&args, None),
        Command::Release(args) => objects::release(&args),
        Command::Logs(args) => objects::logs(&args),
        Command::Crds(args) => objects::crds(&args),
        Command::Version => {
            version();
            Ok(Exit::Success)
        }
        Command::Completions(args) => {
            complete(args.shell);
            Ok(Exit::Success)
        }
        Command::ManPages(args) => write_man_pages(&args.directory),
    };
    ended
        .unwrap_or_else(|report: Report| {
            report.print();
            report.exit
        })
        .into()
}

fn start_run(args: RunCommand) -> Result<Exit, Report> {
    let config = configuration(&args.run)?;
    let mut options = options::resolve_run(args.run, &variable, config.as_ref())?;
    options.cluster = options::overrides(args.cluster);
    note_variables(&mut options)?;
    run::run(&options)
}

fn start_dev(args: args::DevArgs) -> Result<Exit, Report> {
    let config = configuration(&args.run)?;
    let mut options = dev::resolve(args, &variable, config.as_ref())?;
    note_variables(options.run_mut())?;
    dev::run(&options)
}

fn start_check(args: args::CheckArgs) -> Result<Exit, Report> {
    if let Some(rule) = args.explain.as_deref().and_then(Rule::find) {
        return Ok(check::explain(rule));
    }
    let (output, definitions, suggests) = (args.output, args.definitions, args.suggest_grants);
    let args = args.terms.of_run(args.paths);
    let config = configuration(&args)?;
    let mut options = options::resolve_run(args, &variable, config.as_ref())?;
    note_variables(&mut options)?;
    check::run(&options, output, &definitions, suggests)
}

/// Runs tests. The environment is ignored: a test must not depend on the user who runs it.
fn start_test(args: &args::TestArgs) -> Result<Exit, Report> {
    test::run(args, &|run| {
        let config = config::find(run.config.as_deref(), &run.paths, Path::new(""))?;
        options::resolve_run(run, &|_name| None, config.as_ref())
    })
}

fn start_plan(args: &plan::args::PlanArgs) -> Result<Exit, Report> {
    let run = args.to_run();
    let config = configuration(&run)?;
    let mut options = options::resolve_run(run, &variable, config.as_ref())?;
    note_variables(&mut options)?;
    plan::run(args, &options)
}

fn origin() -> freeze::FreezeInputs<'static> {
    freeze::FreezeInputs { lookup: &variable, person: freeze::person() }
}

fn start_freeze(options: Result<FreezeOptions, Report>) -> Result<Exit, Report> {
    let mut options = options?;
    freeze::note(&mut options, unread_variables()?);
    freeze::run(&options)
}

fn configuration(args: &RunArgs) -> Result<Option<Config>, Report> {
    let named = args.config.clone().or_else(|| variable("KOPF_RUN_CONFIG").map(Into::into));
    config::find(
        named.as_deref().filter(|it| !it.as_os_str().is_empty()),
        &args.paths,
        Path::new(""),
    )
}

fn note_variables(options: &mut RunOptions) -> Result<(), Report> {
    options.notes.extend(unread_variables()?.into_iter().map(Note::Warning));
    Ok(())
}

/// Returns warnings about unused variables: they are most often misspelled.
fn unread_variables() -> Result<Vec<String>, Report> {
    let names: Vec<_> =
        std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    environment::check(names.iter().map(String::as_str))
}

/// Prints a completion script for this shell. A closed stdout is ignored.
fn complete(shell: clap_complete::Shell) {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut LowArgs::command(), "kopf", &mut script);
    let _closed = std::io::Write::write_all(&mut std::io::stdout(), &script);
}

fn write_man_pages(directory: &Path) -> Result<Exit, Report> {
    clap_mangen::generate_to(LowArgs::command(), directory).map_err(|problem| {
        Report::failure(format!("cannot write to '{}': {problem}", directory.display()))
    })?;
    Ok(Exit::Success)
}

#[expect(clippy::print_stdout, reason = "the version is what was asked for")]
fn version() {
    println!("kopf, version {}", env!("CARGO_PKG_VERSION"));
}

/// Prints help and usage errors as clap does, and the version as Kopf does.
fn explain(problem: &clap::Error) -> ExitCode {
    if problem.kind() == ErrorKind::DisplayVersion {
        version();
        return Exit::Success.into();
    }
    let _closed = problem.print();
    let exit = if problem.exit_code() == 0 { Exit::Success } else { Exit::Usage };
    exit.into()
}
