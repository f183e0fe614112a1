//! The hostile scripts in Rhai.

use super::suite::{Language, run_all};

const RHAI: Language = Language {
    name: "rhai",
    limit: |_| {},
    comment: "//",
    alive: r#"kopf::on_update("kopfexamples", #{ id: "alive" }, |ctx| "alive");"#,
    threads: |script| format!("rhai-{}", script.0),
};

#[test]
fn every_hostile_rhai_script_is_stopped_and_hurts_nobody() {
    run_all(
        &RHAI,
        ("real_clock::sandbox::rhai::every_hostile_rhai_script_is_stopped_and_hurts_nobody", 60),
    );
}
