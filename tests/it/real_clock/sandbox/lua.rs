//! The hostile scripts in Lua.

use super::suite::{Language, run_all};

const LUA: Language = Language {
    name: "lua",
    limit: |sandbox| {
        sandbox.string_size = 1 << 20;
        sandbox.result_size = 64 << 10;
    },
    comment: "--",
    alive: r#"kopf.on_update("kopfexamples", { id = "alive" }, function() return "alive" end)"#,
    threads: |script| format!("lua-{}", script.0),
};

#[test]
fn every_hostile_lua_script_is_stopped_and_hurts_nobody() {
    run_all(
        &LUA,
        ("real_clock::sandbox::lua::every_hostile_lua_script_is_stopped_and_hurts_nobody", 60),
    );
}
