//! The webhook that guards the `ConfigMap`s of an operator's scripts: an edit that does not load is refused.

use serde_json::{Value, json};

use super::configuration::{ClientConfig, NAMESPACE_LABEL};

/// The id of the guard in the paths of webhooks. No handler can have it: ids of functions have no dots.
pub const ID: &str = "kopf.script-guard";

/// How long API servers wait for the guard, in seconds.
const TIMEOUT: u64 = 10;

/// `ConfigMap`s with scripts in one namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarded {
    /// The namespace.
    pub namespace: String,
    /// Which of them.
    pub maps: GuardedMaps,
}

/// Which `ConfigMap`s of a namespace are guarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuardedMaps {
    /// The one of this name.
    Named(String),
    /// Those with these labels, as in `kubectl get -l`.
    Labelled(String),
}

impl Guarded {
    /// Returns whether this may be one of them. Only API servers compare labels.
    pub fn covers(&self, namespace: &str, name: &str) -> bool {
        let is_it = match &self.maps {
            GuardedMaps::Named(own) => own == name,
            GuardedMaps::Labelled(_) => true,
        };
        self.namespace == namespace && is_it
    }

    /// Returns the webhook. While nobody answers it, edits are admitted: the operator refuses broken scripts anyway.
    fn webhook(&self, name: &str, client: &ClientConfig) -> Value {
        let own_name = match &self.maps {
            // Names of objects have no quotes.
            GuardedMaps::Named(own) => {
                json!([{ "name": "own", "expression": format!("object.metadata.name == '{own}'") }])
            }
            GuardedMaps::Labelled(_) => Value::Null,
        };
        let labels = match &self.maps {
            GuardedMaps::Named(_) => Value::Null,
            GuardedMaps::Labelled(labels) => json!({ "matchExpressions": expressions(labels) }),
        };
        json!({
            "name": name,
            "sideEffects": "None",
            "failurePolicy": "Ignore",
            "matchPolicy": "Equivalent",
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                "operations": ["CREATE", "UPDATE"], "scope": "Namespaced",
            }],
            "namespaceSelector": { "matchLabels": { (NAMESPACE_LABEL): self.namespace } },
            "objectSelector": labels,
            "matchConditions": own_name,
            "clientConfig": client.of(ID),
            "timeoutSeconds": TIMEOUT,
            "admissionReviewVersions": ["v1", "v1beta1"],
        })
    }
}

/// Returns the webhooks of the guard. `name` is the name of the configuration.
pub fn webhooks(guarded: &[Guarded], (name, client): (&str, &ClientConfig)) -> Vec<Value> {
    let all = guarded.iter().enumerate();
    all.map(|(index, it)| it.webhook(&format!("script-guard-{index}.{name}"), client)).collect()
}

/// Returns a label selector such as `app=scripts,tier in (a, b),!old` as expressions.
pub(super) fn expressions(labels: &str) -> Vec<Value> {
    let mut parts: Vec<String> = vec![String::new()];
    let mut is_inside = false;
    for symbol in labels.chars() {
        is_inside = (is_inside || symbol == '(') && symbol != ')';
        match parts.last_mut() {
            Some(part) if symbol != ',' || is_inside => part.push(symbol),
            Some(_) | None => parts.push(String::new()),
        }
    }
    parts.iter().map(|it| it.trim()).filter(|it| !it.is_empty()).map(expression).collect()
}

fn expression(part: &str) -> Value {
    let of = |key: &str, operator: &str, values: &str| {
        let values = values.trim().trim_start_matches('(').trim_end_matches(')').split(',');
        let values: Vec<&str> = values.map(str::trim).collect();
        json!({ "key": key.trim(), "operator": operator, "values": values })
    };
    for (sign, operator) in
        [(" notin ", "NotIn"), (" in ", "In"), ("!=", "NotIn"), ("==", "In"), ("=", "In")]
    {
        if let Some((key, values)) = part.split_once(sign) {
            return of(key, operator, values);
        }
    }
    match part.strip_prefix('!') {
        Some(key) => json!({ "key": key.trim(), "operator": "DoesNotExist" }),
        None => json!({ "key": part, "operator": "Exists" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_selectors_become_expressions() {
        let found = expressions("app=scripts, tier in (a, b),zone notin (c),x!=y,z==1,!old,new");
        let expected = [
            json!({ "key": "app", "operator": "In", "values": ["scripts"] }),
            json!({ "key": "tier", "operator": "In", "values": ["a", "b"] }),
            json!({ "key": "zone", "operator": "NotIn", "values": ["c"] }),
            json!({ "key": "x", "operator": "NotIn", "values": ["y"] }),
            json!({ "key": "z", "operator": "In", "values": ["1"] }),
            json!({ "key": "old", "operator": "DoesNotExist" }),
            json!({ "key": "new", "operator": "Exists" }),
        ];
        assert_eq!(found, expected);
    }
}
