//! Validation errors of single fields, with the messages of the real server.

use serde_json::Value;

use super::go;

/// One validation error. A refusal lists all of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ValidationProblem {
    /// The field path, such as `spec.containers[0].name`.
    pub(crate) field: String,
    pub(crate) kind: ProblemKind,
}

/// The kind of error. The strings follow the fixed words of the real server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ProblemKind {
    /// The detail, which may be empty.
    Required(String),
    /// The value, and the detail, which may be empty.
    Invalid(Value, String),
    /// The detail; the value is not shown.
    Refused(String),
    /// The value, and the supported ones.
    NotSupported(Value, Vec<String>),
    Duplicate(Value),
    NotFound(Value),
    Forbidden(String),
    /// The value, and the limit in bytes.
    TooLong(Value, usize),
    /// The number of items, and the limit.
    TooMany(usize, usize),
    /// The value, and the expected type.
    TypeInvalid(Value, String),
    Internal(String),
}

impl ValidationProblem {
    /// Makes an error of this kind.
    pub(crate) fn new(field: impl Into<String>, kind: ProblemKind) -> Self {
        Self { field: field.into(), kind }
    }

    /// Makes the error of a missing field.
    pub(crate) fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(field, ProblemKind::Required(detail.into()))
    }

    /// Makes the error of an invalid value.
    pub(crate) fn invalid(
        field: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(field, ProblemKind::Invalid(value.into(), detail.into()))
    }

    /// Makes the error of a value that is not one of the supported ones.
    pub(crate) fn not_supported(
        field: impl Into<String>,
        value: impl Into<Value>,
        supported: &[&str],
    ) -> Self {
        let supported = supported.iter().copied().map(String::from).collect();
        Self::new(field, ProblemKind::NotSupported(value.into(), supported))
    }

    /// Makes the error of a change or a field that is not allowed.
    pub(crate) fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(field, ProblemKind::Forbidden(detail.into()))
    }

    /// Returns the machine-readable reason.
    pub(crate) fn reason(&self) -> &'static str {
        match &self.kind {
            ProblemKind::Required(_) => "FieldValueRequired",
            ProblemKind::Invalid(..) | ProblemKind::Refused(_) => "FieldValueInvalid",
            ProblemKind::NotSupported(..) => "FieldValueNotSupported",
            ProblemKind::Duplicate(_) => "FieldValueDuplicate",
            ProblemKind::NotFound(_) => "FieldValueNotFound",
            ProblemKind::Forbidden(_) => "FieldValueForbidden",
            ProblemKind::TooLong(..) => "FieldValueTooLong",
            ProblemKind::TooMany(..) => "FieldValueTooMany",
            ProblemKind::TypeInvalid(..) => "FieldValueTypeInvalid",
            ProblemKind::Internal(_) => "InternalError",
        }
    }

    /// Returns the message without the field.
    pub(crate) fn text(&self) -> String {
        let with = |words: &str, value: &Value, detail: &str| match detail {
            "" => format!("{words}: {}", go::value(value)),
            detail => format!("{words}: {}: {detail}", go::value(value)),
        };
        match &self.kind {
            ProblemKind::Required(detail) if detail.is_empty() => "Required value".into(),
            ProblemKind::Required(detail) => format!("Required value: {detail}"),
            ProblemKind::Invalid(value, detail) | ProblemKind::TypeInvalid(value, detail) => {
                with("Invalid value", value, detail)
            }
            ProblemKind::Refused(detail) => format!("Invalid value: {detail}"),
            ProblemKind::NotSupported(value, supported) => {
                let quoted: Vec<String> = supported.iter().map(|it| go::quote(it)).collect();
                let detail = format!("supported values: {}", quoted.join(", "));
                with("Unsupported value", value, if quoted.is_empty() { "" } else { &detail })
            }
            ProblemKind::Duplicate(value) => with("Duplicate value", value, ""),
            ProblemKind::NotFound(value) => with("Not found", value, ""),
            ProblemKind::Forbidden(detail) if detail.is_empty() => "Forbidden".into(),
            ProblemKind::Forbidden(detail) => format!("Forbidden: {detail}"),
            ProblemKind::TooLong(_, limit) => {
                format!("Too long: may not be more than {limit} {}", several(*limit, "byte"))
            }
            ProblemKind::TooMany(count, most) => {
                format!("Too many: {count}: must have at most {most} {}", several(*most, "item"))
            }
            ProblemKind::Internal(detail) => format!("Internal error: {detail}"),
        }
    }
}

fn several(count: usize, what: &str) -> String {
    if count == 1 { what.to_owned() } else { format!("{what}s") }
}
