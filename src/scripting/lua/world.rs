//! The data of one VM that every host function in it can reach.

use std::{
    cell::{OnceCell, RefCell},
    future::Future,
    rc::Rc,
    sync::Arc,
};

use kopf_json::shared::{Part, SharedJson};
use kopf_luau::{
    levels::Levels,
    push::{self, Shapes, Style},
    pushed::Pushed,
};
use mlua::{Function as LuaFunction, Lua, MultiValue, Value as LuaValue};
use serde_json::Value;

use super::{read::LuaReader, running::LuaWait, streams::Streams, watchdog::Meter};
use crate::call::Invocation;
use crate::logic::handlers::function::{Function, ScriptId};
use crate::scripting::{
    actor::{functions::Functions, script::VmLimits},
    functions::{Pace, Surroundings, declaring::TopLevel},
    handles::{Border, leftovers::Leftovers},
    values::{
        account::Account,
        errors::ScriptSources,
        memos::Memos,
        refused::{Refused, SizeLimit},
    },
};

/// The host's data of one VM.
pub(super) struct World {
    /// The limits of the VM.
    pub(super) limits: Rc<VmLimits>,
    /// What the running call may still use.
    pub(super) meter: Rc<Meter>,
    pub(super) script: ScriptId,
    /// The metatables that mark tables made from JSON.
    pub(super) shapes: Shapes,
    pub(super) levels: Levels,
    /// The tables that were created from trees of calls.
    pub(super) pushed: Pushed,
    /// `string.format`, as it was before the script ran.
    pub(super) format: OnceCell<LuaFunction>,
    /// `debug.traceback`, as it was before the script ran.
    pub(super) traceback: OnceCell<LuaFunction>,
    /// Functions that the host has references to.
    pub(super) functions: Functions<LuaFunction>,
    /// The declarations of the top level.
    pub(super) top_level: TopLevel,
    /// The invocation of the running call; `None` at the top level and in calls without one.
    pub(super) present: RefCell<Option<Arc<Invocation>>>,
    /// What that call is about to wait for.
    pub(super) wait: RefCell<Option<LuaWait>>,
    /// The method `wait` of `ctx.stopped`, created by the prelude.
    pub(super) wait_method: OnceCell<LuaFunction>,
    /// The open streams that scripts loop over.
    pub(super) streams: Streams,
    /// What the script keeps of calls that have ended.
    pub(super) leftovers: RefCell<Leftovers>,
    /// The properties of Lua that handles depend on.
    pub(super) border: Border,
    /// The size of what the script has stored in memos.
    pub(super) memos: Arc<Memos>,
    /// What the libraries know about the script.
    pub(super) surroundings: Arc<Surroundings>,
    /// Whether the running call must end, for libraries that compute long.
    pub(super) pace: Pace,
    /// The source text of the script and its modules, by chunk name, for messages.
    pub(super) sources: ScriptSources,
}

impl World {
    /// Returns the world of this VM.
    pub(super) fn of(lua: &Lua) -> mlua::Result<Rc<World>> {
        let world = lua.app_data_ref::<Rc<World>>().map(|it| Rc::clone(&it));
        world.ok_or_else(|| mlua::Error::runtime("the VM is not set up"))
    }

    /// Makes the running call wait for this next. For host functions that the prelude calls right before it yields.
    pub(super) fn wait_for(
        &self,
        something: impl Future<Output = mlua::Result<MultiValue>> + 'static,
    ) {
        // This drops a wait that never began, because the script could not yield.
        self.wait.replace(Some(Box::pin(something)));
    }

    /// Restores the wait of a call that was interrupted after it had set it, and before it could yield.
    pub(super) fn restore_wait(&self, wait: Option<LuaWait>) {
        self.wait.replace(wait);
    }

    /// Returns the wait of the call whose slice has just ended.
    pub(super) fn waited_for(&self) -> Option<LuaWait> {
        self.wait.take()
    }

    /// Creates a reference to a function. It is valid for as long as the VM exists if the top level is running, otherwise until its last
    /// clone is dropped.
    pub(super) fn refer(&self, function: &LuaFunction, name: &str) -> Function {
        if self.top_level.is_loading() {
            self.functions.keep(self.script, function, name)
        } else {
            self.functions.lend(self.script, function, name)
        }
    }

    /// Converts JSON to Lua.
    pub(super) fn push(&self, lua: &Lua, value: &Value, style: Style) -> mlua::Result<LuaValue> {
        let pushed = push::push(lua, &self.shapes, value, style);
        // Strings of the host are exempt from the limit.
        self.meter.forget_texts();
        pushed
    }

    /// Converts the part of shared JSON that `pick` returns, if any, to a read-only Lua value; `bytes` estimates the memory of the whole.
    pub(super) fn push_part(
        &self,
        lua: &Lua,
        json: &SharedJson,
        pick: impl for<'a> FnOnce(&'a SharedJson) -> Option<Part<'a>>,
        bytes: impl FnOnce() -> usize,
    ) -> mlua::Result<Option<LuaValue>> {
        let pushed = self.levels.push((lua, &self.shapes), json, pick, bytes);
        self.meter.forget_texts();
        pushed
    }

    /// Converts Lua to JSON.
    pub(super) fn read(&self, value: &LuaValue, like: Option<&Value>) -> Result<Value, Refused> {
        self.reader(self.account(self.text_room())).read(value, like)
    }

    /// Converts Lua to JSON that is kept: a result, or a part of a patch or of a memo, with the number of levels around that part.
    pub(super) fn read_kept(
        &self,
        value: &LuaValue,
        like: Option<&Value>,
        (room, around): (SizeLimit, usize),
    ) -> Result<Value, Refused> {
        self.reader(self.account(room).below(around)).read(value, like)
    }

    /// Converts a table with keys other than strings to its items; `None` if it has no such keys: see [`LuaReader::read_keyed`].
    pub(super) fn read_keyed(
        &self,
        value: &LuaValue,
    ) -> Result<Option<Vec<(Value, Value)>>, Refused> {
        let room = SizeLimit::Result(self.limits.sandbox.result_size);
        self.reader(self.account(room)).read_keyed(value)
    }

    /// Returns the account that limits one conversion.
    pub(super) fn account(&self, room: SizeLimit) -> Account<'_> {
        Account::new(room, 1, &*self.meter)
    }

    /// Returns the maximum size of a value that is passed or shown.
    pub(super) fn text_room(&self) -> SizeLimit {
        SizeLimit::Text(self.limits.sandbox.string_size)
    }

    fn reader<'a>(&'a self, account: Account<'a>) -> LuaReader<'a> {
        LuaReader::new((&self.shapes, &self.levels), account)
    }

    /// Converts Lua to JSON for a host function; errors start with the name of the argument.
    pub(super) fn read_as(&self, name: &str, value: &LuaValue) -> mlua::Result<Value> {
        self.read(value, None).map_err(|it| mlua::Error::runtime(it.at(name)))
    }
}
