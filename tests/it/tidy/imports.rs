//! The imports between files: computed from `use` and from paths; re-exports are followed to the file that defines the name.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{File, SERVER, files, own_files, source};

/// Maximum number of re-exports that are followed: more are a cycle.
const REEXPORTS_MAX: usize = 8;

/// The files of the package `kopf`, without tests, and what each imports.
pub(super) struct Graph {
    modules: BTreeMap<Vec<String>, Module>,
    /// By the path of a file in `src`: the paths of those that it imports.
    edges: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
}

/// One file.
struct Module {
    path: PathBuf,
    /// Absolute paths, with the names that they have in this file.
    imports: Vec<(Vec<String>, String)>,
    /// Absolute paths in the code.
    mentions: Vec<Vec<String>>,
}

impl Graph {
    /// Reads the files of the package `kopf`.
    pub(super) fn read() -> Self {
        Graph::of(Path::new("src"), &own_files())
    }

    /// Reads the files of the embedded API server.
    pub(super) fn of_server() -> Self {
        Graph::of(Path::new(SERVER), &files(&[SERVER]))
    }

    fn of(root: &Path, files: &[File]) -> Self {
        let files = files.iter().filter(|it| !it.is_test() && !it.path.ends_with("main.rs"));
        let modules: BTreeMap<_, _> =
            files.map(|it| (module_of(root, &it.path), Module::of(root, it))).collect();
        let mut graph = Graph { modules, edges: BTreeMap::new() };
        graph.edges = graph.modules.values().map(|it| (it.path.clone(), graph.used(it))).collect();
        graph
    }

    /// Returns the files that this one imports.
    fn used(&self, module: &Module) -> BTreeSet<PathBuf> {
        let imports = module.imports.iter().map(|(path, _)| path);
        let paths = imports.chain(&module.mentions);
        let found = paths.filter_map(|it| self.definition(it, 0));
        found.filter(|it| **it != module.path).cloned().collect()
    }

    /// Returns the file that defines the name at the end of this path.
    fn definition(&self, path: &[String], reexports: usize) -> Option<&PathBuf> {
        let length = (0..=path.len()).rev().find(|it| self.modules.contains_key(&path[..*it]))?;
        let module = self.modules.get(&path[..length])?;
        let Some(name) = path.get(length).filter(|_| reexports < REEXPORTS_MAX) else {
            return Some(&module.path);
        };
        let import = module.imports.iter().find(|(it, its)| its == name && *it != path[..=length]);
        let Some((import, _)) = import else { return Some(&module.path) };
        let whole: Vec<_> = import.iter().chain(&path[length + 1..]).cloned().collect();
        let further = self.definition(&whole, reexports + 1);
        // Names that other crates define belong to no file here.
        further.or(Some(&module.path))
    }

    /// Returns all files with those that each imports.
    pub(super) fn edges(&self) -> impl Iterator<Item = (&Path, &Path)> {
        let edges = self.edges.iter();
        edges.flat_map(|(from, to)| to.iter().map(move |it| (from.as_path(), it.as_path())))
    }

    /// Returns whether one of the two files imports the other.
    pub(super) fn are_connected(&self, one: &Path, other: &Path) -> bool {
        let imports =
            |from: &Path, to: &Path| self.edges.get(from).is_some_and(|it| it.contains(to));
        imports(one, other) || imports(other, one)
    }

    /// Returns the files that import themselves through others.
    pub(super) fn in_cycles(&self) -> Vec<&Path> {
        let files = self.edges.keys().filter(|it| self.reachable(it).contains(it.as_path()));
        files.map(PathBuf::as_path).collect()
    }

    fn reachable<'a>(&'a self, start: &'a Path) -> BTreeSet<&'a Path> {
        let (mut found, mut open) = (BTreeSet::new(), vec![start]);
        while let Some(file) = open.pop() {
            let next = self.edges.get(file).into_iter().flatten().map(PathBuf::as_path);
            open.extend(next.filter(|it| found.insert(*it)));
        }
        found
    }
}

impl Module {
    fn of(root: &Path, file: &File) -> Self {
        let code = source::production(&file.text);
        let home = module_of(root, &file.path);
        let absolute = |path: &[String]| absolute(path, &home);
        let imports = source::imports(&code).into_iter();
        let imports = imports.map(|(path, name)| (absolute(&path), name)).collect();
        let mentions = source::paths(&code).iter().map(|it| absolute(it)).collect();
        Module { path: file.path.clone(), imports, mentions }
    }
}

/// Returns the module of a file: that of a `mod.rs` is its folder.
fn module_of(root: &Path, path: &Path) -> Vec<String> {
    let inside = path.strip_prefix(root).expect("a file of the package").with_extension("");
    let mut parts: Vec<_> =
        inside.iter().map(|it| it.to_str().expect("UTF-8").to_owned()).collect();
    if parts.last().is_some_and(|it| matches!(it.as_str(), "mod" | "lib")) {
        parts.pop();
    }
    parts
}

/// Returns a path as seen from the root; one that begins with a name is relative to `home`.
fn absolute(path: &[String], home: &[String]) -> Vec<String> {
    let mut base = home.to_vec();
    let mut rest = path;
    match path.first().map(String::as_str) {
        Some("crate") => (base, rest) = (Vec::new(), &path[1..]),
        Some("self") => rest = &path[1..],
        _ => {
            while rest.first().is_some_and(|it| it == "super") {
                (_, rest) = (base.pop(), &rest[1..]);
            }
        }
    }
    base.extend_from_slice(rest);
    base
}
