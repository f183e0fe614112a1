//! One webhook of a configuration: its rules, selectors and conditions, and its client configuration.

use std::time::Duration;

use serde_json::{Value, json};

use super::{AdmissionRequest, https::WebhookTarget};
use crate::{labels, object, schema::expressions::condition};

/// The default time limit of a response, the same as on the real server.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A webhook that matches an operation.
#[derive(Clone, Debug)]
pub(super) struct Hook {
    pub(super) name: String,
    pub(super) target: WebhookTarget,
    /// `v1` or `v1beta1`: the first known version in its list.
    pub(super) review_version: &'static str,
    /// The version of the resource in its reviews.
    pub(super) version: String,
    pub(super) timeout: Duration,
    /// The failure policy is `Ignore`.
    pub(super) ignores_failure: bool,
    pub(super) knows_dry_runs: bool,
    /// The reinvocation policy is `IfNeeded`.
    pub(super) reinvoked: bool,
    namespaces: Value,
    objects: Value,
    /// The CEL expressions of `matchConditions`.
    conditions: Vec<String>,
}

impl Hook {
    /// Returns the webhooks of a configuration whose rules match.
    pub(super) fn all(configuration: &Value, request: &AdmissionRequest<'_>) -> Vec<Self> {
        let hooks = configuration.get("webhooks").and_then(Value::as_array).into_iter().flatten();
        hooks.filter_map(|it| Self::of(it, request)).collect()
    }

    fn of(hook: &Value, request: &AdmissionRequest<'_>) -> Option<Self> {
        let text = |path: &str| hook.pointer(path).and_then(Value::as_str);
        let version = matching_version(hook, request)?;
        let reviews = object::strings(hook, "/admissionReviewVersions");
        let known =
            reviews.iter().find_map(|it| ["v1", "v1beta1"].into_iter().find(|known| it == known));
        let timeout = hook.get("timeoutSeconds").and_then(Value::as_u64);
        let selector = |field: &str| hook.get(field).cloned().unwrap_or_else(|| json!({}));
        Some(Self {
            name: text("/name").unwrap_or_default().into(),
            target: WebhookTarget::of(hook.get("clientConfig")?),
            review_version: known.unwrap_or("v1"),
            version,
            timeout: timeout.map_or(TIMEOUT, Duration::from_secs),
            ignores_failure: text("/failurePolicy") == Some("Ignore"),
            knows_dry_runs: matches!(text("/sideEffects"), Some("None" | "NoneOnDryRun")),
            reinvoked: text("/reinvocationPolicy") == Some("IfNeeded"),
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
            conditions: object::list(hook, "/matchConditions")
                .iter()
                .map(|it| object::text(it, "/expression").to_owned())
                .collect(),
        })
    }

    /// Returns whether its selectors match the namespace and one of the objects.
    pub(super) fn selects(&self, namespace: Option<&Value>, objects: &[Option<&Value>]) -> bool {
        let place = namespace.is_none_or(|it| labels::selects(Some(&self.namespaces), it));
        let mut objects = objects.iter().flatten();
        place && objects.any(|it| labels::selects(Some(&self.objects), labels::of(it)))
    }
}

impl Hook {
    /// Returns whether all its conditions hold for a request. An error in one of them counts only if no other one is false.
    pub(super) fn meets(&self, review: &Value) -> Result<bool, String> {
        if self.conditions.is_empty() {
            return Ok(true);
        }
        let mut request = review.get("request").cloned().unwrap_or_default();
        let mut take = |field: &str| {
            request.as_object_mut().and_then(|it| it.shift_remove(field)).unwrap_or_default()
        };
        let (object, old) = (take("object"), take("oldObject"));
        let mut error = None;
        for condition in &self.conditions {
            match condition::holds(condition, [&object, &old, &request]) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(why) => error = error.or(Some(why)),
            }
        }
        match error {
            Some(_) if self.ignores_failure => Ok(false),
            Some(why) => Err(why),
            None => Ok(true),
        }
    }
}

/// Returns the version of the resource that a rule matches: that of the request, or an equivalent one.
fn matching_version(hook: &Value, request: &AdmissionRequest<'_>) -> Option<String> {
    let exact = hook.get("matchPolicy").is_some_and(|it| it == "Exact");
    let rules = hook.get("rules").and_then(Value::as_array)?;
    let asked = request.view.version.clone();
    let others =
        request.view.kind.def.versions.iter().filter(|it| !exact && **it != asked).cloned();
    let mut versions = std::iter::once(asked.clone()).chain(others);
    versions.find(|version| rules.iter().any(|it| matches(it, request, version)))
}

fn matches(rule: &Value, request: &AdmissionRequest<'_>, version: &str) -> bool {
    let def = &request.view.kind.def;
    let lists = |field: &str, wanted: &str| {
        let list = rule.get(field).and_then(Value::as_array);
        list.into_iter().flatten().any(|it| it == "*" || it == wanted)
    };
    let resources = object::strings(rule, "/resources");
    let scope = match rule.get("scope").and_then(Value::as_str) {
        Some("Namespaced") => def.namespaced,
        Some("Cluster") => !def.namespaced,
        _ => true,
    };
    scope
        && lists("operations", request.operation)
        && lists("apiGroups", &def.group)
        && lists("apiVersions", version)
        && resources.iter().any(|it| names_resource(it, &def.plural, request.subresource))
}

/// Matches a resource against `pods`, `pods/status`, `pods/*`, `*/status`, `*` (no subresource) or `*/*`.
fn names_resource(pattern: &str, plural: &str, subresource: &str) -> bool {
    let (resource, rest) = pattern.split_once('/').unwrap_or((pattern, ""));
    (resource == "*" || resource == plural) && (rest == subresource || rest == "*")
}
