//! Errors about the kubeconfig.

use std::{collections::BTreeMap, ffi::OsStr, path::Path, sync::Arc, time::Duration};

use expect_test::{Expect, expect};
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use parking_lot::Mutex;

use crate::cluster::{
    ConnectOptions, KubeCluster,
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
    let error = match Kubeconfig::from_yaml(&text) {
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
        hint: choose one with `kubectl config use-context NAME`"]],
    )
    .await;
    check(
        "null",
        &expect![[r"
        the kubeconfig has no current context; contexts in it: fine, lost
        hint: choose one with `kubectl config use-context NAME`"]],
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

#[tokio::test]
async fn the_error_of_a_malformed_file_has_one_line() {
    check("[x", &expect![[r"
        cannot read the kubeconfig: failed to parse kubeconfig YAML: error: line 15 column 18: expected string scalar
        hint: check it with `kubectl config view`"]]).await;
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
