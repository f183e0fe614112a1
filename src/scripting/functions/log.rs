//! `log`: lines of the operator's log, also where there is no `ctx.logger`. They are never posted as events.

use serde_json::Value;

use super::Call;
use crate::call::{Logger, LoggerKind};
use crate::logic::handlers::outcome::LogLevel;
use crate::scripting::{
    functions::{
        outcome::Outcome,
        types::{Function, Library, Parameter, Type, immediate, optional, required},
    },
    values::{limits, text},
};

const LINE: &[Parameter] = &[
    required("message", Type::Any, "A string, or data, which is logged as JSON."),
    optional("fields", Type::Map, "Structured fields of the line."),
];

const fn level(name: &'static str, doc: &'static str, body: fn(&Call) -> Outcome) -> Function {
    immediate(name, doc, LINE, Type::Nothing, body)
}

pub(super) const LIBRARY: Library = Library {
    name: "log",
    doc: "Writes to the operator's log, also outside of handlers. In a handler, the line names its object; use ctx.logger for lines that may be posted as events, too.",
    functions: &[
        level(
            "debug",
            "Logs a line that is visible with --verbose only. In Rhai, `log::dbg`.",
            |call| Ok(write(call, LogLevel::Debug)),
        ),
        level("dbg", "The same as `debug`, a reserved word in Rhai.", |call| {
            Ok(write(call, LogLevel::Debug))
        }),
        level("info", "Logs normal operation.", |call| Ok(write(call, LogLevel::Info))),
        level("warning", "Logs a possible problem.", |call| Ok(write(call, LogLevel::Warning))),
        level("error", "Logs a failure.", |call| Ok(write(call, LogLevel::Error))),
    ],
};

fn write(call: &Call, level: LogLevel) -> crate::scripting::functions::outcome::Datum {
    let logger = match &call.present {
        Some(present) if present.logger.object().is_some() => {
            present.logger().with_kind(LoggerKind::Local)
        }
        Some(present) => present.logger(),
        None => Logger::of_script(),
    };
    if logger.is_enabled(level) {
        let message = call.some_text("message").map(str::to_owned);
        let message = message.unwrap_or_else(|| text::shown(call.value("message")));
        let message = limits::cut(message);
        match call.map("fields") {
            Some(fields) => {
                let fields = limits::cut_fields(fields.clone());
                logger.with_fields(level, &message, &fields);
            }
            None => logger.log(level, &message),
        }
    }
    Value::Null.into()
}
