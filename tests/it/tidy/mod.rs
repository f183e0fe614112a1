//! The rules of the project that the compiler does not check: the order of layers, the purity of `logic`, headers and lengths.
//!
//! Each failure names the file, the line and the rule. `tests/it/` is outside of all layers and may use everything.

mod imports;
mod maps;
mod rooms;
mod source;
mod words;

use std::{
    collections::BTreeSet,
    fmt, fs,
    path::{Path, PathBuf},
};

/// The layers from the inside out: a module may use those before it.
const LAYERS: &[&str] = &[
    "json",
    "luau",
    "rhai",
    "heap",
    "sorted",
    "settings",
    "logic",
    "telemetry",
    "ports",
    "call",
    "handling",
    "features",
    "reactor",
    "cluster",
    "scripting",
    "checker",
    "lsp",
    "sources",
    "webhooks",
    "testing",
    "cli",
];

/// In addition to the order: adapters never use each other.
const STRANGERS: &[(&str, &[&str])] = &[("cluster", &["scripting"]), ("scripting", &["cluster"])];

/// The embedded API server, a separate package: the compiler keeps it from using anything of `kopf`.
const SERVER: &str = "src/apiserver";

/// Names that `logic/` must not use: it receives everything as arguments and returns everything as results.
const IMPURE: &[&str] = &[
    "async ",
    ".await",
    "tokio",
    "std::fs",
    "std::env",
    "std::io",
    "std::net",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "SystemTime",
    "::now(",
    "rand::",
    "tracing::",
    "println!",
    "Mutex",
    "RwLock",
    "static mut",
];

/// Maximum number of lines of a file that can be read in one go.
const LINES_MAX: usize = 600;

/// A Rust file of the project.
struct File {
    /// The path relative to the root of the project.
    path: PathBuf,
    text: String,
}

/// A broken rule.
struct Complaint {
    file: PathBuf,
    line: usize,
    rule: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.rule)
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns all Rust files under these directories.
fn files(directories: &[&str]) -> Vec<File> {
    let mut found = Vec::new();
    for directory in directories {
        collect(&root().join(directory), &mut found);
    }
    assert!(!found.is_empty(), "no files in {directories:?}");
    found
}

/// Returns the Rust files of the package `kopf` itself, without the embedded API server's.
fn own_files() -> Vec<File> {
    let mut found = files(&["src"]);
    found.retain(|it| !it.path.starts_with(SERVER));
    found
}

fn collect(directory: &Path, found: &mut Vec<File>) {
    let mut entries: Vec<_> =
        fs::read_dir(directory).expect("a directory").flatten().map(|it| it.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(&path).expect("a string");
            let path = path.strip_prefix(root()).expect("inside the project").into();
            found.push(File { path, text });
        }
    }
}

impl File {
    /// Returns the top module that it belongs to; `None` for `lib.rs` and `main.rs`, which belong to none.
    fn module(&self) -> Option<&'static str> {
        let part = self.path.components().nth(1)?.as_os_str().to_str()?;
        let part = part.strip_suffix(".rs").unwrap_or(part);
        LAYERS.iter().copied().find(|it| *it == part)
    }

    /// Returns whether it is a test. Tests may wait, read and lock; the code that they test may not.
    fn is_test(&self) -> bool {
        let stem = self.path.file_stem().and_then(|it| it.to_str()).unwrap_or_default();
        stem.ends_with("tests") || self.path.components().any(|it| it.as_os_str() == "tests")
    }

    /// Returns whether Cargo compiles it as the root of a crate: no file declares it.
    fn is_root(&self) -> bool {
        let path = &self.path;
        path.ends_with("lib.rs")
            || path.ends_with("main.rs")
            || path.parent().is_some_and(|it| it.ends_with("benches"))
    }

    /// Returns the lines of code with their numbers, without comments.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line.split("//").next().unwrap_or_default()))
    }

    fn complain(&self, line: usize, rule: impl Into<String>) -> Complaint {
        Complaint { file: self.path.clone(), line, rule: rule.into() }
    }
}

/// Returns the top modules that a line names by `crate::`.
fn used(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for rest in line.split("crate::").skip(1) {
        found.extend(rest.split(|it: char| !it.is_alphanumeric() && it != '_').next());
    }
    found
}

/// Returns whether it is the name of a Rust file.
fn is_rust(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|it| it == "rs")
}

fn position(module: &str) -> Option<usize> {
    LAYERS.iter().position(|it| *it == module)
}

/// Returns the reason why `module` may not use `other`, if there is one.
fn objection(module: &str, other: &str) -> Option<String> {
    if module == other {
        return None;
    }
    let strangers = STRANGERS.iter().find(|(it, _)| *it == module).map_or(&[][..], |(_, of)| of);
    if strangers.contains(&other) {
        return Some(format!("`{module}` must know nothing of `{other}`"));
    }
    match (position(module), position(other)) {
        (Some(own), Some(its)) if its > own => Some(format!(
            "`{other}` is outside of `{module}`: layers use only what is inside of them"
        )),
        _ => None,
    }
}

fn report(complaints: &[Complaint]) {
    let text: Vec<_> = complaints.iter().map(ToString::to_string).collect();
    assert!(complaints.is_empty(), "{} rules are broken:\n{}", text.len(), text.join("\n"));
}

#[test]
fn modules_use_only_the_layers_inside_of_them() {
    let mut complaints = Vec::new();
    for file in own_files() {
        let Some(module) = file.module() else { continue };
        for (line, code) in file.code() {
            let objections = used(code).into_iter().filter_map(|it| objection(module, it));
            complaints.extend(objections.map(|it| file.complain(line, it)));
        }
    }
    report(&complaints);
}

#[test]
fn imports_name_their_top_module() {
    let mut complaints = Vec::new();
    for file in own_files() {
        for (line, code) in file.code().filter(|(_, code)| code.contains("use crate::{")) {
            let rule = format!("`{}` hides which modules it uses: one `use` for each", code.trim());
            complaints.push(file.complain(line, rule));
        }
    }
    report(&complaints);
}

#[test]
fn logic_is_pure() {
    let mut complaints = Vec::new();
    for file in files(&["src/logic"]).iter().filter(|it| !it.is_test()) {
        for (line, code) in file.code() {
            let impure = IMPURE.iter().filter(|it| code.contains(**it));
            complaints.extend(impure.map(|it| {
                file.complain(
                    line,
                    format!("`{}` has no place in logic: take it as an argument", it.trim()),
                )
            }));
        }
    }
    report(&complaints);
}

#[test]
fn every_file_says_what_it_is_for() {
    let mut complaints = Vec::new();
    for file in files(&["src", "tests", "benches"]) {
        let first = file.text.lines().next().unwrap_or_default();
        let is_header = first.starts_with("//! ") || first.starts_with("#![doc = include_str!(");
        if !is_header {
            complaints.push(file.complain(1, "the first line says what the file is for: `//! …`"));
        }
    }
    report(&complaints);
}

#[test]
fn every_file_is_compiled() {
    let all = files(&["src", "tests/it"]);
    let mut complaints = Vec::new();
    for file in all.iter().filter(|it| !it.is_root()) {
        let is_module = file.path.ends_with("mod.rs");
        let module = if is_module { file.path.parent() } else { Some(&*file.path) };
        let module = module.expect("a directory");
        let name = module.file_stem().and_then(|it| it.to_str()).expect("a name");
        let folder = module.parent().expect("a directory");
        let parents = ["mod.rs", "lib.rs", "main.rs"].map(|it| folder.join(it));
        let parents = [folder.with_extension("rs")].into_iter().chain(parents).collect::<Vec<_>>();
        let declaration = format!("mod {name};");
        let mut parents = all.iter().filter(|it| parents.contains(&it.path));
        if !parents.any(|it| it.code().any(|(_, code)| code.contains(&declaration))) {
            complaints.push(file.complain(1, format!("no file declares `{declaration}`")));
        }
    }
    report(&complaints);
}

#[test]
fn no_file_is_longer_than_a_sitting() {
    let mut complaints = Vec::new();
    for file in files(&["src", "tests", "benches"]) {
        let lines = file.text.lines().count();
        if lines > LINES_MAX {
            complaints.push(
                file.complain(lines, format!("more than {LINES_MAX} lines: split it by job")),
            );
        }
    }
    report(&complaints);
}

#[test]
fn the_map_names_every_module_and_every_module_has_a_layer() {
    let map = fs::read_to_string(root().join("src/README.md")).expect("the map");
    let files = own_files();
    let present: BTreeSet<_> = files
        .iter()
        .filter_map(|it| it.path.components().nth(1)?.as_os_str().to_str())
        .map(|it| it.strip_suffix(".rs").unwrap_or(it))
        .filter(|it| !matches!(*it, "lib" | "main"))
        .collect();
    for module in present {
        assert!(LAYERS.contains(&module), "src/{module} has no place in the order of layers");
        assert!(map.contains(&format!("`{module}")), "src/README.md has no line for `{module}`");
    }
}

#[test]
fn the_map_names_only_files_that_exist() {
    let map = fs::read_to_string(root().join("src/README.md")).expect("the map");
    for name in map.split('`').filter(|it| is_rust(it)) {
        let found = [root().join("src").join(name), root().join(name)].iter().any(|it| it.exists());
        assert!(found, "src/README.md names {name}, which is not there");
    }
}

#[test]
fn the_walk_of_a_reload_names_every_file_of_the_takeover() {
    let map = fs::read_to_string(root().join("src/README.md")).expect("the map");
    let (_, walk) = map.split_once("## The walk: a reload\n").expect("the walk");
    let walk = walk.split("\n## ").next().unwrap_or_default();
    let named: BTreeSet<_> = walk.split('`').skip(1).step_by(2).filter(|it| is_rust(it)).collect();
    for name in &named {
        assert!(
            root().join("src").join(name).exists(),
            "src/README.md names {name}, which is not there"
        );
    }
    for file in files(&["src/reactor/generation", "src/logic/generation"]) {
        let name = file.path.strip_prefix("src").expect("in src").to_str().expect("UTF-8");
        assert!(
            file.is_test() || named.contains(name),
            "the walk of a reload passes {name} unseen"
        );
    }
}

#[test]
fn comments_name_only_files_that_exist() {
    let mut complaints = Vec::new();
    for file in files(&["src", "tests", "benches"]) {
        let folder = file.path.parent().expect("a folder");
        let near = [folder, folder.parent().expect("below the top"), Path::new("src")];
        let bases = [near.as_slice(), &[Path::new(SERVER), Path::new("")]].concat();
        for (number, line) in file.text.lines().enumerate() {
            let Some((_, comment)) = line.split_once("//") else { continue };
            let names = comment.split('`').skip(1).step_by(2);
            for name in names.filter(|it| is_rust(it) && !it.contains([' ', '{', '*'])) {
                if !bases.iter().any(|it| root().join(it).join(name).exists()) {
                    complaints.push(file.complain(number + 1, format!("there is no {name}")));
                }
            }
        }
    }
    report(&complaints);
}

#[test]
fn the_order_is_checked_as_it_is_meant() {
    assert_eq!(objection("reactor", "logic"), None);
    assert_eq!(objection("cli", "reactor"), None);
    assert_eq!(objection("cluster", "ports"), None);
    assert!(objection("logic", "ports").is_some());
    assert!(objection("handling", "reactor").is_some());
    assert!(objection("scripting", "cluster").is_some());
    assert!(objection("cluster", "scripting").is_some());
    assert_eq!(used("use crate::logic::{a, b}; crate::ports::Clock"), ["logic", "ports"]);
}
