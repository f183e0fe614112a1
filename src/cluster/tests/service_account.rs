//! The service account files of a pod.

use std::{ffi::OsString, fs, path::PathBuf};

use crate::cluster::service_account::{configuration_of, server};

/// A certificate that is not validated.
const PEM: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

/// The mounted directory of a test.
struct Mount(PathBuf);

impl Mount {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let path = std::env::temp_dir().join(format!("kopf-pod-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        for (name, text) in files {
            fs::write(path.join(name), text).expect("a file");
        }
        Mount(path)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

#[tokio::test]
async fn the_files_of_a_pod_are_its_login() {
    let files = [("token", "secret\n"), ("ca.crt", PEM), ("namespace", "my-operator\n")];
    let mount = Mount::new("all", &files);
    let config = configuration_of(&mount.0, "https://10.0.0.1:6443".into()).await.unwrap();
    assert_eq!(config.cluster_url.to_string(), "https://10.0.0.1:6443/");
    assert_eq!(config.default_namespace, "my-operator");
    assert_eq!(config.root_cert, Some(vec![vec![0, 0, 0]]));
    // The session reads it, without the line feed, and again when it has changed.
    let token = mount.0.join("token");
    assert_eq!(config.auth_info.token_file.map(PathBuf::from), Some(token));
}

#[tokio::test]
async fn only_the_token_is_required() {
    let mount = Mount::new("token", &[("token", "secret")]);
    let config = configuration_of(&mount.0, server(|_| None)).await.unwrap();
    assert_eq!(config.cluster_url.to_string(), "https://kubernetes.default.svc/");
    assert_eq!(config.default_namespace, "default");
    assert!(config.root_cert.is_none());
    let mount = Mount::new("none", &[("namespace", "x")]);
    let error = configuration_of(&mount.0, server(|_| None)).await.unwrap_err();
    let expected = format!("cannot be used: there is no token at {}/token", mount.0.display());
    assert!(error.message.ends_with(&expected), "{error}");
    assert!(error.hint.unwrap().contains("automountServiceAccountToken"));
}

#[test]
fn the_server_is_where_kubernetes_says_or_at_its_name() {
    let at = |host: &'static str, port: &'static str| {
        server(|name| Some(OsString::from(if name.ends_with("HOST") { host } else { port })))
    };
    assert_eq!(at("10.0.0.1", "6443"), "https://10.0.0.1:6443");
    assert_eq!(at("fd00::1", "443"), "https://[fd00::1]:443");
    assert_eq!(at("10.0.0.1", ""), "https://kubernetes.default.svc");
    assert_eq!(server(|_| None), "https://kubernetes.default.svc");
}
