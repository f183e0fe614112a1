//! Roles and bindings that an earlier `kopf deploy` has applied and the operator no longer has: those of an older naming, and those of
//! namespaces that it no longer serves.
//!
//! They have no labels. A binding belongs to the operator if `kopf deploy` has set its role, and the service account of the operator is
//! its only subject; a role if `kopf deploy` has set its rules, and no other binding refers to it.

use serde_json::{Value, json};

use super::api::{Api, Location, MANAGER};
use crate::cli::{
    rbac::{Account, warn},
    report::Report,
};

const GROUP: &str = "rbac.authorization.k8s.io/v1";

/// A binding, and the role that it refers to.
#[derive(Clone)]
struct Binding {
    place: Location,
    role: Location,
    body: Value,
}

/// Returns the roles and bindings to delete, in this order: a role is found by its binding.
pub(super) async fn former_roles(
    api: &Api,
    account: &Account<'_>,
    own: &[(Location, Value)],
) -> Result<Vec<Location>, Report> {
    let mut bindings = Vec::new();
    for kind in ["ClusterRoleBinding", "RoleBinding"] {
        let Some(found) = api.list_everywhere((GROUP, kind)).await? else {
            let problem = format!("not permitted to list all objects of kind {kind}");
            warn(&[format!("roles of earlier deployments are kept, if there are any: {problem}")]);
            return Ok(Vec::new());
        };
        for (place, body) in found {
            // A role of a kind that the cluster does not serve was not applied by `kopf deploy`.
            if let Ok(role) = api.place(&role_of(&place, &body)) {
                bindings.push(Binding { place, role, body });
            }
        }
    }
    let is_own = |place: &Location| own.iter().any(|(it, _)| it.shown() == place.shown());
    let (former, others): (Vec<_>, Vec<_>) =
        bindings.into_iter().partition(|it| belongs_to(&it.body, account) && !is_own(&it.place));
    let mut left: Vec<Location> = Vec::new();
    for Binding { role, .. } in &former {
        let shown = role.shown();
        let is_used = others.iter().any(|it| it.role.shown() == shown);
        let is_known = left.iter().any(|it| it.shown() == shown);
        if !is_used && !is_known && !is_own(role) {
            let body = api.get_with_managers(role).await?.unwrap_or_default();
            left.extend(has_set(&body, "rules").then(|| role.clone()));
        }
    }
    left.extend(former.into_iter().map(|it| it.place));
    Ok(left)
}

/// Returns an object with the fields by which the API finds the role of a binding.
fn role_of(place: &Location, binding: &Value) -> Value {
    let part = |key: &str| binding.pointer(&format!("/roleRef/{key}"));
    let metadata = json!({ "name": part("name"), "namespace": place.namespace() });
    json!({ "apiVersion": GROUP, "kind": part("kind"), "metadata": metadata })
}

/// Returns whether an earlier deployment of this operator has applied a binding.
fn belongs_to(binding: &Value, account: &Account<'_>) -> bool {
    let is_it = |it: &Value| {
        it["kind"] == "ServiceAccount"
            && it["name"] == account.name
            && it["namespace"] == account.namespace
    };
    let subjects = binding.get("subjects").and_then(Value::as_array);
    has_set(binding, "roleRef") && matches!(subjects.map(Vec::as_slice), Some([it]) if is_it(it))
}

/// Returns whether `kopf deploy` has set a field of an object and still owns it.
fn has_set(object: &Value, field: &str) -> bool {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let mut entries = entries.into_iter().flatten();
    entries.any(|it| {
        it["manager"] == MANAGER
            && it["operation"] == "Apply"
            && it["fieldsV1"].get(format!("f:{field}")).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(manager: &str, operation: &str, subjects: &Value) -> Value {
        json!({
            "metadata": { "managedFields": [
                { "manager": "kubectl", "operation": "Update", "fieldsV1": { "f:metadata": {} } },
                { "manager": manager, "operation": operation, "fieldsV1": { "f:roleRef": {} } },
            ] },
            "subjects": subjects,
        })
    }

    #[test]
    fn a_binding_belongs_to_the_operator_that_deploy_has_bound_alone() {
        let account = Account { name: "op", namespace: "ops" };
        let of = |namespace: &str| json!({ "kind": "ServiceAccount", "name": "op", "namespace": namespace });
        let user = json!({ "kind": "User", "name": "op" });
        for (manager, operation, subjects, expected) in [
            (MANAGER, "Apply", json!([of("ops")]), true),
            (MANAGER, "Update", json!([of("ops")]), false),
            ("kubectl", "Apply", json!([of("ops")]), false),
            (MANAGER, "Apply", json!([of("other")]), false),
            (MANAGER, "Apply", json!([of("ops"), user]), false),
            (MANAGER, "Apply", json!([user]), false),
            (MANAGER, "Apply", json!([]), false),
            (MANAGER, "Apply", Value::Null, false),
        ] {
            let binding = binding(manager, operation, &subjects);
            assert_eq!(belongs_to(&binding, &account), expected, "{binding}");
        }
        assert!(!belongs_to(&Value::Null, &account));
    }
}
