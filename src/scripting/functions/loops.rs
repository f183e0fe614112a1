//! How much a script may loop over at the same time.

use std::sync::Arc;

use futures::{StreamExt as _, stream};

use crate::scripting::functions::types::{Failure, Flow};

/// The most flows of one script: each is a connection to the server. At the bound another one is an error.
const OPEN_MAX: usize = 1000;

/// What a script loops over: each flow has a clone.
#[derive(Debug, Default)]
pub(super) struct Loops(Arc<()>);

impl Loops {
    /// A flow that counts until it is dropped.
    ///
    /// # Errors
    /// There are too many; or those of making it.
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
