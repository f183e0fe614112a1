//! One Lua VM with one script in it.

use std::{
    cell::{OnceCell, RefCell},
    future::Future,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures::FutureExt as _;
use kopf_luau::{
    levels::Levels,
    push::{Shapes, Style},
    pushed::Pushed,
    slim::Slimmer,
};
use mlua::{
    AnyUserData, Function as LuaFunction, IntoLuaMulti, Lua, LuaOptions, MultiValue, StdLib,
    Thread, Value as LuaValue,
    chunk::{ChunkMode, Compiler},
    state::{GcIncParams, GcMode},
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    host_table,
    modules::LuaModules,
    raised,
    running::{CallFailure, CallPurpose, RunningCall},
    streams::Streams,
    views::CtxView,
    watchdog::{Abort, Watchdog},
    world::World,
};
use crate::call::Invocation;
use crate::heap;
use crate::logic::{
    change::filters::Question,
    handlers::{
        function::Function,
        handler::Kind,
        outcome::{CallEnd, Raised},
    },
    object::resource::Resource,
};
use crate::scripting::{
    LoadError,
    actor::{
        ActorVm,
        functions::Functions,
        of_lost_vm,
        script::{ActorScript, Declarations},
    },
    functions::{Surroundings, declaring::TopLevel},
    handles::{Border, ctx},
    inline::{InlineSlice, KEPT_MAX},
    values::{
        errors::{ScriptError, ScriptSources},
        refused::{Refused, SizeLimit},
    },
};

/// Collects early: Luau does not collect when it reaches the memory limit, so garbage would count as full memory.
const GC_GOAL: i32 = 120;
/// The work per allocation that keeps up with [`GC_GOAL`].
const GC_STEP_MULTIPLIER: i32 = 400;

/// Replaced built-ins that compiled code would otherwise call directly. For loops over `next, t`, see `set_mutable_globals`.
const REPLACED: [&str; 7] =
    ["pcall", "rawget", "rawlen", "setmetatable", "table.unpack", "unpack", "xpcall"];

/// Maximum memory of a VM in bytes when a call begins inline: no single step is much longer than using all of it.
const INLINE_MEMORY_MAX: usize = 2 << 20;

/// Maximum number of coroutines kept for reuse: about as many as short calls run at once.
const SPARE_MAX: usize = 16;

/// A VM whose script is loaded.
pub(super) struct Vm {
    /// First: it must be dropped before the VM.
    watchdog: Watchdog,
    /// Coroutines of calls that have returned, for reuse.
    spare: RefCell<Vec<Thread>>,
    slimmer: Slimmer,
    world: Rc<World>,
    lua: Lua,
}

impl ActorVm for Vm {
    const THREAD: &'static str = "lua";

    type Call = HandlerCall;

    async fn load(
        script: &ActorScript,
        stuck: CancellationToken,
    ) -> Result<(Rc<Vm>, Declarations), LoadError> {
        let source = &script.source;
        let vm = Vm::new(script, stuck).map(Rc::new).map_err(|error| LoadError {
            file: source.name.clone(),
            line: None,
            columns: None,
            source_line: None,
            message: format!("cannot create the Lua VM: {error}"),
            hint: None,
        })?;
        let told = |error: ScriptError| raised::load_error(&vm.world, error, &source.name);
        let chunk = vm.lua.load(source.text.as_str()).set_name(format!("@{}", source.name));
        let chunk = chunk.set_mode(ChunkMode::Text).into_function();
        let chunk = chunk.map_err(|it| told(raised::of_error(&vm.world, &it)))?;
        let purpose = Simply::new(MultiValue::new(), |_, _| Ok(()));
        let ended = match RunningCall::new(Rc::clone(&vm), chunk, None, purpose) {
            Ok(running) => running.await,
            Err(error) => Err(CallFailure::Script(raised::of_error(&vm.world, &error))),
        };
        match ended {
            Err(CallFailure::Script(error)) => return Err(told(error)),
            Err(CallFailure::Aborted(abort)) => {
                let error = mlua::Error::runtime(raised::of_abort(&vm.world.limits, abort));
                return Err(told(raised::of_error(&vm.world, &error)));
            }
            Ok(()) => {}
        }
        source.modules.settle();
        let declared = vm.world.top_level.finish();
        Ok((vm, declared))
    }

    fn call(self: &Rc<Self>, invocation: Arc<Invocation>) -> HandlerCall {
        let slot = invocation.handler.function.slot;
        match self.run(slot, Some(invocation), Handling) {
            Ok(running) => HandlerCall::Runs(running),
            Err(raised) => HandlerCall::Failed(Some(Box::new(raised))),
        }
    }

    async fn ask(
        self: &Rc<Self>,
        question: Question,
        invocation: Arc<Invocation>,
    ) -> Result<bool, Raised> {
        let about = question.about.as_ref().map(|it| it.clone().unwrap_or_default());
        self.ask_about(question.function, about, invocation, is_true).await
    }

    async fn choose(
        self: &Rc<Self>,
        function: Function,
        resource: Arc<Resource>,
    ) -> Result<bool, Raised> {
        let record = self.world.push(&self.lua, &ctx::record(&resource), Style::Frozen);
        self.run_function(function.slot, record, None, is_true).await
    }

    async fn compute(
        self: &Rc<Self>,
        function: Function,
        about: Option<Value>,
        invocation: Arc<Invocation>,
    ) -> Result<Value, Raised> {
        self.ask_about(function, about, invocation, data).await
    }

    async fn transform(self: &Rc<Self>, function: Function, body: Value) -> Result<Value, Raised> {
        let copy = self.world.push(&self.lua, &body, Style::Mutable);
        let copy = copy.map_err(|it| self.raised(&it))?;
        let changed = copy.clone();
        let copy = Ok(copy);
        let finish = move |world: &World, _: &LuaValue| {
            let changed = world.read(&changed, Some(&body));
            changed.map_err(|it| mlua::Error::runtime(it.at("body")))
        };
        self.run_function(function.slot, copy, None, finish).await
    }

    fn is_exhausted(&self) -> bool {
        self.world.meter.is_exhausted()
    }

    fn tidy(&self) {
        // Views hold references to values: the first collection drops those views, and the second one the values.
        if self.lua.gc_collect().and_then(|()| self.lua.gc_collect()).is_ok() {
            self.world.leftovers.borrow_mut().look();
            heap::give_back();
        }
    }

    fn set_inline(&self, slice: Option<InlineSlice>) -> Option<InlineSlice> {
        self.watchdog.meter().set_inline(slice)
    }

    fn is_small(&self) -> bool {
        !self.is_exhausted()
            && self.used_memory() <= INLINE_MEMORY_MAX
            && self.world.memos.held() <= KEPT_MAX
    }

    fn used_memory(&self) -> usize {
        self.lua.used_memory()
    }
}

impl Vm {
    fn new(script: &ActorScript, stuck: CancellationToken) -> mlua::Result<Vm> {
        let ActorScript { source, limits, .. } = script;
        let lua = Lua::new_with(StdLib::ALL_SAFE, LuaOptions::new())?;
        lua.set_memory_limit(limits.sandbox.memory_limit)?;
        let gc = GcIncParams::default().goal(GC_GOAL).step_multiplier(GC_STEP_MULTIPLIER);
        lua.gc_set_mode(GcMode::Incremental(gc));
        // Without this, compiled code bypasses the replacements of these built-ins.
        let compiler = Compiler::new().set_disabled_builtins(REPLACED);
        lua.set_compiler(compiler.set_mutable_globals(["next"]));
        let sources = ScriptSources::default();
        sources.insert(&source.name, source.text.as_str().into());
        let limits = Rc::new(limits.clone());
        let watchdog = Watchdog::of(&lua, &limits, stuck)?;
        let shapes = Shapes::new(&lua, host_table::compact)?;
        let world = Rc::new(World {
            script: script.id,
            meter: Rc::clone(watchdog.meter()),
            levels: Levels::new(&lua, &shapes, limits.sandbox.memory_limit)?,
            limits,
            shapes,
            pushed: Pushed::new(&lua)?,
            format: OnceCell::new(),
            traceback: OnceCell::new(),
            functions: Functions::new(Arc::clone(&script.lent)),
            top_level: TopLevel::default(),
            present: RefCell::default(),
            wait: RefCell::default(),
            wait_method: OnceCell::new(),
            streams: Streams::default(),
            leftovers: RefCell::default(),
            border: Border::of_lua(script.limits.sandbox.memory_limit),
            memos: Arc::clone(&script.memos),
            surroundings: Surroundings::of(
                &script.terms,
                &source.name,
                source.modules.files_of(&source.name),
            ),
            pace: Watchdog::pace(watchdog.meter()),
            sources,
        });
        lua.set_app_data(Rc::clone(&world));
        host_table::install(&lua, LuaModules::of(source))?;
        let (spare, slimmer) = (RefCell::default(), Slimmer::of(&lua)?);
        Ok(Vm { watchdog, spare, slimmer, world, lua })
    }

    /// Calls a function with a value, if there is one, and `ctx`.
    async fn ask_about<T>(
        self: &Rc<Self>,
        function: Function,
        about: Option<Value>,
        invocation: Arc<Invocation>,
        finish: fn(&World, &LuaValue) -> mlua::Result<T>,
    ) -> Result<T, Raised> {
        let about = about.map(|it| self.world.push(&self.lua, &it, Style::Frozen)).transpose();
        let ctx = CtxView::new(Arc::clone(&invocation));
        let arguments = about.and_then(|about| match about {
            Some(about) => (about, ctx).into_lua_multi(&self.lua),
            None => ctx.into_lua_multi(&self.lua),
        });
        self.run_function(function.slot, arguments, Some(invocation), finish).await
    }

    fn raised(&self, error: &mlua::Error) -> Raised {
        if matches!(error, mlua::Error::MemoryError(_)) {
            self.world.meter.exhaust();
            return raised::aborted(&self.world.limits, Abort::Memory);
        }
        raised::of_error(&self.world, error).into_raised(&self.world.sources)
    }

    /// Calls the function in this slot with these arguments, unless creating them failed.
    async fn run_function<T>(
        self: &Rc<Self>,
        slot: u32,
        arguments: mlua::Result<impl IntoLuaMulti>,
        present: Option<Arc<Invocation>>,
        finish: impl FnOnce(&World, &LuaValue) -> mlua::Result<T> + Unpin,
    ) -> Result<T, Raised> {
        let arguments = arguments.and_then(|it| it.into_lua_multi(&self.lua));
        let arguments = arguments.map_err(|it| self.raised(&it))?;
        let running = self.run(slot, present, Simply::new(arguments, finish))?;
        running.await.map_err(|it| self.failed(it))
    }

    /// Creates a call of the function in this slot.
    fn run<P: CallPurpose>(
        self: &Rc<Self>,
        slot: u32,
        present: Option<Arc<Invocation>>,
        purpose: P,
    ) -> Result<RunningCall<P>, Raised> {
        let function = self.world.functions.get(slot).ok_or_else(of_lost_vm)?;
        let running = RunningCall::new(Rc::clone(self), function, present, purpose);
        running.map_err(|it| self.raised(&it))
    }

    fn failed(&self, failure: CallFailure) -> Raised {
        match failure {
            CallFailure::Script(error) => error.into_raised(&self.world.sources),
            CallFailure::Aborted(abort) => raised::aborted(&self.world.limits, abort),
        }
    }

    /// Returns a coroutine for a call of this function: a spare one, or a new one, as for a call that may wait for long.
    pub(super) fn coroutine(
        &self,
        function: LuaFunction,
        may_wait_long: bool,
    ) -> mlua::Result<Thread> {
        let spare = if may_wait_long { None } else { self.spare.borrow_mut().pop() };
        match spare {
            Some(spare) => spare.reset(function).map(|()| spare),
            None => self.lua.create_thread(function),
        }
    }

    /// Keeps the coroutine of a call that has returned. A new one for each call would be most of the garbage of short calls.
    pub(super) fn spare(&self, coroutine: Thread) {
        let mut spare = self.spare.borrow_mut();
        if spare.len() < SPARE_MAX {
            spare.push(coroutine);
        }
    }

    /// Shrinks the coroutine of a call that is about to wait.
    pub(super) fn shrink(&self, coroutine: &Thread) {
        if self.slimmer.shrink(&self.lua, coroutine).is_err() {
            self.world.meter.exhaust();
        }
    }

    /// Records the end of a call. Returns whether the script keeps too much of calls that have ended.
    pub(super) fn ended(&self, call: Option<&Arc<Invocation>>) -> bool {
        let Some(call) = call else { return false };
        let limit = self.world.limits.sandbox.memory_limit;
        let mut leftovers = self.world.leftovers.borrow_mut();
        leftovers.add(call);
        if !leftovers.is_due(limit) || leftovers.look() <= limit / 2 {
            return false;
        }
        // The collector counts a handle as small, whatever it keeps alive. Collecting may drop values that borrow `leftovers`.
        drop(leftovers);
        let collected = self.lua.gc_collect();
        collected.is_err() || self.world.leftovers.borrow_mut().look() > limit
    }

    /// Returns the Lua state.
    pub(super) fn lua(&self) -> &Lua {
        &self.lua
    }

    /// Returns the host's part of the VM.
    pub(super) fn world(&self) -> &World {
        &self.world
    }

    /// Returns the watchdog of the VM.
    pub(super) fn watchdog(&self) -> &Watchdog {
        &self.watchdog
    }
}

/// The call of a handler. A separate, small future, because very many may wait.
pub(super) enum HandlerCall {
    /// The call has begun.
    Runs(RunningCall<Handling>),
    /// It could not begin; `None` once the error is returned.
    Failed(Option<Box<Raised>>),
}

impl Future for HandlerCall {
    type Output = CallEnd;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CallEnd> {
        match self.get_mut() {
            HandlerCall::Runs(running) => {
                let ended = ready!(running.poll_unpin(cx));
                let failed = |failure| CallEnd::Raised(running.vm().failed(failure));
                Poll::Ready(ended.unwrap_or_else(failed))
            }
            HandlerCall::Failed(raised) => {
                let raised = raised.take().map_or_else(of_lost_vm, |it| *it);
                Poll::Ready(CallEnd::Raised(raised))
            }
        }
    }
}

/// The arguments and the result of a handler's function.
pub(super) struct Handling;

impl CallPurpose for Handling {
    type Arguments = Option<AnyUserData>;
    type Result = CallEnd;

    fn arguments(
        &mut self,
        lua: &Lua,
        present: Option<&Arc<Invocation>>,
    ) -> mlua::Result<Option<AnyUserData>> {
        present.map(|it| lua.create_userdata(CtxView::new(Arc::clone(it)))).transpose()
    }

    fn finish(&mut self, world: &World, value: &LuaValue) -> mlua::Result<CallEnd> {
        let present = world.present.borrow().clone();
        let is_index = present.as_ref().is_some_and(|it| it.handler.kind == Kind::Index);
        let ended =
            if is_index { contribution(world, value)? } else { returned(data(world, value)?) };
        if let Some(call) = present {
            world.memos.admit_result(&call, &ended).map_err(mlua::Error::runtime)?;
        }
        Ok(ended)
    }
}

/// A call with ready arguments, whose result is passed to a closure.
struct Simply<F> {
    arguments: MultiValue,
    /// `None` after the call.
    finish: Option<F>,
}

impl<T, F: FnOnce(&World, &LuaValue) -> mlua::Result<T>> Simply<F> {
    fn new(arguments: MultiValue, finish: F) -> Self {
        Simply { arguments, finish: Some(finish) }
    }
}

impl<T, F: FnOnce(&World, &LuaValue) -> mlua::Result<T> + Unpin> CallPurpose for Simply<F> {
    type Arguments = MultiValue;
    type Result = T;

    fn arguments(&mut self, _: &Lua, _: Option<&Arc<Invocation>>) -> mlua::Result<MultiValue> {
        Ok(std::mem::take(&mut self.arguments))
    }

    fn finish(&mut self, world: &World, value: &LuaValue) -> mlua::Result<T> {
        let finish = self.finish.take();
        // A call returns only once.
        finish.ok_or_else(|| mlua::Error::runtime("the call has returned"))?(world, value)
    }
}

/// Returns the end of a call with this result.
fn returned(result: Value) -> CallEnd {
    CallEnd::Returned((!result.is_null()).then_some(result))
}

/// Reads the result of an index function, whose keys need not be strings.
fn contribution(world: &World, value: &LuaValue) -> mlua::Result<CallEnd> {
    let entries = world.read_keyed(value).map_err(refused)?;
    entries.map_or_else(|| data(world, value).map(returned), |it| Ok(CallEnd::Keyed(it)))
}

/// Reads the result of a handler, or of a function that computes data.
fn data(world: &World, value: &LuaValue) -> mlua::Result<Value> {
    let kind = world.present.borrow().as_ref().map(|it| it.handler.kind);
    let room = SizeLimit::of_result(kind, world.limits.sandbox.result_size);
    world.read_kept(value, None, (room, 0)).map_err(refused)
}

#[expect(clippy::needless_pass_by_value, reason = "the shape of a mapping of errors")]
fn refused(refused: Refused) -> mlua::Error {
    mlua::Error::runtime(refused.at("the result"))
}

/// Reads a truth value: everything but nil and false is true.
#[expect(clippy::unnecessary_wraps, reason = "one of several ways to finish a call")]
fn is_true(_: &World, answer: &LuaValue) -> mlua::Result<bool> {
    Ok(!matches!(answer, LuaValue::Nil | LuaValue::Boolean(false)))
}
