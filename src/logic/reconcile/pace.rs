//! Slows down an object whose calls change the same values again and again: a cycle of handlers that wake each other, or a function that
//! returns something else at each call.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    time::Duration,
};

/// The time over which changes are counted.
const WINDOW: Duration = Duration::from_mins(1);
/// How often one value may change within that time.
const CHANGES_MAX: u32 = 12;
/// The same while calls are slowed down: users may make changes meanwhile, too.
const CALM_MAX: u32 = 2;
/// The longest pause between calls while they are slowed down.
const PAUSE_MAX: Duration = Duration::from_mins(1);

/// Counts the changes of one object and its children.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pace {
    since: Duration,
    /// By the hashes of the values. A list, because most objects change few values, and then none for days.
    counts: Vec<(u64, u32)>,
    /// The number of pauses in a row.
    pauses: u32,
}

/// A pause before the next call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slow {
    /// The length of the pause.
    pub pause: Duration,
    /// The value that changes too often.
    pub what: String,
    /// The number of its changes.
    pub count: u32,
    /// The time within which they were counted, at most.
    pub within: Duration,
    /// Whether this is the first pause in a row.
    pub is_first: bool,
}

impl Pace {
    /// Counts the changes of one call; returns a pause if one of these values changes too often.
    pub fn note(
        &mut self,
        changed: impl IntoIterator<Item = String>,
        now: Duration,
    ) -> Option<Slow> {
        let window = WINDOW.saturating_mul(1 + self.pauses.min(4));
        if now >= self.since.saturating_add(window) {
            let most = if self.pauses == 0 { CHANGES_MAX } else { CALM_MAX };
            let was_calm = self.counts.iter().all(|(_, it)| *it <= most);
            self.counts = Vec::new();
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
            let count = self.count(&what);
            if worst.as_ref().is_none_or(|(_, most)| count > *most) {
                worst = Some((what, count));
            }
        }
        let (what, count) = worst.filter(|(_, count)| *count > CHANGES_MAX || self.pauses > 0)?;
        let is_first = self.pauses == 0;
        let pause = Duration::from_secs(1).saturating_mul(1 << self.pauses.min(6)).min(PAUSE_MAX);
        self.pauses = self.pauses.saturating_add(1);
        Some(Slow { pause, what, count, within: window, is_first })
    }

    /// Counts one change of one value; returns the number of its changes.
    fn count(&mut self, what: &str) -> u32 {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        let hash = hasher.finish();
        let place = self.counts.binary_search_by_key(&hash, |(it, _)| *it);
        if let Err(place) = place {
            self.counts.reserve_exact(1 + self.counts.len() / 8);
            self.counts.insert(place, (hash, 0));
        }
        let (Ok(place) | Err(place)) = place;
        let found = self.counts.get_mut(place);
        found.map_or(0, |(_, count)| {
            *count += 1;
            *count
        })
    }
}
