//! The operator's state on an object, for the commands `kopf status`, `kopf retry` and `kopf release`.
//!
//! The commands do not know the settings of the operator, so they recognize its annotations by their content, under any prefix.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{failed::NAME as FAILED, suspended::NAME as SUSPENDED};
use crate::logic::object::annotations;
use crate::settings::PREFIX;

/// The annotation with the last handled state, after the prefix.
const LAST_HANDLED: &str = "last-handled-configuration";

/// The stored state of one handler of an object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HandlerState {
    /// Its id, as far as the name of the annotation shows it.
    pub handler: String,
    /// Whether it waits, is retried, or has failed.
    pub state: UnfinishedProgress,
    /// The number of attempts so far, if known.
    pub attempts: Option<u64>,
    /// When it is called again, or when it was given up.
    pub time: Option<String>,
    /// The message of the last error.
    pub message: Option<String>,
}

/// The progress of a handler that has not succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum UnfinishedProgress {
    /// It will be called for the first time, or again.
    Waiting,
    /// It has failed, and will be called again.
    Retrying,
    /// It has failed permanently.
    Failed,
}

/// Returns the handlers of an object that have not succeeded.
pub fn states(body: &Value) -> Vec<HandlerState> {
    let mut states = Vec::new();
    for (name, text) in own(body) {
        let Some((_, key)) = name.rsplit_once('/') else { continue };
        let Ok(Value::Object(content)) = serde_json::from_str::<Value>(text) else { continue };
        if key == FAILED {
            states.extend(content.iter().map(|(id, failure)| HandlerState {
                handler: id.clone(),
                state: UnfinishedProgress::Failed,
                attempts: None,
                time: text_of(failure, "at"),
                message: text_of(failure, "message"),
            }));
        } else if is_unfinished(&content) {
            let record = Value::Object(content);
            let attempts = record.get("retries").and_then(Value::as_u64);
            let has_failed = attempts.is_some_and(|it| it > 0);
            states.push(HandlerState {
                handler: key.to_owned(),
                state: if has_failed {
                    UnfinishedProgress::Retrying
                } else {
                    UnfinishedProgress::Waiting
                },
                attempts,
                time: text_of(&record, "delayed"),
                message: text_of(&record, "message"),
            });
        }
    }
    states
}

/// Returns the merge-patch after which the operator calls the failed handlers of an object again, and the waiting ones at once;
/// `None` if there are none.
pub fn retry(body: &Value) -> Option<Value> {
    let mut changes = Map::new();
    for (name, text) in own(body) {
        let Ok(Value::Object(mut content)) = serde_json::from_str::<Value>(text) else { continue };
        if name.rsplit_once('/').is_some_and(|(_, key)| key == FAILED) {
            for failure in content.values_mut().filter_map(Value::as_object_mut) {
                failure.insert("retry".into(), true.into());
            }
        } else if !is_unfinished(&content) || content.remove("delayed").is_none() {
            continue;
        }
        changes.insert(name.to_owned(), Value::Object(content).to_string().into());
    }
    patch(changes)
}

/// Returns the merge-patch after which the operator handles an object as a new one; `None` if it has never handled it.
pub fn anew(body: &Value) -> Option<Value> {
    let mut changes = Map::new();
    for (name, text) in own(body) {
        let Some((_, key)) = name.rsplit_once('/') else { continue };
        let is_record = || serde_json::from_str::<Value>(text).is_ok_and(|it| is_record(&it));
        if key == FAILED || key.starts_with(LAST_HANDLED) || is_record() {
            changes.insert(name.to_owned(), Value::Null);
        }
    }
    patch(changes)
}

/// Returns the merge-patch that removes a finalizer and all annotations with a prefix; `None` if there are none. It requires the version of
/// the object, because other finalizers may be added or removed meanwhile.
pub fn release(body: &Value, finalizer: &str, prefix: &str) -> Option<Value> {
    let is_own = |name: &str| name.strip_prefix(prefix).is_some_and(|it| it.starts_with('/'));
    let annotations = annotations::of(body).into_iter().flatten();
    let names = annotations.map(|(name, _)| name).filter(|it| is_own(it));
    let changes: Map<_, _> = names.map(|it| (it.clone(), Value::Null)).collect();
    let finalizers = body.pointer("/metadata/finalizers").and_then(Value::as_array);
    let is_held = finalizers.is_some_and(|it| it.iter().any(|it| it == finalizer));
    if changes.is_empty() && !is_held {
        return None;
    }
    let mut metadata = Map::new();
    let version = body.pointer("/metadata/resourceVersion").cloned();
    metadata.insert("resourceVersion".into(), version.unwrap_or_default());
    metadata.insert("annotations".into(), changes.into());
    if let (true, Some(finalizers)) = (is_held, finalizers) {
        let others = finalizers.iter().filter(|it| *it != finalizer).cloned();
        metadata.insert("finalizers".into(), others.collect());
    }
    Some(json!({ "metadata": metadata }))
}

/// Returns the reason of a suspended object; `None` if it is not suspended.
pub fn suspended(body: &Value) -> Option<&str> {
    own(body).find(|(name, _)| is_suspension(name)).map(|(_, reason)| reason)
}

/// Returns the merge-patch that suspends an object for this reason; `None` if it is suspended for the same.
pub fn suspend(body: &Value, reason: &str) -> Option<Value> {
    let name = format!("{PREFIX}/{SUSPENDED}");
    let is_same = suspended(body) == Some(reason);
    if is_same { None } else { patch(Map::from_iter([(name, reason.into())])) }
}

/// Returns the merge-patch that ends the suspension of an object; `None` if it is not suspended.
pub fn unsuspend(body: &Value) -> Option<Value> {
    let names = own(body).map(|(name, _)| name).filter(|it| is_suspension(it));
    patch(names.map(|it| (it.to_owned(), Value::Null)).collect())
}

fn is_suspension(name: &str) -> bool {
    name.rsplit_once('/').is_some_and(|(_, key)| key == SUSPENDED)
}

/// Returns how long until a time of a record, in whole seconds; negative if it has passed.
pub fn seconds_until(time: &str, now: Timestamp) -> Option<i64> {
    let time: Timestamp = time.parse().ok()?;
    Some(time.duration_since(now).as_secs())
}

/// Returns whether an operator has ever stored anything on an object.
pub fn is_handled(body: &Value, finalizer: &str) -> bool {
    let is_own = |(name, text): (&str, &str)| {
        let key = name.rsplit_once('/').map_or(name, |(_, key)| key);
        let content = || serde_json::from_str::<Value>(text).is_ok_and(|it| is_record(&it));
        key == FAILED || key == SUSPENDED || key.starts_with(LAST_HANDLED) || content()
    };
    let finalizers = body.pointer("/metadata/finalizers").and_then(Value::as_array);
    finalizers.is_some_and(|it| it.iter().any(|it| it == finalizer)) || own(body).any(is_own)
}

fn own(body: &Value) -> impl Iterator<Item = (&str, &str)> {
    let all = annotations::of(body).into_iter().flatten();
    all.filter_map(|(name, text)| Some((name.as_str(), text.as_str()?)))
}

fn is_record(content: &Value) -> bool {
    content.get("started").is_some() && content.get("retries").is_some()
}

fn is_unfinished(content: &Map<String, Value>) -> bool {
    let is = |key: &str| content.get(key).is_some_and(|it| *it == true);
    content.contains_key("started")
        && content.contains_key("retries")
        && !is("success")
        && !is("failure")
}

fn text_of(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).filter(|it| !it.is_empty()).map(str::to_owned)
}

fn patch(changes: Map<String, Value>) -> Option<Value> {
    if changes.is_empty() {
        return None;
    }
    let metadata = Map::from_iter([("annotations".to_owned(), changes.into())]);
    Some(Map::from_iter([("metadata".to_owned(), metadata.into())]).into())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{UnfinishedProgress, anew, release, retry, states};

    fn body() -> Value {
        let failed = json!({"create_fn": {"code": "1", "reason": "create", "at": "2026-01-01T00:00:00+00:00", "message": "no"}});
        let waiting = json!({"started": "s", "delayed": "2026-01-01T00:01:00+00:00", "retries": 2, "success": false, "failure": false, "message": "later"});
        json!({ "metadata": {
            "resourceVersion": "7", "finalizers": ["other", "kopf.zalando.org/KopfFinalizerMarker"],
            "annotations": {
                "mine.example.com/kopf-failed": failed.to_string(),
                "mine.example.com/update_fn": waiting.to_string(),
                "mine.example.com/last-handled-configuration": "{}",
                "mine.example.com/done_fn": json!({"started": "s", "retries": 1, "success": true, "delayed": "d"}).to_string(),
                "users.example.com/json": r#"{"started": 1}"#,
                "users.example.com/text": "text",
            },
        } })
    }

    #[test]
    fn what_has_not_succeeded_is_listed() {
        let states = states(&body());
        let found: Vec<_> = states
            .iter()
            .map(|it| (&*it.handler, it.state, it.attempts, it.message.as_deref()))
            .collect();
        assert_eq!(
            found,
            [
                ("create_fn", UnfinishedProgress::Failed, None, Some("no")),
                ("update_fn", UnfinishedProgress::Retrying, Some(2), Some("later")),
            ]
        );
    }

    #[test]
    fn a_retry_marks_failures_and_ends_delays_and_changes_nothing_else() {
        let patch = retry(&body()).expect("something to retry");
        let changes = patch["metadata"]["annotations"].as_object().expect("annotations");
        assert_eq!(changes.len(), 2);
        let parsed = |name: &str| {
            let text = changes[name].as_str().expect("text");
            serde_json::from_str::<Value>(text).expect("JSON")
        };
        assert_eq!(parsed("mine.example.com/kopf-failed")["create_fn"]["retry"], true);
        assert_eq!(parsed("mine.example.com/update_fn").get("delayed"), None);
        assert_eq!(parsed("mine.example.com/update_fn")["retries"], 2);
        assert_eq!(retry(&json!({})), None);
    }

    #[test]
    fn an_object_can_become_new() {
        let patch = anew(&body()).expect("it was handled");
        let mut names: Vec<_> =
            patch["metadata"]["annotations"].as_object().expect("annotations").keys().collect();
        names.sort();
        let names: Vec<_> = names.iter().map(|it| it.rsplit('/').next().unwrap_or("")).collect();
        assert_eq!(names, ["done_fn", "kopf-failed", "last-handled-configuration", "update_fn"]);
    }

    #[test]
    fn a_release_removes_only_what_is_the_operators() {
        let finalizer = "kopf.zalando.org/KopfFinalizerMarker";
        let patch = release(&body(), finalizer, "mine.example.com").expect("something to remove");
        let metadata = &patch["metadata"];
        assert_eq!(metadata["finalizers"], json!(["other"]));
        assert_eq!(metadata["resourceVersion"], "7");
        assert_eq!(metadata["annotations"].as_object().map(serde_json::Map::len), Some(4));
        assert_eq!(release(&json!({}), finalizer, "mine.example.com"), None);
        let others = release(&body(), "none", "users.example.com").expect("annotations");
        assert_eq!(others["metadata"].get("finalizers"), None, "they are not touched");
    }
}
