//! The rules of precedence, and every way to write a scope.

use clap::Parser as _;

use super::{RunOptions, ScopeOption, Verbosity, resolve_run};
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
    resolve_run(args, &lookup)
}

fn scope(typed: &[&str], variables: &[(&str, &str)]) -> ScopeOption {
    run(typed, variables).expect("a valid scope").scope
}

fn namespaces(patterns: &[&str]) -> ScopeOption {
    ScopeOption::Namespaces(patterns.iter().map(|it| (*it).to_owned()).collect())
}

#[test]
fn nothing_said_is_cluster_wide_but_not_the_same_as_asking_for_it() {
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
fn both_scopes_at_once_are_refused_in_the_words_of_kopf() {
    let problem = run(&["-n", "a", "-A"], &[]).expect_err("a conflict");
    assert_eq!(problem.exit, Exit::Usage);
    assert_eq!(problem.message, "Either --namespace or --all-namespaces can be used, not both.");
}

#[test]
fn more_logs_win_over_less() {
    let verbosity = |typed: &[&str]| run(typed, &[]).expect("valid options").log.verbosity;
    assert_eq!(verbosity(&[]), Verbosity::Normal);
    assert_eq!(verbosity(&["-q"]), Verbosity::Quiet);
    assert_eq!(verbosity(&["-qv"]), Verbosity::Verbose);
    assert_eq!(verbosity(&["-qvd"]), Verbosity::Debug);
    let quiet = [("KOPF_RUN_QUIET", "on")];
    assert_eq!(run(&[], &quiet).expect("valid").log.verbosity, Verbosity::Quiet);
}

#[test]
fn the_prefix_follows_the_format_unless_somebody_says_otherwise() {
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
fn variables_fill_in_what_was_not_typed() {
    let variables = [
        ("KOPF_RUN_LOG_FORMAT", "Json"),
        ("KOPF_RUN_LOG_REFKEY", "ref"),
        ("KOPF_RUN_STANDALONE", "1"),
    ];
    let options = run(&[], &variables).expect("valid options");
    assert_eq!((options.log.format, options.log.refkey.as_str()), (LogFormat::Json, "ref"));
    assert!(options.standalone);
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
