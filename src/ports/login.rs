//! How the credentials of scripts reach the cluster.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::BoxFuture;

/// Asks the login handlers of the scripts: what each of them returned, by its id; those that returned nothing are left out.
/// The error says which handlers failed and why.
pub type AskLogin = Arc<
    dyn Fn(NativeLogins) -> BoxFuture<'static, Result<BTreeMap<Arc<str>, Value>, String>>
        + Send
        + Sync,
>;

/// The logins that need no script, and whether they have anything to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NativeLogins {
    /// `KUBECONFIG` is set, or `~/.kube/config` is there.
    pub kubeconfig: bool,
    /// There is the token of a service account.
    pub service_account: bool,
}
