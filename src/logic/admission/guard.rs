//! The webhook that guards the `ConfigMap`s of an operator's scripts: an edit that does not load is rejected.

use serde_json::{Value, json};

use super::{
    configuration::{ClientConfig, NAMESPACE_LABEL},
    label_selector,
};

/// The id of the guard in the paths of webhooks. No handler can have it: ids of functions have no dots.
pub const ID: &str = "kopf.script-guard";

/// How long API servers wait for the guard, in seconds.
const TIMEOUT: u64 = 10;

/// `ConfigMap`s with scripts in one namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarded {
    /// The namespace of the `ConfigMap`s.
    pub namespace: String,
    /// The guarded `ConfigMap`s in it.
    pub maps: GuardedMaps,
}

/// The `ConfigMap`s of a namespace that are guarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuardedMaps {
    /// The one of this name.
    Named(String),
    /// Those with these labels, as in `kubectl get -l`.
    Labelled(String),
}

impl Guarded {
    /// Returns whether this may be one of them. Does not compare labels: API servers do that.
    pub fn covers(&self, namespace: &str, name: &str) -> bool {
        let is_it = match &self.maps {
            GuardedMaps::Named(own) => own == name,
            GuardedMaps::Labelled(_) => true,
        };
        self.namespace == namespace && is_it
    }

    /// Returns the webhook. While the guard is unreachable, edits are admitted: the operator rejects broken scripts anyway.
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
            GuardedMaps::Labelled(labels) => {
                json!({ "matchExpressions": label_selector::expressions(labels) })
            }
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
