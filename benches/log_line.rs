//! Micro-benchmarks of a log line: from the call of a logger to the written line.

use std::{hint::black_box, sync::Arc};

use criterion::{Criterion, criterion_group, criterion_main};
use kopf::{
    call::{Logger, LoggerKind},
    cli::{
        args::{ColorWhen, LogFormat},
        logging,
        options::{LogOptions, Verbosity},
    },
    logic::{handlers::outcome::LogLevel, object::ObjectRef},
    ports::Clock,
};

fn logger() -> Logger {
    Logger::of_object(
        LoggerKind::Full,
        Arc::new(ObjectRef {
            api_version: "kopf.dev/v1".into(),
            kind: "KopfExample".into(),
            name: "kopf-example-1".into(),
            uid: "0d4e4a4c-6c1b-4e5e-9d1e-3a1f0d7a0001".into(),
            namespace: Some("default".into()),
        }),
    )
}

fn log_line(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("log_line");
    for (name, format) in
        [("plain", LogFormat::Plain), ("full", LogFormat::Full), ("json", LogFormat::Json)]
    {
        let options = LogOptions {
            verbosity: Verbosity::Normal,
            format,
            prefix: format != LogFormat::Json,
            refkey: "object".into(),
            color: ColorWhen::Never,
            unhandled: false,
        };
        let sink = Box::new(|line: &str| {
            black_box(line);
        });
        let subscriber = logging::subscriber(options, Clock::system(), sink);
        let logger = logger();
        tracing::subscriber::with_default(subscriber, || {
            group.bench_function(name, |bencher| {
                bencher.iter(|| logger.log(LogLevel::Info, "Handler 'create_fn' succeeded."));
            });
            // The line is not logged at this level: its cost must be close to zero.
            group.bench_function(format!("{name}/unseen"), |bencher| {
                bencher.iter(|| logger.log(LogLevel::Debug, "Handler 'create_fn' is invoked."));
            });
        });
    }
    group.finish();
}

/// The work for each line before its parts were passed separately: for comparison.
fn encoded_reference(criterion: &mut Criterion) {
    let logger = logger();
    let object = logger.object().unwrap_or_default();
    criterion.bench_function("log_line/encoding and parsing a reference", |bencher| {
        bencher.iter(|| {
            let text = serde_json::to_string(&*object).unwrap_or_default();
            let parsed: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            black_box(parsed)
        });
    });
}

criterion_group!(benches, log_line, encoded_reference);
criterion_main!(benches);
