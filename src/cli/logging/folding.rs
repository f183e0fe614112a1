//! Counts lines that repeat, instead of writing each: an outage or a wrong script must not hide everything else.
//!
//! The first lines with the same gist are written, further ones are only counted, and the number is written at the end of the
//! window: `… 34 more in 30 s: Handler 'create_fn' failed temporarily: the secret is not there yet`.

use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};

use super::line::LogRecord;

/// Lines with the same gist that are written in one window.
const WRITTEN: u64 = 5;
/// The length of a window.
pub(super) const WINDOW: Duration = Duration::from_secs(30);
/// Maximum number of different gists; lines with further ones are all written.
const GISTS_MAX: usize = 1_000;
/// The part of a gist that is compared, in bytes.
const GIST_BYTES_MAX: usize = 500;

/// The current windows, by logger and gist.
#[derive(Debug, Default)]
pub(super) struct Folding(BTreeMap<(String, String), Window>);

/// The lines with one gist since the first of them.
#[derive(Debug)]
struct Window {
    end: Timestamp,
    lines: u64,
    level: tracing::Level,
}

impl Folding {
    /// Returns whether to write this line; otherwise it is counted.
    pub(super) fn admit(&mut self, record: &LogRecord, now: Timestamp) -> bool {
        let Some(gist) = &record.gist else { return true };
        let gist = gist.get(..gist.floor_char_boundary(GIST_BYTES_MAX)).unwrap_or_default();
        let key = (record.target.clone(), gist.to_owned());
        if self.0.len() >= GISTS_MAX && !self.0.contains_key(&key) {
            return true;
        }
        let end = now.saturating_add(SignedDuration::try_from(WINDOW).unwrap_or_default());
        let level = record.level;
        let window =
            self.0.entry(key).or_insert(Window { end: end.unwrap_or(now), lines: 0, level });
        window.lines += 1;
        window.lines <= WRITTEN
    }

    /// Ends the windows that are over by now, and returns the lines with their numbers.
    pub(super) fn end(&mut self, now: Timestamp) -> Vec<LogRecord> {
        let ended = self.0.extract_if(.., |_, it| it.end <= now);
        let folded = ended.filter(|(_, it)| it.lines > WRITTEN);
        let lines = folded.map(|((target, gist), window)| {
            let mut record = LogRecord::new(&target, window.level);
            let (more, seconds) = (window.lines - WRITTEN, WINDOW.as_secs());
            record.message = format!("… {more} more in {seconds} s: {gist}");
            record
        });
        lines.collect()
    }

    /// Ends all windows, and returns the lines with their numbers.
    pub(super) fn end_all(&mut self) -> Vec<LogRecord> {
        self.end(Timestamp::MAX)
    }

    /// Returns whether there is no window.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{Folding, LogRecord, Timestamp};

    fn record(gist: &str) -> LogRecord {
        let gist = Some(gist.to_owned());
        LogRecord { gist, ..LogRecord::new("kopf.objects", tracing::Level::ERROR) }
    }

    #[test]
    fn equal_lines_are_counted_from_the_sixth_on() {
        let at = |second| Timestamp::from_second(second).expect("valid");
        let mut folding = Folding::default();
        let written = (0..40).filter(|_| folding.admit(&record("a"), at(1))).count();
        assert_eq!(written, 5);
        assert!(folding.admit(&record("b"), at(2)), "another line");
        assert!(folding.admit(&LogRecord::new("kopf.objects", tracing::Level::ERROR), at(2)));
        assert!(folding.end(at(30)).is_empty(), "the window is 30 s long");
        let lines: Vec<_> = folding.end(at(31)).into_iter().map(|it| it.message).collect();
        assert_eq!(lines, ["… 35 more in 30 s: a"]);
        assert!(folding.admit(&record("a"), at(32)), "a new window");
        assert!(folding.end_all().is_empty() && folding.is_empty());
    }
}
