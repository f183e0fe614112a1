//! The conditions that a script can wait for.

use serde_json::Value;

/// A condition to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Predicate {
    /// The object does not exist.
    Deleted,
    /// The object exists.
    Created,
    /// A condition of the object has this status.
    Condition {
        /// The type of the condition, in any case.
        kind: String,
        /// `True`, `False` or `Unknown`, in any case.
        status: String,
    },
}

/// The object to wait for.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Its current body; `None` if it does not exist.
    pub body: Option<&'a Value>,
    /// Its uid, if known: another object with the same name does not match.
    pub uid: Option<&'a str>,
}

impl Predicate {
    /// Reads `condition=Ready`, `condition=Ready=False`, `deleted` or `created`.
    ///
    /// # Errors
    /// Fails for any other string.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.trim() {
            "deleted" | "delete" => return Ok(Predicate::Deleted),
            "created" | "create" => return Ok(Predicate::Created),
            _ => {}
        }
        let condition = text.trim().strip_prefix("condition=").unwrap_or_default();
        let (kind, status) = condition.split_once('=').unwrap_or((condition, "True"));
        if kind.is_empty() || status.is_empty() {
            return Err(format!(
                "`predicate`: expected \"condition=Ready\", \"condition=Ready=False\", \"created\", \"deleted\" or a \
                 function of the object, got {text:?}"
            ));
        }
        Ok(Predicate::Condition { kind: kind.to_owned(), status: status.to_owned() })
    }

    /// Returns whether the condition holds.
    pub fn holds(&self, subject: Subject<'_>) -> bool {
        let uid =
            |it: &Value| it.pointer("/metadata/uid").and_then(Value::as_str).map(str::to_owned);
        let is_other = |it: &&Value| match (subject.uid, uid(it)) {
            (Some(meant), Some(found)) => meant != found,
            (Some(_) | None, _) => false,
        };
        let body = subject.body.filter(|it| !is_other(it));
        match self {
            Predicate::Deleted => body.is_none(),
            Predicate::Created => subject.body.is_some(),
            Predicate::Condition { kind, status } => {
                let conditions = body.and_then(|it| it.pointer("/status/conditions"));
                let conditions = conditions.and_then(Value::as_array).into_iter().flatten();
                let is = |it: &Value, field: &str, wanted: &str| {
                    let found = it.get(field).and_then(Value::as_str);
                    found.is_some_and(|it| it.eq_ignore_ascii_case(wanted))
                };
                conditions.into_iter().any(|it| is(it, "type", kind) && is(it, "status", status))
            }
        }
    }
}
