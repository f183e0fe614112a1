//! What a script waits for.

use serde_json::Value;

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Predicate {
    /// The object is gone.
    Deleted,
    /// The object is there.
    Created,
    /// One of its conditions has this status.
    Condition {
        /// Its type, in any case.
        kind: String,
        /// `True`, `False` or `Unknown`, in any case.
        status: String,
    },
}

/// The object that is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// As it is; `None` if it is not there.
    pub body: Option<&'a Value>,
    /// The uid of the one that is meant, if that is known: another one of the same name is not it.
    pub uid: Option<&'a str>,
}

impl Predicate {
    /// Reads `condition=Ready`, `condition=Ready=False`, `deleted` or `created`.
    ///
    /// # Errors
    /// It is none of them.
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

    /// Whether it holds.
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
