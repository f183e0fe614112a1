//! Every knob of the operator: plain data with defaults.
//!
//! Names are Kopf's, because its users are ours; durations are [`Duration`]s, written as seconds or `"10m"` by users.
//! The meaning of each is in the code that reads it. Settings are read when they are needed, so a change made in
//! `on_startup` holds for the whole run.

use std::time::Duration;

/// A path of keys into an object: `spec.field` is `["spec", "field"]`; the empty path is the object itself.
pub type FieldPath = Vec<String>;

/// All settings of one operator.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The life of the process.
    pub process: Process,
    /// Kubernetes events written by the operator.
    pub posting: Posting,
    /// Other operators of the same objects.
    pub peering: Peering,
    /// The election of a leader among replicas.
    pub leadership: Leadership,
    /// Listing and watching.
    pub watching: Watching,
    /// Queues and workers.
    pub queueing: Queueing,
    /// Discovery of resources and namespaces.
    pub scanning: Scanning,
    /// Invocation of handlers.
    pub execution: Execution,
    /// Requests to the API.
    pub networking: Networking,
    /// State kept on objects.
    pub persistence: Persistence,
}

/// `settings.process`
#[derive(Clone, Debug)]
pub struct Process {
    /// A graceful exit that takes longer than this ends at once; `None`: never.
    pub ultimate_exiting_timeout: Option<Duration>,
}

/// `settings.posting`
#[derive(Clone, Debug)]
pub struct Posting {
    /// Whether events are posted at all.
    pub enabled: bool,
    /// Whether lines of object loggers are posted too.
    pub loggers: bool,
    /// The least level that is posted, as a number: 10 is debug, 20 info, 30 warning, 40 error.
    pub level: u32,
    /// Pauses between the attempts to post an event that a script asked for.
    pub default_backoffs: Vec<Duration>,
    /// Pauses between the attempts to post a line of a logger.
    pub logging_backoffs: Vec<Duration>,
    /// The component named in posted events.
    pub reporting_component: String,
    /// The instance named in posted events.
    pub reporting_instance: String,
    /// `metadata.generateName` of posted events.
    pub event_name_prefix: String,
}

/// `settings.peering`
#[derive(Clone, Debug)]
pub struct Peering {
    /// The name of the peering object.
    pub name: String,
    /// Do not log each renewal of our record.
    pub stealth: bool,
    /// The operator of the highest priority works, the others pause.
    pub priority: i64,
    /// How long our record counts; it is renewed before.
    pub lifetime: Duration,
    /// Stay paused until the peering object is there.
    pub mandatory: bool,
    /// Neither look for other operators nor be seen by them.
    pub standalone: bool,
    /// Meet in one object of the cluster rather than in one of each namespace. Set at the start as the operator serves.
    pub clusterwide: bool,
}

/// `settings.leadership`
#[derive(Clone, Debug)]
pub struct Leadership {
    /// Whether replicas elect a leader, and only the leader acts.
    pub enabled: bool,
    /// The name of the lease; operators in one namespace need one each.
    pub name: String,
    /// Its namespace; `None`: that of the pod, or of the kubeconfig.
    pub namespace: Option<String>,
    /// Another replica takes over when the lease was not renewed for so long.
    pub duration: Duration,
    /// A leader that cannot renew the lease for so long stops; shorter than `duration`.
    pub renew_deadline: Duration,
    /// The pause between attempts to get or to renew the lease.
    pub retry_period: Duration,
}

/// `settings.watching`
#[derive(Clone, Debug)]
pub struct Watching {
    /// `timeoutSeconds` of watch requests; omitted when `None`.
    pub server_timeout: Option<Duration>,
    /// The longest life of one watch request on our side.
    pub client_timeout: Option<Duration>,
    /// Pause before a stream starts over with a new list.
    pub reconnect_backoff: Duration,
    /// Reconnect a watch that was silent for this long; bookmarks count as sound.
    pub inactivity_timeout: Duration,
    /// `limit` of list requests; `None` asks for everything at once.
    pub chunk_size: Option<u32>,
}

/// `settings.queueing`
#[derive(Clone, Debug)]
pub struct Queueing {
    /// The most workers at once per stream; `None`: no limit.
    pub worker_limit: Option<usize>,
    /// A worker without events for this long ends.
    pub idle_timeout: Duration,
    /// How long workers may go on when the operator stops.
    pub exit_timeout: Duration,
    /// Pauses after unexpected errors on one object; the last one repeats.
    pub error_delays: Vec<Duration>,
}

/// `settings.scanning`
#[derive(Clone, Debug, Default)]
pub struct Scanning {
    /// Do not observe namespaces and resource definitions at run time.
    pub disabled: bool,
}

/// `settings.execution`
#[derive(Clone, Debug)]
pub struct Execution {
    /// The pause before an arbitrary error is retried, for handlers without `backoff`.
    pub default_backoff: Duration,
    /// The most Rhai handlers of one script that run at once.
    pub max_workers: Option<usize>,
}

/// `settings.networking`
#[derive(Clone, Debug)]
pub struct Networking {
    /// The longest a regular request may take.
    pub request_timeout: Duration,
    /// The longest a connection may take to be made.
    pub connect_timeout: Option<Duration>,
    /// Pauses between the attempts of one request: N pauses make N + 1 attempts.
    pub error_backoffs: Vec<Duration>,
    /// Follow `Retry-After` even when it is shorter than our own pause.
    pub enforce_retry_after: bool,
}

/// `settings.persistence`
#[derive(Clone, Debug)]
pub struct Persistence {
    /// The finalizer that holds objects until their deletion is handled.
    pub finalizer: String,
    /// Where the progress of handlers is kept.
    pub progress_storage: ProgressStorage,
    /// Where the last handled essence is kept.
    pub diffbase_storage: DiffBaseStorage,
    /// How long to wait until the own patch comes back before handlers run; zero does not wait.
    pub consistency_timeout: Duration,
}

/// Where the progress of handlers is kept on an object.
#[derive(Clone, Debug, PartialEq)]
pub enum ProgressStorage {
    /// In annotations.
    Annotations(AnnotationsProgress),
    /// In the status.
    Status(StatusProgress),
    /// In all of these; read from the first that has it.
    Multi(Vec<ProgressStorage>),
    /// Written to annotations; read and purged in the status as well, for objects of older operators.
    Smart(AnnotationsProgress, StatusProgress),
}

/// Progress in annotations.
#[derive(Clone, Debug, PartialEq)]
pub struct AnnotationsProgress {
    /// The part of the annotation names before the slash.
    pub prefix: String,
    /// Write null fields too.
    pub verbose: bool,
    /// The record key of the annotation that provokes a new event.
    pub touch_key: String,
    /// Also write and read the shorter names of old versions.
    pub v1: bool,
}

/// Progress in the status.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusProgress {
    /// The field that maps handler ids to records.
    pub field: FieldPath,
    /// The field that provokes a new event.
    pub touch_field: FieldPath,
}

/// Where the last handled essence is kept on an object.
#[derive(Clone, Debug, PartialEq)]
pub enum DiffBaseStorage {
    /// In an annotation.
    Annotations(AnnotationsDiffBase),
    /// In the status.
    Status(StatusDiffBase),
    /// In all of these; read from the first that has it.
    Multi(Vec<DiffBaseStorage>),
}

/// The last handled essence in an annotation.
#[derive(Clone, Debug, PartialEq)]
pub struct AnnotationsDiffBase {
    /// The part of the annotation name before the slash.
    pub prefix: String,
    /// The record key.
    pub key: String,
    /// Fields whose changes do not matter.
    pub ignored_fields: Vec<FieldPath>,
    /// Also write and read the shorter name of old versions.
    pub v1: bool,
}

/// The last handled essence in the status.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusDiffBase {
    /// The field that holds the text.
    pub field: FieldPath,
    /// Fields whose changes do not matter.
    pub ignored_fields: Vec<FieldPath>,
}

/// The prefix of annotations and of the finalizer, shared with Kopf.
pub const PREFIX: &str = "kopf.zalando.org";

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

impl Default for Process {
    fn default() -> Self {
        Process { ultimate_exiting_timeout: Some(secs(600)) }
    }
}

impl Default for Posting {
    fn default() -> Self {
        Posting {
            enabled: true,
            loggers: false,
            level: 20,
            default_backoffs: [1, 1, 2, 3, 5, 8, 13, 21].map(secs).to_vec(),
            logging_backoffs: [1, 1, 2, 3, 5].map(secs).to_vec(),
            reporting_component: "kopf".into(),
            reporting_instance: "dev".into(),
            event_name_prefix: "kopf-event-".into(),
        }
    }
}

impl Default for Peering {
    fn default() -> Self {
        Peering {
            name: "default".into(),
            stealth: false,
            priority: 0,
            lifetime: secs(60),
            mandatory: false,
            standalone: false,
            clusterwide: true,
        }
    }
}

impl Default for Leadership {
    /// The numbers of client-go.
    fn default() -> Self {
        Leadership {
            enabled: false,
            name: "kopf".into(),
            namespace: None,
            duration: secs(15),
            renew_deadline: secs(10),
            retry_period: secs(2),
        }
    }
}

impl Default for Watching {
    fn default() -> Self {
        Watching {
            server_timeout: None,
            client_timeout: None,
            reconnect_backoff: Duration::from_millis(100),
            inactivity_timeout: secs(70),
            chunk_size: None,
        }
    }
}

impl Default for Queueing {
    fn default() -> Self {
        let delays = [1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610];
        Queueing {
            worker_limit: None,
            idle_timeout: secs(5),
            exit_timeout: secs(2),
            error_delays: delays.map(secs).to_vec(),
        }
    }
}

impl Default for Execution {
    fn default() -> Self {
        Execution { default_backoff: secs(60), max_workers: None }
    }
}

impl Default for Networking {
    fn default() -> Self {
        Networking {
            request_timeout: secs(300),
            connect_timeout: None,
            error_backoffs: [1, 1, 2, 3, 5, 8, 13, 21].map(secs).to_vec(),
            enforce_retry_after: false,
        }
    }
}

impl Default for Persistence {
    fn default() -> Self {
        Persistence {
            finalizer: format!("{PREFIX}/KopfFinalizerMarker"),
            progress_storage: ProgressStorage::Smart(
                AnnotationsProgress::default(),
                StatusProgress::default(),
            ),
            diffbase_storage: DiffBaseStorage::Annotations(AnnotationsDiffBase::default()),
            consistency_timeout: secs(5),
        }
    }
}

impl Default for AnnotationsProgress {
    fn default() -> Self {
        AnnotationsProgress {
            prefix: PREFIX.into(),
            verbose: false,
            touch_key: "touch-dummy".into(),
            v1: true,
        }
    }
}

impl Default for StatusProgress {
    fn default() -> Self {
        let path = |last: &str| vec!["status".into(), "kopf".into(), last.into()];
        StatusProgress { field: path("progress"), touch_field: path("dummy") }
    }
}

impl Default for AnnotationsDiffBase {
    fn default() -> Self {
        AnnotationsDiffBase {
            prefix: PREFIX.into(),
            key: "last-handled-configuration".into(),
            ignored_fields: Vec::new(),
            v1: true,
        }
    }
}

impl Default for StatusDiffBase {
    fn default() -> Self {
        StatusDiffBase {
            field: vec!["status".into(), "kopf".into(), "last-handled-configuration".into()],
            ignored_fields: Vec::new(),
        }
    }
}
