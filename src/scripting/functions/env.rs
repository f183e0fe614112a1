//! `env`: variables of the process that are granted.

use serde_json::Value;

use super::Call;
use crate::logic::access::grants::Denied;
use crate::scripting::functions::types::{
    Body, Function, Library, Outcome, Type, optional, required,
};

pub(super) const LIBRARY: Library = Library {
    name: "env",
    doc: "Environment variables that are granted with `--allow-env`.",
    functions: &[
        Function {
            name: "get",
            doc: "Returns the value of a variable, or the default if it is not set.",
            parameters: &[
                required("name", Type::Name, "The name of the variable."),
                optional(
                    "default",
                    Type::Any,
                    "The result if the variable is not set; default: nil.",
                ),
            ],
            options: &[],
            returns: Type::Any,
            body: Body::Immediate(get),
        },
        Function {
            name: "all",
            doc: "Returns all granted variables that are set, by name.",
            parameters: &[],
            options: &[],
            returns: Type::Map,
            body: Body::Immediate(|call| Ok(all(call).into())),
        },
    ],
};

fn get(call: &Call) -> Outcome {
    let name = call.text("name");
    if !call.surroundings.access.allows_env(name) {
        return Err(Denied::env(name).to_string().into());
    }
    let value = call.surroundings.environment.get(name);
    Ok(value.map_or_else(|| call.value("default").clone(), |it| it.as_str().into()).into())
}

fn all(call: &Call) -> Value {
    let surroundings = &call.surroundings;
    let granted =
        surroundings.environment.iter().filter(|(name, _)| surroundings.access.allows_env(name));
    let granted = granted.map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    Value::Object(granted)
}
