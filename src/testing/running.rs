//! A running operator in a test.

use std::time::Duration;

use tokio::{
    runtime::Builder,
    sync::{mpsc, oneshot},
    task::{JoinSet, LocalSet},
    time,
};
use tokio_util::sync::CancellationToken;

use crate::logic::generation::{Changes, Generation};
use crate::ports::{Candidate, Rejection};
use crate::reactor::{self, Operator, OperatorFailure};
use crate::telemetry::Health;

/// The operator's response to a new generation of scripts.
pub type ReloadResult = Result<Changes, Rejection>;

/// A running operator. Dropping it ends it at once, like `kill -9`.
pub struct RunningOperator {
    /// The health of its parts.
    pub health: Health,
    /// Receives new generations of its scripts.
    pub reloads: mpsc::Sender<Candidate>,
    stop: CancellationToken,
    task: JoinSet<Result<(), OperatorFailure>>,
}

impl RunningOperator {
    /// Starts an operator as a task.
    pub fn start(operator: Operator) -> Self {
        RunningOperator::start_reporting(operator, |_| {})
    }

    /// Starts an operator, and calls a function when it fails.
    pub fn start_reporting(
        operator: Operator,
        report: impl FnOnce(&OperatorFailure) + Send + 'static,
    ) -> Self {
        let (reloads, candidates) = mpsc::channel(1);
        let operator = Operator { reloads: Some(candidates), ..operator };
        let (health, stop) = (operator.health.clone(), CancellationToken::new());
        let mut task = JoinSet::new();
        let run = reactor::run(operator, stop.clone());
        task.spawn(async move { run.await.inspect_err(report) });
        RunningOperator { health, reloads, stop, task }
    }

    /// Requests a stop, and does not wait.
    pub fn cancel(&self) {
        self.stop.cancel();
    }

    /// Requests a stop, and waits for the end of the operator. Panics if it fails.
    pub async fn stop(self) {
        self.cancel();
        self.end().await.expect("the operator succeeds");
    }

    /// Waits until the operator has ended, by itself or after [`RunningOperator::cancel`].
    pub async fn end(mut self) -> Result<(), OperatorFailure> {
        let ended = self.task.join_next().await.expect("one task");
        ended.expect("the operator does not panic")
    }

    /// Sends a new generation of scripts. Returns the receiver of the response.
    pub async fn propose(&self, generation: Generation) -> oneshot::Receiver<ReloadResult> {
        let (verdict, answer) = oneshot::channel();
        let candidate = Candidate { generation, verdict, withdrawn: CancellationToken::new() };
        self.reloads.send(candidate).await.expect("the operator runs");
        answer
    }

    /// Sends a new generation of scripts, and waits for the response.
    pub async fn reload(&self, generation: Generation) -> ReloadResult {
        self.propose(generation).await.await.expect("an answer")
    }
}

/// Runs a test on one thread with a paused clock: time passes only while everything waits. Tasks that are not `Send`, such as the
/// scripts of [`crate::scripting::Placement::CurrentRuntime`], can be spawned in it.
pub fn run_paused<T>(test: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build();
    LocalSet::new().block_on(&runtime.expect("a runtime"), test)
}

/// Waits for this many seconds.
pub async fn pass(seconds: u64) {
    time::sleep(Duration::from_secs(seconds)).await;
}
