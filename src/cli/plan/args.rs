//! The arguments of `kopf plan`, as typed.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use crate::cli::shared_args::{ClusterArgs, OUTPUT_HELP, OutputFormat, TermArgs};

/// `kopf plan`
#[derive(Clone, Debug, Default, Args)]
pub struct PlanArgs {
    /// Script files (.lua, .rhai), or directories of scripts; default: handlers.lua, handlers.rhai or handlers/
    #[arg(value_name = "PATHS")]
    pub paths: Vec<PathBuf>,
    /// Serve all namespaces and cluster-scoped resources (default, unless kopf.yaml names some)
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// Serve only the namespaces with this name or glob pattern; repeatable
    #[arg(short, long = "namespace", value_name = "PATTERN", action = ArgAction::Append)]
    pub namespaces: Vec<String>,
    /// How long the operator runs, on a clock that skips all waiting; default: 1m
    #[arg(long = "for", value_name = "DURATION", default_value = "1m", hide_default_value = true)]
    pub duration: String,
    /// Output format
    #[arg(short, long, help = OUTPUT_HELP, value_enum, ignore_case = true, value_name = "FORMAT", default_value = "text", hide_default_value = true, hide_possible_values = true)]
    pub output: OutputFormat,
    /// Also print the log of the operator to stderr, not only its warnings and errors
    #[arg(short, long)]
    pub verbose: bool,
    /// Settings and permissions of scripts.
    #[command(flatten)]
    pub terms: TermArgs,
    /// The cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

pub(in crate::cli) const PLAN_AFTER_HELP: &str = "\
Runs the operator on a copy of the objects that it reads, in memory, and prints what has changed there. The cluster is only read: \
get and list of what the scripts watch and read are the only requests. In the scripts, ctx.dry is true; their requests to other \
servers and their commands in pods fail. docs/plan.md describes what the copy cannot show.

Exit code: 0 if no handler fails, 1 if one fails or the cluster cannot be read, 2 if the command line is invalid.

Examples:
  kopf plan handlers.lua                    what this version would change in the current context
  kopf plan -n shop --for 10m -o json";
