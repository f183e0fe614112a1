//! What goes wrong before or after the operator runs, as the user reads it: `error: …`, `hint: …`, and the exit code.

use std::{fmt, fmt::Write as _, io::Write as _, process::ExitCode};

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
}

impl Report {
    /// Something failed.
    pub fn failure(message: impl Into<String>) -> Self {
        Report { message: message.into(), hint: None, exit: Exit::Failure }
    }

    /// The command line makes no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Report { message: message.into(), hint: None, exit: Exit::Usage }
    }

    /// Says what to do next.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Report { hint: Some(hint.into()), ..self }
    }

    /// Scripts that cannot be used, all of them in one report.
    pub fn of_scripts(errors: &[LoadError]) -> Self {
        let mut message = String::new();
        for (index, error) in errors.iter().enumerate() {
            // Nothing here can fail: the sink is a string.
            let _always_fits = if index == 0 {
                write!(message, "{}", Excerpt(error))
            } else {
                write!(message, "\nerror: {}", Excerpt(error))
            };
        }
        Report::failure(message)
    }

    /// Writes it to stderr. A closed stderr is nothing to stumble over.
    pub fn print(&self) {
        let _closed = writeln!(std::io::stderr(), "{self}");
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

/// An error in a script, told as a compiler tells it.
struct Excerpt<'a>(&'a LoadError);

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LoadError { file, line, source_line, message, hint } = self.0;
        match line {
            Some(line) => write!(f, "{file}:{line}: {message}")?,
            None => write!(f, "{file}: {message}")?,
        }
        if let (Some(line), Some(text)) = (line, source_line) {
            let number = line.to_string();
            let margin = " ".repeat(number.len());
            write!(f, "\n {margin} |\n {number} | {}\n {margin} |", text.trim_end())?;
        }
        match hint {
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
