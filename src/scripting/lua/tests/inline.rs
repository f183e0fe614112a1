//! Calls that begin where they are awaited, and move to the thread of their script.

use std::{sync::Arc, thread};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::call_about;
use crate::call::{Invocation, Memo, Scripts};
use crate::logic::{
    handlers::{
        function::ScriptId,
        handler::Handler,
        outcome::{CallEnd, Raised},
    },
    object::Object,
};
use crate::scripting::{Placement, Source, lua};

/// The thread of the script.
const OWN: &str = "lua-1";

/// A script with handlers, on its own thread.
struct Running(Arc<dyn Scripts>, Vec<Arc<Handler>>, Memo);

impl Running {
    /// Loads a script with one handler for each of these bodies of functions.
    async fn load(bodies: &[&str]) -> Self {
        let declared = |(number, body): (usize, &&str)| {
            format!(
                "kopf.on_create('kopfexamples', {{ id = 'h{number}' }}, function(ctx) {body} end)\n"
            )
        };
        let text = bodies.iter().enumerate().map(declared).collect::<String>();
        let source = Source::alone("handlers.lua", format!("local calls = 0\n{text}"));
        let loaded = lua::load(ScriptId(1), &source, &Placement::Threads.into()).await;
        let loaded = loaded.expect("it loads");
        let handlers = loaded.handlers.into_iter().map(Arc::new).collect();
        Running(loaded.engine, handlers, Memo::default())
    }

    async fn end(&self, handler: usize, body: Value) -> CallEnd {
        let handler = self.1.get(handler).expect("a handler");
        let memo = self.2.clone();
        self.0
            .call(Arc::new(Invocation { memo, ..call_about(handler, Object::from_value(body)) }))
            .await
    }

    async fn result(&self, handler: usize) -> Value {
        match self.end(handler, json!({ "metadata": { "name": "a" } })).await {
            CallEnd::Returned(result) => result.unwrap_or_default(),
            other @ (CallEnd::Keyed(_) | CallEnd::Raised(_)) => panic!("{other:?}"),
        }
    }

    /// Returns the result of a call that begins here. It begins on the thread of the script while the actor computes, for some moments
    /// after a response, or if calls have taken much time.
    async fn inline(&self, handler: usize) -> Value {
        loop {
            let result = self.result(handler).await;
            if result == here() || result.get(0) == Some(&here()) {
                return result;
            }
            tokio::task::yield_now().await;
        }
    }
}

fn here() -> Value {
    thread::current().name().map_or_else(Value::default, Into::into)
}

#[tokio::test]
async fn a_call_begins_where_it_is_awaited_and_moves_if_it_computes_for_long_or_waits() {
    let computes =
        "local first = thread(); for i = 1, 2000 do calls += 1 end; return { first, thread() }";
    let waits = "local first = thread(); wait_late(1); return { first, thread() }";
    let raises = "for i = 1, 2000 do calls += 1 end; error(thread())";
    let script = Running::load(&["return thread()", computes, waits, raises]).await;
    assert_eq!(script.inline(0).await, here());
    for handler in [1, 2] {
        assert_eq!(script.inline(handler).await, json!([here(), OWN]), "handler {handler}");
    }
    let CallEnd::Raised(Raised { message, .. }) = script.end(3, json!({})).await else {
        panic!("it raises");
    };
    assert_eq!(message, OWN);
}

#[tokio::test]
async fn calls_about_large_values_run_on_the_thread_of_the_script() {
    let remembers = "for i = 1, 15 do ctx.memo['part' .. i] = string.rep('x', 60000) end";
    let holds = "calls = {}; for i = 1, 5 do calls[i] = string.rep('x', 1000000) .. i end";
    for fills in [remembers, holds] {
        let script = Running::load(&["return thread()", fills]).await;
        script.inline(0).await;
        let large = json!({ "spec": { "text": "x".repeat(17_000) } });
        let CallEnd::Returned(Some(thread)) = script.end(0, large).await else {
            panic!("it returns")
        };
        assert_eq!(thread, OWN);
        script.inline(0).await;
        assert_eq!(script.result(1).await, Value::Null);
        for _ in 0..10 {
            assert_eq!(script.result(0).await, OWN, "after {fills}");
        }
    }
}

#[tokio::test]
async fn a_call_that_cannot_be_suspended_is_repeated_on_the_thread_of_the_script() {
    let hides = "calls += 1; local first = thread(); if first ~= 'lua-1' then table['so' .. 'rt']({ 2, 1 }, function() while true do end end) end; return { first, calls }";
    let shares = "calls += 1; local t = { 1 }; for _ = 1, 15 do t = { t, t } end; local copy = kopf.copy(t); return { thread(), calls, #copy }";
    for body in [hides, shares] {
        let script = Running::load(&["return thread()", body]).await;
        // Until a call begins inline: it counts twice.
        let (mut begun, mut counted) = (0, json!(0));
        while counted == json!(begun) {
            script.inline(0).await;
            begun += 1;
            counted = script.result(1).await[1].clone();
        }
        assert_eq!(counted, json!(begun + 1), "{body}");
        for calls in begun + 2..begun + 4 {
            let result = script.result(1).await;
            assert_eq!((&result[0], &result[1]), (&json!(OWN), &json!(calls)), "{body}");
            script.inline(0).await;
        }
    }
}

#[tokio::test]
async fn a_full_memory_is_noticed() {
    let fills = "local t = {}; for i = 1, 900 do t[i] = string.rep('x', 1000 * 1000) .. i end";
    let script = Running::load(&["return thread()", fills, "calls += 1; return calls"]).await;
    script.result(2).await;
    let end = script.end(1, json!({})).await;
    assert!(matches!(end, CallEnd::Raised(_)), "{end:?}");
    assert_eq!(script.result(2).await, 1, "another VM");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_of_many_threads_take_turns() {
    let counts = "calls += 1; if calls % 7 == 0 then wait_late(1) end; if calls % 11 == 0 then for i = 1, 2000 do end end";
    let script = Arc::new(Running::load(&[counts, "return calls"]).await);
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let script = Arc::clone(&script);
        tasks.spawn(async move {
            for _ in 0..500 {
                script.result(0).await;
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(script.result(1).await, 4000);
}
