//! Declarations: `kopf.on_create(SELECTOR..., [OPTIONS], FUNCTION)` and what goes into them.

use std::sync::Arc;

use rhai::{Dynamic, Engine, FnPtr, NativeCallContext};

use super::{ARGUMENTS_MAX, HostFn, Outcome, library::library_name, spread};
use crate::logic::handlers::{
    declare::{Argument, Declaration, DeclareError, Marker, declare},
    handler::{Callback, Kind},
};
use crate::scripting::{
    functions::{
        children,
        names::{self, Declaring, NoHandler},
    },
    rhai::{
        control::handed,
        errors::{Refused, problem},
        present,
        script::Shared,
        value::to_refusable,
    },
    values::limits,
};

/// `kopf.PRESENT` and the like.
#[derive(Clone, Debug)]
pub(in crate::scripting::rhai) struct Constant(pub(super) Marker);

impl Constant {
    /// As it prints.
    pub(in crate::scripting::rhai) fn shown(&self) -> &'static str {
        match self.0 {
            Marker::Present => "kopf.PRESENT",
            Marker::Absent => "kopf.ABSENT",
            Marker::Everything => "kopf.EVERYTHING",
        }
    }
}

/// `kopf.all_` and the like.
#[derive(Clone, Debug)]
struct Combined(Callback);

/// The functions below `kopf`, and those below `kopf.on`.
pub(super) fn functions(shared: &Arc<Shared>) -> (Vec<HostFn>, Vec<HostFn>) {
    let function = |name: &'static str, it: &'static Declaring| {
        let shared = Arc::clone(shared);
        HostFn::new(name, 0..=ARGUMENTS_MAX, move |context, arguments| match it.kind {
            Some(kind) => register_handler(&shared, context, (it.name, kind), &arguments),
            None => Err(Refused::from(names::not_built(it.name)).into_error()),
        })
    };
    let mut all: Vec<_> = names::DECLARING.iter().map(|it| function(it.name, it)).collect();
    all.extend(combinators(shared));
    let short = names::DECLARING.iter().filter_map(|it| it.short.map(|short| function(short, it)));
    (all, short.collect())
}

/// How the values of declarations print.
pub(super) fn register(engine: &mut Engine) {
    engine
        .register_type_with_name::<Constant>("marker")
        .register_fn("to_string", |constant: Constant| constant.shown())
        .register_type_with_name::<Combined>("callback");
}

fn combinators(shared: &Arc<Shared>) -> Vec<HostFn> {
    let list = |name, make: fn(Vec<Callback>) -> Callback| {
        let shared = Arc::clone(shared);
        HostFn::new(name, 0..=ARGUMENTS_MAX, move |_, arguments| {
            let callbacks = spread(arguments).iter().map(|it| callback(&shared, it)).collect();
            let callbacks: Option<Vec<_>> = callbacks;
            let callbacks = callbacks.ok_or_else(|| problem(names::no_callbacks(name)))?;
            Ok(Dynamic::from(Combined(make(callbacks))))
        })
    };
    let not = {
        let shared = Arc::clone(shared);
        HostFn::new("not_", 1..=1, move |_, arguments| {
            let callback = arguments.first().and_then(|it| callback(&shared, it));
            let callback = callback.ok_or_else(|| problem(names::no_callbacks("not_")))?;
            Ok(Dynamic::from(Combined(Callback::Not(Box::new(callback)))))
        })
    };
    vec![
        list("all_", Callback::All),
        list("any_", Callback::Any),
        list("none_", Callback::None),
        not,
    ]
}

fn callback(shared: &Shared, value: &Dynamic) -> Option<Callback> {
    if let Some(pointer) = value.read_lock::<FnPtr>() {
        return Some(Callback::Function(shared.functions.refer(&pointer)));
    }
    value.read_lock::<Combined>().map(|it| it.0.clone())
}

fn register_handler(
    shared: &Shared,
    context: &NativeCallContext<'_>,
    (name, kind): (&'static str, Kind),
    arguments: &[Dynamic],
) -> Outcome {
    // What is declared is the host's. The arguments are the script's: copies are read.
    handed(|| declare_handler(shared, context, (name, kind), arguments.to_vec()))
}

fn declare_handler(
    shared: &Shared,
    context: &NativeCallContext<'_>,
    (name, kind): (&'static str, Kind),
    mut arguments: Vec<Dynamic>,
) -> Outcome {
    let refuse = |error: DeclareError| Refused::from(error).into_error();
    let function = handler_of(arguments.pop(), !arguments.is_empty());
    let function = function.map_err(|given| refuse(names::no_handler(name, kind, given)))?;
    shared.check_arity(&function, 1, "a handler gets one, ctx").map_err(refuse)?;
    let mut given = Vec::new();
    if arguments.last().is_some_and(Dynamic::is_map) {
        let map = arguments.pop().and_then(Dynamic::try_cast::<rhai::Map>).unwrap_or_default();
        given = options(shared, &map)?;
    }
    let selectors = arguments.iter().map(|it| argument(shared, "selector", it));
    let declaration = Declaration {
        kind,
        selectors: selectors.collect::<Result<_, _>>()?,
        options: given,
        function: shared.functions.refer(&function),
        location: location(shared, context),
    };
    if kind == Kind::Sub && !shared.is_loading() {
        let children = children::of_call(present::get().as_deref(), name).map_err(refuse)?;
        children.declare(declaration).map_err(refuse)?;
        return Ok(Dynamic::UNIT);
    }
    declaration.admit(&shared.declared_bytes).map_err(refuse)?;
    let handler = declare(declaration).map_err(refuse)?;
    let mut declared = shared.declared.lock();
    let Some(declared) = declared.as_mut() else {
        return Err(refuse(names::too_late(name)));
    };
    if declared.len() >= limits::FUNCTIONS_MAX {
        return Err(problem(limits::too_many_handlers()));
    }
    declared.push(handler);
    Ok(Dynamic::UNIT)
}

/// The function that a declaration ends with, or what is in its place.
fn handler_of(last: Option<Dynamic>, has_others: bool) -> Result<FnPtr, NoHandler<'static>> {
    let Some(last) = last else { return Err(NoHandler::Other) };
    if last.is_unit() && has_others {
        return Err(NoHandler::Nothing);
    }
    if let Some(library) = library_name(&last) {
        return Err(NoHandler::Library(library));
    }
    last.try_cast::<FnPtr>().ok_or(NoHandler::Other)
}

/// The options of a function of `kopf`.
pub(super) fn options(
    shared: &Shared,
    map: &rhai::Map,
) -> Result<Vec<(String, Argument)>, Box<rhai::EvalAltResult>> {
    let options =
        map.iter().map(|(name, value)| Ok((name.to_string(), argument(shared, name, value)?)));
    options.collect()
}

/// `file:line` of the line that calls the host.
pub(super) fn location(shared: &Shared, context: &NativeCallContext<'_>) -> String {
    let line = context.call_position().line().unwrap_or_default();
    format!("{}:{line}", context.call_source().unwrap_or(&shared.name))
}

/// A value as declarations understand it.
pub(super) fn argument(
    shared: &Shared,
    name: &str,
    value: &Dynamic,
) -> Result<Argument, Box<rhai::EvalAltResult>> {
    if value.is_unit() {
        return Ok(Argument::Absent);
    }
    if let Some(constant) = value.read_lock::<Constant>() {
        return Ok(Argument::Marker(constant.0));
    }
    if let Some(callback) = callback(shared, value) {
        return Ok(Argument::Callback(callback));
    }
    let json = match to_refusable(value) {
        Ok(json) => return Ok(Argument::Value(json)),
        Err(refused) if refused.is_bound() => return Err(problem(refused.at(name))),
        Err(refused) => refused.at(name),
    };
    if let Ok(items) = value.as_array_ref() {
        let items = items.iter().map(|it| argument(shared, name, it));
        return Ok(Argument::List(items.collect::<Result<_, _>>()?));
    }
    if let Ok(fields) = value.as_map_ref() {
        let fields = fields.iter().map(|(key, value)| {
            Ok((key.to_string(), argument(shared, &format!("{name}.{key}"), value)?))
        });
        return Ok(Argument::Map(fields.collect::<Result<_, Box<rhai::EvalAltResult>>>()?));
    }
    Err(problem(json))
}
