//! Errors of scripts: the values that scripts raise and catch, and what a failed call reports; the same for both languages.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::Value;

use super::{
    diagnostics::{Columns, FRAMES_MAX, LoadError, STACK_TITLE, excerpt},
    limits,
    refusal::ServerRefusal,
};
use crate::logic::handlers::{
    declare::DeclareError,
    outcome::{Raised, RaisedKind},
};

/// The class of errors without a more specific one.
pub(crate) const CLASS: &str = "Error";

/// The delay of a temporary error that has none, as in Kopf.
pub(crate) const DELAY_DEFAULT: Duration = Duration::from_mins(1);

/// The HTTP status of an admission error that has none, as in Kopf.
const CODE_DEFAULT: u16 = 500;

/// Returns the kind of `kopf.AdmissionError(message, code)`.
///
/// # Errors
/// The code is not the HTTP status of an error: API servers would replace it.
pub(crate) fn admission_error(code: &Value) -> Result<RaisedKind, String> {
    if code.is_null() {
        return Ok(RaisedKind::Admission(CODE_DEFAULT));
    }
    let number = code.as_f64().filter(|it| it.fract() == 0.0 && (400.0..600.0).contains(it));
    let number = number.and_then(|it| it.to_string().parse().ok());
    number.map(RaisedKind::Admission).ok_or_else(|| {
        format!("kopf.AdmissionError: the code must be an HTTP status from 400 to 599, not {code}")
    })
}

/// Returns the HTTP status of an admission error.
fn code(kind: &RaisedKind) -> Option<u16> {
    match kind {
        RaisedKind::Admission(code) => Some(*code),
        RaisedKind::Temporary(_)
        | RaisedKind::Aborted(_)
        | RaisedKind::Permanent
        | RaisedKind::Arbitrary(_)
        | RaisedKind::Unfinished(_) => None,
    }
}

/// An error of a script: its class and its message.
pub(crate) type Described = (String, String);

/// Returns the class name of errors of this kind.
pub(crate) fn class(kind: &RaisedKind) -> String {
    match kind {
        RaisedKind::Temporary(_) | RaisedKind::Aborted(_) => "TemporaryError".into(),
        RaisedKind::Permanent => "PermanentError".into(),
        RaisedKind::Admission(_) => "AdmissionError".into(),
        RaisedKind::Arbitrary(class) => class.clone(),
        RaisedKind::Unfinished(_) => CLASS.into(),
    }
}

/// An error of the host as a value of scripts: `kopf.TemporaryError` and the like, and what servers refuse.
#[derive(Clone, Debug)]
pub(crate) struct ErrorValue {
    /// What it means if the handler does not catch it.
    pub(crate) kind: RaisedKind,
    /// The string that it prints as.
    pub(crate) message: String,
    refusal: Option<Box<ServerRefusal>>,
}

impl ErrorValue {
    /// The names of its fields.
    pub(crate) const FIELDS: [&'static str; 6] =
        ["message", "delay", "code", "status", "reason", "details"];

    /// Returns an error of this kind.
    pub(crate) fn new(kind: RaisedKind, message: String) -> Self {
        ErrorValue { kind, message, refusal: None }
    }

    /// Returns the error value for a refusal by a server.
    pub(crate) fn of_server(refusal: Box<ServerRefusal>) -> Self {
        let kind = RaisedKind::Arbitrary(refusal.class.to_owned());
        ErrorValue { kind, message: refusal.message.clone(), refusal: Some(refusal) }
    }

    /// Returns a field; null if there is none of this name.
    pub(crate) fn field(&self, name: &str) -> Value {
        match (name, &self.kind) {
            ("message", _) => self.message.as_str().into(),
            ("delay", RaisedKind::Temporary(Some(it)) | RaisedKind::Aborted(Some(it))) => {
                it.as_secs_f64().into()
            }
            ("code", kind) => code(kind).map_or(Value::Null, Value::from),
            _ => self.refusal.as_ref().map_or(Value::Null, |it| it.field(name)),
        }
    }

    /// Returns its class and its message.
    pub(crate) fn described(&self) -> Described {
        (class(&self.kind), self.message.clone())
    }
}

/// Why a function of the host failed.
#[derive(Clone, Debug)]
pub(crate) enum CallError {
    /// What is wrong with the call.
    Told(DeclareError),
    /// A value that scripts can inspect when they catch it.
    Raised(ErrorValue),
}

impl From<String> for CallError {
    fn from(message: String) -> Self {
        CallError::Told(message.into())
    }
}

impl From<DeclareError> for CallError {
    fn from(error: DeclareError) -> Self {
        CallError::Told(error)
    }
}

/// The sources of a script and of its modules, by the names used in positions.
#[derive(Debug, Default)]
pub(crate) struct ScriptSources(Mutex<BTreeMap<String, Arc<str>>>);

impl ScriptSources {
    /// Adds a source, or replaces it.
    pub(crate) fn insert(&self, name: &str, text: Arc<str>) {
        self.0.lock().insert(name.to_owned(), text);
    }

    /// Returns a line, counted from 1.
    pub(crate) fn line(&self, name: &str, number: u32) -> Option<String> {
        let number = usize::try_from(number).ok()?.checked_sub(1)?;
        self.0.lock().get(name)?.lines().nth(number).map(str::to_owned)
    }

    /// Returns the first result of `find` for the name of a source.
    pub(crate) fn find<T>(&self, find: impl FnMut(&str) -> Option<T>) -> Option<T> {
        self.0.lock().keys().map(String::as_str).find_map(find)
    }
}

/// A position in a source of the script.
#[derive(Clone, Debug)]
pub(crate) struct SourcePosition {
    pub(crate) file: String,
    pub(crate) line: u32,
    /// Unknown in some languages.
    pub(crate) column: Option<usize>,
}

/// An error that was not caught by a function of the script, split into its parts.
#[derive(Debug)]
pub(crate) struct ScriptError {
    pub(crate) kind: RaisedKind,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) position: Option<SourcePosition>,
    /// The frames of the script and its modules, innermost first; those of the host are left out.
    pub(crate) stack: Vec<String>,
}

impl ScriptError {
    /// Returns an error of this class, or of the default one, without a position.
    pub(crate) fn new(class: Option<String>, message: String) -> Self {
        let class = limits::cut(class.unwrap_or_else(|| CLASS.to_owned()));
        let kind = RaisedKind::Arbitrary(class);
        ScriptError { kind, message, hint: None, position: None, stack: Vec::new() }
    }

    /// Returns the error of a call that was aborted, at the same position. A retry may succeed.
    pub(crate) fn of_aborted(self, message: String) -> Self {
        let kind = RaisedKind::Aborted(Some(DELAY_DEFAULT));
        ScriptError { kind, message, hint: None, ..self }
    }

    /// Returns an error value, at the same position.
    pub(crate) fn of_value(self, error: ErrorValue) -> Self {
        ScriptError { kind: error.kind, message: error.message, hint: None, ..self }
    }

    /// Returns whether the position in the script is known.
    pub(crate) fn has_place(&self) -> bool {
        self.position.is_some() || !self.stack.is_empty()
    }

    /// Returns what scripts catch: one line with the position.
    pub(crate) fn into_text(self) -> String {
        let ScriptError { message, position, .. } = self.hinted();
        match position {
            Some(SourcePosition { file, line, .. }) => format!("{file}:{line}: {message}"),
            None => message,
        }
    }

    fn hinted(mut self) -> Self {
        if let Some(hint) = self.hint.take() {
            self.message = format!("{} ({hint})", self.message);
        }
        self.message = limits::cut(self.message);
        self
    }

    /// Returns the error of a call: with the position, its source line, and the calls that led there, innermost first.
    pub(crate) fn into_raised(self, sources: &ScriptSources) -> Raised {
        let this = self.hinted();
        let mut lines = Vec::new();
        if let Some(SourcePosition { file, line, column }) = &this.position {
            let place = column.map_or_else(String::new, |it| format!(":{it}"));
            lines.push(format!("{file}:{line}{place}: {}", this.message));
            let source = sources.line(file, *line).map(|text| match column {
                Some(column) => excerpt(&text, *column).trim().to_owned(),
                None => excerpt(text.trim(), 0).trim().to_owned(),
            });
            lines.extend(source.map(|text| format!("    {text}")));
        }
        if !this.stack.is_empty() {
            lines.push(STACK_TITLE.into());
            let shown = this.stack.iter().take(FRAMES_MAX);
            lines.extend(shown.map(|frame| format!("    {frame}")));
            if let Some(more) = this.stack.len().checked_sub(FRAMES_MAX).filter(|it| *it > 0) {
                lines.push(format!("    … {more} more"));
            }
        }
        let trace = (!lines.is_empty()).then(|| lines.join("\n"));
        Raised { kind: this.kind, message: this.message, trace }
    }

    /// Returns the error of loading the script in this file; `hint` makes one of the message and the source line.
    pub(crate) fn into_load_error(
        self,
        sources: &ScriptSources,
        file: &str,
        hint: impl FnOnce(&str, &str) -> Option<String>,
    ) -> LoadError {
        let source_line = self.position.as_ref().and_then(|it| sources.line(&it.file, it.line));
        let line = source_line.as_deref().unwrap_or_default();
        let hint = self.hint.or_else(|| hint(&self.message, line));
        LoadError {
            file: self.position.as_ref().map_or_else(|| file.to_owned(), |it| it.file.clone()),
            line: self.position.map(|it| it.line),
            columns: Columns::named(&self.message, line),
            source_line,
            message: self.message,
            hint,
        }
    }
}
