//! Declarations: handlers and their ids, and errors that name the position and the mistake.
#![expect(clippy::needless_raw_string_hashes, reason = "expect_test writes its snapshots so")]

use expect_test::{Expect, expect};
use kopf::logic::handlers::handler::{Criterion, Kind};

use super::{load, load_error, run_paused};

#[test]
fn ids_are_the_names_of_functions() {
    run_paused(async {
        let script = load(
            r#"
            function create_fn(ctx) end
            local function update_fn(ctx) end
            local M = {}
            function M.delete_fn(ctx) end
            global_fn = function(ctx) end
            kopf.on_create("kopfexamples", create_fn)
            kopf.on.update("kopf.dev/v1", "kopfexamples", update_fn)
            kopf.on_delete("kopfexamples", M.delete_fn)
            kopf.on_resume("kopfexamples", global_fn)
            kopf.on_create("kopfexamples", function(ctx) end)
            kopf.on_field("kopfexamples", {field = "spec.x"}, create_fn)
            kopf.on_event("pods", {id = "named"}, create_fn)
            kopf.on_startup(function(ctx) end)
            "#,
        )
        .await;
        let ids: Vec<_> = script.handlers.iter().map(|it| (it.kind, &*it.id)).collect();
        let expected = [
            (Kind::Create, "create_fn"),
            (Kind::Update, "update_fn"),
            (Kind::Delete, "delete_fn"),
            (Kind::Resume, "global_fn"),
            (Kind::Create, "create"),
            (Kind::Field, "create_fn/spec.x"),
            (Kind::Event, "named"),
            (Kind::Startup, "startup"),
        ];
        assert_eq!(ids, expected);
        assert_eq!(&*script.handlers[0].location, "handlers.lua:7");
    });
}

#[test]
fn options_take_values_markers_and_functions() {
    run_paused(async {
        let script = load(
            r#"
            local function yes() return true end
            kopf.on_create("kopfexamples", {
                retries = 3,
                backoff = "10s",
                errors = kopf.ErrorsMode.PERMANENT,
                labels = {app = "demo", tier = kopf.PRESENT, old = kopf.ABSENT, some = yes},
                when = kopf.all_(yes, kopf.not_(yes)),
            }, function(ctx) end)
            "#,
        )
        .await;
        let handler = &script.handlers[0];
        assert_eq!(handler.limits.retries, Some(3));
        assert_eq!(handler.filters.labels.len(), 4);
        assert!(handler.filters.labels.contains(&("tier".into(), Criterion::Present)));
        assert!(handler.filters.when.is_some());
    });
}

#[test]
fn errors_are_told_as_a_compiler_tells_them() {
    check(
        "-- one\nkopf.on_create('kopfexamples', {retry = 3}, function(ctx) end)",
        &expect![[r#"
            error: handlers.lua:2:33: kopf.on_create has no option `retry`
              |
            2 | kopf.on_create('kopfexamples', {retry = 3}, function(ctx) end)
              |                                 ^^^^^
            hint: did you mean `retries`?"#]],
    );
    check(
        "local x = \nfor do",
        &expect![[r"
        error: handlers.lua:2: Expected identifier when parsing expression, got 'for'
          |
        2 | for do
          | ^^^^^^"]],
    );
    check(
        "local ok <const> = 1",
        &expect![[r"
        error: handlers.lua:1: Expected identifier when parsing expression, got '<'
          |
        1 | local ok <const> = 1
          | ^^^^^^^^^^^^^^^^^^^^
        hint: Luau has no <const>; remove it"]],
    );
    check(
        "local function f()\n    error('no luck')\nend\n\tf()",
        &expect![[r"
        error: handlers.lua:2: no luck
          |
        2 |     error('no luck')
          |     ^^^^^^^^^^^^^^^^"]],
    );
    check(
        "kopf.on_create('kopfexamples', {}, nil)",
        &expect![[r#"
            error: handlers.lua:1: kopf.on_create: the last argument must be the handler function, but it is not set
              |
            1 | kopf.on_create('kopfexamples', {}, nil)
              | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            hint: check the spelling, and define the function above this line"#]],
    );
}

#[test]
fn a_misspelled_declaration_names_the_right_one() {
    check(
        "kopf.on_craete('kopfexamples', function(ctx) end)",
        &expect![[r#"
            error: handlers.lua:1: there is no kopf.on_craete; did you mean `kopf.on_create`?
              |
            1 | kopf.on_craete('kopfexamples', function(ctx) end)
              | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^"#]],
    );
}

#[test]
fn registration_ends_with_the_top_level() {
    let raised = super::run("kopf.on_create('kopfexamples', function() end)").raised();
    let told = "kopf.on_create was called after the script was loaded (call it at the top level of the file)";
    assert_eq!(raised.message, told);
}

fn check(text: &str, expected: &Expect) {
    expected.assert_eq(&load_error(text).to_string());
}
