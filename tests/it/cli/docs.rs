//! `docs/cli.md`: the reference of the command line, generated from the same definitions as the help.

use std::{fmt::Write as _, path::PathBuf};

use clap::{Arg, Command, CommandFactory as _};
use expect_test::expect_file;
use kopf::cli::{
    args::LowArgs,
    config::{KEYS, OptionType},
    environment,
};

const INTRODUCTION: &str = "\
# The command line

<!-- Made from src/cli/args.rs by the test `cli::docs::the_reference_is_that_of_the_help`. -->
";

const CONFIG: &str = "
## kopf.yaml

Options and settings of `kopf run` and `kopf dev` in a file: `kopf.yaml` in the current directory or next to the scripts, or the
file that is passed with `--config`. Two such files are an error, and so is every key that is not in this table.

| key | takes |
|---|---|
";

const ENVIRONMENT: &str = "
## Environment variables

They are used unless the command line says otherwise. An empty variable counts as unset. Flags are on for 1, true, t, yes, y, on. The
operator warns at the start of misspelled variables, with the nearest name; an unknown `KOPF_SETTINGS_…` is an error.

";

const REST: &str = "
Each setting has a variable too: `KOPF_SETTINGS_GROUP__NAME`, see [settings](settings.md). `KUBECONFIG` is the path of the kubeconfig.
`NO_COLOR`, `CLICOLOR=0`, `CLICOLOR_FORCE` and `TERM=dumb` are respected unless `--color` is given.

## The log

All lines are written to stderr; only `print` of scripts writes to stdout. A line is written at once. If stderr does not accept it (a
pipe with a slow reader, a stopped terminal), up to 8192 lines are queued. Further lines are lost, and one line in their place reports
how many. The operator never waits for its log, except for up to one second when it exits.

## Exit codes

| code | meaning |
|---|---|
| 0 | stopped by a signal; the command has succeeded |
| 1 | the scripts, the start or the shutdown failed |
| 2 | the command line, the environment or `kopf.yaml` is invalid |
| 130, 143 | stopped immediately by a second Ctrl+C or SIGTERM |
| 137 | a graceful exit took longer than `settings.process.ultimate_exiting_timeout` |
";

#[test]
fn the_reference_is_that_of_the_help() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    expect_file![root.join("docs/cli.md")].assert_eq(&reference());
}

fn reference() -> String {
    let mut text = INTRODUCTION.to_owned();
    for command in LowArgs::command().get_subcommands() {
        describe(&mut text, command);
    }
    text.push_str(CONFIG);
    for (key, takes) in KEYS {
        let takes = match takes {
            OptionType::Flag => "true or false",
            OptionType::Text => "a string",
            OptionType::Texts => "a string or a list of strings",
            OptionType::Number => "an integer",
            OptionType::Duration => "seconds, or a string with a unit such as 2s",
        };
        writeln!(text, "| `{key}` | {takes} |").expect("memory");
    }
    text.push_str(
        "| `scripts` | what is [granted](grants.md) to single scripts, by the end of their path |\n",
    );
    text.push_str("| `settings` | groups of [settings](settings.md) |\n");
    text.push_str(ENVIRONMENT);
    for (command, names) in environment::COMMANDS {
        let names: Vec<_> = names.iter().map(|it| format!("`KOPF_{command}_{it}`")).collect();
        writeln!(text, "- {}", names.join(", ")).expect("memory");
    }
    text + REST
}

fn describe(text: &mut String, command: &Command) {
    let (name, about) = (command.get_name(), command.get_about().expect("a line of text"));
    write!(text, "\n## kopf {name}\n\n{about}.\n\n| option | meaning |\n|---|---|\n")
        .expect("memory");
    for argument in command.get_arguments().filter(|it| !it.is_hide_set()) {
        let help = argument.get_help().expect("a line of text").to_string();
        writeln!(text, "| {} | {} |", spelled(argument), help.replace('|', "\\|")).expect("memory");
    }
    if let Some(more) = command.get_after_help() {
        write!(text, "\n```text\n{more}\n```\n").expect("memory");
    }
}

/// Returns the spelling of an argument: `-n, --namespace PATTERN`.
fn spelled(argument: &Arg) -> String {
    let short = argument.get_short().map(|it| format!("-{it}"));
    let long = argument.get_long().map(|it| format!("--{it}"));
    let mut spelled = short.into_iter().chain(long).collect::<Vec<_>>().join(", ");
    if argument.get_action().takes_values() {
        for value in argument.get_value_names().unwrap_or_default() {
            spelled = format!("{spelled} {value}");
        }
    }
    format!("`{}`", spelled.trim())
}
