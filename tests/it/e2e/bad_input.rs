//! Scripts that do not load, missing clusters and missing permissions: one clear message, and the exit code.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::namespace::Namespace;
use super::operator::{Ended, Operator, file, kopf};

/// A file for one test, which is removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kopf-e2e-{}-{name}", std::process::id()));
        fs::write(&path, text).expect("a file for the test");
        Scratch(path)
    }

    fn name(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _left_for_the_system = fs::remove_file(&self.0);
    }
}

async fn run(kubeconfig: &Path, script: &Path) -> Ended {
    let mut command = kopf(kubeconfig, &["-A", "--standalone"]);
    Operator::start(command.arg(script)).ended().await
}

/// Counts lines that start with this prefix: messages of libraries may contain such words elsewhere.
fn lines_with(ended: &Ended, prefix: &str) -> usize {
    ended.output.lines().filter(|it| it.starts_with(prefix)).count()
}

/// Runs a broken script, and checks the error: the file, the line, and these words.
async fn check_script(name: &str, text: &str, line: u32, words: &[&str]) {
    let script = Scratch::new(name, text);
    let ended = run(Path::new("/nonexistent"), &script.0).await;
    ended.assert_code(1);
    let place = format!("error: {}:{line}", script.name());
    for word in [&[place.as_str()][..], words].concat() {
        assert!(ended.output.contains(word), "no {word:?} in:\n{}", ended.output);
    }
    ended.assert_count("panicked", 0);
}

#[tokio::test]
async fn syntax_errors_name_the_file_and_the_line() {
    check_script("syntax.lua", "local a = 1\nlocal b = = 2\n", 2, &["local b = = 2"]).await;
    check_script("syntax.rhai", "let a = 1;\nlet b = = 2;\n", 2, &["let b = = 2;"]).await;
}

#[tokio::test]
async fn unknown_options_name_the_nearest_known_one() {
    let lua = "kopf.on_create('kopfexamples', { retrys = 3 }, function() end)";
    check_script("option.lua", lua, 1, &["retrys", "retries"]).await;
    let rhai = "kopf::on_create(\"kopfexamples\", #{ retrys: 3 }, |ctx| {});";
    check_script("option.rhai", rhai, 1, &["retrys", "retries"]).await;
}

#[tokio::test]
async fn two_handlers_with_one_id_ask_for_an_id() {
    let text = "kopf.on_create('a', function() end)\nkopf.on_create('a', function() end)\n";
    let script = Scratch::new("twice.lua", text);
    let ended = run(Path::new("/nonexistent"), &script.0).await;
    ended.assert_code(1);
    ended.assert_one_error();
    for word in ["'create'", "twice.lua:1", "twice.lua:2", "`id`"] {
        assert!(ended.output.contains(word), "no {word:?} in:\n{}", ended.output);
    }
}

#[tokio::test]
async fn a_configuration_that_cannot_be_used_is_named() {
    let script = file("examples/01-minimal/handlers.lua");
    let ended = run(Path::new("/nonexistent/kubeconfig"), &script).await;
    ended.assert_code(1);
    assert_eq!(lines_with(&ended, "error: "), 1, "{}", ended.output);
    assert_eq!(lines_with(&ended, "hint: "), 1, "{}", ended.output);
    let broken = Scratch::new("kubeconfig", "clusters: [\n");
    let ended = run(&broken.0, &script).await;
    ended.assert_code(1);
    assert_eq!(lines_with(&ended, "error: "), 1, "{}", ended.output);
    assert!(ended.output.contains(&broken.name()), "{}", ended.output);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let text = "
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
";
    let nowhere = Scratch::new("nowhere", text);
    let settings = "
kopf.on_startup(function(ctx) ctx.settings.networking.error_backoffs = { 0.1 } end)
kopf.on_create('kopfexamples', function() end)
";
    let script = Scratch::new("impatient.lua", settings);
    let ended = run(&nowhere.0, &script.0).await;
    ended.assert_code(1);
    ended.assert_count("The API server at http://127.0.0.1:1 is unreachable", 1);
    ended.assert_count("panicked", 0);
}

#[tokio::test]
async fn missing_rights_are_told_with_what_is_missing() {
    let Some(namespace) = Namespace::for_test("bad-rights").await else { return };
    let admin = fs::read_to_string(namespace.kubeconfig()).expect("the configuration");
    let nobody = "current-context: envtest-nobody";
    let nobody = Scratch::new("nobody", &admin.replace("current-context: envtest", nobody));
    let script = file("examples/01-minimal/handlers.lua");
    let mut command = kopf(&nobody.0, &["--standalone", "-v", "-n", "bad-rights"]);
    let operator = Operator::start(command.arg(script));
    operator.until_says("forbidden").await;
    operator.until_says("kopfexamples").await;
    // Whether it waits for the permissions or gives up, it must end gracefully.
    let ended = operator.stop().await;
    assert!(matches!(ended.status.code(), Some(0 | 1)), "{}", ended.output);
    ended.assert_count("panicked", 0);
}
