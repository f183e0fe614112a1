//! The health of an operator's parts: for probes, metrics and users.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use crate::sorted::CollectSorted as _;
use crate::telemetry::Metrics;

/// The state of every part by its name, such as `stream/pods.v1 cluster-wide`, `login`, `leader-election`. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Health(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    parts: Mutex<BTreeMap<String, Arc<HealthPart>>>,
    metrics: Metrics,
}

/// The state of one part.
#[derive(Clone, Debug)]
pub struct PartHealth {
    /// The state that the part has reported last.
    pub state: HealthState,
    /// One line for users.
    pub text: String,
    /// When the state was last confirmed; for streams, the time of the last beat.
    pub seen: Instant,
    /// After this long without a beat the part is not ready, whatever its last state; `None` for parts that may be silent.
    pub silence_max: Option<Duration>,
}

/// The state of a part, by its effect on the whole operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthState {
    /// The part works.
    Ready,
    /// Does not work yet, or not now; keeps trying.
    Unready,
    /// Only a restart helps.
    Dead,
}

/// A reporter of the health of one part. A beat costs one atomic store, so a part can send one per event. Dropping the pulse removes the
/// part. The default pulse is not listed.
#[derive(Debug, Default)]
pub struct Pulse {
    part: Arc<HealthPart>,
    /// The registry that lists the part, and the part's name in it.
    listed: Option<(Health, String)>,
}

#[derive(Debug)]
struct HealthPart {
    state: Mutex<(HealthState, String)>,
    born: Instant,
    /// Milliseconds from `born` to the last beat.
    beat_at: AtomicU64,
    silence_max: Option<Duration>,
}

impl Health {
    /// Sets the state of a part.
    pub fn note(&self, part: &str, state: HealthState, text: &str) {
        let mut parts = self.lock();
        match parts.get(part) {
            Some(known) => known.set(state, text),
            None => {
                parts.insert(part.to_owned(), Arc::new(HealthPart::new(state, text, None)));
            }
        }
    }

    /// Confirms the current state of a part, whatever it is. Frequent reporters use a [`Pulse`] instead.
    pub fn confirm(&self, part: &str) {
        if let Some(known) = self.lock().get(part) {
            known.beat();
        }
    }

    /// Removes a part from the list.
    pub fn forget(&self, part: &str) {
        self.lock().remove(part);
    }

    /// Adds a part that is not ready yet. Once ready, it must beat at least every `silence_max`.
    pub fn pulse(&self, part: &str, silence_max: Option<Duration>) -> Pulse {
        let fresh = Arc::new(HealthPart::new(HealthState::Unready, "not ready yet", silence_max));
        self.lock().insert(part.to_owned(), Arc::clone(&fresh));
        Pulse { part: fresh, listed: Some((self.clone(), part.to_owned())) }
    }

    /// Returns all parts, by name.
    pub fn parts(&self) -> BTreeMap<String, PartHealth> {
        self.lock().iter().map(|(name, part)| (name.clone(), part.report())).collect_map()
    }

    /// Returns the metrics of this operator.
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<HealthPart>>> {
        self.0.parts.lock()
    }
}

impl Pulse {
    /// Confirms that the part is alive, in whatever state.
    pub fn beat(&self) {
        self.part.beat();
    }

    /// Sets the state of the part.
    pub fn set(&self, state: HealthState, text: &str) {
        self.part.set(state, text);
    }

    /// Sets the state to ready; only a beat if this state and message are already set.
    pub fn recover(&self, text: &str) {
        let is_known = {
            let state = self.part.lock();
            state.0 == HealthState::Ready && state.1 == text
        };
        if is_known { self.beat() } else { self.set(HealthState::Ready, text) }
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        let Some((health, name)) = &self.listed else { return };
        let mut parts = health.lock();
        // A newer pulse of the same name stays listed.
        if parts.get(name).is_some_and(|it| Arc::ptr_eq(it, &self.part)) {
            parts.remove(name);
        }
    }
}

impl Default for HealthPart {
    fn default() -> Self {
        HealthPart::new(HealthState::Unready, "", None)
    }
}

impl HealthPart {
    fn new(state: HealthState, text: &str, silence_max: Option<Duration>) -> Self {
        let state = Mutex::new((state, text.to_owned()));
        HealthPart { state, born: Instant::now(), beat_at: AtomicU64::new(0), silence_max }
    }

    fn beat(&self) {
        let age = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        // Only compared with the current time: no other memory depends on it.
        self.beat_at.store(age, Ordering::Relaxed);
    }

    fn set(&self, state: HealthState, text: &str) {
        *self.lock() = (state, text.to_owned());
        self.beat();
    }

    fn report(&self) -> PartHealth {
        let (state, text) = self.lock().clone();
        let seen = self.born + Duration::from_millis(self.beat_at.load(Ordering::Relaxed));
        PartHealth { state, text, seen, silence_max: self.silence_max }
    }

    fn lock(&self) -> MutexGuard<'_, (HealthState, String)> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::telemetry::{Health, HealthState};

    #[tokio::test(start_paused = true)]
    async fn a_part_is_listed_as_long_as_its_pulse_lives() {
        let health = Health::default();
        let pulse = health.pulse("stream/x", Some(Duration::from_secs(1)));
        assert_eq!(health.parts()["stream/x"].state, HealthState::Unready);
        pulse.recover("watching");
        assert_eq!(health.parts()["stream/x"].state, HealthState::Ready);
        drop(pulse);
        assert!(health.parts().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_newer_pulse_of_the_same_name_stays_listed() {
        let health = Health::default();
        let first = health.pulse("stream/x", None);
        let _second = health.pulse("stream/x", None);
        drop(first);
        assert!(health.parts().contains_key("stream/x"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_beat_changes_only_the_age() {
        let health = Health::default();
        let pulse = health.pulse("stream/x", None);
        pulse.set(HealthState::Unready, "no answer");
        tokio::time::sleep(Duration::from_secs(5)).await;
        pulse.beat();
        let part = health.parts()["stream/x"].clone();
        assert_eq!((part.state, part.text.as_str()), (HealthState::Unready, "no answer"));
        assert_eq!(part.seen.elapsed(), Duration::ZERO);
    }
}
