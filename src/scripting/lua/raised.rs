//! What left a script as an error, in the host's words.

use std::time::Duration;

use mlua::{LuaString, MetaMethod, UserData, UserDataFields, UserDataMethods, Value as LuaValue};

use super::{
    refusal::ServerError,
    watchdog::Abort,
    world::{Limits, World},
};
use crate::logic::handlers::{
    declare::DeclareError,
    outcome::{Raised, RaisedKind},
};
use crate::scripting::{
    LoadError,
    functions::{
        names::{self, DELAY_DEFAULT},
        posting::{self, Described},
    },
    host::diagnostics::{FRAMES_MAX, STACK_TITLE, excerpt},
    surface::Language,
    values::{limits, text},
};

/// The class of errors that have none of their own.
const CLASS: &str = "Error";

/// `kopf.TemporaryError` and the like, as values of the script.
#[derive(Clone, Debug)]
pub(super) struct HandlerError {
    /// What the handler means.
    pub(super) kind: RaisedKind,
    /// Its text.
    pub(super) message: String,
}

impl UserData for HandlerError {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, "error");
        fields.add_field_method_get("message", |_, error| Ok(error.message.clone()));
        fields.add_field_method_get("delay", |_, error| match error.kind {
            RaisedKind::Temporary(delay) | RaisedKind::Aborted(delay) => {
                Ok(delay.map(|it| it.as_secs_f64()))
            }
            RaisedKind::Permanent
            | RaisedKind::Admission(_)
            | RaisedKind::Arbitrary(_)
            | RaisedKind::Unfinished(_) => Ok(None),
        });
        fields.add_field_method_get("code", |_, error| Ok(names::code(&error.kind)));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method("__tostring", |_, error, ()| Ok(error.message.clone()));
    }
}

/// A place in a text of the script: file and line.
type Position = (String, u32);

/// An error of a script, taken apart.
pub(super) struct ScriptError {
    kind: RaisedKind,
    message: String,
    hint: Option<String>,
    position: Option<Position>,
    /// The frames of the script and its modules, innermost first; those of the host are noise.
    stack: Vec<String>,
}

/// The text of an aborted call.
pub(super) fn of_abort(limits: &Limits, abort: Abort) -> String {
    match abort {
        Abort::Time => limits::computed_too_long(limits.cpu),
        Abort::Memory => limits::too_much_memory(limits.sandbox.memory_limit),
    }
}

/// The error of an aborted call: another time it may do.
pub(super) fn aborted(limits: &Limits, abort: Abort) -> Raised {
    let kind = RaisedKind::Aborted(Some(DELAY_DEFAULT));
    Raised { kind, message: of_abort(limits, abort), trace: None }
}

/// The error of a call whose VM was given up for the sake of the others: it is made again soon.
pub(super) fn of_lost_vm() -> Raised {
    /// Long enough for a new VM.
    const DELAY: Duration = Duration::from_secs(1);
    let message = "the VM of the script was replaced while the call ran; the call is made again";
    Raised { kind: RaisedKind::Temporary(Some(DELAY)), message: message.into(), trace: None }
}

/// The error of a script that cannot be started afresh.
pub(super) fn of_broken_script(problem: &str) -> Raised {
    let kind = RaisedKind::Temporary(Some(DELAY_DEFAULT));
    let message = format!("the script cannot be started afresh: {problem}");
    Raised { kind, message, trace: None }
}

/// Whether this was raised because the memory is full.
pub(super) fn is_out_of_memory(raised: &LuaValue) -> bool {
    let is_told = |it: &mlua::Error| matches!(innermost(it), mlua::Error::MemoryError(_));
    raised.as_string().is_some_and(|it| *it == NO_MEMORY) || raised.as_error().is_some_and(is_told)
}

/// The VM's words for a full memory.
const NO_MEMORY: &str = "not enough memory";

/// Class and text of a value that was raised, or caught.
pub(super) fn described(world: &World, raised: &LuaValue) -> Described {
    let error = ScriptError::of_value(world, raised, "");
    (posting::class(&error.kind), error.message)
}

/// An error of the host, not of the script.
pub(super) fn of_host(message: &str) -> Raised {
    Raised::of_host(message)
}

impl ScriptError {
    /// From what ended a coroutine, and the stack of the place where it was raised.
    pub(super) fn of_raised(world: &World, raised: &LuaValue, stack: &LuaValue) -> Self {
        let stack = stack.as_string().map(LuaString::to_string_lossy).unwrap_or_default();
        Self::of_value(world, raised, &stack)
    }

    /// From what mlua made of an error.
    pub(super) fn of_error(world: &World, error: &mlua::Error) -> Self {
        Self::of_value(world, &LuaValue::Error(Box::new(error.clone())), "")
    }

    fn of_value(world: &World, raised: &LuaValue, stack: &str) -> Self {
        match raised {
            LuaValue::UserData(object) => match object.borrow::<HandlerError>() {
                Ok(error) => {
                    let told = Self::of_text(world, &error.message, stack);
                    ScriptError { kind: error.kind.clone(), message: error.message.clone(), ..told }
                }
                Err(_) => match object.borrow::<ServerError>() {
                    Ok(refused) => {
                        let told = Self::of_text(world, &refused.0.message, stack);
                        let kind = RaisedKind::Arbitrary(refused.0.class.into());
                        ScriptError { kind, message: refused.0.message.clone(), ..told }
                    }
                    Err(_) => Self::of_text(world, &text_of(raised), stack),
                },
            },
            LuaValue::Error(error) => Self::of_host_error(world, error, stack),
            LuaValue::Table(table) => {
                let field = |name| table.raw_get::<LuaString>(name).map(|it| it.to_string_lossy());
                let text = field("message").unwrap_or_else(|_| {
                    world.read(raised, None).map_or_else(|_| text_of(raised), |it| it.to_string())
                });
                let class = field("class").unwrap_or_else(|_| CLASS.to_owned());
                let told = Self::of_text(world, &text, stack);
                ScriptError { kind: RaisedKind::Arbitrary(class), ..told }
            }
            LuaValue::Nil
            | LuaValue::Boolean(_)
            | LuaValue::LightUserData(_)
            | LuaValue::Integer(_)
            | LuaValue::Number(_)
            | LuaValue::Vector(_)
            | LuaValue::String(_)
            | LuaValue::Function(_)
            | LuaValue::Thread(_)
            | LuaValue::Buffer(_)
            | LuaValue::Other(_) => Self::of_text(world, &text_of(raised), stack),
        }
    }

    fn of_host_error(world: &World, error: &mlua::Error, stack: &str) -> Self {
        let inner = innermost(error);
        // These texts are the VM's own; mlua puts a word in front of them.
        let text = if let mlua::Error::RuntimeError(text)
        | mlua::Error::MemoryError(text)
        | mlua::Error::SyntaxError { message: text, .. } = inner
        {
            text.clone()
        } else {
            without_colon(inner).unwrap_or_else(|| inner.to_string())
        };
        let (text, own_stack) = text.split_once(STACK_TITLE).unwrap_or((&text, ""));
        let outer_stack =
            if let mlua::Error::CallbackError { traceback, .. } = error { traceback } else { "" };
        let stack = [stack, own_stack, outer_stack].into_iter().find(|it| !it.is_empty());
        let told = Self::of_text(world, text.trim_end(), stack.unwrap_or_default());
        let hint = inner.downcast_ref::<DeclareError>().and_then(|it| it.hint.clone());
        ScriptError { hint, ..told }
    }

    fn of_text(world: &World, text: &str, stack: &str) -> Self {
        let stack = script_frames(world, stack);
        let (position, message) = split_position(world, text);
        let position = position
            .or_else(|| stack.first().and_then(|it| split_position(world, &format!("{it}:")).0));
        ScriptError {
            kind: RaisedKind::Arbitrary(CLASS.into()),
            message: in_our_words(&world.limits, message),
            hint: None,
            position,
            stack,
        }
    }

    /// The same place, when what ended the call is this.
    pub(super) fn of_aborted(self, world: &World, abort: Abort) -> Self {
        let Raised { kind, message, .. } = aborted(&world.limits, abort);
        ScriptError { kind, message, hint: None, ..self }
    }

    /// Whether it says where in the script it was raised.
    pub(super) fn has_place(&self) -> bool {
        self.position.is_some() || !self.stack.is_empty()
    }

    /// The error of an aborted call that is suspended, with its stack.
    pub(super) fn of_suspended(world: &World, abort: Abort, stack: &str) -> Self {
        ScriptError::of_text(world, "", stack).of_aborted(world, abort)
    }

    /// As scripts catch it: one line with its place, like an error of theirs.
    pub(super) fn into_text(self) -> String {
        let ScriptError { message, position, .. } = self.hinted();
        match position {
            Some((file, line)) => format!("{file}:{line}: {message}"),
            None => message,
        }
    }

    fn hinted(mut self) -> Self {
        if let Some(hint) = self.hint.take() {
            self.message = format!("{} ({hint})", self.message);
        }
        self
    }

    /// As the error of a call.
    pub(super) fn into_raised(self, world: &World) -> Raised {
        let this = self.hinted();
        let mut lines = Vec::new();
        if let Some(position) = &this.position {
            lines.push(format!("{}:{}: {}", position.0, position.1, this.message));
            let source = source_line(world, position);
            lines.extend(source.map(|it| format!("    {}", excerpt(it.trim(), 0))));
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

    /// As the error of loading the script in this file.
    pub(super) fn into_load_error(self, world: &World, file: &str) -> LoadError {
        let source_line = self.position.as_ref().and_then(|it| source_line(world, it));
        let hint = self.hint.or_else(|| syntax_hint(&self.message, source_line.as_deref()));
        LoadError {
            file: self.position.as_ref().map_or_else(|| file.to_owned(), |it| it.0.clone()),
            line: self.position.map(|it| it.1),
            source_line,
            message: self.message,
            hint,
        }
    }
}

fn text_of(value: &LuaValue) -> String {
    value.to_string().unwrap_or_else(|_| value.type_name().to_owned())
}

/// Some errors of the VM are about the host's restrictions, which it cannot explain.
fn in_our_words(limits: &Limits, message: &str) -> String {
    if message.contains("attempt to modify a readonly table") {
        return text::READ_ONLY.into();
    }
    if message.contains("attempt to yield across metamethod/C-call boundary") {
        return "waiting is not possible inside a metamethod, table.sort or string.gsub".into();
    }
    // `attempt to call missing method 'x' of logger`
    let called = message.strip_prefix("attempt to call missing method '");
    if let Some((method, of)) = called.and_then(|it| it.split_once("' of "))
        && let Some(told) = names::unknown_method(of, method, Language::Lua)
    {
        return told;
    }
    if message == NO_MEMORY {
        return of_abort(limits, Abort::Memory);
    }
    // Its own limit: 200 levels of metamethods, callbacks and coroutines; 20,000 of plain calls.
    if ["stack overflow", "C stack overflow"].contains(&message) {
        return limits::too_deep_calls(limits.sandbox.call_depth);
    }
    message.to_owned()
}

/// What other versions of Lua have and this one has not.
fn syntax_hint(message: &str, line: Option<&str>) -> Option<String> {
    let line = line.filter(|_| message.contains("Expected") || message.contains("Unexpected"))?;
    let hints = [
        ("goto ", "there is no goto in Luau; use continue, or a function"),
        ("<const>", "there is no <const> in Luau; leave it out"),
        ("<close>", "there is no <close> in Luau; use pcall"),
        ("<<", "there are no bit operators in Luau; use bit32.lshift"),
        (">>", "there are no bit operators in Luau; use bit32.rshift"),
        (" & ", "there are no bit operators in Luau; use bit32.band"),
        (" | ", "there are no bit operators in Luau; use bit32.bor"),
        ("!=", "not equal is ~= in Lua"),
    ];
    hints.iter().find(|(sign, _)| line.contains(sign)).map(|(_, hint)| (*hint).to_owned())
}

/// Splits `handlers.lua:12: text` if it begins with the name of a text of this VM.
fn split_position<'a>(world: &World, text: &'a str) -> (Option<Position>, &'a str) {
    // The host's own Lua is no place for users: the stack says which line of theirs called it.
    if let Some((line, message)) = text.strip_prefix("kopf:").and_then(|it| it.split_once(": "))
        && line.bytes().all(|it| it.is_ascii_digit())
    {
        return (None, message);
    }
    let found = world.texts.borrow().keys().find_map(|name| {
        let rest = text.strip_prefix(name.as_str())?.strip_prefix(':')?;
        let end = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
        let (line, message) = rest.split_at_checked(end)?;
        let message = message.strip_prefix(':').unwrap_or(message).trim_start();
        Some(((name.clone(), line.parse().ok()?), message))
    });
    found.map_or((None, text), |(position, message)| (Some(position), message))
}

fn source_line(world: &World, position: &Position) -> Option<String> {
    let texts = world.texts.borrow();
    let line = usize::try_from(position.1).ok()?.checked_sub(1)?;
    texts.get(&position.0)?.lines().nth(line).map(str::to_owned)
}

fn script_frames(world: &World, stack: &str) -> Vec<String> {
    let texts = world.texts.borrow();
    let of_script = |frame: &&str| {
        let after = |name: &String| frame.strip_prefix(name.as_str());
        texts.keys().filter_map(after).any(|it| it.starts_with(':'))
    };
    stack.lines().map(str::trim).filter(of_script).map(str::to_owned).collect()
}

/// What to say of a method that was called as a function: its first argument is not the object then.
fn without_colon(error: &mlua::Error) -> Option<String> {
    let mlua::Error::BadArgument { to: Some(to), name: Some(name), .. } = error else {
        return None;
    };
    let method = to.rsplit(['.', ':']).next().unwrap_or(to);
    (name == "self").then(|| format!("{method} must be called with a colon: `:{method}(…)`"))
}

/// The first cause of nested errors. What was wrong with an argument says more than that one was wrong.
fn innermost(error: &mlua::Error) -> &mlua::Error {
    if let mlua::Error::CallbackError { cause, .. } = error {
        return innermost(cause);
    }
    if let mlua::Error::BadArgument { cause, .. } = error
        && matches!(**cause, mlua::Error::RuntimeError(_))
    {
        return cause;
    }
    error
}
