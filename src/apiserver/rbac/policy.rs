//! The policy: all roles and bindings, parsed once per change.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
};

use serde_json::Value;

use crate::sorted::CollectSorted as _;
use crate::{
    labels, object,
    rbac::{Attributes, User, rule::PolicyRule},
};

/// The result of an authorization.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) allowed: bool,
    /// The binding that allows the request, or the missing roles; often empty.
    pub(crate) reason: String,
}

/// The rules of a user, and the missing roles that bindings refer to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Permissions {
    pub(crate) rules: Vec<PolicyRule>,
    pub(crate) problems: BTreeSet<String>,
}

/// All roles and bindings, indexed.
#[derive(Debug, Default)]
pub(crate) struct Policy {
    /// By namespace and name; the namespace of cluster roles is empty.
    roles: BTreeMap<(String, String), Vec<PolicyRule>>,
    /// By namespace; the namespace of cluster role bindings is empty.
    bindings: BTreeMap<String, Vec<Binding>>,
}

/// The objects that a policy is made from.
#[derive(Debug, Default)]
pub(crate) struct RbacObjects {
    pub(crate) cluster_roles: Vec<Value>,
    pub(crate) roles: Vec<Value>,
    pub(crate) cluster_bindings: Vec<Value>,
    pub(crate) bindings: Vec<Value>,
}

/// A role that is bound to subjects.
#[derive(Debug)]
pub(crate) struct Binding {
    name: String,
    /// The namespace; empty for all.
    namespace: String,
    role: RoleRef,
    subjects: Vec<BindingSubject>,
}

/// The role that a binding refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RoleRef {
    pub(crate) is_cluster: bool,
    pub(crate) name: String,
}

#[derive(Debug)]
struct BindingSubject {
    kind: String,
    namespace: String,
    name: String,
}

impl Policy {
    pub(crate) fn new(objects: &RbacObjects) -> Self {
        let place = |it: &Value| {
            (object::meta(it, "namespace").to_owned(), object::meta(it, "name").to_owned())
        };
        let cluster = objects.cluster_roles.iter();
        let mut roles: BTreeMap<_, _> = cluster
            .map(|it| (place(it), aggregated(it, &objects.cluster_roles, &mut BTreeSet::new())))
            .collect_map();
        roles.extend(objects.roles.iter().map(|it| (place(it), PolicyRule::all(it))));
        let mut bindings: BTreeMap<String, Vec<Binding>> = BTreeMap::new();
        for it in objects.cluster_bindings.iter().chain(&objects.bindings) {
            let binding = Binding::of(it);
            bindings.entry(binding.namespace.clone()).or_default().push(binding);
        }
        Self { roles, bindings }
    }

    /// Decides whether a user may do this.
    pub(crate) fn decide(&self, user: &User, wanted: &Attributes) -> Decision {
        if user.is_master() {
            return Decision { allowed: true, reason: String::new() };
        }
        let mut problems = BTreeSet::new();
        let found = self.visit(user, &wanted.namespace, |binding, subject, rules| match rules {
            Err(problem) => {
                problems.insert(problem);
                ControlFlow::Continue(())
            }
            Ok(rules) if rules.iter().any(|it| it.allows(wanted)) => {
                ControlFlow::Break(binding.allowed_by(subject))
            }
            Ok(_) => ControlFlow::Continue(()),
        });
        match found {
            ControlFlow::Break(reason) => Decision { allowed: true, reason },
            ControlFlow::Continue(()) if problems.is_empty() => Decision::default(),
            ControlFlow::Continue(()) => {
                Decision { allowed: false, reason: format!("RBAC: {}", listed(&problems)) }
            }
        }
    }

    /// Returns the permissions of a user in a namespace, by the rules of all roles.
    pub(crate) fn permissions(&self, user: &User, namespace: &str) -> Permissions {
        let mut permissions = Permissions::default();
        if user.is_master() {
            permissions.rules.extend(PolicyRule::everything());
        }
        let all = self.visit(user, namespace, |_, _, rules| {
            match rules {
                Ok(rules) => permissions.rules.extend_from_slice(rules),
                Err(problem) => {
                    permissions.problems.insert(problem);
                }
            }
            ControlFlow::<()>::Continue(())
        });
        // The visitor never stops early.
        debug_assert!(all.is_continue());
        permissions
    }

    /// Returns the rules of a role. The error is the message that it does not exist.
    pub(crate) fn rules(&self, role: &RoleRef, namespace: &str) -> Result<&[PolicyRule], String> {
        let namespace = if role.is_cluster { "" } else { namespace };
        let found = self.roles.get(&(namespace.to_owned(), role.name.clone()));
        found.map(Vec::as_slice).ok_or_else(|| {
            let kind = if role.is_cluster { "clusterrole" } else { "role" };
            format!("{kind}.rbac.authorization.k8s.io {:?} not found", role.name)
        })
    }

    fn visit<B>(
        &self,
        user: &User,
        namespace: &str,
        mut see: impl FnMut(&Binding, &BindingSubject, Result<&[PolicyRule], String>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let namespaces = if namespace.is_empty() { vec![""] } else { vec!["", namespace] };
        for binding in namespaces.into_iter().filter_map(|it| self.bindings.get(it)).flatten() {
            let Some(subject) = binding.subjects.iter().find(|it| it.is(user, &binding.namespace))
            else {
                continue;
            };
            see(binding, subject, self.rules(&binding.role, &binding.namespace))?;
        }
        ControlFlow::Continue(())
    }
}

impl RoleRef {
    /// Parses the reference in a binding.
    pub(crate) fn of(binding: &Value) -> Self {
        let is_cluster = object::text(binding, "/roleRef/kind") == "ClusterRole";
        Self { is_cluster, name: object::text(binding, "/roleRef/name").into() }
    }

    fn kind(&self) -> &'static str {
        if self.is_cluster { "ClusterRole" } else { "Role" }
    }
}

impl Binding {
    fn of(binding: &Value) -> Self {
        let subject = |it: &Value| BindingSubject {
            kind: object::text(it, "/kind").into(),
            namespace: object::text(it, "/namespace").into(),
            name: object::text(it, "/name").into(),
        };
        Self {
            name: object::meta(binding, "name").into(),
            namespace: object::meta(binding, "namespace").into(),
            role: RoleRef::of(binding),
            subjects: object::list(binding, "/subjects").iter().map(subject).collect(),
        }
    }

    fn allowed_by(&self, subject: &BindingSubject) -> String {
        let (role, kind) = (&self.role.name, self.role.kind());
        let binding = match self.namespace.as_str() {
            "" => format!("ClusterRoleBinding {:?}", self.name),
            namespace => format!("RoleBinding {:?}", format!("{}/{namespace}", self.name)),
        };
        let to = subject.text(&self.namespace);
        format!("RBAC: allowed by {binding} of {kind} {role:?} to {to}")
    }
}

impl BindingSubject {
    fn is(&self, user: &User, home: &str) -> bool {
        match self.kind.as_str() {
            "User" => user.name == self.name,
            "Group" => user.is_in(&self.name),
            "ServiceAccount" => {
                user.as_service_account() == Some((self.namespace(home), self.name.as_str()))
            }
            _ => false,
        }
    }

    fn namespace<'a>(&'a self, home: &'a str) -> &'a str {
        if self.namespace.is_empty() { home } else { &self.namespace }
    }

    fn text(&self, home: &str) -> String {
        let name = match self.kind.as_str() {
            "ServiceAccount" => format!("{}/{}", self.name, self.namespace(home)),
            _ => self.name.clone(),
        };
        format!("{} {name:?}", self.kind)
    }
}

/// Returns the rules of a cluster role. An aggregated one has those of all roles that match its selectors; in a real cluster, a
/// controller writes them into the role a moment later.
pub(crate) fn aggregated(
    role: &Value,
    all: &[Value],
    seen: &mut BTreeSet<String>,
) -> Vec<PolicyRule> {
    let selectors = object::list(role, "/aggregationRule/clusterRoleSelectors");
    if selectors.is_empty() {
        return PolicyRule::all(role);
    }
    let mut rules: Vec<PolicyRule> = Vec::new();
    for other in all {
        let name = object::meta(other, "name");
        let no_labels = Value::Null;
        let labels = other.pointer("/metadata/labels").unwrap_or(&no_labels);
        let is_meant = selectors.iter().any(|it| labels::selects(Some(it), labels));
        let is_itself = name == object::meta(role, "name");
        if is_meant && !is_itself && seen.insert(name.to_owned()) {
            let others = aggregated(other, all, seen);
            rules.extend(others.into_iter().filter(|it| !rules.contains(it)).collect::<Vec<_>>());
        }
    }
    rules
}

/// Joins several problems as Go does.
pub(crate) fn listed(problems: &BTreeSet<String>) -> String {
    let texts: Vec<&str> = problems.iter().map(String::as_str).collect();
    match texts.as_slice() {
        [one] => (*one).to_owned(),
        several => format!("[{}]", several.join(", ")),
    }
}
