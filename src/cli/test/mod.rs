//! `kopf test`: runs the tests of operators, each with its own API server and a virtual clock.
//!
//! `suites.rs` finds the tests and their operators; `test_file.rs` runs one of them; `commands.rs` responds to commands in pods. Whenever
//! all tasks wait, the clock advances to the next timer: a timer of an hour takes no real time, and every run has the same times. In Lua,
//! calls also have the same order; calls in Rhai run on threads, so the order of simultaneous calls is undefined.

mod commands;
mod suites;
mod test_file;

use std::io::Write as _;

use tokio::task::LocalSet;

use self::{
    suites::Suite,
    test_file::{TestFile, TestResult},
};
use crate::cli::{
    args::{RunArgs, TestArgs},
    dev,
    options::{RunOptions, Verbosity},
    rbac::PermissionRecord,
    report::{Exit, Report},
    scripts::UnloadedScripts,
};
use crate::scripting::Source;
use crate::sources::ScriptFiles;

/// Resolves the options of a run, for each operator.
pub(super) type Resolve<'a> = &'a dyn Fn(RunArgs) -> Result<RunOptions, Report>;

/// The number of tests by result.
#[derive(Default)]
struct TestCounts {
    passed: usize,
    failed: usize,
}

/// Runs all tests. Fails if any of them fails.
pub(super) fn run(args: &TestArgs, resolve: Resolve<'_>) -> Result<Exit, Report> {
    let mut counts = TestCounts::default();
    let access = dev::DevAccess::resolve(&args.access)?;
    let record = PermissionRecord::default();
    for suite in suites::find(args)? {
        run_suite((args, &access, &record), &suite, resolve, &mut counts)?;
    }
    if let Some(path) = &args.record_rbac {
        record.write(path)?;
    }
    let TestCounts { passed, failed } = counts;
    if passed + failed == 0 {
        let name = args.only.as_deref().unwrap_or_default();
        let problem = if name.is_empty() {
            "the files declare no tests".into()
        } else {
            format!("no test name contains {name:?}")
        };
        let hint = "declare tests with kopf.test(\"NAME\", FUNCTION)";
        return Err(Report::failure(problem).with_hint(hint));
    }
    let tests =
        if passed + failed == 1 { "1 test".into() } else { format!("{} tests", passed + failed) };
    let told = if failed == 0 { "all passed".into() } else { format!("{failed} failed") };
    print(&format!("\n{tests}, {told}\n"));
    Ok(if failed == 0 { Exit::Success } else { Exit::Failure })
}

fn run_suite(
    (args, access, record): (&TestArgs, &dev::DevAccess, &PermissionRecord),
    suite: &Suite,
    resolve: Resolve<'_>,
    counts: &mut TestCounts,
) -> Result<(), Report> {
    let mut options = resolve(args.terms.clone().of_run(suite.operator.clone()))?;
    options.log.verbosity = if args.verbose { Verbosity::Verbose } else { Verbosity::Normal };
    // Report errors of the operator itself first.
    drop(UnloadedScripts::files(&options)?);
    let files = dev::ManifestFiles::read(&suite.definitions, &args.objects)?;
    let sources = ScriptFiles::at(&suite.tests, suites::HERE.as_ref(), None)?.read()?;
    for source in sources {
        let file = TestFile { options: &options, access, record, files: &files, test: &source };
        let names = match on_virtual_time(file.names())? {
            Ok(names) => names,
            Err(report) => {
                counts.count(
                    &source,
                    None,
                    &TestResult::Failed { why: report, log: Vec::new() },
                    args,
                );
                continue;
            }
        };
        let wanted =
            |it: &&(usize, String)| args.only.as_ref().is_none_or(|only| it.1.contains(only));
        for (index, name) in names.into_iter().enumerate().filter(|it| wanted(&it)) {
            let verdict = on_virtual_time(file.run(index))??;
            counts.count(&source, Some(&name), &verdict, args);
        }
    }
    Ok(())
}

impl TestCounts {
    /// Counts a test and prints its result.
    fn count(
        &mut self,
        source: &Source,
        name: Option<&str>,
        verdict: &TestResult,
        args: &TestArgs,
    ) {
        let place = &source.name;
        let name = name.map(|it| format!(": {it}")).unwrap_or_default();
        let mut told = match verdict {
            TestResult::Passed { .. } => {
                self.passed += 1;
                format!("ok      {place}{name}\n")
            }
            TestResult::Failed { why, .. } => {
                self.failed += 1;
                format!("FAILED  {place}{name}\n{}", indented(why))
            }
        };
        let log = match verdict {
            TestResult::Failed { log, .. } => log.as_slice(),
            TestResult::Passed { log } if args.verbose => log,
            TestResult::Passed { .. } => &[],
        };
        if !log.is_empty() {
            told.push_str("    the log of the operator:\n");
            told.extend(log.iter().map(|it| indented(it)));
        }
        print(&told);
    }
}

/// Runs a future on a paused clock, with the scripts on the same thread.
pub(super) fn on_virtual_time<T>(work: impl Future<Output = T>) -> Result<T, Report> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime =
        runtime.map_err(|it| Report::failure(format!("cannot start the runtime: {it}")))?;
    let done = LocalSet::new().block_on(&runtime, work);
    // Tasks that still run are abandoned: the test is over.
    runtime.shutdown_background();
    Ok(done)
}

fn indented(text: &str) -> String {
    text.lines().flat_map(|it| ["    ", it, "\n"]).collect()
}

/// Prints a string. A closed stdout is ignored.
fn print(text: &str) {
    let _closed = std::io::stdout().write_all(text.as_bytes());
}
