//! The libraries, as `env::get` and as `env.get`: see `scripting/functions`.
//!
//! Rhai finds a method by its name and the type of its receiver, and all libraries have the same type: if several libraries have a method
//! of the same name, the value of the receiver decides.

use std::{
    any::TypeId,
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use kopf_rhai::problem;
use parking_lot::Mutex;
use rhai::{
    Dynamic, Engine, EvalAltResult, FnPtr, INT, ImmutableString, Map, Module, NativeCallContext,
    Scope, Shared,
};
use serde_json::Value;

use super::{HostFn, RhaiResult, streams::Stream};
use crate::call::Faked;
use crate::scripting::{
    blocking::{control, present},
    functions::{
        self, Call, FILTERS_MAX, Given, LIBRARIES, Pace, Shape, embedded, fake,
        outcome::{Datum, Failure, Outcome},
        types::{Body, Function, Library},
    },
    rhai::{
        context,
        errors::raise,
        script::{self, EXPRESSION_DEPTHS_MAX},
        value::{plain, to_refusable},
    },
    values::errors::{CallError, ErrorValue},
};

/// The value of a variable such as `env`.
#[derive(Clone, Copy)]
struct LibraryHandle(&'static Library);

/// Returns the library of this name, as a value.
pub(in crate::scripting::rhai) fn value(name: &str) -> Option<Dynamic> {
    functions::find(name).map(|it| Dynamic::from(LibraryHandle(it)))
}

/// Returns whether a value is one of the libraries.
pub(in crate::scripting::rhai) fn is_library(value: &Dynamic) -> bool {
    value.is::<LibraryHandle>()
}

/// Returns the name of a library; `None` if the value is not a library.
pub(super) fn library_name(value: &Dynamic) -> Option<&'static str> {
    value.read_lock::<LibraryHandle>().map(|it| it.0.name)
}

/// Explains a call of a library function that Rhai has not found with this number of arguments: it does not exist, or takes fewer. For
/// methods, Rhai reports only that the receiver is a library; the source line of the call shows which one.
pub(in crate::scripting::rhai) fn misused(
    (owner, name): (&str, &str),
    given: usize,
    line: &str,
) -> Option<String> {
    let too_many = |library: &Library| {
        let function = library.functions.iter().find(|it| it.name == name)?;
        let failure = function.too_many(library, given);
        Some(failure.at(&format!("{}.{name}", library.name)).into_message())
    };
    let told = |library| too_many(library).unwrap_or_else(|| library.unknown(name));
    if owner != HANDLE {
        return functions::find(owner).map(told);
    }
    let is_in_line = |it: &&Library| line.contains(&format!("{}.{name}(", it.name));
    let all: Vec<_> = LIBRARIES.iter().filter(is_in_line).map(told).collect();
    (!all.is_empty()).then(|| all.join("; or "))
}

/// The type of variables such as `env` in messages of Rhai.
const HANDLE: &str = "library";

/// The default tag of an engine: the script, and its template filters.
#[derive(Clone)]
struct Here(Arc<script::Shared>, Arc<Filters>);

/// The filters that a script has registered for its templates.
type Filters = Mutex<Map>;

/// The modules of the libraries, and their functions as methods: the same for all engines.
struct LibraryModules {
    names: Vec<(&'static str, Shared<Module>)>,
    methods: Shared<Module>,
    /// The functions that are written in Rhai, under separate names: the functions above check the arguments.
    scripts: Vec<Shared<Module>>,
}

static MODULES: LazyLock<LibraryModules> = LazyLock::new(|| control::given(modules));

/// Registers all libraries in an engine, for this script.
pub(super) fn register(engine: &mut Engine, script: &Arc<script::Shared>) {
    for (name, module) in &MODULES.names {
        engine.register_static_module(*name, Shared::clone(module));
    }
    for module in &MODULES.scripts {
        engine.register_global_module(Shared::clone(module));
    }
    engine
        .register_global_module(Shared::clone(&MODULES.methods))
        .set_default_tag(Dynamic::from(Here(Arc::clone(script), Arc::default())))
        .register_type_with_name::<LibraryHandle>(HANDLE)
        .register_indexer_get(|it: &mut LibraryHandle, name: ImmutableString| {
            RhaiResult::Err(problem(it.0.unknown(&name)))
        });
}

fn modules() -> LibraryModules {
    let mut most_by_name: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut names = Vec::new();
    for library in LIBRARIES {
        let mut module = Module::new();
        for function in library.functions {
            let most = most(function);
            let one = HostFn::new(function.name, 0..=most, move |context, arguments| {
                call(context, library, function, &arguments)
            });
            one.add(&mut module, None);
            let known = most_by_name.entry(function.name).or_default();
            *known = most.max(*known);
        }
        names.push((library.name, module.into()));
    }
    let mut methods = Module::new();
    for (name, most) in most_by_name {
        let one = HostFn::new(name, 0..=most, move |context, arguments| {
            let (receiver, arguments) = arguments.split_first().ok_or_else(|| problem(""))?;
            let library = receiver.clone_cast::<LibraryHandle>().0;
            let function = library.functions.iter().find(|it| it.name == name);
            let function = function.ok_or_else(|| problem(library.unknown(name)))?;
            call(context, library, function, arguments)
        });
        one.add_with_receiver(&mut methods, TypeId::of::<LibraryHandle>());
    }
    for library in LIBRARIES {
        for part in embedded::parts(library) {
            let has_options = !part.function.options.is_empty();
            let count = part.function.parameters.len() + usize::from(has_options);
            let one = HostFn::new(part.rhai, count..=count, move |context, arguments| {
                call(context, library, &part.function, &arguments)
            });
            one.add(&mut methods, None);
        }
    }
    for one in filters() {
        one.add(&mut methods, None);
    }
    LibraryModules { names, methods: methods.into(), scripts: scripts() }
}

/// Returns the host functions that `stdlib/template.rhai` needs: libraries in Rhai have no variables that persist.
fn filters() -> [HostFn; 4] {
    let of = |context: &NativeCallContext<'_>| {
        let here = context.engine().default_tag().read_lock::<Here>();
        here.map(|it| Arc::clone(&it.1)).unwrap_or_default()
    };
    [
        HostFn::new("template__host_filters", 0..=0, move |context, _| {
            Ok(Dynamic::from_map(of(context).lock().clone()))
        }),
        HostFn::new("template__host_names", 0..=0, move |context, _| {
            let filters = of(context);
            let filters = filters.lock();
            let names: Vec<Dynamic> = filters.keys().map(|it| it.as_str().into()).collect();
            let count = INT::try_from(names.len()).unwrap_or(INT::MAX);
            let parts = [("count".into(), count.into()), ("names".into(), names.into())];
            Ok(Dynamic::from_map(parts.into()))
        }),
        HostFn::new("template__host_keep", 2..=2, move |context, arguments| {
            let mut arguments = arguments.into_iter();
            if let (Some(name), Some(filter)) = (arguments.next(), arguments.next())
                && let Ok(name) = name.into_immutable_string()
            {
                let (filters, name) = (of(context), name.as_str());
                let mut filters = filters.lock();
                if filters.len() < FILTERS_MAX || filters.contains_key(name) {
                    filters.insert(name.into(), filter);
                }
            }
            Ok(Dynamic::UNIT)
        }),
        HostFn::new("template__host_call", 2..=2, |context, arguments| {
            let mut arguments = arguments.into_iter();
            let filter = arguments.next().and_then(Dynamic::try_cast::<FnPtr>);
            let filter = filter.ok_or_else(|| problem("template.filter: expected a function"))?;
            let passed = arguments.next().and_then(|it| it.into_array().ok());
            filter.call_raw(context, None, passed.unwrap_or_default())
        }),
    ]
}

/// Compiles the files of `stdlib`. A file that does not compile would be missing, which the tests of its functions detect.
fn scripts() -> Vec<Shared<Module>> {
    let mut engine = Engine::new();
    let (top, inside) = EXPRESSION_DEPTHS_MAX;
    engine.set_max_expr_depths(top, inside);
    let module = |(_, name, text): (_, String, _)| {
        let mut ast = engine.compile(text).ok()?;
        ast.set_source(name);
        Module::eval_ast_as_new(Scope::new(), &ast, &engine).ok().map(Shared::new)
    };
    embedded::rhai().filter_map(module).collect()
}

/// Returns the module of this library, for `import`.
pub(in crate::scripting::rhai) fn module(name: &str) -> Option<Shared<Module>> {
    MODULES.names.iter().find(|(it, _)| *it == name).map(|(_, it)| Shared::clone(it))
}

/// Returns the maximum number of arguments of a function, plus some to be refused with our own messages.
fn most(function: &Function) -> usize {
    /// Each is an entry of a table, once per process. [`misused`] explains calls with more arguments.
    const SURPLUS: usize = 3;
    function.parameters.len() + usize::from(!function.options.is_empty()) + SURPLUS
}

fn call(
    caller: &NativeCallContext<'_>,
    library: &'static Library,
    function: &'static Function,
    arguments: &[Dynamic],
) -> RhaiResult {
    let place = format!("{}.{}", library.name, function.name);
    let here = || {
        let here = caller.engine().default_tag().read_lock::<Here>();
        here.map(|it| Arc::clone(&it.0.surroundings)).unwrap_or_default()
    };
    let read = || {
        let surroundings = here();
        let arguments = arguments.iter().map(given).collect();
        Call::new((library, function), arguments, surroundings, present::get())
    };
    match function.body {
        Body::Immediate(body) => {
            let pace = PACE.with(Pace::clone);
            ended(&place, read().and_then(|it| it.compute(body, &pace)))
        }
        Body::Waiting(body) => {
            // Arguments are freed on other threads, and results are allocated there: neither is the script's memory.
            let passed = |call: Call| call.pass(library.name, function.name).map(body);
            let waited = match control::handed(|| read().map(passed)) {
                Ok(Ok(waited)) => Ok(waited),
                Ok(Err(queue)) => {
                    let passage = control::wait_for(queue.wait())?;
                    let passing = |call: Call| match passage {
                        Some(passage) => body(call.passing(passage)),
                        None => body(call),
                    };
                    control::handed(|| read().map(passing))
                }
                Err(failure) => Err(failure),
            };
            match waited {
                Ok(waited) => {
                    let worked = || here().heavy.take_worked();
                    let outcome = control::wait_for_work(waited, worked)?;
                    let own = ended(&place, outcome.clone());
                    control::given(|| drop(outcome));
                    own
                }
                Err(failure) => ended(&place, Err(failure)),
            }
        }
        Body::Script => {
            let shapes: Vec<_> = arguments.iter().map(shape).collect();
            match function.check_shapes(library, &shapes) {
                Ok(()) => call_script(caller, library, function, arguments),
                Err(failure) => ended(&place, Err(failure)),
            }
        }
        Body::Faking(what) => {
            let shapes: Vec<_> = arguments.iter().map(shape).collect();
            let declared = function
                .check_shapes(library, &shapes)
                .and_then(|()| keep(caller, what, arguments));
            ended(&place, declared.map(|()| Value::Null.into()))
        }
        Body::Streaming(body) => match control::handed(|| read().and_then(|it| it.flow(body))) {
            Ok(flow) => Ok(Dynamic::from(Stream::new(flow, &place))),
            Err(failure) => ended(&place, Err(failure)),
        },
    }
}

/// Implements `fake.http` and similar: registers the function of the script that returns the faked results. Fails if it has too many
/// parameters.
fn keep(caller: &NativeCallContext<'_>, what: Faked, arguments: &[Dynamic]) -> Result<(), Failure> {
    let here = caller.engine().default_tag().read_lock::<Here>();
    let answer = arguments.last().and_then(Dynamic::read_lock::<FnPtr>);
    let (Some(here), Some(answer)) = (here, answer) else { return Ok(()) };
    let script = &here.0;
    let checked = script.check_arity(&answer, 2, "a fake takes one, the call");
    checked.map_err(|it| Failure::Plain(it.message))?;
    let line = caller.call_position().line().unwrap_or_default();
    let place = format!("{}:{line}", caller.call_source().unwrap_or(&script.name));
    let answer = (script.functions.refer(&answer), place);
    let url = arguments.first().map(Dynamic::as_immutable_string_ref);
    let url = url.and_then(Result::ok).map(|it| it.to_string()).unwrap_or_default();
    let present = present::get();
    control::given(|| fake::declare(what, &url, answer, (&script.surroundings, present)))
}

thread_local! {
    static PACE: Pace = std::rc::Rc::new(|| control::overdue().is_some());
}

/// Calls a library function that is written in Rhai. Its errors are reported at the place where the script calls it.
fn call_script(
    context: &NativeCallContext<'_>,
    library: &Library,
    function: &Function,
    arguments: &[Dynamic],
) -> RhaiResult {
    let name = embedded::rhai_name(library.name, function.name);
    let mut arguments: Vec<_> = arguments.iter().map(native).collect();
    let count = function.parameters.len() + usize::from(!function.options.is_empty());
    arguments.resize(count, Dynamic::UNIT);
    let mut arguments: Vec<_> = arguments.iter_mut().collect();
    context
        .call_fn_raw(&name, false, false, &mut arguments)
        .map_err(|error| without_frames(error, &embedded::rhai_name(library.name, "")))
}

/// Removes the frames inside of a library, whose functions have this prefix, from an error: Rhai then sets the position of the call.
#[expect(clippy::unnecessary_box_returns, clippy::boxed_local, reason = "errors of Rhai are boxed")]
fn without_frames(error: Box<EvalAltResult>, prefix: &str) -> Box<EvalAltResult> {
    let mut error = *error;
    while let EvalAltResult::ErrorInFunctionCall(name, _, inner, _) = &mut error
        && name.starts_with(prefix)
    {
        error = *std::mem::replace(inner, problem(""));
    }
    error.clear_position();
    error.into()
}

/// Copies views and handles into Rhai lists and maps; returns other values unchanged.
fn native(value: &Dynamic) -> Dynamic {
    if value.is_array() || value.is_map() || value.is_fnptr() {
        return value.clone();
    }
    match to_refusable(value) {
        Ok(content @ (Value::Array(_) | Value::Object(_))) => plain(&content),
        Ok(_) | Err(_) => value.clone(),
    }
}

fn given(value: &Dynamic) -> Given {
    if let Ok(bytes) = value.as_blob_ref() {
        return Given::Datum(Datum::Bytes(bytes.clone()));
    }
    match context::handled(value).map_or_else(|| to_refusable(value), Ok) {
        Ok(json) => Given::Datum(Datum::Json(json)),
        Err(refused) => Given::Refused(shape(value), refused),
    }
}

fn shape(value: &Dynamic) -> Shape {
    if value.is_unit() {
        Shape::Nothing
    } else if value.is_bool() {
        Shape::Boolean
    } else if value.is_int() {
        Shape::Number { whole: true }
    } else if let Ok(number) = value.as_float() {
        Shape::Number { whole: number.fract() == 0.0 }
    } else if let Ok(text) = value.as_immutable_string_ref() {
        if text.is_empty() { Shape::EmptyText } else { Shape::Text }
    } else if value.is_char() {
        Shape::Text
    } else if value.is_blob() {
        Shape::Bytes
    } else if value.is_array() {
        Shape::List
    } else if value.is_map() {
        Shape::Map
    } else if value.is_fnptr() {
        Shape::Function
    } else if context::is_handled(value) {
        Shape::Map
    } else {
        match to_refusable(value) {
            Ok(Value::Array(_)) => Shape::List,
            Ok(_) => Shape::Map,
            Err(_) => Shape::Other("an object of the host"),
        }
    }
}

/// Converts an outcome into a Rhai value or the error to raise; `place` is the name of the function.
pub(super) fn ended(place: &str, outcome: Outcome) -> RhaiResult {
    match outcome {
        Ok(Datum::Json(result)) => Ok(plain(&result)),
        Ok(Datum::Bytes(result)) => Ok(Dynamic::from_blob(result)),
        Ok(Datum::Map(parts)) => {
            let value = |bytes| match String::from_utf8(bytes) {
                Ok(text) => text.into(),
                Err(error) => Dynamic::from_blob(error.into_bytes()),
            };
            let parts = parts.into_iter().map(|(key, it)| (key.into(), value(it)));
            Ok(Dynamic::from_map(parts.collect()))
        }
        Err(failure) => match failure.at(place) {
            Failure::Plain(message) => Err(problem(message)),
            Failure::Answer(it) => Err(raise(CallError::Raised(ErrorValue::of_server(it)))),
        },
    }
}
