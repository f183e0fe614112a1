//! Declarations: `kopf.on_create(SELECTOR..., [OPTIONS], FUNCTION)` and its siblings, from values of scripts to what they declare.

use parking_lot::Mutex;

use super::{
    children,
    names::{self, Declaring, NoHandler},
};
use crate::call::ExecuteError;
use crate::logic::{
    handlers::{
        declare::{
            self, Argument as Part, Declaration, DeclareError, DeclaredSize, SubHandlerExecution,
            chooser,
        },
        handler::{Callback, Handler, Kind},
        lifecycle::Chooser,
    },
    object::measure,
};
use crate::scripting::{
    functions::kopf::{Argument, Done, HostCall, HostResult},
    values::{
        Filter, HostValue, Nested,
        errors::{CallError, ErrorValue},
        limits,
        refused::{DEPTH_MAX, Refused},
    },
};
use crate::sorted;

/// More options than exist.
const OPTIONS_MAX: usize = 100;

/// What the top level of a script declares.
pub(crate) struct TopLevel {
    /// `None` after it has returned.
    handlers: Mutex<Option<Vec<Handler>>>,
    /// The data in the declarations.
    size: DeclaredSize,
    /// The default lifecycles that it sets, in order.
    lifecycles: Mutex<Vec<Chooser>>,
}

impl Default for TopLevel {
    fn default() -> Self {
        let handlers = Mutex::new(Some(Vec::new()));
        TopLevel { handlers, size: DeclaredSize::default(), lifecycles: Mutex::default() }
    }
}

impl TopLevel {
    /// Returns whether the top level is still running.
    pub(crate) fn is_loading(&self) -> bool {
        self.handlers.lock().is_some()
    }

    /// Ends the top level, and returns what it has declared.
    pub(crate) fn finish(&self) -> (Vec<Handler>, Vec<Chooser>) {
        let handlers = self.handlers.lock().take().unwrap_or_default();
        (handlers, std::mem::take(&mut *self.lifecycles.lock()))
    }

    /// Checks that something may be declared now.
    fn admits(&self, name: &str) -> Result<(), DeclareError> {
        match &*self.handlers.lock() {
            None => Err(names::too_late(name)),
            Some(handlers) if handlers.len() >= limits::HANDLERS_MAX => {
                Err(limits::too_many_handlers().into())
            }
            Some(_) => Ok(()),
        }
    }

    fn declare(&self, declaration: Declaration) -> Result<(), DeclareError> {
        declaration.admit(&self.size)?;
        let handler = declare::declare(declaration)?;
        if let Some(handlers) = &mut *self.handlers.lock() {
            if let Some(costly) = costly(&handler)
                && handlers.iter().filter(|it| self::costly(it) == Some(costly)).count()
                    >= limits::COSTLY_MAX
            {
                return Err(limits::too_many_costly(costly).into());
            }
            let relations = handler.relations().len();
            if handlers.len() + relations >= limits::HANDLERS_MAX {
                return Err(limits::too_many_handlers().into());
            }
            handlers.push(handler);
        }
        Ok(())
    }
}

/// Returns what a handler is called if it takes much more work than others.
fn costly(handler: &Handler) -> Option<&'static str> {
    let kinds = [
        (handler.is_chosen_by_function(), "selector functions"),
        (handler.is_reconciler(), "reconcile handlers"),
        (handler.kind == Kind::Index, "indexes"),
        (handler.kind.is_scheduled(), "schedules"),
        (handler.kind == Kind::Probe, "probes"),
        (handler.kind == Kind::Daemon, "daemons"),
        (handler.kind == Kind::Timer, "timers"),
    ];
    kinds.into_iter().find(|(is_it, _)| *is_it).map(|(_, name)| name)
}

/// Declares a handler, or a sub-handler of the running one.
pub(crate) fn declare(it: &Declaring, call: &HostCall<'_>) -> HostResult {
    let kind = it.kind.ok_or_else(|| names::not_built(it.name))?;
    let top_level = call.caller.top_level();
    let nothing = Ok(Done::Value(HostValue::Nil));
    if kind == Kind::Sub && !top_level.is_loading() {
        let children = children::of_call(call.caller.present().as_deref(), it.name)?;
        children.declare(read(it.name, kind, call)?)?;
        return nothing;
    }
    top_level.admits(it.name)?;
    top_level.declare(read(it.name, kind, call)?)?;
    nothing
}

fn read(name: &str, kind: Kind, call: &HostCall<'_>) -> Result<Declaration, CallError> {
    let (last, mut others) = match call.arguments.split_last() {
        Some((last, others)) => (Some(last), others),
        None => (None, call.arguments),
    };
    let given = match last {
        // Without other arguments, nothing was misspelled.
        Some(it) if it.is_nil() && !others.is_empty() => NoHandler::Nothing,
        Some(it) => it.library().map_or(NoHandler::Other, NoHandler::Library),
        None => NoHandler::Other,
    };
    let missing = || names::no_handler(name, kind, given);
    let handler = last.ok_or_else(missing)?;
    // The function is read first: an error in it matters most.
    let function = handler.function(true)?.ok_or_else(missing)?;
    let mut reader = ArgumentReader::of(call);
    let mut options = Vec::new();
    if let Some((map, selectors)) = others.split_last()
        && map.inside().is_some()
    {
        options = reader.options(call, *map)?;
        others = selectors;
    }
    let selector = |it: &&dyn Argument| reader.part("the selector", *it, 0);
    let selectors = others.iter().map(selector).collect::<Result<_, _>>()?;
    Ok(Declaration { kind, selectors, options, function, location: call.caller.location() })
}

/// Reads the arguments of one call, and counts their bytes.
struct ArgumentReader {
    bytes: usize,
    max: usize,
}

impl ArgumentReader {
    fn of(call: &HostCall<'_>) -> Self {
        ArgumentReader { bytes: 0, max: call.caller.string_size() }
    }

    /// Reads the options of a function of `kopf`.
    fn options(
        &mut self,
        call: &HostCall<'_>,
        map: &dyn Argument,
    ) -> Result<Vec<(String, Part)>, CallError> {
        let mut options = Vec::new();
        map.visit(&mut |name, value| {
            let place = &call.place;
            if options.len() >= OPTIONS_MAX {
                return Err(format!("{place}: too many options").into());
            }
            let name = name.ok_or_else(|| format!("{place}: options are named, not listed"))?;
            options.push((name.to_owned(), self.part(name, value, 0)?));
            Ok(())
        })?;
        // Maps of some languages have no order.
        sorted::sort_by(&mut options, |(a, _), (b, _)| a.cmp(b));
        Ok(options)
    }

    /// Reads a value that is nested `depth` levels deep; errors call it `name`.
    fn part(&mut self, name: &str, value: &dyn Argument, depth: usize) -> Result<Part, CallError> {
        if value.is_nil() {
            return Ok(Part::Absent);
        }
        if let Some(Filter(part)) = value.filter() {
            return Ok(part);
        }
        if let Some(function) = value.function(false)? {
            return Ok(Part::Callback(Callback::Function(function)));
        }
        let refused = match value.read() {
            Ok(data) => {
                self.bytes = self.bytes.saturating_add(measure::bytes(&data));
                if self.bytes > self.max {
                    return Err(limits::too_large_as_text("the declaration", self.max).into());
                }
                return Ok(Part::Value(data));
            }
            Err(refused) => refused,
        };
        let Some(shape) = value.inside().filter(|_| !refused.is_bound()) else {
            return Err(refused.at(name).into());
        };
        if depth >= DEPTH_MAX {
            return Err(Refused::too_deep().at(name).into());
        }
        let (mut list, mut map) = (Vec::new(), Vec::new());
        value.visit(&mut |key, value| {
            match key {
                Some(key) => {
                    let part = self.part(&format!("{name}.{key}"), value, depth + 1)?;
                    map.push((key.to_owned(), part));
                }
                None => list.push(self.part(name, value, depth + 1)?),
            }
            Ok(())
        })?;
        sorted::sort_by(&mut map, |(a, _), (b, _)| a.cmp(b));
        match (list.is_empty(), map.is_empty()) {
            (true, false) => Ok(Part::Map(map)),
            (true, true) if shape != Nested::List => Ok(Part::Map(map)),
            (_, true) => Ok(Part::List(list)),
            // `{ "configmaps", map = f }` in Lua is `["configmaps", #{ map: f }]` in Rhai.
            (false, false) => {
                list.push(Part::Map(map));
                Ok(Part::List(list))
            }
        }
    }
}

/// Implements `kopf.all_(f, g)` and its siblings; as in Kopf, also with one list of functions.
pub(crate) fn combine(combine: fn(Vec<Callback>) -> Callback, call: &HostCall<'_>) -> HostResult {
    let (mut callbacks, mut count) = (Vec::new(), 1);
    let mut add = |function: Option<&dyn Argument>| -> Result<(), CallError> {
        let callback = callback(call, function)?;
        count += callback.count();
        check_count(count)?;
        callbacks.push(callback);
        Ok(())
    };
    match call.arguments {
        [list] if list.inside().is_some() => {
            list.visit(&mut |name, it| add(name.is_none().then_some(it)))?;
        }
        functions => functions.iter().try_for_each(|it| add(Some(*it)))?,
    }
    Ok(Done::Value(HostValue::Filter(Filter(Part::Callback(combine(callbacks))))))
}

/// Implements `kopf.not_(f)`: negates a predicate.
pub(crate) fn negate(call: &HostCall<'_>) -> HostResult {
    let negated = callback(call, call.arguments.first().copied())?;
    check_count(1 + negated.count())?;
    let negated = Part::Callback(Callback::Not(Box::new(negated)));
    Ok(Done::Value(HostValue::Filter(Filter(negated))))
}

fn check_count(count: usize) -> Result<(), CallError> {
    if count > limits::COMBINED_MAX { Err(limits::too_many_combined().into()) } else { Ok(()) }
}

fn callback(call: &HostCall<'_>, value: Option<&dyn Argument>) -> Result<Callback, CallError> {
    if let Some(Filter(Part::Callback(callback))) = value.and_then(Argument::filter) {
        return Ok(callback);
    }
    let function = value.map(|it| it.function(false)).transpose()?.flatten();
    let function = function.ok_or_else(|| format!("{}: expected functions", call.place))?;
    Ok(Callback::Function(function))
}

/// Implements `kopf.set_default_lifecycle(LIFECYCLE)`, only at the top level.
pub(crate) fn set_default_lifecycle(call: &HostCall<'_>) -> HostResult {
    let top_level = call.caller.top_level();
    if !top_level.is_loading() {
        return Err(names::too_late("set_default_lifecycle").into());
    }
    let argument =
        call.arguments.first().map(|it| ArgumentReader::of(call).part("lifecycle", *it, 0));
    let argument = argument.transpose()?.unwrap_or(Part::Absent);
    top_level.lifecycles.lock().push(chooser(&call.place, argument)?);
    Ok(Done::Value(HostValue::Nil))
}

/// Implements `kopf.execute(OPTIONS)`: the call waits for its sub-handlers.
pub(crate) fn execute(call: &HostCall<'_>) -> HostResult {
    let children = children::of_call(call.caller.present().as_deref(), "execute")?;
    let options = match call.arguments.first() {
        Some(map) if map.inside().is_some() => ArgumentReader::of(call).options(call, *map)?,
        Some(other) if !other.is_nil() => return Err(names::no_options("execute").into()),
        Some(_) | None => Vec::new(),
    };
    let execution = SubHandlerExecution::parse(options, &call.caller.location())?;
    Ok(Done::Wait(Box::pin(async move {
        children.execute(execution).await.map_err(|error| match error {
            ExecuteError::Declared(error) => CallError::Told(error),
            ExecuteError::Raised(raised) => {
                CallError::Raised(ErrorValue::new(raised.kind, raised.message))
            }
        })
    })))
}
