//! Errors of a script: what its handler meant, and where it happened.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use rhai::{Dynamic, EvalAltResult, ParseErrorType, Position};
use serde_json::Value;

use super::{
    api::{self, ServerError},
    control::Abort,
    runner::RunError,
    value::text,
};
use crate::logic::handlers::{
    declare::DeclareError,
    outcome::{Raised, RaisedKind},
};
use crate::scripting::{
    LoadError,
    functions::names,
    host::diagnostics::{FRAMES_MAX, STACK_TITLE, excerpt},
    surface::Language,
    values::limits,
};
use crate::settings::Sandbox;

/// The class of errors that have none of their own.
const CLASS: &str = "Error";
/// The name of functions without one.
pub(super) const CLOSURE: &str = "a closure";

/// The error values of the host, made for `throw`.
#[derive(Clone, Debug)]
pub(super) struct Thrown {
    pub(super) kind: RaisedKind,
    pub(super) message: String,
}

/// A declaration that cannot be accepted, on its way to the loader.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl Thrown {
    pub(super) fn into_error(self) -> Box<EvalAltResult> {
        EvalAltResult::ErrorRuntime(Dynamic::from(self), Position::NONE).into()
    }
}

impl Refused {
    pub(super) fn into_error(self) -> Box<EvalAltResult> {
        EvalAltResult::ErrorRuntime(Dynamic::from(self), Position::NONE).into()
    }
}

impl From<DeclareError> for Refused {
    fn from(error: DeclareError) -> Self {
        Refused { message: error.message, hint: error.hint }
    }
}

/// An arbitrary error with this message.
pub(super) fn problem(message: impl Into<String>) -> Box<EvalAltResult> {
    EvalAltResult::ErrorRuntime(message.into().into(), Position::NONE).into()
}

/// What the errors of a script are explained with.
#[derive(Debug)]
pub(super) struct Sources {
    /// The texts of the script and of its modules, by the names used in positions.
    texts: Mutex<BTreeMap<String, Arc<str>>>,
    limits: Sandbox,
}

impl Sources {
    /// Of a script with these limits, without a text yet.
    pub(super) fn new(limits: Sandbox) -> Self {
        Sources { texts: Mutex::default(), limits }
    }

    /// The limit that was reached, if that is the cause.
    fn limit(&self, cause: &EvalAltResult) -> Option<String> {
        if let EvalAltResult::ErrorStackOverflow(..) = cause {
            return Some(limits::too_deep_calls(self.limits.call_depth));
        }
        let EvalAltResult::ErrorDataTooLarge(what, _) = cause else { return None };
        Some(match what.as_str() {
            "Length of string" => limits::too_long_text(self.limits.string_size),
            "Size of object map" => limits::too_many_items("a map", limits::ITEMS_MAX),
            _ => limits::too_many_items("a list", limits::ITEMS_MAX),
        })
    }

    pub(super) fn insert(&self, name: &str, text: &str) {
        let mut all = self.texts.lock();
        all.insert(name.to_owned(), text.into());
    }

    /// A value that a handler gives to the host, if it is not too large.
    pub(super) fn within_result(&self, name: &str, value: Value) -> Result<Value, Raised> {
        let limit = self.limits.result_size;
        if limits::is_within(&value, limit) {
            return Ok(value);
        }
        Err(of_value(limits::too_large(name, limit)))
    }

    /// A patch, if it is not too large.
    pub(super) fn within_patch(
        &self,
        fields: &serde_json::Map<String, Value>,
    ) -> Result<(), Raised> {
        let limit = self.limits.result_size;
        if limits::is_within(fields, limit) {
            return Ok(());
        }
        Err(of_value(limits::too_large("the patch", limit)))
    }

    /// The text of a line.
    pub(super) fn line(&self, name: &str, number: usize) -> Option<String> {
        let all = self.texts.lock();
        let line = all.get(name)?.lines().nth(number.checked_sub(1)?)?;
        Some(line.to_owned())
    }
}

/// A place in the call stack of an error.
struct Frame {
    file: String,
    position: Position,
    function: String,
}

/// An error taken apart: the innermost cause, and the frames, innermost first.
struct Trail {
    cause: EvalAltResult,
    frames: Vec<Frame>,
}

impl Trail {
    fn of(error: EvalAltResult, file: &str) -> Self {
        let mut frames = Vec::new();
        let mut here =
            Frame { file: file.to_owned(), position: Position::NONE, function: String::new() };
        let mut error = error;
        loop {
            here.position = error.take_position();
            let (inner, function, file) =
                if let EvalAltResult::ErrorInFunctionCall(function, source, inner, _) = error {
                    (inner, function, source)
                } else if let EvalAltResult::ErrorInModule(module, inner, _) = error {
                    (inner, String::new(), module)
                } else {
                    frames.push(here);
                    frames.reverse();
                    return Trail { cause: error, frames };
                };
            let file = if file.is_empty() { here.file.clone() } else { file };
            let next = Frame { file, position: Position::NONE, function: readable(&function) };
            frames.push(std::mem::replace(&mut here, next));
            error = *inner;
        }
    }

    /// The innermost place that is known.
    fn place(&self) -> Option<&Frame> {
        self.frames.iter().find(|frame| !frame.position.is_none())
    }

    /// The place with the message, its source line, and the calls that led there, innermost first: as in Lua.
    fn trace(&self, sources: &Sources, message: &str) -> Option<String> {
        let Frame { file, position, .. } = self.place()?;
        let (line, column) = (position.line()?, position.position().unwrap_or_default());
        let mut lines = vec![format!("{file}:{line}:{column}: {message}")];
        let source = sources.line(file, line).map(|text| excerpt(&text, column));
        lines.extend(source.map(|text| format!("    {}", text.trim())));
        lines.push(STACK_TITLE.into());
        let frames: Vec<_> = self.frames.iter().filter(|it| !it.position.is_none()).collect();
        for Frame { file, position, function } in frames.iter().take(FRAMES_MAX) {
            let line = position.line().unwrap_or_default();
            let named = !function.is_empty() && function != CLOSURE;
            let function = if named { format!(" function {function}") } else { String::new() };
            lines.push(format!("    {file}:{line}{function}"));
        }
        if let Some(more) = frames.len().checked_sub(FRAMES_MAX).filter(|it| *it > 0) {
            lines.push(format!("    … {more} more"));
        }
        Some(lines.join("\n"))
    }

    /// The line of the innermost place; empty if it is not known.
    fn line(&self, sources: &Sources) -> String {
        let line = |it: &Frame| sources.line(&it.file, it.position.line()?);
        self.place().and_then(line).unwrap_or_default()
    }

    /// The text of the cause.
    fn message(&self, sources: &Sources) -> String {
        if let Some(limit) = sources.limit(&self.cause) {
            return limit;
        }
        if let Some(ServerError(refusal)) = self.thrown() {
            return refusal.message;
        }
        if let EvalAltResult::ErrorRuntime(value, _) = &self.cause {
            return text(value);
        }
        if let EvalAltResult::ErrorFunctionNotFound(signature, _) = &self.cause
            && let Some(message) = misused(signature, &self.line(sources))
        {
            return message;
        }
        if let EvalAltResult::ErrorIndexingType(what, _) = &self.cause {
            return format!("`{what}` is not possible: the keys of maps are strings");
        }
        let message = self.cause.to_string();
        if message.contains("for type '()'") {
            return format!("{message}; `?.` reads on where a field may be missing");
        }
        if let EvalAltResult::ErrorDataRace(name, _) = &self.cause {
            let named = match name.strip_prefix("argument ") {
                Some(_) => name.clone(),
                None if name.is_empty() => "a value".into(),
                None => format!("`{name}`"),
            };
            return format!(
                "{named} is in use: a function works on it, and what it calls or is given needs it too; pass a copy of it"
            );
        }
        message
    }

    /// What it means for a handler, and its message.
    fn meaning(&self, sources: &Sources) -> (RaisedKind, String) {
        if let Some(Thrown { kind, message }) = self.thrown() {
            return (kind, message);
        }
        if let Some(abort) = self.thrown::<Abort>() {
            return (RaisedKind::Aborted(Some(names::DELAY_DEFAULT)), describe(abort));
        }
        let arbitrary = |class: &str| RaisedKind::Arbitrary(limits::cut(class.to_owned()));
        if let Some(Refused { message, hint }) = self.thrown() {
            let hint = hint.map(|it| format!(" ({it})")).unwrap_or_default();
            return (arbitrary(CLASS), format!("{message}{hint}"));
        }
        let (class, message) = self.described(sources);
        (arbitrary(class.as_deref().unwrap_or(CLASS)), message)
    }

    /// Class and message of the cause; a thrown map may have both.
    fn described(&self, sources: &Sources) -> (Option<String>, String) {
        if let EvalAltResult::ErrorRuntime(value, _) = &self.cause
            && let Ok(fields) = value.as_map_ref()
            && let Some(message) = fields.get("message")
        {
            return (fields.get("class").map(text), text(message));
        }
        let class = self.thrown().map(|ServerError(it)| it.class.to_owned());
        (class, self.message(sources))
    }

    /// A value of the host that was thrown.
    fn thrown<T: Clone + 'static>(&self) -> Option<T> {
        if let EvalAltResult::ErrorRuntime(value, _) | EvalAltResult::ErrorTerminated(value, _) =
            &self.cause
        {
            value.clone().try_cast::<T>()
        } else {
            None
        }
    }
}

/// What is wrong with a call of a function of `kopf` or of a library, of which the signature tells: `name (kopf, …)` or
/// `kopf::name (…)`.
fn misused(signature: &str, line: &str) -> Option<String> {
    let (name, arguments) = signature.split_once(" (")?;
    let receiver = arguments.split([',', ')']).next().unwrap_or_default();
    if let Some(message) = missing_operand(name, arguments) {
        return Some(message);
    }
    if let Some(message) = names::unknown_method(receiver, name, Language::Rhai) {
        return Some(message);
    }
    let (owner, name) = name.rsplit_once("::").unwrap_or((receiver, name));
    if owner != "kopf" {
        // Types of arguments have no commas of their own here.
        let arguments = arguments.trim_end_matches(')').split(',').filter(|it| !it.is_empty());
        let given = arguments.count().saturating_sub(usize::from(owner == receiver));
        return api::misused((owner, name), given, line);
    }
    Some(if names::is_known(name) {
        format!("kopf.{name}: wrong number of arguments")
    } else {
        names::unknown(name)
    })
}

/// What is wrong with an operator that got `()`: a field that is not there.
fn missing_operand(operator: &str, operands: &str) -> Option<String> {
    let is_operator = !operator.is_empty() && operator.bytes().all(|it| it.is_ascii_punctuation());
    let operands = operands.strip_suffix(')')?;
    let is_missing = is_operator && operands.split(", ").any(|it| it == "()");
    is_missing.then(|| {
        let operands = operands.replace(", ", " and ");
        format!(
            "`{operator}` of {operands}: a field that is not there is `()`; give it a default, such as `value ?? 0` or \
             `ctx.memo.get(\"count\", 0)`"
        )
    })
}

/// What to write instead of a word that Rhai keeps for itself, where it stands behind a dot.
fn reserved(cause: &EvalAltResult, line: &str) -> Option<String> {
    let EvalAltResult::ErrorParsing(ParseErrorType::Reserved(word), _) = cause else { return None };
    if !line.contains(&format!(".{word}")) {
        return None;
    }
    Some(match word.as_str() {
        "debug" => "in Rhai `debug` is reserved: use `ctx.logger.dbg(…)`".into(),
        "new" => {
            "in Rhai `new` is reserved: use `ctx.new_value`, or `[\"new\"]` for a field".into()
        }
        _ => format!("in Rhai `{word}` is reserved: write `[\"{word}\"]` instead of `.{word}`"),
    })
}

/// Functions without a name have one that nobody wrote.
fn readable(function: &str) -> String {
    if is_anonymous(function) { CLOSURE.into() } else { function.into() }
}

/// Whether a function was written without a name.
pub(super) fn is_anonymous(function: &str) -> bool {
    function.starts_with("anon$")
}

/// What an error that left a function means for its handler.
pub(super) fn raised(error: EvalAltResult, file: &str, sources: &Sources) -> Raised {
    let trail = Trail::of(error, file);
    let (kind, message) = trail.meaning(sources);
    let message = limits::cut(message);
    let trace = trail.trace(sources, &message);
    Raised { kind, message, trace }
}

/// Returns whether an error ends its call.
pub(super) fn is_abort(error: &EvalAltResult) -> bool {
    let mut cause = error;
    while let EvalAltResult::ErrorInFunctionCall(_, _, inner, _)
    | EvalAltResult::ErrorInModule(_, inner, _) = cause
    {
        cause = inner;
    }
    matches!(cause, EvalAltResult::ErrorRuntime(value, _) | EvalAltResult::ErrorTerminated(value, _) if value.is::<Abort>())
}

/// The place of a call that has to end, if its error has one.
pub(super) fn place_of_abort(
    error: EvalAltResult,
    abort: Abort,
    (file, sources): (&str, &Sources),
) -> Raised {
    let trace = is_abort(&error).then(|| Trail::of(error, file).trace(sources, &describe(abort)));
    aborted(abort, trace.flatten())
}

/// An error of the host, not of the script.
pub(super) fn of_host(message: impl Into<String>) -> Raised {
    Raised::of_host(message)
}

/// A job that gave no result.
pub(super) fn of_runner(error: &RunError) -> Raised {
    match error {
        RunError::Stuck(limit) => aborted(Abort::Exhausted(*limit), None),
        RunError::Busy | RunError::NoThread(_) | RunError::Panicked(_) => {
            of_host(error.to_string())
        }
    }
}

/// An error of a value that a script gave to the host.
pub(super) fn of_value(message: String) -> Raised {
    Raised { kind: RaisedKind::Arbitrary(CLASS.into()), message, trace: None }
}

/// What an abort means for its handler: no fault of its logic, so it is tried again later.
pub(super) fn aborted(abort: Abort, trace: Option<String>) -> Raised {
    let kind = RaisedKind::Aborted(Some(names::DELAY_DEFAULT));
    Raised { kind, message: describe(abort), trace }
}

/// What ended a call.
pub(super) fn describe(abort: Abort) -> String {
    match abort {
        Abort::Cancelled => "the call was cancelled".into(),
        Abort::Exhausted(limit) => limits::computed_too_long(limit),
        Abort::Full(limit) => limits::too_much_memory(limit),
        Abort::Leaking => limits::leaking(),
    }
}

/// Why a script cannot be used, as a compiler tells it.
pub(super) fn load_error(error: EvalAltResult, file: &str, sources: &Sources) -> LoadError {
    let trail = Trail::of(error, file);
    let place = trail.place();
    let line = place.and_then(|it| it.position.line());
    let file = place.map_or(file, |it| it.file.as_str());
    let source_line = line.and_then(|it| sources.line(file, it));
    let (message, hint) = match trail.thrown::<Refused>() {
        Some(Refused { message, hint }) => (message, hint),
        None => match (trail.thrown::<Thrown>(), trail.thrown::<Abort>()) {
            (Some(thrown), _) => (thrown.message, None),
            (None, Some(abort)) => (describe(abort), None),
            (None, None) => {
                let hint = source_line.as_deref().and_then(|it| reserved(&trail.cause, it));
                let is_unset = matches!(trail.cause, EvalAltResult::ErrorVariableNotFound(..));
                let unset = is_unset.then(|| names::IS_DEFINED.to_owned());
                (trail.described(sources).1, hint.or(unset))
            }
        },
    };
    LoadError {
        file: file.to_owned(),
        line: line.and_then(|it| u32::try_from(it).ok()),
        source_line,
        message,
        hint,
    }
}
