//! `kopf test --record-rbac`: the permissions that an operator has used.

use std::{fs, path::Path};

use kopf_apiserver::{ApiServer, User};
use parking_lot::Mutex;

use super::{
    account::Account,
    output::joined,
    permissions::{PermissionScope, PermissionTarget, Permissions},
    roles::documents,
};
use crate::cli::{dev::NAMESPACE, options::ScopeOption, report::Report};

/// The name of the account in the roles; edit it, or use `kopf rbac generate`.
const NAME: &str = "my-operator";
const REASON: &str = "used in tests";

/// The permissions that the operators of all tests have used.
#[derive(Debug)]
pub(in crate::cli) struct PermissionRecord {
    user: User,
    used: Mutex<(Permissions, u64)>,
}

impl Default for PermissionRecord {
    fn default() -> Self {
        PermissionRecord { user: User::service_account(NAMESPACE, NAME), used: Mutex::default() }
    }
}

impl PermissionRecord {
    /// Returns the default user of operators.
    pub(in crate::cli) fn user(&self) -> &User {
        &self.user
    }

    /// Adds the permissions that this user has used on a server.
    pub(in crate::cli) fn add(&self, server: &ApiServer, user: &User) {
        let accesses = server.accesses();
        let mut used = self.used.lock();
        used.1 += accesses.dropped;
        for access in accesses.counts.keys().filter(|it| it.user == user.name) {
            let about = &access.attributes;
            // Every authenticated user may discover resources.
            if about.resource.is_empty() || !access.allowed {
                continue;
            }
            let mut resource = about.resource.clone();
            if !about.subresource.is_empty() {
                resource = format!("{resource}/{}", about.subresource);
            }
            let target = PermissionTarget::new(PermissionScope::Served, &about.group, &resource);
            used.0.add(target, &[&about.verb], REASON);
        }
    }

    /// Writes a service account and its roles as YAML. Fails if the record of the used permissions is not complete.
    pub(in crate::cli) fn write(&self, path: &Path) -> Result<(), Report> {
        let used = self.used.lock();
        if used.1 > 0 {
            let problem = "the tests use too many different objects to record all permissions";
            return Err(Report::failure(problem).with_hint("record fewer tests, with --only NAME"));
        }
        let account = Account { name: NAME, namespace: NAMESPACE };
        let account_object = format!(
            "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {NAME}\n  namespace: {NAMESPACE}\n"
        );
        let roles = documents(&used.0, &ScopeOption::Cluster, &account);
        let yaml = roles.iter().map(|(_, yaml)| yaml.as_str());
        let yaml = joined([account_object.as_str()].into_iter().chain(yaml));
        fs::write(path, yaml)
            .map_err(|it| Report::failure(format!("cannot write {}: {it}", path.display())))
    }
}
