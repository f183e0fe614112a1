//! Valid contents of `kopf.yaml`, and the locations of errors.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::json;

use super::{Config, KEYS, find, parse};
use crate::cli::report::Exit;

fn read(text: &str) -> Config {
    parse(Path::new("conf/kopf.yaml"), text).unwrap_or_else(|it| panic!("{it}"))
}

/// Returns the whole message of the error, after the name of the file.
fn refused(text: &str) -> String {
    let report = parse(Path::new("kopf.yaml"), text).expect_err("a refusal");
    assert_eq!(report.exit, Exit::Usage);
    report.to_string().strip_prefix("error: kopf.yaml:").expect("a place in the file").to_owned()
}

#[test]
fn options_have_the_names_of_the_command_line() {
    let config = read(
        "paths: handlers\nnamespace: [a, b-*]\nstandalone: true\npriority: -3\nlog-format: json\nlog-prefix: false\n",
    );
    assert_eq!(config.paths(), [PathBuf::from("conf/handlers")]);
    assert_eq!(config.texts("namespace"), Some(vec!["a".into(), "b-*".into()]));
    assert_eq!(config.flag("standalone"), Some(true));
    assert_eq!(config.number("priority"), Some(-3));
    assert_eq!(config.text("log-format"), Some(("json", "conf/kopf.yaml:5")));
    assert_eq!(config.flag("log-prefix"), Some(false));
    assert_eq!(config.flag("verbose"), None);
}

#[test]
fn a_duration_is_a_number_or_a_string() {
    let poll = |text: &str| read(text).duration("reload-poll").map(|it| it.0.as_millis());
    assert_eq!(poll("reload-poll: 2\n"), Some(2000));
    assert_eq!(poll("reload-poll: 500ms\n"), Some(500));
    assert_eq!(poll("verbose: true\n"), None);
    assert_eq!(
        refused("reload-poll: often\n"),
        "1: reload-poll: expected seconds, or a string with a unit such as 2s, got \"often\""
    );
}

#[test]
fn settings_are_found_with_their_lines() {
    let config = read(
        "settings:\n  queueing:\n    worker_limit: 3\n    error_delays:\n      - 1\n      - 2s\n  posting: {enabled: false}\n",
    );
    let found: Vec<_> = config
        .settings
        .iter()
        .map(|it| (it.setting.name, it.value.clone(), it.origin.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            ("worker_limit", json!(3), "conf/kopf.yaml:3"),
            ("error_delays", json!([1, "2s"]), "conf/kopf.yaml:5"),
            ("enabled", json!(false), "conf/kopf.yaml:7"),
        ]
    );
}

#[test]
fn an_empty_file_has_no_options() {
    for text in ["", "# nothing\n", "settings:\n", "---\n"] {
        let config = read(text);
        assert!(
            config.settings.is_empty() && KEYS.iter().all(|(key, _)| config.text(key).is_none())
        );
    }
}

#[test]
fn errors_have_their_lines() {
    assert_eq!(
        refused("verbose: true\nlog_format: json\n"),
        "2: there is no option `log_format`\nhint: did you mean `log-format`?"
    );
    assert_eq!(
        refused("\nqueueing:\n  worker_limit: 3\n"),
        "2: there is no option `queueing`\nhint: groups of settings belong below `settings:`"
    );
    assert!(
        refused("zzzzz: 1\n")
            .starts_with("1: there is no option `zzzzz`\nhint: the options are: paths, ")
    );
    assert_eq!(
        refused("settings:\n  queuing:\n    worker_limit: 3\n"),
        "2: there is no group of settings settings.queuing; did you mean `queueing`?"
    );
    assert_eq!(
        refused("settings:\n  queueing:\n    workers_limit: 3\n"),
        "3: there is no setting settings.queueing.workers_limit; did you mean `worker_limit`?"
    );
    assert_eq!(refused("verbose: 1\n"), "1: verbose: expected true or false, got 1");
    assert_eq!(
        refused("namespace:\n  - a\n  - 1\n"),
        "2: namespace: expected a string or a list of strings, got [\"a\",1]"
    );
    assert_eq!(refused("- a\n"), "1: expected a map of options, got [\"a\"]");
    assert_eq!(refused("settings: 3\n"), "1: expected groups of settings, got 3");
    assert!(refused("a: [\n").contains("invalid YAML"), "{}", refused("a: [\n"));
    assert!(refused("verbose: true\nverbose: false\n").starts_with("2: invalid YAML: "));
}

#[test]
fn deprecated_names_cause_a_warning() {
    let config = read("settings:\n  batching:\n    idle_timeout: 3\n");
    assert_eq!(config.settings.len(), 1);
    assert!(config.warnings.iter().any(|it| it.starts_with("conf/kopf.yaml:3: Batching settings")));
}

/// A directory that is removed at the end of the test.
struct TempDirectory(PathBuf);

impl TempDirectory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kopf-config-{}-{name}", std::process::id()));
        fs::create_dir_all(path.join("handlers")).expect("a directory");
        TempDirectory(path)
    }

    fn write(&self, name: &str) {
        fs::write(self.0.join(name), "verbose: true\n").expect("a file");
    }

    fn found(&self, scripts: &[&str]) -> Option<PathBuf> {
        let scripts: Vec<_> = scripts.iter().map(PathBuf::from).collect();
        find(None, &scripts, &self.0).unwrap_or_else(|it| panic!("{it}")).map(|it| it.path)
    }
}

impl Drop for TempDirectory {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

#[test]
fn the_file_is_found_here_or_next_to_the_scripts() {
    let directory = TempDirectory::new("found");
    assert_eq!(directory.found(&["handlers"]), None);
    directory.write("handlers/kopf.yaml");
    assert_eq!(directory.found(&[]), None);
    assert_eq!(directory.found(&["handlers"]), Some("handlers/kopf.yaml".into()));
    assert_eq!(directory.found(&["handlers/a.lua"]), Some("handlers/kopf.yaml".into()));
    directory.write("kopf.yaml");
    assert_eq!(directory.found(&["./a.lua"]), Some("kopf.yaml".into()));
    let report = find(None, &["handlers".into()], &directory.0).expect_err("two of them");
    assert_eq!(
        report.to_string(),
        "error: there are two configurations: 'kopf.yaml' and 'handlers/kopf.yaml'\n\
         hint: choose one with --config FILE, or move the other away"
    );
    let named = find(Some(Path::new("kopf.yaml")), &["handlers".into()], &directory.0);
    assert_eq!(named.map(|it| it.map(|it| it.path)), Ok(Some("kopf.yaml".into())));
    let report = find(Some(Path::new("no.yaml")), &[], &directory.0).expect_err("it is not there");
    assert!(report.to_string().starts_with("error: there is no file 'no.yaml'"), "{report}");
}
