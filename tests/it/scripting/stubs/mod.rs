//! The definitions for editors: they are well formed, and a language server finds no false error with them in the examples and in
//! what `kopf init` writes.
//!
//! The server is that of `EmmyLua`, which supports the same definitions as lua-language-server: `EMMYLUA_CHECK` names its program
//! `emmylua_check`, a package of crates.io. The type checker of Luau is `scripts/luau-check`, and `LUAU_CHECK` names it. `.ci/run` installs
//! both; without them, these tests print that they are skipped.

mod luau;
mod server;

use std::{ffi::OsString, io::Write as _, process::Command};

use kopf::scripting::surface::{Surface, lua_stubs, rhai_stubs};
use mlua::Lua;
use regex::Regex;

fn kopf(args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kopf"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).env_clear();
    let output = command.args(args).output().expect("the binary runs");
    let text = |it: Vec<u8>| String::from_utf8(it).expect("text");
    (output.status.code().expect("a code"), text(output.stdout), text(output.stderr))
}

/// Returns the program that an environment variable names. Without it, its checks are skipped, and a line reports that: printed past the
/// test harness, which would hide it.
fn program(variable: &str) -> Option<OsString> {
    let found = std::env::var_os(variable);
    if found.is_none() {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        writeln!(std::io::stderr(), "skipped: {test}: {variable} is not set").expect("stderr");
    }
    found
}

#[test]
fn definitions_of_lua_are_a_script_of_lua() {
    let text = lua_stubs(&Surface::new(), &[]);
    let chunk = Lua::new().load(text.as_str()).set_name("=kopf.lua").into_function();
    chunk.unwrap_or_else(|it| panic!("{it}\n{text}"));
}

#[test]
fn definitions_of_luau_are_types_that_its_parser_takes() {
    let (code, text, _) = kopf(&["stubs", "luau", "--from-crd", "examples/crd.yaml"]);
    assert_eq!(code, 0);
    // The parser of scripts has no declarations: each becomes a variable of that type.
    let text = text.replace("\ndeclare function require(name: string): any\n", "\n");
    let text = text.replace("@checked ", "");
    let opaque = Regex::new(r"declare extern type (\w+) with\nend").expect("a pattern");
    let text = opaque.replace_all(&text, "type $1 = {}");
    let declared = Regex::new(r"(?m)^declare (\w+): ").expect("a pattern");
    let script = declared.replace_all(&text, "local $1: ");
    let chunk = Lua::new().load(&*script).set_name("=kopf.d.luau").into_function();
    chunk.unwrap_or_else(|it| panic!("{it}\n{script}"));
    assert!(text.contains("export type KopfExampleChangeCtx"), "{text}");
    assert_eq!(text.matches("\ndeclare ").count(), Surface::new().globals.len());
}

#[test]
fn definitions_of_rhai_have_the_form_that_rhai_writes() {
    let text = rhai_stubs(&Surface::new());
    let ty = r"(\?|\(\)|[A-Za-z]\w*)";
    let name = r"[A-Za-z_]\w*";
    let form = format!(
        r"^(module static;|module {name} \{{|\}}|const {name}: {ty};|fn (get )?{name}\(({name}: {ty}(, {name}: {ty})*)?\) -> {ty};)$"
    );
    let form = Regex::new(&form).expect("a pattern");
    let mut depth = 0;
    for line in text.lines().map(str::trim) {
        assert!(line.is_empty() || line.starts_with("//") || form.is_match(line), "{line}");
        depth += i32::from(line.ends_with('{')) - i32::from(line == "}");
    }
    assert_eq!(depth, 0);
}

#[test]
fn the_definitions_are_printed_or_written() {
    let directory = std::env::temp_dir().join(format!("kopf-stubs-{}", std::process::id()));
    let shown = directory.to_str().expect("text").to_owned();
    for (language, file) in [("lua", "kopf.lua"), ("luau", "kopf.d.luau"), ("rhai", "kopf.d.rhai")]
    {
        let (code, printed, _) = kopf(&["stubs", language]);
        assert_eq!(code, 0, "{language}");
        let (code, stdout, told) = kopf(&["stubs", language, "--output", &shown]);
        let path = directory.join(file);
        assert_eq!((code, stdout.as_str()), (0, ""), "{told}");
        assert_eq!(told, format!("wrote {}\n", path.display()));
        assert_eq!(std::fs::read_to_string(path).expect("written"), printed);
    }
    drop(std::fs::remove_dir_all(directory));
}

#[test]
fn what_is_no_definition_of_a_kind_is_refused() {
    let (code, stdout, told) = kopf(&["stubs", "lua", "--from-crd", "examples/obj.yaml"]);
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(told.contains("expected a CustomResourceDefinition, got a KopfExample"), "{told}");
    let (code, _, told) = kopf(&["stubs", "lua", "--from-crd", "nowhere.yaml"]);
    assert_eq!(code, 1);
    assert!(told.starts_with("error: there is no file or directory 'nowhere.yaml'\n"), "{told}");
    let (code, _, told) = kopf(&["stubs", "perl"]);
    assert_eq!(code, 2);
    assert!(told.contains("lua, luau, rhai"), "{told}");
}
