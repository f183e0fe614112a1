//! Sub-handlers of a running change handler: its script declares and orders them, the reactor runs them.
//!
//! A script never runs a sub-handler itself. It orders, and waits for the answer; the reactor, which waits for the handler,
//! runs what is ordered in the meantime. So nothing of the reactor happens on a script's thread.

use std::sync::{Arc, atomic::AtomicUsize};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{mpsc, oneshot};

use crate::logic::{
    declare::{self, Declaration, DeclareError, Execution},
    handler::Handler,
    lifecycle::Chooser,
    outcome::Raised,
};

/// The most sub-handlers of one attempt: far more than an object can keep records of.
const CHILDREN_MAX: usize = 10_000;

/// The sub-handlers of one attempt of a handler, as its script sees them. Clones share them.
#[derive(Clone, Debug)]
pub struct Children(Arc<Family>);

#[derive(Debug)]
struct Family {
    parent: Arc<Handler>,
    declared: Arc<Mutex<Vec<Arc<Handler>>>>,
    /// Bytes of the data in their declarations.
    bytes: AtomicUsize,
    orders: mpsc::Sender<Order>,
}

/// The same as the reactor sees them.
#[derive(Debug)]
pub struct Orders {
    declared: Arc<Mutex<Vec<Arc<Handler>>>>,
    received: mpsc::Receiver<Order>,
    /// Keeps the script, of which the sub-handlers are.
    _parent: Arc<Handler>,
}

/// What a script wants to be run now.
#[derive(Debug)]
pub struct Order {
    /// These, or `None`: those that were declared.
    pub passed: Option<Vec<Arc<Handler>>>,
    /// Which of them first; by default as in the parent's own cycle.
    pub chooser: Option<Chooser>,
    answer: oneshot::Sender<Result<(), Raised>>,
}

impl Children {
    /// For one attempt of this handler. No sub-handlers are declared yet.
    pub fn of(parent: Arc<Handler>) -> (Children, Orders) {
        // A script waits for each answer, so that one order at a time is on its way.
        let (sender, receiver) = mpsc::channel(1);
        let declared = Arc::<Mutex<_>>::default();
        let inside = parent.for_scripts();
        let orders =
            Orders { declared: Arc::clone(&declared), received: receiver, _parent: parent };
        let bytes = AtomicUsize::default();
        (Children(Arc::new(Family { parent: inside, declared, bytes, orders: sender })), orders)
    }

    /// Declares a sub-handler.
    ///
    /// # Errors
    /// When the declaration is refused, its id is taken, or there are too many already.
    pub fn declare(&self, declaration: Declaration) -> Result<(), DeclareError> {
        check_room(lock(&self.0.declared).len())?;
        let handler = self.make(declaration)?;
        let mut declared = lock(&self.0.declared);
        check_unique(&declared, &handler)?;
        declared.push(handler);
        Ok(())
    }

    /// Runs sub-handlers now.
    ///
    /// # Errors
    /// What the script is to raise: a declaration is refused, or they are not finished.
    pub async fn execute(&self, execution: Execution) -> Result<(), ExecuteError> {
        let Execution { passed, chooser } = execution;
        let passed = passed.map(|it| self.make_all(it)).transpose()?;
        let (answer, answered) = oneshot::channel();
        let order = Order { passed, chooser, answer };
        // Nobody answers for a handler that has ended; its order is dropped then, and this closes the answer.
        drop(self.0.orders.send(order).await);
        let answer = answered.await.unwrap_or_else(|_| Err(gone(&self.0.parent)));
        answer.map_err(ExecuteError::Raised)
    }

    /// Sub-handlers that are not declared, but passed to an execution.
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
        declaration.admit(&self.0.bytes)?;
        declare::declare_sub(declaration, &self.0.parent).map(Arc::new)
    }
}

fn check_room(present: usize) -> Result<(), DeclareError> {
    if present < CHILDREN_MAX {
        return Ok(());
    }
    Err(format!("this handler has more than {CHILDREN_MAX} sub-handlers").into())
}

/// Why sub-handlers cannot be run, or are not finished.
#[derive(Clone, Debug)]
pub enum ExecuteError {
    /// They are declared wrongly.
    Declared(DeclareError),
    /// They were run.
    Raised(Raised),
}

impl From<DeclareError> for ExecuteError {
    fn from(error: DeclareError) -> Self {
        ExecuteError::Declared(error)
    }
}

impl Orders {
    /// The next order; `None` when nobody can order any more.
    pub async fn next(&mut self) -> Option<Order> {
        self.received.recv().await
    }

    /// The sub-handlers that are declared so far.
    pub fn declared(&self) -> Vec<Arc<Handler>> {
        lock(&self.declared).clone()
    }
}

impl Drop for Orders {
    /// A sub-handler can hold on to the `ctx` of its parent, which knows the sub-handlers: they would keep each other for ever.
    fn drop(&mut self) {
        let declared = std::mem::take(&mut *lock(&self.declared));
        // When the lock is open again.
        drop(declared);
    }
}

impl Order {
    /// Tells the script how it went. A script that is gone does not mind.
    pub fn answer(self, result: Result<(), Raised>) {
        drop(self.answer.send(result));
    }
}

fn lock(declared: &Mutex<Vec<Arc<Handler>>>) -> MutexGuard<'_, Vec<Arc<Handler>>> {
    declared.lock()
}

/// Progress is kept under the id.
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
