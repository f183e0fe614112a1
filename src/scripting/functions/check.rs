//! `check`: the assertions of tests.

use serde_json::Value;

use super::{Call, bounds::equal};
use crate::scripting::{
    functions::{
        outcome::Outcome,
        types::{Library, Parameter, Type, immediate, optional},
    },
    values::text::shown,
};

const WHAT: Parameter = optional("what", Type::Text, "A description, for the error message.");

pub(super) const LIBRARY: Library = Library {
    name: "check",
    doc: "Assertions, for tests and handlers. A failed assertion raises an error with the difference and the line. See `kopf.test`.",
    functions: &[
        immediate(
            "equal",
            "Asserts that two values have the same content: `check.equal(note.data.text, \"hello\")`.",
            &[
                optional("actual", Type::Any, "The actual value."),
                optional("expected", Type::Any, "The expected value."),
                WHAT,
            ],
            Type::Nothing,
            |call| {
                let (actual, expected) = (call.value("actual"), call.value("expected"));
                verdict(call, equal(actual, expected), || {
                    format!("expected {}, got {}", written(expected), written(actual))
                })
            },
        ),
        immediate(
            "that",
            "Asserts that a value is true, or at least present: `check.that(note.metadata.labels.seen, \"it is labelled\")`.",
            &[
                optional("value", Type::Any, "The value, which must be neither false nor nil."),
                WHAT,
            ],
            Type::Nothing,
            |call| {
                let value = call.value("value");
                let holds = !matches!(value, Value::Null | Value::Bool(false));
                verdict(call, holds, || {
                    format!("expected a value other than false and nil, got {}", written(value))
                })
            },
        ),
    ],
};

fn verdict(call: &Call, holds: bool, problem: impl FnOnce() -> String) -> Outcome {
    if holds {
        return Ok(Value::Null.into());
    }
    let what = call.some_text("what").map(|it| format!("{it}: ")).unwrap_or_default();
    Err(format!("{what}{}", problem()).into())
}

fn written(value: &Value) -> String {
    if value.is_null() { "nothing".into() } else { shown(value) }
}
