//! Mistakes inside of functions: those that the checker must report, and scripts for which it must stay silent.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use expect_test::expect_file;
use kopf::{
    checker::{self, Finding, Knowledge, Rule, RuleLevel},
    logic::{
        access::grants::{Access, Grants, Permission},
        handlers::handler::Kind,
    },
    scripting::{Modules, Placement, ScriptHost, Source, Terms},
    settings::Settings,
    testing::run_paused,
};

use crate::docs::documentation::all_blocks;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn terms() -> Terms {
    let mut access = Access::default();
    for (what, rule) in [
        (Permission::Net, "*:443"),
        (Permission::Net, "127.0.0.1:4040"),
        (Permission::Env, "*"),
        (Permission::Read, "/etc"),
    ] {
        access.allow(what, rule, Path::new("/")).expect("a rule");
    }
    let mut terms = Terms::of(Placement::CurrentRuntime, &Settings::default());
    terms.grants = Arc::new(Grants { all: access, ..Grants::default() });
    terms
}

/// Loads a script and checks the bodies of its functions, as `kopf check` does. The error is that of loading.
fn check(source: &Source) -> Result<Vec<Finding>, String> {
    let host = ScriptHost::new(terms());
    let prepared = run_paused(async { host.prepare(vec![source.clone()]).await });
    let prepared = prepared.map_err(|errors| errors[0].to_string())?;
    let indexes = prepared.handlers.iter().filter(|it| it.kind == Kind::Index);
    let indexes: BTreeSet<String> = indexes.map(|it| it.id.to_string()).collect();
    let access = Some(Arc::new(terms().grants.all.clone()));
    let knowledge = Knowledge { indexes: Some(Arc::new(indexes)), access, ..Knowledge::default() };
    let found = checker::check(std::slice::from_ref(source), &knowledge);
    assert_eq!(found.unchecked, Vec::<String>::new(), "{}", source.name);
    Ok(found.all)
}

/// Returns findings in one line each: `LINE:COLUMN message`.
fn told(finding: &Finding) -> String {
    let line = finding.error.line.expect("a line");
    let column = finding.error.columns.expect("a column").first;
    format!("{line}:{column} {}", finding.error.message)
}

/// Returns the scripts of a file: the line where each begins, the expected findings, its source.
fn scripts(file: &str) -> Vec<(usize, Vec<String>, String)> {
    let text = fs::read_to_string(root().join("tests/it/checker").join(file)).expect(file);
    let mut all: Vec<(usize, Vec<String>, String)> = Vec::new();
    let mut is_head = false;
    for (index, line) in text.lines().enumerate() {
        if let Some(expected) = line.strip_prefix("===") {
            if !is_head {
                all.push((index + 1, Vec::new(), String::new()));
            }
            is_head = true;
            let expected = expected.trim();
            if !expected.is_empty() {
                all.last_mut().expect("a script").1.push(expected.to_owned());
            }
        } else if let Some((_, _, script)) = all.last_mut() {
            is_head = false;
            script.push_str(line);
            script.push('\n');
        }
    }
    all
}

/// Returns a script with comments that allow all findings.
fn with_comments(text: &str, found: &[Finding]) -> String {
    let sign = if text.contains("kopf::") { "//" } else { "--" };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for it in found {
        let line = usize::try_from(it.error.line.expect("a line")).expect("a number");
        let comment = format!(" {sign} kopf: allow({})", it.rule.name());
        lines.get_mut(line - 1).expect("a line").push_str(&comment);
    }
    lines.join("\n")
}

fn compare(kind: &str, extension: &str, least: usize) {
    let file = format!("{kind}.{extension}.txt");
    let all = scripts(&file);
    assert!(all.len() >= least, "{} scripts", all.len());
    let mut wrong = String::new();
    for (line, expected, text) in all {
        assert!(!expected.is_empty(), "{file}:{line}");
        let source = Source::alone(format!("handlers.{extension}"), text);
        let found: Vec<_> = match check(&source) {
            Ok(found) => {
                let allowed = Source { text: with_comments(&source.text, &found), ..source };
                assert_eq!(check(&allowed), Ok(Vec::new()), "{file}:{line}");
                found.iter().map(told).collect()
            }
            Err(error) => vec![error],
        };
        let is_right = found.len() == expected.len()
            && found.iter().zip(&expected).all(|(found, expected)| found.starts_with(expected));
        if !is_right {
            writeln!(wrong, "{file}:{line}\n  expected {expected:?}\n  found    {found:?}")
                .expect("memory");
        }
    }
    assert_eq!(wrong, "");
}

#[test]
fn mistakes_in_lua_are_found_at_their_places() {
    compare("mistakes", "lua", 60);
}

#[test]
fn mistakes_in_rhai_are_found_at_their_places() {
    compare("mistakes", "rhai", 60);
}

#[test]
fn what_is_hardly_meant_is_found_in_both_languages() {
    compare("lints", "lua", 20);
    compare("lints", "rhai", 13);
}

#[test]
fn the_documentation_lists_every_rule_with_its_level() {
    let page = fs::read_to_string(root().join("docs/check.md")).expect("a page");
    let level = |rule: &Rule| match rule.level() {
        RuleLevel::Name => "name",
        RuleLevel::Type => "type",
        RuleLevel::Lint => "lint",
    };
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, rule, what, level, _] = cells.as_slice() else { return None };
        let rule = rule.strip_prefix('`')?.strip_suffix('`')?;
        (matches!(*level, "name" | "type" | "lint") && !what.is_empty())
            .then(|| format!("{rule} {level}"))
    });
    let expected: Vec<_> = Rule::all().map(|it| format!("{} {}", it.name(), level(&it))).collect();
    assert_eq!(rows.collect::<Vec<_>>(), expected);
}

#[test]
fn right_scripts_are_silent() {
    let mut alarms = String::new();
    let mut look = |source: Source, place: &str| {
        let found = check(&source).unwrap_or_else(|error| panic!("{place}: {error}"));
        for it in found {
            writeln!(alarms, "{place} {}", told(&it)).expect("memory");
        }
    };
    for extension in ["lua", "rhai"] {
        let file = format!("right.{extension}.txt");
        for (line, _, text) in scripts(&file) {
            look(Source::alone(format!("handlers.{extension}"), text), &format!("{file}:{line}"));
        }
    }
    for path in files("examples") {
        look(beside(&path), &path.display().to_string());
    }
    // One program in pieces, which is among the examples.
    let whole = |it: &str| !it.starts_with("docs/migration.md");
    for block in all_blocks(&["lua", "rhai"]).into_iter().filter(|it| whole(&it.place)) {
        let name = format!("{}.{}", block.place, block.language);
        look(Source::alone(name, block.text), &block.place);
    }
    assert_eq!(alarms, "");
}

/// Scenarios and the tests of the standard library contain mistakes on purpose: these are all of their findings.
#[test]
fn mistakes_of_scenarios_are_those_on_purpose() {
    let mut found = String::new();
    for path in files("tests/scenarios").into_iter().chain(files("stdlib/tests")) {
        let shown = path.display();
        let source = beside(&path);
        // Some of them cannot be loaded alone.
        let all = check(&source).unwrap_or_else(|_| {
            checker::check(std::slice::from_ref(&source), &Knowledge::default()).all
        });
        for it in all {
            writeln!(found, "{shown}:{}", told(&it)).expect("memory");
        }
    }
    expect_file!["on_purpose.txt"].assert_eq(&found);
}

/// Returns a script with the modules next to it.
fn beside(path: &Path) -> Source {
    let full = root().join(path);
    let text = fs::read_to_string(&full).expect("a script");
    let modules = Modules::beside(&full);
    Source { name: path.display().to_string(), text, modules }
}

/// Returns the scripts below a directory, without modules.
fn files(directory: &str) -> Vec<PathBuf> {
    fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
        let entries = fs::read_dir(root().join(directory)).expect("a directory");
        let mut names: Vec<_> = entries.map(|it| it.expect("an entry").file_name()).collect();
        names.sort();
        for name in names {
            let path = directory.join(&name);
            let shown = name.to_string_lossy();
            if root().join(&path).is_dir() {
                if shown != "lib" {
                    collect(&path, found);
                }
            } else if !shown.starts_with('_')
                && (shown.ends_with(".lua") || shown.ends_with(".rhai"))
            {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    collect(Path::new(directory), &mut found);
    assert!(found.len() > 5, "{directory}");
    found
}
