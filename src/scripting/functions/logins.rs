//! `kopf.ConnectionInfo`, `kopf.login_with_kubeconfig`, `kopf.login_with_service_account`, the same in both languages.
//!
//! A script names a login method of the operator and never sees the credentials: it receives a token in place of them.

use serde_json::Value;

use crate::call::{Cause, Invocation};
use crate::logic::access::login::{Login, Method, native};

/// The login methods of the operator, by the functions that return them.
pub(crate) static NATIVE: [(&str, Method); 2] = [
    ("login_with_kubeconfig", Method::Kubeconfig),
    ("login_with_service_account", Method::ServiceAccount),
];

/// Implements `kopf.ConnectionInfo`: returns the fields if they are valid, so that mistakes are reported where they are made.
pub(crate) fn connection_info(fields: Value) -> Result<Value, String> {
    Login::parse(&fields).map(|_| fields).map_err(|it| format!("kopf.ConnectionInfo: {it}"))
}

/// Returns the token of one of [`NATIVE`]. With the `ctx` of a login handler, returns `None` if there are no such credentials: so
/// login methods can be tried one after another, as in Kopf.
pub(crate) fn login_with(method: &Method, invocation: Option<&Invocation>) -> Option<Value> {
    let is_there = match (invocation.map(|it| &it.cause), method) {
        (Some(Cause::Activity(cause)), Method::Kubeconfig) => cause.logins.kubeconfig,
        (Some(Cause::Activity(cause)), Method::ServiceAccount) => cause.logins.service_account,
        (Some(Cause::Activity(_)), Method::Info(_)) | (Some(Cause::Object(_)) | None, _) => true,
    };
    is_there.then(|| native(method))
}
