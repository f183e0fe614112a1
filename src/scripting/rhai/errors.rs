//! Errors of a script: what they mean for the handler, and where they happened.

use kopf_rhai::problem;
use rhai::{Dynamic, EvalAltResult, FnPtr, ParseErrorType, Position};

use super::{api, value::text};
use crate::logic::handlers::{declare::DeclareError, outcome::Raised};
use crate::scripting::{
    LoadError,
    blocking::{control::Abort, runner::RunError},
    functions::names,
    handles::unknown::unknown_method,
    terms::Language,
    values::{
        errors::{self, CallError, Described, ErrorValue, ScriptError, ScriptSources},
        limits,
    },
};
use crate::settings::Sandbox;

/// The name of anonymous functions in messages.
pub(super) const CLOSURE: &str = "a closure";

/// Converts the error of a host function into the one that the script catches.
pub(super) fn raise(failed: CallError) -> Box<EvalAltResult> {
    let value = match failed {
        CallError::Told(DeclareError { message, hint: None }) => return problem(message),
        CallError::Told(error) => Dynamic::from(error),
        CallError::Raised(error) => Dynamic::from(error),
    };
    EvalAltResult::ErrorRuntime(value, Position::NONE).into()
}

/// The texts and the limits of a script, which its error messages need.
#[derive(Debug)]
pub(super) struct ErrorSources {
    pub(super) texts: ScriptSources,
    limits: Sandbox,
}

impl ErrorSources {
    /// Creates the sources of a script with these limits, without any text yet.
    pub(super) fn new(limits: Sandbox) -> Self {
        ErrorSources { texts: ScriptSources::default(), limits }
    }
}

/// A frame in the call stack of an error.
struct StackFrame {
    file: String,
    position: Position,
    function: String,
}

/// An error, split into its innermost cause and its frames, innermost first.
struct Trail {
    cause: EvalAltResult,
    frames: Vec<StackFrame>,
}

impl Trail {
    fn of(error: EvalAltResult, file: &str) -> Self {
        let mut frames = Vec::new();
        let mut here =
            StackFrame { file: file.to_owned(), position: Position::NONE, function: String::new() };
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
            let next = StackFrame { file, position: Position::NONE, function: readable(&function) };
            frames.push(std::mem::replace(&mut here, next));
            error = *inner;
        }
    }

    /// Returns the innermost frame whose position is known.
    fn place(&self) -> Option<&StackFrame> {
        self.frames.iter().find(|frame| !frame.position.is_none())
    }

    /// Converts the error into one that is independent of Rhai.
    fn taken_apart(self, sources: &ErrorSources) -> ScriptError {
        let told = ScriptError::new(None, String::new());
        let told = if let Some(error) = self.thrown::<ErrorValue>() {
            told.of_value(error)
        } else if let Some(abort) = self.thrown() {
            ended(told, abort)
        } else if let Some(DeclareError { message, hint }) = self.thrown() {
            ScriptError { message, hint, ..told }
        } else {
            let (class, message) = self.described(sources);
            ScriptError::new(class, message)
        };
        let known = self.frames.into_iter().filter_map(|it| Some((it.position.line()?, it)));
        let (mut position, mut stack) = (None, Vec::new());
        for (line, StackFrame { file, position: place, function }) in known {
            let named = !function.is_empty() && function != CLOSURE;
            let function = if named { format!(" function {function}") } else { String::new() };
            stack.push(format!("{file}:{line}{function}"));
            position.get_or_insert_with(|| errors::SourcePosition {
                file,
                line: u32::try_from(line).unwrap_or(u32::MAX),
                column: Some(place.position().unwrap_or_default()),
            });
        }
        ScriptError { position, stack, ..told }
    }

    /// Returns the source line of the innermost known position; empty if there is none.
    fn line(&self, sources: &ErrorSources) -> String {
        let line = |it: &StackFrame| {
            sources.texts.line(&it.file, u32::try_from(it.position.line()?).ok()?)
        };
        self.place().and_then(line).unwrap_or_default()
    }

    /// Returns the message of the cause.
    fn message(&self, sources: &ErrorSources) -> String {
        if let EvalAltResult::ErrorStackOverflow(..) = self.cause {
            return limits::too_deep_calls(sources.limits.call_depth);
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
            return format!("{message}; use `?.` to read a field that may be missing");
        }
        if let EvalAltResult::ErrorDataRace(name, _) = &self.cause {
            let named = match name.strip_prefix("argument ") {
                Some(_) => name.clone(),
                None if name.is_empty() => "a value".into(),
                None => format!("`{name}`"),
            };
            return format!(
                "{named} is in use by a function that is still running; pass a copy of it"
            );
        }
        message
    }

    /// Returns the class and the message of the cause; a thrown map may have both.
    fn described(&self, sources: &ErrorSources) -> (Option<String>, String) {
        if let EvalAltResult::ErrorRuntime(value, _) = &self.cause
            && let Ok(fields) = value.as_map_ref()
            && let Some(message) = fields.get("message")
        {
            return (fields.get("class").map(text), text(message));
        }
        (None, self.message(sources))
    }

    /// Returns the thrown value, if it is of this host type.
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

/// Explains a call of an unknown function of `kopf` or of a library. The signature is `name (kopf, …)` or `kopf::name (…)`.
fn misused(signature: &str, line: &str) -> Option<String> {
    let (name, arguments) = signature.split_once(" (")?;
    let receiver = arguments.split([',', ')']).next().unwrap_or_default();
    if let Some(message) = missing_operand(name, arguments) {
        return Some(message);
    }
    if let Some(message) = unknown_method(receiver, name, Language::Rhai) {
        return Some(message);
    }
    let (owner, name) = name.rsplit_once("::").unwrap_or((receiver, name));
    if owner != "kopf" {
        // The types of arguments contain no commas here.
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

/// Explains an operator that was applied to `()`, the value of a missing field.
fn missing_operand(operator: &str, operands: &str) -> Option<String> {
    let is_operator = !operator.is_empty() && operator.bytes().all(|it| it.is_ascii_punctuation());
    let operands = operands.strip_suffix(')')?;
    let is_missing = is_operator && operands.split(", ").any(|it| it == "()");
    is_missing.then(|| {
        let operands = operands.replace(", ", " and ");
        format!(
            "`{operator}` of {operands}: a missing field is `()`; set a default, such as `value ?? 0` or \
             `ctx.memo.get(\"count\", 0)`"
        )
    })
}

/// Returns a hint on what to write instead of a reserved word.
fn reserved(cause: &EvalAltResult, line: &str) -> Option<String> {
    let EvalAltResult::ErrorParsing(problem, _) = cause else { return None };
    let ParseErrorType::Reserved(word) = problem else { return reserved_name(line) };
    if !line.contains(&format!(".{word}")) {
        return Some(reserved_as_name(word));
    }
    Some(match word.as_str() {
        "debug" => "`debug` is a reserved word in Rhai: use `ctx.logger.dbg(…)`".into(),
        "new" => {
            "`new` is a reserved word in Rhai: use `ctx.new_value`, or `[\"new\"]` for a field"
                .into()
        }
        _ => format!(
            "`{word}` is a reserved word in Rhai: write `[\"{word}\"]` instead of `.{word}`"
        ),
    })
}

/// Returns the hint for a reserved word as the name of a function or a variable: then Rhai only reports that a name is missing.
fn reserved_name(line: &str) -> Option<String> {
    let is_word = |it: char| it.is_alphanumeric() || it == '_';
    let mut words = line.split(|it| !is_word(it)).filter(|it| !it.is_empty()).peekable();
    while let Some(word) = words.next() {
        if matches!(word, "fn" | "let" | "const" | "for")
            && let Some(name) = words.peek().filter(|it| is_reserved(it))
        {
            return Some(reserved_as_name(name));
        }
    }
    None
}

/// Returns whether a word is reserved, perhaps for later versions of Rhai.
fn is_reserved(word: &str) -> bool {
    FnPtr::new(word).is_err_and(|it| matches!(*it, EvalAltResult::ErrorParsing(..)))
}

fn reserved_as_name(word: &str) -> String {
    format!("`{word}` is a reserved word in Rhai: choose another name")
}

/// Returns the name of a function for messages; Rhai generates one for anonymous functions.
fn readable(function: &str) -> String {
    if is_anonymous(function) { CLOSURE.into() } else { function.into() }
}

/// Returns whether this is the generated name of an anonymous function.
pub(super) fn is_anonymous(function: &str) -> bool {
    function.starts_with("anon$")
}

/// Converts an error that a handler has not caught into what it means for the handler.
pub(super) fn raised(error: EvalAltResult, file: &str, sources: &ErrorSources) -> Raised {
    Trail::of(error, file).taken_apart(sources).into_raised(&sources.texts)
}

/// Returns the class and the message of a caught value.
pub(super) fn described(value: &Dynamic) -> Described {
    if let Some(error) = value.read_lock::<ErrorValue>() {
        return error.described();
    }
    let fields = value.as_map_ref().ok();
    let field = |name: &str| fields.as_ref().and_then(|it| it.get(name)).map(text);
    // Scripts catch Rhai's own errors as maps with the name of the error.
    let class = field("class").or_else(|| field("error")).unwrap_or_else(|| "Error".into());
    (class, field("message").unwrap_or_else(|| text(value)))
}

impl From<Abort> for Box<EvalAltResult> {
    fn from(abort: Abort) -> Self {
        // Rhai adds the place and the trace.
        EvalAltResult::ErrorRuntime(Dynamic::from(abort), Position::NONE).into()
    }
}

/// Returns whether an error is an abort, which ends its call.
pub(super) fn is_abort(error: &EvalAltResult) -> bool {
    let mut cause = error;
    while let EvalAltResult::ErrorInFunctionCall(_, _, inner, _)
    | EvalAltResult::ErrorInModule(_, inner, _) = cause
    {
        cause = inner;
    }
    matches!(cause, EvalAltResult::ErrorRuntime(value, _) | EvalAltResult::ErrorTerminated(value, _) if value.is::<Abort>())
}

/// Returns the error of an aborted call, with its place if the error has one.
pub(super) fn place_of_abort(
    error: EvalAltResult,
    abort: Abort,
    (file, sources): (&str, &ErrorSources),
) -> Raised {
    if !is_abort(&error) {
        return aborted(abort);
    }
    let error = Trail::of(error, file).taken_apart(sources);
    ended(error, abort).into_raised(&sources.texts)
}

/// Converts the error of a job without a result.
pub(super) fn of_runner(error: &RunError) -> Raised {
    match error {
        RunError::Stuck(limit) => aborted(Abort::Exhausted(*limit)),
        RunError::Busy | RunError::NoThread(_) | RunError::Panicked(_) => {
            Raised::of_host(error.to_string())
        }
    }
}

/// Returns the error for a value that the host cannot accept.
pub(super) fn of_value(message: String) -> Raised {
    let ScriptError { kind, message, .. } = ScriptError::new(None, message);
    Raised { kind, message, trace: None }
}

/// Returns the error of an abort, without a place. Most aborts are not the handler's fault, so it is retried later; a value that is too
/// large is one.
pub(super) fn aborted(abort: Abort) -> Raised {
    let ScriptError { kind, message, .. } = ended(ScriptError::new(None, String::new()), abort);
    Raised { kind, message, trace: None }
}

/// Returns the error with the kind and the message of the abort, at the same place.
fn ended(error: ScriptError, abort: Abort) -> ScriptError {
    let message = describe(abort);
    match abort {
        Abort::TooLong(_) | Abort::TooMany(_) => {
            let ScriptError { position, stack, .. } = error;
            ScriptError { position, stack, ..ScriptError::new(None, message) }
        }
        Abort::Exhausted(_)
        | Abort::Full(_)
        | Abort::Leaking
        | Abort::Cancelled
        | Abort::Repeated => error.of_aborted(message),
    }
}

/// Returns the message of an abort.
pub(super) fn describe(abort: Abort) -> String {
    match abort {
        Abort::Cancelled => "the call was cancelled".into(),
        Abort::Repeated => "the call is repeated on a thread of its script".into(),
        Abort::Exhausted(limit) => limits::computed_too_long(limit),
        Abort::Full(limit) => limits::too_much_memory(limit),
        Abort::Leaking => limits::leaking(),
        Abort::TooLong(limit) => limits::too_long_text(limit),
        Abort::TooMany(what) => limits::too_many_items(what, limits::ITEMS_MAX),
    }
}

/// Converts the error of a script that cannot be loaded, with its place and a hint, as compilers report it.
pub(super) fn load_error(error: EvalAltResult, file: &str, sources: &ErrorSources) -> LoadError {
    let trail = Trail::of(error, file);
    let line = trail.line(sources);
    let unset = matches!(trail.cause, EvalAltResult::ErrorVariableNotFound(..));
    let hint = reserved(&trail.cause, &line).or_else(|| unset.then(|| names::IS_DEFINED.into()));
    trail.taken_apart(sources).into_load_error(&sources.texts, file, |_, _| hint)
}
