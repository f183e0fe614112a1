//! Faults on demand: errors between a client and a real server, always or with a seeded probability.

use std::time::Duration;

use fastrand::Rng;

/// A fault, and the requests or watch events that it applies to.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The method of affected requests; empty for all.
    pub method: String,
    /// A part of the path and query of affected requests, such as `/pods/x` or `watch=true`; empty for all.
    pub path: String,
    /// The probability for one request, or for one event of a watch: from 0 to 1.
    pub chance: f64,
    /// The maximum number of times; `None` for no limit.
    pub times: Option<u32>,
    /// The kind of fault.
    pub effect: FaultEffect,
}

/// The kinds of faults.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultEffect {
    /// No fault: one request passes, regardless of later faults in the list.
    Pass,
    /// Delays the response by this time.
    Latency(Duration),
    /// Rejects the request without executing it; 404 means that the object does not exist.
    Refuse {
        /// The HTTP status code.
        code: u16,
        /// The seconds in the `Retry-After` header.
        retry_after_seconds: Option<u32>,
    },
    /// Executes the request, but responds with a 504.
    TimeoutAfterwards,
    /// Returns a list in the state of this many changes ago.
    StaleList(u64),
    /// Hides an API group in discovery documents, as on a server that has not read its CRDs yet. Its objects are still served.
    HiddenGroup(String),
    /// Never delivers an event of a watch.
    LostEvent,
    /// Delays an event of a watch and those after it.
    LateEvent(Duration),
    /// Sends no more events from this one on, but keeps the watch open.
    Stall,
    /// Ends a watch instead of sending this event.
    Close,
}

impl Fault {
    /// Makes a fault that applies to every request.
    pub fn always(effect: FaultEffect) -> Self {
        Self { method: String::new(), path: String::new(), chance: 1.0, times: None, effect }
    }

    /// Limits the fault to a method and a part of the path; see [`Fault::path`].
    #[must_use]
    pub fn on(self, method: &str, path: &str) -> Self {
        Self { method: method.into(), path: path.into(), ..self }
    }

    /// Limits how often the fault applies.
    #[must_use]
    pub fn times(self, times: u32) -> Self {
        Self { times: Some(times), ..self }
    }

    /// Sets the probability: from 0 (never) to 1 (always).
    #[must_use]
    pub fn chance(self, chance: f64) -> Self {
        Self { chance, ..self }
    }

    fn concerns(&self, method: &str, path: &str) -> bool {
        (self.method.is_empty() || self.method == method) && path.contains(&self.path)
    }
}

impl FaultEffect {
    /// Returns whether the fault applies to single events of a watch, not to requests.
    fn is_of_events(&self) -> bool {
        match self {
            Self::LostEvent | Self::LateEvent(_) | Self::Stall | Self::Close => true,
            Self::Pass
            | Self::Latency(_)
            | Self::Refuse { .. }
            | Self::TimeoutAfterwards
            | Self::StaleList(_)
            | Self::HiddenGroup(_) => false,
        }
    }
}

/// The active faults, and their random numbers.
#[derive(Debug)]
pub(crate) struct Faults {
    list: Vec<Fault>,
    random: Rng,
}

impl Faults {
    pub(crate) fn new(seed: u64) -> Self {
        Self { list: Vec::new(), random: Rng::with_seed(seed) }
    }

    pub(crate) fn add(&mut self, fault: Fault) {
        self.list.push(fault);
    }

    pub(crate) fn clear(&mut self) {
        self.list.clear();
    }

    /// Returns the fault of a request: the first one in the list that applies to it, with its probability. Counts it.
    pub(crate) fn of_request(&mut self, method: &str, path: &str) -> Option<FaultEffect> {
        self.roll(|it| !it.effect.is_of_events() && it.concerns(method, path))
    }

    /// Returns whether such a request would certainly be rejected. Does not count.
    pub(crate) fn refuses(&self, method: &str, path: &str) -> bool {
        let mut concerned = self.list.iter().filter(|it| it.concerns(method, path));
        let first = concerned.find(|it| it.times != Some(0) && !it.effect.is_of_events());
        first.is_some_and(|it| it.chance >= 1.0 && matches!(it.effect, FaultEffect::Refuse { .. }))
    }

    /// Returns the fault of one event of a watch.
    pub(crate) fn of_event(&mut self, path: &str) -> Option<FaultEffect> {
        self.roll(|it| it.effect.is_of_events() && it.concerns("GET", path))
    }

    fn roll(&mut self, concerns: impl Fn(&Fault) -> bool) -> Option<FaultEffect> {
        let random = &mut self.random;
        let hit = self.list.iter_mut().find(|it| {
            it.times != Some(0) && concerns(it) && (it.chance >= 1.0 || random.f64() < it.chance)
        })?;
        hit.times = hit.times.map(|it| it - 1);
        let effect = hit.effect.clone();
        self.list.retain(|it| it.times != Some(0));
        Some(effect)
    }
}
