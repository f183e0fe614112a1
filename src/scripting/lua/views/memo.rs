//! `ctx.memo`: a live view of the data that scripts share.

use std::rc::Rc;

use mlua::{
    Function as LuaFunction, IntoLua, Lua, MetaMethod, UserData, UserDataFields, UserDataMethods,
    Value as LuaValue,
};
use serde_json::{Map, Value};

use super::{
    Copied, Kind, dotted,
    place::Place,
    step,
    tally::{self, Tally},
};
use crate::heap;
use crate::ports::Document;
use crate::scripting::{
    account::Account,
    lua::{push::Style, tree, world::World},
    text,
};

/// A map or a list in a memo.
pub(super) struct MemoView {
    document: Document,
    path: Place,
    tally: Rc<Tally>,
}

impl MemoView {
    /// The whole memo.
    pub(super) fn root(document: Document) -> Self {
        MemoView { document, path: Place::default(), tally: Rc::default() }
    }

    /// Copies the data; null if there is none any more.
    pub(super) fn copy(&self, account: &mut Account<'_>, depth: usize) -> Copied {
        let content = self.document.lock();
        if self.path.is_empty() {
            return account.copy_fields(&content, depth);
        }
        tree::lookup(&content, &self.path).map_or(Ok(Value::Null), |it| account.copy(it, depth))
    }

    /// What it is now.
    pub(super) fn kind(&self) -> Kind {
        let is_list = tree::lookup(&self.document.lock(), &self.path).is_some_and(Value::is_array);
        if is_list { Kind::List } else { Kind::Map }
    }

    fn below(&self, key: String) -> Vec<String> {
        self.path.iter().cloned().chain([key]).collect()
    }

    fn get(&self, lua: &Lua, key: &LuaValue) -> mlua::Result<LuaValue> {
        let path = self.below(step(key)?);
        let world = World::of(lua)?;
        // Maps and lists are viewed, not copied: a memo may be large.
        let present = match tree::lookup(&self.document.lock(), &path) {
            None => return Ok(LuaValue::Nil),
            Some(Value::Object(_) | Value::Array(_)) => None,
            Some(value) => Some(value.clone()),
        };
        match present {
            Some(Value::Null) => Ok(LuaValue::NULL),
            Some(value) => world.push(lua, &value, Style::Frozen),
            None => {
                let (path, tally) = (Place::new(lua, &world, path)?, Rc::clone(&self.tally));
                let view = MemoView { document: self.document.clone(), path, tally };
                lua.create_userdata(view).map(LuaValue::UserData)
            }
        }
    }

    fn set(&self, lua: &Lua, key: &LuaValue, value: &LuaValue) -> mlua::Result<()> {
        let path = self.below(step(key)?);
        let world = World::of(lua)?;
        let fail = |it: &str| mlua::Error::runtime(format!("{}: {it}", dotted("memo", &path)));
        if value.is_nil() {
            let before = heap::held();
            tree::remove(&mut self.document.lock_for(&path), &path).map_err(fail)?;
            world.memos.charge(&self.document, heap::held().wrapping_sub(before));
            return Ok(());
        }
        let read = world.read_kept(value, None, path.len());
        let read = read.map_err(|it| mlua::Error::runtime(it.at(&dotted("memo", &path))))?;
        let measure = || tally::weight_besides(&self.document.lock(), &path);
        self.tally.admit(&world, &read, ("the memo", measure))?;
        world.memos.admit().map_err(mlua::Error::runtime)?;
        let before = heap::held();
        // A copy, which is made between the two looks at the allocator. What was read goes after them.
        let kept = read.clone();
        {
            let mut content = self.document.lock_for(&path);
            if matches!(key, LuaValue::Integer(1)) {
                tree::make_list(&mut content, &self.path);
            }
            tree::assign(&mut content, &path, kept).map_err(fail)?;
        }
        world.memos.charge(&self.document, heap::held().wrapping_sub(before));
        Ok(())
    }

    fn keys(&self) -> Vec<String> {
        let content = self.document.lock();
        if self.path.is_empty() {
            return content.keys().cloned().collect();
        }
        let fields = tree::lookup(&content, &self.path).and_then(Value::as_object);
        fields.into_iter().flat_map(Map::keys).cloned().collect()
    }

    fn len(&self) -> usize {
        let content = self.document.lock();
        tree::lookup(&content, &self.path).and_then(Value::as_array).map_or(0, Vec::len)
    }

    /// Keys and values as they are now: changes on the way do not disturb the loop.
    pub(super) fn iterate(&self, lua: &Lua) -> mlua::Result<(LuaFunction, LuaValue)> {
        let keys: Vec<LuaValue> = if self.kind() == Kind::List {
            (1..=self.len()).map(|it| it.into_lua(lua)).collect::<Result<_, _>>()?
        } else {
            self.keys().into_iter().map(|it| it.into_lua(lua)).collect::<Result<_, _>>()?
        };
        let path = Place::new(lua, &*World::of(lua)?, self.path.to_vec())?;
        let tally = Rc::clone(&self.tally);
        let view = MemoView { document: self.document.clone(), path, tally };
        let keys = std::cell::RefCell::new(keys.into_iter());
        let next = lua.create_function(move |lua, _: mlua::MultiValue| {
            let key = keys.borrow_mut().next().unwrap_or(LuaValue::Nil);
            let value = if key.is_nil() { LuaValue::Nil } else { view.get(lua, &key)? };
            Ok((key, value))
        })?;
        Ok((next, LuaValue::Nil))
    }
}

impl UserData for MemoView {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, "memo");
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::Index, |lua, view, key: LuaValue| view.get(lua, &key));
        methods.add_meta_method(
            MetaMethod::NewIndex,
            |lua, view, (key, value): (LuaValue, LuaValue)| view.set(lua, &key, &value),
        );
        methods.add_meta_method(MetaMethod::Len, |_, view, ()| Ok(view.len()));
        methods.add_meta_method(MetaMethod::Iter, |lua, view, ()| view.iterate(lua));
        methods.add_meta_method(MetaMethod::ToString, |lua, view, ()| {
            World::of(lua)?.shown("the memo", text::shown, |it| view.copy(it, 0))
        });
    }
}
