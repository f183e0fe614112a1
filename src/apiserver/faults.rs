//! Faults on demand: what can go wrong between a client and a real server, at will or by seeded chance.

use std::time::Duration;

use fastrand::Rng;

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Which requests, by method; empty: all of them.
    pub method: String,
    /// Which requests, by a part of the path with the query, as in `/pods/x` or `watch=true`; empty: all of them.
    pub path: String,
    /// How likely it is for one request, or for one event of a watch: from 0 to 1.
    pub chance: f64,
    /// How often it can happen; `None`: without an end.
    pub times: Option<u32>,
    /// What happens.
    pub effect: Effect,
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Nothing: one request is let through, whatever comes after in the list of faults.
    Pass,
    /// The answer comes later.
    Latency(Duration),
    /// Nothing is done, and the answer is an error; 404 says that the object does not exist.
    Refuse {
        /// The HTTP status.
        code: u16,
        /// The `Retry-After` header.
        retry_after_seconds: Option<u32>,
    },
    /// The request is carried out, but the answer is a 504.
    TimeoutAfterwards,
    /// A list shows the state of so many changes ago.
    StaleList(u64),
    /// Discovery documents do not show this API group, as on a server that has not read its CRDs yet. Its objects are served.
    HiddenGroup(String),
    /// An event of a watch is never delivered.
    LostEvent,
    /// An event of a watch comes later, and so do those behind it.
    LateEvent(Duration),
    /// From this event on a watch is silent, but open.
    Stall,
    /// A watch ends instead of this event.
    Close,
}

impl Fault {
    /// A fault that happens to every request.
    pub fn always(effect: Effect) -> Self {
        Self { method: String::new(), path: String::new(), chance: 1.0, times: None, effect }
    }

    /// The same for some requests only.
    #[must_use]
    pub fn on(self, method: &str, path: &str) -> Self {
        Self { method: method.into(), path: path.into(), ..self }
    }

    /// The same, so many times at most.
    #[must_use]
    pub fn times(self, times: u32) -> Self {
        Self { times: Some(times), ..self }
    }

    /// The same by chance: from 0 (never) to 1 (always).
    #[must_use]
    pub fn chance(self, chance: f64) -> Self {
        Self { chance, ..self }
    }

    fn concerns(&self, method: &str, path: &str) -> bool {
        (self.method.is_empty() || self.method == method) && path.contains(&self.path)
    }
}

impl Effect {
    /// Whether it happens to single events of a watch rather than to a request.
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

/// The faults in force, and the dice.
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

    /// What happens to a request: the first fault in the list that concerns it, if the dice say so.
    pub(crate) fn of_request(&mut self, method: &str, path: &str) -> Option<Effect> {
        self.roll(|it| !it.effect.is_of_events() && it.concerns(method, path))
    }

    /// Whether such a request would be refused for certain. Counts for nothing.
    pub(crate) fn refuses(&self, method: &str, path: &str) -> bool {
        let mut concerned = self.list.iter().filter(|it| it.concerns(method, path));
        let first = concerned.find(|it| it.times != Some(0) && !it.effect.is_of_events());
        first.is_some_and(|it| it.chance >= 1.0 && matches!(it.effect, Effect::Refuse { .. }))
    }

    /// What happens to one event of a watch.
    pub(crate) fn of_event(&mut self, path: &str) -> Option<Effect> {
        self.roll(|it| it.effect.is_of_events() && it.concerns("GET", path))
    }

    fn roll(&mut self, concerns: impl Fn(&Fault) -> bool) -> Option<Effect> {
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
