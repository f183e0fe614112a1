//! Users and their permissions: authentication, role-based access control, and reviews of both.
//!
//! Every request has a user: the one of an in-process client ([`ApiServer::client_of`]), the service account of its bearer token,
//! or the administrator. Impersonation headers replace it. With RBAC, a user may do what the bound roles allow; without it,
//! everything. In both cases, all accesses are recorded ([`ApiServer::accesses`]).
//!
//! | file | job |
//! |---|---|
//! | `user.rs` | users and their groups |
//! | `authentication.rs` | credentials and impersonation of a request |
//! | `tokens.rs` | tokens of service accounts |
//! | `attributes.rs` | the attributes of a request, and its 403 |
//! | `rule.rs`, `policy.rs` | rules, roles and bindings |
//! | `escalation.rs` | prevention of privilege escalation |
//! | `reviews.rs` | access, rules, token and user reviews |
//! | `accesses.rs` | the record |
//! | `bootstrap.rs` | the default roles of a cluster |

mod accesses;
mod attributes;
mod authentication;
mod bootstrap;
mod client;
pub(crate) mod escalation;
mod policy;
pub(crate) mod reviews;
mod rule;
#[cfg(test)]
mod tests;
pub(crate) mod tokens;
mod user;

use std::sync::Arc;

use parking_lot::Mutex;

use self::policy::{Decision, Policy, RbacObjects};
pub use self::{
    accesses::{AccessRecord, Accesses},
    attributes::Attributes,
    client::ClientOf,
    user::User,
};
pub(crate) use self::{authentication::authenticate, bootstrap::create as create_bootstrap_roles};
use crate::{
    ApiServer, Shared, refusal::Refusal, request::ApiRequest, store::Store, verbs::ApiCall,
};

const CLUSTER_ROLES: &str = "clusterroles.rbac.authorization.k8s.io";
const ROLES: &str = "roles.rbac.authorization.k8s.io";
const CLUSTER_BINDINGS: &str = "clusterrolebindings.rbac.authorization.k8s.io";
const BINDINGS: &str = "rolebindings.rbac.authorization.k8s.io";

/// The state of authorization besides the stored objects.
#[derive(Debug, Default)]
pub(crate) struct Rbac {
    /// Roles are enforced; otherwise everything is allowed.
    enabled: bool,
    /// The key that signs tokens.
    key: [u8; 8],
    /// The latest policy, and the version of its newest object.
    policy: Mutex<Option<(u64, Arc<Policy>)>>,
    accesses: Mutex<Accesses>,
}

impl Rbac {
    /// Derives the signing key from the seed, so that servers with different seeds have different keys.
    pub(crate) fn new(enabled: bool, seed: Option<u64>) -> Self {
        Self { enabled, key: seed.unwrap_or_default().to_be_bytes(), ..Self::default() }
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled
    }
}

impl ApiServer {
    /// Returns all recorded accesses.
    pub fn accesses(&self) -> Accesses {
        self.0.rbac.accesses.lock().clone()
    }

    /// Returns a client inside of this process whose requests have this user.
    pub fn client_of(&self, user: User) -> ClientOf {
        ClientOf::new(self.clone(), user)
    }
}

/// Records a request, and refuses it if its user lacks the permission.
pub(crate) fn authorize(shared: &Shared, request: &ApiRequest) -> Result<(), Refusal> {
    let wanted = Attributes::of(&request.method, &request.path, &request.query);
    check(shared, &request.user, &wanted)
}

/// Refuses a request that creates an object by another method than POST, if its user may not create it.
pub(crate) fn authorize_creation(shared: &Shared, request: &ApiRequest) -> Result<(), Refusal> {
    let wanted = Attributes::of(&request.method, &request.path, &request.query);
    check(shared, &request.user, &Attributes { verb: "create".into(), ..wanted })
}

fn check(shared: &Shared, user: &User, wanted: &Attributes) -> Result<(), Refusal> {
    let Decision { allowed, reason } = decide(shared, user, wanted);
    record(shared, user, wanted.clone(), allowed);
    if allowed { Ok(()) } else { Err(wanted.forbidden(user, &reason)) }
}

fn record(shared: &Shared, user: &User, attributes: Attributes, allowed: bool) {
    let access = AccessRecord { user: user.name.clone(), attributes, allowed };
    shared.rbac.accesses.lock().add(access);
}

/// Refuses a GET request that upgrades the connection, if its user may not create the subresource: it runs something. A POST
/// request needs this permission anyway.
pub(crate) fn authorize_upgrade(call: &ApiCall<'_>, name: &str) -> Result<(), Refusal> {
    let (shared, request) = (call.shared, call.request);
    if request.method == "POST" {
        return Ok(());
    }
    let wanted = Attributes::of(&request.method, &request.path, &request.query);
    let wanted = Attributes { verb: "create".into(), ..wanted };
    let decision = decide(shared, &request.user, &wanted);
    record(shared, &request.user, wanted, decision.allowed);
    if decision.allowed {
        return Ok(());
    }
    // The real server shows only the reason, which is often empty.
    Err(Refusal::forbidden(&call.view.kind.def, name, &decision.reason))
}

/// Decides whether a user may do something.
fn decide(shared: &Shared, user: &User, wanted: &Attributes) -> Decision {
    if !shared.rbac.enabled {
        return Decision { allowed: true, reason: String::new() };
    }
    policy(shared).decide(user, wanted)
}

/// Returns the policy of the current roles and bindings.
fn policy(shared: &Shared) -> Arc<Policy> {
    let store = shared.store();
    let tables = [CLUSTER_ROLES, ROLES, CLUSTER_BINDINGS, BINDINGS].map(|it| store.tables.get(it));
    let version = tables.iter().flatten().map(|it| it.history.latest()).max().unwrap_or(0);
    let mut cached = shared.rbac.policy.lock();
    if let Some((_, policy)) = cached.as_ref().filter(|(of, _)| *of == version) {
        return Arc::clone(policy);
    }
    let policy = Arc::new(Policy::new(&RbacObjects {
        cluster_roles: all(&store, CLUSTER_ROLES),
        roles: all(&store, ROLES),
        cluster_bindings: all(&store, CLUSTER_BINDINGS),
        bindings: all(&store, BINDINGS),
    }));
    *cached = Some((version, Arc::clone(&policy)));
    policy
}

fn all(store: &Store, resource: &str) -> Vec<serde_json::Value> {
    let objects = store.tables.get(resource).into_iter().flat_map(|it| it.objects.values());
    objects.map(|it| it.tree("", "")).collect()
}
