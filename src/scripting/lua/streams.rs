//! Streams that scripts loop over, such as `for event in kube.watch("pods") do`: the loop waits for each value.
//!
//! Lua does not report when a script leaves a loop, so its stream ends when its handle is collected, at the latest with its call.

use std::{
    cell::{Cell, RefCell},
    rc::{Rc, Weak},
    sync::Arc,
};

use futures::StreamExt as _;
use mlua::{AnyUserData, IntoLuaMulti as _, Lua, MultiValue, UserData, Value as LuaValue};

use super::{library::ended, world::World};
use crate::call::Invocation;
use crate::scripting::functions::outcome::Flow;

/// Minimum number of open streams of one VM for a collection, which ends those of loops that were left.
const OPEN_USUALLY: usize = 16;
/// From this number on, every new stream collects garbage first: the maximum of a script is reached.
const OPEN_NEARLY: usize = 1000;

/// A stream; `flow` is `None` while its next value is awaited, and after its end.
struct LuaStream {
    flow: RefCell<Option<Flow>>,
    /// Whether the stream has ended.
    is_over: Cell<bool>,
    /// The call that the stream belongs to.
    owner: Option<Arc<Invocation>>,
    /// The function that opened the stream, for messages.
    place: Rc<str>,
}

impl LuaStream {
    fn end(&self) {
        self.is_over.set(true);
        drop(self.flow.take());
    }
}

/// The stream as a Lua value.
struct Handle(Rc<LuaStream>);

impl UserData for Handle {}

/// The streams of one VM that may be open.
#[derive(Default)]
pub(super) struct Streams {
    open: RefCell<Vec<Weak<LuaStream>>>,
    /// The number of open streams after the last collection.
    kept: Cell<usize>,
}

impl Streams {
    /// Ends the streams of a call.
    pub(super) fn close(&self, owner: Option<&Arc<Invocation>>) {
        let mut streams = self.open.borrow_mut();
        if streams.is_empty() {
            return;
        }
        streams.retain(|it| {
            let Some(stream) = it.upgrade() else { return false };
            let is_own = match (&stream.owner, owner) {
                (Some(one), Some(other)) => Arc::ptr_eq(one, other),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            if is_own {
                stream.end();
            }
            !is_own
        });
    }

    fn count(&self) -> usize {
        let mut streams = self.open.borrow_mut();
        streams.retain(|it| it.upgrade().is_some_and(|it| !it.is_over.get()));
        streams.len()
    }

    /// Returns whether many streams may belong to loops that were left: twice as many are open as after the last collection, so that
    /// hundreds of daemons that all loop do not collect for each; always near the bound of `scripting/functions/loops.rs`.
    fn is_time_to_collect(&self) -> bool {
        self.count() >= OPEN_USUALLY.max(self.kept.get().saturating_mul(2)).min(OPEN_NEARLY)
    }

    fn collected(&self) {
        self.kept.set(self.count());
    }
}

/// Collects garbage before another stream is opened, if many streams may belong to loops that were left.
pub(super) fn collect(lua: &Lua, world: &World) -> mlua::Result<()> {
    if world.streams.is_time_to_collect() {
        lua.gc_collect()?;
        world.streams.collected();
    }
    Ok(())
}

/// Creates the value that a script loops over, from the flow of the function at `place`.
pub(super) fn open(
    lua: &Lua,
    world: &World,
    place: &Rc<str>,
    flow: Flow,
) -> mlua::Result<AnyUserData> {
    let (owner, place) = (world.present.borrow().clone(), Rc::clone(place));
    let stream = Rc::new(LuaStream {
        flow: RefCell::new(Some(flow)),
        is_over: Cell::new(false),
        owner,
        place,
    });
    world.streams.open.borrow_mut().push(Rc::downgrade(&stream));
    lua.create_userdata(Handle(stream))
}

/// Ends a stream that is no longer used.
pub(super) fn finish(handle: &AnyUserData) -> mlua::Result<()> {
    handle.borrow::<Handle>()?.0.end();
    Ok(())
}

/// Makes the running call wait for the next value.
pub(super) fn next(lua: &Lua, handle: &AnyUserData) -> mlua::Result<()> {
    let stream = Rc::clone(&handle.borrow::<Handle>()?.0);
    let world = World::of(lua)?;
    // Weak: a wait that never begins must not keep the VM.
    let lua = lua.weak();
    world.wait_for(async move {
        let flow = stream.flow.take();
        let Some(mut flow) = flow else { return Ok(MultiValue::new()) };
        let item = flow.next().await;
        let Some(lua) = lua.try_upgrade() else { return Ok(MultiValue::new()) };
        let Some(item) = item else {
            stream.end();
            return (LuaValue::Nil, LuaValue::Nil).into_lua_multi(&lua);
        };
        if item.is_ok() && !stream.is_over.get() {
            stream.flow.replace(Some(flow));
        } else {
            stream.end();
        }
        ended(&lua, &*World::of(&lua)?, &stream.place, item)?.into_lua_multi(&lua)
    });
    Ok(())
}
