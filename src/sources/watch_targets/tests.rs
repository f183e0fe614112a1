//! Resolution of paths in simulated trees.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
};

use expect_test::{Expect, expect};

use super::{PathKind, WatchTargets};

/// Returns a tree: directories end with `/`, links have `-> target`.
fn tree(entries: &[&str]) -> BTreeMap<PathBuf, PathKind> {
    let mut tree = BTreeMap::from([(PathBuf::from("/"), PathKind::Directory)]);
    for entry in entries {
        let (path, kind) = match entry.split_once(" -> ") {
            Some((path, target)) => (path, PathKind::Link(target.into())),
            None => match entry.strip_suffix('/') {
                Some(path) => (path, PathKind::Directory),
                None => (*entry, PathKind::File),
            },
        };
        for parent in Path::new(path).ancestors().skip(1) {
            tree.entry(parent.into()).or_insert(PathKind::Directory);
        }
        tree.insert(path.into(), kind);
    }
    tree
}

fn targets(paths: &[&str], entries: &[&str]) -> WatchTargets {
    let tree = tree(entries);
    let inspect = |it: &Path| tree.get(it).cloned().unwrap_or(PathKind::Nothing);
    WatchTargets::resolving(paths.iter().map(Path::new), &inspect)
}

fn check(paths: &[&str], entries: &[&str], expected: &Expect) {
    let mut text = String::new();
    for (directory, entries) in &targets(paths, entries).0 {
        let scripts = if entries.scripts { " scripts" } else { "" };
        let names: Vec<_> = entries.names.iter().map(|it| it.display().to_string()).collect();
        let names = names.join(" ");
        writeln!(text, "{}:{scripts} {names}", directory.display()).expect("memory");
    }
    expected.assert_eq(&text);
}

#[test]
fn a_file_is_watched_by_name_in_its_directory() {
    check(
        &["/home/me/handlers.lua"],
        &["/home/me/handlers.lua"],
        &expect![["
            /home/me: handlers.lua
        "]],
    );
}

#[test]
fn a_directory_is_watched_for_scripts_and_from_outside() {
    check(
        &["/etc/scripts"],
        &["/etc/scripts/a.lua"],
        &expect![["
            /etc: scripts
            /etc/scripts: scripts 
        "]],
    );
}

#[test]
fn the_links_of_a_volume_are_watched() {
    let volume = [
        "/etc/scripts/..2026_1/a.lua",
        "/etc/scripts/..2026_1/lib/b.lua",
        "/etc/scripts/..data -> ..2026_1",
        "/etc/scripts/a.lua -> ..data/a.lua",
        "/etc/scripts/lib -> ..data/lib",
    ];
    check(
        &["/etc/scripts", "/etc/scripts/a.lua", "/etc/scripts/lib/b.lua"],
        &volume,
        &expect![["
            /etc: scripts
            /etc/scripts: scripts ..data a.lua lib
            /etc/scripts/..2026_1: a.lua
            /etc/scripts/..2026_1/lib: b.lua
        "]],
    );
}

#[test]
fn missing_files_are_watched_where_they_would_appear() {
    check(
        &["/etc/scripts/lib/deep/b.lua"],
        &["/etc/scripts/"],
        &expect![["
            /etc/scripts: lib
        "]],
    );
}

#[test]
fn links_lead_up_and_away() {
    check(
        &["/app/current/handlers"],
        &[
            "/app/current -> releases/../releases/3",
            "/app/releases/3/handlers -> /srv/handlers",
            "/srv/handlers/",
        ],
        &expect![["
            /app: current
            /app/releases/3: handlers
            /srv: handlers
            /srv/handlers: scripts 
        "]],
    );
}

#[test]
fn cycles_of_links_end() {
    let targets = targets(&["/a/b"], &["/a/b -> c", "/a/c -> b"]);
    assert_eq!(targets.0.len(), 1);
}

#[test]
fn only_paths_that_lead_to_scripts_matter() {
    let targets = targets(&["/w/scripts", "/w/one.lua"], &["/w/scripts/a.lua", "/w/one.lua"]);
    let concern = |it: &str| targets.concern(Path::new(it));
    for path in ["/w/scripts/a.lua", "/w/scripts/_new.rhai", "/w/scripts", "/w/one.lua", "/w"] {
        assert!(concern(path), "{path}");
    }
    for path in ["/w/scripts/.a.lua.swp", "/w/scripts/4913", "/w/other.lua", "/w/kopf.log", "/"] {
        assert!(!concern(path), "{path}");
    }
}
