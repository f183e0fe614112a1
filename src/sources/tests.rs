//! The rules for paths, each in its own directory.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{Error, SourceProblem, read_all};

/// A directory that is removed at the end of its test.
struct TempDirectory(PathBuf);

impl TempDirectory {
    fn with(test: &str, files: &[&str]) -> Self {
        let path = std::env::temp_dir().join(format!("kopf-sources-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory for the test");
        for file in files {
            let file = path.join(file);
            fs::create_dir_all(file.parent().expect("a parent")).expect("its directory");
            fs::write(&file, "-- empty").expect("a file for the test");
        }
        TempDirectory(path)
    }

    fn names(&self, paths: &[&str]) -> Result<Vec<String>, Error> {
        let paths: Vec<_> = paths.iter().map(PathBuf::from).collect();
        Ok(read_all(&paths, &self.0)?.into_iter().map(|it| it.name).collect())
    }
}

impl Drop for TempDirectory {
    fn drop(&mut self) {
        let _left_for_the_system = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_scripts_of_a_directory_are_ordered_by_name() {
    let files =
        ["ops/b.lua", "ops/a.rhai", "ops/_lib.lua", "ops/.x.lua", "ops/n.txt", "ops/d/e.lua"];
    let here = TempDirectory::with("order", &files);
    fs::create_dir(here.0.join("ops/dir.lua")).expect("a directory named like a script");
    assert_eq!(here.names(&["ops"]).expect("scripts"), ["ops/a.rhai", "ops/b.lua"]);
}

#[test]
fn paths_keep_the_order_of_the_command_line() {
    let here = TempDirectory::with("paths", &["z.lua", "a.lua", "_one.rhai"]);
    let names = here.names(&["z.lua", "a.lua", "_one.rhai"]).expect("scripts");
    assert_eq!(names, ["z.lua", "a.lua", "_one.rhai"]);
}

#[test]
fn the_files_of_a_config_map_volume_are_found_once() {
    let here = TempDirectory::with("volume", &["volume/..2026/a.lua"]);
    let link = |to: &str, from: &str| {
        std::os::unix::fs::symlink(to, here.0.join("volume").join(from)).expect("a symlink");
    };
    link("..2026", "..data");
    link("..data/a.lua", "a.lua");
    assert_eq!(here.names(&["volume"]).expect("scripts"), ["volume/a.lua"]);
}

#[test]
fn without_paths_the_default_locations_are_tried_in_order() {
    let here = TempDirectory::with("usual", &["handlers/x.lua"]);
    assert_eq!(here.names(&[]).expect("scripts"), ["handlers/x.lua"]);
    fs::write(here.0.join("handlers.rhai"), "").expect("a file for the test");
    assert_eq!(here.names(&[]).expect("scripts"), ["handlers.rhai"]);
    fs::write(here.0.join("handlers.lua"), "").expect("a file for the test");
    assert_eq!(here.names(&[]).expect("scripts"), ["handlers.lua"]);
}

#[test]
fn unusable_paths_are_errors_that_name_them() {
    let here = TempDirectory::with("errors", &["a.py", "noext", "empty/readme.md"]);
    fs::write(here.0.join("latin.lua"), b"-- one\n-- \xe9\n").expect("a file for the test");
    std::os::unix::fs::symlink("nowhere", here.0.join("dangling.lua")).expect("a symlink");
    let cases = [
        (&[][..], "no scripts given"),
        (&["nope.lua"][..], "there is no file or directory 'nope.lua'"),
        (&["dangling.lua"][..], "there is no file or directory 'dangling.lua'"),
        (&["a.py"][..], "not a script: 'a.py'"),
        (&["noext"][..], "not a script: 'noext'"),
        (&["empty"][..], "there are no scripts in the directory 'empty'"),
        (&["latin.lua"][..], "'latin.lua' is not UTF-8: see line 2"),
    ];
    for (paths, message) in cases {
        let problem = SourceProblem::from(here.names(paths).expect_err("an error"));
        assert!(problem.message.starts_with(message), "{problem}");
        assert!(problem.hint.is_some(), "{problem}");
    }
}

#[test]
fn special_and_huge_files_are_rejected_before_they_are_read() {
    let problem = read_all(&["/dev/null".into()], Path::new("/")).expect_err("a device");
    assert_eq!(problem.to_string(), "'/dev/null' is neither a file nor a directory");
    let here = TempDirectory::with("dump", &["dump.lua"]);
    let file = fs::OpenOptions::new().write(true).open(here.0.join("dump.lua")).expect("the file");
    file.set_len((1 << 20) + 1).expect("a sparse file");
    let problem = here.names(&["dump.lua"]).expect_err("too large");
    assert_eq!(problem.to_string(), "'dump.lua' has more than 1 MiB: the limit for a script");
}
