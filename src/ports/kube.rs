//! The cluster as scripts reach it: connected when the first of them asks, with the resources it has looked up.
//!
//! Requests run as tasks of the operator, not of the script: a script that computes must hold up no connection, and clients
//! that were made for one script must not end with it. Whoever drops a request ends it.

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
use tokio::{
    runtime::Handle,
    sync::{Mutex as AsyncMutex, mpsc},
};
use tokio_util::task::AbortOnDropHandle;

use super::{ApiError, BoxFuture, Cluster, ErrorClass, GroupFilter, StreamEvent, StreamTarget};
use crate::logic::{
    kube::{Known, ResourceRef},
    resource::Resource,
};
use crate::settings::Settings;

/// Events of a watch on their way to the script that loops over them. At the bound the connection waits for the script.
const EVENTS_MAX: usize = 16;

/// The cluster for the scripts of one operator. Clones share it; the default one never has any.
#[derive(Clone, Default)]
pub struct Kube(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// None: there is no cluster, or not any more.
    dial: Mutex<Option<Dial>>,
    /// Held by whoever connects: the others wait for the result. Why the last attempt failed.
    line: AsyncMutex<Option<ApiError>>,
    /// Attempts that have ended.
    attempts: AtomicU64,
    cluster: OnceLock<Arc<dyn Cluster>>,
    /// As the operator has them.
    settings: OnceLock<Arc<Mutex<Settings>>>,
    /// Where requests run.
    runtime: OnceLock<Handle>,
    known: Mutex<Known>,
}

/// Makes the connection; called again after a failure.
pub type Dial = Box<dyn Fn() -> BoxFuture<'static, Result<Arc<dyn Cluster>, ApiError>> + Send>;

/// One request of a script.
#[derive(Clone, Debug)]
pub struct Demand {
    /// What is done.
    pub verb: Verb,
    /// To what.
    pub resource: Arc<Resource>,
    /// Where; `None` for cluster-scoped resources and for all namespaces.
    pub namespace: Option<String>,
    /// To which object; `None` for the collection.
    pub name: Option<String>,
    /// To which part of it.
    pub subresource: Option<String>,
    /// Further parameters.
    pub query: Vec<(&'static str, String)>,
    /// The content type and the content.
    pub content: Option<(&'static str, Bytes)>,
}

/// What is done, as in RBAC rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// GET of an object.
    Get,
    /// GET of a collection.
    List,
    /// POST
    Create,
    /// PUT
    Update,
    /// PATCH
    Patch,
    /// DELETE
    Delete,
}

/// Why a resource cannot be told.
#[derive(Debug)]
pub enum LookupError {
    /// The cluster could not be asked.
    Api(ApiError),
    /// It has none such, or several.
    Unresolved(String),
}

impl Kube {
    /// From now on there is a cluster: it is connected to when somebody asks for it. Called inside of the runtime of the
    /// operator.
    pub fn open(&self, settings: Arc<Mutex<Settings>>, dial: Dial) {
        // An operator runs once.
        drop(self.0.settings.set(settings));
        if let Ok(runtime) = Handle::try_current() {
            drop(self.0.runtime.set(runtime));
        }
        *self.dial() = Some(dial);
    }

    /// Nobody can connect any more. What is connected stays so.
    pub fn close(&self) {
        let dial = self.dial().take();
        // Not while it is locked: what goes with it may be large.
        drop(dial);
    }

    /// The cluster, connected to if it is not yet. The same one each time.
    ///
    /// # Errors
    /// There is none, or it could not be connected to; the next call tries it again.
    pub async fn cluster(&self) -> Result<Arc<dyn Cluster>, ApiError> {
        if let Some(cluster) = self.0.cluster.get() {
            return Ok(Arc::clone(cluster));
        }
        let before = self.0.attempts.load(Ordering::Relaxed);
        let mut failed = self.0.line.lock().await;
        if let Some(cluster) = self.0.cluster.get() {
            return Ok(Arc::clone(cluster));
        }
        // Whoever waited for an attempt has its result: the timeouts of attempts in a row would add up.
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

    /// Does something with the cluster, as a task of the operator. Dropping the future ends it.
    ///
    /// # Errors
    /// As of [`Self::cluster`], and those of the work.
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

    /// The resource that is meant: among those known so far, or else looked up.
    ///
    /// # Errors
    /// There is none, or several, or the cluster cannot be asked.
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
            // What it has is not known.
            (_, Some(error)) => Err(LookupError::Api(error)),
            (_, None) => Err(LookupError::Unresolved(format!("the cluster has no {wanted}"))),
        }
    }

    /// What is known of a group is not so any more.
    pub fn forget(&self, group: &str) {
        self.known().forget(group);
    }

    /// The namespace of the credentials.
    ///
    /// # Errors
    /// As of [`Self::cluster`].
    pub async fn default_namespace(&self) -> Result<String, ApiError> {
        self.with(|cluster| async move { Ok(cluster.default_namespace().to_owned()) }).await
    }

    /// The objects of a target and their changes, without end; it waits when nobody takes them.
    ///
    /// # Errors
    /// As of [`Self::cluster`].
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

    /// The settings as they are now.
    pub fn settings(&self) -> Arc<Settings> {
        let settings = self.0.settings.get();
        let settings = settings.map(|it| it.lock().clone());
        Arc::new(settings.unwrap_or_default())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Each change is one call.
        self.0.known.lock()
    }
}

impl Verb {
    /// In one word.
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
