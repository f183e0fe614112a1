//! Slows an object down whose calls change the same things again and again: a cycle of handlers that wake each other, or a function
//! that returns something else at each call.

use std::{collections::BTreeMap, time::Duration};

/// The time over which changes are counted.
const WINDOW: Duration = Duration::from_mins(1);
/// How often one thing may change within that time.
const CHANGES_MAX: u32 = 12;
/// The same while calls are slowed down: users may change something meanwhile, too.
const CALM_MAX: u32 = 2;
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_mins(1);

/// Counts the changes of one object and its children.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pace {
    since: Duration,
    counts: BTreeMap<String, u32>,
    /// The number of pauses in a row.
    pauses: u32,
}

/// A pause before the next call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slow {
    /// How long to wait.
    pub pause: Duration,
    /// What changes too often.
    pub what: String,
    /// How often it has changed.
    pub count: u32,
    /// Within which time, at most.
    pub within: Duration,
    /// Whether the pauses have only begun.
    pub is_first: bool,
}

impl Pace {
    /// Counts what one call has changed; returns a pause if one of these changes too often.
    pub fn note(
        &mut self,
        changed: impl IntoIterator<Item = String>,
        now: Duration,
    ) -> Option<Slow> {
        let window = WINDOW.saturating_mul(1 + self.pauses.min(4));
        if now >= self.since.saturating_add(window) {
            let most = if self.pauses == 0 { CHANGES_MAX } else { CALM_MAX };
            let was_calm = self.counts.values().all(|it| *it <= most);
            self.counts.clear();
            self.since = now;
            if was_calm {
                self.pauses = 0;
            }
        }
        let mut worst: Option<(String, u32)> = None;
        for what in changed {
            if self.counts.is_empty() {
                self.since = now;
            }
            let count = self.counts.entry(what.clone()).or_default();
            *count += 1;
            if worst.as_ref().is_none_or(|(_, most)| *count > *most) {
                worst = Some((what, *count));
            }
        }
        let (what, count) = worst.filter(|(_, count)| *count > CHANGES_MAX || self.pauses > 0)?;
        let is_first = self.pauses == 0;
        let pause = Duration::from_secs(1).saturating_mul(1 << self.pauses.min(6)).min(PAUSE_MAX);
        self.pauses = self.pauses.saturating_add(1);
        Some(Slow { pause, what, count, within: window, is_first })
    }
}
