//! The command line as typed. `options/` resolves it.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use super::shared_args::ContentArgs;
use super::shared_args::SET_HELP;
pub use super::shared_args::{ClusterArgs, GrantArgs, InstallArgs, OutputFormat, TermArgs};

use super::after_help::{
    CHECK_AFTER_HELP, COMPLETIONS_AFTER_HELP, DEV_AFTER_HELP, DOCS_AFTER_HELP, FREEZE_AFTER_HELP,
    INIT_AFTER_HELP, MANIFESTS_AFTER_HELP, RBAC_GENERATE_AFTER_HELP, RBAC_VERIFY_AFTER_HELP,
    RESUME_AFTER_HELP, RUN_AFTER_HELP, STUBS_AFTER_HELP, TEST_AFTER_HELP,
};

pub use super::check::args::CheckArgs;
use super::deploy::args::{DEPLOY_AFTER_HELP, DeployArgs, UNDEPLOY_AFTER_HELP, UndeployArgs};
use super::manifests::FormArgs;
use super::objects::args::{
    CRDS_AFTER_HELP, CrdsArgs, LOGS_AFTER_HELP, LogsArgs, RELEASE_AFTER_HELP, RETRY_AFTER_HELP,
    ReleaseArgs, RetryArgs, STATUS_AFTER_HELP, SUSPEND_AFTER_HELP, StatusArgs, SuspendArgs,
};

use super::plan::args::{PLAN_AFTER_HELP, PlanArgs};

/// Runs Kubernetes operators written as Lua or Rhai scripts.
#[derive(Debug, Parser)]
#[command(name = "kopf", version, about, arg_required_else_help = true)]
pub struct LowArgs {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Load scripts and run them as an operator until a signal
    #[command(after_help = RUN_AFTER_HELP)]
    Run(RunCommand),
    /// Run an operator with a local Kubernetes API server: no cluster needed
    #[command(after_help = DEV_AFTER_HELP)]
    Dev(DevArgs),
    /// Load scripts without a cluster, list their handlers and report every error
    #[command(after_help = CHECK_AFTER_HELP)]
    Check(CheckArgs),
    /// Run the tests of an operator, each with its own API server and a virtual clock: no cluster needed
    #[command(after_help = TEST_AFTER_HELP)]
    Test(TestArgs),
    /// Show what an operator would change in a cluster, without changing it
    #[command(after_help = PLAN_AFTER_HELP)]
    Plan(PlanArgs),
    /// Write type definitions, with which editors complete, document and check scripts
    #[command(after_help = STUBS_AFTER_HELP)]
    Stubs(StubsArgs),
    /// Print the manifests of an operator: CRDs, service account, least permissions, scripts, Deployment
    #[command(after_help = MANIFESTS_AFTER_HELP)]
    Manifests(ManifestsArgs),
    /// Install or update an operator in a cluster: apply the output of `kopf manifests`
    #[command(after_help = DEPLOY_AFTER_HELP)]
    Deploy(DeployArgs),
    /// Stop an operator in a cluster, release its objects, and delete the objects that `kopf deploy` has created
    #[command(after_help = UNDEPLOY_AFTER_HELP)]
    Undeploy(UndeployArgs),
    /// Print the permissions that an operator needs, or compare them with those that it has
    #[command(subcommand)]
    Rbac(RbacCommand),
    /// Create a new operator: handlers, tests, a CRD, an object, editor settings
    #[command(after_help = INIT_AFTER_HELP)]
    Init(InitArgs),
    /// Show the reference of functions, options, fields of `ctx`, and settings
    #[command(after_help = DOCS_AFTER_HELP)]
    Docs(DocsArgs),
    /// Run a language server for editors on stdin and stdout: errors, completions, documentation and definitions
    Lsp,
    /// Pause operators until `kopf resume`, or until a duration has passed
    #[command(after_help = FREEZE_AFTER_HELP)]
    Freeze(FreezeArgs),
    /// Resume operators paused by `kopf freeze`
    #[command(after_help = RESUME_AFTER_HELP)]
    Resume(ResumeArgs),
    /// List the handlers of objects that have failed or wait for a retry
    #[command(after_help = STATUS_AFTER_HELP)]
    Status(StatusArgs),
    /// Retry handlers that have failed permanently or wait for a retry
    #[command(after_help = RETRY_AFTER_HELP)]
    Retry(RetryArgs),
    /// Call no handlers for an object until `kopf unsuspend`
    #[command(after_help = SUSPEND_AFTER_HELP)]
    Suspend(SuspendArgs),
    /// Call handlers again for an object that `kopf suspend` has suspended
    #[command(after_help = SUSPEND_AFTER_HELP)]
    Unsuspend(SuspendArgs),
    /// Remove the finalizer and the annotations of an operator that is gone
    #[command(after_help = RELEASE_AFTER_HELP)]
    Release(ReleaseArgs),
    /// Print the log of an operator that runs in a cluster
    #[command(after_help = LOGS_AFTER_HELP)]
    Logs(LogsArgs),
    /// Print the CRDs that operators use, such as those of peering
    #[command(after_help = CRDS_AFTER_HELP)]
    Crds(CrdsArgs),
    /// Print the version
    Version,
    /// Print a shell completion script
    #[command(after_help = COMPLETIONS_AFTER_HELP)]
    Completions(CompletionsArgs),
    /// Write a man page per command to a directory, for packages
    ManPages(ManPagesArgs),
}

/// Help texts that rustdoc would interpret as Markdown.
const LIVENESS_HELP: &str =
    "Serve the results of probe handlers at this address, such as http://0.0.0.0:8080/healthz";
const LANGUAGE_HELP: &str = "The language of the definitions: lua, luau or rhai";
const COLOR_HELP: &str =
    "When to use colors; default: auto (on a terminal, unless NO_COLOR is set)";

const CONFIGMAP_HELP: &str =
    "Read scripts from this ConfigMap through the API, in addition to PATHS if given; repeatable";
const GUARD_HELP: &str = "Reject edits of these ConfigMaps whose scripts do not load, with a webhook; needs --webhook-service or --webhook-url";
const CONFIGMAP_SELECTOR_HELP: &str = "Read scripts from all ConfigMaps with these labels in the operator's namespace, such as app=scripts; repeatable";

/// `kopf run`
#[derive(Debug, Default, Args)]
pub struct RunCommand {
    /// The options that `kopf dev` shares.
    #[command(flatten)]
    pub run: RunArgs,
    /// The cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// The options of `kopf run` and `kopf dev`
#[derive(Debug, Default, Args)]
pub struct RunArgs {
    /// Script files (.lua, .rhai), or directories of scripts
    #[arg(value_name = "PATHS")]
    pub paths: Vec<PathBuf>,
    /// Serve all namespaces and cluster-scoped resources
    #[arg(short = 'A', long, help_heading = "Namespaces")]
    pub all_namespaces: bool,
    /// Serve the namespaces with this name or glob pattern, such as 'myapp-*, !*-pr-*'; repeatable
    #[arg(short, long = "namespace", value_name = "PATTERN", action = ArgAction::Append, help_heading = "Namespaces")]
    pub namespaces: Vec<String>,
    /// Disable peering: ignore other operators, and do not announce this one
    #[arg(long, help_heading = "Peering")]
    pub standalone: bool,
    /// Use the peering object with this name, and pause until it exists
    #[arg(short = 'P', long, value_name = "NAME", help_heading = "Peering")]
    pub peering: Option<String>,
    /// Priority in peering: operators with a lower one pause; default: 0
    #[arg(
        short,
        long,
        value_name = "NUMBER",
        allow_negative_numbers = true,
        help_heading = "Peering"
    )]
    pub priority: Option<i64>,
    /// Same as --priority 666, to run a local operator while the deployed one pauses
    #[arg(long, help_heading = "Peering")]
    pub dev: bool,
    /// Elect a leader among the replicas of this operator; the others are standbys
    #[arg(long, help_heading = "Replicas")]
    pub leader_elect: bool,
    /// Name of the Lease; operators in the same namespace need different names; default: kopf
    #[arg(long, value_name = "NAME", help_heading = "Replicas")]
    pub lease: Option<String>,
    /// Serve admission webhooks behind this service of the cluster; certificates and configurations are managed
    #[arg(long, value_name = "NAMESPACE/NAME[:PORT]", help_heading = "Webhooks")]
    pub webhook_service: Option<String>,
    /// Serve admission webhooks under this URL, such as <https://ops.example.com:9443>, or for a local cluster: auto, docker-desktop,
    /// k3d, kind, minikube; configurations are managed
    #[arg(long, value_name = "URL", help_heading = "Webhooks")]
    pub webhook_url: Option<String>,
    /// Port that the webhook server listens on; default: 9443
    #[arg(long, value_name = "PORT", help_heading = "Webhooks")]
    pub webhook_port: Option<u16>,
    /// Disable hot reload: changes of scripts take effect after a restart
    #[arg(long, help_heading = "Scripts")]
    pub no_reload: bool,
    /// Also poll for changes at this interval (for file systems without notifications); default: 2s on these, otherwise off
    #[arg(long, value_name = "SECONDS", help_heading = "Scripts")]
    pub reload_poll: Option<String>,
    /// `ConfigMaps` with scripts
    #[arg(
        long = "from-configmap",
        help = CONFIGMAP_HELP,
        value_name = "NAMESPACE/NAME",
        action = ArgAction::Append,
        help_heading = "Scripts"
    )]
    pub configmaps: Vec<String>,
    /// `ConfigMaps` with scripts
    #[arg(
        long = "from-configmap-selector",
        help = CONFIGMAP_SELECTOR_HELP,
        value_name = "LABELS",
        action = ArgAction::Append,
        help_heading = "Scripts"
    )]
    pub configmap_selectors: Vec<String>,
    /// Guards the `ConfigMaps` with scripts
    #[arg(long, help = GUARD_HELP, help_heading = "Scripts")]
    pub guard_configmaps: bool,
    /// The permissions of scripts.
    #[command(flatten)]
    pub grants: GrantArgs,
    /// Where the results of probe handlers are served
    #[arg(short = 'L', long, value_name = "URL", help = LIVENESS_HELP, help_heading = "Operation")]
    pub liveness: Option<String>,
    /// Serve /healthz, /livez, /readyz and /metrics at this address, such as 0.0.0.0:8081
    #[arg(long, value_name = "HOST:PORT", help_heading = "Operation")]
    pub health: Option<String>,
    /// Read options and settings from this file; default: kopf.yaml in the current directory or next to the scripts
    #[arg(long, value_name = "FILE", help_heading = "Operation")]
    pub config: Option<PathBuf>,
    /// Settings
    #[arg(long = "set", help = SET_HELP, value_name = "GROUP.NAME=VALUE", action = ArgAction::Append, help_heading = "Operation")]
    pub settings: Vec<String>,
    /// Kopf's option for Python modules; rejected with a hint
    #[arg(short, long = "module", value_name = "NAME", hide = true, action = ArgAction::Append)]
    pub modules: Vec<String>,
    /// How to log.
    #[command(flatten)]
    pub log: LogArgs,
}

/// `kopf dev`
#[derive(Debug, Default, Args)]
pub struct DevArgs {
    /// The options of `kopf run`.
    #[command(flatten)]
    pub run: RunArgs,
    /// Create the CRDs in this YAML or JSON file, or in the files of this directory; default: crd.yaml next to the scripts; repeatable
    #[arg(long = "crd", value_name = "FILE", action = ArgAction::Append)]
    pub definitions: Vec<PathBuf>,
    /// Apply the objects in this YAML or JSON file or directory, again after each change; default: object.yaml next to the scripts; repeatable
    #[arg(long = "apply", value_name = "FILE", action = ArgAction::Append)]
    pub objects: Vec<PathBuf>,
    /// Listen on this port of 127.0.0.1; default: a free port
    #[arg(long, value_name = "NUMBER", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Persist the objects in this file: loaded at the start, saved after changes
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// Write the kubeconfig to this file; default: a file in the runtime directory of the user
    #[arg(long = "write-kubeconfig", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The option of `kopf run`; rejected with a hint
    #[arg(long = "kubeconfig", value_name = "FILE", hide = true)]
    pub foreign_kubeconfig: Option<PathBuf>,
    /// Disable the controllers of pods, deployments, owned objects and namespaces
    #[arg(long)]
    pub no_controllers: bool,
    /// The permissions of the operator.
    #[command(flatten)]
    pub access: AccessArgs,
}

/// The permissions of the operator on the local server.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Permissions of the operator")]
pub struct AccessArgs {
    /// Enable RBAC, and run the operator as this service account: system:serviceaccount:NAMESPACE:NAME
    #[arg(long = "as", value_name = "USER")]
    pub user: Option<String>,
    /// Enable RBAC, with the service accounts, roles and bindings in this file or directory; repeatable
    #[arg(long = "rbac", value_name = "FILE", action = ArgAction::Append)]
    pub roles: Vec<PathBuf>,
}

impl TermArgs {
    /// Returns the arguments of a run of these scripts.
    pub fn of_run(self, paths: Vec<PathBuf>) -> RunArgs {
        let TermArgs { config, settings, grants } = self;
        RunArgs { paths, grants, config, settings, ..RunArgs::default() }
    }
}

/// `kopf rbac`
#[derive(Debug, Subcommand)]
pub enum RbacCommand {
    /// Print the least roles for an operator: what its handlers, its options and its calls of kube.* need
    #[command(after_help = RBAC_GENERATE_AFTER_HELP)]
    Generate(InstallArgs),
    /// Compare the permissions that an operator needs with those of manifests or of a cluster
    #[command(after_help = RBAC_VERIFY_AFTER_HELP)]
    Verify(RbacVerifyArgs),
}

impl InstallArgs {
    /// Returns the arguments of a run of this operator.
    pub fn to_run(&self) -> RunArgs {
        RunArgs {
            all_namespaces: self.all_namespaces || self.served.is_empty(),
            namespaces: self.served.clone(),
            ..self.terms.clone().of_run(self.paths.clone())
        }
    }
}

impl PlanArgs {
    /// Returns the arguments of a run of this operator.
    pub fn to_run(&self) -> RunArgs {
        RunArgs {
            all_namespaces: self.all_namespaces,
            namespaces: self.namespaces.clone(),
            ..self.terms.clone().of_run(self.paths.clone())
        }
    }
}

/// `kopf rbac verify`
#[derive(Debug, Default, Args)]
pub struct RbacVerifyArgs {
    /// The operator.
    #[command(flatten)]
    pub install: InstallArgs,
    /// Compare with the roles and bindings in this file or directory; repeatable
    #[arg(short, long = "file", value_name = "FILE", action = ArgAction::Append, required_unless_present = "is_live", conflicts_with = "is_live")]
    pub files: Vec<PathBuf>,
    /// Ask the cluster what the current user may do
    #[arg(long = "cluster")]
    pub is_live: bool,
    /// The cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// `kopf manifests`
#[derive(Debug, Default, Args)]
pub struct ManifestsArgs {
    /// What they contain.
    #[command(flatten)]
    pub content: ContentArgs,
    /// Their form.
    #[command(flatten)]
    pub form: FormArgs,
}

/// `kopf test`
#[derive(Clone, Debug, Default, Args)]
pub struct TestArgs {
    /// Test files, or directories of operators with tests next to the scripts or in tests/; default: the current directory
    #[arg(value_name = "PATHS")]
    pub paths: Vec<PathBuf>,
    /// Scripts of the operator; default: as for kopf run, in the directory of the operator; repeatable
    #[arg(long, value_name = "PATH", action = ArgAction::Append)]
    pub operator: Vec<PathBuf>,
    /// Create the CRDs in this file or directory before each test; default: crd.yaml of the operator; repeatable
    #[arg(long = "crd", value_name = "FILE", action = ArgAction::Append)]
    pub definitions: Vec<PathBuf>,
    /// Create the objects in this file or directory before each test; repeatable
    #[arg(long = "apply", value_name = "FILE", action = ArgAction::Append)]
    pub objects: Vec<PathBuf>,
    /// Run only the tests whose names contain this string
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// Show the verbose operator log of each test
    #[arg(short, long)]
    pub verbose: bool,
    /// Write the permissions that the operator has used in the tests to this file, as roles
    #[arg(long, value_name = "FILE")]
    pub record_rbac: Option<PathBuf>,
    /// Settings and permissions.
    #[command(flatten)]
    pub terms: TermArgs,
    /// The permissions of the operator.
    #[command(flatten)]
    pub access: AccessArgs,
}

/// `kopf stubs`
#[derive(Debug, Args)]
pub struct StubsArgs {
    /// Language of the definitions
    #[arg(value_enum, value_name = "LANGUAGE", help = LANGUAGE_HELP, hide_possible_values = true)]
    pub language: StubsLanguage,
    /// Write to this directory; default: print
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Add types of the custom resources in this CRD file; repeatable
    #[arg(long, value_name = "FILE", action = ArgAction::Append)]
    pub from_crd: Vec<PathBuf>,
}

/// `kopf init`
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Directory to write to; created if it does not exist
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Write handlers in Lua (default)
    #[arg(long, conflicts_with = "rhai")]
    pub lua: bool,
    /// Write handlers in Rhai
    #[arg(long)]
    pub rhai: bool,
    /// Write an operator for the custom resource in this CRD file
    #[arg(long, value_name = "FILE")]
    pub from_crd: Option<PathBuf>,
    /// Overwrite existing files
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

/// `kopf freeze`
#[derive(Debug, Default, Args)]
pub struct FreezeArgs {
    /// Where.
    #[command(flatten)]
    pub meeting: MeetingArgs,
    /// Duration of the pause: seconds, or with a unit such as 10m (required)
    #[arg(short = 't', long, value_name = "DURATION")]
    pub lifetime: Option<String>,
    /// Pause operators with a lower priority; default: 100
    #[arg(short, long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub priority: Option<i64>,
    /// Same as --priority 666
    #[arg(long)]
    pub dev: bool,
    /// Reason; shown in the logs of the paused operators
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

/// The peering objects and the identity.
#[derive(Debug, Default, Args)]
pub struct MeetingArgs {
    /// Name of the peering object (required)
    #[arg(short = 'P', long, value_name = "NAME")]
    pub peering: Option<String>,
    /// Use the ClusterKopfPeering: operators of the whole cluster
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// Use the KopfPeering in the namespaces with this name or glob pattern; repeatable
    #[arg(short, long = "namespace", value_name = "PATTERN", action = ArgAction::Append)]
    pub namespaces: Vec<String>,
    /// Identity in the peering object; default: user@host
    #[arg(short, long, value_name = "TEXT")]
    pub id: Option<String>,
    /// The cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// `kopf completions`
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// `kopf man-pages`
#[derive(Debug, Args)]
pub struct ManPagesArgs {
    /// The directory; it must exist
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// The logging options.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Logging")]
pub struct LogArgs {
    /// Log what the operator decides and why
    #[arg(short, long)]
    pub verbose: bool,
    /// Same as --verbose, and include the logs of the HTTP and TLS libraries
    #[arg(short, long)]
    pub debug: bool,
    /// Log only warnings and errors
    #[arg(short, long)]
    pub quiet: bool,
    /// Format of log lines; default: full
    #[arg(long, value_enum, ignore_case = true, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    /// Key of the object in JSON logs; default: object
    #[arg(long, value_name = "TEXT")]
    pub log_refkey: Option<String>,
    /// Prefix messages about an object with [namespace/name]; default: on, except for json
    #[arg(long, overrides_with = "no_log_prefix")]
    pub log_prefix: bool,
    /// Do not prefix messages about an object with [namespace/name]
    #[arg(long)]
    pub no_log_prefix: bool,
    /// When to use colors
    #[arg(long, help = COLOR_HELP, value_enum, ignore_case = true, value_name = "WHEN")]
    pub color: Option<ColorWhen>,
}

/// When to use colors.
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

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// The message alone
    Plain,
    /// Time, logger, level, message
    #[default]
    Full,
    /// As full, with the logger names of the Python framework Kopf
    Kopf,
    /// One JSON object per line
    Json,
}
