//! `lists`: what is done with lists. What takes functions is written in the languages, in `stdlib/lists.*`.

use serde_json::{Map, Value};

use super::{
    Body, Call, Failure, Function, Library, Outcome, Parameter, Type,
    bounds::{ITEMS_MAX, equal},
    immediate, optional, pace, required, script,
};
use crate::scripting::{limits, text};

const LIST: Parameter = required("list", Type::List, "The list; it stays as it is.");
const TEST: Parameter = required("test", Type::Function, "Gets an item, gives true or false.");
const KEY: Parameter = required("key", Type::Function, "Gets an item, gives what counts of it.");
const KEY_AS_TEXT: Parameter =
    required("key", Type::Function, "Gets an item, gives a text, a number, true or false.");

pub(super) const LIBRARY: Library = Library {
    name: "lists",
    doc: "What is done with lists. Nothing changes the list that is passed; what is returned is new.",
    functions: FUNCTIONS,
};

const FUNCTIONS: &[Function] = &[
    script(
        "map",
        "A list of what a function gives for each item: `lists.map(pods, function(p) return p.metadata.name end)`.",
        &[LIST, required("change", Type::Function, "Gets an item, gives another value.")],
        Type::List,
    ),
    script("filter", "The items for which a function gives true.", &[LIST, TEST], Type::List),
    script(
        "partition",
        "Two lists: the items for which a function gives true, and the others.",
        &[LIST, TEST],
        Type::List,
    ),
    script(
        "flat_map",
        "The items of all lists that a function gives, in one list.",
        &[LIST, required("change", Type::Function, "Gets an item, gives a list.")],
        Type::List,
    ),
    script(
        "find",
        "The first item for which a function gives true; nothing if there is none.",
        &[LIST, TEST],
        Type::Any,
    ),
    script("any", "Whether a function gives true for some item.", &[LIST, TEST], Type::Boolean),
    script("all", "Whether a function gives true for every item.", &[LIST, TEST], Type::Boolean),
    script("count", "For how many items a function gives true.", &[LIST, TEST], Type::Integer),
    script(
        "reduce",
        "One value made of all items: `lists.reduce({1, 2, 3}, 0, function(sum, n) return sum + n end)` is 6.",
        &[
            LIST,
            required("initial", Type::Any, "The value to begin with, and of an empty list."),
            required(
                "combine",
                Type::Function,
                "Gets the value so far and an item, gives the next value.",
            ),
        ],
        Type::Any,
    ),
    script("group_by", "A map of lists: the items by their keys.", &[LIST, KEY_AS_TEXT], Type::Map),
    script(
        "index_by",
        "A map of items by their keys; of items with the same key the last one.",
        &[LIST, KEY_AS_TEXT],
        Type::Map,
    ),
    script(
        "sort_by",
        "The items in the order of their keys, which are all numbers or all texts. Items with the same key keep their order.",
        &[LIST, KEY],
        Type::List,
    ),
    script(
        "min_by",
        "The first item with the smallest key; nothing of an empty list.",
        &[LIST, KEY],
        Type::Any,
    ),
    script(
        "max_by",
        "The first item with the largest key; nothing of an empty list.",
        &[LIST, KEY],
        Type::Any,
    ),
    immediate("sort", "The items in order: all numbers, or all texts.", &[LIST], Type::List, sort),
    immediate("reverse", "The items from the last to the first.", &[LIST], Type::List, |call| {
        Ok(call.list("list").iter().rev().cloned().collect::<Value>().into())
    }),
    immediate(
        "unique",
        "The items without those that are equal to an earlier one.",
        &[LIST],
        Type::List,
        |call| Ok(unique(call)?.into()),
    ),
    immediate(
        "flatten",
        "The items, with those of lists among them in their place; lists in these stay, unless `depth` is more than 1.",
        &[
            LIST,
            optional("depth", Type::Integer, "How many levels of lists are opened; 1 if left out."),
        ],
        Type::List,
        flatten,
    ),
    immediate(
        "zip",
        "Pairs of the items at the same places of two lists, as many as the shorter one has.",
        &[LIST, required("other", Type::List, "The list of the second items.")],
        Type::List,
        |call| {
            let pairs = call.list("list").iter().zip(call.list("other"));
            Ok(pairs.map(|(a, b)| vec![a.clone(), b.clone()]).collect::<Value>().into())
        },
    ),
    immediate(
        "range",
        "The whole numbers from one to another, both included: `lists.range(1, 3)` is 1, 2, 3.",
        &[
            required("from", Type::Integer, "The first number."),
            required("to", Type::Integer, "The last number, if the steps meet it."),
            optional("step", Type::Integer, "The difference of neighbours; 1 if left out."),
        ],
        Type::List,
        range,
    ),
    immediate(
        "contains",
        "Whether an item is equal to a value.",
        &[LIST, required("value", Type::Any, "What is looked for.")],
        Type::Boolean,
        |call| {
            let wanted = call.value("value");
            Ok(Value::from(call.list("list").iter().any(|it| equal(it, wanted))).into())
        },
    ),
    immediate(
        "concat",
        "The items of one list, and after them those of another.",
        &[LIST, required("other", Type::List, "The list of the last items.")],
        Type::List,
        |call| {
            let all = call.list("list").iter().chain(call.list("other"));
            Ok(all.cloned().collect::<Value>().into())
        },
    ),
    immediate(
        "chunks",
        "The items in lists of this length; the last one may be shorter.",
        &[LIST, required("size", Type::Integer, "Items of one list, at least 1.")],
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
        "The first items.",
        &[LIST, required("count", Type::Integer, "How many, at most.")],
        Type::List,
        |call| {
            let count = call.count("count", 0)?;
            Ok(call.list("list").iter().take(count).cloned().collect::<Value>().into())
        },
    ),
    immediate(
        "drop",
        "The items without the first ones.",
        &[LIST, required("count", Type::Integer, "How many are left out.")],
        Type::List,
        |call| {
            let count = call.count("count", 0)?;
            Ok(call.list("list").iter().skip(count).cloned().collect::<Value>().into())
        },
    ),
    immediate("sum", "The sum of numbers; 0 of an empty list.", &[LIST], Type::Number, sum),
    Function {
        name: "difference",
        doc: "The items that are not equal to one of another list.",
        parameters: &[LIST, required("other", Type::List, "What is left out.")],
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
        return Err("`list`: expected numbers only, or texts only".into());
    }
    Ok(Value::Array(items).into())
}

/// Exact for integers; numbers of JSON are finite.
fn compare_numbers(a: &Value, b: &Value) -> std::cmp::Ordering {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(std::cmp::Ordering::Equal),
    }
}

/// A text that equal values share, and no others: the JSON with sorted keys, and numbers by their value.
fn identity(value: &Value) -> String {
    text::of_patch(&canonical(value))
}

fn canonical(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.as_i64().is_none() => {
            super::plain_number(number.as_f64().unwrap_or_default())
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
        let told = format!("`list`: expected numbers only, got {}", text::shown(wrong));
        return Err(Failure::Plain(told));
    }
    let whole = items.iter().try_fold(0_i64, |sum, it| sum.checked_add(it.as_i64()?));
    match whole {
        Some(sum) => Ok(Value::from(sum).into()),
        None => Ok(Value::from(items.iter().filter_map(Value::as_f64).sum::<f64>()).into()),
    }
}
