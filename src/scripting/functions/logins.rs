//! `kopf.ConnectionInfo`, `kopf.login_with_kubeconfig`, `kopf.login_with_service_account`, the same in both languages.
//!
//! A script names the operator's own logins and never sees their credentials: it gets a token of its own in the place of them.

use serde_json::Value;

use crate::call::{Cause, Invocation};
use crate::logic::access::login::{Login, Method, native};

/// The logins of the operator by the functions that give them.
pub(crate) const NATIVE: [(&str, Method); 2] = [
    ("login_with_kubeconfig", Method::Kubeconfig),
    ("login_with_service_account", Method::ServiceAccount),
];

/// `kopf.ConnectionInfo`: the fields as they are, if they can be one. Mistakes are told where they are made.
pub(crate) fn connection_info(fields: Value) -> Result<Value, String> {
    Login::parse(&fields).map(|_| fields).map_err(|it| format!("kopf.ConnectionInfo: {it}"))
}

/// One of [`NATIVE`]. With the `ctx` of a login handler, nothing if there is nothing to log in with: so the logins can be
/// tried one after another, as with Kopf.
pub(crate) fn login_with(method: &Method, invocation: Option<&Invocation>) -> Option<Value> {
    let is_there = match (invocation.map(|it| &it.cause), method) {
        (Some(Cause::Activity(cause)), Method::Kubeconfig) => cause.logins.kubeconfig,
        (Some(Cause::Activity(cause)), Method::ServiceAccount) => cause.logins.service_account,
        (Some(Cause::Activity(_)), Method::Info(_)) | (Some(Cause::Object(_)) | None, _) => true,
    };
    is_there.then(|| native(method))
}
