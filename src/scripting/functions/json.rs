//! `json`: reads and writes JSON.

use serde_json::Value;

use super::{Call, tree};
use crate::scripting::functions::{
    outcome::Outcome,
    types::{Library, Type, immediate, optional, required},
};

pub(super) const LIBRARY: Library = Library {
    name: "json",
    doc: "Encodes and decodes JSON.",
    functions: &[
        immediate(
            "encode",
            "Encodes a value as JSON: `json.encode({a = 1})` is `{\"a\":1}`. An empty table of Lua is `{}`, `kopf.array{}` is `[]`.",
            &[required("value", Type::Any, "Any data.")],
            Type::Text,
            |call| Ok(encode(call).into()),
        )
        .with(&[optional(
            "pretty",
            Type::Boolean,
            "Use line breaks and an indent of two spaces; default: false.",
        )]),
        immediate(
            "decode",
            "Decodes JSON. In Lua, null becomes nil, and `kopf.null` in lists and maps.",
            &[required("text", Type::Text, "One JSON value, at most 128 levels deep.")],
            Type::Any,
            |call| Ok(tree::json(call.text("text"))?.into()),
        ),
        immediate(
            "encode_lines",
            "Encodes items as JSON lines: one item per line, with a line break after each.",
            &[required("list", Type::List, "The items.")],
            Type::Text,
            |call| {
                let lines = call.list("list").iter().map(|it| format!("{it}\n"));
                Ok(Value::from(lines.collect::<String>()).into())
            },
        ),
        immediate(
            "decode_lines",
            "Decodes JSON lines, such as a log of events; empty lines are ignored.",
            &[required("text", Type::Text, "One JSON value per line.")],
            Type::List,
            decode_lines,
        ),
    ],
};

fn encode(call: &Call) -> Value {
    let value = call.value("value");
    let text = if call.flag("pretty") { format!("{value:#}") } else { value.to_string() };
    text.into()
}

fn decode_lines(call: &Call) -> Outcome {
    let lines = (1..).zip(call.text("text").lines()).filter(|(_, it)| !it.trim().is_empty());
    let mut values = Vec::new();
    for (number, line) in lines {
        super::pace::step()?;
        super::bounds::room_for(values.len())?;
        values.push(tree::json(line).map_err(|it| format!("line {number}: {it}"))?);
    }
    Ok(Value::Array(values).into())
}
