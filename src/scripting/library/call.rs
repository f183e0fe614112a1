//! One call of a library: its arguments, checked against the table.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Datum, Failure, Function, Library, Outcome, Parameter, Surroundings, Type};
use crate::logic::duration;
use crate::ports::Invocation;
use crate::scripting::text::{did_you_mean, shown};

/// One call, whose arguments fit the parameters.
#[derive(Debug)]
pub(crate) struct Call {
    /// By parameter and option; null where left out.
    arguments: Map<String, Value>,
    /// Who calls.
    pub(crate) surroundings: Arc<Surroundings>,
    /// What the calling handler is called for; `None` at the top level.
    pub(crate) present: Option<Arc<Invocation>>,
}

impl Call {
    /// Checks the arguments, in the order in which they were passed.
    ///
    /// # Errors
    /// They do not fit: which one, what is expected, what was given.
    pub(crate) fn new(
        (library, function): (&Library, &Function),
        given: Vec<Datum>,
        surroundings: Arc<Surroundings>,
        present: Option<Arc<Invocation>>,
    ) -> Result<Self, Failure> {
        let arguments = function.assign(library, given)?;
        Ok(Call { arguments, surroundings, present })
    }

    /// An argument by the name of its parameter; null if it was left out.
    pub(crate) fn value(&self, name: &str) -> &Value {
        self.arguments.get(name).unwrap_or(&Value::Null)
    }

    /// A text; empty if it was left out.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.value(name).as_str().unwrap_or_default()
    }

    /// Something that works long without waiting for others, such as reading a file: it gets a thread for that.
    pub(crate) async fn elsewhere(self, work: fn(&Call) -> Outcome) -> Outcome {
        let done = tokio::task::spawn_blocking(move || work(&self)).await;
        done.unwrap_or_else(|it| Err(Failure::Plain(it.to_string())))
    }
}

impl Function {
    /// The arguments by the names of their parameters.
    fn assign(&self, library: &Library, given: Vec<Datum>) -> Result<Map<String, Value>, Failure> {
        let mut given: Vec<Value> = given.into_iter().map(|Datum::Json(it)| it).collect();
        let mut arguments = self.take_options(&mut given)?;
        if given.len() > self.parameters.len() {
            return Err(Failure::Plain(self.too_many(library, given.len())));
        }
        let mut given = given.into_iter();
        for parameter in self.parameters {
            match given.next() {
                // Nothing is a value where anything is.
                Some(Value::Null) if parameter.kind != Type::Any || !parameter.required => {
                    parameter.left_out()?;
                }
                Some(value) => {
                    arguments.insert(parameter.name.to_owned(), parameter.check(value)?);
                }
                None => parameter.left_out()?,
            }
        }
        Ok(arguments)
    }

    /// The options, which are the last argument: in their place, or instead of something that may be left out.
    fn take_options(&self, given: &mut Vec<Value>) -> Result<Map<String, Value>, Failure> {
        let place = given.len().checked_sub(1);
        let is_options = |it: &mut Value| match (place, it) {
            _ if self.options.is_empty() => false,
            (Some(place), Value::Object(_)) => self
                .parameters
                .get(place)
                .is_none_or(|it| !it.required && !matches!(it.kind, Type::Any | Type::Map)),
            (Some(place), Value::Null) => place == self.parameters.len(),
            (_, _) => false,
        };
        let options = match given.pop_if(is_options) {
            Some(Value::Object(options)) => options,
            Some(_) | None => Map::new(),
        };
        let mut arguments = Map::new();
        for (name, value) in options {
            let Some(option) = self.options.iter().find(|it| it.name == name) else {
                let near = did_you_mean(&name, self.options.iter().map(|it| it.name), "");
                return Err(Failure::Plain(format!("there is no option `{name}`{near}")));
            };
            if !value.is_null() {
                arguments.insert(name, option.check(value)?);
            }
        }
        for option in self.options.iter().filter(|it| !arguments.contains_key(it.name)) {
            option.left_out()?;
        }
        Ok(arguments)
    }

    fn too_many(&self, library: &Library, given: usize) -> String {
        format!("too many arguments, {given}: expected {}", self.signature(library.name))
    }
}

impl Parameter {
    /// The value, if it fits.
    fn check(&self, value: Value) -> Result<Value, Failure> {
        let fits = match self.kind {
            Type::Any => true,
            Type::Boolean => value.is_boolean(),
            Type::Name => value.as_str().is_some_and(|it| !it.is_empty()),
            Type::Text => value.is_string(),
            Type::Map | Type::Object => value.is_object(),
            // An empty list is written as an empty map in one of the languages.
            Type::List if value.as_object().is_some_and(Map::is_empty) => {
                return Ok(Value::Array(Vec::new()));
            }
            Type::List => value.is_array(),
            Type::Count => value.as_u64().is_some(),
            Type::Duration => duration::parse(&value).is_some(),
            Type::Selector => value.is_object() || value.as_str().is_some_and(|it| !it.is_empty()),
            Type::Labels => value.is_object() || value.is_string(),
        };
        if fits {
            return Ok(value);
        }
        Err(Failure::Plain(format!(
            "`{}`: expected {}, got {}",
            self.name,
            self.kind.expected(),
            { brief(&value) }
        )))
    }

    fn left_out(&self) -> Result<(), Failure> {
        if self.required {
            let expected = self.kind.expected();
            return Err(Failure::Plain(format!("`{}` is missing: expected {expected}", self.name)));
        }
        Ok(())
    }
}

/// A value in a message.
fn brief(value: &Value) -> String {
    /// Enough to recognize it.
    const CHARACTERS: usize = 60;
    let text = shown(value);
    match text.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
