//! Hints for the author of a script about a request that the server has rejected.

use serde_json::Value;

/// Details of a rejected request: parts of the server's `Status`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatusDetails {
    /// The reason in one word, such as `AlreadyExists`; empty if there is none.
    pub reason: String,
    /// `details`, with the `causes`; null if there are none.
    pub details: Value,
}

/// The operation that was attempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KubeVerb {
    /// Any read operation.
    Read,
    /// `kube.create`
    Create,
    /// `kube.apply`
    Apply,
    /// `kube.patch` and `kube.scale`
    Patch,
    /// `kube.replace`
    Replace,
    /// `kube.delete`
    Delete,
    /// `kube.evict`
    Evict,
}

/// Returns the hint for a rejection; empty if there is nothing to add to the server's message.
pub fn advice(attempt: KubeVerb, status: u16, rejection: &StatusDetails) -> String {
    match (status, attempt) {
        (409, KubeVerb::Apply) => {
            let fields = owners(&rejection.details);
            let fields = if fields.is_empty() { String::new() } else { format!("{fields}; ") };
            format!("{fields}omit these fields, or take them over with the option `force`")
        }
        (409, KubeVerb::Create) if rejection.reason == "AlreadyExists" => {
            "use kube.apply to create an object or to change an existing one".into()
        }
        (409, KubeVerb::Replace | KubeVerb::Patch) => {
            "the object has changed since it was read: read it again, or send a kube.patch without a \
             resourceVersion"
                .into()
        }
        (409, KubeVerb::Delete) => {
            "the object with this name no longer has this uid".into()
        }
        (415, KubeVerb::Patch) => {
            "this resource supports only patches of the types \"merge\" and \"json\"".into()
        }
        (429, KubeVerb::Evict) => {
            "a PodDisruptionBudget does not allow it now: try again later".into()
        }
        (404, KubeVerb::Patch | KubeVerb::Replace) => "use kube.apply to create it".into(),
        (_, _) => String::new(),
    }
}

/// Returns the managers of the conflicting fields, like `.data.a belongs to "kubectl"`.
fn owners(details: &Value) -> String {
    let causes = details.get("causes").and_then(Value::as_array);
    let owner = |cause: &Value| {
        let field = cause.get("field")?.as_str()?;
        let message = cause.get("message")?.as_str()?;
        let manager = message.strip_prefix("conflict with ")?;
        Some(format!("{field} belongs to {manager}"))
    };
    let owners: Vec<_> = causes.into_iter().flatten().filter_map(owner).collect();
    owners.join(", ")
}
