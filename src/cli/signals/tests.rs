//! Signals as a stream, with a paused clock.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt as _, stream};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::{StopSignal, watch};
use crate::cli::report::Exit;
use crate::settings::Settings;

fn settings(limit: Option<Duration>) -> Arc<Mutex<Settings>> {
    let mut settings = Settings::default();
    settings.process.ultimate_exiting_timeout = limit;
    Arc::new(Mutex::new(settings))
}

#[tokio::test(start_paused = true)]
async fn the_first_signal_stops_and_the_second_ends() {
    let stop = CancellationToken::new();
    let signals = stream::iter([StopSignal::Terminate, StopSignal::Interrupt]);
    let exit = watch(signals, stop.clone(), settings(None)).await;
    assert!(stop.is_cancelled());
    assert_eq!(exit, Exit::Killed(2));
}

#[tokio::test(start_paused = true)]
async fn one_signal_leaves_all_the_time_when_there_is_no_limit() {
    let stop = CancellationToken::new();
    let signals = stream::iter([StopSignal::Terminate]).chain(stream::pending());
    let watching = watch(signals, stop.clone(), settings(None));
    assert!(timeout(Duration::from_secs(100_000), watching).await.is_err());
    assert!(stop.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn an_exit_that_takes_too_long_is_aborted() {
    let begin = Instant::now();
    let signals = stream::iter([StopSignal::Terminate]).chain(stream::pending());
    let limit = Duration::from_mins(10);
    let exit = watch(signals, CancellationToken::new(), settings(Some(limit))).await;
    assert_eq!(exit, Exit::Killed(9));
    assert_eq!(begin.elapsed(), limit);
}

#[tokio::test(start_paused = true)]
async fn without_signals_nothing_is_stopped() {
    let stop = CancellationToken::new();
    let watching = watch(stream::pending(), stop.clone(), settings(None));
    assert!(timeout(Duration::from_secs(100_000), watching).await.is_err());
    assert!(!stop.is_cancelled());
}
