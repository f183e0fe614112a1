//! Memory that scripts retain, and what happens to a script that retains too much. Single hostile calls are in `tests/sandbox/rhai`.

use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

use prometheus_client::{encoding::text::encode, registry::Registry};
use serde_json::{Value, json};

use super::{Fixture, load, problem, refusal, run, source, terms};
use crate::call::SharedDocument;
use crate::logic::handlers::{
    function::ScriptId,
    outcome::{CallEnd, RaisedKind},
};
use crate::scripting::{
    Placement, Terms,
    blocking::runner::{JobRunner, RunError},
    handles::leftovers::Leftovers,
};
use crate::telemetry::Metrics;

const KIB: usize = 1 << 10;

/// Loads a script that may hold `room` bytes more than it needs to be loaded, in steps of 32 KiB.
async fn within(room: usize, text: &str) -> Fixture {
    let mut terms = terms();
    terms.limits.memory_limit = 256 * KIB;
    while let Err(error) = load(ScriptId(1), &source(text), &terms).await {
        assert!(error.message.contains("needs more than"), "{error:?}");
        terms.limits.memory_limit += 32 * KIB;
    }
    terms.limits.memory_limit += room;
    let loaded = load(ScriptId(1), &source(text), &terms)
        .await
        .map_err(|it| it.to_string())
        .expect("there is room");
    Fixture::of(loaded, json!({ "spec": { "x": [1, 2, 3] } }))
}

/// Returns how many calls succeed before one is aborted for its memory, the message of that one, and the result of the next call.
async fn calls_until_full(fixture: &Fixture) -> (usize, String, CallEnd) {
    for calls in 0..10_000 {
        if let CallEnd::Raised(raised) = fixture.call_nth(0).await {
            assert!(matches!(raised.kind, RaisedKind::Aborted(_)), "{raised:?}");
            return (calls, raised.message, fixture.call_nth(0).await);
        }
    }
    panic!("it never was full");
}

#[tokio::test(start_paused = true)]
async fn calls_that_keep_nothing_leave_nothing_behind() {
    let text = r#"
        let calls = 0;
        fn handler(ctx) {
            calls += 1;
            let items = [];
            for i in 0..20 { items.push(#{ name: `item-${i}`, spec: ctx.spec, labels: ctx.labels }); }
            ctx.patch.status.items = items;
            ctx.patch.fns.append(|body| { body.seen = items.len(); });
            ctx.memo.last = `call number ${calls}, which is a text that is long enough to need memory`;
            ctx.memo.list = [1, 2, 3];
            ctx.logger.info(`a line of the log, about ${ctx.body}`);
            try { ctx.spec.x = 1 } catch (error) { ctx.logger.dbg(error); }
            try { ctx.patch.spec.x = || 1 } catch (error) { }
            kopf.sleep(1);
            if calls % 2 == 0 { throw `every second call fails, with a message that is long enough: ${calls}`; }
            kopf.copy(#{ calls: calls, items: items })
        }
        kopf::on_create("things", handler);
    "#;
    let fixture = within(256 * KIB, text).await;
    for _ in 0..1500 {
        drop(fixture.call_nth(0).await);
        *fixture.patch.lock() = crate::logic::change::patch::Patch::default();
    }
    // No memory was leaked, and none was counted that is not in use.
    assert_eq!(fixture.returned().await["calls"], json!(1501));
}

#[tokio::test]
async fn a_call_that_views_the_object_counts_nothing_afterwards() {
    // A short function, and one that is not.
    for code in ["ctx.spec.x", "for x in ctx.spec.x { ctx.body.spec; }"] {
        let metrics = Metrics::default();
        let text = format!("kopf::on_create(\"things\", |ctx| {{ {code} }});");
        let terms = Terms { metrics: metrics.clone(), ..terms() };
        let loaded = load(ScriptId(1), &source(&text), &terms).await;
        let loaded = loaded.map_err(|it| it.to_string()).expect("the script loads");
        let fixture = Fixture::of(loaded, json!({ "spec": { "x": [1, 2, 3] } }));
        let mut held = Vec::new();
        for _ in 0..10 {
            drop(fixture.call_nth(0).await);
            let (mut page, mut text) = (Registry::default(), String::new());
            metrics.register_scripts(&mut page);
            encode(&mut text, &page).unwrap();
            let line = text.lines().find(|it| it.starts_with("kopf_script_memory_bytes"));
            held.push(line.map(str::to_owned));
        }
        // The first calls fill caches for later ones.
        assert_eq!(held[4], held[9], "{code}: {held:?}");
    }
}

#[tokio::test]
async fn what_is_kept_across_calls_counts() {
    for keep in [
        "kept.push(s + kept.len())",
        "kept.push(|| s)",
        "let s = [s]; kept.push(Fn(\"f\").curry(s))",
    ] {
        let text = format!(
            "let kept = []; fn f(x) {{}}\n\
             kopf::on_create(\"things\", |ctx| {{ let s = \"\"; s.pad(10000, 'x'); s += kept.len(); {keep}; kept.len() }});"
        );
        let fixture = within(512 * KIB, &text).await;
        let (calls, message, next) = calls_until_full(&fixture).await;
        assert!((20..90).contains(&calls), "{keep}: {calls}");
        assert!(message.starts_with("the script needs more than "), "{message}");
        assert!(message.ends_with(" of memory (settings.sandbox.memory_limit)"), "{message}");
        assert_eq!(next, CallEnd::Returned(Some(json!(1))), "{keep}: it starts afresh");
        assert!((20..90).contains(&calls_until_full(&fixture).await.0), "{keep}: again");
    }
}

#[tokio::test]
async fn a_call_that_only_had_too_much_itself_takes_nothing_from_the_others() {
    let text = r#"
        let kept = "kept";
        kopf::on_create("things", |ctx| { let all = []; loop { all.push(|| all); let s = ""; s.pad(10000, 'x'); all.push(s); } });
        kopf::on_create("things", #{ id: "other" }, |ctx| kept);
    "#;
    let text = text.replace("all.push(|| all); ", "");
    let fixture = within(512 * KIB, &text).await;
    let CallEnd::Raised(raised) = fixture.call_nth(0).await else { panic!("it hoards") };
    assert!(raised.message.contains("needs more than"), "{}", raised.message);
    assert_eq!(fixture.call_nth(1).await, CallEnd::Returned(Some(json!("kept"))));
}

#[tokio::test(start_paused = true)]
async fn calls_that_wait_end_when_the_script_starts_afresh() {
    let text = r#"
        let kept = [];
        kopf::on_create("things", #{ id: "hoard" }, |ctx| { loop { let s = ""; s.pad(10000, 'x'); kept.push(|| s); } });
        kopf::on_create("things", #{ id: "nap" }, |ctx| { kopf.sleep(100000); 1 });
    "#;
    let fixture = within(512 * KIB, text).await;
    let (nap, hoard) = tokio::join!(fixture.call_nth(1), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        fixture.call_nth(0).await
    });
    for ended in [nap, hoard] {
        let CallEnd::Raised(raised) = ended else { panic!("{ended:?}") };
        assert!(raised.message.contains("needs more than"), "{}", raised.message);
        assert!(matches!(raised.kind, RaisedKind::Aborted(_)));
    }
}

#[tokio::test(start_paused = true)]
async fn memory_that_cannot_be_freed_stops_the_script_for_some_minutes() {
    let text = r#"
        kopf::on_create("things", |ctx| { let s = ""; s.pad(50000, 'x'); let f = 0; f = || [f, s]; 1 });
    "#;
    let fixture = within(256 * KIB, text).await;
    let mut messages = Vec::new();
    for _ in 0..100 {
        if let CallEnd::Raised(raised) = fixture.call_nth(0).await {
            messages.push(raised.message);
        }
    }
    let last = messages.last().expect("it is full at times");
    assert!(last.contains("values that contain themselves"), "{messages:?}");
    tokio::time::sleep(Duration::from_mins(11)).await;
    assert_eq!(fixture.call_nth(0).await, CallEnd::Returned(Some(json!(1))));
}

#[tokio::test]
async fn memos_have_a_limit_of_their_own_and_go_with_their_objects() {
    let text = "kopf::on_create(\"things\", |ctx| { let s = \"\"; s.pad(10000, 'x'); ctx.memo[`m${ctx.memo.len()}`] = s; ctx.memo.len() });";
    let mut fixture = within(256 * KIB, text).await;
    let (mut full, mut memos) = (None, Vec::new());
    for calls in 0..500 {
        // A single memo has a smaller limit.
        if calls % 50 == 0 {
            fixture.memo = SharedDocument::default();
            memos.push(fixture.memo.clone());
        }
        if let CallEnd::Raised(raised) = fixture.call_nth(0).await {
            full = Some((calls, raised.message));
            break;
        }
    }
    let (calls, message) = full.expect("it is full in the end");
    assert!(calls > 20, "{calls}");
    assert!(message.starts_with("the memos of this script hold more than "), "{message}");
    memos.clear();
    fixture.memo = SharedDocument::default();
    assert_eq!(fixture.returned().await, json!(1), "the other memos are gone");
}

#[tokio::test]
async fn the_deepest_values_can_be_dropped() {
    // A chain of closures as long as the memory allows, kept and dropped: each link takes some stack frames.
    let text = r#"
        let kept = 0;
        fn wrap(g) { || g }
        kopf::on_create("things", |ctx| { let f = 0; loop { f = wrap(f); kept = f; } });
        kopf::on_create("things", #{ id: "other" }, |ctx| 1);
    "#;
    let mut terms: Terms = terms();
    terms.cpu_limit = Duration::from_mins(10);
    terms.limits.memory_limit = 16 << 20;
    let loaded = load(ScriptId(1), &source(text), &terms)
        .await
        .map_err(|it| it.to_string())
        .expect("it loads");
    let fixture = Fixture::of(loaded, json!({}));
    let CallEnd::Raised(raised) = fixture.call_nth(0).await else { panic!("it never ends") };
    assert!(raised.message.contains("needs more than 16 MiB"), "{}", raised.message);
    assert_eq!(fixture.call_nth(1).await, CallEnd::Returned(Some(json!(1))));
}

#[tokio::test]
async fn a_call_that_does_not_come_back_is_left_alone() {
    let mut terms = Terms::from(Placement::Threads);
    terms.cpu_limit = Duration::from_millis(10);
    let runner = JobRunner::new("rhai-1".to_owned(), "it.rhai", &terms);
    let (free, blocked) = mpsc::channel::<()>();
    let stuck = runner.run(move || blocked.recv().ok());
    assert_eq!(stuck.await, Err(RunError::Stuck(terms.cpu_limit)));
    assert_eq!(runner.run(|| 1).await, Ok(1), "the turn went on");
    drop(free);
    assert_eq!(runner.run(|| 2).await, Ok(2));
}

#[tokio::test]
async fn reserved_words_have_a_hint() {
    for (code, hint) in [
        ("ctx.logger.debug(\"x\");", "`debug` is a reserved word in Rhai: use `ctx.logger.dbg(…)`"),
        (
            "ctx.new;",
            "`new` is a reserved word in Rhai: use `ctx.new_value`, or `[\"new\"]` for a field",
        ),
        (
            "ctx.spec.default;",
            "`default` is a reserved word in Rhai: write `[\"default\"]` instead of `.default`",
        ),
    ] {
        let error = refusal(&format!("fn handler(ctx) {{ {code} }}")).await;
        assert_eq!(error.hint.as_deref(), Some(hint), "{error:?}");
    }
    for (code, word) in [
        ("let new = 1;", "new"),
        ("fn until() {}", "until"),
        ("fn sync(ctx) {}", "sync"),
        ("const match = 1;", "match"),
        ("for default in [1] {}", "default"),
    ] {
        let error = refusal(code).await;
        let hint = format!("`{word}` is a reserved word in Rhai: choose another name");
        assert_eq!(error.hint, Some(hint), "{error:?}");
    }
    for usable in ["exit", "global", "value"] {
        let error = refusal(&format!("let {usable} = ;")).await;
        assert_eq!(error.hint, None, "{error:?}");
    }
}

#[tokio::test]
async fn replaced_functions_do_what_those_of_the_language_do() {
    let nothing = || json!({});
    for (code, expected) in [
        ("let x = [3, 1, 2]; x.sort(); x", json!([1, 2, 3])),
        ("let x = [3, 1, 2]; x.sort_desc(); x", json!([3, 2, 1])),
        ("[\"b\", \"a\"].order()", json!(["a", "b"])),
        ("let x = [3, 1, 2]; x.sort(|a, b| b - a); x", json!([3, 2, 1])),
        (
            "let x = [[1, 1], [0, 2], [1, 3]]; x.sort(|a, b| a[0] < b[0]); x",
            json!([[0, 2], [1, 1], [1, 3]]),
        ),
        ("[3, 1, 2].order_by(|a, b| a < b)", json!([1, 2, 3])),
        ("let x = [1, 1, 2, 1]; x.dedup(); x", json!([1, 2, 1])),
        ("let x = [1, 3, 4]; x.dedup(|a, b| a % 2 == b % 2); x", json!([1, 4])),
        ("[[1, #{ a: 2.0 }]] == [[1, #{ a: 2 }]]", json!(true)),
        ("[1, \"a\"] != [1, \"b\"]", json!(true)),
        ("[1] == [\"1\"]", json!(false)),
        (
            "const L = [1, 2, 3]; [2 in L, L.index_of(3), L.index_of(1, 1), L.index_of(3, -1)]",
            json!([true, 2, -1, 2]),
        ),
        ("\"a,b,c\".split(\",\")", json!(["a", "b", "c"])),
        ("\"a,b,c\".split(',', 2)", json!(["a", "b,c"])),
        ("\"a,b,c\".split_rev(\",\", 2)", json!(["c", "a,b"])),
        ("\" a  b \".split()", json!(["a", "b"])),
        ("[\"\".split(), \"\".split(\",\"), \"ab\".to_chars()]", json!([[""], [""], ["a", "b"]])),
        ("let s = \"aXbX\"; s.replace(\"X\", \"--\"); s", json!("a--b--")),
        ("let s = \"aXbX\"; s.replace('X', 'y'); s.remove('y'); s", json!("ab")),
        ("let s = \"ä\"; s.pad(4, \"öü\"); s", json!("äöüö")),
        ("let s = \"abc\"; s.pad(5, '-'); s", json!("abc--")),
        (
            "[\"häuser\".sub_string(1, 2), \"häuser\".sub_string(-3), \"häuser\".sub_string(1..3), \"abc\".sub_string(1..=1), \"abc\".sub_string(9)]",
            json!(["äu", "ser", "äu", "b", ""]),
        ),
        ("let s = \"häuser\"; s.crop(1, 3); let p = s.pop(2); [s, p]", json!(["ä", "us"])),
        (
            "parse_json(\"[1, 2.5, null, {\\\"a\\\": \\\"b\\\"}]\")",
            json!([1, 2.5, null, {"a": "b"}]),
        ),
        ("#{ a: [1, ()] }.to_json()", json!("{\"a\":[1,null]}")),
        (
            "let g = Fn(\"g\"); `${[1, #{ f: g, s: \"x\" }]}`",
            json!("[1,{\"f\":Fn(g),\"s\":\"x\"}]"),
        ),
    ] {
        assert_eq!(run(code, nothing()).await, expected, "{code}");
    }
    assert!(problem("[1, \"a\"].sort();", nothing()).await.contains("different types"));
    assert_eq!(
        problem(
            "let x = [2, 1]; try { x.sort(|a, b| throw \"no\"); } catch (e) { throw `${e} ${x}`; }",
            nothing()
        )
        .await,
        "no [2,1]"
    );
}

#[tokio::test]
async fn long_messages_are_cut() {
    let message = problem("let s = \"\"; s.pad(100000, 'x'); throw s;", Value::Null).await;
    assert!(message.ends_with("x… (100000 bytes in all)") && message.len() < 17_000);
}

#[tokio::test]
async fn what_an_ended_call_shares_with_the_one_before_it_counts_once() {
    let body = json!({ "spec": { "text": "x".repeat(100 * KIB) } });
    let fixture = Fixture::handler("", body).await;
    let (first, second) = (fixture.invocation(fixture.nth(0)), fixture.invocation(fixture.nth(0)));
    let mut leftovers = Leftovers::default();
    leftovers.add(&first);
    for _ in 0..10 {
        leftovers.add(&Arc::new(first.again()));
    }
    // A check is due as soon as an eighth of the limit is new. Object and change are 200 KiB together.
    let limit = 8 * 300 * KIB;
    assert!(!leftovers.is_due(limit));
    leftovers.add(&second);
    assert!(leftovers.is_due(limit));
}
