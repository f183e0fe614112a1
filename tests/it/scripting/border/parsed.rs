//! The files of the suite.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use kopf::scripting::{Modules, Source};
use regex::Regex;

/// The memory that the operator may hold additionally, including garbage of the VM, unless a file sets another limit.
const HOLDS: isize = 4 << 20;

/// The differences between the languages.
#[derive(Clone, Copy)]
pub(super) struct Language {
    pub(super) name: &'static str,
    /// The start of a comment.
    pub(super) comment: &'static str,
    /// Declares a handler that is called after the script has done its worst.
    pub(super) alive: &'static str,
}

/// Lua as these files use it.
pub(super) const LUA: Language = Language {
    name: "lua",
    comment: "--",
    alive: r#"kopf.on_create("kopfexamples", { id = "alive", labels = { role = "alive" } }, function() return "alive" end)"#,
};
pub(super) const RHAI: Language = Language {
    name: "rhai",
    comment: "//",
    alive: "kopf::on_create(`kopfexamples`, #{ id: `alive`, labels: #{ role: `alive` } }, |ctx| `alive`);",
};

/// One file of the suite.
pub(super) struct Script {
    pub(super) name: String,
    pub(super) source: Source,
    pub(super) says: Vec<Regex>,
    pub(super) holds: isize,
    pub(super) at_load: bool,
    /// Whether a call reaches the limit on CPU time.
    pub(super) reaches_cpu_limit: bool,
}

impl Script {
    /// Returns the subject of the script: the first word of its name.
    pub(super) fn row(&self) -> &str {
        self.name.split('_').next().unwrap_or_default()
    }
}

/// Reads all files of a language, in order.
pub(super) fn read_all(language: Language) -> Vec<Script> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/border").join(language.name);
    let entries = fs::read_dir(folder).expect("the folder of the scripts");
    let mut paths: Vec<PathBuf> = entries.map(|it| it.expect("an entry").path()).collect();
    paths.sort();
    paths.iter().map(|it| read(language, it)).collect()
}

fn read(language: Language, path: &Path) -> Script {
    let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
    let text = fs::read_to_string(path).expect("a string");
    let header = |key: &str| {
        let lines = text.lines().map_while(|it| it.strip_prefix(language.comment));
        let values = lines.filter_map(|it| it.trim().strip_prefix(key)?.strip_prefix(':'));
        values.map(|it| it.trim().to_owned()).collect::<Vec<_>>()
    };
    let mut says = header("says");
    assert!(!says.is_empty(), "{name}: nothing is expected");
    let parts = parts(language, &text);
    for (file, text) in &parts {
        let place = text.lines().position(|it| it.contains("HERE")).map(|it| it + 1);
        says.extend(place.map(|it| format!("{}:{it}\\b", regex::escape(file))));
    }
    let at_load = header("at").iter().any(|it| it == "load");
    let mut parts = parts.into_iter();
    let (file, mut main) = parts.next().expect("the script itself");
    if !at_load {
        main = format!("{main}\n{}\n", language.alive);
    }
    let texts: BTreeMap<PathBuf, String> = parts.map(|(file, text)| (file.into(), text)).collect();
    let pattern = |it: &String| Regex::new(&format!("(?s){it}")).expect("a pattern");
    Script {
        source: Source { name: file, text: main, modules: Modules::of_texts(texts) },
        says: says.iter().map(pattern).collect(),
        holds: header("holds").first().map_or(HOLDS, |it| bytes(it)),
        at_load,
        reaches_cpu_limit: header("limit").iter().any(|it| it == "cpu"),
        name,
    }
}

/// Returns the script and its modules, each with the name of its file.
fn parts(language: Language, text: &str) -> Vec<(String, String)> {
    let sign = format!("{} module: ", language.comment);
    let mut parts = vec![(format!("hostile.{}", language.name), String::new())];
    for line in text.lines() {
        if let Some(name) = line.strip_prefix(&sign) {
            parts.push((name.trim().to_owned(), String::new()));
        } else if let Some((_, part)) = parts.last_mut() {
            part.push_str(&expanded(line));
            part.push('\n');
        }
    }
    parts
}

/// Returns a line with its repetitions expanded.
fn expanded(line: &str) -> String {
    let repeated = Regex::new("@@([0-9]+):(.*?)@@").expect("a pattern");
    let times = |it: &regex::Captures<'_>| {
        let [count, what] = [1, 2].map(|group| it.get(group).map_or("", |it| it.as_str()));
        what.repeat(count.parse().expect("a number"))
    };
    repeated.replace_all(line, times).into_owned()
}

fn bytes(text: &str) -> isize {
    let number = text.strip_suffix(" MiB").expect("a size in MiB");
    number.parse::<isize>().expect("a number") << 20
}
