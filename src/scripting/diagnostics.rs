//! Errors of scripts that cannot be loaded, told as a compiler tells them.

use std::fmt;

/// A script that cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadError {
    /// The file, as the user gave it.
    pub file: String,
    /// The line in it, from 1.
    pub line: Option<u32>,
    /// The text of that line.
    pub source_line: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do next, if we know.
    pub hint: Option<String>,
}

impl fmt::Display for LoadError {
    /// ```text
    /// error: handlers.lua:12: kopf.on_create: unknown option `retry`
    ///    |
    /// 12 | kopf.on_create("kex", {retry = 3}, create_fn)
    ///    | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    /// hint: …
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.message)?;
        if let Some((line, source)) = self.line.zip(self.source_line.as_deref()) {
            // A tab would shift the marks.
            let source = source.trim_end().replace('\t', "    ");
            let number = line.to_string();
            let gutter = " ".repeat(number.len());
            let indent = source.len() - source.trim_start().len();
            let marks = "^".repeat(source.trim_start().chars().count());
            write!(f, "\n{gutter} |\n{number} | {source}\n{gutter} | {:indent$}{marks}", "")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for LoadError {}
