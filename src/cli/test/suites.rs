//! Finds tests, and the operators that they test.

use std::{
    fs,
    path::{Path, PathBuf},
};

use indexmap::IndexMap;

use crate::cli::{args::TestArgs, report::Report};
use crate::sources::DEFAULT_PATHS;

/// The current directory, as the base of relative paths.
pub(super) const HERE: &str = "";
/// The directory of tests inside that of an operator.
const TESTS: &str = "tests";
/// The CRD file next to an operator.
const DEFINITIONS: &str = "crd.yaml";
const LANGUAGES: [&str; 2] = ["lua", "rhai"];

/// The tests of one operator.
pub(super) struct Suite {
    /// The scripts of the operator.
    pub(super) operator: Vec<PathBuf>,
    /// The files with the CRDs of the operator.
    pub(super) definitions: Vec<PathBuf>,
    /// The files with the tests to run.
    pub(super) tests: Vec<PathBuf>,
}

/// Returns the selected tests, by operator.
///
/// # Errors
/// Fails if there are no tests, or no operator for them.
pub(super) fn find(args: &TestArgs) -> Result<Vec<Suite>, Report> {
    let here = [PathBuf::from(HERE)];
    let paths = if args.paths.is_empty() { &here[..] } else { &args.paths };
    let mut suites: IndexMap<PathBuf, Suite> = IndexMap::new();
    for path in paths {
        if path != Path::new(HERE) && !path.exists() {
            let problem = format!("there is no file or directory '{}'", path.display());
            return Err(Report::usage(problem));
        }
        let (home, tests) = if path == Path::new(HERE) || path.is_dir() {
            (home_of_directory(path), within(path)?)
        } else {
            (home_of(path), vec![path.clone()])
        };
        if let Some(suite) = suites.get_mut(&home) {
            suite.tests.extend(tests);
            continue;
        }
        let (operator, definitions) = (operator(&home, args)?, definitions(&home, args));
        suites.insert(home, Suite { operator, definitions, tests });
    }
    Ok(suites.into_values().collect())
}

/// Returns the directory of the operator that a test file tests.
fn home_of(file: &Path) -> PathBuf {
    let directory = file.parent().unwrap_or(Path::new(HERE));
    let above = directory.parent().filter(|_| directory.file_name().is_some_and(|it| it == TESTS));
    above.unwrap_or(directory).to_owned()
}

/// Returns the directory of the operator: a directory of tests belongs to its parent.
fn home_of_directory(directory: &Path) -> PathBuf {
    let is_operator = DEFAULT_PATHS.iter().any(|it| directory.join(it).exists());
    if is_operator { directory.to_owned() } else { home_of(&directory.join("a file in it")) }
}

/// Returns the test files in the directory of an operator, and in `tests/` there, by name.
fn within(directory: &Path) -> Result<Vec<PathBuf>, Report> {
    let mut found = Vec::new();
    for place in [directory.to_owned(), directory.join(TESTS)] {
        let readable = if place == Path::new(HERE) { Path::new(".") } else { &place };
        // Usually, one of the two does not exist.
        let entries = fs::read_dir(readable).into_iter().flatten().flatten();
        found.extend(entries.map(|it| place.join(it.file_name())).filter(|it| is_test(it)));
    }
    if found.is_empty() {
        let directory = if directory == Path::new(HERE) { Path::new(".") } else { directory };
        let problem = format!("there are no tests in '{}'", directory.display());
        let hint = "tests are files such as tests/greeting_test.lua; `kopf init` writes examples";
        return Err(Report::failure(problem).with_hint(hint));
    }
    found.sort();
    Ok(found)
}

fn is_test(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|it| it.to_str()).unwrap_or_default();
    let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
    stem.ends_with("_test") && LANGUAGES.contains(&extension)
}

/// Returns the scripts of an operator, as `kopf run` would find them in its directory.
fn operator(home: &Path, args: &TestArgs) -> Result<Vec<PathBuf>, Report> {
    if !args.operator.is_empty() {
        return Ok(args.operator.clone());
    }
    let usual = DEFAULT_PATHS.iter().map(|it| home.join(it)).find(|it| it.exists());
    usual.map(|it| vec![it]).ok_or_else(|| {
        let home = if home == Path::new(HERE) { Path::new(".") } else { home };
        let [lua, rhai, directory] = DEFAULT_PATHS;
        let problem = format!(
            "no operator to test in '{}': found no {lua}, {rhai} or {directory}/",
            home.display()
        );
        Report::failure(problem).with_hint("pass its scripts with --operator PATH")
    })
}

fn definitions(home: &Path, args: &TestArgs) -> Vec<PathBuf> {
    if !args.definitions.is_empty() {
        return args.definitions.clone();
    }
    Some(home.join(DEFINITIONS)).filter(|it| it.exists()).into_iter().collect()
}
