//! `kopf.execute({fns = …, handlers = …, lifecycle = …})`: reads which sub-handlers to run now.

use super::super::{
    handler::{Callback, Kind},
    lifecycle::{Chooser, Lifecycle},
};
use super::{Argument, Declaration, DeclareError, values};
use crate::logic::{handlers::function::Function, text::nearest::nearest};
use serde_json::Value;

/// The options of `kopf.execute`.
const OPTIONS: [&str; 3] = ["fns", "handlers", "lifecycle"];
/// The accepted forms, for errors.
const FNS: &str = "kopf.execute: `fns` must be a list of functions, or a map from ids to functions";
const HANDLERS: &str = "kopf.execute: `handlers` must be a list whose items are [OPTIONS, FUNCTION], as for kopf.register";

/// The sub-handlers to run now, as passed to `kopf.execute`.
#[derive(Clone, Debug, Default)]
pub struct SubHandlerExecution {
    /// The handlers; `None`: those that were declared.
    pub passed: Option<Vec<Declaration>>,
    /// The lifecycle that orders them; `None`: that of the parent's cycle.
    pub chooser: Option<Chooser>,
}

impl SubHandlerExecution {
    /// Reads the options. `location` is the place of the call of `kopf.execute`.
    pub fn parse(options: Vec<(String, Argument)>, location: &str) -> Result<Self, DeclareError> {
        let mut execution = SubHandlerExecution::default();
        for (name, argument) in options {
            let passed = match (name.as_str(), argument) {
                (_, Argument::Absent) => continue,
                ("lifecycle", argument) => {
                    execution.chooser = Some(chooser("kopf.execute", argument)?);
                    continue;
                }
                ("fns", argument) => functions(argument, location)?,
                ("handlers", argument) => handlers(argument, location)?,
                _ => return Err(unknown(&name)),
            };
            if execution.passed.replace(passed).is_some() {
                return Err("kopf.execute takes either `fns` or `handlers`, not both".into());
            }
        }
        Ok(execution)
    }
}

/// Reads a lifecycle as scripts write it: one of `kopf.lifecycles`, or a function. Nil or null is the default one.
pub fn chooser(function: &str, argument: Argument) -> Result<Chooser, DeclareError> {
    let name = match argument {
        Argument::Absent | Argument::Value(Value::Null) => {
            return Ok(Lifecycle::default().into());
        }
        Argument::Callback(Callback::Function(function)) => return Ok(Chooser::Custom(function)),
        Argument::Value(Value::String(name)) => name,
        Argument::Value(_)
        | Argument::Callback(_)
        | Argument::Marker(_)
        | Argument::List(_)
        | Argument::Map(_) => {
            return Err(DeclareError::new(
                format!("{function}: expected one of kopf.lifecycles or a function"),
                "such as kopf.lifecycles.all_at_once",
            ));
        }
    };
    Lifecycle::parse(&name).map(Chooser::BuiltIn).ok_or_else(|| {
        let names = Lifecycle::ALL.map(|(name, _)| name);
        DeclareError {
            message: format!("{function}: there is no lifecycle {name:?}, only {names:?}"),
            hint: nearest(&name, names).map(|it| format!("did you mean kopf.lifecycles.{it}?")),
        }
    })
}

fn functions(argument: Argument, location: &str) -> Result<Vec<Declaration>, DeclareError> {
    match argument {
        Argument::List(items) => items
            .into_iter()
            .map(|it| Ok(declaration(Vec::new(), values::function(&it).ok_or(FNS)?, location)))
            .collect(),
        Argument::Map(entries) => entries
            .into_iter()
            .map(|(id, it)| {
                let options = vec![("id".to_owned(), Argument::Value(id.into()))];
                Ok(declaration(options, values::function(&it).ok_or(FNS)?, location))
            })
            .collect(),
        Argument::Value(value) if is_empty(&value) => Ok(Vec::new()),
        Argument::Absent | Argument::Value(_) | Argument::Callback(_) | Argument::Marker(_) => {
            Err(FNS.into())
        }
    }
}

fn handlers(argument: Argument, location: &str) -> Result<Vec<Declaration>, DeclareError> {
    match argument {
        Argument::List(items) => items.into_iter().map(|it| handler(it, location)).collect(),
        Argument::Value(value) if is_empty(&value) => Ok(Vec::new()),
        Argument::Absent
        | Argument::Value(_)
        | Argument::Callback(_)
        | Argument::Marker(_)
        | Argument::Map(_) => Err(HANDLERS.into()),
    }
}

/// Reads `[OPTIONS, FUNCTION]`, or only the function.
fn handler(item: Argument, location: &str) -> Result<Declaration, DeclareError> {
    let Argument::List(mut parts) = item else {
        return Ok(declaration(Vec::new(), values::function(&item).ok_or(HANDLERS)?, location));
    };
    let function = parts.pop().as_ref().and_then(values::function).ok_or(HANDLERS)?;
    let options = match (parts.pop(), parts.is_empty()) {
        (None, _) => Vec::new(),
        (Some(Argument::Map(options)), true) => options,
        (Some(Argument::Value(Value::Object(options))), true) => {
            options.into_iter().map(|(key, it)| (key, Argument::Value(it))).collect()
        }
        (Some(_), _) => return Err(HANDLERS.into()),
    };
    Ok(declaration(options, function, location))
}

fn declaration(
    options: Vec<(String, Argument)>,
    function: Function,
    location: &str,
) -> Declaration {
    let location = location.to_owned();
    Declaration { kind: Kind::Sub, selectors: Vec::new(), options, function, location }
}

/// Returns whether this is an empty list or map; a language may have one empty table for both.
fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
        || value.as_object().is_some_and(serde_json::Map::is_empty)
}

fn unknown(name: &str) -> DeclareError {
    DeclareError {
        message: format!("kopf.execute has no option `{name}`"),
        hint: nearest(name, OPTIONS)
            .map(|it| format!("did you mean `{it}`?"))
            .or_else(|| Some("its options are `fns`, `handlers` and `lifecycle`".to_owned())),
    }
}
