//! The parts of the live generation that the next one takes over.

use std::{collections::BTreeMap, path::PathBuf};

use kopf::{
    call::Scripts as _,
    scripting::{Modules, Placement, Source},
    settings::Settings,
};
use serde_json::json;
use tokio::time::{Duration, Instant};

use super::{Both, Stage, run_paused};

/// Counts its calls, which shows whether it was loaded again.
const COUNTING: Both = Both {
    lua: "local n = 0\nkopf.on_create('kex', { id = 'count' }, function() n += 1 return n end)",
    rhai: "let n = 0;\nkopf::on_create(`kex`, #{ id: `count` }, || { n += 1; n });",
};

#[test]
fn a_script_that_did_not_change_goes_on_as_it_is() {
    run_paused(async {
        for source in COUNTING.sources("count") {
            let mut stage = Stage::new(Placement::CurrentRuntime);
            let other = Source::alone("other.lua", "kopf.on_delete('kex', function() end)");
            stage.take(&[source.clone(), other]).await;
            assert_eq!(stage.result(&stage.handler("count")).await, json!(1));
            let changed =
                Source::alone("other.lua", "kopf.on_delete('kex', function() return 1 end)");
            let before = stage.take(&[changed, source.clone()]).await;
            assert_eq!(stage.result(&stage.handler("count")).await, json!(2));
            let same = |id: &str| {
                let before = before.iter().find(|it| *it.id == *id).expect("was there");
                (before.function == stage.handler(id).function, before.is_same(&stage.handler(id)))
            };
            assert_eq!((same("count"), same("delete")), ((true, true), (false, false)));
            drop(before);
            assert_eq!(stage.host.live_scripts(), 2);
        }
    });
}

#[test]
fn an_edited_script_is_loaded_anew_and_its_untouched_handlers_are_the_same_all_the_same() {
    run_paused(async {
        for (source, edited) in COUNTING.sources("count").into_iter().zip(
            Both {
                lua: "-- Counts.\nlocal unused\nlocal n = 0\n\nkopf.on_create('kex', { id = 'count' }, function() n += 1 return n end)",
                rhai: "// Counts.\nlet n = 0;\n\nkopf::on_create(`kex`, #{ id: `count` }, || { n += 1; n });",
            }
            .sources("count"),
        ) {
            let mut stage = Stage::new(Placement::CurrentRuntime);
            stage.take(std::slice::from_ref(&source)).await;
            stage.result(&stage.handler("count")).await;
            let before = stage.take(std::slice::from_ref(&edited)).await;
            assert_eq!(stage.result(&stage.handler("count")).await, json!(1), "{}", edited.name);
            // It mentions a variable that functions change, so only an edit of comments or white space does not affect it.
            let is_same = before[0].is_same(&stage.handler("count"));
            assert_eq!(is_same, edited.name.ends_with("rhai"), "{}", edited.name);
            assert_ne!(before[0].function, stage.handler("count").function);
        }
    });
}

#[test]
fn a_kept_script_may_use_the_new_indexes_that_it_names() {
    run_paused(async {
        let uses = Both {
            lua: "kopf.on_create('kex', { id = 'user' }, function(ctx) return ctx.by_node end)",
            rhai: "kopf::on_create(`kex`, #{ id: `user` }, |ctx| ctx.by_node);",
        };
        let index = |id| format!("kopf.index('kex', {{ id = '{id}' }}, function() end)\n");
        let fills = Source::alone("b.lua", ["by_node", "by_name"].map(index).concat());
        for source in uses.sources("a") {
            let mut stage = Stage::new(Placement::CurrentRuntime);
            stage.take(std::slice::from_ref(&source)).await;
            let kept = stage.handler("user").function.script;
            stage.take(&[source.clone(), fills.clone()]).await;
            assert_eq!(stage.handler("user").function.script, kept);
            let may_use = |id| stage.host.may_use_index(kept, id);
            assert_eq!((may_use("by_node"), may_use("by_name")), (true, false), "{}", source.name);
        }
    });
}

#[test]
fn a_script_is_loaded_again_when_its_modules_change() {
    run_paused(async {
        let script = |language: &str, text: &str, module: &str| Source {
            modules: Modules::of_texts(BTreeMap::from([
                (PathBuf::from(format!("lib.{language}")), module.to_owned()),
                (PathBuf::from(format!("unused.{language}")), module.to_owned()),
            ])),
            ..Source::alone(format!("main.{language}"), text)
        };
        let lua = "local lib = require('lib')\nkopf.on_create('kex', function() return lib.x end)";
        let rhai = "import \"lib\" as lib;\nkopf::on_create(`kex`, || lib::X);";
        for (language, text, one, other) in [
            ("lua", lua, "return { x = 1 }", "return { x = 2 }"),
            ("rhai", rhai, "export const X = 1;", "export const X = 2;"),
        ] {
            let mut stage = Stage::new(Placement::CurrentRuntime);
            stage.take(&[script(language, text, one)]).await;
            assert_eq!(stage.result(&stage.handler("create")).await, json!(1));
            let before = stage.take(&[script(language, text, one)]).await;
            assert_eq!(before[0].function, stage.handler("create").function);
            let before = stage.take(&[script(language, text, other)]).await;
            assert_eq!(stage.result(&stage.handler("create")).await, json!(2), "{language}");
            assert!(!before[0].is_same(&stage.handler("create")));
        }
    });
}

#[test]
fn what_is_prepared_and_not_taken_leaves_nothing_behind_and_lends_nothing() {
    run_paused(async {
        for source in COUNTING.sources("count") {
            let mut stage = Stage::new(Placement::CurrentRuntime);
            let prepared = stage.prepare(std::slice::from_ref(&source)).await.expect("it loads");
            assert_eq!(stage.host.live_scripts(), 1);
            let function = prepared.handlers[0].function.clone();
            drop(prepared);
            assert_eq!(stage.host.live_scripts(), 1, "the function keeps it");
            stage.take(std::slice::from_ref(&source)).await;
            assert_ne!(function, stage.handler("count").function);
            drop(function);
            assert_eq!(stage.host.live_scripts(), 1);
        }
    });
}

#[test]
fn a_generation_with_a_broken_script_leaves_nothing_behind() {
    run_paused(async {
        let stage = Stage::new(Placement::CurrentRuntime);
        let mut sources = COUNTING.sources("count").to_vec();
        sources.push(Source::alone("broken.lua", "error('no')"));
        sources.push(Source::alone("broken.rhai", "throw `no`;"));
        let errors = stage.prepare(&sources).await.expect_err("it is broken");
        let files: Vec<_> = errors.iter().map(|it| it.file.as_str()).collect();
        assert_eq!(files, ["broken.lua", "broken.rhai"]);
        assert_eq!(stage.host.live_scripts(), 0);
    });
}

#[test]
fn a_top_level_that_waits_for_ever_does_not_keep_later_edits_out() {
    run_paused(async {
        for slow in [
            Source::alone("slow.lua", "kopf.sleep(1e6)"),
            Source::alone("slow.rhai", "kopf::sleep(1000000);"),
        ] {
            let mut stage = Stage::new(Placement::CurrentRuntime);
            let errors = stage.prepare(std::slice::from_ref(&slow)).await.expect_err("it waits");
            let told: Vec<_> = errors.iter().map(ToString::to_string).collect();
            assert!(
                told[0].contains("the top level of the script takes longer than 30 s"),
                "{told:?}"
            );
            stage.take(&COUNTING.sources("count")).await;
            assert_eq!(stage.result(&stage.handler("count")).await, json!(1), "{}", slow.name);
        }
    });
}

#[test]
fn settings_reach_scripts_that_are_loaded_later() {
    let rhai = "kopf::on_create(`kex`, |ctx| kopf.sleep(10));";
    run_paused(async {
        let mut stage = Stage::new(Placement::CurrentRuntime);
        let mut settings = Settings::default();
        settings.execution.max_workers = Some(1);
        stage.host.configure(&settings);
        stage.take(&[Source::alone("slow.rhai", rhai)]).await;
        let began = Instant::now();
        let handler = stage.handler("create");
        tokio::join!(stage.call(&handler), stage.call(&handler));
        assert_eq!(began.elapsed(), Duration::from_secs(20), "one at a time");
    });
}

#[test]
fn a_script_that_declares_nothing_is_not_loaded_again_either() {
    run_paused(async {
        let mut stage = Stage::new(Placement::CurrentRuntime);
        let silent =
            [Source::alone("silent.lua", "local x = 1"), Source::alone("silent.rhai", "1")];
        stage.take(&silent).await;
        assert_eq!(stage.host.live_scripts(), 2);
        let prepared = stage.prepare(&silent).await.expect("it loads");
        assert_eq!(stage.host.live_scripts(), 2);
        drop(prepared);
        stage.take(&[]).await;
        assert_eq!(stage.host.live_scripts(), 0);
    });
}

/// A handler that has functions wherever it can, in a file with others.
const CHOOSING: Both = Both {
    lua: "local WORD = 'kex'
        local function wanted(resource) return resource.plural == WORD end
        kopf.daemon(wanted, {
            id = 'rich',
            when = kopf.all_(function(ctx) return true end),
            labels = { x = function(value) return value == 'y' end },
            initial_delay = function() return 5 end,
        }, function(ctx) return 'body' end)
        kopf.on_create('kex', { id = 'other' }, function() return 'else' end)",
    rhai: "const WORD = `kex`;
        fn wanted(resource) { resource.plural == WORD }
        kopf::daemon(wanted, #{
            id: `rich`,
            when: kopf.all_(|ctx| true),
            labels: #{ x: |value| value == `y` },
            initial_delay: || 5,
        }, |ctx| `body`);
        kopf::on_create(`kex`, #{ id: `other` }, || `else`);",
};

#[test]
fn functions_of_selectors_and_options_count_as_the_same_unless_they_were_edited() {
    run_paused(async {
        for source in CHOOSING.sources("choosing") {
            let mut stage = Stage::new(Placement::CurrentRuntime);
            stage.take(std::slice::from_ref(&source)).await;
            // (the edit, whether it is the same handler, the same selector, the same filters)
            for (from, to, expected) in [
                ("else", "elsewhere", (true, true, true)),
                ("body", "corpse", (false, true, true)),
                ("kex", "kexx", (false, false, true)),
                ("true", "false", (false, true, false)),
                ("5", "6", (false, true, true)),
            ] {
                let text = source.text.replacen(from, to, 1);
                let before = stage.take(std::slice::from_ref(&source)).await;
                drop(before);
                let before = stage.take(&[Source::alone(source.name.clone(), text)]).await;
                let now = stage.handler("rich");
                let old = before.iter().find(|it| *it.id == *now.id).expect("it was there");
                assert_ne!(old.function, now.function, "it was loaded again");
                let found = (old.is_same(&now), old.selects_same(&now), old.filters_same(&now));
                assert_eq!(found, expected, "{}: {from} → {to}", source.name);
                assert!(old.is_namesake(&now));
            }
        }
    });
}
