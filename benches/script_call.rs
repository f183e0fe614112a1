//! One call of a handler about an object of 4 KiB, through the threads of its script, in both languages.
#![expect(clippy::expect_used, reason = "a benchmark may stop at the first surprise")]

use std::{hint::black_box, sync::Arc};

use criterion::{Criterion, criterion_group, criterion_main};
use kopf::{
    ports::{Scripts as _, SharedPatch},
    scripting::{LoadError, Placement, ScriptHost, Source},
    testing,
};
use serde_json::{Value, json};
use tokio::task::LocalSet;

/// What handlers do, in Lua and in Rhai.
const HANDLERS: &[(&str, &str, &str)] = &[
    ("empty", "function(ctx) end", "|ctx| {}"),
    ("spec", "function(ctx) return ctx.spec.field1.name end", "|ctx| ctx.spec.field1.name"),
    (
        "body",
        "function(ctx) return ctx.body.spec.field1.name end",
        "|ctx| ctx.body.spec.field1.name",
    ),
    (
        "patch",
        "function(ctx) ctx.patch.status.phase = ctx.spec.field1.name; return {message = 'done'} end",
        "|ctx| { ctx.patch.status.phase = ctx.spec.field1.name; #{ message: `done` } }",
    ),
    (
        "loop",
        "function(ctx) local n = 0; for i = 1, 100000 do n += i % 7 end; return n end",
        "|ctx| { let n = 0; for i in 0..100000 { n += i % 7; } n }",
    ),
];

fn calls(criterion: &mut Criterion) {
    for (name, lua, rhai) in HANDLERS {
        let lua = format!("kopf.on_create('kopfexamples', {{id = 'it'}}, {lua})");
        let rhai = format!("kopf::on_create(`kopfexamples`, #{{ id: `it` }}, {rhai});");
        for (language, text) in [("lua", lua), ("rhai", rhai)] {
            for (place, placement) in
                [("own threads", Placement::Threads), ("held clock", Placement::CurrentRuntime)]
            {
                let source = Source::alone(format!("it.{language}"), text.as_str());
                call(criterion, &format!("{language} call: {name}, {place}"), source, placement);
            }
        }
    }
}

fn call(criterion: &mut Criterion, title: &str, source: Source, placement: Placement) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let local = LocalSet::new();
    let loaded = local.block_on(&runtime, ScriptHost::load(vec![source], placement));
    let told = |errors: Vec<LoadError>| errors.iter().map(ToString::to_string).collect::<String>();
    let (host, handlers) = loaded.map_err(told).expect("the script loads");
    let handler = Arc::new(handlers.into_iter().next().expect("one handler"));
    // The object and its parsed body are shared by all calls, as between the handlers of one cycle; `ctx` is not.
    let invocation = Arc::new(testing::creation(&handler, body(), SharedPatch::default()));
    criterion.bench_function(title, |bencher| {
        bencher.iter(|| black_box(local.block_on(&runtime, host.call(Arc::clone(&invocation)))));
    });
}

/// About 4 KiB, of the usual mixture.
fn body() -> Value {
    let field = |n: usize| json!({ "name": format!("name-{n}"), "value": n, "list": ["a", "b", n], "flag": true });
    let spec: serde_json::Map<String, Value> =
        (0..55).map(|n| (format!("field{n}"), field(n))).collect();
    json!({
        "apiVersion": "kopf.dev/v1",
        "kind": "KopfExample",
        "metadata": { "name": "example", "namespace": "default", "uid": "1234" },
        "spec": spec,
    })
}

criterion_group!(benches, calls);
criterion_main!(benches);
