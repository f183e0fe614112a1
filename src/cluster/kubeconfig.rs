//! Reads kubeconfigs, as `kube` does: its `Kubeconfig::read_from`, with a smaller deserializer.
//!
//! The YAML reader is generic, and each type of a kubeconfig would be a copy of it: 0.65 MB of code. Behind `dyn`, there is one.

use std::{fs, io, path::Path};

use kube::config::{Kubeconfig, KubeconfigError};
use serde::{Deserialize, Deserializer, de::Error as _};

/// A kubeconfig that is deserialized without generic code.
struct Erased(Kubeconfig);

impl<'de> Deserialize<'de> for Erased {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut erased = <dyn erased_serde::Deserializer<'_>>::erase(deserializer);
        erased_serde::deserialize(&mut erased).map(Erased).map_err(D::Error::custom)
    }
}

/// Reads a file. Relative paths in it become absolute; several documents are merged, and an empty file is an empty kubeconfig.
pub(super) fn read(path: &Path) -> Result<Kubeconfig, KubeconfigError> {
    let text = text(path).map_err(|error| KubeconfigError::ReadConfig(error, path.into()))?;
    let documents: Vec<Erased> = serde_saphyr::from_multiple(&text)
        .map_err(|error| KubeconfigError::Parse(Box::new(error)))?;
    let mut merged = None;
    for Erased(mut document) in documents {
        if let Some(directory) = path.parent() {
            make_absolute(&mut document, directory);
        }
        merged = Some(match merged {
            Some(before) => Kubeconfig::merge(before, document)?,
            None => document,
        });
    }
    Ok(merged.unwrap_or_default())
}

/// Returns the content of a file: UTF-8, or UTF-16 with a byte order mark, as PowerShell writes it.
fn text(path: &Path) -> io::Result<String> {
    let bytes = fs::read(path)?;
    let (pairs, read): (_, fn([u8; 2]) -> u16) = match bytes.as_slice() {
        [0xFF, 0xFE, rest @ ..] => (rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => (rest, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] => return utf8(rest.to_vec()),
        _ => return utf8(bytes),
    };
    let units: Vec<u16> = pairs.as_chunks().0.iter().copied().map(read).collect();
    String::from_utf16(&units).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn utf8(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Resolves what a kubeconfig names relative to itself. A command without a slash is looked for in `PATH`.
fn make_absolute(kubeconfig: &mut Kubeconfig, directory: &Path) {
    let resolve = |path: &mut Option<String>| {
        let file = path.as_deref().map(Path::new).filter(|it| it.is_relative());
        if let Some(absolute) = file.and_then(|it| Some(directory.join(it).to_str()?.to_owned())) {
            *path = Some(absolute);
        }
    };
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|it| it.cluster.as_mut()) {
        resolve(&mut cluster.certificate_authority);
    }
    for user in kubeconfig.auth_infos.iter_mut().filter_map(|it| it.auth_info.as_mut()) {
        resolve(&mut user.client_certificate);
        resolve(&mut user.client_key);
        resolve(&mut user.token_file);
        let command = user.exec.as_mut().map(|it| &mut it.command);
        if let Some(command) = command.filter(|it| it.as_ref().is_some_and(|it| it.contains('/'))) {
            resolve(command);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const FULL: &str = r"
apiVersion: v1
kind: Config
preferences: {}
current-context: 7
clusters:
  - name: c
    cluster:
      server: https://there:6443
      certificate-authority: ca.crt
      insecure-skip-tls-verify: false
      proxy-url: socks5://proxy:1080
contexts:
  - name: 7
    context: { cluster: c, user: u, namespace: ops, extensions: [{ name: x, extension: { a: [1, 2.5, null] } }] }
users:
  - name: u
    user:
      token: 12345678901234567890123
      tokenFile: /run/token
      client-certificate: tls/u.crt
      client-key-data: YWJj
      as-groups: [a, 1]
      exec:
        apiVersion: client.authentication.k8s.io/v1
        command: ./plugin
        args: [--x, 1]
        env: [{ name: A, value: 1 }]
        interactiveMode: Never
      auth-provider: { name: oidc, config: { id: 1 } }
---
users: [{ name: later, user: { exec: { command: aws } } }]
";

    /// Writes a file. Returns what we read, and what `kube` reads.
    fn both(name: &str, content: &[u8]) -> [Result<Value, String>; 2] {
        let path = std::env::temp_dir().join(format!("kopf-{}-{name}", std::process::id()));
        fs::write(&path, content).expect("a file");
        let shown = |it: Result<Kubeconfig, KubeconfigError>| match it {
            Ok(it) => Ok(serde_json::to_value(&it).expect("JSON")),
            Err(error) => Err(error.to_string()),
        };
        let all = [shown(read(&path)), shown(Kubeconfig::read_from(&path))];
        fs::remove_file(&path).expect("removed");
        all
    }

    #[test]
    fn a_kubeconfig_is_read_as_kube_reads_it() {
        let wide = |order: fn(u16) -> [u8; 2]| -> Vec<u8> {
            std::iter::once(0xFEFF).chain(FULL.encode_utf16()).flat_map(order).collect()
        };
        let marked = [&[0xEF, 0xBB, 0xBF], FULL.as_bytes()].concat();
        for content in [
            FULL.as_bytes(),
            &marked,
            &wide(u16::to_le_bytes),
            &wide(u16::to_be_bytes),
            b"",
            b"current-context: null\nclusters: null\nusers: []",
            b"# nothing\n---\n---\nkind: Config",
        ] {
            let [ours, expected] = both("kubeconfig", content);
            assert_eq!(ours, expected);
            ours.expect("a kubeconfig");
        }
        let [ours, _] = both("kubeconfig", FULL.as_bytes());
        let ours = ours.expect("a kubeconfig").to_string();
        for part in ["12345678901234567890123", "tls/u.crt\"", "/./plugin\"", "\"aws\"", "\"7\""] {
            assert!(ours.contains(part), "{part}: {ours}");
        }
    }

    #[test]
    fn what_kube_rejects_is_rejected() {
        let cases: [&[u8]; 6] = [
            b"clusters: 1",
            b"users: [{name: u, user: {exec: []}}]",
            b"{",
            b"\xFF\xFEx\xD8",
            b"a\xFF",
            b"[]",
        ];
        for content in cases {
            let [ours, expected] = both("rejected", content);
            assert_eq!(ours.is_err(), expected.is_err(), "{ours:?} {expected:?}");
        }
    }
}
