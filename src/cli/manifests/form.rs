//! The form in which manifests are written.

use std::path::PathBuf;

use clap::Args;

/// Where the manifests go.
#[derive(Debug, Default, Args)]
pub struct FormArgs {
    /// Write one file per object and a kustomization.yaml to this directory, instead of printing
    #[arg(long, value_name = "DIR", conflicts_with = "helm")]
    pub kustomize: Option<PathBuf>,
    /// Write a Helm chart to this directory, instead of printing; the release sets the namespace
    #[arg(long, value_name = "DIR", conflicts_with = "namespace")]
    pub helm: Option<PathBuf>,
    /// Write a bundle for the Operator Lifecycle Manager to this directory, instead of printing; OLM sets the namespace
    #[arg(long, value_name = "DIR", conflicts_with_all = ["namespace", "kustomize", "helm"])]
    pub olm: Option<PathBuf>,
}
