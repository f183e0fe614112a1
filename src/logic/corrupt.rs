//! What is stored on an object cannot be read.

/// State that somebody damaged. Handling such an object goes on only when it is repaired, so each text says where.
#[derive(Debug, thiserror::Error)]
pub enum CorruptState {
    /// Not JSON at all.
    #[error("read the state in {place}: not JSON; fix or remove it")]
    Json {
        /// The annotation or the field.
        place: String,
        /// What the parser says.
        source: serde_json::Error,
    },
    /// JSON of the wrong shape.
    #[error("read the state in {place}: not a {expected}; fix or remove it")]
    Shape {
        /// The annotation or the field.
        place: String,
        /// What should be there.
        expected: &'static str,
    },
    /// A moment that is none.
    #[error(
        "read the progress of handler '{id}': `{field}` is not a timestamp but {text}; fix or remove the record"
    )]
    Timestamp {
        /// The handler.
        id: String,
        /// The field of the record.
        field: &'static str,
        /// What is there instead.
        text: String,
    },
}
