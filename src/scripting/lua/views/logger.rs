//! `ctx.logger`: log lines about the handled object.

use mlua::{
    Lua, MetaMethod, MultiValue, UserData, UserDataFields, UserDataMethods, Value as LuaValue,
};
use serde_json::{Map, Value};

use super::LuaPassed;
use crate::call::Logger;
use crate::logic::handlers::outcome::LogLevel;
use crate::scripting::{functions::names, lua::world::World, values::limits};

/// The logger of one call.
pub(super) struct LoggerView(pub(super) Logger);

impl LoggerView {
    fn log(&self, lua: &Lua, level: LogLevel, arguments: MultiValue) -> mlua::Result<()> {
        if !self.0.is_enabled(level) {
            return Ok(());
        }
        let (text, fields) = cut_line(lua, arguments)?;
        match fields {
            Some(fields) => self.0.with_fields(level, &text, &fields),
            None => self.0.log(level, &text),
        }
        Ok(())
    }
}

impl UserData for LoggerView {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, "logger");
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        for (name, level) in names::LOG_METHODS.into_iter().chain([("debug", LogLevel::Debug)]) {
            methods.add_method(name, move |lua, view, arguments| view.log(lua, level, arguments));
        }
        methods.add_method("exception", |lua, view, arguments| {
            let (text, fields) = cut_line(lua, arguments)?;
            let trace = limits::cut(lua.traceback(None, 1)?.to_string_lossy());
            view.0.exception(&text, trace.trim_end(), fields.as_ref());
            Ok(())
        });
    }
}

/// Returns the line, cut to the maximum length.
fn cut_line(lua: &Lua, arguments: MultiValue) -> mlua::Result<LoggedLine> {
    let (text, fields) = line(lua, arguments)?;
    Ok((limits::cut(text), fields))
}

/// A message, and structured fields.
type LoggedLine = (String, Option<Map<String, Value>>);

/// Returns the message, and the structured fields: a table after the arguments that the template formats.
fn line(lua: &Lua, mut arguments: MultiValue) -> mlua::Result<LoggedLine> {
    let world = World::of(lua)?;
    let template = arguments.pop_front().unwrap_or(LuaValue::Nil).to_string()?;
    let mut fields = None;
    if arguments.len() > places(&template)
        && let Some(last @ LuaValue::Table(_)) = arguments.back()
    {
        fields = names::log_fields(&LuaPassed { lua, world: &world, value: last });
        arguments.pop_back();
    }
    if arguments.is_empty() {
        // Without arguments, a percent sign stands for itself.
        return Ok((template, fields));
    }
    let Some(format) = world.format.get() else { return Ok((template, fields)) };
    arguments.push_front(LuaValue::String(lua.create_string(&template)?));
    format.call(arguments).map(|text| (text, fields))
}

/// Counts the arguments that a template formats.
fn places(template: &str) -> usize {
    /// Characters allowed between the percent sign and the letter.
    const MODIFIERS: &[char] =
        &['-', '+', ' ', '#', '.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'];
    let text = template.replace("%%", "");
    let after = text.split('%').skip(1).map(|it| it.trim_start_matches(MODIFIERS));
    after.filter(|it| it.starts_with(|letter| "cdiouxXeEfgGaAqs*".contains(letter))).count()
}
