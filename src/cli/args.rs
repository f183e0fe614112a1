//! The command line as it was typed. What it means is in `options/`.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

/// Runs Kubernetes operators written as Lua or Rhai scripts.
#[derive(Debug, Parser)]
#[command(name = "kopf", version, about, arg_required_else_help = true)]
pub struct LowArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Load scripts and run them as an operator until a signal
    #[command(after_help = RUN_AFTER_HELP)]
    Run(RunArgs),
    /// Run an operator on a Kubernetes API server of its own: no cluster is needed
    #[command(after_help = DEV_AFTER_HELP)]
    Dev(DevArgs),
    /// Load scripts as `kopf run` does, without a cluster, and tell what they declare and what is wrong with them
    #[command(after_help = CHECK_AFTER_HELP)]
    Check(CheckArgs),
    /// Run the tests of an operator, each on an API server and a clock of its own: no cluster is needed, and no time passes
    #[command(after_help = TEST_AFTER_HELP)]
    Test(TestArgs),
    /// Write what scripts can use as definitions for editors, which then complete, explain and check
    #[command(after_help = STUBS_AFTER_HELP)]
    Stubs(StubsArgs),
    /// Write a starter operator that runs at once: handlers, a definition, an object, the set-up of editors
    #[command(after_help = INIT_AFTER_HELP)]
    Init(InitArgs),
    /// Explain what scripts can use: functions, options, the fields of `ctx`, settings
    #[command(after_help = DOCS_AFTER_HELP)]
    Docs(DocsArgs),
    /// Let operators pause until `kopf resume`, or until the time is over
    #[command(after_help = FREEZE_AFTER_HELP)]
    Freeze(FreezeArgs),
    /// Let operators go on that pause because of `kopf freeze`
    #[command(after_help = RESUME_AFTER_HELP)]
    Resume(ResumeArgs),
    /// Print a script that completes the options of this command in a shell
    #[command(after_help = COMPLETIONS_AFTER_HELP)]
    Completions(CompletionsArgs),
}

/// Where to put what is printed.
const COMPLETIONS_AFTER_HELP: &str = "\
For this session:    source <(kopf completions bash)
For all sessions:    kopf completions bash > ~/.local/share/bash-completion/completions/kopf
                     kopf completions zsh > \"${fpath[1]}/_kopf\"
                     kopf completions fish > ~/.config/fish/completions/kopf.fish";

const STUBS_AFTER_HELP: &str = "\
lua is for lua-language-server and EmmyLua (LuaCATS), luau for luau-lsp and luau-analyze, rhai for what reads the definitions that \
Rhai itself writes.

Types of custom resources are those of spec and status in the version that is stored; Rhai has no types for them.

Examples:
  kopf stubs lua > kopf.lua
  kopf stubs lua --from-crd crd.yaml --output .kopf";

const INIT_AFTER_HELP: &str = "\
Examples:
  kopf init my-operator
  kopf init my-operator --rhai --from-crd crd.yaml

It runs without a cluster:
  kopf dev my-operator/handlers.lua --crd my-operator/crd.yaml --apply my-operator/object.yaml";

const DOCS_AFTER_HELP: &str = "\
Examples:
  kopf docs                             everything there is, in short
  kopf docs on_update                   or kopf.on_update
  kopf docs ctx                         the fields of ctx, by kind of handler
  kopf docs settings.posting.level";

const CHECK_AFTER_HELP: &str = "\
The top level of each script runs, its handlers do not. What scripts print goes to stderr.

Exit code: 0 if all scripts can be used, 1 if not, 2 if the command line makes no sense. docs/check.md describes the JSON.

kopf.yaml and the environment variables of `kopf run` count here too.";

const TEST_AFTER_HELP: &str = "\
A test is kopf.test(\"what it shows\", FUNCTION) in a script whose name ends with _test. For each test a fresh server gets the \
definitions and the objects, the operator starts on it, and the function does with kube what users do. Whenever all wait, the clock \
goes on to what comes next. The log of the operator is shown if a test fails.

Exit code: 0 if all tests have passed, 1 if not, 2 if the command line makes no sense.

Examples:
  kopf test                             tests/*_test.lua and the like, of the operator in this directory
  kopf test my-operator --only shrinks  those with this word in their name
  kopf test tests/size_test.rhai --operator src/volumes.rhai --crd crds/";

const FREEZE_AFTER_HELP: &str = "\
Operators pause if their priority is lower, and if they meet at the same object: those of `kopf run -A` at the ClusterKopfPeering of \
that name, those of `kopf run -n` at the KopfPeering in their namespace.

Environment variables, used where the command line says nothing:
  KOPF_FREEZE_CLUSTERWIDE (-A), KOPF_FREEZE_NAMESPACES (-n; separated by spaces), KOPF_FREEZE_NAMESPACE (one more -n),
  KOPF_FREEZE_PEERING, KOPF_FREEZE_LIFETIME, KOPF_FREEZE_PRIORITY, KOPF_FREEZE_DEV, KOPF_FREEZE_ID, KOPF_FREEZE_MESSAGE;
  POD_ID (the default of --id); those of the log as for `kopf run`

Example:
  kopf freeze -A --peering default --lifetime 10m --message 'database upgrade'";

const RESUME_AFTER_HELP: &str = "\
Environment variables, used where the command line says nothing:
  KOPF_RESUME_CLUSTERWIDE (-A), KOPF_RESUME_NAMESPACES (-n; separated by spaces), KOPF_RESUME_NAMESPACE (one more -n),
  KOPF_RESUME_PEERING, KOPF_RESUME_ID; POD_ID (the default of --id); those of the log as for `kopf run`

Example:
  kopf resume -A --peering default";

/// The environment variables are not clap's: a list in a variable is split at spaces, one on the command line is not.
const RUN_AFTER_HELP: &str = "\
Without PATHS and ConfigMaps: ./handlers.lua, ./handlers.rhai or ./handlers/, the first that exists. When a script is saved, it \
takes effect at once; if it has a mistake, the scripts go on as they were before.

Options and settings can be kept in a file, kopf.yaml, in the current directory or beside the scripts: long options without \
their dashes, and settings by group:

  namespace: [myapp-*]
  log-format: json
  settings:
    queueing: {worker_limit: 20}

Environment variables, used where the command line says nothing:
  KOPF_RUN_CLUSTERWIDE (-A), KOPF_RUN_NAMESPACES (-n; separated by spaces), KOPF_RUN_NAMESPACE (one more -n),
  KOPF_RUN_STANDALONE, KOPF_RUN_PEERING (-P), KOPF_RUN_PRIORITY (-p), KOPF_RUN_DEV, KOPF_RUN_LEADER_ELECT, KOPF_RUN_LEASE,
  POD_ID (the name among other operators), KOPF_RUN_LIVENESS_ENDPOINT (-L), KOPF_RUN_HEALTH, KOPF_RUN_CONFIG,
  KOPF_RUN_NO_RELOAD, KOPF_RUN_RELOAD_POLL, KOPF_RUN_FROM_CONFIGMAP (separated by spaces), KOPF_RUN_FROM_CONFIGMAP_SELECTOR,
  KOPF_RUN_ALLOW_NET, KOPF_RUN_ALLOW_ENV, KOPF_RUN_ALLOW_READ (separated by commas or spaces),
  KOPF_RUN_VERBOSE, KOPF_RUN_DEBUG, KOPF_RUN_QUIET, KOPF_RUN_LOG_FORMAT, KOPF_RUN_LOG_PREFIX, KOPF_RUN_LOG_REFKEY,
  KOPF_RUN_COLOR (also NO_COLOR, CLICOLOR_FORCE),
  KOPF_SETTINGS_GROUP__NAME (one setting, such as KOPF_SETTINGS_QUEUEING__WORKER_LIMIT=20)

What is said nearer to the operator wins: defaults < kopf.yaml < environment < command line < start-up handlers.

Examples:
  kopf run handlers.lua                       the whole cluster, as the current kubectl context or the pod's account
  kopf run -n 'myapp-*' handlers/ --verbose   some namespaces; what is decided and why is logged
  kopf run -A --set execution.default_backoff=10s handlers.rhai";

/// What the options have no room for.
const DEV_AFTER_HELP: &str = "\
The server is in this process: its objects are gone with it, unless --data keeps them. kubectl gets in with the KUBECONFIG \
that is printed at the start. Kinds that handlers name and nothing defines are made up: any object fits them.

Scripts, namespaces and the log are chosen as for `kopf run`, also by its environment variables; without -n, all namespaces \
are served.";

/// Help with words that are no Markdown.
const LIVENESS_HELP: &str =
    "Serve the results of probe handlers at this address, such as http://0.0.0.0:8080/healthz";
const OUTPUT_HELP: &str = "What to print: text for people, json for programs; default: text";
const LANGUAGE_HELP: &str = "The language of the definitions: lua, luau or rhai";
const SET_HELP: &str = "Change a setting, such as queueing.worker_limit=20; repeatable";
const COLOR_HELP: &str =
    "When to use colours; default: auto, which is on a terminal unless NO_COLOR is set";

const CONFIGMAP_HELP: &str =
    "Take the scripts in this ConfigMap through the API, instead of or beside PATHS; repeatable";
const CONFIGMAP_SELECTOR_HELP: &str = "The same for all ConfigMaps with these labels in the namespace of the operator, such as app=scripts; repeatable";

const ALLOW_NET_HELP: &str = "Let scripts connect to these hosts, such as api.example.com:443,*.example.org:443,[::1]:*; repeatable";
const ALLOW_ENV_HELP: &str =
    "Let scripts read these variables of the environment, such as MYAPP_TOKEN,PG*; repeatable";
const ALLOW_READ_HELP: &str =
    "Let scripts read this file, or the files in this directory, such as /etc/myapp; repeatable";

/// `kopf run`
#[derive(Debug, Default, Args)]
pub struct RunArgs {
    /// Script files (.lua, .rhai), or directories with such files
    #[arg(value_name = "PATHS")]
    pub paths: Vec<PathBuf>,
    /// Serve all namespaces and the cluster-scoped resources
    #[arg(short = 'A', long, help_heading = "What to serve")]
    pub all_namespaces: bool,
    /// Serve the namespaces of this name or glob pattern, such as 'myapp-*, !*-pr-*'; repeatable
    #[arg(short, long = "namespace", value_name = "PATTERN", action = ArgAction::Append, help_heading = "What to serve")]
    pub namespaces: Vec<String>,
    /// Ignore other operators: neither pause for them nor tell them of this one
    #[arg(long, help_heading = "Other operators")]
    pub standalone: bool,
    /// Meet other operators at the peering object of this name, and stay paused until it exists
    #[arg(short = 'P', long, value_name = "NAME", help_heading = "Other operators")]
    pub peering: Option<String>,
    /// Operators of a lower priority pause while this one runs; default: 0
    #[arg(
        short,
        long,
        value_name = "NUMBER",
        allow_negative_numbers = true,
        help_heading = "Other operators"
    )]
    pub priority: Option<i64>,
    /// A developer's operator beside the real one: --priority 666
    #[arg(long, help_heading = "Other operators")]
    pub dev: bool,
    /// Elect a leader among the replicas of this operator: it acts, the others stand by
    #[arg(long, help_heading = "Replicas")]
    pub leader_elect: bool,
    /// The name of the Lease for the election; operators in one namespace need one each; default: kopf
    #[arg(long, value_name = "NAME", help_heading = "Replicas")]
    pub lease: Option<String>,
    /// Keep the scripts as they are at the start, whatever happens to their files
    #[arg(long, help_heading = "The scripts")]
    pub no_reload: bool,
    /// Look for changes so often too, for file systems that do not tell them; default: 2s there, else the system tells
    #[arg(long, value_name = "SECONDS", help_heading = "The scripts")]
    pub reload_poll: Option<String>,
    /// Where scripts come from too
    #[arg(
        long = "from-configmap",
        help = CONFIGMAP_HELP,
        value_name = "NAMESPACE/NAME",
        action = ArgAction::Append,
        help_heading = "The scripts"
    )]
    pub configmaps: Vec<String>,
    /// Where scripts come from too
    #[arg(
        long = "from-configmap-selector",
        help = CONFIGMAP_SELECTOR_HELP,
        value_name = "LABELS",
        action = ArgAction::Append,
        help_heading = "The scripts"
    )]
    pub configmap_selectors: Vec<String>,
    /// What scripts may reach.
    #[command(flatten)]
    pub grants: GrantArgs,
    /// Where the results of probe handlers are served
    #[arg(short = 'L', long, value_name = "URL", help = LIVENESS_HELP, help_heading = "How to run")]
    pub liveness: Option<String>,
    /// Serve /healthz, /livez, /readyz and /metrics at this address, such as 0.0.0.0:8081
    #[arg(long, value_name = "HOST:PORT", help_heading = "How to run")]
    pub health: Option<String>,
    /// Read options and settings from this file; default: kopf.yaml here or beside the scripts, if there is one
    #[arg(long, value_name = "FILE", help_heading = "How to run")]
    pub config: Option<PathBuf>,
    /// Settings to change
    #[arg(long = "set", help = SET_HELP, value_name = "GROUP.NAME=VALUE", action = ArgAction::Append, help_heading = "How to run")]
    pub settings: Vec<String>,
    /// Kopf's option for modules of Python: scripts are named as PATHS
    #[arg(short, long = "module", value_name = "NAME", hide = true, action = ArgAction::Append)]
    pub modules: Vec<String>,
    /// How to log.
    #[command(flatten)]
    pub log: LogArgs,
}

/// The grants.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "What scripts may reach")]
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

/// `kopf dev`
#[derive(Debug, Default, Args)]
pub struct DevArgs {
    /// What `kopf run` has too.
    #[command(flatten)]
    pub run: RunArgs,
    /// Create the resource definitions in this YAML or JSON file, or in the files of this directory; repeatable
    #[arg(long = "crd", value_name = "FILE", action = ArgAction::Append)]
    pub definitions: Vec<PathBuf>,
    /// Create the objects in this YAML or JSON file, or in the files of this directory, again whenever it changes; repeatable
    #[arg(long = "apply", value_name = "FILE", action = ArgAction::Append)]
    pub objects: Vec<PathBuf>,
    /// Listen on this port of 127.0.0.1; default: a free one
    #[arg(long, value_name = "NUMBER", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Keep the objects in this file: loaded at the start, saved after changes
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// Write the kubeconfig to this file; default: a file in the runtime directory of the user
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Leave pods, deployments, owned objects and the like as they are: nothing brings them to life or cleans them up
    #[arg(long)]
    pub no_controllers: bool,
}

/// What scripts get in a run, and so without a cluster.
#[derive(Clone, Debug, Default, Args)]
pub struct TermArgs {
    /// Read options and settings from this file; default: kopf.yaml here or beside the scripts, if there is one
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Settings to change
    #[arg(long = "set", help = SET_HELP, value_name = "GROUP.NAME=VALUE", action = ArgAction::Append)]
    pub settings: Vec<String>,
    /// What scripts may reach.
    #[command(flatten)]
    pub grants: GrantArgs,
}

impl TermArgs {
    /// The same for a run of these scripts.
    pub fn of_run(self, paths: Vec<PathBuf>) -> RunArgs {
        let TermArgs { config, settings, grants } = self;
        RunArgs { paths, grants, config, settings, ..RunArgs::default() }
    }
}

/// `kopf check`
#[derive(Debug, Default, Args)]
pub struct CheckArgs {
    /// Script files (.lua, .rhai), or directories with such files
    #[arg(value_name = "PATHS")]
    pub paths: Vec<PathBuf>,
    /// What to print
    #[arg(short, long, help = OUTPUT_HELP, value_enum, ignore_case = true, value_name = "FORMAT", default_value = "text", hide_default_value = true, hide_possible_values = true)]
    pub output: OutputFormat,
    /// As in a run.
    #[command(flatten)]
    pub terms: TermArgs,
}

/// `kopf test`
#[derive(Clone, Debug, Default, Args)]
pub struct TestArgs {
    /// Files of tests, or directories of operators, which have them beside their scripts or in tests/; default: this directory
    #[arg(value_name = "PATHS")]
    pub paths: Vec<PathBuf>,
    /// The scripts of the operator; default: as for kopf run, in the directory of the operator; repeatable
    #[arg(long, value_name = "PATH", action = ArgAction::Append)]
    pub operator: Vec<PathBuf>,
    /// Create the resource definitions in this file, or in this directory; default: crd.yaml of the operator; repeatable
    #[arg(long = "crd", value_name = "FILE", action = ArgAction::Append)]
    pub definitions: Vec<PathBuf>,
    /// Create the objects in this file, or in the files of this directory, before each test; repeatable
    #[arg(long = "apply", value_name = "FILE", action = ArgAction::Append)]
    pub objects: Vec<PathBuf>,
    /// Run only the tests with this text in their name
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// Show the log of each test, with what the operator decides and does
    #[arg(short, long)]
    pub verbose: bool,
    /// As in a run.
    #[command(flatten)]
    pub terms: TermArgs,
}

/// `kopf stubs`
#[derive(Debug, Args)]
pub struct StubsArgs {
    /// For which editors
    #[arg(value_enum, value_name = "LANGUAGE", help = LANGUAGE_HELP, hide_possible_values = true)]
    pub language: StubsLanguage,
    /// Write into this directory; default: print
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Also the types of the custom resources that this file defines; repeatable
    #[arg(long, value_name = "FILE", action = ArgAction::Append)]
    pub from_crd: Vec<PathBuf>,
}

/// `kopf init`
#[derive(Debug, Args)]
pub struct InitArgs {
    /// The directory to write to; it is made if need be
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Handlers in Lua; the default
    #[arg(long, conflicts_with = "rhai")]
    pub lua: bool,
    /// Handlers in Rhai
    #[arg(long)]
    pub rhai: bool,
    /// An operator of the custom resource that this file defines
    #[arg(long, value_name = "FILE")]
    pub from_crd: Option<PathBuf>,
    /// Overwrite files that are there already
    #[arg(long)]
    pub force: bool,
}

/// `kopf docs`
#[derive(Debug, Args)]
pub struct DocsArgs {
    /// A name, such as `on_update`, `kopf.adopt`, `ctx.spec`, `logger.info` or `settings.posting.level`
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Print Markdown
    #[arg(long)]
    pub markdown: bool,
}

/// A language of definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StubsLanguage {
    /// `LuaCATS`
    Lua,
    /// Luau
    Luau,
    /// Rhai
    Rhai,
}

/// What `kopf check` prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// `kopf freeze`
#[derive(Debug, Default, Args)]
pub struct FreezeArgs {
    /// Where.
    #[command(flatten)]
    pub meeting: MeetingArgs,
    /// The time after which operators go on by themselves: seconds, or with a unit such as 10m (required)
    #[arg(short = 't', long, value_name = "DURATION")]
    pub lifetime: Option<String>,
    /// Operators of a lower priority pause; default: 100
    #[arg(short, long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub priority: Option<i64>,
    /// The same as --priority 666
    #[arg(long)]
    pub dev: bool,
    /// Why; it is shown in the logs of the operators that pause
    #[arg(short, long, value_name = "TEXT")]
    pub message: Option<String>,
    /// How to log.
    #[command(flatten)]
    pub log: LogArgs,
}

/// `kopf resume`
#[derive(Debug, Default, Args)]
pub struct ResumeArgs {
    /// Where.
    #[command(flatten)]
    pub meeting: MeetingArgs,
    /// How to log.
    #[command(flatten)]
    pub log: LogArgs,
}

/// Which peering objects, and as whom.
#[derive(Debug, Default, Args)]
pub struct MeetingArgs {
    /// The name of the peering object (required)
    #[arg(short = 'P', long, value_name = "NAME")]
    pub peering: Option<String>,
    /// The operators of the whole cluster: the ClusterKopfPeering
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// The operators of the namespaces of this name or glob pattern: the KopfPeering in each; repeatable
    #[arg(short, long = "namespace", value_name = "PATTERN", action = ArgAction::Append)]
    pub namespaces: Vec<String>,
    /// The name of the record; default: user@host
    #[arg(short, long, value_name = "TEXT")]
    pub id: Option<String>,
}

/// `kopf completions`
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// The logging options.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "The log")]
pub struct LogArgs {
    /// Log what the operator decides and does
    #[arg(short, long)]
    pub verbose: bool,
    /// As --verbose, and also what the HTTP and TLS libraries log
    #[arg(short, long)]
    pub debug: bool,
    /// Log warnings and errors only
    #[arg(short, long)]
    pub quiet: bool,
    /// The format of log lines; default: full
    #[arg(long, value_enum, ignore_case = true, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    /// The key of the object in JSON logs; default: object
    #[arg(long, value_name = "TEXT")]
    pub log_refkey: Option<String>,
    /// Put [namespace/name] before messages about an object; default: on, except for json
    #[arg(long, overrides_with = "no_log_prefix")]
    pub log_prefix: bool,
    /// Do not put [namespace/name] before messages about an object
    #[arg(long)]
    pub no_log_prefix: bool,
    /// When to use colours
    #[arg(long, help = COLOR_HELP, value_enum, ignore_case = true, value_name = "WHEN")]
    pub color: Option<ColorWhen>,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorWhen {
    /// On a terminal
    #[default]
    Auto,
    /// Always, also in files and pipes
    Always,
    /// Never
    Never,
}

/// How a log line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// The message alone
    Plain,
    /// Time, logger, level, message
    #[default]
    Full,
    /// One JSON object per line
    Json,
}
