//! `lists`: functions for lists. Those that take functions are written in the languages, in `stdlib/lists.*`.

use serde_json::{Map, Value};

use super::{
    Call,
    bounds::{ITEMS_MAX, equal},
    pace,
};
use crate::scripting::{
    functions::{
        outcome::{Failure, Outcome},
        types::{Body, Function, Library, Parameter, Type, immediate, optional, required, script},
    },
    values::{limits, text},
};

const LIST: Parameter = required("list", Type::List, "The list; it is not changed.");
const TEST: Parameter =
    required("test", Type::Function, "Called with an item, returns true or false.");
const KEY: Parameter =
    required("key", Type::Function, "Called with an item, returns the value to compare.");
const KEY_AS_TEXT: Parameter = required(
    "key",
    Type::Function,
    "Called with an item, returns a string, a number, true or false.",
);

pub(super) const LIBRARY: Library = Library {
    name: "lists",
    doc: "Functions for lists. They do not change their arguments, but return new values.",
    functions: FUNCTIONS,
};

const FUNCTIONS: &[Function] = &[
    script(
        "map",
        "Calls a function for each item and returns the list of results: `lists.map(pods, function(p) return p.metadata.name end)`.",
        &[LIST, required("change", Type::Function, "Called with an item, returns another value.")],
        Type::List,
    ),
    script(
        "filter",
        "Returns the items for which a function returns true.",
        &[LIST, TEST],
        Type::List,
    ),
    script(
        "partition",
        "Returns two lists: the items for which a function returns true, and the others.",
        &[LIST, TEST],
        Type::List,
    ),
    script(
        "flat_map",
        "Calls a function that returns a list for each item, and concatenates the lists.",
        &[LIST, required("change", Type::Function, "Called with an item, returns a list.")],
        Type::List,
    ),
    script(
        "find",
        "Returns the first item for which a function returns true; nil if there is none.",
        &[LIST, TEST],
        Type::Any,
    ),
    script(
        "any",
        "Returns whether a function returns true for at least one item.",
        &[LIST, TEST],
        Type::Boolean,
    ),
    script(
        "all",
        "Returns whether a function returns true for every item.",
        &[LIST, TEST],
        Type::Boolean,
    ),
    script(
        "count",
        "Returns the number of items for which a function returns true.",
        &[LIST, TEST],
        Type::Integer,
    ),
    script(
        "reduce",
        "Combines all items into one value: `lists.reduce({1, 2, 3}, 0, function(sum, n) return sum + n end)` is 6.",
        &[
            LIST,
            required(
                "initial",
                Type::Any,
                "The initial value, which is also the result for an empty list.",
            ),
            required(
                "combine",
                Type::Function,
                "Called with the value so far and an item, returns the next value.",
            ),
        ],
        Type::Any,
    ),
    script(
        "group_by",
        "Groups the items: returns a map from keys to lists of items.",
        &[LIST, KEY_AS_TEXT],
        Type::Map,
    ),
    script(
        "index_by",
        "Returns a map from keys to items; of several items with the same key, the last one.",
        &[LIST, KEY_AS_TEXT],
        Type::Map,
    ),
    script(
        "sort_by",
        "Sorts the items by their keys, which must be all numbers or all strings. Items with the same key keep their order.",
        &[LIST, KEY],
        Type::List,
    ),
    script(
        "min_by",
        "Returns the first item with the smallest key; nil for an empty list.",
        &[LIST, KEY],
        Type::Any,
    ),
    script(
        "max_by",
        "Returns the first item with the largest key; nil for an empty list.",
        &[LIST, KEY],
        Type::Any,
    ),
    immediate(
        "sort",
        "Sorts the items, which must be all numbers or all strings.",
        &[LIST],
        Type::List,
        sort,
    ),
    immediate("reverse", "Returns the items in reverse order.", &[LIST], Type::List, |call| {
        Ok(call.list("list").iter().rev().cloned().collect::<Value>().into())
    }),
    immediate("unique", "Returns the items without duplicates.", &[LIST], Type::List, |call| {
        Ok(unique(call)?.into())
    }),
    immediate(
        "flatten",
        "Replaces lists among the items by their items; lists nested in these are kept, unless `depth` is more than 1.",
        &[LIST, optional("depth", Type::Integer, "The number of levels to flatten; default: 1.")],
        Type::List,
        flatten,
    ),
    immediate(
        "zip",
        "Returns pairs of the items at the same positions of two lists, as many as the shorter list has.",
        &[LIST, required("other", Type::List, "The list of the second items.")],
        Type::List,
        |call| {
            let pairs = call.list("list").iter().zip(call.list("other"));
            Ok(pairs.map(|(a, b)| vec![a.clone(), b.clone()]).collect::<Value>().into())
        },
    ),
    immediate(
        "range",
        "Returns the integers from one number to another, both included: `lists.range(1, 3)` is 1, 2, 3.",
        &[
            required("from", Type::Integer, "The first number."),
            required("to", Type::Integer, "The last number, if the steps reach it."),
            optional("step", Type::Integer, "The difference between adjacent numbers; default: 1."),
        ],
        Type::List,
        range,
    ),
    immediate(
        "contains",
        "Returns whether a list contains a value.",
        &[LIST, required("value", Type::Any, "The value to find.")],
        Type::Boolean,
        |call| {
            let wanted = call.value("value");
            Ok(Value::from(call.list("list").iter().any(|it| equal(it, wanted))).into())
        },
    ),
    immediate(
        "concat",
        "Returns the items of one list, followed by those of another.",
        &[LIST, required("other", Type::List, "The second list.")],
        Type::List,
        |call| {
            let all = call.list("list").iter().chain(call.list("other"));
            Ok(all.cloned().collect::<Value>().into())
        },
    ),
    immediate(
        "chunks",
        "Splits a list into lists of this length; the last one may be shorter.",
        &[LIST, required("size", Type::Integer, "The number of items of one list, at least 1.")],
        Type::List,
        |call| {
            let size = call.count("size", 1)?;
            if size == 0 {
                return Err("`size`: expected a number of at least 1, got 0".into());
            }
            Ok(call.list("list").chunks(size).map(<[Value]>::to_vec).collect::<Value>().into())
        },
    ),
    immediate(
        "take",
        "Returns the first items.",
        &[LIST, required("count", Type::Integer, "The maximum number of items.")],
        Type::List,
        |call| {
            let count = call.count("count", 0)?;
            Ok(call.list("list").iter().take(count).cloned().collect::<Value>().into())
        },
    ),
    immediate(
        "drop",
        "Returns the items without the first ones.",
        &[LIST, required("count", Type::Integer, "The number of items to omit.")],
        Type::List,
        |call| {
            let count = call.count("count", 0)?;
            Ok(call.list("list").iter().skip(count).cloned().collect::<Value>().into())
        },
    ),
    immediate(
        "sum",
        "Returns the sum of numbers; 0 for an empty list.",
        &[LIST],
        Type::Number,
        sum,
    ),
    Function {
        name: "difference",
        doc: "Returns the items that are not in another list.",
        parameters: &[LIST, required("other", Type::List, "The items to omit.")],
        options: &[],
        returns: Type::List,
        body: Body::Immediate(|call| Ok(difference(call)?.into())),
    },
];

fn sort(call: &Call) -> Outcome {
    let mut items = call.list("list").to_vec();
    if items.iter().all(Value::is_string) {
        items.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    } else if items.iter().all(Value::is_number) {
        items.sort_by(compare_numbers);
    } else {
        return Err("`list`: expected numbers only, or strings only".into());
    }
    Ok(Value::Array(items).into())
}

/// Compares numbers, exactly for integers; numbers of JSON are finite.
fn compare_numbers(a: &Value, b: &Value) -> std::cmp::Ordering {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(std::cmp::Ordering::Equal),
    }
}

/// Returns a string that only equal values share: the JSON with sorted keys, and numbers by their value.
fn identity(value: &Value) -> String {
    text::of_patch(&canonical(value))
}

fn canonical(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.as_i64().is_none() => {
            crate::scripting::functions::outcome::plain_number(number.as_f64().unwrap_or_default())
        }
        Value::Array(items) => items.iter().map(canonical).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, it)| (key.clone(), canonical(it)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn unique(call: &Call) -> Result<Value, Failure> {
    let (mut seen, mut unique) = (std::collections::BTreeSet::new(), Vec::new());
    for (place, item) in call.list("list").iter().enumerate() {
        pace::short_step(place)?;
        if seen.insert(identity(item)) {
            unique.push(item.clone());
        }
    }
    Ok(Value::Array(unique))
}

fn difference(call: &Call) -> Result<Value, Failure> {
    let (mut others, mut left) = (std::collections::BTreeSet::new(), Vec::new());
    for (place, item) in call.list("other").iter().enumerate() {
        pace::short_step(place)?;
        others.insert(identity(item));
    }
    for (place, item) in call.list("list").iter().enumerate() {
        pace::short_step(place)?;
        if !others.contains(&identity(item)) {
            left.push(item.clone());
        }
    }
    Ok(Value::Array(left))
}

fn flatten(call: &Call) -> Outcome {
    fn add(items: &[Value], depth: usize, flat: &mut Vec<Value>) {
        for item in items {
            match item {
                Value::Array(inner) if depth > 0 => add(inner, depth - 1, flat),
                Value::Array(_)
                | Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Object(_) => flat.push(item.clone()),
            }
        }
    }
    let mut flat = Vec::new();
    add(call.list("list"), call.count("depth", 1)?, &mut flat);
    Ok(Value::Array(flat).into())
}

fn range(call: &Call) -> Outcome {
    let (from, to) = (call.integer("from").unwrap_or(0), call.integer("to").unwrap_or(0));
    let step = call.integer("step").unwrap_or(1);
    if step == 0 {
        return Err("`step`: expected a number other than 0, got 0".into());
    }
    let mut numbers = Vec::new();
    let mut next = Some(from);
    while let Some(number) = next.filter(|it| if step > 0 { *it <= to } else { *it >= to }) {
        if numbers.len() >= ITEMS_MAX {
            return Err(limits::too_many_items("the result", ITEMS_MAX).into());
        }
        if numbers.len() % 1024 == 0 {
            pace::step()?;
        }
        numbers.push(Value::from(number));
        next = number.checked_add(step);
    }
    Ok(Value::Array(numbers).into())
}

fn sum(call: &Call) -> Outcome {
    let items = call.list("list");
    let wrong = items.iter().find(|it| !it.is_number());
    if let Some(wrong) = wrong {
        let message = format!("`list`: expected numbers only, got {}", text::shown(wrong));
        return Err(Failure::Plain(message));
    }
    let whole = items.iter().try_fold(0_i64, |sum, it| sum.checked_add(it.as_i64()?));
    match whole {
        Some(sum) => Ok(Value::from(sum).into()),
        None => Ok(Value::from(items.iter().filter_map(Value::as_f64).sum::<f64>()).into()),
    }
}
