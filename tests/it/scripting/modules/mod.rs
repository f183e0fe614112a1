//! Modules in both languages: the same names are found and refused, with the same messages.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use kopf::scripting::{LoadedModule, Modules, Placement, ScriptHost, Source};

use kopf::testing::run_paused;

const LANGUAGES: [&str; 2] = ["lua", "rhai"];

/// A directory that is removed at the end of its test.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let name = format!("kopf-it-modules-{}-{test}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::remove_dir_all(&path).ok();
        fs::create_dir_all(path.join("scripts/lib")).expect("a directory");
        Directory(path)
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.0.join(file), text).expect("a file");
    }

    /// Loads a script that uses a module. Returns the error, and the modules that it has requested.
    fn load(&self, language: &str, module: &str) -> (String, Vec<LoadedModule>) {
        let text = match language {
            "lua" => format!("local x = require(\"{module}\")"),
            _ => format!("import \"{module}\" as x;"),
        };
        let modules = Modules::beside(&self.0.join("scripts").join(format!("it.{language}")));
        let name = format!("scripts/it.{language}");
        let source = Source { name, text, modules: modules.clone() };
        let loaded =
            run_paused(async { ScriptHost::load(vec![source], Placement::CurrentRuntime).await });
        let told = match loaded {
            Ok(_) => "loaded".to_owned(),
            Err(errors) => {
                let place = errors[0].line.map_or(0, |it| it);
                format!("{}:{place}: {}", errors[0].file, errors[0].message)
            }
        };
        (told, modules.taken())
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

#[test]
fn both_languages_find_and_refuse_the_same() {
    let here = Directory::new("same");
    here.write("secret.lua", "");
    here.write("secret.rhai", "");
    for language in LANGUAGES {
        here.write(&format!("scripts/lib/names.{language}"), "");
        let link = |target: &str, name: &str| {
            let link = here.0.join(format!("scripts/{name}.{language}"));
            symlink(format!("{target}.{language}"), link).expect("a link");
        };
        link("lib/names", "alias");
        link("../secret", "leak");
        link("nowhere", "dangling");
        link("loop", "loop");
    }
    for (module, told) in [
        ("lib/names", "loaded"),
        ("./lib/names", "loaded"),
        ("lib/names.EXT", "loaded"),
        ("alias", "loaded"),
        (
            "leak",
            "scripts/it.EXT:1: module 'leak' refused: scripts/leak.EXT is outside of the script's directory",
        ),
        (
            "dangling",
            "scripts/it.EXT:1: module 'dangling' not found: there is no scripts/dangling.EXT",
        ),
        (
            "nothing",
            "scripts/it.EXT:1: module 'nothing' not found: there is no scripts/nothing.EXT",
        ),
        ("lib", "scripts/it.EXT:1: module 'lib' not found: there is no scripts/lib.EXT"),
        (
            "../secret",
            "scripts/it.EXT:1: module '../secret' refused: modules outside of the script's directory cannot be loaded",
        ),
        (
            "lib/../../secret",
            "scripts/it.EXT:1: module 'lib/../../secret' refused: modules outside of the script's directory cannot be loaded",
        ),
        (
            "/etc/passwd",
            "scripts/it.EXT:1: module '/etc/passwd' refused: modules are named relative to the script's directory",
        ),
        (
            "..data/x",
            "scripts/it.EXT:1: module '..data/x' refused: scripts cannot load files or directories whose names begin with a dot",
        ),
        ("", "scripts/it.EXT:1: module '' refused: the name is empty"),
        (
            "kopf",
            "scripts/it.EXT:1: module 'kopf' refused: `kopf` is built in and need not be loaded",
        ),
        (
            "kopf/conditions",
            "scripts/it.EXT:1: module 'kopf/conditions' not found: kopf/ is reserved for built-in libraries, and there is no conditions",
        ),
    ] {
        for language in LANGUAGES {
            let (actual, _) = here.load(language, &module.replace("EXT", language));
            assert_eq!(actual, told.replace("EXT", language), "{language}: {module}");
        }
    }
    for language in LANGUAGES {
        let (told, _) = here.load(language, "loop");
        assert!(told.contains("module 'loop' not found: scripts/loop."), "{told}");
    }
}

#[test]
fn what_was_asked_for_is_known_also_when_loading_fails() {
    let here = Directory::new("taken");
    here.write("scripts/lib/good.lua", "return 1");
    here.write("scripts/lib/good.rhai", "");
    here.write("scripts/broken.lua", "require('lib.good')\nreturn +");
    here.write("scripts/broken.rhai", "import \"lib/good\" as x;\nlet x = ;");
    here.write("scripts/outer.lua", "return require('lib/good') + require('missing')");
    here.write("scripts/outer.rhai", "import \"lib/good\" as x;\nimport \"missing\" as y;");
    for language in LANGUAGES {
        let names = |module: &str| -> Vec<String> {
            let (told, taken) = here.load(language, module);
            assert_ne!(told, "loaded");
            let shown = |it: &LoadedModule| {
                let state = if it.digest.is_some() { "read" } else { "missing" };
                format!("{} {state}", it.name.with_extension("").display())
            };
            taken.iter().map(shown).collect()
        };
        assert_eq!(names("broken"), ["broken read"], "{language}");
        assert_eq!(
            names("outer"),
            ["lib/good read", "missing missing", "outer read"],
            "{language}"
        );
        let (_, taken) = here.load(language, "missing");
        let path = here.0.join("scripts").join(Path::new("missing").with_extension(language));
        assert_eq!(taken[0].path, Some(path), "where it would be");
    }
}
