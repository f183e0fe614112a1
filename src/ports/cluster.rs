//! The Kubernetes API as the inner side sees it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    num::NonZeroU64,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures::{StreamExt as _, stream::BoxStream};

use super::{BoxFuture, Demand, HealthState, Leadership, Pulse};
use crate::logic::{
    kube::StatusDetails, object::Object, reason::EventType, resource::Resource,
    selector::Restrictions,
};
use crate::settings::Settings;

/// A cluster. Requests are retried inside, as `settings.networking` says; what comes out as an error is final for the caller.
pub trait Cluster: Send + Sync + 'static {
    /// All resources of these API groups, in no particular order.
    fn discover<'a>(
        &'a self,
        groups: &'a GroupFilter,
    ) -> BoxFuture<'a, Result<Discovered, ApiError>>;

    /// The objects of one resource, and then their changes, without end.
    ///
    /// Reconnects and re-lists by itself. An `Err` is an attempt that failed for good; the stream pauses and goes on trying,
    /// so that it recovers when the reason is gone. Dropping it closes the connection.
    fn stream(&self, target: StreamTarget) -> BoxStream<'static, Result<StreamEvent, ApiError>>;

    /// The same, and the pulse tells how it goes: with a sound for everything that comes, bookmarks included, and with the
    /// reason while nothing can come.
    fn stream_with_pulse(
        &self,
        target: StreamTarget,
        pulse: Arc<Pulse>,
    ) -> BoxStream<'static, Result<StreamEvent, ApiError>> {
        // For clusters that do not know: what they hand over is still a sound.
        Box::pin(self.stream(target).inspect(move |event| match event {
            Ok(_) => pulse.recover("watching"),
            Err(error) => pulse.say(HealthState::Unready, &error.message),
        }))
    }

    /// One PATCH. Gives the object as it is afterwards.
    fn patch<'a>(&'a self, request: PatchRequest<'a>) -> BoxFuture<'a, Result<Object, ApiError>>;

    /// One POST into a collection. Gives the created object.
    fn create<'a>(&'a self, request: NewObject<'a>) -> BoxFuture<'a, Result<Object, ApiError>>;

    /// One object as it is now.
    fn get<'a>(&'a self, address: Address<'a>) -> BoxFuture<'a, Result<Object, ApiError>>;

    /// One PUT: the object becomes `payload`, if it still has the `resourceVersion` in it; else it is a conflict.
    fn replace<'a>(
        &'a self,
        address: Address<'a>,
        payload: Bytes,
    ) -> BoxFuture<'a, Result<Object, ApiError>>;

    /// All objects of a resource at once; for small collections such as namespaces.
    fn list<'a>(
        &'a self,
        resource: &'a Resource,
        namespace: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Object>, ApiError>>;

    /// The namespace of the credentials, for events of cluster-scoped objects.
    fn default_namespace(&self) -> &str;

    /// One request of a script. Gives the answer as it came.
    fn ask(&self, demand: Demand) -> BoxFuture<'_, Result<Bytes, ApiError>>;

    /// What the server says of its version: JSON.
    fn version(&self) -> BoxFuture<'_, Result<Bytes, ApiError>>;

    /// Uses these settings for the requests from now on. Streams have their own.
    fn configure(&self, settings: Arc<Settings>);

    /// Sends requests that write only while the operator may act, from now on; those about leases always.
    fn fence(&self, leadership: Leadership);
}

/// Which API groups to look into.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupFilter {
    /// Every group of the cluster: some selector names no group.
    All,
    /// Only these.
    Only(BTreeSet<String>),
}

/// What the cluster has.
#[derive(Clone, Debug, Default)]
pub struct Discovered {
    /// The resources of the groups that answered.
    pub resources: Vec<Resource>,
    /// The groups with a part that did not answer, as of an aggregated API that is down: what they have is not known.
    pub failed: BTreeMap<String, ApiError>,
}

/// What one stream serves.
#[derive(Clone, Debug)]
pub struct StreamTarget {
    /// The resource.
    pub resource: Arc<Resource>,
    /// `None`: the whole cluster, or a cluster-scoped resource.
    pub namespace: Option<Arc<str>>,
    /// How much of each object is wanted.
    pub extent: Extent,
    /// The settings as they are when the stream starts.
    pub settings: Arc<Settings>,
    /// Which objects are wanted; `None`: those that the settings say.
    pub restrictions: Option<Restrictions>,
}

/// How much of the objects of a stream is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    #[default]
    Whole,
    /// The metadata, where the server can leave out the rest: enough to see that something came, changed or went.
    Metadata,
}

/// An item of a stream.
#[derive(Debug)]
pub enum StreamEvent {
    /// A listing begins, from its start: what is not in it when it is complete is gone.
    Listing,
    /// An object; no event type if it comes from a listing.
    Object(Option<EventType>, Arc<Object>),
    /// A listing is complete.
    Listed,
    /// There is nothing new, and the connection is alive.
    Alive,
}

/// Knows of newer events of an object.
pub trait NewerEvents: Send + Sync + fmt::Debug {
    /// Waits until the object has changed after this version, or is gone.
    fn wait(&self, after: Option<NonZeroU64>) -> BoxFuture<'_, ()>;
}

/// Cuts short the pause that a server has asked for, because what is to be sent may be outdated. The request fails then.
#[derive(Clone, Copy, Debug)]
pub struct Interrupt<'a> {
    /// Where newer events come from.
    pub events: &'a dyn NewerEvents,
    /// The version that the request is based on.
    pub after: Option<NonZeroU64>,
}

impl Interrupt<'_> {
    /// Waits for the newer event.
    pub fn wait(&self) -> BoxFuture<'_, ()> {
        self.events.wait(self.after)
    }
}

/// One PATCH request.
#[derive(Clone, Debug)]
pub struct PatchRequest<'a> {
    /// The resource of the object.
    pub resource: &'a Resource,
    /// The namespace of the object.
    pub namespace: Option<&'a str>,
    /// Its name.
    pub name: &'a str,
    /// `status`, or the object itself.
    pub subresource: Option<&'a str>,
    /// How `payload` is meant.
    pub kind: PatchKind,
    /// JSON.
    pub payload: Bytes,
    /// What ends a pause that the server has asked for.
    pub interrupt: Option<Interrupt<'a>>,
}

/// The content type of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// RFC 7386
    Merge,
    /// RFC 6902
    Json,
}

impl PatchKind {
    /// As in the request's header.
    pub fn content_type(self) -> &'static str {
        match self {
            PatchKind::Merge => "application/merge-patch+json",
            PatchKind::Json => "application/json-patch+json",
        }
    }
}

/// Where one object is.
#[derive(Clone, Copy, Debug)]
pub struct Address<'a> {
    /// The resource.
    pub resource: &'a Resource,
    /// The namespace; `None` for cluster-scoped objects.
    pub namespace: Option<&'a str>,
    /// The name.
    pub name: &'a str,
}

/// One POST request.
#[derive(Clone, Debug)]
pub struct NewObject<'a> {
    /// The resource.
    pub resource: &'a Resource,
    /// The namespace to create it in.
    pub namespace: Option<&'a str>,
    /// JSON.
    pub payload: Bytes,
    /// Pauses between its attempts, if not those of `settings.networking`.
    pub backoffs: Option<&'a [Duration]>,
}

/// Why a request failed, retries included.
#[derive(Clone, Debug)]
pub struct ApiError {
    /// What the caller can do about it.
    pub class: ErrorClass,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// What was attempted, on what, and why it failed; one line.
    pub message: String,
    /// What the user could do next, if we know.
    pub hint: Option<String>,
    /// More of the answer, if it says more.
    pub answer: Option<Box<StatusDetails>>,
}

/// What a failed request means for its caller. Nobody outside of `cluster/` looks at status codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// 5xx, 429, no connection, a time-out: may work later.
    Retry,
    /// 409: somebody was faster.
    Conflict,
    /// 422 of a JSON patch that does not fit the object as it is: most often its `test` has failed.
    Outdated,
    /// Any other 422: a schema, a rule or a webhook does not accept what was sent.
    Invalid,
    /// 404: not there, or not any more.
    Missing,
    /// 401 and 403.
    Denied,
    /// 410: the version asked for is too old.
    Expired,
    /// Anything else: repeating it is pointless.
    Fatal,
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}
