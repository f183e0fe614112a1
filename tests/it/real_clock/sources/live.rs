//! Live editing as users see it: the built binary, its scripts, and its log.

use std::time::Duration;

use tokio::process::Command;

use super::Desk;
use crate::e2e::operator::Operator;

/// Returns a script that logs when an object is created or updated.
fn script(word: &str) -> String {
    format!(
        "kopf.on_create('kopfexamples', {{ id = 'made' }}, function(ctx) ctx.logger:info('{word} ' .. ctx.name) end)\n"
    )
}

fn object(name: &str) -> String {
    format!("apiVersion: kopf.dev/v1\nkind: KopfExample\nmetadata: {{ name: {name} }}\n")
}

/// Starts `kopf dev` in this directory.
async fn start(desk: &Desk, args: &[&str]) -> Operator {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kopf"));
    command.env_clear().env("XDG_RUNTIME_DIR", &desk.0).current_dir(&desk.0);
    let operator = Operator::start(command.arg("dev").args(args));
    operator.until_says("Initial authentication has finished").await;
    operator
}

#[tokio::test]
async fn a_saved_script_takes_effect_and_a_broken_one_does_not() {
    let desk = Desk::new("live");
    desk.file("handlers.lua", &script("first"));
    desk.file("objects/a.yaml", &object("a"));
    let operator = start(&desk, &["handlers.lua", "--apply", "objects"]).await;
    operator.until_says("first a").await;

    desk.file("handlers.lua", &script("second"));
    operator.until_says("Reloaded handlers.lua: generation 2, changed on_create 'made' (").await;
    desk.file("objects/b.yaml", &object("b"));
    operator.until_says("second b").await;

    desk.file("handlers.lua", "kopf.on_create('kopfexamples',\n");
    operator.until_says("Reload of handlers.lua rejected; generation 2 keeps running.").await;
    operator.until_says("error: handlers.lua:").await;
    desk.file("objects/c.yaml", &object("c"));
    operator.until_says("second c").await;

    desk.file("handlers.lua", &script("second"));
    operator.until_says("The edit was reverted; generation 2 keeps running.").await;
    desk.file("handlers.lua", &script("third"));
    operator.until_says("Reloaded handlers.lua: generation 3, changed on_create 'made' (").await;
    let ended = operator.stop().await;
    ended.assert_code(0);
    ended.assert_count("Reload of", 1);
    ended.assert_count("Creation is processed: 1 succeeded", 3);
}

#[tokio::test]
async fn a_start_up_handler_that_retries_for_ever_does_not_keep_the_next_edit_out() {
    let desk = Desk::new("live-startup");
    desk.file("ops/a.lua", &script("first"));
    let operator = start(&desk, &["ops"]).await;
    desk.file(
        "ops/boot.lua",
        "kopf.on_startup({ id = 'boot' }, function() error('no database') end)",
    );
    operator.until_says("Activity 'boot' failed (attempt 1), retrying in").await;
    desk.remove("ops/boot.lua");
    operator.until_says("The edit of ops/boot.lua (new) is superseded").await;
    desk.file("ops/a.lua", &script("second"));
    operator.until_says("Reloaded ops/a.lua: generation 2, changed on_create 'made' (").await;
    operator.stop().await.assert_code(0);
}

#[tokio::test]
async fn a_config_map_is_a_script_that_can_be_edited() {
    let desk = Desk::new("live-map");
    let map = |word: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: ops }}\ndata:\n  \
             _word.lua: |\n    return '{word}'\n  \
             a.lua: |\n    local word = require('_word')\n    \
             kopf.on_create('kopfexamples', {{ id = 'made' }}, function(ctx) ctx.logger:info(word .. ' ' .. ctx.name) end)\n"
        )
    };
    desk.file("ops.yaml", &map("first"));
    desk.file("objects/a.yaml", &object("a"));
    let args = ["--from-configmap", "default/ops", "--apply", "ops.yaml", "--apply", "objects"];
    let operator = start(&desk, &args).await;
    operator.until_says("first a").await;
    desk.file("ops.yaml", &map("second"));
    operator.until_says("Reloaded configmap/default/ops/_word.lua: generation 2, ").await;
    desk.file("objects/b.yaml", &object("b"));
    operator.until_says("second b").await;
    operator.stop().await.assert_code(0);
}

#[tokio::test]
async fn without_reloading_the_scripts_stay_as_they_are() {
    let desk = Desk::new("live-off");
    desk.file("handlers.lua", &script("first"));
    desk.file("objects/a.yaml", &object("a"));
    let operator = start(&desk, &["handlers.lua", "--apply", "objects", "--no-reload"]).await;
    operator.until_says("first a").await;
    desk.file("handlers.lua", &script("second"));
    desk.file("objects/b.yaml", &object("b"));
    operator.until_says("first b").await;
    let ended = operator.stop().await;
    ended.assert_count("Reloaded", 0);
}

#[tokio::test]
async fn a_config_map_that_is_not_there_is_told_at_the_start() {
    let desk = Desk::new("live-missing");
    let mut command = Command::new(env!("CARGO_BIN_EXE_kopf"));
    command.env_clear().env("XDG_RUNTIME_DIR", &desk.0).current_dir(&desk.0);
    let ended = Operator::start(command.args(["dev", "--from-configmap", "default/nope"])).ended();
    let ended = ended.await;
    ended.assert_code(1);
    ended.assert_count("error: there is no configmap/default/nope\nhint: create it, ", 1);
}

#[tokio::test]
async fn who_wants_to_end_does_not_wait_for_an_api_that_does_not_answer() {
    let desk = Desk::new("live-hangs");
    // Accepts connections, and never responds.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = silent.local_addr().expect("an address");
    let config = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{name: c, cluster: {{server: \"http://{address}\"}}}}]\n\
         users: [{{name: c, user: {{}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: c}}}}]\n"
    );
    let kubeconfig = desk.file("kubeconfig", &config);
    let args = ["-A", "--verbose", "--from-configmap", "default/ops"];
    let operator = Operator::start(&mut crate::e2e::operator::kopf(&kubeconfig, &args));
    let asked = tokio::time::timeout(Duration::from_mins(1), silent.accept()).await;
    let _connection = asked.expect("it asks in time").expect("a connection");
    let ended = operator.stop().await;
    ended.assert_code(0);
}
