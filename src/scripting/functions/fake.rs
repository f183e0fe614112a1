//! `fake`: functions of a test that respond in place of servers, containers and Jobs.
//!
//! `call/fakes.rs` stores what is declared. `http/faked.rs` and `kube/run.rs` call it; `cli/test/commands.rs` responds to commands,
//! at the border of the embedded API server.

use std::sync::Arc;

use serde_json::Value;

use super::{Call, Surroundings};
use crate::call::{Faked, Invocation};
use crate::logic::handlers::function::Function as ScriptFunction;
use crate::scripting::{
    functions::{
        outcome::{Failure, Outcome},
        types::{Body, Function, Library, Parameter, Type, immediate, required},
    },
    values::text::did_you_mean,
};

const RESPOND: Parameter = required(
    "respond",
    Type::Function,
    "Called with the call as a map. Returns the response, or nil to leave the call to other fakes.",
);

pub(super) const LIBRARY: Library = Library {
    name: "fake",
    doc: "Fakes of servers, commands and Jobs for tests: each function registers a function that is called with the request of the operator and returns the response. It may wait and call `check`: an error in it fails the test. The latest fake is called first; one that returns nil leaves the call to the others. For `kopf test` only.",
    functions: &[
        Function {
            name: "http",
            doc: "Responds to `http` requests: `fake.http(\"https://api.example.com/*\", function(request) return {json = {id = 1}} end)`. The function receives `{method, url, query, headers, body, json, form, files, auth}`, with lowercase header names, and `body_base64` if the body is not UTF-8. It returns a body, or `{status, headers, body, json, body_base64}` with status 200 as the default, or `{error, message}` if there is no response: Unreachable, Untrusted or Timeout. Grants are checked as always. A request without a response fails.",
            parameters: &[
                required(
                    "url",
                    Type::Name,
                    "The URL to respond to; `*` matches anything. Without a query, any query matches.",
                ),
                RESPOND,
            ],
            options: &[],
            returns: Type::Nothing,
            body: Body::Faking(Faked::Http),
        },
        Function {
            name: "exec",
            doc: "Responds to `kube.exec`, `kube.copy_to` and `kube.copy_from`. The function receives `{pod, namespace, container, command, stdin}`, and `stdin_base64` if the input is not UTF-8. It returns the standard output, or `{stdout, stderr, code}`. For copies, it receives `copy_to` with `data` or `data_base64`, or `copy_from`, instead of the command: these are paths; for `copy_from` it returns the content, or `{data}`, `{data_base64}` or `{code, stderr}`. The pod must exist, and the operator needs its permissions. Pods with annotations such as `dev.kopf/exec-stdout` respond with their values.",
            parameters: &[RESPOND],
            options: &[],
            returns: Type::Nothing,
            body: Body::Faking(Faked::Exec),
        },
        Function {
            name: "run",
            doc: "Responds to `kube.run`. The function receives `{image, command, env, files, service_account, name, namespace}` when the Job is created, and returns its log, or `{log, code}`. The Job is created and ends with this code after a second.",
            parameters: &[RESPOND],
            options: &[],
            returns: Type::Nothing,
            body: Body::Faking(Faked::Run),
        },
        immediate(
            "calls",
            "Returns what the operator has sent so far, in order, with or without a response: `#fake.calls(\"http\")`. Each item is the argument that the function of the fake receives.",
            &[required("what", Type::Name, "One of \"http\", \"exec\" and \"run\".")],
            Type::List,
            calls,
        ),
    ],
};

/// Implements `fake.http`, `fake.exec` and `fake.run`; the engines pass the function of the script.
pub(crate) fn declare(
    what: Faked,
    url: &str,
    function: (ScriptFunction, String),
    (surroundings, present): (&Surroundings, Option<Arc<Invocation>>),
) -> Result<(), Failure> {
    let fakes = surroundings.fakes.as_ref().ok_or(ONLY_TESTS)?;
    let present = present.ok_or("call it inside a test, in the function of `kopf.test`")?;
    Ok(fakes.declare(what, url, function, present)?)
}

const ONLY_TESTS: &str = "fakes are only available in tests that `kopf test` runs";

/// Implements `fake.calls`: returns the recorded calls.
fn calls(call: &Call) -> Outcome {
    let fakes = call.surroundings.fakes.as_ref().ok_or(ONLY_TESTS)?;
    let given = call.text("what");
    let what = Faked::ALL.into_iter().find(|it| it.name() == given).ok_or_else(|| {
        let near = did_you_mean(given, Faked::ALL.into_iter().map(Faked::name), "");
        let given = Value::from(given);
        format!("`what`: expected \"http\", \"exec\" or \"run\", got {given}{near}")
    })?;
    Ok(Value::from(fakes.calls(what)).into())
}
