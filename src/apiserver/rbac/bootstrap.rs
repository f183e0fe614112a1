//! The default roles and bindings of a cluster with RBAC.
//!
//! `bootstrap.json` has those for users and for all programs, recorded from a new cluster. Roles for components that this server
//! does not have are left out.

use serde_json::Value;

use crate::ApiServer;

const RECORDED: &str = include_str!("bootstrap.json");

/// Creates the default roles and bindings, unless a restored cluster already has them.
pub(crate) fn create(server: &ApiServer) {
    let recorded: Value = serde_json::from_str(RECORDED).unwrap_or_default();
    for plural in ["clusterroles", "clusterrolebindings"] {
        let objects = recorded.get(plural).and_then(Value::as_array);
        for object in objects.into_iter().flatten() {
            let resource = format!("{plural}.rbac.authorization.k8s.io");
            drop(server.create(&resource, object.clone()));
        }
    }
}
