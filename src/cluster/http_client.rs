//! Sends single requests: over connections of its own, or with a [`kube::Client`]. The queue of that one has a task that passes each
//! request on, and wakes the caller twice.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, combinators::UnsyncBoxBody};
use hyper::body::Body;
use tower::{BoxError, Service, ServiceExt as _, service_fn, util::BoxCloneSyncService};

use super::fence::FencedBody;

/// The body of a response.
pub(super) type ResponseBody = UnsyncBoxBody<Bytes, kube::Error>;

/// Sends requests to one API server, with its connections and credentials.
#[derive(Clone)]
pub struct HttpClient {
    service: BoxCloneSyncService<Request<FencedBody>, Response<ResponseBody>, kube::Error>,
    default_namespace: String,
}

impl HttpClient {
    /// Creates a client that sends its requests through this service.
    pub(super) fn new<S, B>(service: S, default_namespace: &str) -> Self
    where
        S: Service<Request<FencedBody>, Response = Response<B>, Error: Into<BoxError>>,
        S: Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let boxed = |it: Response<B>| it.map(|body| body.map_err(error).boxed_unsync());
        let service = service.map_response(boxed).map_err(error);
        let service = BoxCloneSyncService::new(service);
        HttpClient { service, default_namespace: default_namespace.to_owned() }
    }

    /// Returns the namespace of the credentials.
    pub(super) fn default_namespace(&self) -> &str {
        &self.default_namespace
    }

    /// Sends a request. Returns once the head of the response is there.
    pub(super) async fn send(
        &self,
        request: Request<FencedBody>,
    ) -> kube::Result<Response<ResponseBody>> {
        let mut service = self.service.clone();
        service.ready().await?.call(request).await
    }
}

impl From<kube::Client> for HttpClient {
    fn from(client: kube::Client) -> Self {
        let default_namespace = client.default_namespace().to_owned();
        let send = move |request: Request<FencedBody>| {
            let client = client.clone();
            async move { client.send(request.map(FencedBody::into_body)).await }
        };
        HttpClient::new(service_fn(send), &default_namespace)
    }
}

/// Returns an error of a service as one of `kube`, which it may be already.
fn error(error: impl Into<BoxError>) -> kube::Error {
    error.into().downcast().map_or_else(kube::Error::Service, |it| *it)
}
