//! One Lua VM with one script in it.

use std::{
    cell::{OnceCell, RefCell},
    collections::BTreeMap,
    future::Future,
    rc::Rc,
    sync::Arc,
};

use futures::{
    FutureExt as _,
    future::{self, Either},
};
use mlua::{
    Function as LuaFunction, IntoLuaMulti, Lua, LuaOptions, StdLib, Thread, Value as LuaValue,
    chunk::ChunkMode,
    state::{GcIncParams, GcMode},
};
use serde_json::Value;

use super::{
    actor::Declared,
    host_table,
    modules::Modules,
    push::Style,
    raised::{self, ScriptError},
    running::{Failure, Running},
    views::CtxView,
    watchdog::Watchdog,
    world::World,
};
use crate::logic::{
    filters::Question,
    function::{Function, ScriptId},
    handler::Kind,
    outcome::{Ended, Raised},
    resource::Resource,
};
use crate::ports::Invocation;
use crate::scripting::{LoadError, Source, ctx, refused::Refused};

/// The memory of one VM. A script that needs more is told so.
const MEMORY_MAX: usize = 64 * 1024 * 1024;
/// Collect early: Luau has no collection at the limit, so garbage would count as full memory.
const GC_GOAL: i32 = 120;
/// Work per allocation that keeps up with [`GC_GOAL`].
const GC_STEP_MULTIPLIER: i32 = 400;

/// Coroutines that are kept for calls to come: as many as short calls usually are there at once.
const SPARE_MAX: usize = 16;

/// A VM whose script is loaded.
pub(super) struct Vm {
    /// First: it must go before the VM.
    watchdog: Watchdog,
    /// Lets the coroutine of a call go on.
    drive: LuaFunction,
    /// Coroutines of calls that have returned, for calls to come.
    spare: RefCell<Vec<Thread>>,
    world: Rc<World>,
    lua: Lua,
}

impl Vm {
    /// Makes a VM and runs the top level of the script in it.
    pub(super) async fn load(
        script: ScriptId,
        source: &Source,
    ) -> Result<(Rc<Vm>, Declared), LoadError> {
        let vm = Vm::new(script, source).map(Rc::new).map_err(|error| LoadError {
            file: source.name.clone(),
            line: None,
            source_line: None,
            message: format!("the Lua VM cannot be made: {error}"),
            hint: None,
        })?;
        let told = |error: ScriptError| error.into_load_error(&vm.world, &source.name);
        let chunk = vm.lua.load(source.text.as_str()).set_name(format!("@{}", source.name));
        let chunk = chunk.set_mode(ChunkMode::Text).into_function();
        let chunk = chunk.map_err(|it| told(ScriptError::of_error(&vm.world, &it)))?;
        let ended = match Running::new(Rc::clone(&vm), chunk, (), None) {
            Ok(running) => running.await,
            Err(error) => Err(Failure::Script(ScriptError::of_error(&vm.world, &error))),
        };
        match ended {
            Err(Failure::Script(error)) => return Err(told(error)),
            Err(Failure::OutOfTime) => {
                let error = mlua::Error::runtime(raised::out_of_time().message);
                return Err(told(ScriptError::of_error(&vm.world, &error)));
            }
            Ok(_) => {}
        }
        source.modules.settle();
        let handlers = vm.world.declared.borrow_mut().take().unwrap_or_default();
        let lifecycles = vm.world.lifecycles.take();
        Ok((vm, (handlers, lifecycles)))
    }

    fn new(script: ScriptId, source: &Source) -> mlua::Result<Vm> {
        let lua = Lua::new_with(StdLib::ALL_SAFE, LuaOptions::new())?;
        lua.set_memory_limit(MEMORY_MAX)?;
        let gc = GcIncParams::default().goal(GC_GOAL).step_multiplier(GC_STEP_MULTIPLIER);
        lua.gc_set_mode(GcMode::Incremental(gc));
        let text = Arc::from(source.text.as_str());
        let world = Rc::new(World {
            script,
            shapes: host_table::shapes(&lua)?,
            format: OnceCell::new(),
            functions: super::world::Functions::default(),
            declared: RefCell::new(Some(Vec::new())),
            lifecycles: RefCell::default(),
            present: RefCell::default(),
            wait: RefCell::default(),
            wait_method: OnceCell::new(),
            side_table: super::side_table::SideTable::default(),
            texts: RefCell::new(BTreeMap::from([(source.name.clone(), text)])),
        });
        lua.set_app_data(Rc::clone(&world));
        let watchdog = Watchdog::of(&lua).map_err(mlua::Error::external)?;
        let modules = Modules::of(source);
        let drive = host_table::install(&lua, modules)?;
        Ok(Vm { watchdog, drive, spare: RefCell::default(), world, lua })
    }

    /// Calls the function of a handler.
    pub(super) fn call(
        self: &Rc<Self>,
        invocation: Arc<Invocation>,
    ) -> impl Future<Output = Ended> + use<> {
        let kind = invocation.handler.kind;
        let ctx = CtxView::new(Arc::clone(&invocation));
        let slot = invocation.handler.function.slot;
        let returned = self.run_function(slot, ctx, Some(invocation));
        let vm = Rc::clone(self);
        returned.map(move |returned| {
            let ended = returned.and_then(|it| {
                if kind == Kind::Index {
                    vm.contribution(&it)
                } else {
                    vm.result(&it).map(Ended::Returned)
                }
            });
            ended.unwrap_or_else(Ended::Raised)
        })
    }

    /// Asks a filter callback.
    pub(super) async fn ask(
        self: &Rc<Self>,
        question: Question,
        invocation: Arc<Invocation>,
    ) -> Result<bool, Raised> {
        let present = Some(Arc::clone(&invocation));
        let ctx = CtxView::new(invocation);
        let answer = match &question.about {
            None => self.run_function(question.function.slot, ctx, present).await,
            Some(value) => {
                let value = value.clone().unwrap_or_default();
                let value = self.world.push(&self.lua, &value, Style::Frozen);
                let value = value.map_err(|it| self.raised(&it))?;
                self.run_function(question.function.slot, (value, ctx), present).await
            }
        }?;
        Ok(is_true(&answer))
    }

    /// Asks the function of a selector.
    pub(super) async fn choose(
        self: &Rc<Self>,
        function: Function,
        resource: Arc<Resource>,
    ) -> Result<bool, Raised> {
        let record = self.world.push(&self.lua, &ctx::record(&resource), Style::Frozen);
        let record = record.map_err(|it| self.raised(&it))?;
        Ok(is_true(&self.run_function(function.slot, record, None).await?))
    }

    /// Calls a function for what it returns.
    pub(super) async fn compute(
        self: &Rc<Self>,
        function: Function,
        about: Option<Value>,
        invocation: Arc<Invocation>,
    ) -> Result<Value, Raised> {
        let present = Some(Arc::clone(&invocation));
        let ctx = CtxView::new(invocation);
        let returned = match about {
            None => self.run_function(function.slot, ctx, present).await?,
            Some(about) => {
                let about = self.world.push(&self.lua, &about, Style::Frozen);
                let about = about.map_err(|it| self.raised(&it))?;
                self.run_function(function.slot, (about, ctx), present).await?
            }
        };
        let read = self.world.read(&returned, None);
        read.map_err(|it| self.raised(&mlua::Error::runtime(it.at("the result"))))
    }

    /// Lets a function change a copy of a body.
    pub(super) async fn transform(
        self: &Rc<Self>,
        function: Function,
        body: Value,
    ) -> Result<Value, Raised> {
        let copy = self.world.push(&self.lua, &body, Style::Mutable);
        let copy = copy.map_err(|it| self.raised(&it))?;
        self.run_function(function.slot, copy.clone(), None).await?;
        let changed = self.world.read(&copy, Some(&body));
        changed.map_err(|it| self.raised(&mlua::Error::runtime(it.at("body"))))
    }

    fn result(&self, value: &LuaValue) -> Result<Option<Value>, Raised> {
        let read = self.world.read(value, None).map_err(|it| self.refused(&it))?;
        Ok((!read.is_null()).then_some(read))
    }

    /// The result of an index function: its keys need not be texts.
    fn contribution(&self, value: &LuaValue) -> Result<Ended, Raised> {
        match self.world.read_keyed(value).map_err(|it| self.refused(&it))? {
            Some(entries) => Ok(Ended::Keyed(entries)),
            None => self.result(value).map(Ended::Returned),
        }
    }

    fn refused(&self, refused: &Refused) -> Raised {
        self.raised(&mlua::Error::runtime(refused.at("the result")))
    }

    fn raised(&self, error: &mlua::Error) -> Raised {
        ScriptError::of_error(&self.world, error).into_raised(&self.world)
    }

    /// Calls the function in this slot. Not async, so that its future holds nothing twice: there may be very many that wait.
    fn run_function<A: IntoLuaMulti>(
        self: &Rc<Self>,
        slot: u32,
        arguments: A,
        present: Option<Arc<Invocation>>,
    ) -> impl Future<Output = Result<LuaValue, Raised>> + use<A> {
        let function = self.world.functions.get(slot);
        let function = function.ok_or_else(|| raised::of_host("the function is gone"));
        let call = function.and_then(|it| {
            Running::new(Rc::clone(self), it, arguments, present).map_err(|it| self.raised(&it))
        });
        let vm = Rc::clone(self);
        let failed = move |failure| match failure {
            Failure::Script(error) => error.into_raised(&vm.world),
            Failure::OutOfTime => raised::out_of_time(),
        };
        match call {
            Ok(call) => Either::Left(call.map(move |it| it.map_err(failed))),
            Err(raised) => Either::Right(future::ready(Err(raised))),
        }
    }

    /// A coroutine for a call of this function: one that has returned before, or a new one.
    pub(super) fn coroutine(&self, function: LuaFunction) -> mlua::Result<Thread> {
        match self.spare.borrow_mut().pop() {
            Some(spare) => spare.reset(function).map(|()| spare),
            None => self.lua.create_thread(function),
        }
    }

    /// Takes back the coroutine of a call that has returned. A new one for each would be most of the garbage of short calls.
    pub(super) fn spare(&self, coroutine: Thread) {
        let mut spare = self.spare.borrow_mut();
        if spare.len() < SPARE_MAX {
            spare.push(coroutine);
        }
    }

    /// The VM itself.
    pub(super) fn lua(&self) -> &Lua {
        &self.lua
    }

    /// What belongs to it.
    pub(super) fn world(&self) -> &World {
        &self.world
    }

    /// Who watches it.
    pub(super) fn watchdog(&self) -> &Watchdog {
        &self.watchdog
    }

    /// The function of the prelude that lets a coroutine go on.
    pub(super) fn drive(&self) -> &LuaFunction {
        &self.drive
    }
}

/// The truth of the language: everything but nil and false.
fn is_true(answer: &LuaValue) -> bool {
    !matches!(answer, LuaValue::Nil | LuaValue::Boolean(false))
}
