//! One call of a library: its arguments, checked against the table.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value};

use super::{Given, Pace, Shape, Surroundings, bounds, given, pace, passage::Passage};
use crate::call::Invocation;
use crate::logic::text::nearest::unknown_option;
use crate::scripting::functions::{
    outcome::{Datum, Failure, Flow, Outcome, integer},
    types::{Function, Library, Type},
};

/// One call, whose arguments match the parameters.
#[derive(Debug)]
pub(crate) struct Call {
    /// By parameter or option; omitted ones are missing.
    pub(super) arguments: Vec<(&'static str, Datum)>,
    /// The room that the call holds while it waits for a server.
    pub(super) passage: Option<Passage>,
    /// The script that calls.
    pub(crate) surroundings: Arc<Surroundings>,
    /// The call of the handler; `None` at the top level.
    pub(crate) present: Option<Arc<Invocation>>,
}

static NULL: Value = Value::Null;

impl Call {
    /// Checks the arguments, in the order in which they were passed.
    ///
    /// # Errors
    /// They do not match: which one, what is expected, what was passed.
    pub(crate) fn new(
        (library, function): (&Library, &Function),
        given: Vec<Given>,
        surroundings: Arc<Surroundings>,
        present: Option<Arc<Invocation>>,
    ) -> Result<Self, Failure> {
        let arguments = function.assign(library, given, surroundings.limits.string_size)?;
        Ok(Call { arguments, passage: None, surroundings, present })
    }

    /// Runs a function that computes, within the limits of the caller.
    pub(crate) fn compute(&self, body: fn(&Call) -> Outcome, pace: &Pace) -> Outcome {
        let memory = self.surroundings.limits.memory_limit;
        pace::within(pace, memory, || self.bounded(body(self)))
    }

    /// Returns the values for a loop, if the script does not have too many loops.
    pub(crate) fn flow(&self, body: fn(&Call) -> Result<Flow, Failure>) -> Result<Flow, Failure> {
        self.surroundings.loops.open(|| body(self))
    }

    /// Returns the result of a function, if it is not too large.
    fn bounded(&self, outcome: Outcome) -> Outcome {
        bounds::within(outcome?, self.surroundings.limits.string_size)
    }

    fn datum(&self, name: &str) -> Option<&Datum> {
        self.arguments.iter().find(|(it, _)| *it == name).map(|(_, it)| it)
    }

    /// Returns whether an argument was passed.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.datum(name).is_some()
    }

    /// Returns an argument by the name of its parameter; null if it was omitted.
    pub(crate) fn value(&self, name: &str) -> &Value {
        match self.datum(name) {
            Some(Datum::Json(value)) => value,
            Some(Datum::Bytes(_) | Datum::Map(_)) | None => &NULL,
        }
    }

    /// Returns a string; empty if it was omitted.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.value(name).as_str().unwrap_or_default()
    }

    /// Returns a string, unless it was omitted.
    pub(crate) fn some_text(&self, name: &str) -> Option<&str> {
        self.value(name).as_str()
    }

    /// Returns bytes, also those of a string; empty if they were omitted.
    pub(crate) fn bytes(&self, name: &str) -> &[u8] {
        match self.datum(name) {
            Some(Datum::Bytes(bytes)) => bytes,
            Some(Datum::Json(value)) => value.as_str().unwrap_or_default().as_bytes(),
            Some(Datum::Map(_)) | None => &[],
        }
    }

    /// Returns an integer, unless it was omitted.
    pub(crate) fn integer(&self, name: &str) -> Option<i64> {
        integer(self.value(name))
    }

    /// Returns a number, unless it was omitted.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.value(name).as_f64()
    }

    /// Returns a count, such as a number of characters; the default if it was omitted.
    ///
    /// # Errors
    /// It is negative.
    pub(crate) fn count(&self, name: &str, default: usize) -> Result<usize, Failure> {
        let Some(given) = self.integer(name) else { return Ok(default) };
        usize::try_from(given).map_err(|_negative| {
            Failure::Plain(format!("`{name}`: expected a number of at least 0, got {given}"))
        })
    }

    /// Returns whether an option is set.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.value(name).as_bool().unwrap_or_default()
    }

    /// Returns a duration, unless it was omitted.
    pub(crate) fn duration(&self, name: &str) -> Option<Duration> {
        given::span(self.value(name))
    }

    /// Returns the items of a list; none if it was omitted.
    pub(crate) fn list(&self, name: &str) -> &[Value] {
        self.value(name).as_array().map_or(&[], Vec::as_slice)
    }

    /// Returns the fields of a map, unless it was omitted.
    pub(crate) fn map(&self, name: &str) -> Option<&Map<String, Value>> {
        self.value(name).as_object()
    }

    /// Runs work that blocks, such as reading a file, on another thread.
    pub(crate) async fn elsewhere(self, work: fn(&Call) -> Outcome) -> Outcome {
        let done = tokio::task::spawn_blocking(move || self.bounded(work(&self))).await;
        done.unwrap_or_else(|it| Err(Failure::Plain(it.to_string())))
    }
}

impl Call {
    /// Runs expensive work, such as generating a key, on another thread: one at a time for each script.
    pub(super) async fn heavily(self, work: fn(&Call) -> Outcome) -> Outcome {
        let surroundings = Arc::clone(&self.surroundings);
        let done = surroundings.heavy.run(move || self.bounded(work(&self))).await;
        done.unwrap_or_else(|problem| Err(Failure::Plain(problem)))
    }
}

/// Parses a response of `bytes` bytes, on another thread if it is long. Calls in Rhai wait on the runtime of the operator, which
/// has one thread for everything.
///
/// # Errors
/// The other thread has failed.
pub(super) async fn aside<T: Send + 'static>(
    bytes: usize,
    read: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    /// The size that is parsed within a millisecond.
    const SHORT: usize = 128 * 1024;
    if bytes <= SHORT {
        return Ok(read());
    }
    let done = tokio::task::spawn_blocking(read).await;
    done.map_err(|it| Failure::Plain(it.to_string()))
}

impl Function {
    /// Checks the arguments of a function that is written in the language. Options are checked by the part of the host that receives them.
    ///
    /// # Errors
    /// They do not match.
    pub(crate) fn check_shapes(&self, library: &Library, shapes: &[Shape]) -> Result<(), Failure> {
        let shapes = match shapes.split_last() {
            Some((Shape::Map | Shape::Empty, rest)) if self.may_be_options(rest.len()) => rest,
            Some((Shape::Nothing, rest)) if self.is_place_of_options(rest.len()) => rest,
            Some(_) | None => shapes,
        };
        if shapes.len() > self.parameters.len() {
            return Err(self.too_many(library, shapes.len()));
        }
        self.parameters.iter().enumerate().try_for_each(|(place, parameter)| {
            shapes.get(place).map_or_else(|| parameter.left_out(), |it| parameter.check_shape(*it))
        })
    }

    /// Assigns the arguments to their parameters.
    fn assign(
        &self,
        library: &Library,
        mut given: Vec<Given>,
        size_max: usize,
    ) -> Result<Vec<(&'static str, Datum)>, Failure> {
        let mut arguments = self.take_options(&mut given, size_max)?;
        if given.len() > self.parameters.len() {
            return Err(self.too_many(library, given.len()));
        }
        let mut given = given.into_iter();
        for parameter in self.parameters {
            match given.next() {
                // Null is a value where any value is required.
                Some(it)
                    if it.is_null() && (parameter.kind != Type::Any || !parameter.required) =>
                {
                    parameter.left_out()?;
                }
                Some(it) => arguments.push((parameter.name, parameter.check(it, size_max)?)),
                None => parameter.left_out()?,
            }
        }
        Ok(arguments)
    }

    /// Takes the options, which are the last argument: at their position, or at that of an omitted parameter.
    fn take_options(
        &self,
        given: &mut Vec<Given>,
        size_max: usize,
    ) -> Result<Vec<(&'static str, Datum)>, Failure> {
        // In Rhai, functions of `stdlib` pass null for omitted options.
        let place = given.len().wrapping_sub(1);
        drop(given.pop_if(|it| it.is_null() && self.is_place_of_options(place)));
        let place = given.len().wrapping_sub(1);
        let options = match given.pop_if(|it| it.is_map() && self.may_be_options(place)) {
            Some(Given::Datum(Datum::Json(Value::Object(options)))) => options,
            Some(Given::Refused(_, refused)) => return Err(refused.at("the options").into()),
            Some(Given::Datum(_)) | None => Map::new(),
        };
        let mut arguments = Vec::new();
        for (name, value) in options {
            let Some(option) = self.options.iter().find(|it| it.name == name) else {
                let known = self.options.iter().map(|it| it.name).collect::<Vec<_>>();
                return Err(unknown_option(&name, &known).into());
            };
            if !value.is_null() {
                let value = option.check(Given::Datum(Datum::Json(value)), size_max)?;
                arguments.push((option.name, value));
            }
        }
        let is_left_out = |name| !arguments.iter().any(|(it, _)| *it == name);
        for option in self.options.iter().filter(|it| is_left_out(it.name)) {
            option.left_out()?;
        }
        Ok(arguments)
    }

    /// Returns whether a map at this position is the options.
    fn may_be_options(&self, place: usize) -> bool {
        let parameter = self.parameters.get(place);
        let is_free =
            parameter.is_none_or(|it| !it.required && !matches!(it.kind, Type::Any | Type::Map));
        is_free && !self.options.is_empty()
    }

    fn is_place_of_options(&self, place: usize) -> bool {
        place == self.parameters.len() && !self.options.is_empty()
    }

    /// Returns the maximum number of arguments, including the options.
    pub(crate) fn arguments_max(&self) -> usize {
        self.parameters.len() + usize::from(!self.options.is_empty())
    }

    /// Returns the error of too many arguments.
    pub(crate) fn too_many(&self, library: &Library, given: usize) -> Failure {
        format!("too many arguments, {given}: expected {}", self.signature(library.name)).into()
    }
}
