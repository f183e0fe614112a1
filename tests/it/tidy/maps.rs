//! The maps are correct: walks name files that exist and import each other, the words of the glossary are those of the code.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use super::{imports::Graph, is_rust, own_files, root, source};

/// The walks of `src/README.md`, by the end of their headings.
const WALKS: &[&str] =
    &["one event", "a declaration", "a reload", "a request to the embedded server"];

/// Maximum number of words in the glossary.
const WORDS_MAX: usize = 40;

/// Returns a section of the map, by its heading.
fn section(heading: &str) -> String {
    let map = fs::read_to_string(root().join("src/README.md")).expect("the map");
    let (_, section) = map.split_once(&format!("\n## {heading}\n")).expect(heading);
    section.split("\n## ").next().unwrap_or_default().to_owned()
}

/// Returns the files that a walk names.
fn passed(walk: &str) -> BTreeSet<PathBuf> {
    let section = section(&format!("The walk: {walk}"));
    let names = section.split('`').skip(1).step_by(2).filter(|it| is_rust(it));
    names.map(|it| Path::new("src").join(it)).collect()
}

#[test]
fn walks_name_files_that_exist() {
    for walk in WALKS {
        let files = passed(walk);
        assert!(files.len() > 5, "the walk of {walk} names hardly a file");
        for file in files {
            assert!(root().join(&file).exists(), "the walk of {walk} names {}", file.display());
        }
    }
}

#[test]
fn walks_follow_the_imports() {
    let (graph, server) = (Graph::read(), Graph::of_server());
    for walk in WALKS {
        let files = passed(walk);
        let graph =
            if files.iter().all(|it| it.starts_with(super::SERVER)) { &server } else { &graph };
        let mut open: Vec<_> = files.iter().take(1).collect();
        let mut reached = BTreeSet::new();
        while let Some(file) = open.pop() {
            if reached.insert(file) {
                open.extend(files.iter().filter(|it| graph.are_connected(file, it)));
            }
        }
        let lost: Vec<_> = files.iter().filter(|it| !reached.contains(it)).collect();
        assert!(
            lost.is_empty(),
            "the walk of {walk}: no import leads from {:?} to {lost:?}: name the files between them",
            files.first()
        );
    }
}

#[test]
fn the_readme_of_the_tests_names_only_what_exists() {
    let text = fs::read_to_string(root().join("tests/README.md")).expect("tests/README.md");
    let (_, folders) = text.split_once("## The folders of `tests/it`").expect("the folders");
    let cells = folders.lines().filter_map(|it| it.strip_prefix("| `")?.split(" |").next());
    let named = cells.flat_map(|it| it.split("`, `")).map(|it| it.trim_matches('`').to_owned());
    let paths = text.split('`').skip(1).step_by(2).filter(|it| is_rust(it) && it.contains('/'));
    let paths = paths.map(str::to_owned);
    for name in named.chain(paths) {
        let found = ["tests/it", "", "src"].iter().any(|it| root().join(it).join(&name).exists());
        assert!(found, "tests/README.md names {name}, which is not there");
    }
    let main = fs::read_to_string(root().join("tests/it/main.rs")).expect("tests/it/main.rs");
    let modules = main.lines().filter_map(|it| it.strip_prefix("mod ")?.strip_suffix(';'));
    for module in modules {
        assert!(
            folders.contains(&format!("`{module}")),
            "tests/README.md has no line for {module}"
        );
    }
}

#[test]
fn the_words_of_the_glossary_are_those_of_the_code() {
    let glossary = section("Glossary");
    let rows = glossary.lines().filter_map(|it| it.strip_prefix("| ")?.split(" | ").next());
    let words: Vec<_> = rows.filter(|it| *it != "word").collect();
    assert!((20..=WORDS_MAX).contains(&words.len()), "{} words, {WORDS_MAX} at most", words.len());
    let mut sorted = words.clone();
    sorted.sort_unstable();
    assert_eq!(words, sorted, "the glossary is in order of the alphabet");
    let files = own_files();
    let code: Vec<_> = files.iter().map(|it| source::production(&it.text).to_lowercase()).collect();
    for word in words {
        let uses = code.iter().filter(|it| it.contains(word)).count();
        assert!(
            uses > 1,
            "`{word}` of the glossary is used in {uses} files: take it out, or use it"
        );
    }
}
