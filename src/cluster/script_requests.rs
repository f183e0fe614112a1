//! Sends the requests of scripts: see `ports/kube.rs`.

use bytes::Bytes;
use http::Method;

use super::{
    failure::Action,
    limits::RequestOrigin,
    request::{JSON, KubeRequest},
    transport::Transport,
    url,
};
use crate::ports::{ApiError, Demand, Verb};

/// The media types of pod logs, and of errors.
const ANYTHING: &str = "application/json, */*";

/// Sends a request. Returns the response body.
pub(super) async fn send(transport: &Transport, demand: Demand) -> Result<Bytes, ApiError> {
    let settings = transport.settings();
    transport.fetch(&request(&demand), &settings.networking).await
}

/// Requests the version of the server.
pub(super) async fn version(transport: &Transport) -> Result<Bytes, ApiError> {
    let settings = transport.settings();
    let request = KubeRequest::get("/version".into(), Action::Discover("/version"));
    transport.fetch(&request, &settings.networking).await
}

pub(super) fn request(demand: &Demand) -> KubeRequest<'_> {
    let Demand { verb, resource, namespace, name, subresource, query, content } = demand;
    let (namespace, subresource) = (namespace.as_deref(), subresource.as_deref());
    let collection = url::collection(resource, namespace);
    let path = match name {
        Some(name) => url::object(collection, name, subresource),
        None => collection,
    };
    KubeRequest {
        of: RequestOrigin::Script,
        method: match verb {
            Verb::Get | Verb::List => Method::GET,
            Verb::Create => Method::POST,
            Verb::Update => Method::PUT,
            Verb::Patch => Method::PATCH,
            Verb::Delete => Method::DELETE,
        },
        url: url::with_query(&path, query),
        accept: if subresource == Some("log") { ANYTHING } else { JSON },
        content: content.clone(),
        action: Action::Use {
            verb: verb.as_str(),
            resource,
            namespace,
            name: name.as_deref(),
            subresource,
        },
        websocket: None,
    }
}
