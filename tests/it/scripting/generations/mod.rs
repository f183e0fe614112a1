//! Consecutive generations of scripts, through the public interface of the host: continued and new parts, and that nothing of the old ones
//! stays.

mod keeping;
mod leaks;
mod reusing;
mod threads;

use std::{
    future::Future,
    sync::{Arc, Weak},
};

use kopf::{
    call::{Children, Invocation, Scripts as _, SharedPatch},
    logic::handlers::{
        handler::Handler,
        outcome::{CallEnd, Raised},
    },
    scripting::{LoadError, Placement, Prepared, ScriptHost, Source},
    testing,
};
use serde_json::{Value, json};

pub(crate) use kopf::testing::run_paused;

/// A host and the handlers of its live generation.
struct Stage {
    host: ScriptHost,
    handlers: Vec<Arc<Handler>>,
}

/// A script in both languages; `NAME` is replaced in each.
#[derive(Clone, Copy)]
struct Both {
    lua: &'static str,
    rhai: &'static str,
}

impl Both {
    /// Returns the script as `NAME.lua` and, for the other test, as `NAME.rhai`.
    fn sources(self, name: &str) -> [Source; 2] {
        [
            Source::alone(format!("{name}.lua"), self.lua),
            Source::alone(format!("{name}.rhai"), self.rhai),
        ]
    }
}

impl Stage {
    fn new(placement: Placement) -> Self {
        Stage { host: ScriptHost::new(placement), handlers: Vec::new() }
    }

    async fn prepare(&self, sources: &[Source]) -> Result<Prepared, Vec<LoadError>> {
        self.host.prepare(sources.to_vec()).await
    }

    /// Loads and takes a generation; returns the handlers of the previous one.
    async fn take(&mut self, sources: &[Source]) -> Vec<Arc<Handler>> {
        let prepared = self.prepare(sources).await;
        let Prepared { handlers, scripts, .. } = match prepared {
            Ok(prepared) => prepared,
            Err(errors) => panic!("{}", errors[0]),
        };
        self.host.take(scripts);
        std::mem::replace(&mut self.handlers, handlers.into_iter().map(Arc::new).collect())
    }

    fn handler(&self, id: &str) -> Arc<Handler> {
        let found = self.handlers.iter().find(|it| *it.id == *id);
        Arc::clone(found.expect("a handler of this id"))
    }

    fn call(&self, handler: &Arc<Handler>) -> impl Future<Output = CallEnd> + use<> {
        self.host.call(invocation(handler, None).0)
    }

    async fn result(&self, handler: &Arc<Handler>) -> Value {
        result(self.call(handler).await)
    }
}

/// Returns a call for an object, and its patch.
fn invocation(
    handler: &Arc<Handler>,
    children: Option<Children>,
) -> (Arc<Invocation>, SharedPatch) {
    let patch = SharedPatch::default();
    let body = json!({ "metadata": { "name": "one" } });
    let invocation = testing::creation(handler, body, Arc::clone(&patch));
    (Arc::new(Invocation { children, ..invocation }), patch)
}

fn result(ended: CallEnd) -> Value {
    match ended {
        CallEnd::Returned(result) => result.unwrap_or_default(),
        CallEnd::Keyed(entries) => json!(entries),
        CallEnd::Raised(Raised { message, .. }) => panic!("{message}"),
    }
}

/// Returns whether it is freed as soon as running calls have ended. Threads of Rhai end when they are scheduled.
async fn is_gone<T>(what: Weak<T>) -> bool {
    /// Never reached, unless a thread gets no time at all.
    const ROUNDS_MAX: usize = 1_000_000;
    for _ in 0..ROUNDS_MAX {
        if what.strong_count() == 0 {
            return true;
        }
        tokio::task::yield_now().await;
        std::thread::yield_now();
    }
    false
}
