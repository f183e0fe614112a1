//! Variables of settings, and unused variables.

use clap::CommandFactory as _;
use serde_json::json;

use super::{COMMANDS, check, settings};
use crate::cli::{args::LowArgs, report::Report};

fn one(name: &str, text: &str) -> Result<serde_json::Value, Report> {
    let lookup = |it: &str| (it == name).then(|| text.to_owned());
    let mut found = settings(&lookup)?;
    assert_eq!(found.len(), 1, "{name} has no effect");
    Ok(found.remove(0).value)
}

#[test]
fn values_are_written_as_in_a_file() {
    for (name, text, expected) in [
        ("KOPF_SETTINGS_QUEUEING__WORKER_LIMIT", "3", json!(3)),
        ("KOPF_SETTINGS_QUEUEING__WORKER_LIMIT", "None", json!(null)),
        ("KOPF_SETTINGS_QUEUEING__IDLE_TIMEOUT", "10m", json!("10m")),
        ("KOPF_SETTINGS_QUEUEING__IDLE_TIMEOUT", "0.5", json!(0.5)),
        ("KOPF_SETTINGS_POSTING__ENABLED", "false", json!(false)),
        ("KOPF_SETTINGS_NETWORKING__ERROR_BACKOFFS", "1, 2s", json!("1, 2s")),
        ("KOPF_SETTINGS_NETWORKING__ERROR_BACKOFFS", "[1, 2s]", json!([1, "2s"])),
        // A string is not parsed.
        ("KOPF_SETTINGS_PEERING__NAME", "123", json!("123")),
        ("KOPF_SETTINGS_WATCHING__LABEL_SELECTORS", "{v1/pods: a=b}", json!({"v1/pods": "a=b"})),
        (
            "KOPF_SETTINGS_PERSISTENCE__PROGRESS_STORAGE",
            "StatusProgressStorage: {field: status.x}",
            json!({"StatusProgressStorage": {"field": "status.x"}}),
        ),
    ] {
        assert_eq!(one(name, text), Ok(expected), "{name}={text}");
    }
    let report = one("KOPF_SETTINGS_QUEUEING__WORKER_LIMIT", "[").expect_err("a refusal");
    assert_eq!(
        report.message,
        "KOPF_SETTINGS_QUEUEING__WORKER_LIMIT: expected a positive integer, got '['"
    );
    assert!(settings(&|_| Some(String::new())).expect("empty is unset").is_empty());
}

#[test]
fn unknown_options_are_warned_of_with_the_nearest_name() {
    let warning = |name: &str| check([name].into_iter()).expect("no error").pop();
    for (name, right) in [
        ("KOPF_RUN_ALL_NAMESPACES", "KOPF_RUN_CLUSTERWIDE"),
        ("KOPF_RUN_LIVENESS", "KOPF_RUN_LIVENESS_ENDPOINT"),
        ("KOPF_RUN_PEERING_NAME", "KOPF_RUN_PEERING"),
        ("KOPF_RUN_LOGFORMAT", "KOPF_RUN_LOG_FORMAT"),
        ("KOPF_FREEZE_LIFETIMES", "KOPF_FREEZE_LIFETIME"),
    ] {
        let expected = format!(
            "The environment variable {name} is unknown and has no effect; did you mean {right}?"
        );
        assert_eq!(warning(name), Some(expected));
    }
    for name in [
        "KOPF_RUN_CLUSTERWIDE",
        "KOPF_RESUME_ID",
        "KOPF_SOMETHING_ELSE",
        "PATH",
        // A service with the name `kopf-run`.
        "KOPF_RUN_SERVICE_HOST",
        "KOPF_RUN_PORT_80_TCP_ADDR",
        "KOPF_SETTINGS_SERVICE_PORT",
        "KOPF_SETTINGS_POSTING__REPORTING_COMPONENT",
    ] {
        assert_eq!(warning(name), None, "{name}");
    }
}

#[test]
fn unknown_settings_are_errors_that_name_the_right_one() {
    let error = |name: &str| check([name].into_iter()).expect_err("an error").to_string();
    assert_eq!(
        error("KOPF_SETTINGS_QUEUEING__WORKERS_LIMIT"),
        "error: KOPF_SETTINGS_QUEUEING__WORKERS_LIMIT: there is no setting settings.queueing.workers_limit; \
         did you mean `worker_limit`?"
    );
    assert_eq!(
        error("KOPF_SETTINGS_QUEUEING_WORKER_LIMIT"),
        "error: KOPF_SETTINGS_QUEUEING_WORKER_LIMIT is not a setting\n\
         hint: did you mean KOPF_SETTINGS_QUEUEING__WORKER_LIMIT?"
    );
    assert_eq!(
        error("KOPF_SETTINGS_BATCHING__IDLE_TIMEOUT"),
        "error: KOPF_SETTINGS_BATCHING__IDLE_TIMEOUT has no effect\n\
         hint: write it as KOPF_SETTINGS_QUEUEING__IDLE_TIMEOUT"
    );
}

#[test]
fn every_variable_of_the_help_is_known_and_every_one_of_run_is_in_the_help() {
    let mut command = LowArgs::command();
    for (name, known) in COMMANDS {
        let sub = command.find_subcommand_mut(name.to_lowercase()).expect("a command");
        let help = sub.render_long_help().to_string();
        let prefix = format!("KOPF_{name}_");
        let told: std::collections::BTreeSet<&str> = help
            .split(|it: char| !it.is_ascii_alphanumeric() && it != '_')
            .filter_map(|it| it.strip_prefix(&prefix))
            .collect();
        for variable in &told {
            assert!(known.contains(variable), "{prefix}{variable} would be called unknown");
        }
        if *name == "RUN" {
            // Scripts have no modules: the variable is known, so that its error can explain that.
            let untold = known.iter().filter(|it| !told.contains(*it) && **it != "MODULES");
            assert_eq!(untold.collect::<Vec<_>>(), Vec::<&&str>::new());
        }
    }
}
