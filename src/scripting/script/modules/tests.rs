//! Modules: their names, where they are found, what is remembered of them.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use super::{MODULES_MAX, Modules, file_of};

/// A directory that is removed at the end of its test.
struct TemporaryModules(PathBuf);

impl TemporaryModules {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kopf-modules-{}-{name}", std::process::id()));
        fs::remove_dir_all(&path).ok();
        fs::create_dir_all(&path).unwrap();
        TemporaryModules(path)
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn link(&self, target: &str, link: &str) {
        symlink(target, self.0.join(link)).unwrap();
    }

    /// Returns what the script `it.lua` in it can load.
    fn modules(&self) -> Modules {
        Modules::beside(&self.0.join("it.lua"))
    }

    /// Mounts a volume with this source in `lib.lua` and `more.lua`; replaces the mounted one.
    fn mount(&self, version: &str, text: &str) {
        self.write(&format!("..{version}/lib.lua"), text);
        self.write(&format!("..{version}/more.lua"), text);
        let link = self.0.join("..data");
        let old = fs::read_link(&link).ok();
        symlink(format!("..{version}"), self.0.join("..data_tmp")).unwrap();
        fs::rename(self.0.join("..data_tmp"), &link).unwrap();
        if let Some(old) = old {
            fs::remove_dir_all(self.0.join(old)).unwrap();
        } else {
            self.link("..data/lib.lua", "lib.lua");
            self.link("..data/more.lua", "more.lua");
        }
    }
}

impl Drop for TemporaryModules {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Returns the source of a module, or why there is none.
fn read(modules: &Modules, name: &str) -> Result<String, String> {
    let file = file_of(name, "lua").map_err(|it| it.to_string())?;
    let text = modules.read(&file, "dir/it.lua").map_err(|it| it.to_string())?;
    Ok(text.to_string())
}

fn refused(modules: &Modules, name: &str, part: &str) {
    let problem = read(modules, name).unwrap_err();
    assert!(problem.contains(part), "{name}: {problem}");
}

#[test]
fn a_name_is_a_path_below_the_script_with_or_without_the_extension() {
    for (name, file) in [
        ("lib", "lib.lua"),
        ("lib.lua", "lib.lua"),
        ("./lib", "lib.lua"),
        ("lib/naming", "lib/naming.lua"),
        ("lib//naming.lua", "lib/naming.lua"),
        ("_private", "_private.lua"),
        ("v1.2", "v1.2.lua"),
        ("kopfers", "kopfers.lua"),
    ] {
        assert_eq!(file_of(name, "lua"), Ok(file.into()), "{name}");
    }
}

#[test]
fn names_that_lead_elsewhere_are_refused_before_anything_is_read() {
    let long = "x".repeat(256);
    for (name, part) in [
        ("", "the name is empty"),
        (".", "the name is that of a directory, not of a file"),
        ("lib/", "the name is that of a directory, not of a file"),
        ("/etc/passwd", "relative to the script's directory"),
        ("..", "outside of the script's directory"),
        ("../x", "outside of the script's directory"),
        ("lib/../../x", "outside of the script's directory"),
        ("lib\\x", "relative to the script's directory"),
        ("lib\0x", "relative to the script's directory"),
        ("..data/lib", "names begin with a dot"),
        (".git/config", "names begin with a dot"),
        ("lib/.secret", "names begin with a dot"),
        ("kopf", "is built in and need not be loaded"),
        ("kopf/conditions", "built-in libraries"),
        ("./kopf/conditions", "built-in libraries"),
        (long.as_str(), "too long"),
    ] {
        let problem = file_of(name, "lua").unwrap_err().to_string();
        assert!(problem.contains(part), "{name:?}: {problem}");
    }
}

#[test]
fn links_are_followed_within_the_directory_and_not_out_of_it() {
    let here = TemporaryModules::new("links");
    here.write("scripts/lib/naming.lua", "return 1");
    here.write("secrets/token.lua", "return 2");
    here.link("lib/naming.lua", "scripts/alias.lua");
    here.link("lib", "scripts/more");
    here.link("../secrets/token.lua", "scripts/leak.lua");
    here.link("../secrets", "scripts/leaks");
    here.link("/", "scripts/root");
    let modules = Modules::beside(&here.0.join("scripts/it.lua"));
    for name in ["lib/naming", "alias", "more/naming"] {
        assert_eq!(read(&modules, name), Ok("return 1".into()), "{name}");
    }
    for name in ["leak", "leaks/token"] {
        refused(&modules, name, "is outside of the script's directory");
    }
    let absolute = here.0.join("secrets/token").display().to_string();
    refused(&modules, &format!("root{absolute}"), "is outside of the script's directory");
}

#[test]
fn a_linked_directory_confines_scripts_to_its_target() {
    let here = TemporaryModules::new("linked");
    here.write("real/lib.lua", "return 1");
    here.write("other.lua", "return 2");
    here.link("real", "scripts");
    here.link("../other.lua", "real/other.lua");
    let modules = Modules::beside(&here.0.join("scripts/it.lua"));
    assert_eq!(read(&modules, "lib"), Ok("return 1".into()));
    refused(&modules, "other", "outside of");
}

#[test]
fn a_volume_that_is_replaced_during_a_load_is_not_mixed() {
    let here = TemporaryModules::new("volume");
    here.mount("one", "return 1");
    let modules = here.modules();
    assert_eq!(read(&modules, "lib"), Ok("return 1".into()));
    here.mount("two", "return 2");
    refused(&modules, "more", "was replaced while the script was loaded");
    assert_eq!(read(&here.modules(), "more"), Ok("return 2".into()));
    // After the load, the script reads the current files, each of them once.
    modules.settle();
    assert_eq!(read(&modules, "more"), Ok("return 2".into()));
    here.mount("three", "return 3");
    assert_eq!(read(&modules, "more"), Ok("return 2".into()));
    assert_eq!(read(&modules, "lib"), Ok("return 1".into()));
}

#[test]
fn files_next_to_a_volume_are_found() {
    let here = TemporaryModules::new("beside");
    here.mount("one", "return 1");
    here.write("other.lua", "return 2");
    assert_eq!(read(&here.modules(), "other"), Ok("return 2".into()));
    refused(&here.modules(), "nothing", "not found: there is no dir/nothing.lua");
}

#[test]
fn modules_that_are_large_or_no_text_files_are_refused() {
    let here = TemporaryModules::new("odd");
    fs::write(here.0.join("binary.lua"), [0xff, 0xfe]).unwrap();
    fs::create_dir(here.0.join("folder.lua")).unwrap();
    let large = fs::File::create(here.0.join("large.lua")).unwrap();
    large.set_len((1 << 20) + 1).unwrap();
    here.write("file.lua", "");
    let modules = here.modules();
    refused(&modules, "binary", "is not UTF-8");
    refused(&modules, "folder", "is not a file");
    refused(&modules, "large", "is larger than 1 MiB");
    refused(&modules, "file.lua/x", "not found: there is no dir/file.lua/x.lua");
    // Reading it would wait forever.
    fs::remove_file(here.0.join("file.lua")).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(here.0.join("file.lua")).unwrap();
    refused(&modules, "file", "is not a file");
    drop(socket);
}

#[test]
fn without_a_directory_there_are_no_modules() {
    refused(&Modules::default(), "lib", "not found: the script has no directory");
    let gone = Modules::beside(Path::new("/nowhere/at/all/it.lua"));
    refused(&gone, "lib", "not found: there is no dir/lib.lua");
}

#[test]
fn modules_in_memory_are_found_by_their_path() {
    let texts = BTreeMap::from([
        ("lib.lua".into(), "return 1".into()),
        ("large.lua".into(), "-".repeat((1 << 20) + 1)),
    ]);
    let modules = Modules::of_texts(texts);
    assert_eq!(read(&modules, "lib"), Ok("return 1".into()));
    refused(&modules, "nothing", "not found: there is no dir/nothing.lua");
    refused(&modules, "large", "is larger than 1 MiB");
    assert_eq!(modules.taken()[1].path, None);
}

#[test]
fn requested_modules_are_remembered_even_if_missing() {
    let here = TemporaryModules::new("taken");
    here.write("lib/a.lua", "return 1");
    here.link("lib/a.lua", "b.lua");
    let modules = here.modules();
    for name in ["b", "lib/a", "missing", "b"] {
        drop(read(&modules, name));
    }
    let taken = modules.taken();
    let names: Vec<_> = taken.iter().map(|it| it.name.display().to_string()).collect();
    assert_eq!(names, ["b.lua", "lib/a.lua", "missing.lua"]);
    assert_eq!(taken[0].path, Some(here.0.join("b.lua")));
    let real = here.0.canonicalize().unwrap().join("lib/a.lua");
    assert_eq!((&taken[0].real, &taken[1].real), (&Some(real.clone()), &Some(real)));
    assert_eq!((taken[0].digest, taken[2].digest), (taken[1].digest, None));
}

#[test]
fn the_same_modules_are_recognized() {
    let here = TemporaryModules::new("same");
    here.write("a.lua", "return 1");
    let modules = here.modules();
    drop((read(&modules, "a"), read(&modules, "optional")));
    let taken = modules.taken();
    let same = || here.modules().finds_same(&taken);
    assert!(same());
    here.write("a.lua", "return 2");
    assert!(!same(), "changed");
    here.write("a.lua", "return 1");
    here.write("optional.lua", "return 3");
    assert!(!same(), "it is there now");
    fs::remove_file(here.0.join("optional.lua")).unwrap();
    assert!(same());
    fs::remove_file(here.0.join("a.lua")).unwrap();
    assert!(!same(), "it is gone");
}

#[test]
fn the_number_of_modules_is_limited() {
    let modules = Modules::default();
    for number in 0..MODULES_MAX {
        drop(read(&modules, &format!("m{number}")));
    }
    refused(&modules, "one_more", "a script has at most 256 modules");
    refused(&modules, "m0", "the script has no directory");
    assert_eq!(modules.taken().len(), MODULES_MAX);
}
