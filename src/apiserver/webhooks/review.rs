//! `AdmissionReview`: the request to a webhook, and its response.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde_json::{Value, json};

use super::{AdmissionRequest, hook::Hook};
use crate::object;

/// The response of a webhook.
#[derive(Debug, Default)]
pub(super) struct ReviewResponse {
    /// `None` if the webhook allows the request.
    pub(super) denial: Option<Denial>,
    pub(super) warnings: Vec<String>,
    patch: Option<json_patch::Patch>,
}

/// The reason for which a webhook refuses a request.
#[derive(Debug)]
pub(super) struct Denial {
    pub(super) code: u16,
    pub(super) reason: String,
    pub(super) message: String,
}

impl ReviewResponse {
    /// Returns the object with the patch of the webhook.
    pub(super) fn patched(&self, object: &Value) -> Result<Value, String> {
        let mut patched = object.clone();
        if let Some(patch) = &self.patch {
            json_patch::patch(&mut patched, patch).map_err(|it| it.to_string())?;
        }
        Ok(patched)
    }
}

/// Returns the body of the request to a webhook.
pub(super) fn body(
    uid: &str,
    request: &AdmissionRequest<'_>,
    hook: &Hook,
    object: Option<&Value>,
) -> Value {
    let def = &request.view.kind.def;
    let kind = |version: &str| json!({ "group": def.group, "version": version, "kind": def.kind });
    let resource =
        |version: &str| json!({ "group": def.group, "version": version, "resource": def.plural });
    let seen = |object: Option<&Value>| {
        let mut seen = object?.clone();
        object::put(&mut seen, "apiVersion", Some(def.api_version(&hook.version).into()));
        Some(seen)
    };
    let options = match request.operation {
        "CREATE" => "CreateOptions",
        "UPDATE" => "UpdateOptions",
        _ => "DeleteOptions",
    };
    let mut content = json!({
        "uid": uid,
        "kind": kind(&hook.version),
        "resource": resource(&hook.version),
        "requestKind": kind(&request.view.version),
        "requestResource": resource(&request.view.version),
        "name": request.name_of(object.or(request.old)),
        "namespace": request.namespace,
        "operation": request.operation,
        "userInfo": request.user.to_json(),
        "object": seen(object),
        "oldObject": seen(request.old),
        "dryRun": request.dry,
        "options": { "kind": options, "apiVersion": "meta.k8s.io/v1" },
    });
    if let Some(fields) = content.as_object_mut() {
        fields.retain(|_, value| value != "");
        if !request.subresource.is_empty() {
            fields.insert("subResource".into(), request.subresource.into());
            fields.insert("requestSubResource".into(), request.subresource.into());
        }
    }
    json!({
        "kind": "AdmissionReview",
        "apiVersion": format!("admission.k8s.io/{}", hook.review_version),
        "request": content,
    })
}

/// Parses the response of a webhook.
pub(super) fn verdict(uid: &str, body: &Bytes) -> Result<ReviewResponse, String> {
    let review: Value = serde_json::from_slice(body).map_err(|it| it.to_string())?;
    let response = review.get("response").filter(|it| it.is_object());
    let response = response.ok_or("webhook response was absent")?;
    let text = |path: &str| response.pointer(path).and_then(Value::as_str).unwrap_or_default();
    if text("/uid") != uid {
        return Err(format!("expected response.uid={uid:?}, got {:?}", text("/uid")));
    }
    let allowed = response.get("allowed").and_then(Value::as_bool).unwrap_or(false);
    let code = response.pointer("/status/code").and_then(Value::as_u64).unwrap_or(0);
    let denial = Denial {
        // A denial is an error, even if the webhook returns another status code.
        code: u16::try_from(code).ok().filter(|it| (400..600).contains(it)).unwrap_or(400),
        reason: text("/status/reason").into(),
        message: text("/status/message").into(),
    };
    let patch = Some(text("/patch")).filter(|it| !it.is_empty() && allowed);
    Ok(ReviewResponse {
        denial: (!allowed).then_some(denial),
        warnings: object::strings(response, "/warnings"),
        patch: patch.map(|it| decode(it, text("/patchType"))).transpose()?,
    })
}

fn decode(patch: &str, kind: &str) -> Result<json_patch::Patch, String> {
    if kind != "JSONPatch" {
        return Err(format!(
            "webhook returned response.patch but not response.patchType: {kind:?}"
        ));
    }
    let text = BASE64_STANDARD.decode(patch).map_err(|it| it.to_string())?;
    serde_json::from_slice(&text).map_err(|it| it.to_string())
}
