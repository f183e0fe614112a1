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
