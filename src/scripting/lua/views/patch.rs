//! `ctx.patch`: a live view of the merge-patch under construction.
//!
//! Reading a level that is not there gives a view of it, so that an assignment below creates the levels on the way; hence
//! `ctx.patch.status.phase == nil` is never true, and `kopf.get(ctx.patch, "status.phase")` is the way to ask.

use std::{rc::Rc, sync::Arc};

use mlua::{
    Function as LuaFunction, Lua, MetaMethod, UserData, UserDataFields, UserDataMethods,
    Value as LuaValue,
};
use serde_json::{Map, Value};

use super::{
    Copied, dotted,
    place::Place,
    step,
    tally::{self, Tally},
};
use crate::logic::patch::Transformation;
use crate::ports::SharedPatch;
use crate::scripting::{
    account::Account,
    leftovers::Handle,
    limits,
    lua::{push::Style, tree, world::World},
    refused::{DEPTH_MAX, Refused},
    text,
    withdraw::withdraw,
};

/// A level of the patch.
pub(super) struct PatchView {
    patch: Handle<SharedPatch>,
    /// The object being patched: says whether an empty table is a list.
    body: Arc<Value>,
    path: Place,
    tally: Rc<Tally>,
}

impl PatchView {
    /// The whole patch.
    pub(super) fn root(patch: Handle<SharedPatch>, body: Arc<Value>) -> Self {
        PatchView { patch, body, path: Place::default(), tally: Rc::default() }
    }

    /// Copies what is there now; null if nothing is.
    pub(super) fn copy(&self, account: &mut Account<'_>, depth: usize) -> Copied {
        let patch = self.patch.lock();
        if self.path.is_empty() {
            return account.copy_fields(&patch.merge, depth);
        }
        tree::lookup(&patch.merge, &self.path).map_or(Ok(Value::Null), |it| account.copy(it, depth))
    }

    fn below(&self, key: String) -> Vec<String> {
        // As everywhere in handlers' arguments, `meta` is a shorter name of the metadata.
        let key = if self.path.is_empty() && key == "meta" { "metadata".into() } else { key };
        self.path.iter().cloned().chain([key]).collect()
    }

    fn get(&self, lua: &Lua, key: &LuaValue) -> mlua::Result<LuaValue> {
        let key = step(key)?;
        if self.path.is_empty() && key == "fns" {
            return lua.create_userdata(FunctionsView(self.patch.clone())).map(LuaValue::UserData);
        }
        let path = self.below(key);
        if path.len() >= DEPTH_MAX {
            let refused = Refused::too_deep().at(&dotted("patch", &path));
            return Err(mlua::Error::runtime(refused));
        }
        // Levels are viewed, not copied: a patch may be large.
        let present = match tree::lookup(&self.patch.lock().merge, &path) {
            None | Some(Value::Object(_)) => None,
            Some(value) => Some(value.clone()),
        };
        match present {
            None => {
                let path = Place::new(lua, &*World::of(lua)?, path)?;
                let view = PatchView {
                    patch: self.patch.clone(),
                    body: Arc::clone(&self.body),
                    path,
                    tally: Rc::clone(&self.tally),
                };
                lua.create_userdata(view).map(LuaValue::UserData)
            }
            Some(Value::Null) => Ok(LuaValue::NULL),
            Some(value) => World::of(lua)?.push(lua, &value, Style::Frozen),
        }
    }

    /// Over a copy of what is there now.
    pub(super) fn iterate(&self, lua: &Lua) -> mlua::Result<(LuaFunction, LuaValue)> {
        let world = World::of(lua)?;
        let content = self.copy(&mut world.account(world.text_room()), 0);
        let mut content = content.map_err(|it| mlua::Error::runtime(it.at("the patch")))?;
        if content.is_null() {
            content = Value::Object(Map::new());
        }
        let content = world.push(lua, &content, Style::Mutable)?;
        Ok((lua.globals().get("next")?, content))
    }

    fn set(&self, lua: &Lua, key: &LuaValue, value: &LuaValue) -> mlua::Result<()> {
        let key_is_place = matches!(key, LuaValue::Integer(_));
        let key = step(key)?;
        if self.path.is_empty() && key == "fns" {
            return Err(mlua::Error::runtime("use ctx.patch.fns:append(function(body) … end)"));
        }
        let path = self.below(key);
        if key_is_place {
            let text = format!("{}: a patch replaces a list as a whole", dotted("patch", &path));
            return Err(mlua::Error::runtime(text));
        }
        if value.is_nil() {
            withdraw(&mut self.patch.lock().merge, &path);
            return Ok(());
        }
        let like = path.iter().try_fold(&*self.body, |it, key| it.get(key));
        let world = World::of(lua)?;
        let read = world.read_kept(value, like, path.len());
        let read = read.map_err(|it| mlua::Error::runtime(it.at(&dotted("patch", &path))))?;
        let measure = || tally::weight_besides(&self.patch.lock().merge, &path);
        self.tally.admit(&world, &read, ("the patch", measure))?;
        let assigned = tree::assign(&mut self.patch.lock().merge, &path, read);
        assigned.map_err(|it| mlua::Error::runtime(format!("{}: {it}", dotted("patch", &path))))
    }
}

impl UserData for PatchView {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, "patch");
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::Index, |lua, view, key: LuaValue| view.get(lua, &key));
        methods.add_meta_method(
            MetaMethod::NewIndex,
            |lua, view, (key, value): (LuaValue, LuaValue)| view.set(lua, &key, &value),
        );
        methods.add_meta_method(MetaMethod::ToString, |lua, view, ()| {
            World::of(lua)?.shown("the patch", text::of_patch, |it| view.copy(it, 0))
        });
        methods.add_meta_method(MetaMethod::Iter, |lua, view, ()| view.iterate(lua));
    }
}

/// `ctx.patch.fns`
struct FunctionsView(Handle<SharedPatch>);

impl UserData for FunctionsView {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, "patch.fns");
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("append", |lua, view, function: LuaFunction| {
            if view.0.lock().transformations.len() >= limits::FUNCTIONS_MAX {
                return Err(mlua::Error::runtime(limits::too_many_transformations()));
            }
            let world = World::of(lua)?;
            let name = function.info().name.unwrap_or_default();
            let function = world.functions.lend(world.script, &function, &name);
            view.0.lock().transformations.push(Transformation::Scripted(function));
            Ok(())
        });
        methods.add_meta_method(MetaMethod::Len, |_, view, ()| {
            Ok(view.0.lock().transformations.len())
        });
    }
}
