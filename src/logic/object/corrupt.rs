//! Errors of stored state that cannot be read.

/// Damaged state on an object. The object is not handled until it is repaired, so each message names the place of the damage.
#[derive(Debug, thiserror::Error)]
pub enum CorruptState {
    /// The stored state is not JSON.
    #[error("read the state in {place}: not JSON; fix or remove it")]
    Json {
        /// The annotation or the field.
        place: String,
        /// The error of the parser.
        source: serde_json::Error,
    },
    /// JSON of the wrong shape.
    #[error("read the state in {place}: not a {expected}; fix or remove it")]
    Shape {
        /// The annotation or the field.
        place: String,
        /// The JSON type that was expected.
        expected: &'static str,
    },
    /// A timestamp that cannot be parsed.
    #[error(
        "read the progress of handler '{id}': `{field}` is not a timestamp but {text}; fix or remove the record"
    )]
    Timestamp {
        /// The id of the handler.
        id: String,
        /// The field of the record.
        field: &'static str,
        /// The invalid value, as it is stored.
        text: String,
    },
}
