//! The arguments of `kopf deploy` and `kopf undeploy`, as typed.

use clap::Args;

use crate::cli::shared_args::{ClusterArgs, ContentArgs, InstallArgs};

/// Options of both commands: how long to wait, whether anything is changed, and in which cluster.
#[derive(Clone, Debug, Default, Args)]
pub struct RolloutArgs {
    /// Wait at most this long for the pods, such as 5m; 0 does not wait; default: 2m
    #[arg(long, value_name = "DURATION", default_value = "2m", hide_default_value = true)]
    pub timeout: String,
    /// Print what would change, by a server-side dry run
    #[arg(long)]
    pub dry_run: bool,
    /// The cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// `kopf deploy`
#[derive(Debug, Default, Args)]
pub struct DeployArgs {
    /// What is deployed.
    #[command(flatten)]
    pub content: ContentArgs,
    /// Take over fields that other field managers have set
    #[arg(long)]
    pub force: bool,
    /// Waiting, dry runs, and the cluster.
    #[command(flatten)]
    pub rollout: RolloutArgs,
}

/// `kopf undeploy`
#[derive(Debug, Default, Args)]
pub struct UndeployArgs {
    /// The operator.
    #[command(flatten)]
    pub install: InstallArgs,
    /// Also release objects whose deletion waits for a handler; the handler is not called
    #[arg(long)]
    pub force: bool,
    /// Waiting, dry runs, and the cluster.
    #[command(flatten)]
    pub rollout: RolloutArgs,
}

pub(in crate::cli) const DEPLOY_AFTER_HELP: &str = "\
Applies the output of `kopf manifests`, in its order, as the field manager kopf-deploy, and waits until the pods are ready. A \
second run applies only changes, and deletes objects of earlier runs that the operator no longer needs. An edited script reaches the pods within about \
a minute, without a restart.

Exit code: 0 if the operator is deployed and ready, 1 if something was rejected or the pods are not ready in time, 2 if the command line is invalid.

Examples:
  kopf deploy --namespace ops --image registry.example.com/kopf:0.1.0
  kopf deploy handlers/ --namespace ops --dry-run";

pub(in crate::cli) const UNDEPLOY_AFTER_HELP: &str = "\
Stops the operator first: its Deployment is scaled to zero. Then its finalizer and annotations are removed from the objects that \
it serves, and the objects that `kopf deploy` has created are deleted. CRDs and the namespace are kept, because they contain your objects.

If the deletion of an object waits for a handler, the command changes no object: let the operator finish, or pass --force, which skips the handler.

Examples:
  kopf undeploy --namespace ops
  kopf undeploy handlers/ --namespace ops --dry-run";
