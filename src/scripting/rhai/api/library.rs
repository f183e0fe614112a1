//! The libraries, as `env::get` and as `env.get`: see `scripting/library`.
//!
//! Rhai finds a method by its name and the type of its receiver, and all libraries are of one type: a method that several of
//! them have asks its receiver which one is meant.

use std::{
    any::TypeId,
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use rhai::{Dynamic, Engine, ImmutableString, Module, NativeCallContext, Shared};

use super::{HostFn, Outcome as Called, refusal::ServerError, streams::Stream};
use crate::scripting::{
    library::{
        self, Body, Call, Datum, Failure, Function, LIBRARIES, Library, Outcome, Surroundings,
    },
    rhai::{
        context, control,
        errors::problem,
        present,
        value::{plain, to_json},
    },
};

/// The value of a variable such as `env`.
#[derive(Clone, Copy)]
struct Handle(&'static Library);

/// The library of this name, as a value.
pub(in crate::scripting::rhai) fn value(name: &str) -> Option<Dynamic> {
    library::find(name).map(|it| Dynamic::from(Handle(it)))
}

/// Whether a value is one of the libraries.
pub(in crate::scripting::rhai) fn is_library(value: &Dynamic) -> bool {
    value.is::<Handle>()
}

/// What is wrong with a call of a function that a library does not have.
pub(in crate::scripting::rhai) fn misused(library: &str, name: &str) -> Option<String> {
    library::find(library).map(|it| it.unknown(name))
}

/// What an engine knows of its script: its default tag.
#[derive(Clone)]
struct Here(Arc<Surroundings>);

/// The modules of the libraries, and their functions as methods: the same for all engines.
struct Modules {
    names: Vec<(&'static str, Shared<Module>)>,
    methods: Shared<Module>,
}

static MODULES: LazyLock<Modules> = LazyLock::new(|| control::given(modules));

/// Teaches an engine all libraries, for a script in these surroundings.
pub(super) fn register(engine: &mut Engine, surroundings: &Arc<Surroundings>) {
    for (name, module) in &MODULES.names {
        engine.register_static_module(*name, Shared::clone(module));
    }
    engine
        .register_global_module(Shared::clone(&MODULES.methods))
        .set_default_tag(Dynamic::from(Here(Arc::clone(surroundings))))
        .register_type_with_name::<Handle>("library")
        .register_indexer_get(|it: &mut Handle, name: ImmutableString| {
            Called::Err(problem(it.0.unknown(&name)))
        });
}

fn modules() -> Modules {
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
            let library = receiver.clone_cast::<Handle>().0;
            let function = library.functions.iter().find(|it| it.name == name);
            let function = function.ok_or_else(|| problem(library.unknown(name)))?;
            call(context, library, function, arguments)
        });
        one.add_with_receiver(&mut methods, TypeId::of::<Handle>());
    }
    Modules { names, methods: methods.into() }
}

/// The most arguments of a function, and one more to be refused in our words.
fn most(function: &Function) -> usize {
    function.parameters.len() + usize::from(!function.options.is_empty()) + 1
}

fn call(
    caller: &NativeCallContext<'_>,
    library: &'static Library,
    function: &'static Function,
    arguments: &[Dynamic],
) -> Called {
    let place = format!("{}.{}", library.name, function.name);
    let read = || {
        let read = arguments.iter().map(|it| match context::handled(it) {
            Some(body) => Ok(Datum::Json(body)),
            None => to_json("an argument", it).map(Datum::Json),
        });
        let arguments = read.collect::<Result<_, _>>().map_err(Failure::Plain)?;
        let here = caller.engine().default_tag().read_lock::<Here>();
        let surroundings = here.map(|it| Arc::clone(&it.0)).unwrap_or_default();
        Call::new((library, function), arguments, surroundings, present::get())
    };
    match function.body {
        Body::Immediate(body) => ended(&place, read().and_then(|it| body(&it))),
        Body::Waiting(body) => {
            // What goes to other threads is freed there, and what comes from there was made there.
            let waited = control::handed(|| read().map(body));
            match waited {
                Ok(waited) => {
                    let outcome = control::wait_for(waited)?;
                    let own = ended(&place, outcome.clone());
                    control::given(|| drop(outcome));
                    own
                }
                Err(failure) => ended(&place, Err(failure)),
            }
        }
        Body::Streaming(body) => match control::handed(|| read().and_then(|it| body(&it))) {
            Ok(flow) => Ok(Dynamic::from(Stream::new(flow, &place))),
            Err(failure) => ended(&place, Err(failure)),
        },
    }
}

/// The result, or what is raised.
pub(super) fn ended(place: &str, outcome: Outcome) -> Called {
    match outcome {
        Ok(Datum::Json(result)) => Ok(plain(&result)),
        Err(failure) => match failure.at(place) {
            Failure::Plain(message) => Err(problem(message)),
            Failure::Answer(refusal) => Err(ServerError(refusal).into_error()),
        },
    }
}
