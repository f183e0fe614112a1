//! The texts that `--help` prints after the options: defaults, variables, examples.

/// The help of `kopf completions`: where to install the script.
pub(super) const COMPLETIONS_AFTER_HELP: &str = "\
Commands, options and files are completed. Names of contexts, namespaces, kinds and objects are not: each Tab would send \
requests to a cluster, and such a completion script would only work with the version that printed it, so you could not install \
it in a file.

For this session:    source <(kopf completions bash)
For all sessions:    kopf completions bash > ~/.local/share/bash-completion/completions/kopf
                     kopf completions zsh > \"${fpath[1]}/_kopf\"
                     kopf completions fish > ~/.config/fish/completions/kopf.fish";

pub(super) const STUBS_AFTER_HELP: &str = "\
lua is for lua-language-server and EmmyLua (LuaCATS), luau for luau-lsp and luau-analyze, rhai for tools that read the definition \
format of Rhai.

Types of custom resources describe the spec and status of the storage version. They are not available for Rhai.

Examples:
  kopf stubs lua > kopf.lua
  kopf stubs lua --from-crd crd.yaml --output .kopf";

pub(super) const INIT_AFTER_HELP: &str = "\
Examples:
  kopf init my-operator
  kopf init my-operator --rhai --from-crd crd.yaml

Run it without a cluster:
  kopf dev my-operator/handlers.lua --crd my-operator/crd.yaml --apply my-operator/object.yaml";

pub(super) const DOCS_AFTER_HELP: &str = "\
Examples:
  kopf docs                             an overview of everything
  kopf docs on_update                   or kopf.on_update
  kopf docs ctx                         the fields of ctx, by kind of handler
  kopf docs settings.posting.level";

pub(super) const CHECK_AFTER_HELP: &str = "\
Runs the top level of each script, but not its handlers. Output of scripts is printed to stderr.

Exit code: 0 if all scripts are valid, 1 if not, 2 if the command line is invalid. docs/check.md describes the JSON.

kopf.yaml and the environment variables of `kopf run` apply here, too.";

pub(super) const TEST_AFTER_HELP: &str = "\
A test is kopf.test(\"NAME\", FUNCTION) in a script whose name ends with _test. For each test, a new server with the CRDs and the \
objects is started, then the operator; the function acts as a user through kube. When all tasks wait, the virtual clock jumps to \
the next event. If a test fails, the log of the operator is shown.

Exit code: 0 if all tests have passed, 1 if not, 2 if the command line is invalid.

Examples:
  kopf test                             the tests of the operator in this directory
  kopf test my-operator --only shrinks  only tests whose names contain this word
  kopf test tests/size_test.rhai --operator src/volumes.rhai --crd crds/";

pub(super) const FREEZE_AFTER_HELP: &str = "\
Operators pause if their priority is lower and they use the same peering object: operators of `kopf run -A` use the \
ClusterKopfPeering with this name, operators of `kopf run -n` use the KopfPeering in their namespace.

Environment variables; options have precedence:
  KOPF_FREEZE_CLUSTERWIDE (-A), KOPF_FREEZE_NAMESPACES (-n; separated by spaces), KOPF_FREEZE_NAMESPACE (one more -n),
  KOPF_FREEZE_PEERING, KOPF_FREEZE_LIFETIME, KOPF_FREEZE_PRIORITY, KOPF_FREEZE_DEV, KOPF_FREEZE_ID, KOPF_FREEZE_MESSAGE;
  POD_ID (the default of --id); those of the log as for `kopf run`

Example:
  kopf freeze -A --peering default --lifetime 10m --message 'database upgrade'";

pub(super) const RESUME_AFTER_HELP: &str = "\
Environment variables; options have precedence:
  KOPF_RESUME_CLUSTERWIDE (-A), KOPF_RESUME_NAMESPACES (-n; separated by spaces), KOPF_RESUME_NAMESPACE (one more -n),
  KOPF_RESUME_PEERING, KOPF_RESUME_ID; POD_ID (the default of --id); those of the log as for `kopf run`

Example:
  kopf resume -A --peering default";

/// Environment variables are not handled by clap: a list in a variable is split at spaces, one on the command line is not.
pub(super) const RUN_AFTER_HELP: &str = "\
Default without PATHS and ConfigMaps: the first that exists of ./handlers.lua, ./handlers.rhai and ./handlers/. Saved scripts are \
hot-reloaded; if a script has an error, the previous version keeps running.

Options and settings can also be set in a file, kopf.yaml, in the current directory or next to the scripts: long options without \
dashes, and settings by group:

  namespace: [myapp-*]
  log-format: json
  settings:
    queueing: {worker_limit: 20}

Environment variables; options have precedence:
  KOPF_RUN_CLUSTERWIDE (-A), KOPF_RUN_NAMESPACES (-n; separated by spaces), KOPF_RUN_NAMESPACE (one more -n),
  KOPF_RUN_STANDALONE, KOPF_RUN_PEERING (-P), KOPF_RUN_PRIORITY (-p), KOPF_RUN_DEV, KOPF_RUN_LEADER_ELECT, KOPF_RUN_LEASE,
  KOPF_RUN_WEBHOOK_SERVICE, KOPF_RUN_WEBHOOK_URL, KOPF_RUN_WEBHOOK_PORT, KOPF_RUN_GUARD_CONFIGMAPS,
  POD_ID (the identity in peering), KOPF_RUN_LIVENESS_ENDPOINT (-L), KOPF_RUN_HEALTH, KOPF_RUN_CONFIG,
  KOPF_RUN_NO_RELOAD, KOPF_RUN_RELOAD_POLL, KOPF_RUN_FROM_CONFIGMAP (separated by spaces), KOPF_RUN_FROM_CONFIGMAP_SELECTOR,
  KOPF_RUN_ALLOW_NET, KOPF_RUN_ALLOW_ENV, KOPF_RUN_ALLOW_READ, KOPF_RUN_ALLOW_INSECURE, KOPF_RUN_ALLOW_SCRATCH
  (separated by commas or spaces),
  KOPF_RUN_VERBOSE, KOPF_RUN_DEBUG, KOPF_RUN_QUIET, KOPF_RUN_LOG_FORMAT, KOPF_RUN_LOG_PREFIX, KOPF_RUN_LOG_REFKEY,
  KOPF_RUN_COLOR (also NO_COLOR, CLICOLOR_FORCE),
  KOPF_SETTINGS_GROUP__NAME (one setting, such as KOPF_SETTINGS_QUEUEING__WORKER_LIMIT=20)

Precedence, lowest to highest: defaults, kopf.yaml, environment, command line, startup handlers.

Examples:
  kopf run handlers.lua                       the whole cluster, with the kubectl context or the service account
  kopf run -n 'myapp-*' handlers/ --verbose   some namespaces; log each decision and its reason
  kopf run -A --set execution.default_backoff=10s handlers.rhai";

/// Details that the help of the options does not cover.
pub(super) const DEV_AFTER_HELP: &str = "\
The server runs in this process; objects are kept in memory unless --data persists them. kubectl can use the server with the \
KUBECONFIG that is printed at the start. If no CRD exists for a kind that handlers name, a permissive one is created.

Scripts, namespaces and log options are the same as for `kopf run`, including its environment variables; without -n, all namespaces \
are served.";

pub(super) const MANIFESTS_AFTER_HELP: &str = "\
No cluster is used: pass the manifests to `kubectl apply -f -`. Scripts, modules and kopf.yaml become a ConfigMap, which can be \
edited while the operator runs. Anything that cannot be determined is reported as a warning on stderr.

Exit code: 0 if the manifests are complete, 1 if the scripts or CRDs are invalid, 2 if the command line is invalid.

Examples:
  kopf manifests --namespace ops | kubectl apply -f -
  kopf manifests handlers/ --image registry.example.com/kopf:0.1.0 --kustomize deploy/
  kopf manifests handlers/ --image registry.example.com/kopf:0.1.0 --helm chart/ && helm install my-operator chart/";

pub(super) const RBAC_GENERATE_AFTER_HELP: &str = "\
Each rule has a comment that names what needs it. Calls of kube.* whose kind is only known at run time are reported as warnings; add \
their permissions with --also, or record those that tests use with `kopf test --record-rbac FILE`.

Examples:
  kopf rbac generate --namespace ops > deploy/rbac.yaml
  kopf rbac generate -n team-a -n team-b --also get:secrets";

pub(super) const RBAC_VERIFY_AFTER_HELP: &str = "\
Exit code: 0 if no permission is missing, 1 if any is, 2 if the command line is invalid.

Examples:
  kopf rbac verify -f deploy/
  kopf rbac verify --cluster --as system:serviceaccount:ops:my-operator";
