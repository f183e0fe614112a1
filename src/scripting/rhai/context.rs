//! `ctx`, the one argument of handlers, with `ctx.logger`, `ctx.patch.fns` and `ctx.settings`.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use rhai::{
    Array, Dynamic, Engine, EvalAltResult, FnPtr, FuncRegistration, ImmutableString, Map,
    NativeCallContext,
};
use serde_json::Value;

use super::{
    api::Constant,
    conditions::{self, ConditionsView},
    control::{given, handed, own},
    errors::problem,
    index::IndexView,
    live::Live,
    present,
    script::Shared,
    stopped::{self, StopFlag},
    value::{plain, same, text, to_json, to_refusable},
    view::{View, register_setter},
};
use crate::logic::{outcome::LogLevel, patch::Transformation};
use crate::ports::{Invocation, Logger, SharedPatch};
use crate::scripting::{
    ctx::{Kwarg, is_live, kwarg, names, unknown},
    leftovers::Handle,
    limits::{FUNCTIONS_MAX, cut, cut_fields, too_many_transformations},
    names,
    settings_access::{Found, SettingsAccess, marker_key, selector_key},
    text::{not_assignable, of_patch},
};

/// The argument of a call.
#[derive(Clone, Debug)]
pub(super) struct Ctx {
    invocation: Arc<Invocation>,
    /// Trees that are made for this call, so that they are made once.
    made: Arc<Mutex<BTreeMap<String, Dynamic>>>,
}

/// `ctx.logger`
#[derive(Clone, Debug)]
struct ScriptLogger(Logger);

/// `ctx.patch.fns`
#[derive(Clone, Debug)]
struct Transformations(Handle<SharedPatch>);

/// `ctx.settings`, one of its groups, or a setting that is a map.
#[derive(Clone, Debug)]
pub(super) struct SettingsView(SettingsAccess);

/// The object that `ctx` is about, if the value is a `ctx`: for functions that take objects.
pub(super) fn handled(value: &Dynamic) -> Option<Value> {
    let ctx = value.read_lock::<Ctx>()?;
    let object = ctx.invocation.object()?;
    Some(Value::clone(given(|| Arc::clone(object.body())).as_ref()))
}

/// Whether the value is a `ctx` that is about an object.
pub(super) fn is_handled(value: &Dynamic) -> bool {
    value.read_lock::<Ctx>().is_some_and(|it| it.invocation.object().is_some())
}

impl Ctx {
    /// The argument of this call.
    pub(super) fn new(invocation: Arc<Invocation>) -> Self {
        Ctx { invocation, made: Arc::default() }
    }

    /// The call it belongs to.
    pub(super) fn invocation(&self) -> &Invocation {
        &self.invocation
    }

    fn get(&self, name: &str) -> Dynamic {
        if is_live(name) || matches!(name, "event" | "conditions") {
            present::parse(&self.invocation);
        }
        match kwarg(&self.invocation, name) {
            Kwarg::Absent => Dynamic::UNIT,
            Kwarg::Value(value) => View::tree(Arc::new(value)),
            Kwarg::Part(root, keys) => Dynamic::from(View::part(root, keys)),
            Kwarg::Tree(tree) => self.once(name, || View::shared(tree)),
            Kwarg::Patch(patch) => Dynamic::from(Live::patch(Handle::new(patch, &self.invocation))),
            Kwarg::Memo(document) => Dynamic::from(Live::memo(document)),
            Kwarg::Conditions(it) => {
                Dynamic::from(ConditionsView(Handle::new(it, &self.invocation)))
            }
            Kwarg::Logger(logger) => Dynamic::from(ScriptLogger(logger)),
            Kwarg::Index(index) => Dynamic::from(IndexView(index)),
            Kwarg::Settings(cause) => {
                Dynamic::from(SettingsView(SettingsAccess::new(cause.settings)))
            }
            Kwarg::Stopped(stopped) => Dynamic::from(StopFlag(stopped)),
        }
    }

    fn once(&self, name: &str, make: impl FnOnce() -> Dynamic) -> Dynamic {
        let mut made = self.made.lock();
        made.entry(name.to_owned()).or_insert_with(make).clone()
    }

    /// Refuses every change. Rhai assigns parts back after something in them was assigned; that is none.
    fn set(&self, name: &str, value: &Dynamic) -> Result<(), Box<EvalAltResult>> {
        if unknown(&self.invocation, name).is_some() {
            return Err(problem(not_assignable(name)));
        }
        let present = self.get(name);
        if let (Some(present), Some(value)) =
            (present.read_lock::<IndexView>(), value.read_lock::<IndexView>())
            && present.0.is(&value.0)
        {
            return Ok(());
        }
        let unchanged = match (present.read_lock::<Live>(), value.read_lock::<Live>()) {
            (Some(present), Some(value)) => present.is(&value),
            (Some(_), None) | (None, Some(_)) => false,
            // A part is assigned back as it is; a map in its place would be a change that is lost.
            (None, None) => present.is::<View>() == value.is::<View>() && same(&present, value),
        };
        if unchanged {
            return Ok(());
        }
        Err(problem(not_assignable(name)))
    }
}

impl ScriptLogger {
    fn log(&self, level: LogLevel, message: &Dynamic, fields: Option<&Map>) {
        if !self.0.is_enabled(level) {
            return;
        }
        let message = cut(text(message));
        let fields = fields.map(structured);
        // The line waits for its reader in the host's memory.
        given(|| match &fields {
            Some(fields) => self.0.with_fields(level, &message, fields),
            None => self.0.log(level, &message),
        });
    }

    fn exception(&self, context: &NativeCallContext<'_>, message: &Dynamic, fields: Option<&Map>) {
        let source = context.call_source().unwrap_or_default();
        let line = context.call_position().line().unwrap_or_default();
        let fields = fields.map(structured);
        let (message, place) = (cut(text(message)), format!("{source}:{line}"));
        given(|| self.0.exception(&message, &place, fields.as_ref()));
    }
}

/// The fields of a line. It is worth more than they: in the place of what JSON cannot hold, it is said why.
fn structured(fields: &Map) -> serde_json::Map<String, Value> {
    let told = match to_refusable(&Dynamic::from_map(fields.clone())) {
        Err(refused) if refused.is_bound() => Some(refused.at("the fields")),
        Ok(_) | Err(_) => None,
    };
    if let Some(told) = told {
        return serde_json::Map::from_iter([("fields_left_out".to_owned(), told.into())]);
    }
    let json = |key: &str, value: &Dynamic| to_json(key, value).unwrap_or_else(Value::from);
    cut_fields(fields.iter().map(|(key, value)| (key.to_string(), json(key, value))).collect())
}

impl SettingsView {
    /// All values from here on.
    pub(super) fn json(&self) -> Value {
        self.0.json()
    }

    fn get(&self, name: &str) -> Result<Dynamic, Box<EvalAltResult>> {
        Ok(match self.0.get(name).map_err(problem)? {
            Found::Place(place) => Dynamic::from(SettingsView(place)),
            Found::Value(value) => plain(&value),
        })
    }

    fn set(&self, name: &str, value: &Dynamic) -> Result<(), Box<EvalAltResult>> {
        if value.is::<SettingsView>() {
            // Rhai assigns a group back after something in it was assigned.
            return Ok(());
        }
        handed(|| {
            let value = to_json(&format!("settings: {name}"), value).map_err(problem)?;
            self.0.set(name, value).map_err(problem)
        })
    }

    fn keys(&self) -> Array {
        let fields = self.json();
        fields.as_object().into_iter().flatten().map(|(name, _)| name.into()).collect()
    }
}

/// A resource selector as the key of a map: a list of its parts.
fn of_parts(parts: Array) -> Result<String, Box<EvalAltResult>> {
    to_json("the key", &parts.into()).and_then(|it| selector_key(&it)).map_err(problem)
}

/// A marker as the key of a map.
fn of_marker(marker: &Constant) -> Result<String, Box<EvalAltResult>> {
    marker_key(marker.shown()).map_err(problem)
}

fn register_settings(engine: &mut Engine) {
    register_setter(engine, SettingsView::set);
    let shown = |it: SettingsView| of_patch(&it.json());
    engine
        .register_type_with_name::<SettingsView>("settings")
        .register_indexer_get(|it: &mut SettingsView, name: ImmutableString| it.get(&name))
        .register_indexer_get(|it: &mut SettingsView, key: Array| it.get(&of_parts(key)?))
        .register_indexer_set(|it: &mut SettingsView, key: Array, value: Dynamic| {
            it.set(&of_parts(key)?, &value)
        })
        .register_indexer_get(|it: &mut SettingsView, key: Constant| it.get(&of_marker(&key)?))
        .register_indexer_set(|it: &mut SettingsView, key: Constant, value: Dynamic| {
            it.set(&of_marker(&key)?, &value)
        })
        .register_fn("keys", |it: SettingsView| it.keys())
        .register_fn("to_string", shown)
        .register_fn("print", shown);
}

/// Teaches an engine `ctx` and its parts that are no data.
pub(super) fn register(engine: &mut Engine, shared: &Arc<Shared>) {
    engine
        .register_type_with_name::<Ctx>("ctx")
        .register_indexer_get(|ctx: &mut Ctx, name: ImmutableString| {
            match unknown(&ctx.invocation, &name) {
                Some(unknown) => Err(problem(unknown)),
                None => Ok(ctx.get(&name)),
            }
        })
        // Parentheses behind a name call a method: this is what `ctx.stopped()` is.
        .register_fn("stopped", |ctx: Ctx| match ctx.invocation.background() {
            Some(background) => Ok(background.stopped.is_set()),
            None => Err(problem("only daemons and timers have ctx.stopped")),
        });
    register_setter(engine, Ctx::set);
    // The same by name: Rhai makes an error of each property that it does not know before it asks the indexer.
    for name in names() {
        engine.register_get(name, move |ctx: &mut Ctx| ctx.get(name));
        FuncRegistration::new_setter(name)
            .with_purity(true)
            .register_into_engine(engine, move |ctx: &mut Ctx, value: Dynamic| {
                ctx.set(name, &value)
            });
    }
    register_settings(engine);
    stopped::register(engine);
    conditions::register(engine);
    register_logger(engine);
    register_patch(engine, shared);
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
                logger.exception(&context, &message, Some(&fields));
            },
        );
    for (name, level) in names::LOG_METHODS {
        engine
            .register_fn(name, move |logger: ScriptLogger, message: Dynamic| {
                logger.log(level, &message, None);
            })
            .register_fn(name, move |logger: ScriptLogger, message: Dynamic, fields: Map| {
                logger.log(level, &message, Some(&fields));
            });
    }
}

/// The indexers of live documents are here because `patch.fns` needs the functions of the script.
fn register_patch(engine: &mut Engine, shared: &Arc<Shared>) {
    let append = {
        let shared = Arc::clone(shared);
        move |fns: &Transformations, function: &FnPtr| {
            let mut patch = fns.0.lock();
            if patch.transformations.len() >= FUNCTIONS_MAX {
                return Err(problem(too_many_transformations()));
            }
            let function = shared.functions.refer(function);
            given(|| patch.transformations.push(Transformation::Scripted(function)));
            Ok(())
        }
    };
    register_setter(engine, |live: &Live, key, value| {
        if value.is::<Transformations>() { Ok(()) } else { live.set(key, value) }
    });
    let (push, plus, add) = (append.clone(), append.clone(), append.clone());
    engine
        .register_indexer_get(|live: &mut Live, key: ImmutableString| match live.top_of_patch() {
            Some(patch) if key == "fns" => Dynamic::from(Transformations(patch.clone())),
            Some(_) | None => live.get(&key),
        })
        .register_type_with_name::<Transformations>("patch.fns")
        .register_fn("append", move |fns: Transformations, function: FnPtr| append(&fns, &function))
        .register_fn("push", move |fns: Transformations, function: FnPtr| push(&fns, &function))
        .register_fn("+", move |fns: Transformations, function: FnPtr| {
            plus(&fns, &function).map(|()| fns)
        })
        .register_fn("+=", move |fns: &mut Transformations, function: FnPtr| add(fns, &function))
        .register_fn("len", |fns: Transformations| {
            let patch = fns.0.lock();
            let scripted = |it: &&Transformation| matches!(it, Transformation::Scripted(_));
            i64::try_from(patch.transformations.iter().filter(scripted).count()).unwrap_or(i64::MAX)
        });
}

/// A value that a filter is asked about.
pub(super) fn about(value: Option<Value>) -> Dynamic {
    value.map_or(Dynamic::UNIT, |it| View::tree(Arc::new(own(it))))
}
