//! Errors about the kubeconfig.

use std::{collections::BTreeMap, ffi::OsStr, path::Path, sync::Arc, time::Duration};

use expect_test::{Expect, expect};
use kube::Config;
use kube::config::KubeConfigOptions;
use parking_lot::Mutex;

use crate::cluster::{
    ConfigOverrides, ConnectOptions, KubeCluster,
    kubeconfig::parse,
    native::{broken, incomplete, named_files},
};
use crate::settings::Settings;

/// Two contexts: one is valid, the other refers to nothing.
const KUBECONFIG: &str = r"
apiVersion: v1
kind: Config
clusters:
- name: c
  cluster: {server: 'https://there:6443', certificate-authority: /no/such/file}
contexts:
- name: fine
  context: {cluster: c, user: u}
- name: lost
  context: {cluster: x, user: u}
users:
- name: u
  user: {token: t}
";

async fn check(current: &str, expected: &Expect) {
    let text = format!("{KUBECONFIG}current-context: {current}");
    let error = match parse(&text) {
        Err(error) => broken(&error, None),
        Ok(kubeconfig) => {
            let options = KubeConfigOptions::default();
            let error = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap_err();
            incomplete(&error, &["fine".into(), "lost".into()])
        }
    };
    expected.assert_eq(&format!("{error}\nhint: {}", error.hint.as_deref().unwrap_or_default()));
}

#[tokio::test]
async fn the_error_of_a_missing_context_lists_the_existing_ones() {
    check(
        "nope",
        &expect![[r"
        the kubeconfig has no context 'nope'; contexts in it: fine, lost
        hint: choose one with --context NAME, or with `kubectl config use-context NAME`"]],
    )
    .await;
    check(
        "null",
        &expect![[r"
        the kubeconfig has no current context; contexts in it: fine, lost
        hint: choose one with --context NAME, or with `kubectl config use-context NAME`"]],
    )
    .await;
}

#[tokio::test]
async fn a_context_without_a_cluster_is_an_error() {
    check(
        "lost",
        &expect![[r"
        the kubeconfig has no cluster 'x', which its context names
        hint: repair it with `kubectl config set-context --current --cluster=NAME`"]],
    )
    .await;
    check("fine", &expect![[r"
        the kubeconfig cannot be used: failed to load certificate authority: failed to read file '/no/such/file': No such file or directory (os error 2)
        hint: check it with `kubectl version`"]]).await;
}

#[test]
fn the_error_of_a_malformed_file_has_one_line() {
    let error = parse(&format!("{KUBECONFIG}current-context: [x")).expect_err("no YAML");
    let error = broken(&error, None).to_string();
    let begin = "cannot read the kubeconfig: failed to parse kubeconfig YAML: ";
    assert!(error.starts_with(begin), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn a_field_of_another_type_is_named() {
    for (text, expected) in [
        (
            "users: [{name: u, user: {token: [1]}}]",
            "`users`: [0]: `user`: `token`: expected a string, not a list",
        ),
        (
            "users: [{name: u, user: {token: 1.5}}]",
            "`users`: [0]: `user`: `token`: expected a string, not a float: put it in quotes",
        ),
        ("clusters: [{cluster: {}}]", "`clusters`: [0]: `name` is missing"),
        ("contexts: {}", "`contexts`: expected a list, not a map"),
        ("- x", "it is not a map"),
    ] {
        assert_eq!(parse(text).expect_err(text).to_string(), expected);
    }
}

#[test]
fn all_fields_are_read_and_documents_are_merged() {
    let text = r"
current-context: first
clusters:
- {name: a, cluster: {server: 'https://a', insecure-skip-tls-verify: true, tls-server-name: b, extensions: [{name: e, extension: {x: 1}}]}}
users:
- name: 1
  user:
    as: me
    as-groups: [g]
    as-user-extra: {k: [v]}
    exec: {command: run, args: [-x], env: [{name: A, value: 1}], interactiveMode: Never, provideClusterInfo: true}
    auth-provider: {name: oidc, config: {id: 2}}
---
current-context: second
users: [{name: 1, user: {token: t}}, {name: other, user: null}]
";
    let read = parse(text).expect("a kubeconfig");
    let expected = serde_json::json!({
        "current-context": "first",
        "clusters": [{"name": "a", "cluster": {
            "server": "https://a", "insecure-skip-tls-verify": true, "tls-server-name": "b",
            "extensions": [{"name": "e", "extension": {"x": 1}}],
        }}],
        "users": [
            {"name": "1", "user": {
                "as": "me", "as-groups": ["g"], "as-user-extra": {"k": ["v"]},
                "auth-provider": {"name": "oidc", "config": {"id": "2"}},
                "exec": {
                    "command": "run", "args": ["-x"], "env": [{"name": "A", "value": "1"}],
                    "interactiveMode": "Never", "provideClusterInfo": true,
                },
            }},
            {"name": "other"},
        ],
        "contexts": [],
    });
    let found = serde_json::to_value(&read).expect("JSON");
    assert_eq!(found, expected);
}

#[test]
fn the_list_of_files_is_trimmed_and_knows_the_home() {
    let named = |value: &str| {
        let files = named_files(Some(OsStr::new(value)), Some(Path::new("/home/me")));
        files.iter().map(|it| it.display().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(named("/a: ~/b ::~:c~"), ["/a", "/home/me/b", "/home/me/", "c~"]);
    assert!(named("").is_empty());
    assert!(named(" : ").is_empty());
}

#[tokio::test]
async fn the_settings_limit_the_making_of_a_connection() {
    for (limit, expected) in [(Some(Duration::from_secs(3)), 3), (None, 30)] {
        let seen = Arc::new(Mutex::new(None));
        let dialled = Arc::clone(&seen);
        let mut settings = Settings::default();
        settings.networking.connect_timeout = limit;
        let options = ConnectOptions {
            settings: Arc::new(settings),
            login: Some(Arc::new(|_| {
                let info = serde_json::json!({"server": "https://there", "token": "t"});
                Box::pin(async { Ok(BTreeMap::from([(Arc::from("login"), info)])) })
            })),
            dial: Arc::new(move |config| {
                *dialled.lock() = config.connect_timeout;
                crate::cluster::dial(config)
            }),
            ..ConnectOptions::default()
        };
        KubeCluster::connect(options).await.unwrap();
        assert_eq!(*seen.lock(), Some(Duration::from_secs(expected)));
    }
}

/// Connects with these overrides and the kubeconfig [`TWO`]. Returns what the client was made with, or the error.
async fn dialled(test: &str, overrides: ConfigOverrides) -> Result<Config, String> {
    let file = std::env::temp_dir().join(format!("kopf-{}-{test}", std::process::id()));
    std::fs::write(&file, TWO).expect("a file");
    let kubeconfig = overrides.kubeconfig.or_else(|| Some(file.clone()));
    let overrides = ConfigOverrides { kubeconfig, ..overrides };
    let seen = Arc::new(Mutex::new(None));
    let dialled = Arc::clone(&seen);
    let dial: crate::cluster::Dial = Arc::new(move |config| {
        *dialled.lock() = Some(config.clone());
        crate::cluster::dial(config)
    });
    let options = ConnectOptions { overrides, dial, ..ConnectOptions::default() };
    let connected = KubeCluster::connect(options).await;
    std::fs::remove_file(&file).expect("the file");
    connected.map_err(|it| format!("{it}\nhint: {}", it.hint.as_deref().unwrap_or_default()))?;
    let config = seen.lock().take();
    Ok(config.expect("a client was made"))
}

/// Two clusters, each with a context.
const TWO: &str = r"
apiVersion: v1
kind: Config
current-context: first
clusters:
- name: a
  cluster: {server: 'https://a:6443', proxy-url: 'http://proxy-a:3128'}
- name: b
  cluster: {server: 'https://b:6443', proxy-url: 'http://proxy-b:3128'}
contexts:
- name: first
  context: {cluster: a, user: u}
- name: second
  context: {cluster: b, user: u}
users:
- name: u
  user: {token: t}
";

#[tokio::test]
async fn the_overrides_choose_the_file_the_context_and_the_user() {
    let current = dialled("current", ConfigOverrides::default()).await.unwrap();
    assert_eq!(current.cluster_url.host(), Some("a"));
    assert_eq!(current.auth_info.impersonate, None);
    let overrides = ConfigOverrides {
        context: Some("second".into()),
        user: Some("system:serviceaccount:ops:shop".into()),
        groups: vec!["auditors".into()],
        ..ConfigOverrides::default()
    };
    let chosen = dialled("chosen", overrides).await.unwrap();
    assert_eq!(chosen.cluster_url.host(), Some("b"));
    assert_eq!(
        chosen.proxy_url.and_then(|it| it.host().map(str::to_owned)).as_deref(),
        Some("proxy-b")
    );
    assert_eq!(chosen.auth_info.impersonate.as_deref(), Some("system:serviceaccount:ops:shop"));
    assert_eq!(chosen.auth_info.impersonate_groups, Some(vec!["auditors".to_owned()]));
}

#[tokio::test]
async fn overrides_that_lead_nowhere_name_what_there_is() {
    let context = ConfigOverrides { context: Some("third".into()), ..ConfigOverrides::default() };
    let error = dialled("third", context).await.unwrap_err();
    expect![[r"
        the kubeconfig has no context 'third'; contexts in it: first, second
        hint: choose one with --context NAME, or with `kubectl config use-context NAME`"]]
    .assert_eq(&error);
    let missing = Some("/nowhere/config".into());
    let error =
        dialled("missing", ConfigOverrides { kubeconfig: missing, ..ConfigOverrides::default() });
    expect![[r"
        no kubeconfig at /nowhere/config
        hint: correct --kubeconfig, or omit it to use KUBECONFIG or ~/.kube/config"]]
    .assert_eq(&error.await.unwrap_err());
}
