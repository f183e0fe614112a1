//! The functions, constants and tables below `kopf`: see `scripting/functions/kopf.rs`.

use std::sync::Arc;

use kopf_rhai::problem;
use rhai::{
    Dynamic, Engine, EvalAltResult, FLOAT, FnPtr, INT, ImmutableString, Module, NativeCallContext,
};
use serde_json::Value;

use super::{ARGUMENTS_MAX, HostFn, RhaiResult, library::library_name};
use crate::call::Invocation;
use crate::logic::handlers::{
    declare::{Argument as Part, DeclareError},
    function::Function,
};
use crate::scripting::{
    blocking::{
        control::{self, handed, own},
        present,
    },
    functions::{
        declaring::TopLevel,
        kopf::{Argument, Caller, Done, HostFunction, Visit, place_of},
        locking,
        names::{MARKERS, Words},
    },
    handles::AnyHandle,
    rhai::{
        context::Ctx,
        errors::{described, raise},
        handles::{self, RhaiPassed, native},
        script::Shared,
        value::{plain, text},
        view::View,
    },
    values::{
        Filter, Nested, duration,
        errors::{CallError, Described, ErrorValue},
        stopped::SLEEP_MAX,
    },
};

/// Returns the functions below `kopf`, and those below `kopf.on`.
pub(super) fn functions(shared: &Arc<Shared>) -> [Vec<HostFn>; 2] {
    let native = |function: HostFunction| {
        let shared = Arc::clone(shared);
        let (least, most) = (*function.arguments.start(), *function.arguments.end());
        HostFn::new(function.name, least..=most.min(ARGUMENTS_MAX), move |context, arguments| {
            call(&shared, context, &function, arguments)
        })
    };
    [HostFunction::all().map(native).collect(), HostFunction::short().map(native).collect()]
}

/// Adds the constants and the tables below `kopf`, for `kopf::NAME`.
pub(super) fn add_values(module: &mut Module) {
    for (name, marker) in MARKERS {
        module.set_var(name, Filter(Part::Marker(marker)));
    }
    for (name, words) in Words::ALL {
        let mut table = Module::new();
        for (name, word) in words.entries() {
            table.set_var(name, word);
        }
        module.set_var(name, words);
        module.set_sub_module(name, table);
    }
}

/// Returns the constant or the table of this name, for `kopf.NAME`.
pub(super) fn value(name: &str) -> Option<Dynamic> {
    let marker = MARKERS.iter().find(|(it, _)| *it == name);
    let words = || Words::ALL.into_iter().find(|(it, _)| *it == name);
    let marker = marker.map(|(_, it)| Dynamic::from(Filter(Part::Marker(*it))));
    marker.or_else(|| words().map(|(_, it)| Dynamic::from(it)))
}

/// Registers the operations on the values of these functions.
pub(super) fn register(engine: &mut Engine) {
    engine
        .register_fn("sleep", |seconds: INT| sleep(&seconds.into()))
        .register_fn("sleep", |seconds: FLOAT| sleep(&seconds.into()))
        .register_type_with_name::<Filter>("filter")
        .register_fn("to_string", |it: Filter| it.text())
        .register_type_with_name::<Words>("table")
        .register_indexer_get(|it: &mut Words, name: ImmutableString| {
            it.get(&name).map(ImmutableString::from).map_err(problem)
        })
        .register_type_with_name::<ErrorValue>("error")
        .register_indexer_get(|it: &mut ErrorValue, name: ImmutableString| plain(&it.field(&name)))
        .register_fn("to_string", |it: ErrorValue| it.message)
        .register_fn("to_debug", |it: ErrorValue| it.message)
        .register_fn("+", |text: ImmutableString, it: ErrorValue| format!("{text}{}", it.message))
        .register_fn("+", |it: ErrorValue, text: ImmutableString| format!("{}{text}", it.message))
        .register_type_with_name::<DeclareError>("error")
        .register_fn("to_string", |it: DeclareError| it.message)
        .register_fn("to_debug", |it: DeclareError| it.message);
}

fn call(
    shared: &Arc<Shared>,
    context: &NativeCallContext<'_>,
    function: &HostFunction,
    mut given: Vec<Dynamic>,
) -> RhaiResult {
    if function.calls() && !function.waits() {
        return tried(context, given);
    }
    let locked = function.calls().then(|| given.pop()).flatten();
    let present = present::get();
    let caller = RhaiCaller { shared, context, present };
    let passed: Vec<_> =
        given.iter().map(|value| RhaiPassed { shared: Some(shared), value }).collect();
    let arguments: Vec<_> = passed.iter().map(|it| it as &dyn Argument).collect();
    let call = || function.call(&arguments, &caller);
    let called = if function.keeps() { handed(call) } else { call() };
    match called.map_err(raise)? {
        Done::Value(value) => Ok(native(value)),
        Done::Changed { after, .. } => Ok(plain(&after)),
        Done::Listed => Ok(match given.pop() {
            Some(only) if given.is_empty() && only.is_array() => only,
            last => Dynamic::from_array(given.into_iter().chain(last).collect()),
        }),
        Done::Below(path) => {
            let default = if given.len() > 2 { given.swap_remove(2) } else { Dynamic::UNIT };
            let value = given.into_iter().next().unwrap_or_default();
            let found = path.iter().fold(value, |value, step| item(&value, step));
            Ok(if found.is_unit() { default } else { found })
        }
        Done::Lock(number, wait) => {
            let free = Free(caller.present.clone(), number);
            if let Err(failed) = control::wait_for(wait)? {
                return Err(raise(own(failed)));
            }
            let ended = run(context, locked, "kopf.lock", Vec::new());
            drop(free);
            ended
        }
        Done::Wait(wait) => match control::wait_for(wait)? {
            Ok(()) => Ok(Dynamic::UNIT),
            Err(failed) => Err(raise(own(failed))),
        },
    }
}

/// Releases a lock when it is dropped.
struct Free(Option<Arc<Invocation>>, u64);

impl Drop for Free {
    fn drop(&mut self) {
        control::given(|| locking::locks_of(self.0.as_ref()).free(self.1));
    }
}

/// Calls a function of the script. Fails if the value is not a function.
fn run(
    context: &NativeCallContext<'_>,
    function: Option<Dynamic>,
    place: &str,
    arguments: Vec<Dynamic>,
) -> RhaiResult {
    let function = function.and_then(Dynamic::try_cast::<FnPtr>);
    let function = function
        .ok_or_else(|| problem(format!("{place}: the last argument must be a function")))?;
    function.call_within_context(context, arguments)
}

/// Runs `kopf.try_call(FUNCTION, ARGUMENTS...)`.
fn tried(context: &NativeCallContext<'_>, given: Vec<Dynamic>) -> RhaiResult {
    let mut given = given.into_iter();
    let function = given.next();
    let (value, problem) = match run(context, function, "kopf.try_call", given.collect()) {
        Ok(value) => (value, Dynamic::UNIT),
        Err(error) if !error.is_catchable() => return Err(error),
        Err(error) => (Dynamic::UNIT, caught(*error)),
    };
    let map = [("value".into(), value), ("problem".into(), problem)];
    Ok(Dynamic::from_map(map.into_iter().collect()))
}

/// Returns the value that `catch` passes to a script.
fn caught(error: EvalAltResult) -> Dynamic {
    if let EvalAltResult::ErrorInFunctionCall(_, _, inner, _) = error {
        return caught(*inner);
    }
    if let EvalAltResult::ErrorRuntime(value, _) = error {
        return value;
    }
    error.to_string().into()
}

/// Follows one step of a path; returns `()` if there is nothing.
fn item(value: &Dynamic, step: &Value) -> Dynamic {
    if let Ok(list) = value.as_array_ref() {
        return place_of(step).and_then(|it| list.get(it)).cloned().unwrap_or_default();
    }
    if let Some(found) = handles::step(value, step) {
        return found;
    }
    let Some(key) = step.as_str() else { return Dynamic::UNIT };
    if let Some(view) = value.read_lock::<View>() {
        return view.get(key);
    }
    value.as_map_ref().ok().and_then(|it| it.get(key).cloned()).unwrap_or_default()
}

/// The script that calls a function of `kopf`.
struct RhaiCaller<'a> {
    shared: &'a Shared,
    context: &'a NativeCallContext<'a>,
    present: Option<Arc<Invocation>>,
}

impl Caller for RhaiCaller<'_> {
    fn present(&self) -> Option<Arc<Invocation>> {
        self.present.clone().inspect(|it| present::parse_tree(it))
    }

    fn top_level(&self) -> &TopLevel {
        &self.shared.top_level
    }

    fn location(&self) -> String {
        let line = self.context.call_position().line().unwrap_or_default();
        format!("{}:{line}", self.context.call_source().unwrap_or(&self.shared.name))
    }

    fn string_size(&self) -> usize {
        control::sizes().1
    }
}

impl Argument for RhaiPassed<'_> {
    fn call(&self) -> Option<Arc<Invocation>> {
        let call = self.value.read_lock::<Ctx>().map(|it| Arc::clone(it.invocation()));
        call.inspect(|it| present::parse_tree(it))
    }

    fn handle(&self) -> Option<AnyHandle> {
        handles::handle(self.value)
    }

    fn filter(&self) -> Option<Filter> {
        self.value.read_lock::<Filter>().map(|it| it.clone())
    }

    fn library(&self) -> Option<&'static str> {
        library_name(self.value)
    }

    fn function(&self, is_handler: bool) -> Result<Option<Function>, DeclareError> {
        let Some(shared) = self.shared else { return Ok(None) };
        let Some(pointer) = self.value.read_lock::<FnPtr>() else { return Ok(None) };
        if is_handler {
            shared.check_arity(&pointer, 1, "a handler takes one, ctx")?;
        }
        Ok(Some(shared.functions.refer(&pointer)))
    }

    fn is_raised(&self) -> bool {
        self.value.is::<ErrorValue>()
    }

    fn described(&self) -> Described {
        described(self.value)
    }

    fn text(&self) -> Result<String, String> {
        Ok(text(self.value))
    }

    fn inside(&self) -> Option<Nested> {
        if self.value.is_array() {
            return Some(Nested::List);
        }
        self.value.is_map().then_some(Nested::Map)
    }

    fn visit(&self, visit: &mut Visit<'_>) -> Result<(), CallError> {
        let part = |value| RhaiPassed { shared: self.shared, value };
        if let Ok(items) = self.value.as_array_ref() {
            return items.iter().try_for_each(|it| visit(None, &part(it)));
        }
        let Ok(fields) = self.value.as_map_ref() else { return Ok(()) };
        fields.iter().try_for_each(|(name, it)| visit(Some(name), &part(it)))
    }
}

/// Runs `sleep(SECONDS)`. Rhai's own would block the thread instead of waiting through the runtime.
fn sleep(seconds: &Value) -> RhaiResult {
    let duration = duration(seconds).map_err(|it| problem(format!("sleep: {it}")))?;
    let duration = duration.unwrap_or_default().min(SLEEP_MAX);
    control::wait_for(async move { tokio::time::sleep(duration).await })?;
    Ok(Dynamic::UNIT)
}
