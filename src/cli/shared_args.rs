//! Arguments of several commands, as typed.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum, builder::PossibleValuesParser};

use crate::checker::Rule;

/// A help text that rustdoc would interpret as Markdown.
pub(super) const OUTPUT_HELP: &str = "Output format: json for programs; default: for people";

/// The options of commands that use a cluster, with the names that kubectl has.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Cluster")]
pub struct ClusterArgs {
    /// Use this kubeconfig; default: KUBECONFIG, ~/.kube/config, or the service account of the pod
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Use this context of the kubeconfig; default: its current context
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Act as this user, such as system:serviceaccount:NAMESPACE:NAME
    #[arg(long = "as", value_name = "USER")]
    pub user: Option<String>,
    /// Act as a member of this group; needs --as; repeatable
    #[arg(long = "as-group", value_name = "GROUP", requires = "user", action = ArgAction::Append)]
    pub groups: Vec<String>,
}

/// An output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

const ALLOW_NET_HELP: &str = "Allow scripts to connect to these hosts, such as api.example.com:443,*.example.org:443,[::1]:*; repeatable";
const ALLOW_ENV_HELP: &str =
    "Allow scripts to read these environment variables, such as MYAPP_TOKEN,PG*; repeatable";
const ALLOW_READ_HELP: &str = "Allow scripts to read this file, or the files in this directory, such as /etc/myapp; repeatable";
const ALLOW_INSECURE_HELP: &str = "Allow scripts to connect to these hosts without checking their certificates, in addition to --allow-net; repeatable";
const ALLOW_SCRATCH_HELP: &str = "Allow scripts to store responses of `http` in files in this directory while a handler runs, such as /tmp; repeatable";

/// The grants.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Permissions of scripts")]
pub struct GrantArgs {
    /// Hosts
    #[arg(long, value_name = "HOST:PORT", help = ALLOW_NET_HELP, value_delimiter = ',', action = ArgAction::Append)]
    pub allow_net: Vec<String>,
    /// Variables
    #[arg(long, value_name = "NAME", help = ALLOW_ENV_HELP, value_delimiter = ',', action = ArgAction::Append)]
    pub allow_env: Vec<String>,
    /// Files
    #[arg(long, value_name = "PATH", help = ALLOW_READ_HELP, value_delimiter = ',', action = ArgAction::Append)]
    pub allow_read: Vec<String>,
    /// Hosts without a check of certificates
    #[arg(long, value_name = "HOST:PORT", help = ALLOW_INSECURE_HELP, value_delimiter = ',', action = ArgAction::Append)]
    pub allow_insecure: Vec<String>,
    /// Scratch files
    #[arg(long, value_name = "DIRECTORY", help = ALLOW_SCRATCH_HELP, value_delimiter = ',', action = ArgAction::Append)]
    pub allow_scratch: Vec<String>,
}

/// Accepts the names of rules of the checker.
pub(super) fn rules() -> PossibleValuesParser {
    PossibleValuesParser::new(Rule::all().map(Rule::name))
}

/// The settings and permissions of scripts, as for `kopf run`.
#[derive(Clone, Debug, Default, Args)]
pub struct TermArgs {
    /// Read options and settings from this file; default: kopf.yaml in the current directory or next to the scripts
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Settings
    #[arg(long = "set", help = SET_HELP, value_name = "GROUP.NAME=VALUE", action = ArgAction::Append)]
    pub settings: Vec<String>,
    /// The permissions of scripts.
    #[command(flatten)]
    pub grants: GrantArgs,
}

pub(super) const SET_HELP: &str = "Change a setting, such as queueing.worker_limit=20; repeatable";

/// How an operator is installed.
#[derive(Clone, Debug, Default, Args)]
pub struct InstallArgs {
    /// Script files (.lua, .rhai), or directories of scripts; default: handlers.lua, handlers.rhai or handlers/
    #[arg(value_name = "PATHS")]
    pub paths: Vec<PathBuf>,
    /// Serve all namespaces and cluster-scoped resources (default)
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// Serve only the namespaces with this name or glob pattern: the permissions are limited to them; repeatable
    #[arg(short = 'n', long = "serve", value_name = "PATTERN", action = ArgAction::Append)]
    pub served: Vec<String>,
    /// The namespace in which the operator runs; default: default
    #[arg(long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// The name of the operator; default: that of the directory of the scripts
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Use the CRDs in this file or directory; default: crd.yaml next to the scripts; repeatable
    #[arg(long = "crd", value_name = "FILE", action = ArgAction::Append)]
    pub definitions: Vec<PathBuf>,
    /// The number of pods; several elect a leader; default: 2
    #[arg(long, value_name = "NUMBER", default_value_t = 2, hide_default_value = true, value_parser = clap::value_parser!(u16).range(1..))]
    pub replicas: u16,
    /// Add a permission, such as get,list:secrets or create:jobs.batch; repeatable
    #[arg(long = "also", value_name = "VERBS:RESOURCE", action = ArgAction::Append)]
    pub also: Vec<String>,
    /// Settings and permissions of scripts.
    #[command(flatten)]
    pub terms: TermArgs,
}

/// What is installed.
#[derive(Debug, Default, Args)]
pub struct ContentArgs {
    /// The operator.
    #[command(flatten)]
    pub install: InstallArgs,
    /// The image of kopf; default: kopf:VERSION
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// Add a `PodMonitor`.
    #[arg(
        long,
        help = "Add a PodMonitor, with which the Prometheus Operator collects the metrics"
    )]
    pub pod_monitor: bool,
}
