//! An actor from outside: the queue that leads to it, and the thread or task that it lives on.

use std::{sync::Arc, thread};

use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    ActorVm,
    life::{self, ActorRequest, QUEUE_MAX, Start},
    script::ActorScript,
    shared_vm::SharedVm,
};
use crate::scripting::{Placement, script::priority::lower_priority};

/// Becomes ready when the VM does not respond; shared by all pending requests.
pub(super) type Stuck = Shared<BoxFuture<'static, ()>>;

/// The caller's side of an actor, which ends with the last reference to it.
pub(super) struct Actor<V: ActorVm> {
    /// The queue of the actor.
    pub(super) requests: mpsc::Sender<ActorRequest<V>>,
    /// Cancelled when the VM does not respond.
    pub(super) stuck: CancellationToken,
    /// The same signal as a future, shared by all pending requests.
    pub(super) lost: Stuck,
    /// The VM, for calls that begin inline.
    pub(super) shared: Arc<SharedVm<V>>,
    _home: Home,
}

/// Where the actor runs. Kept so that it has an owner, never joined: the actor ends by itself.
enum Home {
    Thread(#[expect(dead_code, reason = "owned only")] thread::JoinHandle<()>),
    Task(#[expect(dead_code, reason = "owned only")] tokio::task::JoinHandle<()>),
}

impl<V: ActorVm> Actor<V> {
    /// Starts the actor of a script on a thread of its own, or as a task on the current runtime.
    pub(super) fn start(
        script: &Arc<ActorScript>,
        placement: Placement,
        start: Start,
    ) -> std::io::Result<Self> {
        let (requests, queue) = mpsc::channel(QUEUE_MAX);
        let stuck = CancellationToken::new();
        let script = Arc::clone(script);
        let shared = Arc::new(SharedVm::new(script.usage.clone(), placement == Placement::Threads));
        let taken = Arc::clone(&shared);
        let home = match placement {
            // An actor on the caller's own thread cannot be replaced while it blocks, so this token is never observed.
            Placement::CurrentRuntime => {
                let life = life::live(script, taken, start, queue, CancellationToken::new());
                Home::Task(tokio::task::spawn_local(life))
            }
            Placement::Threads => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                let (name, told) = (format!("{}-{}", V::THREAD, script.id.0), stuck.clone());
                let life = move || {
                    lower_priority();
                    let _counted = script.usage.of_thread();
                    runtime.block_on(life::live(script, taken, start, queue, told));
                };
                let thread = thread::Builder::new().name(name).stack_size(STACK);
                Home::Thread(thread.spawn(life)?)
            }
        };
        let lost = stuck.clone().cancelled_owned().boxed().shared();
        Ok(Actor { requests, stuck, lost, shared, _home: home })
    }
}

/// The stack size of a script's thread: several times what the deepest recursion needs, alternating between the VM and host functions.
/// Untouched pages cost nothing.
const STACK: usize = 8 << 20;
