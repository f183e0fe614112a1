//! One Lua VM with one script in it.

use std::{
    cell::{OnceCell, RefCell},
    collections::BTreeMap,
    future::Future,
    rc::Rc,
    sync::Arc,
};

use futures::FutureExt as _;
use mlua::{
    Function as LuaFunction, IntoLuaMulti, Lua, LuaOptions, StdLib, Value as LuaValue,
    chunk::{ChunkMode, Compiler},
    state::{GcIncParams, GcMode},
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    host_table,
    modules::Modules,
    push::Style,
    raised::{self, ScriptError},
    script::{Declared, Script},
    views::CtxView,
    watchdog::{Abort, Watchdog},
    world::{Functions, World},
};
use crate::logic::{
    filters::Question,
    function::Function,
    handler::Kind,
    outcome::{Ended, Raised},
    resource::Resource,
};
use crate::ports::Invocation;
use crate::scripting::{LoadError, ctx, reach::Reach, refused::Refused};

/// Collect early: Luau has no collection at the limit, so garbage would count as full memory.
const GC_GOAL: i32 = 120;
/// Work per allocation that keeps up with [`GC_GOAL`].
const GC_STEP_MULTIPLIER: i32 = 400;

/// A VM whose script is loaded.
pub(super) struct Vm {
    /// First: it must go before the VM.
    watchdog: Rc<Watchdog>,
    /// Runs a function with an error handler that records the stack.
    run: LuaFunction,
    world: Rc<World>,
    lua: Lua,
}

impl Vm {
    /// Makes a VM and runs the top level of the script in it.
    pub(super) async fn load(
        script: &Script,
        stuck: CancellationToken,
    ) -> Result<(Vm, Declared), LoadError> {
        let source = &script.source;
        let vm = Vm::new(script, stuck).map_err(|error| LoadError {
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
        match vm.run_to_end(chunk, (), None, |_, _| Ok(())).await {
            Err(Failure::Script(error)) => return Err(told(error)),
            Err(Failure::Aborted(abort)) => {
                let error = mlua::Error::runtime(raised::of_abort(&vm.world.limits, abort));
                return Err(told(ScriptError::of_error(&vm.world, &error)));
            }
            Ok(()) => {}
        }
        source.modules.settle();
        let handlers = vm.world.declared.borrow_mut().take().unwrap_or_default();
        let lifecycles = vm.world.lifecycles.take();
        Ok((vm, (handlers, lifecycles)))
    }

    fn new(script: &Script, stuck: CancellationToken) -> mlua::Result<Vm> {
        let Script { source, limits, .. } = script;
        let lua = Lua::new_with(StdLib::ALL_SAFE, LuaOptions::new())?;
        lua.set_memory_limit(limits.sandbox.memory_limit)?;
        let gc = GcIncParams::default().goal(GC_GOAL).step_multiplier(GC_STEP_MULTIPLIER);
        lua.gc_set_mode(GcMode::Incremental(gc));
        // Some built-ins have other forms here, which the shortcut for calls of the original ones must not pass by.
        lua.set_compiler(Compiler::new().set_disabled_builtins(["pcall", "xpcall"]));
        let text = Arc::from(source.text.as_str());
        let limits = Rc::new(limits.clone());
        let watchdog = Watchdog::of(&lua, &limits, stuck).map_err(mlua::Error::external)?;
        let world = Rc::new(World {
            script: script.id,
            limits,
            meter: Rc::clone(watchdog.meter()),
            shapes: host_table::shapes(&lua)?,
            format: OnceCell::new(),
            functions: Functions::new(Arc::clone(&script.lent)),
            declared: RefCell::new(Some(Vec::new())),
            lifecycles: RefCell::default(),
            present: RefCell::default(),
            side_table: super::side_table::SideTable::default(),
            reach: Reach::of(&script.terms, &source.name),
            texts: RefCell::new(BTreeMap::from([(source.name.clone(), text)])),
        });
        lua.set_app_data(Rc::clone(&world));
        let watchdog = Rc::new(watchdog);
        let modules = Modules::of(source);
        let run = host_table::install(&lua, &watchdog, modules)?;
        Ok(Vm { watchdog, run, world, lua })
    }

    /// Whether its memory was full: it may be of no more use.
    pub(super) fn is_exhausted(&self) -> bool {
        self.world.meter.is_exhausted()
    }

    /// Calls the function of a handler.
    pub(super) async fn call(&self, invocation: Arc<Invocation>) -> Ended {
        let function = invocation.handler.function.clone();
        let is_index = invocation.handler.kind == Kind::Index;
        let finish = if is_index { contribution } else { result };
        let present = Some(Arc::clone(&invocation));
        let ctx = CtxView::new(invocation);
        let ended = self.run_function(&function, ctx, present, finish).await;
        ended.unwrap_or_else(Ended::Raised)
    }

    /// Asks a filter callback.
    pub(super) async fn ask(
        &self,
        question: Question,
        invocation: Arc<Invocation>,
    ) -> Result<bool, Raised> {
        let present = Some(Arc::clone(&invocation));
        let ctx = CtxView::new(invocation);
        match &question.about {
            None => self.run_function(&question.function, ctx, present, is_true).await,
            Some(value) => {
                let value = value.clone().unwrap_or_default();
                let value = self.world.push(&self.lua, &value, Style::Frozen);
                let value = value.map_err(|it| self.raised(&it))?;
                self.run_function(&question.function, (value, ctx), present, is_true).await
            }
        }
    }

    /// Asks the function of a selector.
    pub(super) async fn choose(
        &self,
        function: Function,
        resource: Arc<Resource>,
    ) -> Result<bool, Raised> {
        let record = self.world.push(&self.lua, &ctx::record(&resource), Style::Frozen);
        let record = record.map_err(|it| self.raised(&it))?;
        self.run_function(&function, record, None, is_true).await
    }

    /// Calls a function for what it returns.
    pub(super) async fn compute(
        &self,
        function: Function,
        about: Option<Value>,
        invocation: Arc<Invocation>,
    ) -> Result<Value, Raised> {
        let present = Some(Arc::clone(&invocation));
        let ctx = CtxView::new(invocation);
        match about {
            None => self.run_function(&function, ctx, present, data).await,
            Some(about) => {
                let about = self.world.push(&self.lua, &about, Style::Frozen);
                let about = about.map_err(|it| self.raised(&it))?;
                self.run_function(&function, (about, ctx), present, data).await
            }
        }
    }

    /// Lets a function change a copy of a body.
    pub(super) async fn transform(&self, function: Function, body: Value) -> Result<Value, Raised> {
        let copy = self.world.push(&self.lua, &body, Style::Mutable);
        let copy = copy.map_err(|it| self.raised(&it))?;
        let changed = copy.clone();
        let finish = move |world: &World, _: &LuaValue| {
            let changed = world.read(&changed, Some(&body));
            changed.map_err(|it| mlua::Error::runtime(it.at("body")))
        };
        self.run_function(&function, copy, None, finish).await
    }

    fn raised(&self, error: &mlua::Error) -> Raised {
        if matches!(error, mlua::Error::MemoryError(_)) {
            self.world.meter.exhaust();
            return raised::aborted(&self.world.limits, Abort::Memory);
        }
        ScriptError::of_error(&self.world, error).into_raised(&self.world)
    }

    /// Calls a function. Begins at once, so that its future holds as little as possible: there may be very many that wait.
    ///
    /// `finish` makes something of what it returns; that is a part of the call and of its running time.
    fn run_function<'a, T: 'a>(
        &'a self,
        function: &Function,
        arguments: impl IntoLuaMulti,
        present: Option<Arc<Invocation>>,
        finish: impl FnOnce(&World, &LuaValue) -> mlua::Result<T> + 'a,
    ) -> impl Future<Output = Result<T, Raised>> + 'a {
        let function = self.world.functions.get(function.slot);
        // Boxed, because a future that is awaited takes twice its size.
        let call = function.map(|it| Box::pin(self.run_to_end(it, arguments, present, finish)));
        async move {
            let call = call.ok_or_else(raised::of_lost_vm)?;
            call.await.map_err(|failure| match failure {
                Failure::Script(error) => error.into_raised(&self.world),
                Failure::Aborted(abort) => raised::aborted(&self.world.limits, abort),
            })
        }
    }

    fn run_to_end<'a, T: 'a>(
        &'a self,
        function: LuaFunction,
        arguments: impl IntoLuaMulti,
        present: Option<Arc<Invocation>>,
        finish: impl FnOnce(&World, &LuaValue) -> mlua::Result<T> + 'a,
    ) -> impl Future<Output = Result<T, Failure>> + 'a {
        let call = arguments.into_lua_multi(&self.lua).map(|mut arguments| {
            arguments.push_front(LuaValue::Function(function));
            let call = self.run.call_async::<(bool, LuaValue)>(arguments);
            let call = call.map(|ended| self.finish(ended, finish));
            self.watchdog.guard(self.world.during(present, call))
        });
        async move {
            let of_error = |error| Failure::Script(ScriptError::of_error(&self.world, &error));
            match call.map_err(of_error)?.await {
                Err(abort) => Err(Failure::Aborted(abort)),
                Ok(ended) => ended.map_err(Failure::Script),
            }
        }
    }

    /// Makes of a call what is wanted of it: its result, or its error with a text. This may call metamethods of the script.
    fn finish<T>(
        &self,
        ended: mlua::Result<(bool, LuaValue)>,
        finish: impl FnOnce(&World, &LuaValue) -> mlua::Result<T>,
    ) -> Result<T, ScriptError> {
        let world = &*self.world;
        let of_error = |error: &mlua::Error| {
            if raised::is_out_of_memory(&LuaValue::Error(Box::new(error.clone()))) {
                world.meter.exhaust();
            }
            ScriptError::of_error(world, error)
        };
        match ended {
            Err(error) => Err(of_error(&error)),
            Ok((true, result)) => finish(world, &result).map_err(|it| of_error(&it)),
            Ok((false, record)) => {
                if raised::is_record_out_of_memory(&record) {
                    world.meter.exhaust();
                }
                Err(ScriptError::of_record(world, &record))
            }
        }
    }
}

/// The result of a handler.
fn result(world: &World, value: &LuaValue) -> mlua::Result<Ended> {
    let read = world.read_kept(value, None).map_err(refused)?;
    Ok(Ended::Returned((!read.is_null()).then_some(read)))
}

/// The result of an index function: its keys need not be texts.
fn contribution(world: &World, value: &LuaValue) -> mlua::Result<Ended> {
    match world.read_keyed(value).map_err(refused)? {
        Some(entries) => Ok(Ended::Keyed(entries)),
        None => result(world, value),
    }
}

/// The result of a function that is asked for data.
fn data(world: &World, value: &LuaValue) -> mlua::Result<Value> {
    world.read_kept(value, None).map_err(refused)
}

#[expect(clippy::needless_pass_by_value, reason = "the shape of a mapping of errors")]
fn refused(refused: Refused) -> mlua::Error {
    mlua::Error::runtime(refused.at("the result"))
}

/// The truth of the language: everything but nil and false.
#[expect(clippy::unnecessary_wraps, reason = "one of several ways to finish a call")]
fn is_true(_: &World, answer: &LuaValue) -> mlua::Result<bool> {
    Ok(!matches!(answer, LuaValue::Nil | LuaValue::Boolean(false)))
}

/// Why a call has no result.
enum Failure {
    Script(ScriptError),
    Aborted(Abort),
}
