//! The names of `kopf`: what scripts declare, raise and call.
//!
//! Each name exists twice, as `kopf::name` and as `kopf.name`: the first is a static module, the second a method of the value
//! that the variable `kopf` resolves to.

mod functions;
mod library;
mod streams;

use std::{any::TypeId, sync::Arc};

use kopf_rhai::problem;
use rhai::{
    Dynamic, Engine, EvalAltResult, FnNamespace, FuncRegistration, ImmutableString, Module,
    NativeCallContext, plugin::RhaiFunc,
};

pub(super) use self::library::{is_library, misused, module as library_module, value as library};
use super::script::Shared;
use crate::scripting::functions::names;

/// The value of the variable `kopf`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kopf;

/// The value of `kopf.on`.
#[derive(Clone, Copy, Debug)]
struct On;

pub(super) type RhaiResult = Result<Dynamic, Box<EvalAltResult>>;
type NativeFunction = dyn Fn(&NativeCallContext<'_>, Vec<Dynamic>) -> RhaiResult + Send + Sync;

/// Maximum number of arguments of a host function: three selectors, options, the function, and some that are refused with our own messages.
const ARGUMENTS_MAX: usize = 8;

/// A function of the host.
pub(super) struct HostFn {
    name: &'static str,
    arguments: std::ops::RangeInclusive<usize>,
    body: Arc<NativeFunction>,
}

impl HostFn {
    pub(super) fn new(
        name: &'static str,
        arguments: std::ops::RangeInclusive<usize>,
        body: impl Fn(&NativeCallContext<'_>, Vec<Dynamic>) -> RhaiResult + Send + Sync + 'static,
    ) -> Self {
        HostFn { name, arguments, body: Arc::new(body) }
    }

    /// Adds the function to a module, as a method if there is a type of its receiver; the function does not get the receiver.
    fn add(&self, module: &mut Module, receiver: Option<TypeId>) {
        self.add_to(module, receiver, usize::from(receiver.is_some()));
    }

    /// Adds the function to a module, as a method that gets its receiver as the first argument.
    pub(super) fn add_with_receiver(&self, module: &mut Module, receiver: TypeId) {
        self.add_to(module, Some(receiver), 0);
    }

    fn add_to(&self, module: &mut Module, receiver: Option<TypeId>, skipped: usize) {
        for count in self.arguments.clone() {
            let mut types: Vec<TypeId> = receiver.into_iter().collect();
            let receivers = types.len();
            types.resize(receivers + count, TypeId::of::<Dynamic>());
            let body = Arc::clone(&self.body);
            let call = move |context: Option<NativeCallContext<'_>>,
                             arguments: &mut [&mut Dynamic]| {
                let Some(context) = context else {
                    return Err(problem("called without a context"));
                };
                // A receiver may be a variable, which keeps its value.
                let (receiver, arguments) = arguments.split_at_mut(receivers.min(arguments.len()));
                let receiver = receiver.iter().skip(skipped).map(|it| (**it).clone());
                let arguments = arguments.iter_mut().map(|it| it.take().flatten());
                body(&context, receiver.chain(arguments).collect()).map_err(|mut error| {
                    // Rhai sets the position for methods, but not for functions of static modules.
                    if error.position().is_none() {
                        error.set_position(context.call_position());
                    }
                    error
                })
            };
            let function = RhaiFunc::Pure {
                func: Arc::new(call),
                has_context: true,
                is_pure: true,
                is_volatile: true,
            };
            let namespace =
                if receiver.is_some() { FnNamespace::Global } else { FnNamespace::Internal };
            FuncRegistration::new(self.name)
                .with_namespace(namespace)
                .set_into_module_raw(module, types, function);
        }
    }
}

/// Registers everything below `kopf` in an engine.
pub(super) fn register(engine: &mut Engine, shared: &Arc<Shared>) {
    let [functions, short] = functions::functions(shared);
    let mut methods = Module::new();
    let mut names = Module::new();
    for function in &functions {
        function.add(&mut names, None);
        function.add(&mut methods, Some(TypeId::of::<Kopf>()));
    }
    let mut on = Module::new();
    for function in &short {
        function.add(&mut on, None);
        function.add(&mut methods, Some(TypeId::of::<On>()));
    }
    names.set_sub_module("on", on);
    functions::add_values(&mut names);
    let value = |_: &mut Kopf, name: ImmutableString| match functions::value(&name) {
        Some(value) => Ok(value),
        None if name == "on" => Ok(Dynamic::from(On)),
        None => Err(problem(names::unknown(&name))),
    };
    engine
        .register_global_module(methods.into())
        .register_static_module("kopf", names.into())
        .register_type_with_name::<Kopf>("kopf")
        .register_type_with_name::<On>("kopf.on")
        .register_indexer_get(value);
    functions::register(engine);
    library::register(engine, shared);
    streams::register(engine);
}
