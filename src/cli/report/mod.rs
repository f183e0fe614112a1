//! What goes wrong before or after the operator runs, as the user reads it: `error: …`, `hint: …`, and the exit code.

use std::{fmt, io::Write as _, process::ExitCode};

use crate::scripting::LoadError;

#[cfg(test)]
mod tests;

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// A signal stopped it, or it had nothing more to do.
    Success,
    /// The scripts or the operator failed.
    Failure,
    /// The command line makes no sense.
    Usage,
    /// Ended in the middle of a graceful exit, by a signal of this number: 128 + number, as shells count.
    Killed(u8),
}

/// Why the command failed and what to do about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What is wrong; the first line stands for itself.
    pub message: String,
    /// What to do next, if we know.
    pub hint: Option<String>,
    /// The exit code that goes with it.
    pub exit: Exit,
    /// Whether the log has it already.
    pub is_logged: bool,
}

impl Report {
    /// Something failed.
    pub fn failure(message: impl Into<String>) -> Self {
        Report { message: message.into(), hint: None, exit: Exit::Failure, is_logged: false }
    }

    /// The command line makes no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Report { exit: Exit::Usage, ..Report::failure(message) }
    }

    /// Says what to do next.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Report { hint: Some(hint.into()), ..self }
    }

    /// Scripts that cannot be used, all of them in one report.
    pub fn of_scripts(errors: &[LoadError]) -> Self {
        let told: Vec<_> = errors.iter().map(ToString::to_string).collect();
        let text = told.join("\n");
        // Each tells itself as an error; the first `error: ` is that of the report.
        Report::failure(text.strip_prefix("error: ").unwrap_or(&text))
    }

    /// Writes it to stderr, unless it is there already. A closed stderr is nothing to stumble over.
    pub fn print(&self) {
        if !self.is_logged {
            let _closed = writeln!(std::io::stderr(), "{self}");
        }
    }

    /// Tells it as a line of the log: where every line is JSON, so is the last one.
    #[must_use]
    pub fn into_log(self) -> Self {
        let Report { message, hint, .. } = &self;
        if let Some(hint) = hint {
            tracing::error!(target: "kopf.running", hint, "{message}");
        } else {
            tracing::error!(target: "kopf.running", "{message}");
        }
        Report { is_logged: true, ..self }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        match exit {
            Exit::Success => ExitCode::SUCCESS,
            Exit::Failure => ExitCode::from(1),
            Exit::Usage => ExitCode::from(2),
            Exit::Killed(signal) => ExitCode::from(128_u8.saturating_add(signal)),
        }
    }
}
