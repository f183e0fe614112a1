//! The cluster for scripts: connected on the first request, with a cache of the resources looked up so far.
//!
//! Requests run as tasks of the operator, not of the script: a script that computes must not delay a connection, and clients that were
//! created for one script must not end with it. Dropping a request cancels it.

use std::{
    fmt,
    future::Future,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use futures::{StreamExt as _, stream, stream::BoxStream};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::{
    runtime::Handle,
    sync::{Mutex as AsyncMutex, mpsc},
};
use tokio_util::task::AbortOnDropHandle;

use super::{ApiError, BoxFuture, Cluster, ErrorClass, GroupFilter, StreamEvent, StreamTarget};
use crate::logic::{
    access::kube::{KnownResources, ResourceRef},
    object::resource::Resource,
};
use crate::settings::Settings;

/// Maximum number of watch events queued for the script that loops over them. At the limit, the connection waits for the script.
const EVENTS_MAX: usize = 16;

/// The cluster for the scripts of one operator. Clones share it. The default value never connects.
#[derive(Clone, Default)]
pub struct Kube(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// `None` if there is no cluster, or not any more.
    dial: Mutex<Option<Dial>>,
    /// Held while connecting: other callers wait for the result. Contains the error of the last attempt.
    line: AsyncMutex<Option<ApiError>>,
    /// Number of attempts that have ended.
    attempts: AtomicU64,
    cluster: OnceLock<Arc<dyn Cluster>>,
    /// The live settings of the operator.
    settings: OnceLock<Arc<Mutex<Settings>>>,
    /// The runtime of the operator, which runs the requests.
    runtime: OnceLock<Handle>,
    known: Mutex<KnownResources>,
}

/// A function that opens the connection. Called again after a failure.
pub type Dial = Box<dyn Fn() -> BoxFuture<'static, Result<Arc<dyn Cluster>, ApiError>> + Send>;

/// One request of a script.
#[derive(Clone, Debug)]
pub struct Demand {
    /// The verb, which determines the HTTP method.
    pub verb: Verb,
    /// The resource of the object or the collection.
    pub resource: Arc<Resource>,
    /// The namespace; `None` for cluster-scoped resources and for all namespaces.
    pub namespace: Option<String>,
    /// The name of the object; `None` for the collection.
    pub name: Option<String>,
    /// The subresource, such as `status`; `None` for the object itself.
    pub subresource: Option<String>,
    /// Further query parameters, by name.
    pub query: Vec<(&'static str, String)>,
    /// The content type and the body.
    pub content: Option<(&'static str, Bytes)>,
}

/// A command to run in a container.
#[derive(Clone, Debug)]
pub struct ContainerCommand {
    /// The request for `exec` of a pod; its query has the command.
    pub demand: Demand,
    /// The standard input of the command.
    pub stdin: Option<Bytes>,
    /// Maximum number of bytes that it may write.
    pub output_max: usize,
}

/// The result of a command that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// The bytes that it has written to its standard output.
    pub stdout: Vec<u8>,
    /// The bytes that it has written to its standard error.
    pub stderr: Vec<u8>,
    /// Its exit code; 0 is success.
    pub code: i32,
}

impl Demand {
    /// Returns the request that asks whether the operator may do what these attributes describe, see [`is_allowed`].
    pub fn access_review(attributes: &Value) -> Self {
        let kind = "SelfSubjectAccessReview";
        let resource = Resource {
            group: "authorization.k8s.io".into(),
            version: "v1".into(),
            plural: "selfsubjectaccessreviews".into(),
            kind: kind.into(),
            ..Resource::default()
        };
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": kind,
            "spec": { "resourceAttributes": attributes },
        });
        Demand {
            verb: Verb::Create,
            resource: Arc::new(resource),
            namespace: None,
            name: None,
            subresource: None,
            query: Vec::new(),
            content: Some(("application/json", review.to_string().into())),
        }
    }
}

/// Returns whether the response to an access review allows the action.
pub fn is_allowed(review: &Value) -> bool {
    let allowed = review.pointer("/status/allowed").and_then(Value::as_bool);
    allowed.unwrap_or_default()
}

/// The verb of a request, as in RBAC rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// GET of an object.
    Get,
    /// GET of a collection.
    List,
    /// POST of an object to a collection.
    Create,
    /// PUT of a whole object.
    Update,
    /// PATCH of an object.
    Patch,
    /// DELETE of an object.
    Delete,
}

/// The reason why a resource could not be looked up.
#[derive(Debug)]
pub enum LookupError {
    /// A request to the cluster failed.
    Api(ApiError),
    /// The cluster has no such resource, or several.
    Unresolved(String),
}

impl Kube {
    /// Provides the cluster: the first request connects to it. Must be called inside the runtime of the operator.
    pub fn open(&self, settings: Arc<Mutex<Settings>>, dial: Dial) {
        // An operator runs once.
        drop(self.0.settings.set(settings));
        if let Ok(runtime) = Handle::try_current() {
            drop(self.0.runtime.set(runtime));
        }
        *self.dial() = Some(dial);
    }

    /// Prevents new connections. An existing connection stays usable.
    pub fn close(&self) {
        let dial = self.dial().take();
        // Dropped after the lock is released: it may own much.
        drop(dial);
    }

    /// Returns the cluster, and connects to it first if necessary. Returns the same one each time.
    ///
    /// # Errors
    /// Fails if there is no cluster, or if the connection failed; the next call tries again.
    pub async fn cluster(&self) -> Result<Arc<dyn Cluster>, ApiError> {
        if let Some(cluster) = self.0.cluster.get() {
            return Ok(Arc::clone(cluster));
        }
        let before = self.0.attempts.load(Ordering::Relaxed);
        let mut failed = self.0.line.lock().await;
        if let Some(cluster) = self.0.cluster.get() {
            return Ok(Arc::clone(cluster));
        }
        // Callers that waited for an attempt get its result: the timeouts of consecutive attempts would add up.
        if let Some(error) = &*failed
            && self.0.attempts.load(Ordering::Relaxed) != before
        {
            return Err(error.clone());
        }
        let connecting = self.dial().as_ref().map(|it| it());
        let connected = connecting.ok_or_else(nowhere)?.await;
        self.0.attempts.fetch_add(1, Ordering::Relaxed);
        match connected {
            Ok(cluster) => Ok(Arc::clone(self.0.cluster.get_or_init(|| cluster))),
            Err(error) => {
                *failed = Some(error.clone());
                Err(error)
            }
        }
    }

    fn dial(&self) -> MutexGuard<'_, Option<Dial>> {
        // Each change is one assignment.
        self.0.dial.lock()
    }

    /// Runs `work` with the cluster as a task of the operator. Dropping the future cancels the task.
    ///
    /// # Errors
    /// Those of [`Self::cluster`] and those of the work.
    pub async fn with<T, F>(
        &self,
        work: impl FnOnce(Arc<dyn Cluster>) -> F + Send + 'static,
    ) -> Result<T, ApiError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, ApiError>> + Send,
    {
        let Some(runtime) = self.0.runtime.get() else { return Err(nowhere()) };
        let kube = self.clone();
        let task = runtime.spawn(async move { work(kube.cluster().await?).await });
        match AbortOnDropHandle::new(task).await {
            Ok(done) => done,
            Err(_) => Err(failed("the operator is stopping".into())),
        }
    }

    /// Returns the resource that a script names: from the cache, or else from discovery.
    ///
    /// # Errors
    /// Fails if the cluster has no such resource, or several, or if discovery failed.
    pub async fn resource(&self, wanted: &ResourceRef) -> Result<Arc<Resource>, LookupError> {
        let mut found = self.known().find(wanted);
        if let Some(Ok(resource)) = found {
            return Ok(resource);
        }
        let mut failed = None;
        for group in wanted.groups_to_read() {
            let filter = match &group {
                Some(group) => GroupFilter::Only([group.clone()].into()),
                None => GroupFilter::All,
            };
            let looking = self.with(move |cluster| async move { cluster.discover(&filter).await });
            let mut discovered = looking.await.map_err(LookupError::Api)?;
            failed = discovered.failed.pop_first().map(|(_, error)| error);
            let mut known = self.known();
            known.learn(group.as_deref(), discovered.resources);
            found = known.find(wanted);
            if let Some(Ok(resource)) = found {
                return Ok(resource);
            }
        }
        match (found, failed) {
            (Some(Err(unresolved)), None) => {
                Err(LookupError::Unresolved(unresolved.message(wanted)))
            }
            // The resources of the failed group are unknown.
            (_, Some(error)) => Err(LookupError::Api(error)),
            (_, None) => Err(LookupError::Unresolved(format!("the cluster has no {wanted}"))),
        }
    }

    /// Removes a group from the cache.
    pub fn forget(&self, group: &str) {
        self.known().forget(group);
    }

    /// Returns the namespace of the credentials.
    ///
    /// # Errors
    /// Those of [`Self::cluster`].
    pub async fn default_namespace(&self) -> Result<String, ApiError> {
        self.with(|cluster| async move { Ok(cluster.default_namespace().to_owned()) }).await
    }

    /// Streams the objects of a target and their changes, without end. Waits while the script takes no events.
    ///
    /// # Errors
    /// Those of [`Self::cluster`].
    pub async fn stream(
        &self,
        target: StreamTarget,
    ) -> Result<BoxStream<'static, Result<StreamEvent, ApiError>>, ApiError> {
        let events = self.with(move |cluster| async move { Ok(cluster.stream(target)) }).await?;
        let Some(runtime) = self.0.runtime.get() else { return Err(nowhere()) };
        let (sender, receiver) = mpsc::channel(EVENTS_MAX);
        let task = runtime.spawn(async move {
            let mut events = events;
            while let Some(event) = events.next().await {
                if sender.send(event).await.is_err() {
                    return;
                }
            }
        });
        let state = (receiver, AbortOnDropHandle::new(task));
        let received = stream::unfold(state, |(mut receiver, task)| async move {
            let event = receiver.recv().await?;
            Some((event, (receiver, task)))
        });
        Ok(received.boxed())
    }

    /// Returns the present settings of the operator.
    pub fn settings(&self) -> Arc<Settings> {
        let settings = self.0.settings.get();
        let settings = settings.map(|it| it.lock().clone());
        Arc::new(settings.unwrap_or_default())
    }

    fn known(&self) -> MutexGuard<'_, KnownResources> {
        // Each change is one call.
        self.0.known.lock()
    }
}

impl Verb {
    /// Returns the verb as in RBAC rules.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
        }
    }
}

impl fmt::Debug for Kube {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kube").finish_non_exhaustive()
    }
}

fn nowhere() -> ApiError {
    failed("there is no connection to a cluster here".into())
}

fn failed(message: String) -> ApiError {
    ApiError { class: ErrorClass::Fatal, status: None, message, hint: None, answer: None }
}
