//! `settings.execution.max_workers`: the maximum number of handlers of a Rhai script that run at once.

use std::time::Duration;

use futures::future;
use kopf::{call::Scripts as _, scripting::Placement, settings::Settings};
use tokio::time::Instant;

use super::{Operator, run_paused};

/// Returns the total seconds of three handlers of one second each.
fn seconds(max_workers: Option<usize>) -> u64 {
    run_paused(async {
        let text = "kopf::on_create(\"kopfexamples\", |ctx| { kopf::sleep(1); });";
        let operator = Operator::of(&[("a.rhai", text)], Placement::CurrentRuntime).await;
        let mut settings = Settings::default();
        settings.execution.max_workers = max_workers;
        operator.host.configure(&settings);
        let start = Instant::now();
        future::join3(operator.call("create"), operator.call("create"), operator.call("create"))
            .await;
        (start.elapsed() + Duration::from_millis(1)).as_secs()
    })
}

#[test]
fn as_many_handlers_run_at_once_as_the_setting_says() {
    assert_eq!(seconds(None), 1);
    assert_eq!(seconds(Some(3)), 1);
    assert_eq!(seconds(Some(2)), 2);
    assert_eq!(seconds(Some(1)), 3);
    assert_eq!(seconds(Some(100)), 1);
}
