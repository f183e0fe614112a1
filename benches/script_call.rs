//! Calls of a handler for an object of 4 KiB, one after the other and many at once, in both languages.
#![expect(clippy::expect_used, reason = "a benchmark may stop at the first unexpected result")]

use std::{hint::black_box, sync::Arc};

use bytes::Bytes;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use futures::future::join_all;
use kopf::{
    call::{Callers, Cause, Invocation, ObjectCause, ObjectDetail, Scripts as _, SharedPatch},
    logic::object::Object,
    scripting::{LoadError, Placement, ScriptHost, Source},
    testing,
};
use serde_json::{Value, json};
use tokio::task::LocalSet;

/// Number of objects of a burst that are handled concurrently.
const AT_ONCE: usize = 64;

/// Handlers: a name, the function in Lua and in Rhai.
const HANDLERS: &[(&str, &str, &str)] = &[
    ("empty", "function(ctx) end", "|ctx| {}"),
    ("spec", "function(ctx) return ctx.spec.field1.name end", "|ctx| ctx.spec.field1.name"),
    (
        "body",
        "function(ctx) return ctx.body.spec.field1.name end",
        "|ctx| ctx.body.spec.field1.name",
    ),
    (
        "result",
        "function(ctx) return {message = 'done', n = 1} end",
        "|ctx| #{ message: `done`, n: 1 }",
    ),
    ("log", "function(ctx) ctx.logger:info('done') end", "|ctx| { ctx.logger.info(`done`); }"),
    ("write", "function(ctx) ctx.patch.status.x = 1 end", "|ctx| { ctx.patch.status.x = 1; }"),
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
    let text = Bytes::from(body().to_string());
    let object = Object::parse(text.clone()).expect("an object");
    let first = testing::creation_of(&handler, object, SharedPatch::default());
    let Cause::Object(cause) = &first.cause else { return };
    let of = |cause: ObjectCause| {
        Arc::new(Invocation {
            handler: Arc::clone(&first.handler),
            attempt: first.attempt,
            cause: Cause::Object(cause),
            memo: first.memo.clone(),
            logger: first.logger.clone(),
            services: Arc::clone(&first.services),
            children: None,
            callers: Callers::default(),
        })
    };
    // Each call is the first one for a new version of the object, whose header was read, as that of each event: the call reads the rest
    // of the text. Dropping the object is not measured.
    criterion.bench_function(&format!("{title}, new version"), |bencher| {
        let new = || {
            let object = Arc::new(Object::parse(text.clone()).expect("an object"));
            let detail = ObjectDetail::Watch(None);
            of(ObjectCause { object, detail, ..cause.clone() })
        };
        let run = |it: Arc<Invocation>| {
            (black_box(local.block_on(&runtime, host.call(Arc::clone(&it)))), it)
        };
        bencher.iter_batched(new, run, BatchSize::SmallInput);
    });
    // All calls share the object and its parsed body, as the handlers of one cycle do; everything else belongs to one call.
    let again = || of(cause.clone());
    criterion.bench_function(title, |bencher| {
        let run = |it| black_box(local.block_on(&runtime, host.call(it)));
        bencher.iter_batched(again, run, BatchSize::SmallInput);
    });
    let mut group = criterion.benchmark_group(title);
    group.throughput(Throughput::Elements(AT_ONCE as u64));
    group.bench_function("at once", |bencher| {
        let all = || (0..AT_ONCE).map(|_| again()).collect::<Vec<_>>();
        let run = |all: Vec<_>| {
            let calls = all.into_iter().map(|it| host.call(it));
            black_box(local.block_on(&runtime, join_all(calls)))
        };
        bencher.iter_batched(all, run, BatchSize::SmallInput);
    });
    group.finish();
}

/// Returns a typical object of about 4 KiB.
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
