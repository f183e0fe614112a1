//! The arguments of the commands about objects, as typed.

use clap::Args;

use crate::cli::shared_args::{ClusterArgs, OUTPUT_HELP, OutputFormat};

/// The objects of a command.
#[derive(Clone, Debug, Default, Args)]
pub struct ObjectArgs {
    /// A kind, such as kopfexamples or databases.example.com, or one object of it, such as kopfexamples/NAME
    #[arg(value_name = "KIND[/NAME]")]
    pub target: String,
    /// Namespace of the objects; default: that of the context
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces")]
    pub namespace: Option<String>,
    /// Objects of all namespaces
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// The cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// `kopf status`
#[derive(Clone, Debug, Default, Args)]
pub struct StatusArgs {
    /// The objects.
    #[command(flatten)]
    pub objects: ObjectArgs,
    /// Output format
    #[arg(short, long, help = OUTPUT_HELP, value_enum, ignore_case = true, value_name = "FORMAT", default_value = "text", hide_default_value = true, hide_possible_values = true)]
    pub output: OutputFormat,
    /// Print the state again whenever it changes, until Ctrl+C
    #[arg(short, long)]
    pub watch: bool,
}

/// `kopf logs`
#[derive(Clone, Debug, Default, Args)]
pub struct LogsArgs {
    /// Name of the operator, as in `kopf manifests --name`; default: all operators of the namespace
    #[arg(value_name = "NAME", conflicts_with = "selector")]
    pub name: Option<String>,
    /// Namespace of the operator; default: that of the context
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Labels of the operator's pods, such as app=my-operator
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub selector: Option<String>,
    /// Maximum number of lines per pod; default: 200
    #[arg(long, value_name = "NUMBER", default_value_t = 200, hide_default_value = true)]
    pub tail: u32,
    /// Only lines newer than this, such as 10m
    #[arg(long, value_name = "DURATION")]
    pub since: Option<String>,
    /// The log before the last restart of the container
    #[arg(long)]
    pub previous: bool,
    /// The cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// `kopf retry`
#[derive(Clone, Debug, Default, Args)]
pub struct RetryArgs {
    /// The objects.
    #[command(flatten)]
    pub objects: ObjectArgs,
    /// Retry all objects of the kind that have failed or wait for a retry
    #[arg(long)]
    pub failed: bool,
    /// Handle the object as a new one, even if no handler has failed: its creation handlers are called
    #[arg(long, conflicts_with = "failed")]
    pub all: bool,
    /// Print what would change, without changing it
    #[arg(long)]
    pub dry_run: bool,
}

/// `kopf suspend`, `kopf unsuspend`
#[derive(Clone, Debug, Default, Args)]
pub struct SuspendArgs {
    /// The objects.
    #[command(flatten)]
    pub objects: ObjectArgs,
    /// Change all objects of the kind
    #[arg(long)]
    pub all: bool,
    /// Also suspend objects that no operator has handled, such as those of a kind with only event handlers
    #[arg(long)]
    pub force: bool,
    /// Reason; shown in the event and in the annotation
    #[arg(short, long, value_name = "TEXT")]
    pub message: Option<String>,
    /// Print what would change, without changing it
    #[arg(long)]
    pub dry_run: bool,
}

/// `kopf release`
#[derive(Clone, Debug, Default, Args)]
pub struct ReleaseArgs {
    /// The objects.
    #[command(flatten)]
    pub objects: ObjectArgs,
    /// Release all objects of the kind
    #[arg(long)]
    pub all: bool,
    /// Finalizer of the operator; default: kopf.zalando.org/KopfFinalizerMarker
    #[arg(long, value_name = "NAME")]
    pub finalizer: Option<String>,
    /// Prefix of the operator's annotations; default: kopf.zalando.org
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Option<String>,
    /// Print what would change, without changing it
    #[arg(long)]
    pub dry_run: bool,
}

/// `kopf crds`
#[derive(Clone, Debug, Default, Args)]
pub struct CrdsArgs {
    /// Which CRDs: peering
    #[arg(value_name = "NAME", default_value = "peering", hide_default_value = true)]
    pub name: String,
}

pub(in crate::cli) const STATUS_AFTER_HELP: &str = "\
Lists the handlers that have failed, that wait for a retry, or that have not been called yet. The state is read from the annotations \
of the objects, so no operator needs to run.

With the URL of a running operator instead of a kind, lists its scripts: their SHA-256, their memory and its limit, and the \
CPU time that they have used.

Examples:
  kopf status kopfexamples -A --watch
  kopf status kopfexamples/my-object -n prod -o json
  kopf status http://127.0.0.1:8081";

pub(in crate::cli) const RETRY_AFTER_HELP: &str = "\
The running operator calls the failed handlers of the object again for the same reason, and the waiting ones at once. Handlers that \
have succeeded are not called. Failures are remembered only with the setting persistence.remember_failures, which is the default.

Examples:
  kopf retry kopfexamples/my-object
  kopf retry kopfexamples --failed -A
  kopf retry kopfexamples/my-object --all";

pub(in crate::cli) const SUSPEND_AFTER_HELP: &str = "\
The running operator calls no handlers for the object, and stops its daemons and timers, until `kopf unsuspend`. Changes made \
meanwhile are handled afterwards, as one change. The deletion of a suspended object is handled as usual.

Examples:
  kopf suspend kopfexamples/my-object --message 'restoring a backup'
  kopf unsuspend kopfexamples --all -A";

pub(in crate::cli) const RELEASE_AFTER_HELP: &str = "\
For objects of an operator that is gone: a finalizer that nobody removes blocks their deletion. The deletion handlers are not called. \
Stop the operator first; it would add the finalizer again.

Examples:
  kopf release kopfexamples --all -A --dry-run
  kopf release kopfexamples/my-object -n prod";

pub(in crate::cli) const LOGS_AFTER_HELP: &str = "\
Prints the log of each pod of an operator that `kopf manifests` has installed. To follow it: kubectl logs -f -l app.kubernetes.io/name=NAME

Examples:
  kopf logs my-operator -n ops --since 10m
  kopf logs -l app=my-operator --previous";

pub(in crate::cli) const CRDS_AFTER_HELP: &str = "\
Example:
  kopf crds peering | kubectl apply -f -";
