//! `env` and `files`, as `env::get` and as `env.get`: see `scripting/reach`.

use std::{any::TypeId, sync::Arc};

use rhai::{Dynamic, Engine, EvalAltResult, ImmutableString, Module};

use super::{ARGUMENTS_MAX, HostFn, Outcome};
use crate::scripting::{
    reach::{Function, LIBRARIES, Library, Reach},
    rhai::{
        control,
        errors::problem,
        value::{plain, to_json},
    },
};

/// The value of the variable `env`.
#[derive(Clone, Copy, Debug)]
struct Env;

/// The value of the variable `files`.
#[derive(Clone, Copy, Debug)]
struct Files;

/// The library of this name, as a value.
pub(in crate::scripting::rhai) fn value(name: &str) -> Option<Dynamic> {
    match name {
        "env" => Some(Dynamic::from(Env)),
        "files" => Some(Dynamic::from(Files)),
        _ => None,
    }
}

/// Whether a value is one of the libraries.
pub(in crate::scripting::rhai) fn is_library(value: &Dynamic) -> bool {
    value.is::<Env>() || value.is::<Files>()
}

/// Teaches an engine both libraries, for a script that reaches so much.
pub(super) fn register(engine: &mut Engine, reach: &Arc<Reach>) {
    let mut methods = Module::new();
    for library in LIBRARIES {
        let mut names = Module::new();
        let receiver = value(library.name).map(|it| it.type_id());
        for function in functions(library, reach) {
            function.add(&mut names, None);
            function.add(&mut methods, receiver);
        }
        engine.register_static_module(library.name, names.into());
    }
    engine.register_global_module(methods.into());
    engine.register_type_with_name::<Env>("env").register_type_with_name::<Files>("files");
    engine
        .register_indexer_get(|_: &mut Env, name: ImmutableString| {
            missing(TypeId::of::<Env>(), &name)
        })
        .register_indexer_get(|_: &mut Files, name: ImmutableString| {
            missing(TypeId::of::<Files>(), &name)
        });
}

fn functions(library: &'static Library, reach: &Arc<Reach>) -> Vec<HostFn> {
    let one = |(name, function): &(&'static str, Function)| {
        let (reach, function) = (Arc::clone(reach), *function);
        let place = format!("{}.{name}", library.name);
        HostFn::new(name, 0..=ARGUMENTS_MAX, move |_, arguments| {
            call(&reach, function, &place, &arguments)
        })
    };
    library.functions.iter().map(one).collect()
}

fn call(reach: &Arc<Reach>, function: Function, place: &str, arguments: &[Dynamic]) -> Outcome {
    let read = || {
        let arguments = arguments.iter().map(|it| to_json(place, it));
        arguments.collect::<Result<Vec<_>, _>>().map_err(problem)
    };
    if !function.waits() {
        let result = reach.call(function, place, &read()?);
        return result.map(|it| plain(&it)).map_err(problem);
    }
    // What goes to another thread is freed there, and what comes from there was made there.
    let work = control::handed(|| {
        let (reach, place, arguments) = (Arc::clone(reach), place.to_owned(), read()?);
        Ok::<_, Box<EvalAltResult>>(move || reach.call(function, &place, &arguments))
    })?;
    let told = |it: tokio::task::JoinError| problem(it.to_string());
    let result =
        control::wait_for(async move { tokio::task::spawn_blocking(work).await })?.map_err(told)?;
    let own = result.as_ref().map(plain).map_err(|it| problem(it.clone()));
    control::given(|| drop(result));
    own
}

/// There is nothing but functions in a library.
fn missing(receiver: TypeId, name: &str) -> Outcome {
    let is_it = |it: &&Library| value(it.name).is_some_and(|it| it.type_id() == receiver);
    let library = LIBRARIES.iter().find(is_it);
    Err(problem(library.map_or_else(String::new, |it| it.unknown(name))))
}

/// What is wrong with a call of a function that a library does not have.
pub(in crate::scripting::rhai) fn misused(library: &str, name: &str) -> Option<String> {
    LIBRARIES.iter().find(|it| it.name == library).map(|it| it.unknown(name))
}
