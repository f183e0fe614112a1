//! The routes of all documents: discovery, OpenAPI, health.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, IF_NONE_MATCH};
use serde_json::Value;

use super::{aggregated, document::CompressedDocument, health};
use crate::{
    openapi::OpenApi,
    refusal::Refusal,
    reply::Reply,
    request::{
        ApiRequest,
        accept::{self, Accept, EndpointKind, ResponseShape},
        query::Query,
    },
    resource::kind::Kind,
};

/// Returns the document at a path; `None` for an unknown path. Versions whose document is refused are stale in aggregated
/// discovery.
pub(crate) fn respond(
    kinds: &[Arc<Kind>],
    openapi: &OpenApi,
    request: &ApiRequest,
    is_refused: impl Fn(&str) -> bool,
) -> Option<Reply> {
    let query = Query::parse(&request.query);
    if let Some(text) = health::respond(&request.path, &query) {
        let part = request.path.trim_start_matches('/').contains('/');
        return Some(if part {
            Reply::Text(200, health::CONTENT_TYPE, Bytes::from(text))
        } else {
            Reply::Plain(200, Bytes::from(text))
        });
    }
    if request.path.starts_with("//") {
        return None;
    }
    let path: Vec<&str> = request.path.trim_matches('/').split('/').collect();
    let accept = request.header(ACCEPT);
    let tagged = |document: CompressedDocument| Reply::Tagged {
        known: document.is_known(request.header(IF_NONE_MATCH)),
        packed: request.header(ACCEPT_ENCODING).contains("gzip"),
        document,
    };
    let found = match path.as_slice() {
        [""] => Ok(Reply::Document(200, super::paths(kinds))),
        ["version"] => {
            // Pretty-printed for every client.
            let text = serde_json::to_vec_pretty(&super::server_version()).unwrap_or_default();
            Ok(Reply::Text(200, "application/json", Bytes::from(text)))
        }
        ["openapi", "v2"] => Ok(match openapi.v2(kinds, accept) {
            Some(document) => tagged(document),
            None => Reply::Text(406, "text/plain; charset=utf-8", Bytes::new()),
        }),
        ["openapi", "v3"] => Ok(tagged(openapi.v3_index(kinds)?)),
        ["openapi", "v3", "api", version] => Ok(tagged(openapi.v3(kinds, "", version)?)),
        ["openapi", "v3", "apis", group, version] => Ok(tagged(openapi.v3(kinds, group, version)?)),
        ["api" | "apis"] => {
            discovery(kinds, &request.path, accept).map(|(form, mut body)| match form {
                Some(form) => {
                    aggregated::mark_stale(&mut body, is_refused);
                    tagged(CompressedDocument::new(form, body.to_string().as_bytes()))
                }
                None => Reply::Document(200, body),
            })
        }
        ["apis", group] => document(accept, false, super::group(kinds, group)?),
        ["apis", group, version] => {
            let native = kinds.iter().any(|it| it.def.native && it.def.group == *group);
            match super::resources(kinds, group, version) {
                Some(found) => document(accept, native, found),
                // Groups of the server itself respond with a `Status`.
                None if native => Err(Refusal::unknown_resource()),
                None => return None,
            }
        }
        ["api", version] => match super::resources(kinds, "", version) {
            Some(found) => document(accept, true, found),
            None => Err(Refusal::unknown_resource()),
        },
        _ => return None,
    };
    let found = found.unwrap_or_else(Reply::from);
    Some(if request.method == "GET" { found } else { Refusal::method_not_allowed().into() })
}

/// Returns `/api` or `/apis`; with the content type if it is aggregated discovery.
fn discovery(
    kinds: &[Arc<Kind>],
    path: &str,
    accept: &str,
) -> Result<(Option<&'static str>, Value), Refusal> {
    let core = path.trim_matches('/') == "api";
    if core {
        accept::check_routed(accept)?;
    }
    let accept = Accept::parse(accept, EndpointKind::Discovery)?;
    Ok(match (accept.shape, core) {
        (ResponseShape::Groups, true) => (Some(accept.content_type()), aggregated::core(kinds)),
        (ResponseShape::Groups, false) => (Some(accept.content_type()), aggregated::groups(kinds)),
        (_, true) => (None, super::core_versions(None)),
        (_, false) => (None, super::groups(kinds)),
    })
}

/// Returns a document that has only one form. `routed`: the path is below a native group, where the router negotiates first.
fn document(accept: &str, routed: bool, body: Value) -> Result<Reply, Refusal> {
    if routed {
        accept::check_routed(accept)?;
    }
    Accept::parse(accept, EndpointKind::Document)?;
    Ok(Reply::Document(200, body))
}
