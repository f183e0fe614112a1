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
    /// Why a value is refused that is not shown.
    Refused(String),
    /// The value, and what would be accepted.
    NotSupported(Value, Vec<String>),
    Duplicate(Value),
    NotFound(Value),
    Forbidden(String),
    /// The value, and the limit in bytes.
    TooLong(Value, usize),
    /// The value, and the greatest number of items.
    TooMany(usize, usize),
    /// A value of a wrong type, and what is expected.
    TypeInvalid(Value, String),
    Internal(String),
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

    /// A value that is not one of the supported ones.
    pub(crate) fn not_supported(
        field: impl Into<String>,
        value: impl Into<Value>,
        supported: &[&str],
    ) -> Self {
        let supported = supported.iter().copied().map(String::from).collect();
        Self::new(field, ProblemKind::NotSupported(value.into(), supported))
    }

    /// A change or a field that is not allowed.
    pub(crate) fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(field, ProblemKind::Forbidden(detail.into()))
    }

    /// The machine-readable word.
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

    /// The words for people, without the field.
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
