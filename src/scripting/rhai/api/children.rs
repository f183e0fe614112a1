//! `kopf.execute`, `kopf.lifecycles`, `kopf.set_default_lifecycle`.

use std::sync::Arc;

use rhai::{Dynamic, Engine, ImmutableString, Module, NativeCallContext};

use super::{HostFn, Outcome, declaring};
use crate::call::ExecuteError;
use crate::logic::handlers::{
    declare::{DeclareError, Execution, chooser},
    lifecycle::Lifecycle,
    outcome::Raised,
};
use crate::scripting::{
    functions::{children, names},
    rhai::{
        control::{self, handed, own},
        errors::{Refused, Thrown, problem},
        present,
        script::Shared,
    },
};

/// The value of `kopf.lifecycles`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lifecycles;

/// The functions, for both spellings.
pub(super) fn functions(shared: &Arc<Shared>) -> Vec<HostFn> {
    let (ours, theirs) = (Arc::clone(shared), Arc::clone(shared));
    vec![
        HostFn::new("execute", 0..=1, move |context, arguments| {
            execute(&ours, context, arguments.first().unwrap_or(&Dynamic::UNIT))
        }),
        HostFn::new("set_default_lifecycle", 1..=1, move |_, arguments| {
            set_default(&theirs, &arguments.into_iter().next().unwrap_or_default())
        }),
    ]
}

/// `kopf.lifecycles` as a value.
pub(super) fn register(engine: &mut Engine) {
    engine.register_type_with_name::<Lifecycles>("kopf.lifecycles").register_indexer_get(
        |_: &mut Lifecycles, name: ImmutableString| -> Outcome {
            let known = Lifecycle::parse(&name).map(|it| it.name().into());
            known.ok_or_else(|| problem(names::unknown_lifecycle(&name)))
        },
    );
}

/// `kopf::lifecycles` as a module.
pub(super) fn module() -> Module {
    let mut module = Module::new();
    for (name, _) in Lifecycle::ALL {
        module.set_var(name, name);
    }
    module
}

fn refuse(error: DeclareError) -> Box<rhai::EvalAltResult> {
    Refused::from(error).into_error()
}

fn set_default(shared: &Shared, lifecycle: &Dynamic) -> Outcome {
    if !shared.is_loading() {
        return Err(refuse(names::too_late("set_default_lifecycle")));
    }
    let argument = declaring::argument(shared, "lifecycle", lifecycle)?;
    let chooser = chooser("kopf.set_default_lifecycle", argument).map_err(refuse)?;
    shared.lifecycles.lock().push(chooser);
    Ok(Dynamic::UNIT)
}

fn execute(shared: &Shared, context: &NativeCallContext<'_>, options: &Dynamic) -> Outcome {
    let children = children::of_call(present::get().as_deref(), "execute").map_err(refuse)?;
    let execution = handed(|| {
        let options = match options.as_map_ref() {
            Ok(map) => declaring::options(shared, &map)?,
            Err(_) if options.is_unit() => Vec::new(),
            Err(_) => return Err(refuse(names::no_options("execute"))),
        };
        let place = declaring::location(shared, context);
        Execution::parse(options, &place).map_err(refuse)
    })?;
    match control::wait_for(async move { children.execute(execution).await })? {
        Ok(()) => Ok(Dynamic::UNIT),
        Err(ExecuteError::Declared(error)) => Err(refuse(own(error))),
        Err(ExecuteError::Raised(raised)) => {
            let Raised { kind, message, .. } = own(raised);
            Err(Thrown { kind, message }.into_error())
        }
    }
}
