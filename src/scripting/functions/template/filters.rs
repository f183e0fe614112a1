//! The filters and tests of templates: those of the crate with bounded work, and ours.

use ::base64::{Engine as _, engine::general_purpose::STANDARD};
use minijinja::{
    Environment, Error, ErrorKind, State,
    value::{Kwargs, Value, ValueKind},
};
use serde_json::Value as Json;

use super::values::{self, joined, of_json, problem, written};
use crate::scripting::functions::{tree, yaml};
use crate::sorted::CollectSorted as _;

/// Filters of the crate that are kept. The others write without a limit.
const OF_CRATE: [&str; 42] = [
    "abs",
    "attr",
    "batch",
    "bool",
    "capitalize",
    "chain",
    "dictsort",
    "e",
    "escape",
    "first",
    "float",
    "groupby",
    "int",
    "items",
    "last",
    "lines",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "slice",
    "sort",
    "split",
    "sum",
    "title",
    "trim",
    "unique",
    "upper",
    "zip",
    "count",
    "d",
    "default",
    "length",
];
/// Our filters, some of which replace those of the crate.
const OURS: [&str; 24] = [
    "b64decode",
    "b64encode",
    "base64",
    "center",
    "dict2items",
    "from_json",
    "from_yaml",
    "indent",
    "join",
    "json",
    "quote",
    "string",
    "ternary",
    "to_json",
    "to_nice_json",
    "to_nice_yaml",
    "to_yaml",
    "tojson",
    "toyaml",
    "truncate",
    "urlencode",
    "wordcount",
    "yaml",
    "mandatory",
];
/// Filters of the crate that are removed.
const WITHOUT_BOUND: [&str; 2] = ["format", "pprint"];
/// All tests, which are those of the crate.
const TESTS: [&str; 38] = [
    "!=",
    "<",
    "<=",
    "==",
    ">",
    ">=",
    "boolean",
    "defined",
    "divisibleby",
    "endingwith",
    "eq",
    "equalto",
    "escaped",
    "even",
    "false",
    "filter",
    "float",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "int",
    "integer",
    "iterable",
    "le",
    "lessthan",
    "lower",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "safe",
    "sameas",
    "sequence",
    "startingwith",
    "string",
];
const MORE_TESTS: [&str; 5] = ["test", "true", "undefined", "upper", "none"];

/// More spaces than any template needs in front of its lines.
const SPACES_MAX: usize = 200;

/// Returns whether a filter exists.
pub(super) fn is_known(name: &str) -> bool {
    names().any(|it| it == name)
}

/// Returns the names of all filters.
pub(super) fn names<'n>() -> impl Iterator<Item = &'n str> {
    OF_CRATE.into_iter().chain(OURS)
}

/// Returns the names of all tests.
pub(super) fn tests<'n>() -> impl Iterator<Item = &'n str> {
    TESTS.into_iter().chain(MORE_TESTS)
}

/// Adds our filters to an environment; they return strings of at most `size_max` bytes.
pub(super) fn add(environment: &mut Environment<'_>, size_max: usize) {
    for name in WITHOUT_BOUND {
        environment.remove_filter(name);
    }
    for name in ["default", "d"] {
        environment.add_filter(name, default);
    }
    for name in ["length", "count"] {
        environment.add_filter(name, length);
    }
    for name in ["json", "to_json", "tojson"] {
        environment.add_filter(name, to_json);
    }
    for name in ["yaml", "to_yaml", "toyaml", "to_nice_yaml"] {
        environment.add_filter(name, to_yaml);
    }
    for name in ["base64", "b64encode"] {
        environment.add_filter(name, |it: Value| Ok::<_, Error>(STANDARD.encode(written(&it)?)));
    }
    environment.add_filter("b64decode", b64decode);
    environment.add_filter("to_nice_json", |it: Value| {
        serde_json::to_string_pretty(&values::to_json(&it)?).map_err(|it| problem(it.to_string()))
    });
    environment.add_filter("from_json", |it: String| {
        tree::json(&it).map(|it| of_json(&it)).map_err(|it| problem(format!("from_json: {it}")))
    });
    environment.add_filter("from_yaml", |it: String| {
        yaml::read(&it).map(|it| of_json(&it)).map_err(|it| problem(format!("from_yaml: {it}")))
    });
    environment
        .add_filter("quote", |it: Value| Ok::<_, Error>(Json::from(written(&it)?).to_string()));
    environment.add_filter("string", |it: Value| written(&it));
    environment.add_filter("mandatory", mandatory);
    environment.add_filter(
        "ternary",
        |it: Value, yes: Value, no: Option<Value>| {
            if it.is_true() { yes } else { no.unwrap_or_default() }
        },
    );
    environment.add_filter("dict2items", dict2items);
    environment.add_filter("urlencode", |it: Value| {
        let text = written(&it)?;
        Ok::<_, Error>(
            percent_encoding::utf8_percent_encode(&text, percent_encoding::NON_ALPHANUMERIC)
                .to_string(),
        )
    });
    environment.add_filter("wordcount", |it: String| it.split_whitespace().count());
    environment.add_filter("truncate", truncate);
    environment.add_filter("center", center);
    environment.add_filter("join", move |it: Value, separator: Option<String>, options: Kwargs| {
        join(&it, separator.unwrap_or_default(), &options, size_max)
    });
    environment.add_filter(
        "indent",
        move |it: Value,
              width: Option<Value>,
              first: Option<bool>,
              blank: Option<bool>,
              options: Kwargs| {
            indent(&it, Indent(width, first, blank), &options, size_max)
        },
    );
}

/// Calls a method of Python that templates use, as a filter.
pub(super) fn method(
    state: &mut State<'_, '_>,
    value: &Value,
    name: &str,
    arguments: &[Value],
) -> Result<Value, Error> {
    let filter = match (value.kind(), name) {
        (ValueKind::Map, "items") => "items",
        (ValueKind::Map, "keys") => "list",
        (ValueKind::Map, "values") => {
            let field = |key: Value| value.get_item(&key);
            return value.try_iter()?.map(field).collect::<Result<Vec<_>, _>>().map(Value::from);
        }
        (ValueKind::Map, "get") => {
            let [key, rest @ ..] = arguments else {
                return Err(problem("get: expected the name of a field"));
            };
            let found = value.get_item(key)?;
            let other = || rest.first().cloned().unwrap_or_else(|| Value::from(()));
            return Ok(if found.is_undefined() { other() } else { found });
        }
        (ValueKind::String, "upper" | "lower" | "title" | "capitalize" | "replace" | "split") => {
            name
        }
        (ValueKind::String, "strip") => "trim",
        (ValueKind::String, "startswith" | "endswith") => {
            let test = if name == "startswith" { "startingwith" } else { "endingwith" };
            let mut all = vec![value.clone()];
            all.extend_from_slice(arguments);
            return state.perform_test(test, &all).map(Value::from);
        }
        _unknown => return Err(Error::from(ErrorKind::UnknownMethod)),
    };
    let mut all = vec![value.clone()];
    all.extend_from_slice(arguments);
    state.apply_filter(filter, &all)
}

/// The arguments of `indent`: width, first, blank.
struct Indent(Option<Value>, Option<bool>, Option<bool>);

/// Returns the other value if there is none; with `true`, also if it is empty or false.
fn default(value: Value, other: Option<Value>, is_lax: Option<bool>) -> Value {
    let is_there = if is_lax.unwrap_or_default() {
        value.is_true()
    } else {
        !value.is_undefined() && !value.is_none()
    };
    if is_there { value } else { other.unwrap_or_else(|| Value::from("")) }
}

fn mandatory(value: Value, message: Option<String>) -> Result<Value, Error> {
    if value.is_undefined() || value.is_none() {
        return Err(problem(message.unwrap_or_else(|| "mandatory: the value is missing".into())));
    }
    Ok(value)
}

fn length(value: Value) -> Result<usize, Error> {
    match value.kind() {
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => {
            Ok(value.len().map_or_else(|| value.try_iter().map(Iterator::count), Ok)?)
        }
        _text => Ok(written(&value)?.chars().count()),
    }
}

fn to_json(value: Value, indent: Option<usize>, _options: Kwargs) -> Result<String, Error> {
    let json = values::to_json(&value)?;
    match indent {
        Some(_) => serde_json::to_string_pretty(&json).map_err(|it| problem(it.to_string())),
        None => Ok(json.to_string()),
    }
}

fn to_yaml(value: Value, _options: Kwargs) -> Result<String, Error> {
    let text = yaml::write(&values::to_json(&value)?).map_err(problem)?;
    Ok(text.trim_end().to_owned())
}

fn b64decode(text: String) -> Result<String, Error> {
    let bytes = STANDARD.decode(text.trim()).map_err(|it| problem(format!("b64decode: {it}")))?;
    String::from_utf8(bytes).map_err(|_bytes| problem("b64decode: the bytes are not UTF-8"))
}

fn dict2items(value: Value) -> Result<Vec<Value>, Error> {
    if value.kind() != ValueKind::Map {
        return Err(problem(format!("dict2items: expected a map, got {}", values::shown(&value))));
    }
    let pair = |key: Value| {
        let item = value.get_item(&key)?;
        Ok(Value::from([("key", key), ("value", item)].into_iter().collect_map()))
    };
    value.try_iter()?.map(pair).collect()
}

fn truncate(value: Value, length: Option<usize>, _options: Kwargs) -> Result<String, Error> {
    /// The default length, as in Jinja.
    const LENGTH: usize = 255;
    let (text, length) = (written(&value)?, length.unwrap_or(LENGTH));
    if text.chars().count() <= length {
        return Ok(text);
    }
    Ok(text.chars().take(length.saturating_sub(3)).collect::<String>() + "...")
}

fn center(value: Value, width: Option<usize>) -> Result<String, Error> {
    /// The default width, as in Jinja.
    const WIDTH: usize = 80;
    let (text, width) = (written(&value)?, width.unwrap_or(WIDTH));
    if width > SPACES_MAX {
        return Err(problem(format!("center: expected at most {SPACES_MAX}, got {width}")));
    }
    Ok(format!("{text:^width$}"))
}

fn join(
    value: &Value,
    separator: String,
    options: &Kwargs,
    size_max: usize,
) -> Result<String, Error> {
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Err(problem("join: expected a list"));
    }
    let attribute: Option<Value> = options.get("attribute")?;
    options.assert_all_used()?;
    let part = |item: Value| match &attribute {
        Some(attribute) => written(&item.get_item(attribute)?),
        None => written(&item),
    };
    joined(value.try_iter()?.map(part), &separator, size_max)
}

/// Indents all lines but the first, which the template itself indents, unless `first` is true.
fn indent(
    value: &Value,
    flags: Indent,
    options: &Kwargs,
    size_max: usize,
) -> Result<String, Error> {
    /// The default width, as in Jinja.
    const WIDTH: usize = 4;
    let Indent(width, first, blank) = flags;
    let width = match width {
        Some(it) => Some(it),
        None => options.get("width")?,
    };
    let count = match width {
        Some(it) => {
            it.as_usize().ok_or_else(|| problem("indent: expected a number in parentheses"))?
        }
        None => WIDTH,
    };
    if count > SPACES_MAX {
        return Err(problem(format!("indent: at most {SPACES_MAX}")));
    }
    let is_first = first.map_or_else(|| options.get::<Option<bool>>("first"), |it| Ok(Some(it)))?;
    let is_blank = blank.map_or_else(|| options.get::<Option<bool>>("blank"), |it| Ok(Some(it)))?;
    options.assert_all_used()?;
    let (text, spaces) = (written(value)?, " ".repeat(count));
    let line = |(place, line): (usize, &str)| {
        let is_indented = (place > 0 || is_first.unwrap_or_default())
            && (is_blank.unwrap_or(true) || !line.is_empty());
        Ok(if is_indented { format!("{spaces}{line}") } else { line.to_owned() })
    };
    joined(text.split('\n').enumerate().map(line), "\n", size_max)
}
