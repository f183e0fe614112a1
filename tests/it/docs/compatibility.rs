//! Every claim of `docs/compatibility.md` has a test that exists.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Returns the table, by id: status, languages, and proof.
fn rows(document: &str) -> BTreeMap<String, [String; 3]> {
    let mut rows = BTreeMap::new();
    for line in document.lines().filter(|it| it.starts_with("| ")) {
        let line = line.replace("\\|", "/");
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [id, _, status, languages, proof] = cells[..] else { continue };
        if id.split_once('-').is_some_and(|(_, number)| number.parse::<u32>().is_ok()) {
            let row = [status, languages, proof].map(str::to_owned);
            assert!(rows.insert(id.to_owned(), row).is_none(), "{id} is there twice");
        }
    }
    rows
}

/// Returns the last parts of the names in backticks.
fn names(proof: &str) -> Vec<String> {
    let names = proof.split('`').skip(1).step_by(2);
    names.map(|it| it.rsplit("::").next().unwrap_or(it).to_owned()).collect()
}

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            found.push(path);
        }
    }
}

/// Returns everything that a proof may name: test functions, folders of scenarios, suites of vectors.
fn tests() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    files(&root.join("src"), &mut sources);
    files(&root.join("tests/it"), &mut sources);
    let mut tests = BTreeSet::new();
    for source in sources {
        let text = fs::read_to_string(&source).expect("a source");
        for line in text.lines() {
            let function = line.trim_start().trim_start_matches("async ").strip_prefix("fn ");
            let name = function.and_then(|it| it.split(['(', '<']).next());
            tests.extend(name.map(str::to_owned));
        }
    }
    for (folder, prefix) in [("tests/scenarios", ""), ("tests/vectors", "vectors ")] {
        for entry in fs::read_dir(root.join(folder)).expect("a directory").flatten() {
            let path = entry.path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            tests.insert(format!("{prefix}{name}"));
        }
    }
    tests
}

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/compatibility.md");
    fs::read_to_string(path).expect("the table")
}

#[test]
fn every_claim_names_a_test_that_exists() {
    let (document, tests) = (document(), tests());
    let mut problems = Vec::new();
    for (id, [status, languages, proof]) in rows(&document) {
        let is_claim = matches!(status.as_str(), "yes" | "better");
        if !is_claim && status != "no" {
            problems.push(format!("{id}: the status is {status:?}, and not yes, better or no"));
        }
        if is_claim && !matches!(languages.as_str(), "both" | "any") {
            problems.push(format!("{id}: the languages are {languages:?}, and not both or any"));
        }
        if is_claim && names(&proof).is_empty() {
            problems.push(format!("{id}: nothing proves it"));
        }
        let unknown = names(&proof).into_iter().filter(|it| !tests.contains(it));
        problems.extend(unknown.map(|it| format!("{id}: there is no test {it}")));
    }
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn every_letter_of_what_kopf_does_wrong_has_a_test() {
    let (document, tests) = (document(), tests());
    for letter in 'a'..='l' {
        let start = format!("| ({letter}) |");
        let line = document.lines().find(|it| it.starts_with(&start)).expect("a row");
        let names = names(line.rsplit('|').nth(1).unwrap_or_default());
        assert!(!names.is_empty(), "nothing proves ({letter})");
        for name in names {
            assert!(tests.contains(&name), "({letter}): there is no test {name}");
        }
    }
}

#[test]
fn the_table_is_complete() {
    // 370 features are known; a lost row would be a claim that is not checked.
    assert_eq!(rows(&document()).len(), 370);
}

#[test]
fn the_table_of_faults_names_each_finding_that_is_shown_from_outside() {
    let document = document();
    let rows = document.lines().filter(|it| it.starts_with("| "));
    let named: BTreeSet<String> = rows.flat_map(names).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/real_clock/findings");
    let mut sources = Vec::new();
    files(&folder, &mut sources);
    let mut shown = BTreeSet::new();
    for source in sources {
        let text = fs::read_to_string(&source).expect("a source");
        let tests = text.split("#[tokio::test]\nasync fn ").skip(1);
        shown.extend(tests.filter_map(|it| Some(it.split_once('(')?.0.to_owned())));
    }
    assert!(shown.len() > 30, "the tests are found: {shown:?}");
    let missing: Vec<_> = shown.difference(&named).collect();
    assert!(missing.is_empty(), "no row of docs/compatibility.md names {missing:?}");
}
