//! Sub-handlers of a running change handler: the script declares them and requests their execution, the reactor runs them.
//!
//! A script never runs a sub-handler itself. It sends an order and waits for the result; the reactor, which waits for the parent handler,
//! runs the ordered sub-handlers in the meantime. So no reactor code runs on a script's thread.

use std::sync::Arc;

use futures::{SinkExt as _, StreamExt as _, channel::mpsc};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use crate::logic::handlers::{
    declare::{self, Declaration, DeclareError, DeclaredSize, SubHandlerExecution},
    handler::Handler,
    lifecycle::Chooser,
    outcome::Raised,
};

/// Maximum number of sub-handlers of one attempt, including those below them. The annotations of an object, 256 KiB, have room for the
/// records of about as many.
pub const CHILDREN_MAX: usize = 1_000;

/// The sub-handlers of one attempt of a handler, as its script sees them. Clones share them.
#[derive(Clone, Debug)]
pub struct Children(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    parent: Arc<Handler>,
    declared: Arc<Mutex<Vec<Arc<Handler>>>>,
    /// The data in their declarations.
    size: DeclaredSize,
    orders: mpsc::Sender<Order>,
}

/// The sub-handlers of one attempt, as the reactor sees them.
#[derive(Debug)]
pub struct Orders {
    declared: Arc<Mutex<Vec<Arc<Handler>>>>,
    received: mpsc::Receiver<Order>,
    /// Keeps the script of the sub-handlers loaded.
    _parent: Arc<Handler>,
}

/// A script's request to run sub-handlers now.
#[derive(Debug)]
pub struct Order {
    /// The sub-handlers to run; `None` runs the declared ones.
    pub passed: Option<Vec<Arc<Handler>>>,
    /// Chooses which of them run first; by default, as in the parent's own cycle.
    pub chooser: Option<Chooser>,
    answer: oneshot::Sender<Result<(), Raised>>,
}

impl Children {
    /// Returns both ends for one attempt of this handler. No sub-handlers are declared yet.
    pub fn of(parent: Arc<Handler>) -> (Children, Orders) {
        // A script waits for each result, so at most one order is pending. The channel of tokio allocates more than a kilobyte at once.
        let (sender, receiver) = mpsc::channel(1);
        let declared = Arc::<Mutex<_>>::default();
        let inside = parent.for_scripts();
        let orders =
            Orders { declared: Arc::clone(&declared), received: receiver, _parent: parent };
        let size = DeclaredSize::default();
        (Children(Arc::new(Shared { parent: inside, declared, size, orders: sender })), orders)
    }

    /// Declares a sub-handler.
    ///
    /// # Errors
    /// If the declaration is invalid, its id is taken, or the limit on sub-handlers is reached.
    pub fn declare(&self, declaration: Declaration) -> Result<(), DeclareError> {
        check_room(lock(&self.0.declared).len())?;
        let handler = self.make(declaration)?;
        let mut declared = lock(&self.0.declared);
        check_unique(&declared, &handler)?;
        declared.push(handler);
        Ok(())
    }

    /// Runs sub-handlers now and waits for them.
    ///
    /// # Errors
    /// The error to raise in the script: a declaration is invalid, or the sub-handlers have not finished.
    pub async fn execute(&self, execution: SubHandlerExecution) -> Result<(), ExecuteError> {
        let SubHandlerExecution { passed, chooser } = execution;
        let passed = passed.map(|it| self.make_all(it)).transpose()?;
        let (answer, answered) = oneshot::channel();
        let order = Order { passed, chooser, answer };
        // Orders of a handler that has ended get no result: the order is dropped, which closes the channel of the result.
        drop(self.0.orders.clone().send(order).await);
        let answer = answered.await.unwrap_or_else(|_| Err(gone(&self.0.parent)));
        answer.map_err(ExecuteError::Raised)
    }

    /// Builds sub-handlers that are not declared but passed to an execution.
    fn make_all(&self, declarations: Vec<Declaration>) -> Result<Vec<Arc<Handler>>, DeclareError> {
        let mut all = Vec::new();
        for declaration in declarations {
            check_room(all.len())?;
            let handler = self.make(declaration)?;
            check_unique(&all, &handler)?;
            check_unique(&lock(&self.0.declared), &handler)?;
            all.push(handler);
        }
        Ok(all)
    }

    fn make(&self, declaration: Declaration) -> Result<Arc<Handler>, DeclareError> {
        declaration.admit(&self.0.size)?;
        declare::declare_sub(declaration, &self.0.parent).map(Arc::new)
    }
}

fn check_room(present: usize) -> Result<(), DeclareError> {
    if present < CHILDREN_MAX {
        return Ok(());
    }
    Err(DeclareError {
        message: too_many_children(),
        hint: Some("handle several items in each of them".into()),
    })
}

/// Returns the error of too many sub-handlers.
pub fn too_many_children() -> String {
    format!("this handler has more than {CHILDREN_MAX} sub-handlers, including those below them")
}

/// The reason why sub-handlers could not run, or have not finished.
#[derive(Clone, Debug)]
pub enum ExecuteError {
    /// A declaration is invalid.
    Declared(DeclareError),
    /// The sub-handlers ran, and this must be raised in the script.
    Raised(Raised),
}

impl From<DeclareError> for ExecuteError {
    fn from(error: DeclareError) -> Self {
        ExecuteError::Declared(error)
    }
}

impl Orders {
    /// Waits for the next order; returns `None` when the script can send no more orders.
    pub async fn next(&mut self) -> Option<Order> {
        self.received.next().await
    }

    /// Returns the sub-handlers declared so far.
    pub fn declared(&self) -> Vec<Arc<Handler>> {
        lock(&self.declared).clone()
    }
}

impl Drop for Orders {
    /// Breaks a cycle: a sub-handler can hold its parent's `ctx`, which in turn holds the sub-handlers.
    fn drop(&mut self) {
        let declared = std::mem::take(&mut *lock(&self.declared));
        // Dropped after the lock is released.
        drop(declared);
    }
}

impl Order {
    /// Sends the result to the script. Does nothing if the script has stopped waiting.
    pub fn answer(self, result: Result<(), Raised>) {
        drop(self.answer.send(result));
    }
}

fn lock(declared: &Mutex<Vec<Arc<Handler>>>) -> MutexGuard<'_, Vec<Arc<Handler>>> {
    declared.lock()
}

/// Rejects a second sub-handler with the same id: progress is stored under the id.
fn check_unique(others: &[Arc<Handler>], handler: &Handler) -> Result<(), DeclareError> {
    if !others.iter().any(|it| it.id == handler.id) {
        return Ok(());
    }
    Err(DeclareError {
        message: format!("two sub-handlers have the id '{}'", handler.id),
        hint: Some("give one of them another `id`".into()),
    })
}

fn gone(parent: &Handler) -> Raised {
    Raised::of_host(format!("{parent} has ended: its sub-handlers cannot be run any more"))
}
