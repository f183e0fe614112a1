//! Mistakes: the same one in both languages gets the same message and the same hint, those of `tests/scenarios/mistakes.txt`.

use expect_test::expect_file;
use kopf::scripting::{Placement, ScriptHost, Source};

use kopf::testing::run_paused;

/// The same mistake in Lua and in Rhai.
const MISTAKES: &[(&str, &str)] = &[
    ("kopf.on_create('kex', {retrys = 3}, f)", "kopf::on_create(\"kex\", #{ retrys: 3 }, f);"),
    ("kopf.on_create('kex', {zzz = 3}, f)", "kopf::on_create(\"kex\", #{ zzz: 3 }, f);"),
    ("kopf.on_create('kex', {interval = 3}, f)", "kopf::on_create(\"kex\", #{ interval: 3 }, f);"),
    (
        "kopf.on_create('kex', {timeout = 'soon'}, f)",
        "kopf::on_create(\"kex\", #{ timeout: \"soon\" }, f);",
    ),
    ("kopf.on_create('kex', {retries = -1}, f)", "kopf::on_create(\"kex\", #{ retries: -1 }, f);"),
    (
        "kopf.on_create('kex', {retries = 1.5}, f)",
        "kopf::on_create(\"kex\", #{ retries: 1.5 }, f);",
    ),
    (
        "kopf.on_create('kex', {errors = 'maybe'}, f)",
        "kopf::on_create(\"kex\", #{ errors: \"maybe\" }, f);",
    ),
    ("kopf.on_create('kex', {id = 7}, f)", "kopf::on_create(\"kex\", #{ id: 7 }, f);"),
    (
        "kopf.on_create('kex', {id = 'Ünï code'}, f)",
        "kopf::on_create(\"kex\", #{ id: \"Ünï code\" }, f);",
    ),
    ("kopf.on_create('kex', {id = 'x-'}, f)", "kopf::on_create(\"kex\", #{ id: \"x-\" }, f);"),
    ("kopf.on_create('kex', {when = true}, f)", "kopf::on_create(\"kex\", #{ when: true }, f);"),
    (
        "kopf.on_create('kex', {labels = 'x'}, f)",
        "kopf::on_create(\"kex\", #{ labels: \"x\" }, f);",
    ),
    (
        "kopf.on_create('kex', {labels = {a = kopf.null}}, f)",
        "kopf::on_create(\"kex\", #{ labels: #{ a: () } }, f);",
    ),
    (
        "kopf.on_create('kex', {labels = {a = {f}}}, f)",
        "kopf::on_create(\"kex\", #{ labels: #{ a: [f] } }, f);",
    ),
    ("kopf.on_create('kex', {value = 1}, f)", "kopf::on_create(\"kex\", #{ value: 1 }, f);"),
    (
        "kopf.on_update('kex', {field = 'a', value = 1, old = 1}, f)",
        "kopf::on_update(\"kex\", #{ field: \"a\", value: 1, old: 1 }, f);",
    ),
    ("kopf.on_create('kex', {field = 7}, f)", "kopf::on_create(\"kex\", #{ field: 7 }, f);"),
    ("kopf.on_create('kex', {param = {f}}, f)", "kopf::on_create(\"kex\", #{ param: [f] }, f);"),
    ("kopf.on_field('kex', f)", "kopf::on_field(\"kex\", f);"),
    ("kopf.on_create(f)", "kopf::on_create(f);"),
    ("kopf.on_create('a', 'b', 'c', 'd', f)", "kopf::on_create(\"a\", \"b\", \"c\", \"d\", f);"),
    ("kopf.on_create(7, f)", "kopf::on_create(7, f);"),
    ("kopf.on_create('', f)", "kopf::on_create(\"\", f);"),
    (
        "kopf.on_create('kex', {kind = 'Kex'}, f)",
        "kopf::on_create(\"kex\", #{ kind: \"Kex\" }, f);",
    ),
    ("kopf.on_create({group = 'kopf.dev'}, f)", "kopf::on_create(#{ group: \"kopf.dev\" }, f);"),
    ("kopf.on_create(f, 'kex', f)", "kopf::on_create(f, \"kex\", f);"),
    ("kopf.on_create(f, {plural = 'kex'}, f)", "kopf::on_create(f, #{ plural: \"kex\" }, f);"),
    ("kopf.on_create('kex')", "kopf::on_create(\"kex\");"),
    ("kopf.on_create()", "kopf::on_create();"),
    ("kopf.on_create('kex', f, {})", "kopf::on_create(\"kex\", f, #{});"),
    ("kopf.on_startup('kex', f)", "kopf::on_startup(\"kex\", f);"),
    ("kopf.on_startup({labels = {}}, f)", "kopf::on_startup(#{ labels: #{} }, f);"),
    (
        "kopf.on_mutate('kex', {operations = {}}, f)",
        "kopf::on_mutate(\"kex\", #{ operations: [] }, f);",
    ),
    ("kopf.all_({1})", "kopf::all_([1]);"),
    ("kopf.not_(1)", "kopf::not_(1);"),
    ("kopf.on_crate('kex', f)", "kopf.on_crate(\"kex\", f);"),
    ("print(kopf.PRESNT)", "print(kopf.PRESNT);"),
    ("kopf.sleep('soon')", "kopf.sleep(\"soon\");"),
    ("kopf.TemporaryError('x', 'soon')", "kopf.TemporaryError(\"x\", \"soon\");"),
    ("kopf.copy(f)", "kopf.copy(f);"),
    (
        "kopf.on_create('kex', function(r) return true end, f)",
        "kopf::on_create(\"kex\", |r| true, f);",
    ),
    ("kopf.subhandler(f)", "kopf::subhandler(f);"),
    ("kopf.register({id = 'x'}, f)", "kopf.register(#{ id: \"x\" }, f);"),
    ("kopf.execute()", "kopf.execute();"),
    ("kopf.set_default_lifecycle('asapp')", "kopf.set_default_lifecycle(\"asapp\");"),
    ("kopf.set_default_lifecycle(7)", "kopf.set_default_lifecycle(7);"),
    ("kopf.set_default_lifecycle({f})", "kopf.set_default_lifecycle([f]);"),
    (
        "kopf.set_default_lifecycle(kopf.lifecycles.asaap)",
        "kopf.set_default_lifecycle(kopf.lifecycles.asaap);",
    ),
];

/// Returns the message and the hint of a script that cannot be loaded.
async fn told(name: &str, text: &str) -> String {
    let source = Source::alone(name, text);
    match ScriptHost::load(vec![source], Placement::CurrentRuntime).await {
        Ok(_) => "no error".into(),
        Err(errors) => {
            let [error] = &errors[..] else { panic!("{errors:?}") };
            let hint = error.hint.as_ref().map_or_else(String::new, |it| format!(" ({it})"));
            format!("{}{hint}", error.message)
        }
    }
}

#[test]
fn the_same_mistake_is_told_in_the_same_words() {
    let mut table = Vec::new();
    run_paused(async {
        for (lua, rhai) in MISTAKES {
            let in_lua = told("a.lua", &format!("local function f(ctx) end\n{lua}\n")).await;
            let in_rhai = told("a.rhai", &format!("fn f(ctx) {{}}\n{rhai}\n")).await;
            assert_eq!(in_lua, in_rhai, "{lua}");
            table.extend([(*lua).to_owned(), format!("    {in_lua}")]);
        }
    });
    expect_file![super::root().join("mistakes.txt")].assert_eq(&(table.join("\n") + "\n"));
}
