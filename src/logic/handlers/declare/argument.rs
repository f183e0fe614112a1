//! The arguments of a declaration, and the error of a rejected one.

use std::{
    fmt,
    sync::atomic::{AtomicUsize, Ordering},
};

use serde_json::Value;

use crate::logic::handlers::{callback::Callback, function::Function, handler::Kind};

/// A value as a script passed it to a declaration.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// nil / `()`: the same as absent.
    Absent,
    /// Data without functions or markers inside: a scalar, a list, a map.
    Value(Value),
    /// A function, or a combination of functions (`kopf.all_` and the like).
    Callback(Callback),
    /// `kopf.PRESENT` and the like.
    Marker(Marker),
    /// A list with functions or markers inside.
    List(Vec<Argument>),
    /// A map with functions or markers inside, in the order of the script if the language has one, else sorted.
    Map(Vec<(String, Argument)>),
}

/// The constants of declarations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// `kopf.PRESENT`
    Present,
    /// `kopf.ABSENT`
    Absent,
    /// `kopf.EVERYTHING`
    Everything,
}

/// One declaration: `kopf.on_create(SELECTOR..., [OPTIONS], FUNCTION)`.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// The function of `kopf` that was called.
    pub kind: Kind,
    /// The positional arguments before the options.
    pub selectors: Vec<Argument>,
    /// The options, by name.
    pub options: Vec<(String, Argument)>,
    /// The function that the handler calls.
    pub function: Function,
    /// `file:line` of the declaration.
    pub location: String,
}

/// The error of a rejected declaration. The engines add its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclareError {
    /// What is wrong with the declaration, without its location.
    pub message: String,
    /// The hint, if there is one.
    pub hint: Option<String>,
}

/// Maximum size in bytes of the data, as JSON, in all declarations of a script, or in those of the sub-handlers of one attempt.
const DATA_MAX: usize = 4 << 20;

/// Maximum number of items of lists, fields of maps and functions in these data: each takes some hundred bytes of memory.
const ITEMS_MAX: usize = 50_000;

/// Maximum number of functions in these data, combinations included: filters are compared again after each answer of one.
const FUNCTIONS_MAX: usize = 1_000;

/// Maximum size in bytes of an id, a name, a pattern or an expression. API servers take names of 253 bytes, and expressions of 5 KiB.
const NAME_MAX: usize = 8 << 10;

/// The options with data of the script, which may be larger.
const DATA_OPTIONS: [&str; 4] = ["param", "value", "old", "new"];

impl Declaration {
    /// Adds the size of this declaration's data to `total`.
    ///
    /// # Errors
    /// Fails if the data exceed the limit: the operator keeps them with the handlers; and if a string is too long for a name: it becomes
    /// a part of ids, log lines and addresses.
    pub fn admit(&self, total: &DeclaredSize) -> Result<(), DeclareError> {
        let (mut bytes, mut items, mut functions) = (0, 0, 0);
        let selectors = self.selectors.iter().map(|it| ("", it));
        for (name, it) in selectors.chain(self.options.iter().map(|(name, it)| (name.as_str(), it)))
        {
            let size = it.size();
            if size.longest > NAME_MAX && self.kind != Kind::Test && !DATA_OPTIONS.contains(&name) {
                let what = if name.is_empty() {
                    "the selector".into()
                } else {
                    format!("option `{name}`")
                };
                return Err(format!("{what} has a string of more than 8 KiB").into());
            }
            bytes += name.len() + size.bytes;
            items += size.items;
            functions += size.functions;
        }
        let before = total.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > DATA_MAX {
            return Err("the options of all declarations are larger than 4 MiB as JSON in total: move data to variables".into());
        }
        let before = total.items.fetch_add(items, Ordering::Relaxed);
        if before.saturating_add(items) > ITEMS_MAX {
            return Err(format!("the options of all declarations have more than {ITEMS_MAX} items in total: move data to variables").into());
        }
        let before = total.functions.fetch_add(functions, Ordering::Relaxed);
        if before.saturating_add(functions) > FUNCTIONS_MAX {
            return Err(format!("the options of all declarations have more than {FUNCTIONS_MAX} functions in total; one function can decide instead of several, or distribute the handlers over several scripts").into());
        }
        Ok(())
    }
}

/// The data of all declarations of a script, or of those of the sub-handlers of one attempt.
#[derive(Debug, Default)]
pub struct DeclaredSize {
    /// The bytes as JSON, approximately.
    bytes: AtomicUsize,
    /// The items of lists, fields of maps and functions, nested ones included.
    items: AtomicUsize,
    /// The functions, with those inside of combinations.
    functions: AtomicUsize,
}

/// The size of data.
#[derive(Clone, Copy, Default)]
struct Size {
    /// The bytes as JSON, approximately.
    bytes: usize,
    /// The items of lists, fields of maps and functions, nested ones included.
    items: usize,
    /// The functions, with those inside of combinations.
    functions: usize,
    /// The longest string, keys included.
    longest: usize,
}

impl Size {
    fn plus(self, other: Size) -> Size {
        Size {
            bytes: self.bytes + other.bytes,
            items: self.items + other.items,
            functions: self.functions + other.functions,
            longest: self.longest.max(other.longest),
        }
    }

    fn of_string(text: &str) -> Size {
        Size { bytes: text.len() + 3, longest: text.len(), ..Size::default() }
    }

    fn of_all(items: impl Iterator<Item = Size>) -> Size {
        let item = |it: Size| Size { items: it.items + 1, ..it };
        items.map(item).fold(Size { bytes: 3, ..Size::default() }, Size::plus)
    }

    fn of_value(value: &Value) -> Size {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Size { bytes: 8, ..Size::default() },
            Value::String(text) => Size::of_string(text),
            Value::Array(items) => Size::of_all(items.iter().map(Size::of_value)),
            Value::Object(fields) => Size::of_all(
                fields.iter().map(|(key, it)| Size::of_string(key).plus(Size::of_value(it))),
            ),
        }
    }
}

impl Argument {
    fn size(&self) -> Size {
        match self {
            Argument::Absent | Argument::Marker(_) => Size { bytes: 1, ..Size::default() },
            Argument::Callback(callback) => {
                let functions = callback.count();
                Size { bytes: 1, items: functions, functions, longest: 0 }
            }
            Argument::Value(value) => Size::of_value(value),
            Argument::List(items) => Size::of_all(items.iter().map(Argument::size)),
            Argument::Map(fields) => {
                Size::of_all(fields.iter().map(|(key, it)| Size::of_string(key).plus(it.size())))
            }
        }
    }
}

impl DeclareError {
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        DeclareError { message: message.into(), hint: Some(hint.into()) }
    }
}

impl<T: Into<String>> From<T> for DeclareError {
    fn from(message: T) -> Self {
        DeclareError { message: message.into(), hint: None }
    }
}

impl fmt::Display for DeclareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for DeclareError {}
