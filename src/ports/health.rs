//! How the parts of an operator are: for probes, metrics and people.

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

use super::metrics::Metrics;

/// The state of every part by its name, such as `stream/pods.v1 cluster-wide`, `login`, `leader-election`. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Health(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    parts: Mutex<BTreeMap<String, Arc<Part>>>,
    metrics: Metrics,
}

/// The state of one part.
#[derive(Clone, Debug)]
pub struct PartHealth {
    /// What it means for the whole.
    pub state: HealthState,
    /// One line for people.
    pub text: String,
    /// When the state was last confirmed; for streams, the age of the last sound.
    pub seen: Instant,
    /// Without a sound for longer than this, the part is not ready, whatever it said last; `None` for parts that may be silent.
    pub silence_max: Option<Duration>,
}

/// What the state of a part means for the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthState {
    /// All is well.
    Ready,
    /// Not yet, or not now; it goes on trying by itself.
    Unready,
    /// Only a restart helps.
    Dead,
}

/// How a part with a life of its own tells how it is: a sound costs one store, so that there can be one per event. The part is
/// forgotten when the pulse goes. The default belongs to nobody and is heard by nobody.
#[derive(Debug, Default)]
pub struct Pulse {
    part: Arc<Part>,
    /// Where it is listed, and under which name.
    listed: Option<(Health, String)>,
}

#[derive(Debug)]
struct Part {
    said: Mutex<(HealthState, String)>,
    born: Instant,
    /// Milliseconds from `born` to the last sound.
    heard: AtomicU64,
    silence_max: Option<Duration>,
}

impl Health {
    /// Notes how a part is now.
    pub fn note(&self, part: &str, state: HealthState, text: &str) {
        let mut parts = self.lock();
        match parts.get(part) {
            Some(known) => known.say(state, text),
            None => {
                parts.insert(part.to_owned(), Arc::new(Part::new(state, text, None)));
            }
        }
    }

    /// Confirms the present state of a part, whatever it is. What happens often has a [`Pulse`] instead.
    pub fn confirm(&self, part: &str) {
        if let Some(known) = self.lock().get(part) {
            known.hear();
        }
    }

    /// Forgets a part that is gone.
    pub fn forget(&self, part: &str) {
        self.lock().remove(part);
    }

    /// A part that is not ready yet, and that must be heard at least this often once it is.
    pub fn pulse(&self, part: &str, silence_max: Option<Duration>) -> Pulse {
        let fresh = Arc::new(Part::new(HealthState::Unready, "not ready yet", silence_max));
        self.lock().insert(part.to_owned(), Arc::clone(&fresh));
        Pulse { part: fresh, listed: Some((self.clone(), part.to_owned())) }
    }

    /// All parts, by name.
    pub fn parts(&self) -> BTreeMap<String, PartHealth> {
        self.lock().iter().map(|(name, part)| (name.clone(), part.told())).collect()
    }

    /// The numbers of this operator.
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Part>>> {
        self.0.parts.lock()
    }
}

impl Pulse {
    /// There was a sound: the part lives, in whatever state it is.
    pub fn beat(&self) {
        self.part.hear();
    }

    /// The part is in this state from now on.
    pub fn say(&self, state: HealthState, text: &str) {
        self.part.say(state, text);
    }

    /// The part is well; only a sound if that is known.
    pub fn recover(&self, text: &str) {
        let is_known = {
            let said = self.part.lock();
            said.0 == HealthState::Ready && said.1 == text
        };
        if is_known { self.beat() } else { self.say(HealthState::Ready, text) }
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        let Some((health, name)) = &self.listed else { return };
        let mut parts = health.lock();
        // A successor of the same name stays.
        if parts.get(name).is_some_and(|it| Arc::ptr_eq(it, &self.part)) {
            parts.remove(name);
        }
    }
}

impl Default for Part {
    fn default() -> Self {
        Part::new(HealthState::Unready, "", None)
    }
}

impl Part {
    fn new(state: HealthState, text: &str, silence_max: Option<Duration>) -> Self {
        let said = Mutex::new((state, text.to_owned()));
        Part { said, born: Instant::now(), heard: AtomicU64::new(0), silence_max }
    }

    fn hear(&self) {
        let age = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        // Only ever compared with the present: no other memory depends on it.
        self.heard.store(age, Ordering::Relaxed);
    }

    fn say(&self, state: HealthState, text: &str) {
        *self.lock() = (state, text.to_owned());
        self.hear();
    }

    fn told(&self) -> PartHealth {
        let (state, text) = self.lock().clone();
        let seen = self.born + Duration::from_millis(self.heard.load(Ordering::Relaxed));
        PartHealth { state, text, seen, silence_max: self.silence_max }
    }

    fn lock(&self) -> MutexGuard<'_, (HealthState, String)> {
        self.said.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Health, HealthState};

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
    async fn the_successor_of_a_pulse_stays_listed() {
        let health = Health::default();
        let first = health.pulse("stream/x", None);
        let _second = health.pulse("stream/x", None);
        drop(first);
        assert!(health.parts().contains_key("stream/x"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_sound_moves_the_age_and_nothing_else() {
        let health = Health::default();
        let pulse = health.pulse("stream/x", None);
        pulse.say(HealthState::Unready, "no answer");
        tokio::time::sleep(Duration::from_secs(5)).await;
        pulse.beat();
        let part = health.parts()["stream/x"].clone();
        assert_eq!((part.state, part.text.as_str()), (HealthState::Unready, "no answer"));
        assert_eq!(part.seen.elapsed(), Duration::ZERO);
    }
}
