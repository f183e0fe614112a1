//! The Kubernetes API as seen by `handling/`, `features/` and `reactor/`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    num::NonZeroU64,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures::{StreamExt as _, future, stream::BoxStream};
use tokio_util::sync::CancellationToken;

use super::{BoxFuture, ContainerCommand, Demand, Executed, Leadership};
use crate::logic::{
    access::kube::StatusDetails,
    handlers::selector::Restrictions,
    object::{Object, reason::EventType, resource::Resource},
};
use crate::settings::Settings;
use crate::telemetry::{HealthState, Pulse};

/// A cluster. The implementation retries requests according to `settings.networking`; a returned error is final for the caller.
pub trait Cluster: Send + Sync + 'static {
    /// Returns all resources of these API groups, in no particular order.
    fn discover<'a>(
        &'a self,
        groups: &'a GroupFilter,
    ) -> BoxFuture<'a, Result<Discovered, ApiError>>;

    /// Streams the objects of one resource and then their changes, without end.
    ///
    /// Reconnects and re-lists by itself. An `Err` is an attempt that has failed permanently; the stream then pauses and tries
    /// again, so it recovers once the cause is gone. Dropping the stream closes the connection.
    fn stream(&self, target: StreamTarget) -> BoxStream<'static, Result<StreamEvent, ApiError>>;

    /// Does the same as [`Cluster::stream`] and reports to the pulse: a beat for everything that arrives, bookmarks included, and
    /// the reason while nothing can arrive.
    fn stream_with_pulse(
        &self,
        target: StreamTarget,
        pulse: Arc<Pulse>,
    ) -> BoxStream<'static, Result<StreamEvent, ApiError>> {
        // For clusters that do not report to the pulse themselves: every delivered event still counts as a beat.
        Box::pin(self.stream(target).inspect(move |event| match event {
            Ok(_) => pulse.recover("watching"),
            Err(error) => pulse.set(HealthState::Unready, &error.message),
        }))
    }

    /// Sends one PATCH. Returns the object as it is afterwards.
    fn patch<'a>(
        &'a self,
        request: PatchRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Object>, ApiError>>;

    /// Sends one POST to a collection. Returns the created object.
    fn create<'a>(&'a self, request: NewObject<'a>) -> BoxFuture<'a, Result<Object, ApiError>>;

    /// Reads one object. Fails with [`ErrorClass::Missing`] if it does not exist.
    fn get<'a>(&'a self, address: Address<'a>) -> BoxFuture<'a, Result<Object, ApiError>>;

    /// Sends one PUT: replaces the object with `payload`. Fails with a conflict if the `resourceVersion` in the payload is
    /// outdated.
    fn replace<'a>(
        &'a self,
        address: Address<'a>,
        payload: Bytes,
    ) -> BoxFuture<'a, Result<Object, ApiError>>;

    /// Lists all objects of a resource at once; for small collections such as namespaces.
    fn list<'a>(
        &'a self,
        resource: &'a Resource,
        namespace: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Object>, ApiError>>;

    /// Returns the namespace of the credentials, for events of cluster-scoped objects.
    fn default_namespace(&self) -> &str;

    /// Sends one request of a script. Returns the response body unchanged.
    fn ask(&self, demand: Demand) -> BoxFuture<'_, Result<Bytes, ApiError>>;

    /// Runs a command in a container, and waits for its end. Dropping the future closes the connection.
    fn exec(&self, execution: ContainerCommand) -> BoxFuture<'_, Result<Executed, ApiError>> {
        let message = format!("this cluster runs no commands: {:?}", execution.demand.name);
        let class = ErrorClass::Fatal;
        let error = ApiError { class, status: None, message, hint: None, answer: None };
        Box::pin(future::ready(Err(error)))
    }

    /// Returns the server's response to `/version`, as JSON.
    fn version(&self) -> BoxFuture<'_, Result<Bytes, ApiError>>;

    /// Returns the certificate of the server, DER. `None`: it has none, or a proxy hides it.
    fn certificate(&self) -> BoxFuture<'_, Result<Option<Vec<u8>>, ApiError>> {
        Box::pin(future::ready(Ok(None)))
    }

    /// Uses these settings for all further requests. Streams have their own settings.
    fn configure(&self, settings: Arc<Settings>);

    /// Restricts further writing requests to times when the operator may act. Requests for leases are always sent.
    fn fence(&self, leadership: Leadership);
}

/// The API groups to discover.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupFilter {
    /// Every group of the cluster: some selector names no group.
    All,
    /// Only the groups with these names.
    Only(BTreeSet<String>),
}

/// The result of a discovery.
#[derive(Clone, Debug, Default)]
pub struct Discovered {
    /// The resources of the groups that responded.
    pub resources: Vec<Resource>,
    /// The groups that did not respond completely, such as those of an aggregated API that is down. Their resources are unknown.
    pub failed: BTreeMap<String, ApiError>,
}

/// The target of one stream.
#[derive(Clone, Debug)]
pub struct StreamTarget {
    /// The resource whose objects the stream delivers.
    pub resource: Arc<Resource>,
    /// `None`: the whole cluster, or a cluster-scoped resource.
    pub namespace: Option<Arc<str>>,
    /// The part of each object that the stream must deliver.
    pub extent: Extent,
    /// The settings at the time when the stream starts.
    pub settings: Arc<Settings>,
    /// The objects to select; `None` selects those that the settings name.
    pub restrictions: Option<Restrictions>,
}

/// The part of each object that a stream must deliver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// The whole object, with its spec and its status.
    #[default]
    Whole,
    /// Only the metadata, if the server can omit the rest: enough to see that an object was created, changed or deleted.
    Metadata,
}

/// An item of a stream.
#[derive(Debug)]
pub enum StreamEvent {
    /// A listing starts. Objects that are not in it when it is complete are gone.
    Listing,
    /// An object; without an event type if it comes from a listing.
    Object(Option<EventType>, Arc<Object>),
    /// A listing is complete.
    Listed,
    /// Nothing is new, and the connection is alive.
    Alive,
}

/// A source of newer events of an object.
pub trait NewerEvents: Send + Sync + fmt::Debug {
    /// Waits until the object has changed after this version, or is gone.
    fn wait(&self, after: Option<NonZeroU64>) -> BoxFuture<'_, ()>;
}

/// A source of edits of the handlers for which a request is sent.
pub trait Edits: Send + Sync + fmt::Debug {
    /// Waits until they are edited.
    fn edited(&self) -> BoxFuture<'_, ()>;
}

impl Edits for CancellationToken {
    fn edited(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.cancelled())
    }
}

/// Interrupts the pause before a request is repeated. The request then fails.
#[derive(Clone, Copy, Debug)]
pub struct Interrupt<'a> {
    /// The source of newer events. They interrupt only a pause that the server has requested, because the payload may be outdated.
    pub events: Option<&'a dyn NewerEvents>,
    /// The version that the request is based on.
    pub after: Option<NonZeroU64>,
    /// The source of edits. They interrupt any pause, because the payload may not be wanted any more.
    pub edits: Option<&'a dyn Edits>,
}

impl Interrupt<'_> {
    /// Waits until something interrupts the pause. `is_requested`: the server has requested the pause.
    pub async fn wait(&self, is_requested: bool) {
        let newer = async {
            match self.events.filter(|_| is_requested) {
                Some(events) => events.wait(self.after).await,
                None => future::pending().await,
            }
        };
        let edited = async {
            match self.edits {
                Some(edits) => edits.edited().await,
                None => future::pending().await,
            }
        };
        tokio::select! {
            biased; // both at once: the request fails in either case
            () = edited => {}
            () = newer => {}
        }
    }
}

/// One PATCH request for an object or for one of its subresources.
#[derive(Clone, Debug)]
pub struct PatchRequest<'a> {
    /// The resource of the object.
    pub resource: &'a Resource,
    /// The namespace of the object.
    pub namespace: Option<&'a str>,
    /// The name of the object.
    pub name: &'a str,
    /// `status`, or the object itself.
    pub subresource: Option<&'a str>,
    /// How to apply `payload`.
    pub kind: PatchKind,
    /// The patch, as JSON.
    pub payload: Bytes,
    /// Interrupts the pauses before it is repeated.
    pub interrupt: Option<Interrupt<'a>>,
}

/// The content type of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// A JSON merge patch: RFC 7386.
    Merge,
    /// A JSON patch, a list of operations: RFC 6902.
    Json,
}

impl PatchKind {
    /// Returns the value of the request's `Content-Type` header.
    pub fn content_type(self) -> &'static str {
        match self {
            PatchKind::Merge => "application/merge-patch+json",
            PatchKind::Json => "application/json-patch+json",
        }
    }
}

/// The address of one object.
#[derive(Clone, Copy, Debug)]
pub struct Address<'a> {
    /// The resource of the object.
    pub resource: &'a Resource,
    /// The namespace; `None` for cluster-scoped objects.
    pub namespace: Option<&'a str>,
    /// The name of the object.
    pub name: &'a str,
}

/// One POST request, which creates an object.
#[derive(Clone, Debug)]
pub struct NewObject<'a> {
    /// The resource of the new object.
    pub resource: &'a Resource,
    /// The namespace to create it in.
    pub namespace: Option<&'a str>,
    /// The new object, as JSON.
    pub payload: Bytes,
    /// Pauses between the attempts; `None` uses those of `settings.networking`.
    pub backoffs: Option<&'a [Duration]>,
}

/// The error of a request that has failed after its retries.
#[derive(Clone, Debug)]
pub struct ApiError {
    /// The class of the error, for the caller.
    pub class: ErrorClass,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// The operation, its target, and the reason of the failure; one line.
    pub message: String,
    /// The hint for the user, if there is one.
    pub hint: Option<String>,
    /// Details of the response, if it has any.
    pub answer: Option<Box<StatusDetails>>,
}

/// The class of an error by its consequence for the caller. No module outside of `cluster/` inspects status codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// 5xx, 429, no connection, or a timeout: may work later.
    Retry,
    /// 409: another client was faster.
    Conflict,
    /// 422 for a JSON patch that does not apply to the object's present state: most often its `test` has failed.
    Outdated,
    /// Any other 422: a schema, a rule or a webhook rejects the payload.
    Invalid,
    /// 404: the object does not exist, or not any more.
    Missing,
    /// 401 and 403: the credentials are invalid or lack a permission.
    Denied,
    /// 410: the requested version is too old.
    Expired,
    /// Anything else: repeating the request is pointless.
    Fatal,
}

impl ApiError {
    /// Returns whether the server says that the object of this name does not exist. Other 404 responses are about the path: a server
    /// that is starting, a proxy without a route, a subresource that was removed from the CRD.
    pub fn is_missing(&self, name: Option<&str>) -> bool {
        let named = self.answer.as_ref().and_then(|it| it.details.get("name")?.as_str());
        self.class == ErrorClass::Missing && named == name
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}
