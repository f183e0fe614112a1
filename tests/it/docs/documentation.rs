//! Everything in the documentation that a machine can check is true: its scripts load, its manifests and commands are valid, its links have
//! targets, and no block of code is left out.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Parser as _;
use serde_json::Value;

use kopf::{
    cli::{args::LowArgs, config},
    logic::access::grants::{Access, Grants, Permission},
    scripting::{Placement, ScriptHost, Source, Terms},
    settings::Settings,
    testing::run_paused,
};

/// A fenced block.
pub(crate) struct Block {
    /// The position, such as `docs/errors.md:12`.
    pub place: String,
    pub language: String,
    /// Its content.
    pub text: String,
}

/// Shows one program, in pieces.
const MIGRATION: &str = "docs/migration.md";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns all pages for users, relative to the root.
fn pages() -> Vec<PathBuf> {
    fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                collect(&path, found);
            } else if path.extension().is_some_and(|it| it == "md") {
                found.push(path);
            }
        }
    }
    let mut found = vec![root().join("README.md"), root().join("CHANGELOG.md")];
    collect(&root().join("docs"), &mut found);
    collect(&root().join("examples"), &mut found);
    found.sort();
    found.iter().map(|it| it.strip_prefix(root()).expect("inside").to_owned()).collect()
}

fn read(page: &Path) -> String {
    fs::read_to_string(root().join(page)).expect("a page")
}

fn blocks(page: &Path) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in (1..).zip(read(page).lines()) {
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (None, Some(language)) => {
                let place = format!("{}:{number}", page.display());
                open = Some(Block { place, language: language.into(), text: String::new() });
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(block), None) => writeln!(block.text, "{line}").expect("memory"),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{}: a block without an end", page.display());
    found
}

/// Returns the blocks of all pages in these languages.
pub(crate) fn all_blocks(languages: &[&str]) -> Vec<Block> {
    let all = pages().into_iter().flat_map(|it| blocks(&it));
    all.filter(|it| languages.contains(&it.language.as_str())).collect()
}

#[test]
fn every_block_is_of_a_language_that_is_checked_here() {
    let known = ["lua", "rhai", "yaml", "json", "python", "bash", "console", "toml", "text", ""];
    for block in pages().iter().flat_map(|it| blocks(it)) {
        assert!(known.contains(&block.language.as_str()), "{}: {}", block.place, block.language);
    }
}

#[test]
fn scripts_load() {
    let mut access = Access::default();
    for (what, rule) in
        [(Permission::Net, "*:443"), (Permission::Env, "*"), (Permission::Read, "/etc")]
    {
        access.allow(what, rule, Path::new("/")).expect("a rule");
    }
    let mut terms = Terms::of(Placement::CurrentRuntime, &Settings::default());
    terms.grants = Arc::new(Grants { all: access, ..Grants::default() });
    let mut told = String::new();
    // A separate test covers the program in pieces.
    let blocks = all_blocks(&["lua", "rhai"]).into_iter();
    let whole = blocks.filter(|it| !it.place.starts_with(MIGRATION) || it.language != "lua");
    let migrated = read(&Path::new("examples/migration").join("handlers.lua"));
    let migrated = Block { place: MIGRATION.into(), language: "lua".into(), text: migrated };
    for block in whole.chain([migrated]) {
        let source = Source::alone(format!("{}.{}", block.place, block.language), block.text);
        let loaded = run_paused(async { ScriptHost::load(vec![source], terms.clone()).await });
        for error in loaded.err().unwrap_or_default() {
            writeln!(told, "{error}").expect("memory");
        }
    }
    assert_eq!(told, "");
}

#[test]
fn data_is_what_it_says() {
    for block in all_blocks(&["json"]) {
        let read = serde_json::from_str::<Value>(&block.text);
        assert!(read.is_ok(), "{}: {read:?}", block.place);
    }
    for block in all_blocks(&["yaml"]) {
        for document in documents(&block) {
            if document.get("kind").is_some() {
                let named = document.pointer("/metadata/name").is_some();
                assert!(document.get("apiVersion").is_some() && named, "{}", block.place);
            }
        }
        if is_configuration(&block) {
            let read = config::parse(Path::new(&block.place), &block.text);
            assert!(read.is_ok(), "{}: {:?}", block.place, read.err());
        }
    }
}

fn documents(block: &Block) -> Vec<Value> {
    let read = serde_saphyr::from_multiple::<Value>(&block.text);
    read.unwrap_or_else(|problem| panic!("{}: {problem}", block.place))
}

/// Returns whether a block is a `kopf.yaml`: all its keys are known ones.
fn is_configuration(block: &Block) -> bool {
    let known: BTreeSet<_> = config::KEYS.iter().map(|(key, _)| *key).collect();
    let known =
        |key: &String| known.contains(key.as_str()) || key == "settings" || key == "scripts";
    documents(block).iter().all(|it| it.as_object().is_some_and(|it| it.keys().all(known)))
}

#[test]
fn commands_are_those_that_there_are() {
    let mut checked = 0;
    for block in all_blocks(&["bash", "console"]) {
        for line in block.text.replace("\\\n", " ").lines() {
            let line = line.trim_start().trim_start_matches("$ ");
            let words = shlex::split(line).unwrap_or_default();
            let Some(words) = command(&words) else { continue };
            checked += 1;
            if let Err(problem) = LowArgs::try_parse_from(words) {
                assert!(!problem.use_stderr(), "{}: {line}\n{problem}", block.place);
            }
        }
    }
    assert!(checked > 20, "only {checked} commands were found");
}

/// Returns the words of a call of `kopf`, without what precedes it.
fn command(words: &[String]) -> Option<Vec<&str>> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let first = words.iter().position(|it| !it.contains('='))?;
    let end = words.iter().position(|it| ["|", "&&", "&", ">", "<", ";"].contains(it));
    let words = words.get(first..end.unwrap_or(words.len()))?;
    match words {
        ["kopf", ..] => Some(words.to_vec()),
        ["cargo", "run", rest @ ..] => {
            let ours = rest.iter().position(|it| *it == "--")?;
            Some(std::iter::once("kopf").chain(rest[ours + 1..].iter().copied()).collect())
        }
        _ => None,
    }
}

#[test]
fn links_lead_somewhere() {
    let mut told = String::new();
    for page in pages() {
        let text = read(&page);
        for link in text.split("](").skip(1).filter_map(|it| it.split(')').next()) {
            if link.contains("://") || link.contains(char::is_whitespace) {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() {
                root().join(&page)
            } else {
                root().join(&page).parent().expect("a directory").join(path)
            };
            let is_there = target.exists()
                && (anchor.is_empty() || anchors(&target).contains(&anchor.to_owned()));
            if !is_there {
                writeln!(told, "{}: {link}", page.display()).expect("memory");
            }
        }
    }
    assert_eq!(told, "");
}

/// Returns the headings of a page, as links name them.
fn anchors(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).expect("a page");
    let headings = text.lines().filter(|it| it.starts_with('#'));
    let anchor = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|it| it.is_alphanumeric() || " -_".contains(*it));
        kept.map(|it| if it == ' ' { '-' } else { it }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn the_book_has_every_page() {
    let summary = read(Path::new("docs/SUMMARY.md"));
    for page in pages() {
        let Ok(page) = page.strip_prefix("docs") else { continue };
        let page = page.display().to_string();
        // The reference has a separate table of contents.
        if page != "SUMMARY.md" && !page.starts_with("reference/") {
            assert!(summary.contains(&format!("({page})")), "docs/SUMMARY.md lacks {page}");
        }
    }
}

#[test]
fn the_migrated_operator_is_shown_whole() {
    let shown = |language: &str| {
        let ours = blocks(Path::new(MIGRATION));
        let ours: Vec<_> = ours.into_iter().filter(|it| it.language == language).collect();
        let lines = ours.iter().flat_map(|it| it.text.lines().map(str::to_owned));
        lines.filter(|it| !it.trim().is_empty()).collect::<Vec<_>>()
    };
    for (language, file) in [("python", "operator.py"), ("lua", "handlers.lua")] {
        let text = read(&Path::new("examples/migration").join(file));
        let whole: Vec<_> = text.lines().filter(|it| !it.trim().is_empty()).collect();
        assert_eq!(shown(language), whole, "{file}");
    }
}
