//! Streams, which scripts loop over, such as `for event in kube.watch("pods")`: the loop waits for each value. A stream ends when the loop
//! is left.

use std::sync::Arc;

use futures::StreamExt as _;
use parking_lot::Mutex;
use rhai::{Dynamic, Engine};

use super::{RhaiResult, library::ended};
use crate::scripting::{blocking::control, functions::outcome::Flow};

/// A stream of values. Clones share it, because Rhai copies what it loops over.
#[derive(Clone)]
pub(super) struct Stream {
    flow: Shared,
    /// The function that has returned it, for messages.
    place: Arc<str>,
}

/// `None` while a loop waits for the next value, and after the end.
#[derive(Clone)]
struct Shared(Arc<Mutex<Option<Flow>>>);

impl Stream {
    /// Creates a stream of these values.
    pub(super) fn new(flow: Flow, place: &str) -> Self {
        Stream { flow: Shared(Arc::new(Mutex::new(Some(flow)))), place: place.into() }
    }

    fn next(&self) -> Option<RhaiResult> {
        let mut flow = self.flow.take()?;
        let waited = control::wait_for(async move {
            let item = flow.next().await;
            (flow, item)
        });
        let (flow, item) = match waited {
            Ok(waited) => waited,
            Err(error) => return Some(Err(error.into())),
        };
        let Some(item) = item else {
            control::given(|| drop(flow));
            return None;
        };
        if item.is_ok() {
            self.flow.put(flow);
        } else {
            control::given(|| drop(flow));
        }
        let own = ended(&self.place, item.clone());
        control::given(|| drop(item));
        Some(own)
    }
}

impl Shared {
    fn take(&self) -> Option<Flow> {
        self.0.lock().take()
    }

    fn put(&self, flow: Flow) {
        *self.0.lock() = Some(flow);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // The flow is memory of the host. Other clones may still be in use, so only the last one frees it.
        if Arc::strong_count(&self.flow.0) == 1 {
            control::given(|| drop(self.flow.take()));
        }
    }
}

/// The iterator over the values of a stream.
pub(super) struct StreamValues(Stream);

impl Iterator for StreamValues {
    type Item = RhaiResult;

    fn next(&mut self) -> Option<RhaiResult> {
        self.0.next()
    }
}

impl IntoIterator for Stream {
    type Item = RhaiResult;
    type IntoIter = StreamValues;

    fn into_iter(self) -> StreamValues {
        StreamValues(self)
    }
}

/// Registers the loops over streams in an engine.
pub(super) fn register(engine: &mut Engine) {
    engine
        .register_type_with_name::<Stream>("stream")
        .register_iterator_result::<Stream, Dynamic>()
        .register_fn("to_string", |it: Stream| format!("{} (a stream: loop over it)", it.place));
}
