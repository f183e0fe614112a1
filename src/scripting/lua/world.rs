//! What belongs to one VM and is reachable from every host function in it.

use std::{
    cell::{OnceCell, RefCell},
    collections::BTreeMap,
    future::Future,
    rc::Rc,
    sync::{Arc, Mutex, PoisonError},
};

use mlua::{Function as LuaFunction, Lua, Value as LuaValue};
use serde_json::Value;

use super::{
    push::{self, Shapes, Style},
    read::Reader,
    running::Wait,
    side_table::SideTable,
};
use crate::logic::{
    function::{Function, ScriptId},
    handler::Handler,
    lifecycle::Chooser,
};
use crate::ports::Invocation;
use crate::scripting::refused::Refused;

/// The host's part of one VM.
pub(super) struct World {
    /// The script.
    pub(super) script: ScriptId,
    /// The marks of tables that came from JSON.
    pub(super) shapes: Shapes,
    /// `string.format`, as it was before the script ran.
    pub(super) format: OnceCell<LuaFunction>,
    /// Functions that somebody outside refers to.
    pub(super) functions: Functions,
    /// What was declared; `None` when the top level has finished.
    pub(super) declared: RefCell<Option<Vec<Handler>>>,
    /// The default lifecycles that were set, in order.
    pub(super) lifecycles: RefCell<Vec<Chooser>>,
    /// What the call is about that computes now; `None` at the top level and in calls that are about nothing.
    pub(super) present: RefCell<Option<Arc<Invocation>>>,
    /// What that call is about to wait for.
    pub(super) wait: RefCell<Option<Wait>>,
    /// `wait` of `ctx.stopped`: made by the prelude.
    pub(super) wait_method: OnceCell<LuaFunction>,
    /// Values of memos that are no data.
    pub(super) side_table: SideTable,
    /// The texts of the script and its modules, by chunk name, for messages.
    pub(super) texts: RefCell<BTreeMap<String, Arc<str>>>,
}

impl World {
    /// The world of this VM.
    pub(super) fn of(lua: &Lua) -> mlua::Result<Rc<World>> {
        let world = lua.app_data_ref::<Rc<World>>().map(|it| Rc::clone(&it));
        world.ok_or_else(|| mlua::Error::runtime("the VM is not set up"))
    }

    /// The call that computes waits for this next. For host functions that the prelude calls right before it gives up the turn.
    pub(super) fn wait_for(
        &self,
        something: impl Future<Output = mlua::Result<Option<LuaValue>>> + 'static,
    ) {
        // A wait that never began, because the script could not give up its turn, is dropped here.
        self.wait.replace(Some(Box::pin(something)));
    }

    /// What the call that has just given up its turn waits for.
    pub(super) fn waited_for(&self) -> Option<Wait> {
        self.wait.take()
    }

    /// A reference to a function: for as long as the VM lives if the top level declares something with it, otherwise for as
    /// long as somebody has it.
    pub(super) fn refer(&self, function: &LuaFunction, name: &str) -> Function {
        if self.declared.borrow().is_some() {
            self.functions.keep(self.script, function, name)
        } else {
            self.functions.lend(self.script, function, name)
        }
    }

    /// JSON into Lua.
    pub(super) fn push(&self, lua: &Lua, value: &Value, style: Style) -> mlua::Result<LuaValue> {
        push::push(lua, &self.shapes, value, style)
    }

    /// Lua into JSON.
    pub(super) fn read(&self, value: &LuaValue, like: Option<&Value>) -> Result<Value, Refused> {
        Reader::new(&self.shapes).read(value, like)
    }

    /// A table with other keys than texts into its items; nothing if it is none: see [`Reader::read_keyed`].
    pub(super) fn read_keyed(
        &self,
        value: &LuaValue,
    ) -> Result<Option<Vec<(Value, Value)>>, Refused> {
        Reader::new(&self.shapes).read_keyed(value)
    }

    /// Lua into JSON, as a host function with an argument of this name does it.
    pub(super) fn read_as(&self, name: &str, value: &LuaValue) -> mlua::Result<Value> {
        self.read(value, None).map_err(|it| mlua::Error::runtime(it.at(name)))
    }
}

/// The functions of a VM by slot.
#[derive(Default)]
pub(super) struct Functions {
    slots: RefCell<Vec<Option<LuaFunction>>>,
    /// Slots whose last reference went, maybe on another thread.
    released: Arc<Mutex<Vec<u32>>>,
}

/// Gives its slot back when it goes.
struct Lease {
    slot: u32,
    released: Arc<Mutex<Vec<u32>>>,
}

impl Functions {
    /// A reference for as long as the VM lives; the same function gets the same slot.
    pub(super) fn keep(&self, script: ScriptId, function: &LuaFunction, name: &str) -> Function {
        let known = self.slots.borrow().iter().position(|it| it.as_ref() == Some(function));
        let slot = known.and_then(|it| u32::try_from(it).ok());
        Function::new(script, slot.unwrap_or_else(|| self.take_slot(function)), name)
    }

    /// A reference whose slot is freed when the last clone of it goes.
    pub(super) fn lend(&self, script: ScriptId, function: &LuaFunction, name: &str) -> Function {
        let slot = self.take_slot(function);
        let lease = Lease { slot, released: Arc::clone(&self.released) };
        Function::new(script, slot, name).keeping(Arc::new(lease))
    }

    /// The function in this slot.
    pub(super) fn get(&self, slot: u32) -> Option<LuaFunction> {
        self.slots.borrow().get(usize::try_from(slot).ok()?)?.clone()
    }

    fn take_slot(&self, function: &LuaFunction) -> u32 {
        self.sweep();
        let mut slots = self.slots.borrow_mut();
        let free = slots.iter().position(Option::is_none).unwrap_or(slots.len());
        match slots.get_mut(free) {
            Some(slot) => *slot = Some(function.clone()),
            None => slots.push(Some(function.clone())),
        }
        // Never reached: the memory limit of a VM is far below.
        u32::try_from(free).unwrap_or(u32::MAX)
    }

    fn sweep(&self) {
        let released =
            std::mem::take(&mut *self.released.lock().unwrap_or_else(PoisonError::into_inner));
        let mut slots = self.slots.borrow_mut();
        for slot in released.into_iter().filter_map(|it| usize::try_from(it).ok()) {
            if let Some(slot) = slots.get_mut(slot) {
                *slot = None;
            }
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.released.lock().unwrap_or_else(PoisonError::into_inner).push(self.slot);
    }
}
