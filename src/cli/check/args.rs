//! The options of `kopf check`.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use crate::cli::shared_args::{OUTPUT_HELP, OutputFormat, TermArgs, rules};

/// `kopf check`
#[derive(Debug, Default, Args)]
pub struct CheckArgs {
    /// Script files (.lua, .rhai), or directories of scripts
    #[arg(value_name = "PATHS")]
    pub paths: Vec<PathBuf>,
    /// Output format
    #[arg(short, long, help = OUTPUT_HELP, value_enum, ignore_case = true, value_name = "FORMAT", default_value = "text", hide_default_value = true, hide_possible_values = true)]
    pub output: OutputFormat,
    /// Try conversion handlers on objects made from the CRDs in this file or directory; default: crd.yaml next to the scripts; repeatable
    #[arg(long = "crd", value_name = "FILE", action = ArgAction::Append)]
    pub definitions: Vec<PathBuf>,
    /// Explain a rule, such as unknown-member, instead of checking scripts
    #[arg(long, value_name = "RULE", value_parser = rules(), hide_possible_values = true)]
    pub explain: Option<String>,
    /// Also print the permissions that the scripts need and do not have, as options and for kopf.yaml
    #[arg(long)]
    pub suggest_grants: bool,
    /// Settings and permissions.
    #[command(flatten)]
    pub terms: TermArgs,
}
