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
    faults::{Effect, Fault},
    native::{BuiltInKind, built_in_definition, built_in_kinds},
    rbac::{Access, Accesses, Attributes, ClientOf, User},
    refusal::Refusal,
    request::log::LoggedRequest,
    resource::ResourceDef,
    service::ResponseBody,
    verbs::placeholders::PLACEHOLDER,
    webhooks::{Post, Target},
};
use self::{
    faults::Faults,
    openapi::OpenApi,
    rbac::Rbac,
    request::log::RequestLog,
    resource::kind::Kind,
    signals::Signals,
    store::{Clock, Store},
    streaming::PodStreams,
};

/// How often an idle watch is told the latest version; the real server does it about once a minute.
const BOOKMARKS: Duration = Duration::from_mins(1);

/// A handle of the server. Its clones are the same server.
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
    /// Whether new objects get uids, times and generations.
    stamps: bool,
    /// Whether namespaces must exist.
    cluster: bool,
    /// Whether quotas, limits, classes and disruption budgets are heeded.
    admission: bool,
    /// How webhooks are reached.
    post: Post,
    openapi: OpenApi,
    /// What answers in the place of containers.
    pods: PodStreams,
    /// Connections of clients in the same process, for other protocols.
    inside: Mutex<JoinSet<()>>,
    /// Whether controllers empty deleted namespaces and definitions.
    emptied: AtomicBool,
}

impl ApiServer {
    /// A server that is not made yet.
    pub fn builder() -> Builder {
        Builder {
            kinds: native::kinds(),
            stamps: true,
            cluster: false,
            admission: true,
            rbac: false,
            post: webhooks::https(),
            pods: PodStreams::default(),
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

/// Makes a server.
#[must_use]
pub struct Builder {
    kinds: Vec<Kind>,
    stamps: bool,
    cluster: bool,
    admission: bool,
    rbac: bool,
    post: Post,
    pods: PodStreams,
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

    /// Whether new objects get a uid, a creation time and a generation; they do unless said otherwise. Without stamps, what
    /// clients send of these is kept.
    pub fn stamps(self, stamps: bool) -> Self {
        Self { stamps, ..self }
    }

    /// Whether it is like a new cluster: with its first namespaces, and without objects outside of namespaces that exist. Without
    /// this, any namespace will do.
    pub fn cluster(self, cluster: bool) -> Self {
        Self { cluster, ..self }
    }

    /// Whether users may only do what their roles allow. It is off unless said otherwise. A cluster then also has the roles of
    /// every new cluster. Requests without credentials are those of the administrator, who may do everything.
    pub fn rbac(self, rbac: bool) -> Self {
        Self { rbac, ..self }
    }

    /// Whether quotas, limit ranges, priority classes, runtime classes, default classes and disruption budgets are heeded; they are
    /// unless said otherwise. Webhooks are called in any case.
    pub fn admission(self, admission: bool) -> Self {
        Self { admission, ..self }
    }

    /// How admission webhooks are called; over HTTPS unless said otherwise.
    pub fn webhooks(self, post: Post) -> Self {
        Self { post, ..self }
    }

    /// What answers `exec`, `attach`, `port-forward` and requests for logs. Without functions for them, the first three are
    /// refused, and logs are those of a simulated kubelet.
    pub fn pods(self, pods: PodStreams) -> Self {
        Self { pods, ..self }
    }

    /// Makes uids and generated names random; servers of the same seed make the same ones. Without it they are counted.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// Where the times of objects come from: RFC 3339, to the second. Without it, time stands still.
    pub fn clock(self, clock: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self { clock: Arc::new(clock), ..self }
    }

    /// How often idle watches get a bookmark if they want them; `None`: never.
    pub fn bookmarks(self, bookmarks: Option<Duration>) -> Self {
        Self { bookmarks, ..self }
    }

    /// The server, empty, or with what every cluster has.
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
            openapi: OpenApi::new(native::raw_definitions),
            inside: Mutex::default(),
            emptied: AtomicBool::new(false),
        }));
        if self.cluster {
            server.furnish();
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

    /// Lets watchers look for news.
    fn announce(&self) {
        let revision = self.store().revision;
        self.signals.change(|it| it.revision = revision);
    }
}
