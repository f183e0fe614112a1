//! `kopf lsp`, as an editor starts it: with a client library of the protocol.
//!
//! `KOPF_PYGLS`, a Python with `pygls`, is needed; without it, the test is skipped.

use std::{env, fs, io::Write as _, path::PathBuf, process::Command};

const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: sites.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { plural: sites, singular: site, kind: Site }
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: { type: object, properties: { host: { type: string }, port: { type: integer } } }
";

#[test]
fn a_client_library_is_served() {
    let Some(python) = env::var_os("KOPF_PYGLS") else {
        std::io::stderr().write_all(b"skipped, KOPF_PYGLS is no Python with pygls\n").ok();
        return;
    };
    let directory = env::temp_dir().join(format!("kopf-lsp-{}", std::process::id()));
    fs::remove_dir_all(&directory).ok();
    fs::create_dir_all(&directory).expect("a directory");
    fs::write(directory.join("crd.yaml"), CRD).expect("a file");
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/lsp/client.py");
    let mut command = Command::new(python);
    command.arg(script).arg(env!("CARGO_BIN_EXE_kopf")).arg(&directory);
    let output = command.output().expect("Python");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stdout}{stderr}");
    assert!(stdout.contains("served by kopf lsp: kopf"), "{stdout}");
    fs::remove_dir_all(&directory).ok();
}
