//! Limits how many loops over streams a script may have at the same time.

use std::sync::Arc;

use futures::{StreamExt as _, stream};

use crate::scripting::functions::outcome::{Failure, Flow};

/// Maximum number of streams of one script: each is a connection to the server. Beyond the limit, another one is an error.
const OPEN_MAX: usize = 1000;

/// The open streams of a script: each has a clone.
#[derive(Debug, Default)]
pub(super) struct Loops(Arc<()>);

impl Loops {
    /// Opens a stream that counts until it is dropped.
    ///
    /// # Errors
    /// There are too many, or it cannot be opened.
    pub(super) fn open(
        &self,
        make: impl FnOnce() -> Result<Flow, Failure>,
    ) -> Result<Flow, Failure> {
        if Arc::strong_count(&self.0) > OPEN_MAX {
            return Err(Failure::Plain(format!(
                "{OPEN_MAX} loops and waits of this script are open, each with a connection to the server: watch many \
                 objects in one loop"
            )));
        }
        let state = (make()?, Arc::clone(&self.0));
        let counted = stream::unfold(state, |(mut flow, one)| async move {
            let item = flow.next().await?;
            Some((item, (flow, one)))
        });
        Ok(counted.boxed())
    }
}
