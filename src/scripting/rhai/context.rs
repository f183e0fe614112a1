//! `ctx`, the single argument of handlers, with `ctx.logger`.

use std::{borrow::Cow, sync::Arc};

use kopf_rhai::problem;
use parking_lot::Mutex;
use rhai::{
    Dynamic, Engine, EvalAltResult, FuncRegistration, ImmutableString, Map, NativeCallContext,
};
use serde_json::Value;

use super::{
    handles::{self, Holding, RhaiPassed, is_handle, is_same_handle},
    script::Shared,
    store,
    value::{same, text},
    view::{View, register_setter},
};
use crate::call::{Invocation, Logger};
use crate::logic::handlers::outcome::LogLevel;
use crate::scripting::{
    blocking::{
        control::{given, own},
        present,
    },
    functions::names,
    handles::{
        Border,
        ctx::{Kwarg, is_live, known, kwarg, names, unknown},
    },
    values::{limits::cut, text::not_assignable},
};

/// The `ctx` of a call.
#[derive(Clone, Debug)]
pub(super) struct Ctx {
    invocation: Arc<Invocation>,
    /// Trees and handles that were created for this call, so that each is created once.
    made: Arc<Mutex<Vec<ContextField>>>,
}

/// A field and its value.
type ContextField = (Cow<'static, str>, Dynamic);

/// `ctx.logger`
#[derive(Clone, Debug)]
struct ScriptLogger(Logger);

/// Returns the object of a `ctx`, for functions that take objects; `None` if the value is not a `ctx` or has no object.
pub(super) fn handled(value: &Dynamic) -> Option<Value> {
    let ctx = value.read_lock::<Ctx>()?;
    let object = ctx.invocation.object()?;
    Some(Value::clone(given(|| Arc::clone(object.body())).as_ref()))
}

/// Returns whether the value is a `ctx` with an object.
pub(super) fn is_handled(value: &Dynamic) -> bool {
    value.read_lock::<Ctx>().is_some_and(|it| it.invocation.object().is_some())
}

impl Ctx {
    /// Creates the `ctx` of this call.
    pub(super) fn new(invocation: Arc<Invocation>) -> Self {
        Ctx { invocation, made: Arc::default() }
    }

    /// Returns the invocation that it belongs to.
    pub(super) fn invocation(&self) -> &Arc<Invocation> {
        &self.invocation
    }

    fn get(&self, name: &str) -> Dynamic {
        if let Some((_, made)) = self.made.lock().iter().find(|(it, _)| **it == *name) {
            return made.clone();
        }
        if is_live(name) {
            present::parse(&self.invocation);
        } else if matches!(name, "event" | "conditions") {
            present::parse_tree(&self.invocation);
        }
        match kwarg(&self.invocation, name, &Border::RHAI) {
            // `warn` is a method.
            Kwarg::Absent | Kwarg::Warn(_) => Dynamic::UNIT,
            Kwarg::Value(value) => View::tree(value),
            Kwarg::Part(root, keys) => Dynamic::from(View::part(root, keys)),
            Kwarg::Tree(tree) => self.kept(name, View::shared(tree.into())),
            Kwarg::Logger(logger) => Dynamic::from(ScriptLogger(logger)),
            Kwarg::Handle(handle) => self.kept(name, handle.wrap(Holding)),
        }
    }

    fn kept(&self, name: &str, made: Dynamic) -> Dynamic {
        self.made.lock().push((known(name), made.clone()));
        made
    }

    /// Refuses every change. After an assignment inside of a part, Rhai assigns the part back: that changes nothing and succeeds.
    fn set(&self, name: &str, value: &Dynamic) -> Result<(), Box<EvalAltResult>> {
        if unknown(&self.invocation, name).is_some() {
            return Err(problem(not_assignable(name)));
        }
        let present = self.get(name);
        let unchanged = if is_handle(&present) || is_handle(value) {
            is_same_handle(&present, value)
        } else {
            // Rhai assigns back the view itself; a map in its place would be a change that is lost.
            present.is::<View>() == value.is::<View>() && same(&present, value)
        };
        if unchanged { Ok(()) } else { Err(problem(not_assignable(name))) }
    }
}

impl ScriptLogger {
    fn log(&self, level: LogLevel, message: &Dynamic, fields: Option<&Dynamic>) {
        if !self.0.is_enabled(level) {
            return;
        }
        let message = cut(text(message));
        let fields = fields.map(structured);
        // Until it is written, the line is memory of the host.
        given(|| match &fields {
            Some(fields) => self.0.with_fields(level, &message, fields),
            None => self.0.log(level, &message),
        });
    }

    fn exception(
        &self,
        context: &NativeCallContext<'_>,
        message: &Dynamic,
        fields: Option<&Dynamic>,
    ) {
        let source = context.call_source().unwrap_or_default();
        let line = context.call_position().line().unwrap_or_default();
        let fields = fields.map(structured);
        let (message, place) = (cut(text(message)), format!("{source}:{line}"));
        given(|| self.0.exception(&message, &place, fields.as_ref()));
    }
}

/// Converts the fields of a log line for the host.
fn structured(fields: &Dynamic) -> serde_json::Map<String, Value> {
    names::log_fields(&RhaiPassed { shared: None, value: fields }).unwrap_or_default()
}

/// Registers `ctx`, and those of its parts that are not data.
pub(super) fn register(engine: &mut Engine, shared: &Arc<Shared>) {
    engine
        .register_type_with_name::<Ctx>("ctx")
        .register_indexer_get(|ctx: &mut Ctx, name: ImmutableString| {
            match unknown(&ctx.invocation, &name) {
                Some(unknown) => Err(problem(unknown)),
                None => Ok(ctx.get(&name)),
            }
        })
        // `ctx.stopped()` is a method call for Rhai.
        .register_fn("stopped", |ctx: Ctx| match ctx.invocation.background() {
            Some(background) => Ok(background.stopped.is_set()),
            None => Err(problem("only daemons and timers have ctx.stopped")),
        });
    engine.register_fn("warn", |ctx: Ctx, message: Dynamic| {
        match kwarg(&ctx.invocation, "warn", &Border::RHAI) {
            Kwarg::Warn(warnings) => warnings.add(&text(&message)).map_err(problem),
            Kwarg::Absent
            | Kwarg::Value(_)
            | Kwarg::Part(..)
            | Kwarg::Tree(_)
            | Kwarg::Logger(_)
            | Kwarg::Handle(_) => Err(problem("only admission handlers have ctx.warn")),
        }
    });
    register_setter(engine, Ctx::set);
    // The same for each known name: Rhai creates an error for each property without a getter before it tries the indexer.
    for name in names() {
        engine.register_get(name, move |ctx: &mut Ctx| ctx.get(name));
        FuncRegistration::new_setter(name)
            .with_purity(true)
            .register_into_engine(engine, move |ctx: &mut Ctx, value: Dynamic| {
                ctx.set(name, &value)
            });
    }
    handles::register(engine, shared);
    store::register(engine);
    register_logger(engine);
}

fn register_logger(engine: &mut Engine) {
    engine.register_type_with_name::<ScriptLogger>("logger");
    engine
        .register_fn(
            "exception",
            |context: NativeCallContext<'_>, logger: ScriptLogger, message: Dynamic| {
                logger.exception(&context, &message, None);
            },
        )
        .register_fn(
            "exception",
            |context: NativeCallContext<'_>,
             logger: ScriptLogger,
             message: Dynamic,
             fields: Map| {
                logger.exception(&context, &message, Some(&fields.into()));
            },
        );
    for (name, level) in names::LOG_METHODS {
        engine
            .register_fn(name, move |logger: ScriptLogger, message: Dynamic| {
                logger.log(level, &message, None);
            })
            .register_fn(name, move |logger: ScriptLogger, message: Dynamic, fields: Map| {
                logger.log(level, &message, Some(&fields.into()));
            });
    }
}

/// Returns the argument of a filter or a similar function; `()` if the value is missing.
pub(super) fn about(value: Option<Value>) -> Dynamic {
    value.map_or(Dynamic::UNIT, |it| View::tree(own(it)))
}
