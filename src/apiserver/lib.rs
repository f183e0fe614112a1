#![doc = include_str!("README.md")]

mod admission;
pub mod controllers;
mod controls;
mod discovery;
mod faults;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod kubeconfig;
mod labels;
mod loading;
mod managed;
mod metadata;
mod native;
mod object;
mod openapi;
mod patch;
mod rbac;
mod refusal;
mod reply;
mod request;
mod resource;
mod schema;
mod selector;
pub mod serve;
mod service;
mod signals;
pub mod snapshot;
mod sorted;
mod store;
pub mod streaming;
mod table;
#[cfg(test)]
mod tests;
mod verbs;
mod webhooks;

use std::{
    fmt,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use tokio::task::JoinSet;

pub use self::{
    controls::Changed,
    faults::{Fault, FaultEffect},
    loading::{Loader, ObjectQuery},
    native::{BuiltInKind, built_in_definition, built_in_kinds},
    rbac::{AccessRecord, Accesses, Attributes, ClientOf, User},
    refusal::Refusal,
    request::log::LoggedRequest,
    resource::ResourceDef,
    service::ResponseBody,
    verbs::placeholders::PLACEHOLDER,
    webhooks::{Post, WebhookTarget},
};
use self::{
    faults::Faults,
    loading::Loading,
    openapi::OpenApi,
    rbac::Rbac,
    request::log::RequestLog,
    resource::kind::Kind,
    signals::Signals,
    store::{Clock, Store},
    streaming::PodStreams,
};

/// Interval of bookmarks in idle watches; about the same as on the real server.
const BOOKMARKS: Duration = Duration::from_mins(1);

/// A handle of the server. Clones share the same server.
#[derive(Clone)]
pub struct ApiServer(Arc<Shared>);

struct Shared {
    /// Locked for single operations, never across an `await`.
    store: Mutex<Store>,
    requests: Mutex<RequestLog>,
    faults: Mutex<Faults>,
    rbac: Rbac,
    signals: Signals,
    bookmarks: Option<Duration>,
    /// New objects get uids, creation times and generations.
    stamps: bool,
    /// Namespaces must exist before objects are created in them.
    cluster: bool,
    /// The built-in admission plugins run: quotas, limits, classes, disruption budgets.
    admission: bool,
    /// Sends requests to webhooks.
    post: Post,
    openapi: OpenApi,
    /// Functions that stand in for containers.
    pods: PodStreams,
    /// Loads the objects of another server.
    loading: Option<Loading>,
    /// Tasks of upgraded connections (exec, port-forward) of clients in the same process.
    inside: Mutex<JoinSet<()>>,
    /// Controllers run that empty deleted namespaces and CRDs.
    emptied: AtomicBool,
}

impl ApiServer {
    /// Returns a builder with the defaults.
    pub fn builder() -> Builder {
        Builder {
            kinds: native::kinds(),
            stamps: true,
            cluster: false,
            admission: true,
            rbac: false,
            post: webhooks::https(),
            pods: PodStreams::default(),
            loader: None,
            seed: None,
            clock: Arc::new(|| "2026-01-01T00:00:00Z".into()),
            bookmarks: Some(BOOKMARKS),
        }
    }
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let revision = self.0.store().revision;
        f.debug_struct("ApiServer").field("revision", &revision).finish_non_exhaustive()
    }
}

/// Configures and builds an [`ApiServer`].
#[must_use]
pub struct Builder {
    kinds: Vec<Kind>,
    stamps: bool,
    cluster: bool,
    admission: bool,
    rbac: bool,
    post: Post,
    pods: PodStreams,
    loader: Option<Loader>,
    seed: Option<u64>,
    clock: Clock,
    bookmarks: Option<Duration>,
}

impl Builder {
    /// Serves one more resource from the start.
    pub fn resource(mut self, def: ResourceDef) -> Self {
        self.kinds.push(Kind::plain(def));
        self
    }

    /// Sets whether new objects get a uid, a creation time and a generation; on by default. Without stamps, these fields are kept
    /// as clients send them.
    pub fn stamps(self, stamps: bool) -> Self {
        Self { stamps, ..self }
    }

    /// Sets whether the server starts like a new cluster, with its first namespaces, and refuses objects in namespaces that do not
    /// exist. By default, every namespace is accepted.
    pub fn cluster(self, cluster: bool) -> Self {
        Self { cluster, ..self }
    }

    /// Sets whether RBAC is enforced; off by default. A cluster with RBAC also has the default roles of Kubernetes. Requests
    /// without credentials are those of the administrator, who may do everything.
    pub fn rbac(self, rbac: bool) -> Self {
        Self { rbac, ..self }
    }

    /// Sets whether quotas, limit ranges, priority classes, runtime classes, default classes and disruption budgets are enforced;
    /// on by default. Webhooks are called in any case.
    pub fn admission(self, admission: bool) -> Self {
        Self { admission, ..self }
    }

    /// Sets the function that calls admission webhooks; over HTTPS by default.
    pub fn webhooks(self, post: Post) -> Self {
        Self { post, ..self }
    }

    /// Sets the functions that respond to `exec`, `attach`, `port-forward` and requests for logs. Without them, the first three are
    /// refused, and logs are those of a simulated kubelet.
    pub fn pods(self, pods: PodStreams) -> Self {
        Self { pods, ..self }
    }

    /// Sets the function that loads the objects of another server when a request first needs them. By default, the server starts
    /// without objects.
    pub fn loader(self, loader: Loader) -> Self {
        Self { loader: Some(loader), ..self }
    }

    /// Makes uids and generated names random; servers with the same seed generate the same ones. By default they are counted.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// Sets the source of timestamps: RFC 3339, in seconds. By default, the time is constant.
    pub fn clock(self, clock: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self { clock: Arc::new(clock), ..self }
    }

    /// Sets the interval of bookmarks in idle watches that request them; `None` for no bookmarks.
    pub fn bookmarks(self, bookmarks: Option<Duration>) -> Self {
        Self { bookmarks, ..self }
    }

    /// Builds the server, either empty or with the objects of a new cluster.
    pub fn build(self) -> ApiServer {
        let server = ApiServer(Arc::new(Shared {
            store: Mutex::new(Store::new(self.kinds, self.seed, self.clock)),
            requests: Mutex::default(),
            faults: Mutex::new(Faults::new(self.seed.unwrap_or(0))),
            rbac: Rbac::new(self.rbac, self.seed),
            signals: Signals::default(),
            bookmarks: self.bookmarks,
            stamps: self.stamps,
            cluster: self.cluster,
            admission: self.admission,
            post: self.post,
            pods: self.pods,
            loading: self.loader.map(Loading::new),
            openapi: OpenApi::new(native::raw_definitions),
            inside: Mutex::default(),
            emptied: AtomicBool::new(false),
        }));
        if self.cluster {
            server.create_initial_objects();
        }
        if self.cluster && self.rbac {
            rbac::create_bootstrap_roles(&server);
        }
        server
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("resources", &self.kinds.len()).finish_non_exhaustive()
    }
}

impl Shared {
    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock()
    }

    /// Wakes the watchers after a change.
    fn announce(&self) {
        let revision = self.store().revision;
        self.signals.change(|it| it.revision = revision);
    }
}
