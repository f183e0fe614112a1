//! `status.conditions`: the observed state of an object, by the conventions of the Kubernetes API.
//!
//! A merge-patch replaces a list as a whole, and with it the conditions of other managers. So a condition is a [`ConditionChange`] of the
//! latest object, sent as operations that are valid for its version only, like the functions of `patch.fns`.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::fields;

/// The maximum number of characters that CRDs with the usual schema allow for the parts of a condition.
const KIND_CHARS_MAX: usize = 316;
const REASON_CHARS_MAX: usize = 1024;
const MESSAGE_CHARS_MAX: usize = 32_768;

/// The path of the conditions.
const PLACE: [&str; 2] = ["status", "conditions"];

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// The status is not known at the moment.
    Unknown,
}

/// A condition to be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its type, such as `Ready`; unique in an object.
    pub kind: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// The field `reason`: a word for programs.
    pub reason: String,
    /// The field `message`: a sentence for humans.
    pub message: String,
    /// The generation of the object that was observed; `None` if the condition does not depend on the specification.
    pub observed_generation: Option<i64>,
    /// The time of the observation.
    pub now: Timestamp,
}

/// The change of one condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionChange {
    /// Adds the condition, or replaces the one of the same type.
    Set(Condition),
    /// Removes the condition of this type.
    Remove(String),
}

impl ConditionStatus {
    /// Returns the status as objects spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            ConditionStatus::True => "True",
            ConditionStatus::False => "False",
            ConditionStatus::Unknown => "Unknown",
        }
    }

    /// Reads a status as scripts write it.
    ///
    /// # Errors
    /// Fails for any other value; the message lists the accepted ones.
    pub fn read(value: &Value) -> Result<Self, String> {
        if let Some(it) = value.as_bool() {
            return Ok(if it { ConditionStatus::True } else { ConditionStatus::False });
        }
        let all = [ConditionStatus::True, ConditionStatus::False, ConditionStatus::Unknown];
        all.into_iter().find(|it| value == it.as_str()).ok_or_else(|| {
            let given = if value.is_null() { "nothing".into() } else { value.to_string() };
            format!("the status must be true, false or \"Unknown\", not {given}")
        })
    }
}

/// Checks the type of a condition.
///
/// # Errors
/// Fails if a server would reject it.
pub fn check_kind(kind: &str) -> Result<(), String> {
    let (domain, name) =
        kind.split_once('/').map_or((None, kind), |(domain, name)| (Some(domain), name));
    let is_end = |it: Option<char>| it.is_some_and(|it| it.is_ascii_alphanumeric());
    let is_name = is_end(name.chars().next())
        && is_end(name.chars().next_back())
        && name.chars().all(|it| it.is_ascii_alphanumeric() || "-_.".contains(it));
    if is_name && domain.is_none_or(is_domain) && kind.chars().count() <= KIND_CHARS_MAX {
        return Ok(());
    }
    Err(format!(
        "the type of a condition is a name such as \"Ready\" or \"example.com/Ready\", not {kind:?}"
    ))
}

fn is_domain(domain: &str) -> bool {
    domain.split('.').all(|label| {
        let is_inside = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
        !label.is_empty()
            && label.chars().all(is_inside)
            && !label.starts_with('-')
            && !label.ends_with('-')
    })
}

/// Returns the reason of a condition: the given one, or one derived from its type and status.
///
/// # Errors
/// Fails if a server would reject it.
pub fn reason(given: Option<&str>, kind: &str, status: ConditionStatus) -> Result<String, String> {
    let Some(given) = given else { return Ok(implied(kind, status)) };
    let is_first = given.starts_with(|it: char| it.is_ascii_alphabetic());
    let is_last = given.ends_with(|it: char| it.is_ascii_alphanumeric() || it == '_');
    let is_inside = |it: char| it.is_ascii_alphanumeric() || "_,:".contains(it);
    if is_first
        && is_last
        && given.chars().all(is_inside)
        && given.chars().count() <= REASON_CHARS_MAX
    {
        return Ok(given.to_owned());
    }
    Err(format!(
        "the reason is one word for programs, in CamelCase, such as \"Deployed\", not {given:?}; \
         sentences are for the message"
    ))
}

/// Returns the default reason: `Ready`, `NotReady`, `ReadyUnknown`.
fn implied(kind: &str, status: ConditionStatus) -> String {
    let name = kind.rsplit('/').next().unwrap_or(kind);
    let word: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    match status {
        ConditionStatus::False => format!("Not{word}"),
        // A type may start with a digit, a reason may not.
        ConditionStatus::True if word.starts_with(|it: char| it.is_ascii_digit()) => {
            format!("Is{word}")
        }
        ConditionStatus::True => word,
        ConditionStatus::Unknown if word.starts_with(|it: char| it.is_ascii_digit()) => {
            format!("Is{word}Unknown")
        }
        ConditionStatus::Unknown => format!("{word}Unknown"),
    }
}

/// Returns a message that servers accept: a longer one is truncated, and the reason replaces an absent one, since some servers
/// reject an empty message.
pub fn message(given: Option<&str>, reason: &str) -> String {
    let given = given.filter(|it| !it.is_empty()).unwrap_or(reason);
    if given.chars().count() <= MESSAGE_CHARS_MAX {
        return given.to_owned();
    }
    given.chars().take(MESSAGE_CHARS_MAX - 1).chain(['…']).collect()
}

/// Returns all conditions of an object. Other items of the list are skipped.
pub fn of(body: &Value) -> impl Iterator<Item = &Value> {
    let list = fields::get(body, &PLACE).and_then(Value::as_array);
    list.into_iter().flatten().filter(|it| it.is_object())
}

/// Returns the condition of this type.
pub fn find<'a>(body: &'a Value, kind: &str) -> Option<&'a Value> {
    of(body).find(|it| is(it, kind))
}

/// Returns whether the condition of this type has this status; an absent condition has none.
pub fn has(body: &Value, kind: &str, status: ConditionStatus) -> bool {
    find(body, kind).is_some_and(|it| is_status(it, status))
}

fn is(condition: &Value, kind: &str) -> bool {
    condition.get("type").is_some_and(|it| it == kind)
}

fn is_status(condition: &Value, status: ConditionStatus) -> bool {
    condition.get("status").is_some_and(|it| it == status.as_str())
}

impl ConditionChange {
    /// Returns the type of the condition.
    pub fn kind(&self) -> &str {
        match self {
            ConditionChange::Set(condition) => &condition.kind,
            ConditionChange::Remove(kind) => kind,
        }
    }

    /// Changes a body; all other conditions keep their content and position. Does nothing if nothing changes.
    pub fn apply(&self, body: &mut Value) {
        let Some(body) = body.as_object_mut() else { return };
        let present = fields::get_in(body, &PLACE).and_then(Value::as_array);
        let mut list = present.cloned().unwrap_or_default();
        let others = |it: &Value| !is(it, self.kind());
        match self {
            ConditionChange::Remove(_) if list.iter().all(others) => return,
            ConditionChange::Remove(_) => list.retain(others),
            ConditionChange::Set(condition) => {
                match list.iter_mut().find(|it| is(it, &condition.kind)) {
                    Some(present) => condition.renew(present),
                    None => list.push(condition.made()),
                }
            }
        }
        fields::put(body, &PLACE, Value::Array(list));
    }
}

impl Condition {
    fn made(&self) -> Value {
        let mut made = json!({ "type": self.kind });
        self.renew(&mut made);
        made
    }

    /// Updates a condition and keeps the fields of others, such as `lastHeartbeatTime`.
    fn renew(&self, present: &mut Value) {
        let stays = is_status(present, self.status);
        let Some(fields) = present.as_object_mut() else { return };
        fields.insert("status".into(), self.status.as_str().into());
        match self.observed_generation {
            Some(generation) => drop(fields.insert("observedGeneration".into(), generation.into())),
            None => drop(fields.shift_remove("observedGeneration")),
        }
        if !(stays && has_moment(fields)) {
            let now = self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            fields.insert("lastTransitionTime".into(), now.into());
        }
        fields.insert("reason".into(), self.reason.as_str().into());
        fields.insert("message".into(), self.message.as_str().into());
    }
}

fn has_moment(condition: &Map<String, Value>) -> bool {
    let moment = condition.get("lastTransitionTime").and_then(Value::as_str);
    moment.is_some_and(|it| !it.is_empty())
}

#[cfg(test)]
mod tests;
