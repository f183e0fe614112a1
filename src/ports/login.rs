//! Passes the credentials from scripts to the cluster adapter.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::BoxFuture;

/// A function that calls the login handlers of the scripts. Returns the result of each by its id, without those that returned nil or null.
/// The error names the handlers that failed, and why.
pub type AskLogin = Arc<
    dyn Fn(NativeLogins) -> BoxFuture<'static, Result<BTreeMap<Arc<str>, Value>, String>>
        + Send
        + Sync,
>;

/// The native logins that have a source to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NativeLogins {
    /// `KUBECONFIG` is set, or `~/.kube/config` exists.
    pub kubeconfig: bool,
    /// There is a token of a service account.
    pub service_account: bool,
}
