//! The log of the built binary: its destination, and the effects of the options. The start fails, so no cluster is needed.

use std::{fs, path::PathBuf};

use serde_json::Value;

use super::{kopf, text};

const LUA: &str = r#"
kopf.on_startup({id = "talk"}, function(ctx)
    ctx.logger:debug("a detail")
    ctx.logger:info("a fact", {number = 7})
    ctx.logger:warning("a doubt")
end)
kopf.on_startup({id = "end", errors = "permanent"}, function(ctx)
    error("no licence")
end)
"#;

const RHAI: &str = r#"
kopf::on_startup(#{id: "talk"}, |ctx| {
    ctx.logger.dbg("a detail");
    ctx.logger.info("a fact", #{number: 7});
    ctx.logger.warning("a doubt");
});
kopf::on_startup(#{id: "end", errors: "permanent"}, |ctx| {
    throw "no licence";
});
"#;

/// The scripts of a test.
struct Scripts(PathBuf);

impl Scripts {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kopf-log-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        fs::write(path.join("handlers.lua"), LUA).expect("a file");
        fs::write(path.join("handlers.rhai"), RHAI).expect("a file");
        Scripts(path)
    }

    /// Returns what an operator of one of them writes to stderr.
    fn run(&self, script: &str, options: &[&str]) -> String {
        let script = self.0.join(script).display().to_string();
        let output = kopf(&[&["run", "-A", &script], options].concat(), &[]);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "", "the log goes to stderr");
        text(&output.stderr)
    }
}

impl Drop for Scripts {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

#[test]
fn the_options_choose_the_lines() {
    let scripts = Scripts::new("levels");
    for script in ["handlers.lua", "handlers.rhai"] {
        let has = |options: &[&str]| {
            let log = scripts.run(script, options);
            let found = ["a detail", "a fact", "a doubt", "no licence", "Starting kopf"];
            found.map(|it| log.contains(it))
        };
        assert_eq!(has(&["-q"]), [false, false, true, true, false]);
        assert_eq!(has(&[]), [false, true, true, true, false]);
        assert_eq!(has(&["-v"]), [true; 5]);
        assert_eq!(has(&["-qd"]), [true; 5]);
    }
}

#[test]
fn a_json_log_is_json_to_its_end() {
    let scripts = Scripts::new("json");
    for script in ["handlers.lua", "handlers.rhai"] {
        let log = scripts.run(script, &["--log-format=JSON"]);
        let lines: Vec<Value> = log
            .lines()
            .map(|it| serde_json::from_str(it).unwrap_or_else(|error| panic!("{error}: {it}")))
            .collect();
        let fact = lines.iter().find(|it| it["message"] == "a fact").expect("a fact");
        assert_eq!((&fact["number"], &fact["severity"]), (&7.into(), &"info".into()));
        assert_eq!((&fact["handler"], &fact["attempt"]), (&"talk".into(), &1.into()));
        assert!(fact["script"].as_str().is_some_and(|it| it.ends_with(script)), "{fact}");
        let failed = lines.iter().find(|it| it["exc_info"].is_string()).expect("an error");
        assert_eq!(failed["severity"], "error");
        let time = failed["timestamp"].as_str().expect("a time");
        assert!(time.ends_with("+00:00") && time.len() == 32, "{time}");
        let last = lines.last().expect("lines");
        assert_eq!(last["message"], "startup failed: 'end': no licence");
        assert_eq!(last["severity"], "error");
        assert_eq!(last["hint"], "see the errors of the handlers above; nothing else has started");
    }
}

#[test]
fn what_scripts_print_is_a_line_of_a_json_log() {
    let scripts = Scripts::new("print");
    let lua = "print('said', 1)\nkopf.on_startup(function() error(kopf.PermanentError('end')) end)";
    let rhai = "print(\"said\\t1\");\nkopf::on_startup(|ctx| kopf.fail(\"end\"));";
    for (script, text) in [("handlers.lua", lua), ("handlers.rhai", rhai)] {
        fs::write(scripts.0.join(script), text).expect("a file");
        let log = scripts.run(script, &["--log-format=json"]);
        let lines = log.lines().map(|it| serde_json::from_str::<Value>(it).expect("JSON"));
        let said = lines.into_iter().find(|it| it["message"] == "said\t1").expect("a line");
        assert_eq!((&said["logger"], &said["severity"]), (&"print".into(), &"info".into()));
        assert!(said["script"].as_str().is_some_and(|it| it.ends_with(script)), "{said}");
    }
}

#[test]
fn full_lines_have_columns_and_the_failure_comes_last() {
    let scripts = Scripts::new("full");
    let log = scripts.run("handlers.lua", &[]);
    let line = log.lines().find(|it| it.ends_with(" a doubt")).expect("a doubt");
    // `[2026-11-21 04:10:28,317] activities.startup [WARNING ] a doubt`
    let columns = line.get("[2026-11-21 04:10:28,317".len()..).expect("a long line");
    assert_eq!(columns, "] activities.startup [WARNING ] a doubt");
    let end = "error: startup failed: 'end': no licence\n\
        hint: see the errors of the handlers above; nothing else has started\n";
    assert!(log.ends_with(end), "{log}");
}

#[test]
fn a_script_that_cannot_be_read_ends_with_1() {
    let scripts = Scripts::new("syntax");
    fs::write(scripts.0.join("handlers.lua"), "kopf.on_create(").expect("a file");
    fs::write(scripts.0.join("handlers.rhai"), "kopf::on_create(").expect("a file");
    for script in ["handlers.lua", "handlers.rhai"] {
        let told = scripts.run(script, &[]);
        assert!(told.starts_with("error: ") && told.contains(&format!("{script}:1")), "{told}");
    }
}
