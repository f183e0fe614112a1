//! Settings by name: accepted and rejected values.
#![expect(clippy::needless_pass_by_value, reason = "calls read better with the values in them")]

use std::time::Duration;

use serde_json::{Value, json};

use super::{Outdated, Setting, TABLE, find, group, groups, storage};
use crate::settings::{
    AnnotationsDiffBase, AnnotationsProgress, DiffBaseStorage, ProgressStorage, Settings,
    StatusDiffBase, StatusProgress,
};

fn set(settings: &mut Settings, place: &str, value: Value) -> Result<(), String> {
    let (group, name) = place.split_once('.').expect("group.name");
    find(group, name)?.0.set(settings, &value)
}

fn refused(place: &str, value: Value) -> String {
    set(&mut Settings::default(), place, value).expect_err("a refusal")
}

#[test]
fn every_setting_accepts_the_value_it_returns() {
    let mut settings = Settings::default();
    for setting in TABLE {
        let value = setting.get(&settings);
        setting.set(&mut settings, &value).unwrap();
        assert_eq!(setting.get(&settings), value, "{}.{}", setting.group, setting.name);
    }
}

#[test]
fn every_setting_has_a_line_of_text() {
    for setting in TABLE {
        let is_sentence = setting.doc.ends_with('.') && setting.doc.len() > 20;
        assert!(is_sentence, "{}.{}: {}", setting.group, setting.name, setting.doc);
    }
}

#[test]
fn the_names_are_those_of_kopf_and_nothing_else() {
    let expected = "\
        process: ultimate_exiting_timeout cleanup_timeout
        posting: enabled loggers failures condition level default_backoffs logging_backoffs worker_limit idle_timeout \
            reporting_component reporting_instance event_name_prefix
        peering: name stealth priority lifetime mandatory standalone clusterwide detect_duplicates namespaced
        watching: server_timeout client_timeout connect_timeout reconnect_backoff inactivity_timeout \
            chunk_size initial_streaming label_selectors field_selectors shard_selectors
        queueing: worker_limit idle_timeout exit_timeout error_delays batch_window
        scanning: disabled
        admission: server managed service secret
        execution: default_backoff max_workers retry_log_level
        background: cancellation_polling instant_exit_timeout instant_exit_zero_time_cycles
        networking: request_timeout connect_timeout error_backoffs repeat_last_backoff enforce_retry_after trust_env
        persistence: finalizer progress_storage diffbase_storage consistency_timeout \
            remember_failures plain_secrets sensitive_fields digest_secret";
    // Nor does it limit the resources of handlers.
    let known = |it: &&Setting| it.by_scripts;
    let names =
        |group| TABLE.iter().filter(known).filter(move |it| it.group == group).map(|it| it.name);
    let line = |group| format!("{group}: {}", names(group).collect::<Vec<_>>().join(" "));
    let expected: Vec<_> = expected.lines().map(str::trim).collect();
    // Kopf has no leader election, so nothing waits for its clean-up handlers and it has no `cleanup_timeout`. Nor does it reload.
    let groups = groups().filter(|it| !["leadership", "sandbox", "reload"].contains(it));
    assert_eq!(groups.map(line).collect::<Vec<_>>(), expected);
}

#[test]
fn errors_of_limits_name_the_minimum() {
    for (place, value, problem) in [
        ("execution.cpu_limit", json!("9ms"), "expected at least 10ms, got \"9ms\""),
        ("execution.event_timeout", json!("999ms"), "expected at least 1000ms, got \"999ms\""),
        ("sandbox.memory_limit", json!("1000Ki"), "expected at least 1 MiB, got \"1000Ki\""),
        ("sandbox.call_depth", json!(15), "expected at least 16, got 15"),
        ("sandbox.call_depth", json!(1001), "expected at most 1000, got 1001"),
        ("sandbox.string_size", json!(0), "expected at least 1 KiB, got 0"),
        ("sandbox.coroutines", json!(0), "expected a positive integer, got 0"),
        (
            "sandbox.result_size",
            json!("1M"),
            "expected a number of bytes or a size such as \"64Mi\", got \"1M\"",
        ),
    ] {
        assert_eq!(refused(place, value), format!("settings.{place}: {problem}"));
    }
}

#[test]
fn null_removes_a_limit() {
    let mut settings = Settings::default();
    set(&mut settings, "queueing.worker_limit", json!(3.0)).unwrap();
    assert_eq!(settings.queueing.worker_limit, Some(3));
    set(&mut settings, "queueing.worker_limit", json!(null)).unwrap();
    assert_eq!(settings.queueing.worker_limit, None);
}

#[test]
fn one_duration_is_a_list_of_one_and_commas_make_a_list() {
    let mut settings = Settings::default();
    for (value, expected) in [
        (json!(1.5), vec![Duration::from_millis(1500)]),
        (json!("2s"), vec![Duration::from_secs(2)]),
        (json!("1, 2s,3"), vec![1, 2, 3].into_iter().map(Duration::from_secs).collect()),
        (json!([]), vec![]),
        (json!({}), vec![]),
    ] {
        set(&mut settings, "networking.error_backoffs", value).unwrap();
        assert_eq!(settings.networking.error_backoffs, expected);
    }
}

#[test]
fn levels_have_names() {
    let mut settings = Settings::default();
    set(&mut settings, "posting.level", json!("Warning")).unwrap();
    assert_eq!(settings.posting.level, 30);
    let error = refused("posting.level", json!("loud"));
    assert!(error.starts_with("settings.posting.level: expected a level: 10, 20"), "{error}");
}

#[test]
fn the_two_kinds_of_peering_are_opposites() {
    let mut settings = Settings::default();
    set(&mut settings, "peering.namespaced", json!(false)).unwrap();
    assert!(settings.peering.clusterwide);
    set(&mut settings, "peering.clusterwide", json!(false)).unwrap();
    let (namespaced, _) = find("peering", "namespaced").unwrap();
    assert_eq!(namespaced.get(&settings), json!(true));
}

#[test]
fn items_of_a_map_are_set_and_removed() {
    let mut settings = Settings::default();
    let (setting, _) = find("watching", "label_selectors").unwrap();
    setting.set_item(&mut settings, "v1/pods", json!("a=b")).unwrap();
    setting.set_item(&mut settings, "*", json!("c=d")).unwrap();
    assert_eq!(setting.get(&settings), json!({"v1/pods": "a=b", "*": "c=d"}));
    setting.set_item(&mut settings, "v1/pods", json!(null)).unwrap();
    assert_eq!(setting.get(&settings), json!({"*": "c=d"}));
    let error = setting.set_item(&mut settings, "pods", json!(3)).unwrap_err();
    assert_eq!(error, "settings.watching.label_selectors[\"pods\"]: expected a string, got 3");
    let error = refused("watching.label_selectors", json!({"pods": 3}));
    assert!(error.contains("expected a map from resource selectors to strings"), "{error}");
    let error = setting.set_item(&mut settings, "v1//pods", json!("x")).unwrap_err();
    assert!(error.contains("\"v1//pods\" is not a resource selector"), "{error}");
}

#[test]
fn the_error_of_a_wrong_name_has_the_nearest_one_or_all() {
    let told = |group, name| find(group, name).err().unwrap();
    assert_eq!(
        told("posting", "enable"),
        "there is no setting settings.posting.enable; did you mean `enabled`?"
    );
    assert_eq!(
        told("post", "enabled"),
        "there is no group of settings settings.post; did you mean `posting`?"
    );
    assert_eq!(
        told("execution", "zzz"),
        "there is no setting settings.execution.zzz; there are default_backoff, max_workers, cpu_limit, event_timeout, retry_log_level"
    );
    assert!(told("execution", "executor").contains("scripts have no executors"));
    assert_eq!(group("zzz").unwrap_err(), "there is no group of settings settings.zzz");
}

#[test]
fn deprecated_names_are_accepted_with_a_note() {
    let (setting, outdated) = find("batching", "idle_timeout").unwrap();
    assert_eq!((setting.group, setting.name), ("queueing", "idle_timeout"));
    let Some(Outdated(text)) = outdated else { panic!("nothing is told") };
    assert!(text.starts_with("Batching settings are now queueing settings."), "{text}");
    let (setting, outdated) = find("queueing", "batch_window").unwrap();
    assert!(outdated.is_some());
    assert_eq!(setting.set(&mut Settings::default(), &json!(1)), Ok(()));
}

#[test]
fn the_error_of_a_wrong_value_names_the_setting() {
    for (place, value, expected) in [
        ("execution.max_workers", json!(0), "Can't set thread pool limit lower than 1."),
        ("execution.max_workers", json!("x"), "expected a positive integer, got \"x\""),
        ("queueing.worker_limit", json!(0), "expected a positive integer, got 0"),
        (
            "queueing.error_delays",
            json!([1, -2]),
            "expected a list of seconds or durations such as \"10m\", got [1,-2]",
        ),
        ("scanning.disabled", json!(1), "expected true or false, got 1"),
        ("peering.name", json!(1), "expected a string, got 1"),
        ("peering.priority", json!(1.5), "expected an integer, got 1.5"),
        ("admission.managed", json!(1), "expected a string, got 1"),
        (
            "admission.service",
            json!("hooks"),
            "expected a service such as \"NAMESPACE/NAME\" or \"NAMESPACE/NAME:PORT\", got \"hooks\"",
        ),
        ("admission.server", json!({"prt": 1}), "there is no option `prt`; did you mean `port`?"),
        ("admission.server", json!({"port": 0}), "port: expected a port from 1 to 65535, got 0"),
        (
            "admission.server",
            json!({"cluster": "k4d"}),
            r#"cluster: expected a local cluster: "auto", "docker-desktop", "k3d", "kind" or "minikube", got "k4d""#,
        ),
        (
            "admission.server",
            json!({"cluster": "k3d", "host": "a"}),
            "`cluster` determines the host: remove it, or `host` and `url`",
        ),
        ("admission.server", json!({"certfile": "a"}), "`certfile` and `pkeyfile` need each other"),
        (
            "admission.server",
            json!({"url": "http://a"}),
            "`url` must begin with https://, got \"http://a\": API servers call no others",
        ),
        (
            "persistence.finalizer",
            json!("x y"),
            "expected a domain and a name such as \"my-operator.example.com/Finalizer\", got \"x y\"",
        ),
    ] {
        assert_eq!(refused(place, value), format!("settings.{place}: {expected}"));
    }
}

fn progress(name: &str, parameters: Value) -> ProgressStorage {
    let mut settings = Settings::default();
    let value = storage(name, &parameters).unwrap();
    set(&mut settings, "persistence.progress_storage", value).unwrap();
    settings.persistence.progress_storage
}

fn diffbase(name: &str, parameters: Value) -> DiffBaseStorage {
    let mut settings = Settings::default();
    let value = storage(name, &parameters).unwrap();
    set(&mut settings, "persistence.diffbase_storage", value).unwrap();
    settings.persistence.diffbase_storage
}

fn path(dotted: &str) -> Vec<String> {
    dotted.split('.').map(str::to_owned).collect()
}

#[test]
fn storages_have_the_names_parameters_and_defaults_of_kopf() {
    let annotations = AnnotationsProgress {
        prefix: "my.example.com".into(),
        verbose: true,
        touch_key: "t".into(),
        v1: false,
    };
    let given = json!({"prefix": "my.example.com", "verbose": true, "touch_key": "t", "v1": false});
    assert_eq!(
        progress("AnnotationsProgressStorage", given),
        ProgressStorage::Annotations(annotations)
    );
    assert_eq!(progress("SmartProgressStorage", json!(null)), ProgressStorage::default());
    let status =
        StatusProgress { field: path("status.me.progress"), touch_field: path("status.me.dummy") };
    assert_eq!(
        progress("StatusProgressStorage", json!({"name": "me"})),
        ProgressStorage::Status(status)
    );
    let status = StatusProgress {
        field: path("status.kopf"),
        touch_field: vec!["status".into(), "a.b".into()],
    };
    assert_eq!(
        progress(
            "StatusProgressStorage",
            json!({"field": "status.{name}", "touch_field": ["status", "a.b"]})
        ),
        ProgressStorage::Status(status)
    );
    assert_eq!(
        diffbase(
            "AnnotationsDiffBaseStorage",
            json!({"key": "last", "ignored_fields": ["spec.a", ["b.c"]]})
        ),
        DiffBaseStorage::Annotations(AnnotationsDiffBase {
            key: "last".into(),
            ignored_fields: vec![path("spec.a"), vec!["b.c".into()]],
            ..AnnotationsDiffBase::default()
        })
    );
    let both = json!([
        storage("StatusDiffBaseStorage", &json!(null)).unwrap(),
        "AnnotationsDiffBaseStorage"
    ]);
    assert_eq!(
        diffbase("MultiDiffBaseStorage", both),
        DiffBaseStorage::Multi(vec![
            DiffBaseStorage::Status(StatusDiffBase::default()),
            DiffBaseStorage::default()
        ])
    );
}

#[test]
fn errors_in_storages_name_the_parameter() {
    let told = |name, parameters| storage(name, &parameters).expect_err("a refusal");
    assert_eq!(
        told("AnnotationsProgressStorage", json!({"prefix": ""})),
        "Annotations storages must be prefixed."
    );
    assert!(
        told("SmartProgressStorage", json!({"prefix": "My_Prefix"}))
            .starts_with("SmartProgressStorage, parameter `prefix`: expected a domain name")
    );
    assert_eq!(
        told("AnnotationsDiffBaseStorage", json!({"prefx": "a.b"})),
        "AnnotationsDiffBaseStorage has no parameter `prefx`; did you mean `prefix`?"
    );
    assert_eq!(
        told("StatusProgressStorage", json!({"field": "status..x"})),
        "StatusProgressStorage, parameter `field`: expected a field such as \"status.progress\", got \"status..x\""
    );
    assert_eq!(
        told("MultiProgressStorage", json!([])),
        "MultiProgressStorage expects a list of storages"
    );
    assert_eq!(
        told("MultiProgressStorage", json!(vec!["StatusProgressStorage"; 1_001])),
        "MultiProgressStorage has more than 1000 storages and parameters"
    );
    assert!(
        told("MultiProgressStorage", json!(["StatusDiffBaseStorage"]))
            .starts_with("expected one of")
    );
    assert_eq!(
        told("StatusDiffBaseStorage", json!("status.x")),
        "StatusDiffBaseStorage expects named parameters, got \"status.x\""
    );
    let other = storage("StatusDiffBaseStorage", &json!(null)).unwrap();
    assert!(
        refused("persistence.progress_storage", other)
            .contains("expected one of AnnotationsProgressStorage")
    );
}

#[test]
fn the_defaults_are_those_of_kopf() {
    let backoffs = json!([1, 1, 2, 3, 5, 8, 13, 21]);
    let delays = json!([1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610]);
    let expected = json!({
        "process": {"ultimate_exiting_timeout": 600},
        "posting": {
            "enabled": true, "loggers": false, "level": 20, "default_backoffs": backoffs,
            "logging_backoffs": [1, 1, 2, 3, 5], "worker_limit": null, "idle_timeout": 1,
            "reporting_component": "kopf", "reporting_instance": "dev", "event_name_prefix": "kopf-event-",
        },
        "peering": {
            "name": "default", "stealth": false, "priority": 0, "lifetime": 60, "mandatory": false,
            "standalone": false, "clusterwide": false, "namespaced": true,
        },
        // Kopf lists everything at once.
        "watching": {
            "server_timeout": null, "client_timeout": null, "connect_timeout": null, "reconnect_backoff": 0.1,
            "inactivity_timeout": 70, "chunk_size": 500, "initial_streaming": false,
            "label_selectors": {}, "field_selectors": {}, "shard_selectors": {},
        },
        "queueing": {
            "worker_limit": null, "idle_timeout": 5, "exit_timeout": 2, "error_delays": delays, "batch_window": 0.1,
        },
        "scanning": {"disabled": false},
        "admission": {"server": null, "managed": null},
        "execution": {"default_backoff": 60, "max_workers": null},
        // Kopf has no `instant_exit_timeout`; it counts iterations of its event loop, which measure no time here.
        "background": {"cancellation_polling": 60, "instant_exit_timeout": 0.1, "instant_exit_zero_time_cycles": 10},
        "networking": {
            "request_timeout": 300, "connect_timeout": null, "error_backoffs": backoffs,
            "repeat_last_backoff": false, "enforce_retry_after": false, "trust_env": false,
        },
    });
    let settings = Settings::default();
    for (group, expected) in expected.as_object().unwrap() {
        for (name, expected) in expected.as_object().unwrap() {
            let value = find(group, name).unwrap().0.get(&settings);
            assert_eq!(value, *expected, "{group}.{name}");
        }
    }
    assert_eq!(settings.persistence.finalizer, "kopf.zalando.org/KopfFinalizerMarker");
    assert_eq!(settings.persistence.consistency_timeout, Duration::from_secs(5));
}
