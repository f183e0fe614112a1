//! Memory that a script makes the operator keep is counted or limited: the same in both languages.

use std::{sync::Arc, time::Duration};

use kopf::{
    call::{
        AwaitedCall, CallServices, Children, Indexes, Invocation, Memo, Scripts as _, SharedPatch,
    },
    logic::{
        background::indexing::{Contribution, Owner},
        handlers::outcome::{CallEnd, Outcome, Raised},
        object::Header,
    },
    scripting::{Placement, Source, Terms},
    settings::Settings,
    testing::pass,
};
use serde_json::{Value, json};

use crate::scripting::engines::{Script, run_paused, sample, try_load_all};

/// Small, so that it is full soon.
const MEMORY_LIMIT: usize = 4 << 20;

/// Runs a test with the same script in both languages.
pub(super) fn in_both((lua, rhai): (&str, &str), memory_limit: usize, play: impl AsyncFn(Script)) {
    for (name, text) in [("handlers.lua", lua), ("handlers.rhai", rhai)] {
        run_paused(async {
            let mut settings = Settings::default();
            settings.sandbox.memory_limit = memory_limit;
            settings.execution.cpu_limit = Duration::from_mins(1);
            let terms = Terms::of(Placement::CurrentRuntime, &settings);
            match try_load_all(vec![Source::alone(name, text)], terms).await {
                Ok(script) => play(script).await,
                Err(error) => panic!("{error}"),
            }
        });
    }
}

/// Returns the message of a failure.
fn problem(ended: CallEnd) -> Option<String> {
    match ended {
        CallEnd::Returned(_) | CallEnd::Keyed(_) => None,
        CallEnd::Raised(Raised { message, .. }) => Some(message),
    }
}

/// Returns a unique object of a quarter of a mebibyte.
fn large(number: usize) -> Value {
    let texts: Vec<_> = (0..1024).map(|it| format!("{number}-{it}-{}", "x".repeat(240))).collect();
    json!({ "metadata": { "name": format!("object-{number}") }, "spec": { "texts": texts } })
}

#[test]
fn bodies_that_a_script_keeps_are_its_memory() {
    let play = async |script: Script| {
        let mut failed = None;
        for number in 0..40 {
            let ended = script.call_about("keeps", &large(number)).await.ended;
            failed = failed.or(problem(ended).map(|it| (number, it)));
        }
        let (number, message) = failed.expect("they do not fit");
        assert!((4..20).contains(&number), "{number}");
        assert!(message.contains("needs more than 4 MiB of memory"), "{message}");
        assert_eq!(problem(script.call("lets-go").await.ended), None);
        // Objects that are not kept are not counted.
        for number in 0..100 {
            assert_eq!(problem(script.call_about("reads", &large(number)).await.ended), None);
        }
    };
    in_both((
        "kept = {}
        kopf.on_update('kopfexamples', { id = 'keeps' }, function(ctx) kept[#kept + 1] = ctx.body.spec.texts end)
        kopf.on_update('kopfexamples', { id = 'lets-go' }, function() kept = {} end)
        kopf.on_update('kopfexamples', { id = 'reads' }, function(ctx) return ctx.body.spec.texts[1] end)",
        "let kept = [];
        kopf::on_update(`kopfexamples`, #{ id: `keeps` }, |ctx| { kept.push(ctx.body); });
        kopf::on_update(`kopfexamples`, #{ id: `lets-go` }, |ctx| { kept.clear(); });
        kopf::on_update(`kopfexamples`, #{ id: `reads` }, |ctx| ctx.body.spec.texts[0]);"),
        MEMORY_LIMIT,
        play,
    );
}

#[test]
fn calls_whose_callers_have_not_continued_yet_are_not_kept_by_the_script() {
    let play = async |script: Script| {
        let mut awaited = Vec::new();
        for number in 0..100 {
            let call = script.change("reads", &large(number), &SharedPatch::default());
            awaited.push(AwaitedCall::new(Arc::clone(&call)));
            assert_eq!(problem(script.host.call(call).await), None, "{number}");
        }
    };
    in_both(
        (
            "kopf.on_update('kopfexamples', { id = 'reads' }, function(ctx) return ctx.body.spec.texts[1] end)",
            "kopf::on_update(`kopfexamples`, #{ id: `reads` }, |ctx| ctx.body.spec.texts[0]);",
        ),
        MEMORY_LIMIT,
        play,
    );
}

#[test]
fn all_memos_of_a_script_together_have_a_limit_and_can_be_emptied_then() {
    let play = async |mut script: Script| {
        let mut memos = Vec::new();
        let message = loop {
            assert!(memos.len() < 20, "there is no limit");
            script.memo = Memo::default();
            memos.push(script.memo.clone());
            if let Some(message) = problem(script.call("remembers").await.ended) {
                break message;
            }
        };
        assert!(memos.len() > 5, "{}", memos.len());
        let expected =
            "the memos of this script hold more than 4 MiB (settings.sandbox.memory_limit)";
        assert!(message.contains(expected), "{message}");
        for memo in &memos {
            script.memo = memo.clone();
            assert_eq!(problem(script.call("forgets").await.ended), None);
        }
        assert_eq!(problem(script.call("remembers").await.ended), None);
        // Others are dropped with their objects.
        for _ in 0..40 {
            script.memo = Memo::default();
            assert_eq!(problem(script.call("remembers").await.ended), None);
        }
    };
    in_both((
        "kopf.on_update('kopfexamples', { id = 'remembers' }, function(ctx) ctx.memo.text = string.rep('x', 500000) end)
        kopf.on_update('kopfexamples', { id = 'forgets' }, function(ctx) ctx.memo.text = nil end)",
        "kopf::on_update(`kopfexamples`, #{ id: `remembers` }, |ctx| { let text = ``; text.pad(500000, 'x'); ctx.memo.text = text; });
        kopf::on_update(`kopfexamples`, #{ id: `forgets` }, |ctx| { ctx.memo.text = (); });"),
        MEMORY_LIMIT,
        play,
    );
}

/// A handler that patches a text of half a mebibyte, one that returns it, and one that patches a short text very often.
const HALF: (&str, &str) = (
    "kopf.on_update('kopfexamples', { id = 'patches' }, function(ctx) ctx.patch.status.text = string.rep('x', 500000) end)
    kopf.on_update('kopfexamples', { id = 'returns' }, function(ctx) return string.rep('x', 500000) end)
    kopf.on_update('kopfexamples', { id = 'repeats' }, function(ctx)
        for i = 1, 1000 do ctx.patch.status.text = string.rep('x', 1000) end
    end)",
    "kopf::on_update(`kopfexamples`, #{ id: `patches` }, |ctx| { let text = ``; text.pad(500000, 'x'); ctx.patch.status.text = text; });
    kopf::on_update(`kopfexamples`, #{ id: `returns` }, |ctx| { let text = ``; text.pad(500000, 'x'); text });
    kopf::on_update(`kopfexamples`, #{ id: `repeats` }, |ctx| {
        let text = ``; text.pad(1000, 'x'); for i in 0..1000 { ctx.patch.status.text = text; }
    });",
);

/// Calls a handler for another object.
async fn call_with(script: &Script, id: &str, patch: &SharedPatch) -> Option<String> {
    problem(script.host.call(script.change(id, &sample(), patch)).await)
}

/// Sends a patch: what was counted for it is released.
fn send(patch: &SharedPatch) {
    drop((patch.take_charges(), patch.take()));
}

#[test]
fn all_patches_of_a_script_together_have_a_limit_and_calls_wait_before_it_is_reached() {
    for id in ["patches", "returns"] {
        in_both(HALF, MEMORY_LIMIT, async |script: Script| {
            let (mut unsent, mut waits) = (Vec::new(), Vec::new());
            let message = loop {
                assert!(unsent.len() < 20, "there is no limit");
                unsent.push(SharedPatch::default());
                let began = tokio::time::Instant::now();
                let problem = call_with(&script, id, unsent.last().expect("a patch")).await;
                waits.push(began.elapsed().as_secs());
                if let Some(message) = problem {
                    break message;
                }
            };
            let expected = "the patches and results of this script that are not sent yet hold more than 4 MiB (settings.sandbox.memory_limit)";
            assert!(message.contains(expected), "{message}");
            // Of 4 MiB, a quarter is full after the third call.
            assert_eq!(waits, [0, 0, 0, 10, 10, 10, 10, 10, 10]);
            unsent.iter().skip(2).for_each(send);
            for _ in 0..100 {
                let patch = SharedPatch::default();
                assert_eq!(call_with(&script, id, &patch).await, None);
                send(&patch);
            }
        });
    }
}

#[test]
fn a_call_that_waits_begins_when_patches_are_sent() {
    in_both(HALF, MEMORY_LIMIT, async |script: Script| {
        let unsent = [(); 3].map(|()| SharedPatch::default());
        for patch in &unsent {
            assert_eq!(call_with(&script, "patches", patch).await, None);
        }
        // The next handler of the same cycle does not wait: its patch cannot be sent before.
        let began = tokio::time::Instant::now();
        assert_eq!(call_with(&script, "repeats", &unsent[0]).await, None);
        assert_eq!(began.elapsed(), Duration::ZERO);
        let sent = async {
            pass(3).await;
            unsent.iter().for_each(send);
        };
        let later = SharedPatch::default();
        let (problem, ()) = tokio::join!(call_with(&script, "patches", &later), sent);
        assert_eq!((problem, began.elapsed()), (None, Duration::from_secs(3)));
    });
}

#[test]
fn a_field_that_is_written_again_and_again_counts_once() {
    in_both(HALF, MEMORY_LIMIT, async |script: Script| {
        let unsent = [(); 20].map(|()| SharedPatch::default());
        let began = tokio::time::Instant::now();
        for patch in &unsent {
            assert_eq!(call_with(&script, "repeats", patch).await, None);
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
    });
}

/// Returns the message of an index function that has returned for the last of many objects.
async fn fill_index(script: &mut Script) -> Option<String> {
    let indexes = Indexes::new(["hoard".into()]);
    let services = CallServices { indexes: indexes.clone(), ..CallServices::default() };
    script.services = Arc::new(services);
    for number in 0..40 {
        let body = json!({ "metadata": { "name": "x", "uid": number.to_string() } });
        let ended = script.call_about("hoard", &body).await.ended;
        let mut result = match ended {
            CallEnd::Raised(raised) => return Some(raised.message),
            CallEnd::Returned(result) => Outcome { result, ..Outcome::default() },
            CallEnd::Keyed(entries) => Outcome { entries: Some(entries), ..Outcome::default() },
        };
        let header = Header { uid: Some(number.to_string()), ..Header::default() };
        let index = indexes.get("hoard").expect("the index");
        index.apply(&Owner::of(&header), Contribution::take(&mut result)).await;
    }
    None
}

#[test]
fn all_indexes_of_a_script_together_have_a_limit() {
    let play = async |mut script: Script| {
        let message = fill_index(&mut script).await;
        let expected =
            "the indexes of this script hold more than 4 MiB (settings.sandbox.memory_limit)";
        assert_eq!(message.as_deref(), Some(expected));
        // Removed values do not count any more.
        let indexes = script.services.indexes.clone();
        for number in 0..40_u32 {
            let header = Header { uid: Some(number.to_string()), ..Header::default() };
            indexes.remove(&Owner::of(&header)).await;
        }
        assert_eq!(problem(script.call("hoard").await.ended), None);
    };
    in_both(
        (
            "kopf.index('kopfexamples', { id = 'hoard' }, function(ctx) return { [ctx.uid or ''] = string.rep('x', 500000) } end)",
            "kopf::index(`kopfexamples`, #{ id: `hoard` }, |ctx| { let text = ``; text.pad(500000, 'x'); let map = #{}; map[ctx.uid ?? ``] = text; map });",
        ),
        MEMORY_LIMIT,
        play,
    );
}

#[test]
fn an_object_has_no_more_entries_in_an_index_than_it_may() {
    let play = async |mut script: Script| {
        let message = fill_index(&mut script).await;
        let expected = "the result has 10001 entries: an object can have at most 10000 in an index";
        assert_eq!(message.as_deref(), Some(expected));
    };
    in_both(
        (
            "kopf.index('kopfexamples', { id = 'hoard' }, function(ctx) local all = {} for i = 1, 10001 do all['k' .. i] = 1 end return all end)",
            "kopf::index(`kopfexamples`, #{ id: `hoard` }, |ctx| { let all = #{}; for i in 0..10001 { all[`k${i}`] = 1; } all });",
        ),
        64 << 20,
        play,
    );
    let play = async |mut script: Script| {
        let message = fill_index(&mut script).await;
        assert!(
            message.is_some_and(|it| it.contains("an object can have at most 10000 in an index"))
        );
    };
    let lua = "kopf.index('kopfexamples', { id = 'hoard' }, function(ctx) local all = {} for i = 2, 10002 do all[i] = 1 end return all end)";
    let rhai = "kopf::index(`kopfexamples`, #{ id: `hoard` }, |ctx| { let all = #{}; for i in 0..10001 { all[`${i}`] = 1; } all });";
    in_both((lua, rhai), 64 << 20, play);
}

/// Checks the limit on tokens: the memory of compilers is not counted for any script.
#[test]
fn texts_of_too_many_words_are_not_compiled() {
    for (name, statement) in [("handlers.lua", "x=1 "), ("handlers.rhai", "1+1;")] {
        let loaded = |text: String| {
            let source = Source::alone(name, text);
            run_paused(try_load_all(vec![source], Placement::CurrentRuntime)).err()
        };
        let error = loaded(statement.repeat(70_000)).expect("a refusal");
        assert_eq!(error.message, "the source has more than 200000 tokens", "{name}");
        let comment = if name.ends_with("lua") { "--" } else { "//" };
        let error = loaded(format!("{comment}{}", "x".repeat(1 << 20))).expect("a refusal");
        assert!(error.message.ends_with("more than 1 MiB"), "{}", error.message);
        assert_eq!(loaded(format!("{comment}{}", "x, ".repeat(300_000))), None, "{name}");
    }
}

/// Checks that an abort names the line of the loop, which operators need for a fix.
#[test]
fn an_abort_in_lua_says_where_the_call_was() {
    let lua = "
        local function handle(id, fn) kopf.on_update('kopfexamples', { id = id }, fn) end
        handle('spins', function() local i = 0
            while true do i += 1 end end)
        handle('hoards', function() local kept = {}
            while true do kept[#kept + 1] = { 1, 2, 3 } end end)
        handle('recurses', function() local function down()
            return 1 + down() end return down() end)
        handle('writes', function() local text = 'x'
            while true do text ..= text end end)";
    let mut settings = Settings::default();
    settings.sandbox.memory_limit = MEMORY_LIMIT;
    settings.sandbox.string_size = 64 << 10;
    settings.execution.cpu_limit = Duration::from_millis(200);
    let terms = Terms::of(Placement::Threads, &settings);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(async {
        let script = try_load_all(vec![Source::alone("handlers.lua", lua)], terms).await;
        let script = script.unwrap_or_else(|it| panic!("{it}"));
        for (id, line) in [("spins", 4), ("hoards", 6), ("recurses", 8), ("writes", 10)] {
            let raised = script.call(id).await.raised();
            let place = format!("handlers.lua:{line}");
            let trace = raised.trace.unwrap_or_default();
            assert!(trace.contains(&place), "{id}: no {place} in {trace:?}: {}", raised.message);
        }
    });
}

#[test]
fn functions_that_a_call_hands_over_have_a_bound() {
    let play = async |script: Script| {
        let handler = script.handler("hands-over").for_scripts();
        let (children, _orders) = Children::of(handler);
        let invocation = script.change("hands-over", &sample(), &SharedPatch::default());
        let invocation = Arc::into_inner(invocation).expect("nobody else has it");
        let ended =
            script.host.call(Arc::new(Invocation { children: Some(children), ..invocation }));
        assert_eq!(
            problem(ended.await).as_deref(),
            Some(
                "this handler has more than 1000 sub-handlers, including those below them (handle several items in each of them)"
            )
        );
        let message = problem(script.call("transforms").await.ended);
        assert_eq!(message.as_deref(), Some("ctx.patch.fns would have more than 10000 functions"));
    };
    in_both(
        (
            "kopf.on_update('kopfexamples', { id = 'hands-over' }, function(ctx)
            for i = 1, 10001 do kopf.subhandler({ id = 'sub' .. i }, function() end) end
        end)
        kopf.on_update('kopfexamples', { id = 'transforms' }, function(ctx)
            for i = 1, 10001 do ctx.patch.fns:append(function() end) end
        end)",
            "kopf::on_update(`kopfexamples`, #{ id: `hands-over` }, |ctx| {
            for i in 0..10001 { kopf.subhandler(#{ id: `sub${i}` }, || {}); }
        });
        kopf::on_update(`kopfexamples`, #{ id: `transforms` }, |ctx| {
            for i in 0..10001 { ctx.patch.fns.append(|body| {}); }
        });",
        ),
        64 << 20,
        play,
    );
}

/// Checks how exact the limit is, which is measured from outside of the VM. Built-in functions that append to a string take half as
/// much again.
#[test]
fn texts_of_lua_are_exact_but_for_those_that_are_made_piece_by_piece() {
    let text = r#"
        local function fits(size, make)
            return (pcall(function()
                local text = make(size)
                for i = 1, 2 do end
                return #text
            end))
        end
        local function largest(make)
            local low, high = 1, 4 * 1024 * 1024
            while low < high do
                local middle = (low + high + 1) // 2
                if fits(middle, make) then low = middle else high = middle - 1 end
            end
            return low
        end
        kopf.on_update("kopfexamples", { id = "texts" }, function(ctx)
            local part = string.rep("x", 1000)
            return {
                rep = largest(function(size) return string.rep("x", size) end),
                joined = largest(function(size) return string.rep("x", size // 2) .. string.rep("x", size - size // 2) end),
                concat = largest(function(size) return table.concat({ string.rep("x", size - 1), "y" }) end),
                upper = largest(function(size) return string.upper(string.rep("x", size)) end),
            }
        end)
    "#;
    run_paused(async {
        let mut settings = Settings::default();
        settings.sandbox.string_size = 1_000_000;
        settings.execution.cpu_limit = Duration::from_mins(1);
        let terms = Terms::of(Placement::CurrentRuntime, &settings);
        let script = try_load_all(vec![Source::alone("handlers.lua", text)], terms).await;
        let script = script.unwrap_or_else(|error| panic!("{error}"));
        expect_test::expect![[r#"Returned(Some(Object {"concat": Number(666668), "joined": Number(1000000), "rep": Number(1000000), "upper": Number(1000000)}))"#]].assert_eq(&format!("{:?}", script.call("texts").await.ended));
    });
}

/// Keeps the arguments of each call until the memory is full: a script that leaks `ctx` over millions of events.
fn keeps_of_each_call(lua: &str, rhai: &str) {
    let play = async |script: Script| {
        let mut failed = None;
        for number in 0..400 {
            let ended = script.call_about("keeps", &large(number)).await.ended;
            failed = failed.or(problem(ended).map(|it| (number, it)));
            if failed.is_some() {
                break;
            }
        }
        let (_, message) = failed.expect("they do not fit");
        assert!(message.contains("needs more than 4 MiB of memory"), "{message}");
        // A new VM serves the next calls, and objects that are not kept are not counted.
        for number in 0..100 {
            assert_eq!(problem(script.call_about("reads", &large(number)).await.ended), None);
        }
    };
    let lua = format!(
        "kept = {{}}
        kopf.on_update('kopfexamples', {{ id = 'keeps' }}, function(ctx) kept[#kept + 1] = {lua} end)
        kopf.on_update('kopfexamples', {{ id = 'reads' }}, function(ctx) return #ctx.body.spec.texts end)"
    );
    let rhai = format!(
        "let kept = [];
        kopf::on_update(`kopfexamples`, #{{ id: `keeps` }}, |ctx| {{ kept.push({rhai}); }});
        kopf::on_update(`kopfexamples`, #{{ id: `reads` }}, |ctx| ctx.body.spec.texts.len());"
    );
    in_both((&lua, &rhai), MEMORY_LIMIT, play);
}

#[test]
fn contexts_that_a_script_keeps_are_its_memory() {
    keeps_of_each_call("ctx", "ctx");
}

#[test]
fn patches_that_a_script_keeps_are_its_memory() {
    keeps_of_each_call("ctx.patch", "ctx.patch");
    keeps_of_each_call("ctx.patch.fns", "ctx.patch.fns");
}

#[test]
fn conditions_that_a_script_keeps_are_its_memory() {
    keeps_of_each_call("ctx.conditions", "ctx.conditions");
}
