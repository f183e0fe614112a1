//! The binary as users see it: help, version, usage errors, missing scripts. No cluster is needed.

mod check;
mod docs;
mod fakes;
mod init;
mod inside;
mod install;
mod keys;
mod log;
mod olm;
mod permissions;
mod rights;
mod scratch;
mod settings;
mod test;

use std::process::{Command, Output};

use expect_test::{Expect, expect};

/// Runs the built binary in a directory without scripts, with a clean environment.
fn kopf(args: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kopf"))
        .args(args)
        .env_clear()
        .envs(variables.iter().copied())
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors"))
        .output()
        .expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn check_error(args: &[&str], variables: &[(&str, &str)], code: i32, expected: &Expect) {
    let output = kopf(args, variables);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "", "errors go to stderr");
    expected.assert_eq(&text(&output.stderr));
}

#[test]
fn the_version_line_is_that_of_kopf() {
    let output = kopf(&["--version"], &[]);
    assert_eq!(output.status.code(), Some(0));
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(text(&output.stdout), format!("kopf, version {version}\n"));
}

#[test]
fn help_succeeds_when_asked_for_and_fails_when_not() {
    for args in [
        &["--help"][..],
        &["run", "--help"][..],
        &["dev", "--help"][..],
        &["check", "--help"][..],
        &["test", "--help"][..],
        &["stubs", "--help"][..],
        &["init", "--help"][..],
        &["docs", "--help"][..],
        &["completions", "--help"][..],
        &["freeze", "--help"][..],
        &["resume", "--help"][..],
    ] {
        let output = kopf(args, &[]);
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output.stdout).contains("Usage: kopf"), "{args:?}");
    }
    let output = kopf(&[], &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("Usage: kopf"));
}

#[test]
fn every_option_and_variable_is_in_the_help() {
    let help = text(&kopf(&["run", "--help"], &[]).stdout);
    let options = [
        "-A, --all-namespaces",
        "-n, --namespace <PATTERN>",
        "--standalone",
        "-v, --verbose",
        "-d, --debug",
        "-q, --quiet",
        "--log-format <FORMAT>",
        "--log-prefix",
        "--no-log-prefix",
        "--log-refkey <TEXT>",
        "--color <WHEN>",
        "--config <FILE>",
        "--set <GROUP.NAME=VALUE>",
        "-P, --peering <NAME>",
        "-p, --priority <NUMBER>",
        "-L, --liveness <URL>",
        "--leader-elect",
        "--lease <NAME>",
        "--allow-net <HOST:PORT>",
        "--allow-env <NAME>",
        "--allow-read <PATH>",
        "--allow-insecure <HOST:PORT>",
        "--allow-scratch <DIRECTORY>",
    ];
    let own_of_dev = [
        "--crd <FILE>",
        "--apply <FILE>",
        "--data <FILE>",
        "--port <NUMBER>",
        "--write-kubeconfig <FILE>",
        "--no-controllers",
    ];
    let help_of_dev = text(&kopf(&["dev", "--help"], &[]).stdout);
    for word in options.into_iter().chain(own_of_dev) {
        assert!(help_of_dev.contains(word), "{word} is not in the help:\n{help_of_dev}");
    }
    let variables = [
        "KOPF_RUN_CLUSTERWIDE",
        "KOPF_RUN_NAMESPACES",
        "KOPF_RUN_NAMESPACE",
        "KOPF_RUN_STANDALONE",
        "KOPF_RUN_VERBOSE",
        "KOPF_RUN_DEBUG",
        "KOPF_RUN_QUIET",
        "KOPF_RUN_LOG_FORMAT",
        "KOPF_RUN_LOG_PREFIX",
        "KOPF_RUN_LOG_REFKEY",
        "KOPF_RUN_PEERING",
        "KOPF_RUN_PRIORITY",
        "KOPF_RUN_DEV",
        "KOPF_RUN_LEADER_ELECT",
        "KOPF_RUN_LEASE",
        "KOPF_RUN_LIVENESS_ENDPOINT",
        "KOPF_RUN_CONFIG",
        "KOPF_RUN_ALLOW_NET",
        "KOPF_RUN_ALLOW_ENV",
        "KOPF_RUN_ALLOW_READ",
        "KOPF_RUN_ALLOW_INSECURE",
        "KOPF_RUN_COLOR",
        "KOPF_SETTINGS_GROUP__NAME",
    ];
    for word in options.into_iter().chain(variables) {
        assert!(help.contains(word), "{word} is not in the help:\n{help}");
    }
}

#[test]
fn usage_errors_exit_with_2() {
    for args in [&["stroll"][..], &["run", "--unknown"][..], &["run", "--log-format=xml"][..]] {
        let output = kopf(args, &[]);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).starts_with("error: "), "{args:?}");
    }
    check_error(
        &["run", "-A", "-n", "default", "x.lua"],
        &[],
        2,
        &expect![[r"
            error: Either --namespace or --all-namespaces can be used, not both.
            hint: also check KOPF_RUN_CLUSTERWIDE, KOPF_RUN_NAMESPACES and KOPF_RUN_NAMESPACE
        "]],
    );
    check_error(
        &["run", "-A", "x.lua"],
        &[("KOPF_RUN_NAMESPACE", "default")],
        2,
        &expect![[r"
            error: Either --namespace or --all-namespaces can be used, not both.
            hint: also check KOPF_RUN_CLUSTERWIDE, KOPF_RUN_NAMESPACES and KOPF_RUN_NAMESPACE
        "]],
    );
    check_error(
        &["run", "-A"],
        &[],
        2,
        &expect![[r"
            error: no scripts given, and no ./handlers.lua, ./handlers.rhai or ./handlers/ found
            hint: pass a script or a directory of scripts, such as path/to/handlers.lua
        "]],
    );
}

#[test]
fn scripts_that_are_not_there_exit_with_1_and_a_hint() {
    check_error(
        &["run", "-A", "nope.lua"],
        &[],
        1,
        &expect![[r"
            error: there is no file or directory 'nope.lua'
            hint: check the spelling and the current directory
        "]],
    );
    check_error(
        &["run", "-A", "diff.json"],
        &[],
        1,
        &expect![["
            error: not a script: 'diff.json' (expected .lua or .rhai)
            hint: the extension selects the language: .lua or .rhai
        "]],
    );
    check_error(
        &["run", "-A", "."],
        &[],
        1,
        &expect![[r"
            error: there are no scripts in the directory '.'
            hint: add files *.lua or *.rhai directly to it; names that start with '.' or '_' are skipped
        "]],
    );
}

#[test]
fn man_pages_describe_each_command_and_need_a_directory() {
    let own = check::Directory::with("man-pages", &[("man/keep", "")]);
    let (code, told, problem) = own.kopf(&["man-pages", "man"], &[]);
    assert_eq!((code, told.as_str(), problem.as_str()), (0, "", ""));
    let run = own.read("man/kopf-run.1");
    assert!(run.starts_with(".ie") || run.starts_with(".TH"), "{run}");
    assert!(run.contains("leader\\-elect"), "{run}");
    assert!(own.files("man").contains(&"man/kopf-rbac-generate.1".to_owned()));
    let (code, _, problem) = own.kopf(&["man-pages", "absent"], &[]);
    assert_eq!(code, 1);
    assert!(problem.starts_with("error: cannot write to 'absent': "), "{problem}");
}

#[test]
fn completions_know_the_options_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = kopf(&["completions", shell], &[]);
        assert_eq!(output.status.code(), Some(0), "{shell}");
        let script = text(&output.stdout);
        assert!(
            ["all-namespaces", "dev", "stubs", "init", "docs", "from-crd"]
                .iter()
                .all(|it| script.contains(it)),
            "{shell}: {script}"
        );
    }
    let output = kopf(&["completions", "tcsh"], &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("bash, elvish, fish, powershell, zsh"));
}

#[test]
fn mistakes_outside_of_the_command_line_name_their_place() {
    check_error(
        &["run", "x.lua"],
        &[("KOPF_SETTINGS_QUEUEING__WORKER_LIMITS", "3")],
        2,
        &expect![[r"
            error: KOPF_SETTINGS_QUEUEING__WORKER_LIMITS: there is no setting settings.queueing.worker_limits; did you mean `worker_limit`?
        "]],
    );
    check_error(
        &["run", "x.lua"],
        &[("KOPF_SETTINGS_QUEUEING__WORKER_LIMIT", "many")],
        2,
        &expect![[r#"
            error: KOPF_SETTINGS_QUEUEING__WORKER_LIMIT: settings.queueing.worker_limit: expected a positive integer, got "many"
        "#]],
    );
    check_error(
        &["run", "x.lua", "--config", "nowhere.yaml"],
        &[],
        2,
        &expect![[r"
            error: there is no file 'nowhere.yaml'
            hint: check the spelling and the current directory
        "]],
    );
    check_error(
        &["run", "-m", "handlers"],
        &[],
        2,
        &expect![[r"
            error: --module handlers: Python modules are not supported
            hint: pass script files or their directory, such as path/to/handlers.lua
        "]],
    );
}

#[test]
fn a_misspelled_variable_is_warned_of_in_the_log() {
    let output = kopf(
        &["run", "-A", "--log-format=plain", "../scenarios/settings/handlers.lua"],
        &[("KOPF_RUN_ALL_NAMESPACES", "1"), ("KUBECONFIG", "/nowhere"), ("HOME", "/nowhere")],
    );
    let log = text(&output.stderr);
    assert!(
        log.starts_with("The environment variable KOPF_RUN_ALL_NAMESPACES is unknown and has no effect; did you mean KOPF_RUN_CLUSTERWIDE?\n"),
        "{log}"
    );
    assert_eq!(output.status.code(), Some(1));
}
