//! Labels, and the label selectors inside of objects.

use serde_json::Value;

use crate::object;
use crate::sorted;

/// Returns whether a label selector matches labels. An empty selector matches everything, a missing one nothing.
pub(crate) fn selects(selector: Option<&Value>, labels: &Value) -> bool {
    let Some(selector) = selector.filter(|it| it.is_object()) else { return false };
    let label = |key: &str| labels.get(key).and_then(Value::as_str);
    let equal = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let mut equal = equal.map(|(key, value)| label(key).is_some_and(|it| value == it));
    let rules = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    let mut rules = rules.map(|rule| {
        let text = |field: &str| rule.get(field).and_then(Value::as_str).unwrap_or_default();
        let value = label(text("key"));
        let values = rule.get("values").and_then(Value::as_array);
        let listed = || value.is_some_and(|it| values.into_iter().flatten().any(|one| one == it));
        match text("operator") {
            "In" => listed(),
            "NotIn" => !listed(),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    });
    equal.all(|it| it) && rules.all(|it| it)
}

/// Returns whether a label selector has no requirements.
pub(crate) fn is_empty(selector: Option<&Value>) -> bool {
    let empty = |field: &str| match selector.and_then(|it| it.get(field)) {
        Some(Value::Object(rules)) => rules.is_empty(),
        Some(Value::Array(rules)) => rules.is_empty(),
        Some(_) | None => true,
    };
    empty("matchLabels") && empty("matchExpressions")
}

/// Returns a label selector in the form of a query, its requirements sorted by key.
pub(crate) fn text(selector: &Value) -> String {
    let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let labels = labels
        .map(|(key, it)| (key.as_str(), format!("{key}={}", it.as_str().unwrap_or_default())));
    let rules = object::list(selector, "/matchExpressions").iter().map(|it| {
        let key = object::text(it, "/key");
        let mut values = object::strings(it, "/values");
        values.sort_unstable();
        let values = values.join(",");
        let rule = match object::text(it, "/operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.into(),
            "DoesNotExist" => format!("!{key}"),
            _ => "<error>".into(),
        };
        (key, rule)
    });
    let mut all: Vec<(&str, String)> = labels.chain(rules).collect();
    sorted::sort_by_key(&mut all, |(key, _)| *key);
    all.into_iter().map(|(_, it)| it).collect::<Vec<_>>().join(",")
}

/// Returns whether a plain map of labels, as in a Service, matches labels. An empty map matches nothing.
pub(crate) fn has_all(wanted: Option<&Value>, labels: &Value) -> bool {
    let wanted = wanted.and_then(Value::as_object).filter(|it| !it.is_empty());
    wanted.is_some_and(|it| it.iter().all(|(key, value)| labels.get(key) == Some(value)))
}

/// Returns the labels of an object; null if there are none.
pub(crate) fn of(object: &Value) -> &Value {
    object.pointer("/metadata/labels").unwrap_or(&Value::Null)
}
