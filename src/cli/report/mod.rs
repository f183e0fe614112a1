//! Errors before or after the operator runs, in the form for users: `error: …`, `hint: …`, and the exit code.

use std::{borrow::Cow, fmt, io::Write as _, process::ExitCode};

use crate::scripting::LoadError;
use crate::sources::{self, SourceProblem};

#[cfg(test)]
mod tests;

/// The exit code of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The operator ended normally, or a signal stopped it.
    Success,
    /// The scripts or the operator failed.
    Failure,
    /// The command line is invalid.
    Usage,
    /// Killed during a graceful exit, by a signal of this number: 128 + number, as in shells.
    Killed(u8),
}

/// The error of a failed command, and what to do about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The error; the first line is complete without the others.
    pub message: String,
    /// What to do next, if known.
    pub hint: Option<String>,
    /// The exit code of the process.
    pub exit: Exit,
    /// Whether it was already logged.
    pub is_logged: bool,
}

impl Report {
    /// Creates the report of a failure.
    pub fn failure(message: impl Into<String>) -> Self {
        Report { message: message.into(), hint: None, exit: Exit::Failure, is_logged: false }
    }

    /// Creates the report of an invalid command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Report { exit: Exit::Usage, ..Report::failure(message) }
    }

    /// Adds what to do next.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Report { hint: Some(hint.into()), ..self }
    }

    /// Creates one report of all errors of scripts.
    pub fn of_scripts(errors: &[LoadError]) -> Self {
        SourceProblem::of_scripts(errors).into()
    }

    /// Writes to stderr, unless the error was already logged. A closed stderr is ignored.
    pub fn print(&self) {
        if !self.is_logged {
            let _closed = writeln!(std::io::stderr(), "{self}");
        }
    }

    /// Logs the error: if all lines are JSON, so is the last one.
    #[must_use]
    pub fn into_log(self) -> Self {
        let Report { message, hint, .. } = &self;
        if let Some(hint) = hint {
            tracing::error!(target: "kopf.reactor", hint, "{message}");
        } else {
            tracing::error!(target: "kopf.reactor", "{message}");
        }
        Report { is_logged: true, ..self }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", contained(&self.message))?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {}", contained(hint)),
            None => Ok(()),
        }
    }
}

/// Escapes characters that would control a terminal: arguments and servers can put them into errors.
fn contained(text: &str) -> Cow<'_, str> {
    let is_kept = |it: char| !it.is_control() || matches!(it, '\n' | '\t');
    if text.chars().all(is_kept) {
        return Cow::Borrowed(text);
    }
    let escape = |it: char| {
        let kept = is_kept(it).then_some(it);
        let escaped = kept.is_none().then(|| it.escape_default());
        kept.into_iter().chain(escaped.into_iter().flatten())
    };
    text.chars().flat_map(escape).collect()
}

impl From<SourceProblem> for Report {
    fn from(SourceProblem { message, hint }: SourceProblem) -> Report {
        Report { hint, ..Report::failure(message) }
    }
}

impl From<sources::Error> for Report {
    fn from(error: sources::Error) -> Report {
        let is_usage = matches!(error, sources::Error::NothingNamed);
        let exit = if is_usage { Exit::Usage } else { Exit::Failure };
        Report { exit, ..SourceProblem::from(error).into() }
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
