//! Precedence of sources, and all forms of a scope.

use clap::Parser as _;

use super::{Address, RunOptions, ScopeOption, Verbosity, resolve_run};
use crate::cli::{
    args::{Command, LogFormat, LowArgs},
    report::{Exit, Report},
};

fn run(typed: &[&str], variables: &[(&str, &str)]) -> Result<RunOptions, Report> {
    let args = ["kopf", "run"].iter().chain(typed);
    let command = LowArgs::try_parse_from(args).expect("well-formed arguments").command;
    let Command::Run(args) = command else { panic!("another command: {command:?}") };
    let lookup = |name: &str| {
        let found = variables.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    resolve_run(args.run, &lookup, None)
}

fn scope(typed: &[&str], variables: &[(&str, &str)]) -> ScopeOption {
    run(typed, variables).expect("a valid scope").scope
}

fn namespaces(patterns: &[&str]) -> ScopeOption {
    ScopeOption::Namespaces(patterns.iter().map(|it| (*it).to_owned()).collect())
}

#[test]
fn the_default_scope_is_the_cluster_with_a_warning() {
    assert_eq!(scope(&[], &[]), ScopeOption::Unsaid);
    assert_eq!(scope(&["-A"], &[]), ScopeOption::Cluster);
    assert_eq!(scope(&[], &[("KOPF_RUN_CLUSTERWIDE", "yes")]), ScopeOption::Cluster);
}

#[test]
fn namespaces_come_from_options_else_from_the_list_variable() {
    let variables = [("KOPF_RUN_NAMESPACES", "c d")];
    assert_eq!(scope(&["-n", "a", "--namespace=b, !b*"], &variables), namespaces(&["a", "b, !b*"]));
    assert_eq!(scope(&[], &variables), namespaces(&["c", "d"]));
}

#[test]
fn the_legacy_variable_adds_one_more_namespace() {
    let variables = [("KOPF_RUN_NAMESPACE", "z")];
    assert_eq!(scope(&["-n", "a"], &variables), namespaces(&["a", "z"]));
    let problem = run(&["-A"], &variables).expect_err("a conflict");
    assert_eq!(problem.exit, Exit::Usage);
}

#[test]
fn both_scopes_at_once_are_rejected_with_the_message_of_kopf() {
    let problem = run(&["-n", "a", "-A"], &[]).expect_err("a conflict");
    assert_eq!(problem.exit, Exit::Usage);
    assert_eq!(problem.message, "Either --namespace or --all-namespaces can be used, not both.");
}

#[test]
fn the_most_verbose_option_wins() {
    let verbosity = |typed: &[&str]| run(typed, &[]).expect("valid options").log.verbosity;
    assert_eq!(verbosity(&[]), Verbosity::Normal);
    assert_eq!(verbosity(&["-q"]), Verbosity::Quiet);
    assert_eq!(verbosity(&["-qv"]), Verbosity::Verbose);
    assert_eq!(verbosity(&["-qvd"]), Verbosity::Debug);
    let quiet = [("KOPF_RUN_QUIET", "on")];
    assert_eq!(run(&[], &quiet).expect("valid").log.verbosity, Verbosity::Quiet);
}

#[test]
fn the_prefix_follows_the_format_by_default() {
    let prefix = |typed: &[&str]| run(typed, &[]).expect("valid options").log.prefix;
    assert!(prefix(&[]));
    assert!(prefix(&["--log-format=PLAIN"]));
    assert!(!prefix(&["--log-format=json"]));
    assert!(prefix(&["--log-format=json", "--log-prefix"]));
    assert!(!prefix(&["--no-log-prefix"]));
    assert!(prefix(&["--no-log-prefix", "--log-prefix"]));
    let off = [("KOPF_RUN_LOG_PREFIX", "0")];
    assert!(!run(&[], &off).expect("valid").log.prefix);
    assert!(run(&["--log-prefix"], &off).expect("valid").log.prefix);
}

#[test]
fn the_last_of_two_contradicting_prefix_flags_holds() {
    assert!(!run(&["--log-prefix", "--no-log-prefix"], &[]).expect("valid").log.prefix);
}

#[test]
fn variables_set_options_that_were_not_typed() {
    let variables = [
        ("KOPF_RUN_LOG_FORMAT", "Json"),
        ("KOPF_RUN_LOG_REFKEY", "ref"),
        ("KOPF_RUN_STANDALONE", "1"),
    ];
    let options = run(&[], &variables).expect("valid options");
    assert_eq!((options.log.format, options.log.refkey.as_str()), (LogFormat::Json, "ref"));
    assert!(options.settings.peering.standalone);
    let options = run(&["--log-format=full", "--log-refkey=k"], &variables).expect("valid options");
    assert_eq!((options.log.format, options.log.refkey.as_str()), (LogFormat::Full, "k"));
}

#[test]
fn an_empty_variable_is_an_unset_one() {
    let options = run(&[], &[("KOPF_RUN_VERBOSE", ""), ("KOPF_RUN_NAMESPACES", "")]);
    let options = options.expect("valid options");
    assert_eq!((options.scope, options.log.verbosity), (ScopeOption::Unsaid, Verbosity::Normal));
}

#[test]
fn a_variable_that_cannot_be_read_is_a_usage_error_with_its_name() {
    for name in ["KOPF_RUN_VERBOSE", "KOPF_RUN_LOG_FORMAT", "KOPF_RUN_LOG_PREFIX"] {
        let problem = run(&[], &[(name, "maybe")]).expect_err("an invalid variable");
        assert_eq!(problem.exit, Exit::Usage);
        assert!(problem.message.starts_with(&format!("{name} is 'maybe'")), "{problem}");
        assert!(problem.hint.is_some());
    }
}

/// Resolves options with a file.
fn run_with(typed: &[&str], variables: &[(&str, &str)], file: &str) -> Result<RunOptions, Report> {
    let args = ["kopf", "run"].iter().chain(typed);
    let command = LowArgs::try_parse_from(args).expect("well-formed arguments").command;
    let Command::Run(args) = command else { panic!("another command: {command:?}") };
    let lookup = |name: &str| {
        let found = variables.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let config = crate::cli::config::parse("kopf.yaml".as_ref(), file).expect("a good file");
    resolve_run(args.run, &lookup, Some(&config))
}

#[test]
fn sources_have_an_order_of_precedence() {
    let file = "settings: {queueing: {worker_limit: 1, idle_timeout: 1, exit_timeout: 1}}";
    let variables = [
        ("KOPF_SETTINGS_QUEUEING__IDLE_TIMEOUT", "2"),
        ("KOPF_SETTINGS_QUEUEING__EXIT_TIMEOUT", "2s"),
    ];
    let options = run_with(&["--set", "queueing.exit_timeout=3"], &variables, file);
    let queueing = options.expect("good options").settings.queueing;
    assert_eq!(queueing.worker_limit, Some(1));
    assert_eq!(queueing.idle_timeout.as_secs(), 2);
    assert_eq!(queueing.exit_timeout.as_secs(), 3);
}

#[test]
fn options_for_peering_are_settings() {
    let peering = |typed: &[&str], variables: &[(&str, &str)], file: &str| {
        run_with(typed, variables, file).expect("good options").settings.peering
    };
    let none = peering(&["-n", "a"], &[], "");
    assert_eq!((none.name.as_str(), none.mandatory, none.clusterwide), ("default", false, false));
    let given = peering(&["-A", "-P", "p", "-p", "-5"], &[], "");
    assert_eq!((given.name.as_str(), given.mandatory, given.clusterwide), ("p", true, true));
    assert_eq!(given.priority, -5);
    assert_eq!(peering(&["--dev", "-p", "5"], &[], "").priority, 666);
    assert_eq!(
        peering(&[], &[("KOPF_RUN_DEV", "1"), ("KOPF_RUN_PRIORITY", "5")], "").priority,
        666
    );
    assert_eq!(peering(&["-p", "7"], &[("KOPF_RUN_PRIORITY", "5")], "priority: 3").priority, 7);
    assert_eq!(peering(&[], &[("KOPF_RUN_PRIORITY", "5")], "priority: 3").priority, 5);
    assert_eq!(peering(&[], &[], "priority: 3\nsettings: {peering: {priority: 1}}").priority, 3);
    assert!(peering(&[], &[], "standalone: true").standalone);
}

#[test]
fn the_file_applies_if_no_other_source_does() {
    let file = "namespace: [a]\nlog-format: json\nverbose: true\nlog-refkey: r\npaths: [x.lua]\ncolor: never\nliveness: http://:1/\nhealth: :2";
    let options = run_with(&[], &[], file).expect("good options");
    assert_eq!(options.scope, namespaces(&["a"]));
    assert_eq!(options.log.format, LogFormat::Json);
    assert_eq!(options.log.verbosity, Verbosity::Verbose);
    assert_eq!(options.log.refkey, "r");
    assert_eq!(options.log.color, crate::cli::args::ColorWhen::Never);
    assert_eq!(options.paths, [std::path::PathBuf::from("x.lua")]);
    let liveness = options.liveness.expect("an endpoint").to_string();
    assert_eq!((liveness.as_str(), options.health), ("http://localhost:1/", Address::parse(":2")));
    let options = run_with(&["-A", "-q", "y.lua"], &[("KOPF_RUN_LOG_FORMAT", "plain")], file);
    let options = options.expect("good options");
    assert_eq!(options.scope, ScopeOption::Cluster);
    assert_eq!(options.log.format, LogFormat::Plain);
    assert_eq!(options.log.verbosity, Verbosity::Quiet);
    assert_eq!(options.paths, [std::path::PathBuf::from("y.lua")]);
}

#[test]
fn errors_of_wrong_values_name_their_source() {
    let shown = |typed: &[&str], variables: &[(&str, &str)], file: &str| {
        let report = run_with(typed, variables, file).expect_err("a refusal");
        assert_eq!(report.exit, Exit::Usage);
        report.to_string()
    };
    let problem = "settings.queueing.worker_limit: expected a positive integer, got 0";
    assert_eq!(
        shown(&[], &[], "settings:\n  queueing:\n    worker_limit: 0"),
        format!("error: kopf.yaml:3: {problem}")
    );
    assert_eq!(
        shown(&[], &[("KOPF_SETTINGS_QUEUEING__WORKER_LIMIT", "0")], ""),
        format!("error: KOPF_SETTINGS_QUEUEING__WORKER_LIMIT: {problem}")
    );
    assert_eq!(
        shown(&["--set", "queueing.worker_limit=0"], &[], ""),
        format!("error: --set: {problem}")
    );
    assert_eq!(
        shown(&["--set", "worker_limit=0"], &[], ""),
        "error: --set worker_limit=0: not a setting\n\
         hint: write it as GROUP.NAME=VALUE, such as queueing.worker_limit=20"
    );
    assert_eq!(
        shown(&["--set", "queueing.worker_limits=0"], &[], ""),
        "error: --set queueing.worker_limits=0: there is no setting settings.queueing.worker_limits; \
         did you mean `worker_limit`?"
    );
    assert_eq!(
        shown(&[], &[], "log-format: xml"),
        "error: kopf.yaml:1: log-format is 'xml', which is unknown\nhint: use one of: plain, full, kopf, json"
    );
    assert_eq!(
        shown(&[], &[], "namespace: a\nall-namespaces: true"),
        "error: Either --namespace or --all-namespaces can be used, not both.\nhint: both are in kopf.yaml"
    );
    assert_eq!(
        shown(&["-m", "handlers"], &[], ""),
        "error: --module handlers: Python modules are not supported\n\
         hint: pass script files or their directory, such as path/to/handlers.lua"
    );
    assert_eq!(
        shown(&[], &[("KOPF_RUN_PRIORITY", "high")], ""),
        "error: KOPF_RUN_PRIORITY is 'high', which is not an integer"
    );
}

#[test]
fn the_file_that_is_read_is_logged() {
    let options =
        run_with(&[], &[], "settings: {queueing: {batch_window: 1}}").expect("good options");
    let [super::Note::Info(read), super::Note::Warning(old)] = options.notes.as_slice() else {
        panic!("{:?}", options.notes)
    };
    assert_eq!(read, "Reading options and settings from kopf.yaml.");
    assert!(old.starts_with("kopf.yaml:1: Time-based event batching was removed."), "{old}");
}

#[test]
fn the_listen_address_is_checked_at_once() {
    let options = run(&["-L", "http://0.0.0.0:8080/healthz", "--health=[::1]:0"], &[]);
    let options = options.expect("valid options");
    let shown = |it: Option<String>| it.unwrap_or_default();
    assert_eq!(shown(options.liveness.map(|it| it.to_string())), "http://0.0.0.0:8080/healthz");
    assert_eq!(shown(options.health.map(|it| it.to_string())), "[::1]:0");
    let problem = run(&[], &[("KOPF_RUN_LIVENESS_ENDPOINT", "https://x/")]).expect_err("no TLS");
    assert_eq!(
        (problem.exit, problem.message.as_str()),
        (Exit::Failure, "Unsupported scheme: https://x/")
    );
    for text in ["8081", "::1:8081", "http://x:1", "x:y", "[::1]"] {
        let problem = run(&["--health", text], &[]).expect_err("no address");
        assert_eq!(problem.exit, Exit::Usage, "{text}");
    }
}

fn maps(typed: &[&str], variables: &[(&str, &str)]) -> Vec<String> {
    let options = run(typed, variables).expect("valid options");
    options.scripts.maps.iter().map(ToString::to_string).collect()
}

#[test]
fn config_maps_are_named_with_or_without_their_namespace_or_chosen_by_labels() {
    let typed = [
        "--from-configmap",
        "a/b",
        "--from-configmap=c.d",
        "--from-configmap-selector",
        "x in (y, z)",
    ];
    let shown = ["configmap/a/b", "configmap/c.d", "configmaps with the labels x in (y, z)"];
    assert_eq!(maps(&typed, &[]), shown);
    let variables = [
        ("KOPF_RUN_FROM_CONFIGMAP", "a/b c.d"),
        ("KOPF_RUN_FROM_CONFIGMAP_SELECTOR", "x in (y, z)"),
    ];
    assert_eq!(maps(&[], &variables), shown);
    assert_eq!(maps(&["--from-configmap=e"], &variables), ["configmap/e", shown[2]]);
}

#[test]
fn invalid_config_map_names_are_rejected_before_any_request() {
    for wrong in ["", "/", "a/", "/a", "a/b/c", "A", "a_b", "-a", "a,b"] {
        let problem = run(&[&format!("--from-configmap={wrong}")], &[]).expect_err(wrong);
        assert_eq!(problem.exit, Exit::Usage);
        assert!(problem.hint.is_some(), "{problem}");
    }
    run(&["--from-configmap-selector= "], &[]).expect_err("no labels");
}

#[test]
fn the_polling_interval_has_a_minimum() {
    let poll = |typed: &[&str], variables: &[(&str, &str)]| {
        run(typed, variables).map(|it| it.scripts.poll.map(|it| it.as_millis()))
    };
    assert_eq!(poll(&[], &[]), Ok(None));
    assert_eq!(poll(&["--reload-poll=2"], &[]), Ok(Some(2000)));
    assert_eq!(poll(&["--reload-poll=500ms"], &[("KOPF_RUN_RELOAD_POLL", "9")]), Ok(Some(500)));
    assert_eq!(poll(&[], &[("KOPF_RUN_RELOAD_POLL", "1m")]), Ok(Some(60_000)));
    for wrong in ["0", "-1", "often", "1ms"] {
        let problem = poll(&[&format!("--reload-poll={wrong}")], &[]).expect_err(wrong);
        assert!(problem.message.starts_with(&format!("--reload-poll {wrong}: ")), "{problem}");
    }
}

#[test]
fn hot_reload_is_enabled_by_default() {
    let reload = |typed: &[&str], variables: &[(&str, &str)]| {
        run(typed, variables).expect("valid options").scripts.reload
    };
    assert!(reload(&[], &[]));
    assert!(!reload(&["--no-reload"], &[]));
    assert!(!reload(&[], &[("KOPF_RUN_NO_RELOAD", "1")]));
}
