//! One call of a library: its arguments, checked against the table.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value};

use super::{Given, Pace, Shape, Surroundings, bounds, given, pace, passage::Passage};
use crate::call::Invocation;
use crate::scripting::{
    functions::{
        outcome::{Datum, Failure, Flow, Outcome, integer},
        types::{Function, Library, Type},
    },
    values::text::did_you_mean,
};

/// One call, whose arguments fit the parameters.
#[derive(Debug)]
pub(crate) struct Call {
    /// By parameter and option; those that were left out are not there.
    pub(super) arguments: Vec<(&'static str, Datum)>,
    /// The room of a call that waits for others.
    pub(super) passage: Option<Passage>,
    /// Who calls.
    pub(crate) surroundings: Arc<Surroundings>,
    /// What the calling handler is called for; `None` at the top level.
    pub(crate) present: Option<Arc<Invocation>>,
}

static NULL: Value = Value::Null;

impl Call {
    /// Checks the arguments, in the order in which they were passed.
    ///
    /// # Errors
    /// They do not fit: which one, what is expected, what was given.
    pub(crate) fn new(
        (library, function): (&Library, &Function),
        given: Vec<Given>,
        surroundings: Arc<Surroundings>,
        present: Option<Arc<Invocation>>,
    ) -> Result<Self, Failure> {
        let arguments = function.assign(library, given, surroundings.limits.string_size)?;
        Ok(Call { arguments, passage: None, surroundings, present })
    }

    /// Does what computes at once; the limits of the caller hold inside.
    pub(crate) fn compute(&self, body: fn(&Call) -> Outcome, pace: &Pace) -> Outcome {
        let memory = self.surroundings.limits.memory_limit;
        pace::within(pace, memory, || self.bounded(body(self)))
    }

    /// What a script loops over, if that is not too much.
    pub(crate) fn flow(&self, body: fn(&Call) -> Result<Flow, Failure>) -> Result<Flow, Failure> {
        self.surroundings.loops.open(|| body(self))
    }

    /// What a function gives, if it is not too large.
    fn bounded(&self, outcome: Outcome) -> Outcome {
        bounds::within(outcome?, self.surroundings.limits.string_size)
    }

    fn datum(&self, name: &str) -> Option<&Datum> {
        self.arguments.iter().find(|(it, _)| *it == name).map(|(_, it)| it)
    }

    /// Whether an argument was passed.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.datum(name).is_some()
    }

    /// An argument by the name of its parameter; null if it was left out.
    pub(crate) fn value(&self, name: &str) -> &Value {
        match self.datum(name) {
            Some(Datum::Json(value)) => value,
            Some(Datum::Bytes(_) | Datum::Map(_)) | None => &NULL,
        }
    }

    /// A text; empty if it was left out.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.value(name).as_str().unwrap_or_default()
    }

    /// A text, unless it was left out.
    pub(crate) fn some_text(&self, name: &str) -> Option<&str> {
        self.value(name).as_str()
    }

    /// Bytes, also those of a text; empty if it was left out.
    pub(crate) fn bytes(&self, name: &str) -> &[u8] {
        match self.datum(name) {
            Some(Datum::Bytes(bytes)) => bytes,
            Some(Datum::Json(value)) => value.as_str().unwrap_or_default().as_bytes(),
            Some(Datum::Map(_)) | None => &[],
        }
    }

    /// A number without a fraction, unless it was left out.
    pub(crate) fn integer(&self, name: &str) -> Option<i64> {
        integer(self.value(name))
    }

    /// A number, unless it was left out.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.value(name).as_f64()
    }

    /// A count, such as a number of characters; the default if it was left out.
    ///
    /// # Errors
    /// It is negative.
    pub(crate) fn count(&self, name: &str, default: usize) -> Result<usize, Failure> {
        let Some(given) = self.integer(name) else { return Ok(default) };
        usize::try_from(given).map_err(|_negative| {
            Failure::Plain(format!("`{name}`: expected a number of at least 0, got {given}"))
        })
    }

    /// Whether an option is set.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.value(name).as_bool().unwrap_or_default()
    }

    /// A duration, unless it was left out.
    pub(crate) fn duration(&self, name: &str) -> Option<Duration> {
        given::span(self.value(name))
    }

    /// The items of a list; none if it was left out.
    pub(crate) fn list(&self, name: &str) -> &[Value] {
        self.value(name).as_array().map_or(&[], Vec::as_slice)
    }

    /// The fields of a map, unless it was left out.
    pub(crate) fn map(&self, name: &str) -> Option<&Map<String, Value>> {
        self.value(name).as_object()
    }

    /// Something that works long without waiting for others, such as reading a file: it gets a thread for that.
    pub(crate) async fn elsewhere(self, work: fn(&Call) -> Outcome) -> Outcome {
        let done = tokio::task::spawn_blocking(move || self.bounded(work(&self))).await;
        done.unwrap_or_else(|it| Err(Failure::Plain(it.to_string())))
    }
}

impl Call {
    /// Does work that takes long on purpose, such as the generation of a key: one at a time for each script.
    pub(super) async fn heavily(self, work: fn(&Call) -> Outcome) -> Outcome {
        let surroundings = Arc::clone(&self.surroundings);
        let done = surroundings.heavy.run(move || self.bounded(work(&self))).await;
        done.unwrap_or_else(|problem| Err(Failure::Plain(problem)))
    }
}

/// Reads an answer of so many bytes: on another thread if it is long. Calls in Rhai wait on the runtime of the operator, which
/// has one thread for everything.
///
/// # Errors
/// The other thread has failed.
pub(super) async fn aside<T: Send + 'static>(
    bytes: usize,
    read: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    /// Less is read within a millisecond.
    const SHORT: usize = 128 * 1024;
    if bytes <= SHORT {
        return Ok(read());
    }
    let done = tokio::task::spawn_blocking(read).await;
    done.map_err(|it| Failure::Plain(it.to_string()))
}

impl Function {
    /// Checks the arguments of a function that is written in the language. The options are left to the part of the host that
    /// gets them.
    ///
    /// # Errors
    /// They do not fit.
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

    /// The arguments by the names of their parameters.
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
                // Nothing is a value where anything is.
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

    /// The options, which are the last argument: in their place, or instead of something that may be left out.
    fn take_options(
        &self,
        given: &mut Vec<Given>,
        size_max: usize,
    ) -> Result<Vec<(&'static str, Datum)>, Failure> {
        // In Rhai, what is written in the language passes nothing for what it did not get.
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
                let near = did_you_mean(&name, self.options.iter().map(|it| it.name), "");
                return Err(format!("there is no option `{name}`{near}").into());
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

    /// Whether a map in this place is options.
    fn may_be_options(&self, place: usize) -> bool {
        let parameter = self.parameters.get(place);
        let is_free =
            parameter.is_none_or(|it| !it.required && !matches!(it.kind, Type::Any | Type::Map));
        is_free && !self.options.is_empty()
    }

    fn is_place_of_options(&self, place: usize) -> bool {
        place == self.parameters.len() && !self.options.is_empty()
    }

    /// The most arguments that it takes, with the options.
    pub(crate) fn arguments_max(&self) -> usize {
        self.parameters.len() + usize::from(!self.options.is_empty())
    }

    /// It was given more than it takes.
    pub(crate) fn too_many(&self, library: &Library, given: usize) -> Failure {
        format!("too many arguments, {given}: expected {}", self.signature(library.name)).into()
    }
}
