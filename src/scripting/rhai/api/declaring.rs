//! Declarations: `kopf.on_create(SELECTOR..., [OPTIONS], FUNCTION)` and what goes into them.

use std::sync::{Arc, PoisonError};

use rhai::{Dynamic, Engine, FnPtr, NativeCallContext};

use super::{ARGUMENTS_MAX, HostFn, Outcome, spread};
use crate::logic::{
    declare::{Argument, Declaration, Marker, declare},
    handler::{Callback, Kind},
};
use crate::scripting::rhai::{
    errors::{Refused, problem},
    script::Shared,
    value::to_json,
};

/// `kopf.PRESENT` and the like.
#[derive(Clone, Debug)]
pub(super) struct Constant(pub(super) Marker);

/// `kopf.all_` and the like.
#[derive(Clone, Debug)]
struct Combined(Callback);

/// Names of declarations: in full, below `kopf.on` if there, and what they mean if they are built.
const DECLARATIONS: &[(&str, Option<&str>, Option<Kind>)] = &[
    ("on_create", Some("create"), Some(Kind::Create)),
    ("on_update", Some("update"), Some(Kind::Update)),
    ("on_delete", Some("delete"), Some(Kind::Delete)),
    ("on_resume", Some("resume"), Some(Kind::Resume)),
    ("on_field", Some("field"), Some(Kind::Field)),
    ("on_event", Some("event"), Some(Kind::Event)),
    ("on_startup", Some("startup"), Some(Kind::Startup)),
    ("on_cleanup", Some("cleanup"), Some(Kind::Cleanup)),
    ("daemon", Some("daemon"), None),
    ("timer", Some("timer"), None),
    ("index", Some("index"), None),
    ("on_login", Some("login"), None),
    ("on_probe", Some("probe"), None),
    ("on_validate", Some("validate"), None),
    ("on_mutate", Some("mutate"), None),
    ("subhandler", Some("subhandler"), None),
    ("register", Some("register"), None),
    ("execute", None, None),
];

/// The functions below `kopf`, and those below `kopf.on`.
pub(super) fn functions(shared: &Arc<Shared>) -> (Vec<HostFn>, Vec<HostFn>) {
    let function = |name: &'static str, full: &'static str, kind: Option<Kind>| {
        let shared = Arc::clone(shared);
        HostFn::new(name, 0..=ARGUMENTS_MAX, move |context, arguments| match kind {
            Some(kind) => register_handler(&shared, context, kind, arguments),
            None => Err(Refused {
                message: format!("kopf.{full} is not supported yet by this version"),
                hint: None,
            }
            .into_error()),
        })
    };
    let mut all: Vec<_> =
        DECLARATIONS.iter().map(|(full, _, kind)| function(full, full, *kind)).collect();
    all.extend(combinators(shared));
    let short = DECLARATIONS
        .iter()
        .filter_map(|(full, short, kind)| short.map(|short| function(short, full, *kind)));
    (all, short.collect())
}

/// How the values of declarations print.
pub(super) fn register(engine: &mut Engine) {
    engine
        .register_type_with_name::<Constant>("marker")
        .register_fn("to_string", |constant: Constant| format!("{:?}", constant.0).to_uppercase())
        .register_type_with_name::<Combined>("callback");
}

fn combinators(shared: &Arc<Shared>) -> Vec<HostFn> {
    let list = |name, make: fn(Vec<Callback>) -> Callback| {
        let shared = Arc::clone(shared);
        HostFn::new(name, 0..=ARGUMENTS_MAX, move |_, arguments| {
            let callbacks = spread(arguments).iter().map(|it| callback(&shared, it)).collect();
            let callbacks: Option<Vec<_>> = callbacks;
            let callbacks =
                callbacks.ok_or_else(|| problem(format!("kopf.{name} takes functions")))?;
            Ok(Dynamic::from(Combined(make(callbacks))))
        })
    };
    let not = {
        let shared = Arc::clone(shared);
        HostFn::new("not_", 1..=1, move |_, arguments| {
            let callback = arguments.first().and_then(|it| callback(&shared, it));
            let callback = callback.ok_or_else(|| problem("kopf.not_ takes a function"))?;
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
    kind: Kind,
    mut arguments: Vec<Dynamic>,
) -> Outcome {
    let refuse =
        |message: String, hint: &str| Refused { message, hint: Some(hint.into()) }.into_error();
    let function = arguments.pop().and_then(Dynamic::try_cast::<FnPtr>).ok_or_else(|| {
        let name = kind.declared_by();
        refuse(
            format!("the last argument of kopf.{name} is the handler function"),
            "write the name of a function, or a closure `|ctx| { … }`",
        )
    })?;
    let mut options = Vec::new();
    if arguments.last().is_some_and(Dynamic::is_map) {
        let map = arguments.pop().and_then(Dynamic::try_cast::<rhai::Map>).unwrap_or_default();
        for (name, value) in &map {
            options.push((name.to_string(), argument(shared, name, value)?));
        }
    }
    let selectors = arguments.iter().map(|it| argument(shared, "selector", it));
    let line = context.call_position().line().unwrap_or_default();
    let declaration = Declaration {
        kind,
        selectors: selectors.collect::<Result<_, _>>()?,
        options,
        function: shared.functions.refer(&function),
        location: format!("{}:{line}", context.call_source().unwrap_or(&shared.name)),
    };
    let handler = declare(declaration).map_err(|error| Refused::from(error).into_error())?;
    let mut declared = shared.declared.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(declared) = declared.as_mut() else {
        return Err(refuse(
            format!("kopf.{} was called by a handler", kind.declared_by()),
            "handlers are declared at the top level of a script",
        ));
    };
    declared.push(handler);
    Ok(Dynamic::UNIT)
}

/// A value as declarations understand it.
fn argument(
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
    let json = match to_json(name, value) {
        Ok(json) => return Ok(Argument::Value(json)),
        Err(problem) => problem,
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
