//! Other subresources: logs, evictions and bindings of Pods, finalizers of namespaces, approvals of certificates.

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::{
    ApiServer, Shared,
    controllers::{LogParams, Logs, logs},
    native, rbac,
    refusal::Refusal,
    reply::Reply,
    request::{body::decode_part, query::Query},
    resource::ResourceDef,
    store::StoreKey,
    streaming,
    verbs::{ApiCall, delete, modify, read, rules::WritablePart},
};

const REQUESTS: &str = "certificatesigningrequests.certificates.k8s.io";

/// Processes a request for such a subresource, if it exists.
pub(crate) async fn respond(call: &ApiCall<'_>, verb: &str, name: &str) -> Result<Reply, Refusal> {
    let def = &call.view.kind.def;
    let subresource = call.target.subresource.as_deref().unwrap_or_default();
    let known = native::subresources(&def.group, &def.plural);
    let found = known.iter().find(|it| it.name == subresource).filter(|_| def.native);
    let Some(found) = found else {
        return if def.native {
            Err(Refusal::unknown_resource())
        } else {
            Err(Refusal::not_found(def, name))
        };
    };
    let asked = if verb == "post" { "create" } else { verb };
    if !found.verbs.contains(&asked) {
        return Err(Refusal::method_not_allowed());
    }
    match (def.qualified().as_str(), subresource, verb) {
        ("pods", "log", "get") => log(call, name),
        ("pods", "exec" | "attach" | "portforward", "get" | "post") => {
            streaming::respond(call, name, subresource)
        }
        ("pods", "eviction", "post") => evict(call, name),
        ("pods", "binding", "post") => bind(call, name).await,
        // An approval writes conditions in the status, as the signer does.
        (REQUESTS, "approval", "get") => read::get(call, name),
        (REQUESTS, "approval", "update") => modify::update(call, WritablePart::Status, name).await,
        (REQUESTS, "approval", "patch") => modify::patch(call, WritablePart::Status, name).await,
        ("serviceaccounts", "token", "post") => rbac::tokens::request(call, name),
        ("namespaces", "finalize", "update") => {
            modify::update(call, WritablePart::Finalize, name).await
        }
        _ => Err(Refusal::not_implemented(&format!("{}/{subresource}", def.plural))),
    }
}

/// Returns the log of a Pod; with `follow`, also its later lines.
fn log(call: &ApiCall<'_>, name: &str) -> Result<Reply, Refusal> {
    let params = params(&call.query);
    let key = call.key(name);
    let pod = call.shared.store().get(&key).map(|it| call.view.tree(&it));
    let node = pod.as_ref().and_then(|it| it.pointer("/spec/nodeName")).and_then(Value::as_str);
    if pod.is_some() && node.unwrap_or_default().is_empty() {
        // The Pod is not on a node yet; the real server returns an empty log, too.
        return Ok(Reply::Text(200, "text/plain", Bytes::new()));
    }
    if let Some(reply) = streaming::log(call, name)? {
        return Ok(reply);
    }
    let (first, revision) = lines(call.shared, &key, &params, call)?;
    if first.complete || !call.query.flag("follow") {
        let text = in_lines(&first.lines);
        return Ok(Reply::Text(200, "text/plain", Bytes::from(text)));
    }
    // New lines come with changes of the Pod. Lines that were sent are counted, not compared.
    let server = ApiServer(Arc::clone(call.shared));
    let state = (server, key, params, first, revision, 0_usize);
    let sent = stream::unfold(Some(state), |state| async move {
        let (server, key, params, mut now, mut revision, sent) = state?;
        while now.lines.len() <= sent && !now.complete {
            server.moved(revision).await;
            let pod = server.get(&key.resource, &key.place.namespace, &key.place.name)?;
            revision = server.revision();
            now = logs(&pod, &params, &server.now()).ok()?;
        }
        let new = in_lines(now.lines.get(sent..).unwrap_or_default());
        let sent = now.lines.len();
        let next = (!now.complete).then_some((server, key, params, now, revision, sent));
        Some((Bytes::from(new), next))
    });
    Ok(Reply::Stream("text/plain", sent.boxed()))
}

fn in_lines(lines: &[String]) -> String {
    lines.iter().flat_map(|it| [it.as_str(), "\n"]).collect()
}

fn lines(
    shared: &Shared,
    key: &StoreKey,
    params: &LogParams,
    call: &ApiCall<'_>,
) -> Result<(Logs, u64), Refusal> {
    let store = shared.store();
    let pod =
        store.get(key).ok_or_else(|| Refusal::not_found(&call.view.kind.def, &key.place.name))?;
    Ok((logs(&call.view.tree(&pod), params, &store.now())?, store.revision))
}

fn params(query: &Query) -> LogParams {
    let number = |name: &str| query.text(name).and_then(|it| it.parse().ok());
    LogParams {
        container: query.text("container").map(String::from),
        previous: query.flag("previous"),
        since_time: query.text("sinceTime").map(String::from),
        since_seconds: number("sinceSeconds"),
        tail_lines: number("tailLines"),
        limit_bytes: number("limitBytes"),
        timestamps: query.flag("timestamps"),
    }
}

/// Deletes a Pod, if its disruption budget allows it.
fn evict(call: &ApiCall<'_>, name: &str) -> Result<Reply, Refusal> {
    let body = body(call, "io.k8s.api.policy.v1beta1.Eviction")?;
    let options = body.get("deleteOptions").cloned().unwrap_or_else(|| json!({}));
    delete::evicted(call, name, &options)?;
    Ok(Reply::Document(201, success(201)))
}

/// Schedules a Pod to a node.
async fn bind(call: &ApiCall<'_>, name: &str) -> Result<Reply, Refusal> {
    let body = body(call, "io.k8s.api.core.v1.Binding")?;
    let node = body.pointer("/target/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let def = &call.view.kind.def;
    modify::write(call, WritablePart::Everything, name, |pod| {
        let bound = pod.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
        if !bound.is_empty() {
            let why = format!("pod {name} is already assigned to node {bound:?}");
            let def = ResourceDef { plural: format!("{}/binding", def.plural), ..def.clone() };
            return Err(Refusal::conflict_because(&def, name, &why));
        }
        let mut pod = pod.clone();
        let condition = json!({ "type": "PodScheduled", "status": "True" });
        json_patch::merge(
            &mut pod,
            &json!({
                "spec": { "nodeName": node },
                "status": { "conditions": [condition] },
            }),
        );
        Ok(pod)
    })
    .await?;
    Ok(Reply::Document(201, success(201)))
}

fn body(call: &ApiCall<'_>, definition: &str) -> Result<Value, Refusal> {
    let content_type = call.request.header(CONTENT_TYPE);
    decode_part(content_type, &call.request.body, definition).map_err(|error| {
        Refusal::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
    })
}

fn success(code: u16) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code })
}
