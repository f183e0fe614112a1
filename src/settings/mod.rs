//! All settings of the operator: plain data with defaults.
//!
//! Names are Kopf's, so that its users know them; durations are [`Duration`]s, which users write as seconds or `"10m"`. Settings are
//! read when they are needed, so a change in `on_startup` applies to the whole run. `logic/configure/table.rs` contains their
//! documentation, and reads and sets them by name.

use std::{sync::Arc, time::Duration};

use indexmap::IndexMap;

mod admission;
mod names;
mod storages;

pub use admission::{AdmissionSettings, LocalCluster, VerifyMode, WebhookServer, WebhookService};
pub use names::{FieldPath, PREFIX};
pub use storages::{
    AnnotationsDiffBase, AnnotationsProgress, DiffBaseStorage, DigestKey, HiddenFields,
    ProgressStorage, StatusDiffBase, StatusProgress,
};

/// All settings of one operator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Limits of the time that the process takes to exit.
    pub process: ProcessSettings,
    /// Kubernetes events that the operator posts.
    pub posting: PostingSettings,
    /// Other operators that serve the same objects.
    pub peering: PeeringSettings,
    /// Leader election among replicas.
    pub leadership: LeadershipSettings,
    /// Lists and watches of resources: timeouts and selectors.
    pub watching: WatchingSettings,
    /// Queues of objects and their workers: limits and timeouts.
    pub queueing: QueueingSettings,
    /// Discovery of resources and namespaces.
    pub scanning: ScanningSettings,
    /// The server of admission webhooks and its configurations.
    pub admission: AdmissionSettings,
    /// Calls of handlers: retries and limits.
    pub execution: ExecutionSettings,
    /// How daemons and timers are stopped.
    pub background: BackgroundSettings,
    /// Limits of each script, such as its memory.
    pub sandbox: Sandbox,
    /// Requests to the API.
    pub networking: NetworkingSettings,
    /// State stored on objects.
    pub persistence: PersistenceSettings,
    /// The effects of reloads on objects.
    pub reload: ReloadSettings,
}

/// `settings.process`: limits of the time that the process takes to exit.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessSettings {
    /// Maximum time of a graceful exit; then the process ends at once. `None`: no limit.
    pub ultimate_exiting_timeout: Option<Duration>,
    /// Maximum time of the clean-up handlers; then they are stopped. `None`: only the exit as a whole has a limit.
    pub cleanup_timeout: Option<Duration>,
}

/// `settings.posting`: which Kubernetes events the operator posts, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct PostingSettings {
    /// Whether events are posted at all.
    pub enabled: bool,
    /// Whether lines of object loggers are posted, too.
    pub loggers: bool,
    /// Whether failures of handlers are posted, aggregated by object and handler.
    pub failures: bool,
    /// The type of the condition of objects whose handlers fail; `None`: they have none.
    pub condition: Option<String>,
    /// Minimum level of posted lines, as a number: 10 is debug, 20 info, 30 warning, 40 error.
    pub level: u32,
    /// Pauses between the attempts to post an event that a script requested.
    pub default_backoffs: Vec<Duration>,
    /// Pauses between the attempts to post a line of a logger.
    pub logging_backoffs: Vec<Duration>,
    /// Maximum number of objects whose events are posted at once; `None`: no limit.
    pub worker_limit: Option<usize>,
    /// The worker that posts the events of one object ends after this much idle time.
    pub idle_timeout: Duration,
    /// The component named in posted events.
    pub reporting_component: String,
    /// The instance named in posted events.
    pub reporting_instance: String,
    /// `metadata.generateName` of posted events.
    pub event_name_prefix: String,
}

/// `settings.peering`: other operators that serve the same objects.
#[derive(Clone, Debug, PartialEq)]
pub struct PeeringSettings {
    /// The name of the peering object.
    pub name: String,
    /// Do not log successful renewals of the record.
    pub stealth: bool,
    /// The priority of this operator: operators with a lower one pause while it is alive.
    pub priority: i64,
    /// How long the record of this operator is valid after its last renewal.
    pub lifetime: Duration,
    /// Stay paused until the peering object exists.
    pub mandatory: bool,
    /// Ignore all other operators.
    pub standalone: bool,
    /// Use a `ClusterKopfPeering`, not a `KopfPeering` in each namespace. Set at the start, by the scope.
    pub clusterwide: bool,
    /// Warn of a second operator with the same resources, namespaces and finalizer.
    pub detect_duplicates: bool,
}

/// `settings.leadership`: leader election among replicas.
#[derive(Clone, Debug, PartialEq)]
pub struct LeadershipSettings {
    /// Whether replicas elect a leader, and only the leader acts.
    pub enabled: bool,
    /// The name of the lease; operators in one namespace need different names.
    pub name: String,
    /// Its namespace; `None`: that of the pod, or of the kubeconfig.
    pub namespace: Option<String>,
    /// Another replica takes over when the lease was not renewed for this long.
    pub duration: Duration,
    /// A leader that cannot renew the lease for this long stops; shorter than `duration`.
    pub renew_deadline: Duration,
    /// The pause between attempts to acquire or to renew the lease.
    pub retry_period: Duration,
}

/// Values by resource selector as a string: the arguments of a declaration joined by slashes, such as `pods`, `v1/pods` or
/// `kopf.dev/v1/kopfexamples`; [`EVERYTHING`] is every resource. In the order of definition.
pub type Selectors = IndexMap<String, String>;

/// The key for every resource in [`Selectors`].
pub const EVERYTHING: &str = "*";

/// `settings.watching`: lists and watches of resources.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchingSettings {
    /// `timeoutSeconds` of watch requests; omitted when `None`.
    pub server_timeout: Option<Duration>,
    /// Maximum time of one watch request on the client side.
    pub client_timeout: Option<Duration>,
    /// The pause before a stream starts over with a new list.
    pub reconnect_backoff: Duration,
    /// Reconnect a watch that was inactive for this long; bookmarks count as activity.
    pub inactivity_timeout: Duration,
    /// `limit` of list requests; `None` requests all objects at once. 500, as in client-go and kube-rs: a list of 100,000 objects
    /// would be a response of more than 100 MB, which both sides hold in memory.
    pub chunk_size: Option<u32>,
    /// Maximum time to connect for a watch; `None`: as for other requests.
    pub connect_timeout: Option<Duration>,
    /// Get the initial objects from the watch itself, without a list request.
    pub initial_streaming: bool,
    /// `labelSelector` of lists and watches.
    pub label_selectors: Selectors,
    /// `fieldSelector` of lists and watches.
    pub field_selectors: Selectors,
    /// `shardSelector` of lists and watches.
    pub shard_selectors: Selectors,
}

/// `settings.queueing`: queues of objects and their workers.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueingSettings {
    /// Maximum number of concurrent workers per stream; `None`: no limit.
    pub worker_limit: Option<usize>,
    /// A worker without events for this long ends.
    pub idle_timeout: Duration,
    /// How long workers may continue when the operator stops.
    pub exit_timeout: Duration,
    /// Pauses after unexpected errors on one object; the last one repeats.
    pub error_delays: Vec<Duration>,
}

/// `settings.scanning`: discovery of resources and namespaces.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScanningSettings {
    /// Do not watch namespaces and CRDs at run time.
    pub disabled: bool,
}

/// `settings.execution`: retries and limits of the calls of handlers.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutionSettings {
    /// The pause before the retry after an arbitrary error, for handlers without `backoff`.
    pub default_backoff: Duration,
    /// Maximum number of Rhai handlers of one script that run at once.
    pub max_workers: Option<usize>,
    /// Maximum CPU time of one call; waiting does not count.
    pub cpu_limit: Duration,
    /// Maximum time of one call of an event or index handler, waiting included; `None`: no limit.
    pub event_timeout: Option<Duration>,
    /// The level of log lines about attempts that will be retried, as a number.
    pub retry_log_level: u32,
}

/// `settings.sandbox`: limits of each script, from the moment it is loaded. Limits of a running script do not change.
#[derive(Clone, Debug, PartialEq)]
pub struct Sandbox {
    /// Memory of the VM of one script, in bytes.
    pub memory_limit: usize,
    /// Nested calls in one call of a handler.
    pub call_depth: usize,
    /// Size of one string, in bytes.
    pub string_size: usize,
    /// Coroutines of one script that have not ended, besides those of its handlers.
    pub coroutines: usize,
    /// Size of the result of one handler, of its patch and of a memo, as JSON in bytes.
    pub result_size: usize,
    /// Size of all scratch files of one script, in bytes.
    pub scratch_size: usize,
}

/// `settings.background`: how daemons and timers are stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct BackgroundSettings {
    /// How often to check a daemon that does not stop, if it has no cancellation timeout.
    pub cancellation_polling: Duration,
    /// How long to wait for a daemon right after it was requested to stop.
    pub instant_exit_timeout: Option<Duration>,
    /// Number of scheduler cycles that a daemon has instead, if there is no such timeout.
    pub instant_exit_zero_time_cycles: u32,
}

/// `settings.networking`: timeouts and retries of requests to the API.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkingSettings {
    /// Maximum time of a request.
    pub request_timeout: Duration,
    /// Maximum time to connect.
    pub connect_timeout: Option<Duration>,
    /// Pauses between the attempts of one request: N pauses make N + 1 attempts.
    pub error_backoffs: Vec<Duration>,
    /// Never give up: the last pause is repeated.
    pub repeat_last_backoff: bool,
    /// Follow `Retry-After` even if it is shorter than the operator's own pause.
    pub enforce_retry_after: bool,
    /// Use the proxies of `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`.
    pub trust_env: bool,
}

/// `settings.persistence`: the state that is stored on objects.
#[derive(Clone, Debug, PartialEq)]
pub struct PersistenceSettings {
    /// The finalizer that keeps objects until their deletion is handled.
    pub finalizer: String,
    /// Where the progress of handlers is stored.
    pub progress_storage: ProgressStorage,
    /// Where the last handled essence is stored.
    pub diffbase_storage: DiffBaseStorage,
    /// How long handlers wait for the event of the operator's own patch; zero does not wait.
    pub consistency_timeout: Duration,
    /// Whether permanent failures of handlers are stored on their objects.
    pub remember_failures: bool,
    /// Store the values of Secrets in the last handled state, as Kopf does.
    pub plain_secrets: bool,
    /// Fields whose values are stored as digests, by resource, separated by commas.
    pub sensitive_fields: Selectors,
    /// The Secret with the key of the digests; `None`: no key.
    pub digest_secret: Option<String>,
    /// The key of the digests. Not a setting: the operator reads it.
    pub digest_key: Option<Arc<DigestKey>>,
    /// The hidden fields of one resource. Not a setting: it follows from the others.
    pub hidden: Option<Arc<HiddenFields>>,
}

/// `settings.reload`: the effects of reloads on objects, and the mistakes that reject a script.
#[derive(Clone, Debug, PartialEq)]
pub struct ReloadSettings {
    /// The handlers that failed permanently and are retried once their code has changed.
    pub retry_failed: RetryFailed,
    /// Maximum number of objects per second.
    pub retry_rate: usize,
    /// The mistakes inside of functions that reject a script.
    pub strict: Strict,
}

/// The mistakes inside of functions that reject a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strict {
    /// None: names that do not exist are warnings.
    Off,
    /// Names that do not exist; wrong types are warnings.
    Names,
    /// Names that do not exist and wrong types; lints are warnings.
    Types,
}

/// The handlers that failed permanently and are retried once their code has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryFailed {
    /// None.
    Never,
    /// Those that failed with an error, except `PermanentError` (`kopf.fail`).
    Errors,
    /// All, including those that failed with `PermanentError`.
    All,
}

/// The default of `settings.networking.request_timeout`. Any other value applies to all requests, this one to lists.
pub const REQUEST_TIMEOUT: Duration = secs(300);

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

impl Default for ProcessSettings {
    fn default() -> Self {
        ProcessSettings {
            ultimate_exiting_timeout: Some(secs(600)),
            cleanup_timeout: Some(secs(10)),
        }
    }
}

impl Default for PostingSettings {
    fn default() -> Self {
        PostingSettings {
            enabled: true,
            loggers: false,
            failures: true,
            condition: None,
            level: 20,
            default_backoffs: [1, 1, 2, 3, 5, 8, 13, 21].map(secs).to_vec(),
            logging_backoffs: [1, 1, 2, 3, 5].map(secs).to_vec(),
            worker_limit: None,
            idle_timeout: secs(1),
            reporting_component: "kopf".into(),
            reporting_instance: "dev".into(),
            event_name_prefix: "kopf-event-".into(),
        }
    }
}

impl Default for PeeringSettings {
    fn default() -> Self {
        PeeringSettings {
            name: "default".into(),
            stealth: false,
            priority: 0,
            lifetime: secs(60),
            mandatory: false,
            standalone: false,
            clusterwide: false,
            detect_duplicates: true,
        }
    }
}

impl Default for LeadershipSettings {
    /// Uses the values of client-go.
    fn default() -> Self {
        LeadershipSettings {
            enabled: false,
            name: "kopf".into(),
            namespace: None,
            duration: secs(15),
            renew_deadline: secs(10),
            retry_period: secs(2),
        }
    }
}

impl Default for WatchingSettings {
    fn default() -> Self {
        WatchingSettings {
            server_timeout: None,
            client_timeout: None,
            reconnect_backoff: Duration::from_millis(100),
            inactivity_timeout: secs(70),
            chunk_size: Some(500),
            connect_timeout: None,
            initial_streaming: false,
            label_selectors: Selectors::new(),
            field_selectors: Selectors::new(),
            shard_selectors: Selectors::new(),
        }
    }
}

impl Default for QueueingSettings {
    fn default() -> Self {
        let delays = [1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610];
        QueueingSettings {
            worker_limit: None,
            idle_timeout: secs(5),
            exit_timeout: secs(2),
            error_delays: delays.map(secs).to_vec(),
        }
    }
}

impl Default for Sandbox {
    /// Returns the limits that script authors can rely on. The depth is far below the limit of a thread's stack, and every API server
    /// rejects a larger result.
    fn default() -> Self {
        const MIB: usize = 1 << 20;
        Sandbox {
            memory_limit: 64 * MIB,
            call_depth: 200,
            string_size: 4 * MIB,
            coroutines: 100_000,
            result_size: MIB,
            scratch_size: 1024 * MIB,
        }
    }
}

impl Default for ExecutionSettings {
    fn default() -> Self {
        ExecutionSettings {
            default_backoff: secs(60),
            max_workers: None,
            cpu_limit: secs(1),
            // Other handlers of the object wait for these. Twice the time of the slowest request that they may wait for.
            event_timeout: Some(secs(60)),
            retry_log_level: 30,
        }
    }
}

impl Default for BackgroundSettings {
    fn default() -> Self {
        BackgroundSettings {
            cancellation_polling: secs(60),
            // Kopf has none, only cycles of its scheduler. Scripts run on separate threads, where such cycles have no meaning.
            instant_exit_timeout: Some(Duration::from_millis(100)),
            instant_exit_zero_time_cycles: 10,
        }
    }
}

impl Default for NetworkingSettings {
    fn default() -> Self {
        NetworkingSettings {
            request_timeout: REQUEST_TIMEOUT,
            connect_timeout: None,
            error_backoffs: [1, 1, 2, 3, 5, 8, 13, 21].map(secs).to_vec(),
            repeat_last_backoff: false,
            enforce_retry_after: false,
            trust_env: false,
        }
    }
}

impl Default for PersistenceSettings {
    fn default() -> Self {
        PersistenceSettings {
            finalizer: format!("{PREFIX}/KopfFinalizerMarker"),
            progress_storage: ProgressStorage::default(),
            diffbase_storage: DiffBaseStorage::default(),
            consistency_timeout: secs(5),
            remember_failures: true,
            plain_secrets: false,
            sensitive_fields: Selectors::new(),
            digest_secret: Some("kopf-digest-key".into()),
            digest_key: None,
            hidden: None,
        }
    }
}

impl Default for ReloadSettings {
    fn default() -> Self {
        ReloadSettings { retry_failed: RetryFailed::Errors, retry_rate: 10, strict: Strict::Names }
    }
}
