//! The handlers of these worlds as scripts. They report their calls in the log.

use kopf::{scripting::Source, testing::LogLine};

use super::{super::scripts::Language, Levels};

const LUA: &str = include_str!("handlers.lua");
const RHAI: &str = include_str!("handlers.rhai");

/// Returns the script, in this version.
pub(in super::super) fn source(language: Language, code: u64) -> Source {
    let (name, text) = match language {
        Language::Lua => ("handlers.lua", LUA),
        Language::Rhai => ("handlers.rhai", RHAI),
    };
    Source::alone(name, text.replace("CODE", &code.to_string()))
}

/// Processes a log line, if it reports a call: `SIM begin FUNCTION UID`, `SIM end FUNCTION UID`, `SIM slot ID SLOT`.
pub(in super::super) fn hear(levels: &Levels, process: u64, line: &LogLine) {
    let Some(report) = line.message.strip_prefix("SIM ") else { return };
    match *report.split(' ').collect::<Vec<_>>() {
        ["begin", what, uid] => {
            // A call that is cancelled does not report its end.
            levels.end_all(process, uid);
            levels.begin(process, what, uid);
        }
        ["end", "finalize", uid] => {
            levels.end_all(process, uid);
            levels.finalized(uid);
        }
        ["end" | "later", _, uid] => levels.end_all(process, uid),
        ["slot", id, slot] => levels.slot(process, id, slot),
        _ => levels.history.complain(format!("not understood: {report}")),
    }
}
