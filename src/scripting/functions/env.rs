//! `env`: the granted environment variables of the process.

use serde_json::Value;

use super::Call;
use crate::call::Logger;
use crate::logic::access::grants::Denied;
use crate::logic::handlers::outcome::LogLevel;
use crate::scripting::functions::{
    outcome::Outcome,
    types::{Body, Function, Library, Type, optional, required},
};

pub(super) const LIBRARY: Library = Library {
    name: "env",
    doc: "Environment variables that are granted with `--allow-env`.",
    functions: &[
        Function {
            name: "get",
            doc: "Returns the value of a variable, or the default if it is not set. A variable that is not granted is an error without a default; with one, the default is returned and a warning names the option.",
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
        let denied = Denied::env(name).to_string();
        if !call.has("default") {
            return Err(denied.into());
        }
        if call.surroundings.notices.is_first(name) {
            let line = format!("env.get returns its default: {denied}");
            Logger::of_script().log(LogLevel::Warning, &line);
        }
        return Ok(call.value("default").clone().into());
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
