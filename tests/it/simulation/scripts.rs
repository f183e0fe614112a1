//! The handlers of the simulation as scripts. They report their calls in the log, which is read by the history.

use kopf::{scripting::Source, testing::LogLine};

use super::history::{Call, Ending, History};

const LUA: &str = include_str!("handlers.lua");
const RHAI: &str = include_str!("handlers.rhai");

/// A language of scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Lua,
    Rhai,
}

/// Returns the script, in this version.
pub(super) fn source(language: Language, code: u64) -> Source {
    let (name, text) = match language {
        Language::Lua => ("handlers.lua", LUA),
        Language::Rhai => ("handlers.rhai", RHAI),
    };
    Source::alone(name, text.replace("CODE", &code.to_string()))
}

/// Processes a log line, if it reports a call: `SIM begin ID UID X RETRY`, `SIM done ID UID`, `SIM later ID UID`, `SIM rejected ID
/// UID` if a child could not be created.
pub(super) fn hear(history: &History, process: u64, line: &LogLine) {
    let Some(report) = line.message.strip_prefix("SIM ") else { return };
    match *report.split(' ').collect::<Vec<_>>() {
        ["begin", id, uid, x, retry] => {
            let number = |text: &str| text.parse().expect("a number");
            history.begin(Call::new(process, id, (uid, number(x)), number(retry)));
        }
        ["done", id, uid] => history.end_latest(process, id, uid, Ending::Done),
        ["rejected", id, uid] => {
            history.reject(uid.split('.').next().unwrap_or_default(), &[id]);
            history.end_latest(process, id, uid, Ending::Later);
        }
        ["later", id, uid] => history.end_latest(process, id, uid, Ending::Later),
        _ => history.complain(format!("not understood: {report}")),
    }
}
