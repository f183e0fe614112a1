//! The Kubernetes API, over the layers of `kube`, which provides configuration, TLS, authentication and connections.
//!
//! Bodies are read as bytes, because most objects are never inspected: `decode.rs` splits lists and watch lines into objects.
//! Requests are retried by one policy, `retry.rs`; that of `kube` is off.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::stream::BoxStream;
use http::Method;

use crate::logic::{
    handlers::selector::Restrictions,
    object::{Object, resource::Resource, url},
};
use crate::ports::{
    Address, ApiError, BoxFuture, Cluster, ContainerCommand, Demand, Discovered, Executed,
    GroupFilter, Interrupt, Leadership, NewObject, PatchRequest, StreamEvent, StreamTarget,
};
use crate::settings::Settings;
use crate::telemetry::{Metrics, Pulse};

mod attempt_log;
mod certificate;
mod connect;
mod decode;
mod dial;
mod discovery;
mod exec;
mod failure;
mod fence;
mod http_client;
mod in_flight;
mod kubeconfig;
mod limits;
mod lines;
mod login;
mod native;
mod outage;
mod proxy;
mod reason;
mod recent;
mod refusal;
mod request;
mod retry;
mod script_requests;
mod service_account;
mod sessions;
#[cfg(test)]
mod tests;
mod token_file;
mod transport;
mod watch;

pub use connect::{ConnectOptions, Dial};
pub use dial::dial;
pub use http_client::HttpClient;
pub use in_flight::MutatingRequests;
pub use native::ConfigOverrides;
pub use service_account::pod_namespace;

use decode::ListChunk;
use failure::{Action, RequestFailure};
use limits::RequestOrigin;
use outage::Jitter;
use recent::RecentObjects;
use request::{JSON, KubeRequest};
use sessions::Sessions;
use transport::Transport;

/// A Kubernetes cluster. Clones share the connection.
#[derive(Clone)]
pub struct KubeCluster {
    transport: Arc<Transport>,
    recent: Arc<RecentObjects>,
}

impl KubeCluster {
    /// Connects with the login, or else the kubeconfig (of the overrides, `KUBECONFIG` or `~/.kube/config`), or the service account
    /// of the pod.
    ///
    /// Sends no request yet: an unreachable server is detected by the first request.
    ///
    /// # Errors
    /// Fails if there is no usable configuration, or an exec plugin fails.
    pub async fn connect(options: ConnectOptions) -> Result<Self, ApiError> {
        let sessions = connect::connect(&options).await?;
        let metrics = options.health.metrics().clone();
        let transport = Transport::new(sessions, options.settings, metrics);
        let transport = transport.with_jitter(Jitter::random()).reporting(options.health);
        Ok(KubeCluster::of(transport.counting(options.mutating)))
    }

    /// Returns the address of the server, without credentials.
    pub fn server(&self) -> &str {
        self.transport.server()
    }

    /// Uses an existing client. Its credentials cannot be renewed: a 401 is final. Pauses of streams are not random.
    pub fn over(client: kube::Client, settings: Arc<Settings>) -> Self {
        KubeCluster::counted(client, settings, Metrics::default())
    }

    /// Returns the same as [`KubeCluster::over`], with its requests counted in these metrics.
    pub fn counted(client: kube::Client, settings: Arc<Settings>, metrics: Metrics) -> Self {
        let transport = Transport::new(Sessions::only(client), settings, metrics);
        KubeCluster::of(transport)
    }

    /// Returns the same as [`KubeCluster::over`], with randomly stretched pauses of streams, which are the same for the same seed.
    pub fn with_jitter(client: kube::Client, settings: Arc<Settings>, seed: u64) -> Self {
        let transport = Transport::new(Sessions::only(client), settings, Metrics::default());
        KubeCluster::of(transport.with_jitter(Jitter::seeded(seed)))
    }

    fn of(transport: Transport) -> Self {
        KubeCluster { transport: Arc::new(transport), recent: Arc::default() }
    }

    async fn send(&self, request: KubeRequest<'_>) -> Result<Object, ApiError> {
        self.send_with(request, None).await
    }

    async fn send_with(
        &self,
        request: KubeRequest<'_>,
        backoffs: Option<&[Duration]>,
    ) -> Result<Object, ApiError> {
        let settings = self.transport.settings();
        let mut networking = Cow::Borrowed(&settings.networking);
        if let Some(backoffs) = backoffs {
            let networking = networking.to_mut();
            networking.error_backoffs = backoffs.to_vec();
            networking.repeat_last_backoff = false;
        }
        let body = self.transport.fetch(&request, &networking).await?;
        Object::parse(body).map_err(|it| self.malformed(&it, &request.action))
    }

    /// Sends a PATCH. What the operator patches is watched: the same text follows in an event, or comes before.
    async fn send_patch(
        &self,
        request: KubeRequest<'_>,
        interrupt: Option<Interrupt<'_>>,
    ) -> Result<Arc<Object>, ApiError> {
        let settings = self.transport.settings();
        let next = self.recent.begin();
        let body = self.transport.fetch_unless(&request, &settings.networking, interrupt).await?;
        // Without the buffer of the connection.
        let text = Bytes::copy_from_slice(body.trim_ascii());
        next.parse(text).map_err(|it| self.malformed(&it, &request.action))
    }

    fn malformed(&self, error: &serde_json::Error, action: &Action<'_>) -> ApiError {
        self.transport.fail(RequestFailure::Malformed(error.to_string()), action)
    }

    async fn list_all(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
    ) -> Result<Vec<Object>, ApiError> {
        let settings = self.transport.settings();
        let path = url::collection(resource, namespace);
        let restrictions = Restrictions::of(resource, &settings.watching);
        let action =
            Action::Use { verb: "list", resource, namespace, name: None, subresource: None };
        let malformed = |it: serde_json::Error| self.malformed(&it, &action);
        let (mut objects, mut token) = (Vec::new(), None);
        loop {
            let request = watch::list_request(
                &path,
                &restrictions,
                settings.watching.chunk_size,
                token,
                action,
            );
            let body = self.transport.fetch(&request, &settings.networking).await?;
            let mut page = ListChunk::parse(&body).map_err(malformed)?;
            objects.reserve(page.len());
            for object in page.by_ref() {
                objects.push(object.map_err(malformed)?);
            }
            token = page.token;
            if token.is_none() {
                return Ok(objects);
            }
        }
    }
}

impl Cluster for KubeCluster {
    fn discover<'a>(
        &'a self,
        groups: &'a GroupFilter,
    ) -> BoxFuture<'a, Result<Discovered, ApiError>> {
        Box::pin(discovery::discover(&self.transport, groups))
    }

    fn stream(&self, target: StreamTarget) -> BoxStream<'static, Result<StreamEvent, ApiError>> {
        self.stream_with_pulse(target, Arc::default())
    }

    fn stream_with_pulse(
        &self,
        target: StreamTarget,
        pulse: Arc<Pulse>,
    ) -> BoxStream<'static, Result<StreamEvent, ApiError>> {
        watch::stream(Arc::clone(&self.transport), Arc::clone(&self.recent), target, pulse)
    }

    fn patch<'a>(
        &'a self,
        request: PatchRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Object>, ApiError>> {
        let PatchRequest { resource, namespace, name, subresource, kind, payload, interrupt } =
            request;
        let collection = url::collection(resource, namespace);
        let request = KubeRequest {
            of: RequestOrigin::Operator,
            accept: JSON,
            method: Method::PATCH,
            url: url::object(collection, name, subresource),
            content: Some((kind.content_type(), payload)),
            action: Action::Use {
                verb: "patch",
                resource,
                namespace,
                name: Some(name),
                subresource,
            },
            websocket: None,
        };
        Box::pin(self.send_patch(request, interrupt))
    }

    fn create<'a>(&'a self, request: NewObject<'a>) -> BoxFuture<'a, Result<Object, ApiError>> {
        let NewObject { resource, namespace, payload, backoffs } = request;
        let request = KubeRequest {
            of: RequestOrigin::Operator,
            accept: JSON,
            method: Method::POST,
            url: url::collection(resource, namespace),
            content: Some(("application/json", payload)),
            action: Action::Use {
                verb: "create",
                resource,
                namespace,
                name: None,
                subresource: None,
            },
            websocket: None,
        };
        Box::pin(self.send_with(request, backoffs))
    }

    fn get<'a>(&'a self, address: Address<'a>) -> BoxFuture<'a, Result<Object, ApiError>> {
        Box::pin(async move {
            let request = single(Method::GET, "get", address, None);
            let action = request.action;
            let object = self.send(request).await?;
            // The caller uses the body.
            object.body();
            let problem = match object.problem() {
                Some(problem) => problem.to_string(),
                None if object.header().name.as_deref() == Some(address.name) => return Ok(object),
                // The page of a proxy would count as a Lease without a holder, or as another object of this name.
                None => "it is not the requested object".to_owned(),
            };
            Err(self.transport.fail(RequestFailure::Malformed(problem), &action))
        })
    }

    fn replace<'a>(
        &'a self,
        address: Address<'a>,
        payload: Bytes,
    ) -> BoxFuture<'a, Result<Object, ApiError>> {
        Box::pin(self.send(single(Method::PUT, "update", address, Some(payload))))
    }

    fn list<'a>(
        &'a self,
        resource: &'a Resource,
        namespace: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Object>, ApiError>> {
        Box::pin(self.list_all(resource, namespace))
    }

    fn default_namespace(&self) -> &str {
        self.transport.default_namespace()
    }

    fn ask(&self, demand: Demand) -> BoxFuture<'_, Result<Bytes, ApiError>> {
        Box::pin(script_requests::send(&self.transport, demand))
    }

    fn exec(&self, execution: ContainerCommand) -> BoxFuture<'_, Result<Executed, ApiError>> {
        Box::pin(exec::exec(&self.transport, execution))
    }

    fn version(&self) -> BoxFuture<'_, Result<Bytes, ApiError>> {
        Box::pin(script_requests::version(&self.transport))
    }

    fn certificate(&self) -> BoxFuture<'_, Result<Option<Vec<u8>>, ApiError>> {
        Box::pin(self.transport.certificate())
    }

    fn configure(&self, settings: Arc<Settings>) {
        self.transport.configure(settings);
    }

    fn fence(&self, leadership: Leadership) {
        self.transport.fence(leadership);
    }
}

/// Creates a request about one object.
fn single<'a>(
    method: Method,
    verb: &'static str,
    address: Address<'a>,
    payload: Option<Bytes>,
) -> KubeRequest<'a> {
    let Address { resource, namespace, name } = address;
    KubeRequest {
        of: RequestOrigin::Operator,
        accept: JSON,
        method,
        url: url::object(url::collection(resource, namespace), name, None),
        content: payload.map(|it| ("application/json", it)),
        action: Action::Use { verb, resource, namespace, name: Some(name), subresource: None },
        websocket: None,
    }
}

impl fmt::Debug for KubeCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeCluster").finish_non_exhaustive()
    }
}
