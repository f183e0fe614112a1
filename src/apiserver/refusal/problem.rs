//! What is wrong with one field, in the words of the real server.

use serde_json::Value;

use super::go;

/// One thing that is wrong with a body. A refusal lists all of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Problem {
    /// Where, as in `spec.containers[0].name`.
    pub(crate) field: String,
    pub(crate) kind: ProblemKind,
}

/// What kind of thing is wrong. The texts are what the real server puts after its fixed words.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ProblemKind {
    /// May be empty.
    Required(String),
    /// The value, and why it is refused (may be empty).
    Invalid(Value, String),
    /// A value that Go prints in its own notation, and why it is refused.
    InvalidGo(String, String),
    /// The value, and what would be accepted.
    NotSupported(Value, Vec<String>),
    /// The same, the value as Go prints it.
    NotSupportedShown(String, Vec<String>),
    Duplicate(Value),
    NotFound(Value),
    Forbidden(String),
    /// The value, and the limit in bytes.
    TooLong(Value, usize),
    Internal(String),
    /// About a value that has a form of its own in Go, such as a struct: the reason, and the whole text.
    Worded(&'static str, String),
}

impl Problem {
    /// Something about a field.
    pub(crate) fn new(field: impl Into<String>, kind: ProblemKind) -> Self {
        Self { field: field.into(), kind }
    }

    /// A field that must be there.
    pub(crate) fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(field, ProblemKind::Required(detail.into()))
    }

    /// A value that is not acceptable.
    pub(crate) fn invalid(
        field: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(field, ProblemKind::Invalid(value.into(), detail.into()))
    }

    /// A change or a field that is not allowed.
    pub(crate) fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(field, ProblemKind::Forbidden(detail.into()))
    }

    /// The machine-readable word.
    pub(crate) fn reason(&self) -> &'static str {
        match &self.kind {
            ProblemKind::Required(_) => "FieldValueRequired",
            ProblemKind::Invalid(..) | ProblemKind::InvalidGo(..) => "FieldValueInvalid",
            ProblemKind::NotSupported(..) | ProblemKind::NotSupportedShown(..) => {
                "FieldValueNotSupported"
            }
            ProblemKind::Duplicate(_) => "FieldValueDuplicate",
            ProblemKind::NotFound(_) => "FieldValueNotFound",
            ProblemKind::Forbidden(_) => "FieldValueForbidden",
            ProblemKind::TooLong(..) => "FieldValueTooLong",
            ProblemKind::Internal(_) => "InternalError",
            ProblemKind::Worded(reason, _) => reason,
        }
    }

    /// The words for people, without the field.
    pub(crate) fn text(&self) -> String {
        let with = |words: &str, value: &Value, detail: &str| match detail {
            "" => format!("{words}: {}", go::value(value)),
            detail => format!("{words}: {}: {detail}", go::value(value)),
        };
        match &self.kind {
            ProblemKind::Required(detail) if detail.is_empty() => "Required value".into(),
            ProblemKind::Required(detail) => format!("Required value: {detail}"),
            ProblemKind::Invalid(value, detail) => with("Invalid value", value, detail),
            ProblemKind::InvalidGo(value, detail) => format!("Invalid value: {value}: {detail}"),
            ProblemKind::NotSupported(value, supported) => {
                let quoted: Vec<String> = supported.iter().map(|it| go::quote(it)).collect();
                let detail = format!("supported values: {}", quoted.join(", "));
                with("Unsupported value", value, if quoted.is_empty() { "" } else { &detail })
            }
            ProblemKind::NotSupportedShown(value, supported) => {
                let quoted: Vec<String> = supported.iter().map(|it| go::quote(it)).collect();
                let supported = quoted.join(", ");
                format!("Unsupported value: {value}: supported values: {supported}")
            }
            ProblemKind::Duplicate(value) => with("Duplicate value", value, ""),
            ProblemKind::NotFound(value) => with("Not found", value, ""),
            ProblemKind::Forbidden(detail) if detail.is_empty() => "Forbidden".into(),
            ProblemKind::Forbidden(detail) => format!("Forbidden: {detail}"),
            ProblemKind::TooLong(_, limit) => format!("Too long: must have at most {limit} bytes"),
            ProblemKind::Internal(detail) => format!("Internal error: {detail}"),
            ProblemKind::Worded(_, text) => text.clone(),
        }
    }
}
