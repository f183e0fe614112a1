//! Messages to the user: problems, which reject a set of scripts, and notices about watching.

use std::fmt;

use crate::scripting::LoadError;

/// The reason why a set of scripts cannot be used, and a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceProblem {
    /// The error; the first line is complete without the others.
    pub message: String,
    /// The hint, if there is one.
    pub hint: Option<String>,
}

/// A message about watching.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A message for the log at level info.
    Info(String),
    /// A message for the log at level warning.
    Warning(String),
}

impl Notice {
    /// Returns the message without its level.
    pub fn text(&self) -> &str {
        match self {
            Notice::Info(text) | Notice::Warning(text) => text,
        }
    }
}

impl SourceProblem {
    /// Creates a problem without a hint.
    pub fn new(message: impl Into<String>) -> Self {
        SourceProblem { message: message.into(), hint: None }
    }

    /// Adds a hint, or replaces the earlier one.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        SourceProblem { hint: Some(hint.into()), ..self }
    }

    /// Creates one problem of all errors of scripts.
    pub fn of_scripts(errors: &[LoadError]) -> Self {
        let told: Vec<_> = errors.iter().map(ToString::to_string).collect();
        let text = told.join("\n");
        // Each error starts with `error: `; the problem adds the first one itself.
        SourceProblem::new(text.strip_prefix("error: ").unwrap_or(&text))
    }
}

impl fmt::Display for SourceProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}
