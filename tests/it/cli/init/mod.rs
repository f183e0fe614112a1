//! `kopf init` as users see it: the files that it writes can be checked and run at once.

use std::{fs, path::PathBuf, process::Command as Blocking};

use tokio::process::Command;

use crate::e2e::operator::Operator;

/// A directory for starters, which is removed with this value.
struct Desk(PathBuf);

impl Desk {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kopf-init-{}-{test}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        fs::create_dir_all(&path).expect("a directory");
        Desk(path)
    }

    fn kopf(&self, args: &[&str]) -> (i32, String, String) {
        let mut command = Blocking::new(env!("CARGO_BIN_EXE_kopf"));
        let output = command.env_clear().current_dir(&self.0).args(args).output();
        let output = output.expect("the binary runs");
        let text = |it: Vec<u8>| String::from_utf8(it).expect("text");
        (output.status.code().expect("a code"), text(output.stdout), text(output.stderr))
    }

    fn init(&self, args: &[&str]) -> String {
        let (code, told, problem) = self.kopf(&[&["init", "mine"], args].concat());
        assert_eq!((code, problem.as_str()), (0, ""), "{args:?}");
        told
    }

    /// Runs the suggested command, and waits for this output.
    async fn dev(&self, script: &str, expected: &str) {
        let (code, told, problem) = self.kopf(&["check", &format!("mine/{script}")]);
        assert_eq!((code, problem.as_str()), (0, ""), "{told}");
        let (code, told, problem) = self.kopf(&["test", "mine"]);
        assert_eq!((code, problem.as_str()), (0, ""), "{told}");
        assert!(told.ends_with(" tests, all passed\n"), "{told}");
        let mut command = Command::new(env!("CARGO_BIN_EXE_kopf"));
        command.env_clear().env("XDG_RUNTIME_DIR", &self.0).current_dir(&self.0);
        command.args([
            "dev",
            &format!("mine/{script}"),
            "--crd",
            "mine/crd.yaml",
            "--apply",
            "mine/object.yaml",
        ]);
        let operator = Operator::start(&mut command);
        operator.until_says(expected).await;
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // Remaining temporary files do no harm.
        drop(fs::remove_dir_all(&self.0));
    }
}

fn crd() -> String {
    format!("{}/tests/it/cli/init/backup.yaml", env!("CARGO_MANIFEST_DIR"))
}

#[tokio::test]
async fn a_starter_in_lua_runs_at_once() {
    let desk = Desk::new("lua");
    let told = desk.init(&[]);
    assert!(
        told.contains(
            "\n  kopf dev mine/handlers.lua --crd mine/crd.yaml --apply mine/object.yaml\n"
        ),
        "{told}"
    );
    desk.dev("handlers.lua", "Hello, world!").await;
}

#[tokio::test]
async fn a_starter_in_rhai_runs_at_once() {
    let desk = Desk::new("rhai");
    desk.init(&["--rhai"]);
    desk.dev("handlers.rhai", "Hello, world!").await;
}

#[tokio::test]
async fn a_starter_for_a_definition_of_the_user_runs_at_once_in_both_languages() {
    let desk = Desk::new("crd");
    for (option, script) in [("--lua", "handlers.lua"), ("--rhai", "handlers.rhai")] {
        desk.init(&[option, "--force", "--from-crd", &crd()]);
        desk.dev(script, "my-backup is new: ").await;
        let own = fs::read_to_string(crd()).expect("a definition");
        assert_eq!(fs::read_to_string(desk.0.join("mine/crd.yaml")).expect("a copy"), own);
    }
}

#[test]
fn nothing_is_overwritten_without_being_told_to() {
    let desk = Desk::new("force");
    fs::create_dir_all(desk.0.join("mine")).expect("a directory");
    let own = desk.0.join("mine/handlers.lua");
    fs::write(&own, "-- mine").expect("a file");
    let (code, told, problem) = desk.kopf(&["init", "mine"]);
    assert_eq!((code, told.as_str()), (1, ""));
    assert_eq!(
        problem,
        "error: 'mine/handlers.lua' exists already; no file was written\nhint: use --force to overwrite, or another directory\n"
    );
    assert!(!desk.0.join("mine/crd.yaml").exists());
    assert_eq!(fs::read_to_string(&own).expect("it is still there"), "-- mine");
    let told = desk.init(&["--force"]);
    assert!(told.contains("overwrote mine/handlers.lua\n"), "{told}");
    assert!(told.contains("wrote mine/crd.yaml\n"), "{told}");
    let (_, _, problem) = desk.kopf(&["init", "mine"]);
    assert!(
        problem.starts_with("error: 'mine/crd.yaml' and 10 more files exist already; no file"),
        "{problem}"
    );
}

#[test]
fn one_definition_is_needed_and_one_language_is_chosen() {
    let desk = Desk::new("wrong");
    let both = fs::read_to_string(crd()).expect("a definition");
    fs::write(desk.0.join("two.yaml"), format!("{both}\n---\n{both}")).expect("a file");
    let (code, _, problem) = desk.kopf(&["init", "mine", "--from-crd", "two.yaml"]);
    assert_eq!(code, 1);
    assert_eq!(
        problem,
        "error: 'two.yaml' defines 2 kinds\nhint: pass a file that defines one kind\n"
    );
    let (code, _, _) = desk.kopf(&["init", "mine", "--lua", "--rhai"]);
    assert_eq!(code, 2);
}
