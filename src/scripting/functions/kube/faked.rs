//! Jobs in a test: the embedded API server runs no containers, so a function of the test decides how a Job ends and what it logs.

use serde_json::{Map, Value, json};

use super::client::ObjectAddress;
use crate::call::{Faked, Fakes};
use crate::scripting::{
    functions::{
        Call,
        outcome::{Failure, integer},
    },
    values::text::{did_you_mean, shown},
};

/// The annotation with the exit code that the simulated kubelet uses.
const EXIT_CODE: &str = "dev.kopf/exit-code";
const FIELDS: [&str; 2] = ["code", "log"];

/// Calls the fakes for a Job that is about to be created, and prepares it for their response.
pub(super) async fn begin(
    call: &Call,
    job: &ObjectAddress,
    object: &mut Value,
) -> Result<(), Failure> {
    let Some(fakes) = &call.surroundings.fakes else { return Ok(()) };
    let answer = fakes.respond(Faked::Run, "", described(call, job)).await?;
    let Some(answer) = answer else { return Ok(()) };
    let (code, log) = read(&answer.value).map_err(|problem| fakes.reject(&answer, &problem))?;
    if let Some(template) = object.pointer_mut("/spec/template").and_then(Value::as_object_mut) {
        let annotations = json!({ EXIT_CODE: code.to_string() });
        template.insert("metadata".into(), json!({ "annotations": annotations }));
    }
    fakes.keep_log(job.shown(), log);
    Ok(())
}

/// Replaces the log of the simulated kubelet by that of the fake.
pub(super) fn reveal(call: &Call, job: &ObjectAddress, result: &mut Value) {
    let log = call.surroundings.fakes.as_ref().and_then(|it: &Fakes| it.log(&job.shown()));
    if let (Some(log), Some(fields)) = (log, result.as_object_mut()) {
        fields.insert("log".into(), log.into());
    }
}

fn described(call: &Call, job: &ObjectAddress) -> Value {
    let mut fields = Map::new();
    for name in ["image", "command", "env", "files", "service_account"] {
        if call.has(name) {
            fields.insert(name.into(), call.value(name).clone());
        }
    }
    fields.insert("name".into(), job.name.clone().into());
    fields.insert("namespace".into(), job.namespace.clone().into());
    fields.into()
}

/// Returns the exit code and the log.
fn read(answer: &Value) -> Result<(u8, String), String> {
    let fields = match answer {
        Value::String(log) => return Ok((0, log.clone())),
        Value::Object(fields) => fields,
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
            return Err(format!("expected a map, a string or nil, got {}", shown(other)));
        }
    };
    if let Some(name) = fields.keys().find(|it| !FIELDS.contains(&it.as_str())) {
        let near = did_you_mean(name, FIELDS.into_iter(), "");
        return Err(format!("there is no field `{name}`{near}"));
    }
    let code = match fields.get("code") {
        None | Some(Value::Null) => 0,
        Some(it) => integer(it)
            .and_then(|it| u8::try_from(it).ok())
            .ok_or_else(|| format!("`code`: expected a number from 0 to 255, got {}", shown(it)))?,
    };
    match fields.get("log") {
        None | Some(Value::Null) => Ok((code, String::new())),
        Some(Value::String(log)) => Ok((code, log.clone())),
        Some(other) => Err(format!("`log`: expected a string, got {}", shown(other))),
    }
}
