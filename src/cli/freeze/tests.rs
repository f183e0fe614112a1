//! Freeze and resume: arguments and their meaning.

use std::time::Duration;

use clap::Parser as _;

use super::{FreezeInputs, FreezeOptions, resolve_freeze, resolve_resume};
use crate::cli::{
    args::{Command, LowArgs},
    report::{Exit, Report},
};

fn resolve(typed: &str, variables: &[(&str, &str)]) -> Result<FreezeOptions, Report> {
    let args = LowArgs::try_parse_from(["kopf"].into_iter().chain(typed.split(' ')));
    let lookup = |name: &str| {
        let found = variables.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let origin = FreezeInputs { lookup: &lookup, person: "ops@home".into() };
    match args.expect("known options").command {
        Command::Freeze(args) => resolve_freeze(args, origin),
        Command::Resume(args) => resolve_resume(args, origin),
        Command::Run(_)
        | Command::Dev(_)
        | Command::Check(_)
        | Command::Test(_)
        | Command::Plan(_)
        | Command::Stubs(_)
        | Command::Init(_)
        | Command::Docs(_)
        | Command::Lsp
        | Command::Manifests(_)
        | Command::Deploy(_)
        | Command::Undeploy(_)
        | Command::Rbac(_)
        | Command::Status(_)
        | Command::Retry(_)
        | Command::Release(_)
        | Command::Suspend(_)
        | Command::Unsuspend(_)
        | Command::Logs(_)
        | Command::Crds(_)
        | Command::Version
        | Command::Completions(_)
        | Command::ManPages(_) => {
            panic!("another command")
        }
    }
}

#[test]
fn a_freeze_has_the_defaults_of_kopf() {
    let options = resolve("freeze -A -P default -t 60", &[]).expect("valid");
    let record = options.record.expect("a record");
    assert_eq!(
        (record.priority, record.lifetime, record.message),
        (100, Duration::from_mins(1), None)
    );
    assert_eq!((options.identity.as_str(), options.name.as_str()), ("ops@home", "default"));
    assert_eq!((options.namespaces, options.notes.len()), (None, 0));
}

#[test]
fn a_freeze_prefers_the_command_line_to_the_environment() {
    let variables = [
        ("KOPF_FREEZE_PEERING", "shop"),
        ("KOPF_FREEZE_LIFETIME", "30"),
        ("KOPF_FREEZE_PRIORITY", "5"),
        ("KOPF_FREEZE_ID", "bot"),
        ("KOPF_FREEZE_MESSAGE", "later"),
        ("KOPF_FREEZE_NAMESPACES", "a b"),
        ("KOPF_FREEZE_NAMESPACE", "c"),
    ];
    let options = resolve("freeze", &variables).expect("valid");
    let record = options.record.expect("a record");
    assert_eq!((record.priority, record.lifetime.as_secs()), (5, 30));
    assert_eq!(record.message.as_deref(), Some("later"));
    assert_eq!((options.identity.as_str(), options.name.as_str()), ("bot", "shop"));
    assert_eq!(options.namespaces.expect("some"), ["a", "b", "c"]);
    let typed = "freeze -n x -P y -t 10m -p 7 -i me -m now";
    let options = resolve(typed, &variables[..5]).expect("valid");
    let record = options.record.expect("a record");
    assert_eq!((record.priority, record.lifetime.as_secs()), (7, 600));
    assert_eq!(record.message.as_deref(), Some("now"));
    assert_eq!((options.identity.as_str(), options.name.as_str()), ("me", "y"));
    let options = resolve("freeze -A -P y -t 1 --dev -p 7", &[]).expect("valid");
    assert_eq!(options.record.expect("a record").priority, 666);
}

#[test]
fn a_resume_removes_the_record() {
    let options = resolve("resume -A -P default", &[("KOPF_RESUME_ID", "bot")]).expect("valid");
    assert_eq!((options.record, options.identity.as_str()), (None, "bot"));
}

#[test]
fn missing_and_contradicting_options_are_errors() {
    for (typed, message, hint) in [
        ("freeze -A -t 1", "--peering is required", "KOPF_FREEZE_PEERING"),
        ("freeze -A -P x", "--lifetime is required", "KOPF_FREEZE_LIFETIME"),
        ("resume -A", "--peering is required", "KOPF_RESUME_PEERING"),
        (
            "freeze -A -P x -t soon",
            "--lifetime is 'soon', which is not a duration above zero",
            "10m",
        ),
        ("freeze -A -P x -t 0", "--lifetime is '0', which is not a duration above zero", "10m"),
    ] {
        let report = resolve(typed, &[]).expect_err(typed);
        assert_eq!((report.message.as_str(), report.exit), (message, Exit::Usage));
        assert!(report.hint.expect("a hint").contains(hint), "{typed}");
    }
    let both = resolve("resume -A -n x -P y", &[]).expect_err("both scopes");
    assert_eq!(both.message, "Either --namespace or --all-namespaces can be used, not both.");
    assert_eq!(resolve("resume -P y", &[]).expect("valid").notes.len(), 1);
}
