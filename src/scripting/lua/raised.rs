//! Converts errors of scripts and of the VM to errors of the host.

use mlua::{LuaString, Value as LuaValue};

use super::{watchdog::Abort, world::World};
use crate::logic::handlers::{
    declare::DeclareError,
    outcome::{Raised, RaisedKind},
};
use crate::scripting::{
    LoadError,
    actor::script::VmLimits,
    handles::unknown::unknown_method,
    terms::Language,
    values::{
        diagnostics::STACK_TITLE,
        errors::{self, DELAY_DEFAULT, Described, ErrorValue, ScriptError, SourcePosition},
        limits, text,
    },
};

/// Returns the error message of an aborted call.
pub(super) fn of_abort(limits: &VmLimits, abort: Abort) -> String {
    match abort {
        Abort::Time => limits::computed_too_long(limits.cpu),
        Abort::Memory => limits::too_much_memory(limits.sandbox.memory_limit),
        Abort::Inline => limits::computed_without_pause(),
    }
}

/// Returns the error of an aborted call, with the default delay for a retry.
pub(super) fn aborted(limits: &VmLimits, abort: Abort) -> Raised {
    let kind = RaisedKind::Aborted(Some(DELAY_DEFAULT));
    Raised { kind, message: of_abort(limits, abort), trace: None }
}

/// Returns whether this was raised because the memory is full.
pub(super) fn is_out_of_memory(raised: &LuaValue) -> bool {
    let is_told = |it: &mlua::Error| matches!(innermost(it), mlua::Error::MemoryError(_));
    raised.as_string().is_some_and(|it| *it == NO_MEMORY) || raised.as_error().is_some_and(is_told)
}

/// The VM's message when its memory is full.
const NO_MEMORY: &str = "not enough memory";

/// Returns the class and the message of a value that was raised or caught.
pub(super) fn described(world: &World, raised: &LuaValue) -> Described {
    let error = of_raised(world, raised, "");
    (errors::class(&error.kind), error.message)
}

/// Converts an error of mlua.
pub(super) fn of_error(world: &World, error: &mlua::Error) -> ScriptError {
    of_host_error(world, error, "")
}

/// Returns the error of an aborted call that is suspended, with its stack.
pub(super) fn of_suspended(world: &World, abort: Abort, stack: &str) -> ScriptError {
    of_text(world, "", stack).of_aborted(of_abort(&world.limits, abort))
}

/// Returns the error of loading the script in this file.
pub(super) fn load_error(world: &World, error: ScriptError, file: &str) -> LoadError {
    error.into_load_error(&world.sources, file, syntax_hint)
}

/// Converts the error that ended a coroutine; `stack` is the stack where it was raised.
pub(super) fn of_raised(world: &World, raised: &LuaValue, stack: &str) -> ScriptError {
    if let Some(error) = raised.as_userdata().and_then(|it| it.borrow::<ErrorValue>().ok()) {
        return of_text(world, &error.message, stack).of_value(error.clone());
    }
    if let Some(error) = raised.as_error() {
        return of_host_error(world, error, stack);
    }
    let Some(table) = raised.as_table() else { return of_text(world, &text_of(raised), stack) };
    if world.levels.fill(table).is_err() {
        return of_text(world, NO_MEMORY, stack);
    }
    let field = |name| table.raw_get::<LuaString>(name).map(|it| it.to_string_lossy());
    let text = field("message").unwrap_or_else(|_| {
        world.read(raised, None).map_or_else(|_| text_of(raised), |it| it.to_string())
    });
    let told = of_text(world, &text, stack);
    let class = field("class").ok();
    ScriptError { kind: ScriptError::new(class, String::new()).kind, ..told }
}

fn of_host_error(world: &World, error: &mlua::Error, stack: &str) -> ScriptError {
    let inner = innermost(error);
    // These messages come from the VM; `Display` of mlua would prefix them.
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
    let told = of_text(world, text.trim_end(), stack.unwrap_or_default());
    let hint = inner.downcast_ref::<DeclareError>().and_then(|it| it.hint.clone());
    ScriptError { hint, ..told }
}

fn of_text(world: &World, text: &str, stack: &str) -> ScriptError {
    let stack = script_frames(world, stack);
    let (position, message) = split_position(world, text);
    let position = position
        .or_else(|| stack.first().and_then(|it| split_position(world, &format!("{it}:")).0));
    let message = in_our_words(&world.limits, message);
    ScriptError { position, stack, ..ScriptError::new(None, message) }
}

fn text_of(value: &LuaValue) -> String {
    value.to_string().unwrap_or_else(|_| value.type_name().to_owned())
}

/// Rewords errors of the VM that result from restrictions of the host, which the VM cannot explain.
fn in_our_words(limits: &VmLimits, message: &str) -> String {
    if message.contains("attempt to modify a readonly table") {
        return text::READ_ONLY.into();
    }
    if message.contains("attempt to yield across metamethod/C-call boundary") {
        return "waiting is not possible inside a metamethod, table.sort or string.gsub".into();
    }
    // `attempt to call missing method 'x' of logger`
    let called = message.strip_prefix("attempt to call missing method '");
    if let Some((method, of)) = called.and_then(|it| it.split_once("' of "))
        && let Some(told) = unknown_method(of, method, Language::Lua)
    {
        return told;
    }
    if message == NO_MEMORY {
        return of_abort(limits, Abort::Memory);
    }
    // The limits of the VM: 200 levels of metamethods, callbacks and coroutines; 20,000 of plain calls.
    if ["stack overflow", "C stack overflow"].contains(&message) {
        return limits::too_deep_calls(limits.sandbox.call_depth);
    }
    message.to_owned()
}

/// Returns a hint about syntax of other languages or versions of Lua that Luau lacks.
fn syntax_hint(message: &str, line: &str) -> Option<String> {
    if !message.contains("Expected") && !message.contains("Unexpected") {
        return None;
    }
    let hints = [
        ("goto ", "Luau has no goto; use continue, or a function"),
        ("<const>", "Luau has no <const>; remove it"),
        ("<close>", "Luau has no <close>; use pcall"),
        ("<<", "Luau has no bit operators; use bit32.lshift"),
        (">>", "Luau has no bit operators; use bit32.rshift"),
        (" & ", "Luau has no bit operators; use bit32.band"),
        (" | ", "Luau has no bit operators; use bit32.bor"),
        ("!=", "`!=` is written ~= in Lua"),
    ];
    hints.iter().find(|(sign, _)| line.contains(sign)).map(|(_, hint)| (*hint).to_owned())
}

/// Splits `handlers.lua:12: text` if it begins with the name of a source of this VM.
fn split_position<'a>(world: &World, text: &'a str) -> (Option<SourcePosition>, &'a str) {
    // A position in the host's own Lua is useless to users: the stack shows which line of the script called it.
    if let Some((line, message)) = text.strip_prefix("kopf:").and_then(|it| it.split_once(": "))
        && line.bytes().all(|it| it.is_ascii_digit())
    {
        return (None, message);
    }
    let found = world.sources.find(|name| {
        let rest = text.strip_prefix(name)?.strip_prefix(':')?;
        let end = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
        let (line, message) = rest.split_at_checked(end)?;
        let message = message.strip_prefix(':').unwrap_or(message).trim_start();
        Some((
            SourcePosition { file: name.into(), line: line.parse().ok()?, column: None },
            message,
        ))
    });
    found.map_or((None, text), |(position, message)| (Some(position), message))
}

fn script_frames(world: &World, stack: &str) -> Vec<String> {
    let of_script = |frame: &&str| {
        let starts = |name: &str| frame.strip_prefix(name)?.strip_prefix(':').map(drop);
        world.sources.find(starts).is_some()
    };
    stack.lines().map(str::trim).filter(of_script).map(str::to_owned).collect()
}

/// Returns the error for a method that was called with a dot: its first argument is not the object.
fn without_colon(error: &mlua::Error) -> Option<String> {
    let mlua::Error::BadArgument { to: Some(to), name: Some(name), .. } = error else {
        return None;
    };
    let method = to.rsplit(['.', ':']).next().unwrap_or(to);
    (name == "self").then(|| format!("{method} must be called with a colon: `:{method}(…)`"))
}

/// Returns the first cause of nested errors. The cause of an argument error says more than that the argument is invalid.
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
