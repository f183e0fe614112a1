//! Conversion of values between JSON and Rhai. Only integers above the range of `i64` lose precision.
//!
//! Values that JSON cannot represent are refused with their path. Integers stay `i64`, floats stay floats, `()` is null.

use kopf_rhai::{Fallible, problem};
use rhai::{Array, Dynamic, Engine, FnPtr, FuncRegistration, Map};
use serde_json::Value;

use super::{errors, handles, view::View};
use crate::logic::object::measure;
use crate::scripting::{
    blocking::control,
    values::{
        account::{Account, Deadline},
        errors::ErrorValue,
        refused::{BYTES, DEPTH_MAX, FUNCTION, HOST_OBJECT, NOT_FINITE, Refused, SizeLimit},
        text::shown,
    },
};

/// The text of a value that is not data is cut after this many bytes.
const SKETCH_BYTES_MAX: usize = 16 * 1024;

/// Bytes that one item of a document takes while it is parsed: in the tree, and as a Rhai value.
const BYTES_PER_ITEM: usize = 160;

/// Returns a plain Rhai value, deeply copied: for `kopf.copy`, and for lists that a script may change.
pub(super) fn plain(value: &Value) -> Dynamic {
    match value {
        Value::Null => Dynamic::UNIT,
        Value::Bool(it) => (*it).into(),
        Value::Number(it) => number(it),
        Value::String(it) => it.into(),
        Value::Array(items) => Dynamic::from_array(items.iter().map(plain).collect()),
        Value::Object(fields) => Dynamic::from_map(
            fields.iter().map(|(key, value)| (key.as_str().into(), plain(value))).collect(),
        ),
    }
}

pub(super) fn number(number: &serde_json::Number) -> Dynamic {
    // Integers above the range of `i64` become the nearest float.
    number
        .as_i64()
        .map_or_else(|| Dynamic::from_float(number.as_f64().unwrap_or(f64::NAN)), Dynamic::from_int)
}

/// Converts a value that is passed to the host into JSON. The error names the path of what JSON cannot represent, starting with `name`.
pub(super) fn to_json(name: &str, value: &Dynamic) -> Result<Value, String> {
    to_refusable(value).map_err(|it| it.at(name))
}

/// Converts a value that the host stores within a limit, below a number of levels: a result, a part of a patch or of a memo. Errors are as
/// for [`to_json`].
pub(super) fn to_kept(
    name: &str,
    value: &Dynamic,
    (room, around): (SizeLimit, usize),
) -> Result<Value, String> {
    let mut account = Account::new(room, 0, &CallDeadline).below(around);
    convert(value, 0, &mut account).map_err(|it| it.at(name))
}

/// Converts a value that is passed to the host into JSON; the error is why that is impossible.
pub(super) fn to_refusable(value: &Dynamic) -> Result<Value, Refused> {
    convert(value, 0, &mut account())
}

/// Returns the account that limits a value which is passed or shown.
pub(super) fn account() -> Account<'static> {
    Account::new(SizeLimit::Text(control::sizes().1), 0, &CallDeadline)
}

/// Returns the JSON of a value; `None` if it has none.
pub(super) fn json_of(value: &Dynamic) -> Option<Value> {
    to_refusable(value).ok()
}

/// The deadline of this thread's running call.
struct CallDeadline;

impl Deadline for CallDeadline {
    fn is_over(&self) -> bool {
        control::overdue().is_some()
    }
}

fn convert(value: &Dynamic, depth: usize, account: &mut Account<'_>) -> Result<Value, Refused> {
    if let Some(abort) = control::progress() {
        // The call ends at its next step, so the message hardly matters.
        return Err(Refused::because(errors::describe(abort)));
    }
    if let Ok(items) = value.as_array_ref() {
        account.enter(depth)?;
        account.take(3)?;
        account.take_items(items.len())?;
        let item = |(index, item)| {
            let item = convert(item, depth + 1, account);
            item.map_err(|it| it.under(format!("[{index}]")))
        };
        return items.iter().enumerate().map(item).collect();
    }
    if let Ok(fields) = value.as_map_ref() {
        account.enter(depth)?;
        account.take(3)?;
        account.take_items(fields.len())?;
        let field = |(key, field): (&rhai::Identifier, &Dynamic)| {
            account.take(measure::field(key))?;
            let value = convert(field, depth + 1, account);
            Ok((key.to_string(), value.map_err(|it| it.under(format!(".{key}")))?))
        };
        return fields.iter().map(field).collect::<Result<_, _>>().map(Value::Object);
    }
    if let Some(scalar) = scalar(value) {
        let scalar = scalar?;
        account.count(&scalar, depth)?;
        return Ok(scalar);
    }
    if let Some(view) = value.read_lock::<View>() {
        return view.copy(account, depth);
    }
    if let Some(copied) = handles::copy(value, account, depth) {
        return copied;
    }
    let Some(content) = value.read_lock::<ErrorValue>().map(|it| it.message.as_str().into()) else {
        let problem = if value.is_fnptr() {
            FUNCTION
        } else if value.is_blob() {
            BYTES
        } else {
            HOST_OBJECT
        };
        return Err(Refused::because(problem));
    };
    account.count(&content, depth)?;
    Ok(content)
}

/// Converts a scalar into JSON; `None` if the value is not a scalar.
fn scalar(value: &Dynamic) -> Option<Result<Value, Refused>> {
    if value.is_unit() {
        return Some(Ok(Value::Null));
    }
    if let Ok(it) = value.as_bool() {
        return Some(Ok(it.into()));
    }
    if let Ok(it) = value.as_int() {
        return Some(Ok(it.into()));
    }
    if let Ok(it) = value.as_float() {
        let number = serde_json::Number::from_f64(it).map(Value::Number);
        return Some(number.ok_or_else(|| Refused::because(NOT_FINITE)));
    }
    if let Ok(it) = value.as_immutable_string_ref() {
        return Some(Ok(it.as_str().into()));
    }
    value.as_char().ok().map(|it| Ok(it.to_string().into()))
}

/// Returns a value as a string, as `print` shows it: strings unchanged, data as compact JSON.
pub(super) fn text(value: &Dynamic) -> String {
    if value.is_unit() {
        return String::new();
    }
    if let Ok(it) = value.as_immutable_string_ref() {
        return it.to_string();
    }
    if !(value.is_array() || value.is_map()) {
        return match json_of(value) {
            Some(json @ (Value::Array(_) | Value::Object(_))) => shown(&json),
            Some(_) => value.to_string(),
            None => name_of(value),
        };
    }
    json_of(value).map_or_else(
        || {
            let mut text = String::new();
            sketch(value, 0, &mut text);
            text
        },
        |it| shown(&it),
    )
}

/// Returns the text of a value that is not data. For functions, Rhai's own formatting is not used: it follows captured values, endlessly if
/// they are cyclic.
fn name_of(value: &Dynamic) -> String {
    match value.read_lock::<FnPtr>() {
        Some(function) => format!("Fn({})", function.fn_name()),
        None if value.is_array() || value.is_map() || value.is_blob() => value.type_name().into(),
        None => value.to_string(),
    }
}

/// Appends the text of a value, as far as it can be shown: lists and maps are not data if they contain functions or are too deep.
fn sketch(value: &Dynamic, depth: usize, text: &mut String) {
    if depth > DEPTH_MAX || text.len() > SKETCH_BYTES_MAX {
        text.push('…');
    } else if let Ok(items) = value.as_array_ref() {
        text.push('[');
        for (index, item) in items.iter().enumerate() {
            text.push_str(if index == 0 { "" } else { "," });
            sketch(item, depth + 1, text);
        }
        text.push(']');
    } else if let Ok(fields) = value.as_map_ref() {
        text.push('{');
        for (index, (key, field)) in fields.iter().enumerate() {
            text.push_str(if index == 0 { "" } else { "," });
            text.push_str(&Value::from(key.as_str()).to_string());
            text.push(':');
            sketch(field, depth + 1, text);
        }
        text.push('}');
    } else {
        let json = json_of(value).map(|it| it.to_string());
        text.push_str(&json.unwrap_or_else(|| name_of(value)));
    }
}

/// Returns whether two values are the same data; for assignments that Rhai makes by itself.
pub(super) fn same(a: &Dynamic, b: &Dynamic) -> bool {
    match (json_of(a), json_of(b)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => a.type_id() == b.type_id(),
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// Registers `to_json` and `parse_json`, which are strict, and bounded in depth and memory. Makes lists and maps print as compact JSON, as
/// views do.
pub(super) fn register(engine: &mut Engine) {
    FuncRegistration::new("to_json")
        .with_purity(true)
        .register_into_engine(engine, |map: &mut Map| write_json(&Dynamic::from_map(map.clone())));
    FuncRegistration::new("to_json")
        .with_purity(true)
        .register_into_engine(engine, |list: &mut Array| {
            write_json(&Dynamic::from_array(list.clone()))
        });
    engine.register_fn("parse_json", read_json);
    for name in ["to_string", "print", "debug", "to_debug"] {
        engine
            .register_fn(name, |it: Array| text(&Dynamic::from_array(it)))
            .register_fn(name, |it: Map| text(&Dynamic::from_map(it)));
    }
}

fn write_json(value: &Dynamic) -> Fallible<String> {
    to_json("to_json", value).map(|it| it.to_string()).map_err(problem)
}

fn read_json(text: &str) -> Fallible<Dynamic> {
    let is_mark = |it: &u8| matches!(it, b',' | b':' | b'[' | b'{');
    let items = text.bytes().filter(|it| is_mark(it)).count() + 1;
    control::reserve(items.saturating_mul(BYTES_PER_ITEM).saturating_add(text.len()))?;
    let value: Value =
        serde_json::from_str(text).map_err(|error| problem(format!("parse_json: {error}")))?;
    Ok(plain(&value))
}
