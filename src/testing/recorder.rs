//! Records the actions of handlers and their times.

use std::{fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// Lines with the time since the start of the log. Clones share them.
#[derive(Clone)]
pub struct CallLog {
    start: Instant,
    lines: Arc<Mutex<Vec<(Duration, String)>>>,
}

impl Default for CallLog {
    /// Starts the log now.
    fn default() -> Self {
        CallLog { start: Instant::now(), lines: Arc::default() }
    }
}

impl CallLog {
    /// Adds a line at the current time.
    pub fn add(&self, line: impl Into<String>) {
        self.lines.lock().push((self.start.elapsed(), line.into()));
    }

    /// Adds a line when the result is dropped, unless it is disarmed: this makes a cancelled call visible.
    pub fn add_on_drop(&self, line: String) -> OnDrop<impl FnOnce() + use<>> {
        let log = self.clone();
        OnDrop::new(move || log.add(line))
    }

    /// Returns all lines with their times.
    pub fn timed(&self) -> Vec<(Duration, String)> {
        self.lines.lock().clone()
    }

    /// Returns all lines without their times.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().iter().map(|(_, line)| line.clone()).collect()
    }

    /// Returns the seconds of the lines that contain this string.
    pub fn seconds_of(&self, text: &str) -> Vec<u64> {
        let lines = self.lines.lock();
        lines.iter().filter(|(_, line)| line.contains(text)).map(|(at, _)| at.as_secs()).collect()
    }

    /// Returns and removes all lines.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock()).into_iter().map(|(_, line)| line).collect()
    }

    /// Returns and removes all lines, sorted: for objects that are handled concurrently.
    pub fn take_sorted(&self) -> Vec<String> {
        let mut lines = self.take();
        lines.sort();
        lines
    }
}

/// Formats each line with its second.
impl fmt::Display for CallLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.timed().iter().try_for_each(|(at, line)| writeln!(f, "{} {line}", at.as_secs()))
    }
}

/// A guard that calls a function when it is dropped, unless it is disarmed.
pub struct OnDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> OnDrop<F> {
    /// Sets the function to call on drop.
    pub fn new(call: F) -> Self {
        OnDrop(Some(call))
    }

    /// Drops the value without the call.
    pub fn disarm(mut self) {
        self.0 = None;
    }
}

impl<F: FnOnce()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            call();
        }
    }
}
