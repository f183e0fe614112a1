//! Permissions as roles and bindings, as YAML: each rule has a comment with its reasons.

use std::fmt::Write as _;

use serde_json::Value;

use super::{
    account::Account,
    permissions::{PermissionScope, Permissions, RoleRule},
};
use crate::cli::options::ScopeOption;

/// Reasons in the comment of one rule; further ones are counted.
const REASONS_MAX: usize = 6;

/// One role with its binding.
struct BoundRole<'a> {
    /// `None`: a `ClusterRole`.
    namespace: Option<&'a str>,
    rules: Vec<RoleRule>,
}

/// Returns the roles and bindings as YAML documents, each with its name.
pub(in crate::cli) fn documents(
    permissions: &Permissions,
    scope: &ScopeOption,
    account: &Account<'_>,
) -> Vec<(String, String)> {
    let served: Vec<&str> = match scope {
        ScopeOption::Namespaces(names) if names.iter().all(|it| is_exact(it)) => {
            names.iter().map(String::as_str).collect()
        }
        // The namespaces that match a pattern are not known.
        ScopeOption::Cluster | ScopeOption::Unsaid | ScopeOption::Namespaces(_) => Vec::new(),
    };
    let clusterwide: &[PermissionScope] = if served.is_empty() {
        &[PermissionScope::Cluster, PermissionScope::Served]
    } else {
        &[PermissionScope::Cluster]
    };
    let mut roles = vec![BoundRole { namespace: None, rules: permissions.rules(clusterwide) }];
    let own = !served.contains(&account.namespace);
    for namespace in &served {
        let is_own = *namespace == account.namespace;
        let places = if is_own {
            &[PermissionScope::Served, PermissionScope::Own][..]
        } else {
            &[PermissionScope::Served]
        };
        roles.push(BoundRole { namespace: Some(namespace), rules: permissions.rules(places) });
    }
    if own {
        let rules = permissions.rules(&[PermissionScope::Own]);
        roles.push(BoundRole { namespace: Some(account.namespace), rules });
    }
    roles.retain(|it| !it.rules.is_empty());
    roles.iter().flat_map(|it| [it.document(account), it.binding(account)]).collect()
}

fn is_exact(pattern: &str) -> bool {
    !pattern.contains(['*', '?', '[', '!', ','])
}

impl BoundRole<'_> {
    fn kind(&self) -> &'static str {
        if self.namespace.is_some() { "Role" } else { "ClusterRole" }
    }

    /// Returns its name. Outside of the operator's namespace, operators of the same name in other namespaces must not share it;
    /// neither of the two parts contains dots.
    fn name(&self, account: &Account<'_>) -> String {
        let Account { name, namespace } = account;
        if self.namespace == Some(namespace) {
            (*name).to_owned()
        } else {
            format!("{name}.{namespace}")
        }
    }

    fn head(&self, kind: &str, account: &Account<'_>) -> String {
        let mut text = format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata:\n  name: {}\n",
            self.name(account)
        );
        if let Some(namespace) = self.namespace {
            // Writing to a string cannot fail.
            let _fits = writeln!(text, "  namespace: {namespace}");
        }
        text
    }

    fn file(&self, kind: &str) -> String {
        let namespace = self.namespace.map(|it| format!("-{it}")).unwrap_or_default();
        format!("{}{namespace}", kind.to_lowercase())
    }

    fn document(&self, account: &Account<'_>) -> (String, String) {
        let mut text = self.head(self.kind(), account) + "rules:\n";
        for RoleRule { reasons, rule } in &self.rules {
            for reason in reasons.iter().take(REASONS_MAX) {
                let _fits = writeln!(text, "  # {}", reason.replace(char::is_control, " "));
            }
            if let Some(more) = reasons.len().checked_sub(REASONS_MAX).filter(|it| *it > 0) {
                let _fits = writeln!(text, "  # and {more} more");
            }
            let part = |key: &str| flow(rule.get(key));
            let (groups, resources) = (part("apiGroups"), part("resources"));
            let _fits = writeln!(text, "  - apiGroups: {groups}\n    resources: {resources}");
            let _fits = writeln!(text, "    verbs: {}", part("verbs"));
        }
        (self.file(self.kind()), text)
    }

    fn binding(&self, account: &Account<'_>) -> (String, String) {
        let kind = format!("{}Binding", self.kind());
        let Account { name, namespace } = account;
        let (role, role_name) = (self.kind(), self.name(account));
        let head = self.head(&kind, account);
        let text = format!(
            "{head}roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: {role}\n  name: {role_name}\n\
             subjects:\n  - kind: ServiceAccount\n    name: {name}\n    namespace: {namespace}\n"
        );
        (self.file(&kind), text)
    }
}

/// Returns a list of strings in one line.
fn flow(list: Option<&Value>) -> String {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    format!("[{}]", items.map(Value::to_string).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::{super::permissions::PermissionTarget, *};

    fn documents_for(scope: &ScopeOption) -> String {
        let mut all = Permissions::default();
        all.add(
            PermissionTarget::new(PermissionScope::Cluster, "", "nodes"),
            &["list"],
            "a\nforged: line",
        );
        all.add(
            PermissionTarget::new(PermissionScope::Served, "x.io", "sites"),
            &["watch"],
            "handler",
        );
        all.add(
            PermissionTarget::new(PermissionScope::Own, "", "secrets"),
            &["get"],
            "certificates",
        );
        let account = Account { name: "op", namespace: "ops" };
        let documents = documents(&all, scope, &account).into_iter();
        documents.filter(|it| !it.0.contains("binding")).map(|it| it.1).collect()
    }

    #[test]
    fn namespaces_limit_the_permissions_to_roles_in_them() {
        let scope = ScopeOption::Namespaces(vec!["a".into(), "ops".into()]);
        expect![[r#"
            apiVersion: rbac.authorization.k8s.io/v1
            kind: ClusterRole
            metadata:
              name: op.ops
            rules:
              # a forged: line
              - apiGroups: [""]
                resources: ["nodes"]
                verbs: ["list"]
            apiVersion: rbac.authorization.k8s.io/v1
            kind: Role
            metadata:
              name: op.ops
              namespace: a
            rules:
              # handler
              - apiGroups: ["x.io"]
                resources: ["sites"]
                verbs: ["watch"]
            apiVersion: rbac.authorization.k8s.io/v1
            kind: Role
            metadata:
              name: op
              namespace: ops
            rules:
              # certificates
              - apiGroups: [""]
                resources: ["secrets"]
                verbs: ["get"]
              # handler
              - apiGroups: ["x.io"]
                resources: ["sites"]
                verbs: ["watch"]
        "#]]
        .assert_eq(&documents_for(&scope));
    }

    #[test]
    fn the_whole_cluster_and_patterns_need_a_cluster_role() {
        let patterns = ScopeOption::Namespaces(vec!["team-*".into()]);
        let [cluster, patterns] = [ScopeOption::Cluster, patterns].map(|it| documents_for(&it));
        assert_eq!(cluster, patterns);
        assert_eq!(cluster.matches("kind: ClusterRole").count(), 1);
        assert!(cluster.contains("sites") && cluster.contains("namespace: ops"), "{cluster}");
    }
}
