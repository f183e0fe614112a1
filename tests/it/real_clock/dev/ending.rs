//! The end of a process: signals, exit codes.

use super::Desk;

/// A clean-up that never ends.
const STUCK: &str =
    "kopf.on_event('pods', function() end) kopf.on_cleanup(function() kopf.sleep(3600) end)";

#[tokio::test]
async fn either_signal_ends_it_gracefully() {
    let desk = Desk::new("signals");
    desk.file(
        "handlers.rhai",
        r#"kopf::on_cleanup(|ctx| { ctx.logger.info("swept"); }); kopf::on_event("pods", |ctx| ());"#,
    );
    for signal in ["INT", "TERM"] {
        let operator = desk.start("handlers.rhai").await;
        operator.signal(signal).await;
        let ended = operator.ended().await;
        ended.assert_code(0);
        ended.assert_count(&format!("Signal SIG{signal} is received. Operator is stopping."), 1);
        ended.assert_count("swept", 1);
    }
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let desk = Desk::new("second-signal");
    desk.file("handlers.lua", STUCK);
    let operator = desk.start("handlers.lua").await;
    operator.signal("TERM").await;
    operator.until_says("Signal SIGTERM is received. Operator is stopping.").await;
    operator.signal("INT").await;
    let ended = operator.ended().await;
    // As in shells: 128 plus the number of the signal.
    ended.assert_code(130);
    ended.assert_count("Signal SIGINT is received again. Exiting immediately", 1);
}

#[tokio::test]
async fn an_exit_that_takes_too_long_ends_with_137() {
    let desk = Desk::new("overdue");
    desk.file("handlers.lua", STUCK);
    let operator = desk.start("handlers.lua --set process.ultimate_exiting_timeout=500ms").await;
    operator.signal("TERM").await;
    let ended = operator.ended().await;
    ended.assert_code(137);
    ended.assert_count("settings.process.ultimate_exiting_timeout", 1);
}
