//! Parity of Lua and Rhai: each folder of `tests/scenarios` has scripts of the same name in both languages, the steps of a user,
//! and the one transcript that both must produce.
//!
//! `steps.rs` reads a folder, `run.rs` runs it on the embedded API server and virtual time, `transcript.rs` records what is seen.
//! `UPDATE_EXPECT=1` rewrites the transcripts.

mod containers;
mod pairs;
mod run;
mod steps;
mod transcript;

use std::{collections::BTreeSet, fs, path::PathBuf};

use expect_test::expect_file;

use self::steps::Scenario;

/// One test for each folder.
macro_rules! scenarios {
    ($($name:ident)+) => {
        const NAMES: &[&str] = &[$(stringify!($name)),+];

        $(
            #[test]
            fn $name() {
                check(stringify!($name));
            }
        )+
    };
}

scenarios! {
    causes
    cluster_scoped
    conditions
    conflicts
    background
    activities
    choosing
    daemons
    delays
    errors
    filter_kwargs
    failed_start
    filters
    filters_everywhere
    filters_of_changes
    grants
    held_levels
    hierarchies
    ids
    indexes
    indexes_changing
    indexes_first
    indexes_shared
    kube_errors
    kube_helpers
    kube_objects
    kube_watching
    kwargs
    kwargs_in_background
    late_exits
    libraries
    lifecycles
    limits
    locks
    logging
    memo
    modules
    odd_objects
    optional_deletion
    patching
    patching_everywhere
    pods
    pruned
    posting
    posting_loggers
    reading
    readonly
    reconcile
    recreated
    refused
    reloads
    reloaded_functions
    results
    selector_forms
    selectors
    settings
    shared
    sleeping
    startup
    status_fields
    stealth
    storages
    superseded
    subhandler_filters
    subhandler_mistakes
    subhandler_threads
    subhandlers
    surprises
    templates
    timeouts
    timer_schedules
    timers
    unsent
    whole_objects
}

/// Returns the directory of the scenarios.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")
}

/// Runs a scenario in every combination of languages: all must produce the expected transcript.
fn check(name: &str) {
    let scenario = Scenario::read(&root().join(name));
    let mut first: Option<(String, String)> = None;
    for cast in scenario.casts() {
        let languages = cast.languages();
        let transcript = run::run(&scenario, &cast);
        match &first {
            None => first = Some((languages, transcript)),
            Some((other, told)) => assert!(
                *told == transcript,
                "{name} in {other} and in {languages}:\n{}",
                differences(told, &transcript)
            ),
        }
    }
    let (_, transcript) = first.expect("a scenario has scripts");
    expect_file![root().join(name).join("expected.txt")].assert_eq(&transcript);
}

/// Returns the lines that only one of two transcripts has at its position.
fn differences(one: &str, other: &str) -> String {
    /// Further lines only follow from the first ones.
    const SHOWN: usize = 10;
    let length = one.lines().count().max(other.lines().count());
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (mut one, mut other) = (lines(one), lines(other));
    one.resize(length, String::new());
    other.resize(length, String::new());
    let differing = one.iter().zip(&other).filter(|(one, other)| one != other).take(SHOWN);
    let shown: Vec<_> = differing.map(|(one, other)| format!("- {one}\n+ {other}\n")).collect();
    shown.concat()
}

#[test]
fn every_folder_is_played() {
    let folders = fs::read_dir(root()).expect("the folder of scenarios").flatten();
    let folders = folders.filter(|it| it.path().is_dir()).map(|it| it.file_name().into_string());
    let folders: BTreeSet<String> = folders.collect::<Result<_, _>>().expect("plain names");
    let named: BTreeSet<String> = NAMES.iter().map(|it| (*it).to_owned()).collect();
    assert_eq!(folders, named);
}
