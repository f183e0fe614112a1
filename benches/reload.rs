//! Hot reload: the time until the next generation of scripts can be called, in both languages.
#![expect(clippy::expect_used, reason = "a benchmark may stop at the first unexpected result")]

use std::{fmt::Write as _, hint::black_box};

use criterion::{Criterion, criterion_group, criterion_main};
use kopf::scripting::{LoadError, Placement, Prepared, ScriptHost, Source};
use tokio::runtime::Runtime;

/// Number of scripts of one operator.
const SCRIPTS: usize = 10;
/// Number of handlers of one script, each with a helper function: together about 100 lines.
const HANDLERS: usize = 14;

fn reloads(criterion: &mut Criterion) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    for language in ["lua", "rhai"] {
        let before = |_| (0..SCRIPTS).map(|n| source(language, n, 0)).collect::<Vec<_>>();
        let present = present(&runtime, before(0));
        let title = |what: &str| format!("{language} reload: {what}");
        criterion.bench_function(&title("nothing of 10 scripts"), |bencher| {
            bencher.iter(|| black_box(prepare(&runtime, &present, before(0))));
        });
        let mut edit = 0;
        criterion.bench_function(&title("1 of 10 scripts"), |bencher| {
            bencher.iter(|| {
                edit += 1;
                let mut sources = before(0);
                sources.truncate(SCRIPTS - 1);
                sources.push(source(language, SCRIPTS - 1, edit));
                black_box(prepare(&runtime, &present, sources))
            });
        });
        criterion.bench_function(&title("all of 10 scripts"), |bencher| {
            bencher.iter(|| {
                edit += 1;
                let sources = (0..SCRIPTS).map(|n| source(language, n, edit)).collect();
                black_box(prepare(&runtime, &present, sources))
            });
        });
    }
}

/// Returns a host that runs these scripts.
fn present(runtime: &Runtime, sources: Vec<Source>) -> ScriptHost {
    let host = ScriptHost::new(Placement::Threads);
    let Prepared { scripts, .. } = prepare(runtime, &host, sources);
    host.take(scripts);
    host
}

/// Prepares a generation. Dropping it is part of the measurement: each save ends a generation.
fn prepare(runtime: &Runtime, host: &ScriptHost, sources: Vec<Source>) -> Prepared {
    let told = |errors: Vec<LoadError>| errors.iter().map(ToString::to_string).collect::<String>();
    runtime.block_on(host.prepare(sources)).map_err(told).expect("the scripts load")
}

/// Returns a typical script. Each edit changes its last handler.
fn source(language: &str, number: usize, edit: usize) -> Source {
    let mut text = String::new();
    for handler in 0..HANDLERS {
        let told = if handler + 1 == HANDLERS { edit } else { 0 };
        let written = match language {
            "lua" => write!(
                text,
                "-- Returns the size.\n\
                 local function size_{handler}(ctx)\n    return ctx.spec.size * {handler}\nend\n\n\
                 kopf.on_update(\"kex\", {{ id = \"update_{number}_{handler}\" }}, function(ctx)\n    \
                 return {{ size = size_{handler}(ctx), edit = {told} }}\nend)\n"
            ),
            _ => write!(
                text,
                "// Returns the size.\n\
                 fn size_{handler}(ctx) {{\n    ctx.spec.size * {handler}\n}}\n\n\
                 kopf::on_update(\"kex\", #{{ id: \"update_{number}_{handler}\" }}, |ctx| {{\n    \
                 #{{ size: size_{handler}(ctx), edit: {told} }}\n}});\n"
            ),
        };
        written.expect("a string takes everything");
    }
    Source::alone(format!("script_{number}.{language}"), text)
}

criterion_group!(benches, reloads);
criterion_main!(benches);
