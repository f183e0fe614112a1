//! `ctx`: the kwargs of one call, created on first use.

use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    sync::Arc,
};

use kopf_json::shared::{Part, SharedJson};
use kopf_luau::push::Style;
use mlua::{
    Function as LuaFunction, Lua, MetaMethod, UserData, UserDataFields, UserDataMethods,
    Value as LuaValue,
};
use serde_json::{Map, Value};

use super::{Viewing, logger::LoggerView};
use crate::call::Invocation;
use crate::logic::object::Object;
use crate::scripting::{
    handles::ctx::{self, Kwarg},
    lua::world::World,
    values::text,
};

/// A part that is not cached: it equals itself whenever it is created, and thousands of daemons read no other part.
const STOPPED: &str = "stopped";

/// The argument of handlers.
pub(in crate::scripting::lua) struct CtxView {
    invocation: Arc<Invocation>,
    /// Cached parts, so that each read returns the same table. Few are read, so a list is the smallest container.
    made: RefCell<Vec<(Cow<'static, str>, LuaValue)>>,
    /// The version of the object that the cached parts of daemons and timers were created from.
    seen: Cell<u32>,
}

impl CtxView {
    /// Creates the argument of one call.
    pub(in crate::scripting::lua) fn new(invocation: Arc<Invocation>) -> Self {
        CtxView { invocation, made: RefCell::default(), seen: Cell::default() }
    }

    /// Returns the call it belongs to.
    pub(in crate::scripting::lua) fn invocation(&self) -> &Arc<Invocation> {
        &self.invocation
    }

    fn field(&self, lua: &Lua, name: &str) -> mlua::Result<LuaValue> {
        self.renew();
        if let Some((_, made)) = self.made.borrow().iter().find(|(it, _)| **it == *name) {
            return Ok(made.clone());
        }
        let value = self.make(lua, name)?;
        let is_kept = !value.is_nil() && name != STOPPED;
        if is_kept {
            let mut made = self.made.borrow_mut();
            // Exact growth: there may be many thousands of calls that have read one or two parts.
            made.reserve_exact(1);
            made.push((ctx::known(name), value.clone()));
        }
        Ok(value)
    }

    /// Drops the cached parts if the object has changed since.
    fn renew(&self) {
        let Some(background) = self.invocation.background() else { return };
        let latest = background.live.version();
        if self.seen.replace(latest) != latest {
            self.made.borrow_mut().retain(|(name, _)| !ctx::is_live(name));
        }
    }

    fn make(&self, lua: &Lua, name: &str) -> mlua::Result<LuaValue> {
        let world = World::of(lua)?;
        let frozen = |value: &Value| world.push(lua, value, Style::Frozen);
        match ctx::kwarg(&self.invocation, name, &world.border) {
            Kwarg::Absent => match ctx::unknown(&self.invocation, name) {
                Some(unknown) => Err(mlua::Error::runtime(unknown)),
                None => Ok(LuaValue::Nil),
            },
            Kwarg::Value(it) => frozen(&it),
            Kwarg::Part(json, keys) => world.pushed.table(&json, Some(keys), || {
                let bytes = || json.bytes();
                let part = world.push_part(lua, &json, |it| map_at(it, keys), bytes)?;
                part.map_or_else(|| frozen(&Value::Object(Map::new())), Ok)
            }),
            Kwarg::Tree(tree) => {
                let json = SharedJson::Tree(tree);
                world.pushed.table(&json, None, || {
                    let bytes = || json.bytes();
                    let tree = world.push_part(lua, &json, |it| Some(it.root()), bytes)?;
                    Ok(tree.unwrap_or(LuaValue::Nil))
                })
            }
            Kwarg::Logger(logger) => {
                lua.create_userdata(LoggerView(logger)).map(LuaValue::UserData)
            }
            Kwarg::Handle(handle) => handle.wrap(Viewing(lua)),
            Kwarg::Warn(warnings) => {
                // Called as a method, `ctx` comes first; so the last argument is the message.
                let warn = move |lua: &Lua, given: mlua::Variadic<LuaValue>| {
                    let text = given.last().cloned().unwrap_or(LuaValue::Nil);
                    let text = World::of(lua)?.read_as("ctx.warn", &text)?;
                    let text = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
                    warnings.add(&text).map_err(mlua::Error::runtime)
                };
                lua.create_function(warn).map(LuaValue::Function)
            }
        }
    }

    /// Returns the iterator over the parts that exist in this call, for `pairs`.
    pub(super) fn iterate(&self, lua: &Lua) -> mlua::Result<(LuaFunction, LuaValue)> {
        let fields = lua.create_table()?;
        for name in ctx::names() {
            fields.raw_set(name, self.field(lua, name)?)?;
        }
        for index in self.invocation.services.indexes.all().filter(|it| !it.is_hidden()) {
            fields.raw_set(&**index.id(), self.field(lua, index.id())?)?;
        }
        Ok((lua.globals().get("next")?, LuaValue::Table(fields)))
    }

    /// Returns the object of the call.
    pub(super) fn object(&self) -> Option<Arc<Object>> {
        self.invocation.object()
    }
}

/// Returns the map under these keys.
fn map_at<'a>(json: &'a SharedJson, keys: &[&str]) -> Option<Part<'a>> {
    let part = keys.iter().try_fold(json.root(), |part, key| part.field(key));
    part.filter(|it| it.is_map())
}

impl UserData for CtxView {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, "ctx");
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::Index, |lua, ctx, name: LuaValue| {
            if let LuaValue::String(name) = name {
                ctx.field(lua, &name.to_str()?)
            } else {
                Ok(LuaValue::Nil)
            }
        });
        methods.add_meta_method(MetaMethod::Iter, |lua, ctx, ()| ctx.iterate(lua));
        methods.add_meta_method(
            MetaMethod::NewIndex,
            |_, _, (name, _): (LuaValue, LuaValue)| -> mlua::Result<()> {
                Err(mlua::Error::runtime(text::not_assignable(&name.to_string()?)))
            },
        );
    }
}
