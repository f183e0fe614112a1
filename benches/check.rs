//! The checker on scripts of 1,000 lines, in both languages: a reload, `kopf check` and an editor wait for this.
#![expect(clippy::expect_used, reason = "a benchmark may stop at the first unexpected result")]

use std::{fmt::Write as _, hint::black_box};

use criterion::{Criterion, criterion_group, criterion_main};
use kopf::{
    checker::{
        self, Knowledge,
        editor::{EditorRequest, respond},
    },
    scripting::Source,
};

/// Handlers of ten lines each.
const COUNT: usize = 100;

fn lua() -> String {
    let mut text = String::new();
    for at in 0..COUNT {
        write!(
            text,
            "local function helper{at}(ctx, name)\n    local labels = {{ app = name, number = tostring({at}) }}\n    return {{ apiVersion = \"v1\", kind = \"ConfigMap\", metadata = {{ name = name, labels = labels }} }}\nend\n\
             kopf.on_create(\"kopfexamples\", {{ id = \"create{at}\", retries = 3 }}, function(ctx)\n    local made = helper{at}(ctx, ctx.name .. \"-{at}\")\n    kopf.adopt(made)\n    kube.apply(made)\n    ctx.patch.status.phase{at} = \"Ready\"\nend)\n",
        )
        .expect("memory");
    }
    text
}

fn rhai() -> String {
    let mut text = String::new();
    for at in 0..COUNT {
        write!(
            text,
            "fn helper{at}(ctx, name) {{\n    let labels = #{{ app: name, number: `${{{at}}}` }};\n    #{{ apiVersion: \"v1\", kind: \"ConfigMap\", metadata: #{{ name: name, labels: labels }} }}\n}}\n\
             kopf::on_create(\"kopfexamples\", #{{ id: \"create{at}\", retries: 3 }}, |ctx| {{\n    let made = helper{at}(ctx, ctx.name + \"-{at}\");\n    kopf::adopt(made);\n    kube::apply(made);\n    ctx.patch.status.phase{at} = \"Ready\";\n}});\n",
        )
        .expect("memory");
    }
    text
}

fn checks(criterion: &mut Criterion) {
    for (name, text) in [("x.lua", lua()), ("x.rhai", rhai())] {
        assert_eq!(text.lines().count(), 1_000, "{name}");
        let (source, knowledge) = (Source::alone(name, text.as_str()), Knowledge::default());
        let found = checker::check(std::slice::from_ref(&source), &knowledge);
        assert!(found.all.is_empty() && found.unchecked.is_empty(), "{found:?}");
        criterion.bench_function(&format!("check of 1,000 lines, {name}"), |bencher| {
            bencher.iter(|| checker::check(black_box(std::slice::from_ref(&source)), &knowledge));
        });
        criterion.bench_function(&format!("completion in 1,000 lines, {name}"), |bencher| {
            let at = text.len() / 2;
            bencher
                .iter(|| respond(black_box(&source), &knowledge, EditorRequest::Completions(at)));
        });
    }
}

criterion_group!(benches, checks);
criterion_main!(benches);
