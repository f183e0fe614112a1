//! The faults of requests and of lines of a watch: decided by the seed, counted by kind.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use fastrand::Rng;
use http::{Method, Uri};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::dice::Dice;

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// The server does not receive the request, and no response arrives.
    LostRequest,
    /// The server executes the request, but no response arrives.
    LostAnswer,
    /// The connection breaks before the server receives the request.
    BrokenBefore,
    /// The connection breaks after the server has executed the request.
    BrokenAfter,
    /// The server receives the request later.
    LateRequest,
    /// The response arrives later.
    LateAnswer,
    /// Status 409.
    Conflict,
    /// Status 422 for a JSON patch, as when its test fails.
    Outdated,
    /// Status 422 because of the content.
    Invalid,
    /// Status 403.
    Forbidden,
    /// Status 429, with or without `Retry-After`.
    TooMany,
    /// Status 500.
    Internal,
    /// Status 503.
    Unavailable,
    /// Status 404 that is not about the object.
    NoRoute,
    /// Status 410 for a list or a watch.
    Expired,
    /// A list shows an older state.
    StaleList,
    /// A watch ends.
    Cut,
    /// A watch ends within a line.
    HalfLine,
    /// A watch stays open, but silent.
    Stall,
    /// A line of a watch arrives twice.
    Twice,
    /// A line of a watch arrives later.
    LateLine,
    /// The process is killed before the server receives its request.
    DeathBefore,
    /// The process is killed after the server has executed its request.
    DeathAfter,
}

use Kind::{
    BrokenAfter, BrokenBefore, Conflict, Cut, DeathAfter, DeathBefore, Expired, Forbidden,
    HalfLine, Internal, Invalid, LateAnswer, LateLine, LateRequest, LostAnswer, LostRequest,
    NoRoute, Outdated, StaleList, Stall, TooMany, Twice, Unavailable,
};

/// The kinds that any request may have.
const OF_REQUESTS: [Kind; 9] = [
    LostRequest,
    BrokenBefore,
    LateRequest,
    LateAnswer,
    TooMany,
    Internal,
    Unavailable,
    NoRoute,
    DeathBefore,
];

/// A place where faults may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Discovery, leases, and other requests.
    Other,
    /// A list.
    List,
    /// The start of a watch.
    Watch,
    /// A merge PATCH.
    Merge,
    /// A JSON PATCH.
    Json,
    /// A line of a watch.
    Line,
    /// A list that servers read from etcd.
    FreshList,
    /// Any other request that writes.
    Write,
}

impl Place {
    /// Returns the place of a request for children, watched objects and slots, if it is one.
    pub(super) fn of_levels(method: &Method, uri: &Uri) -> Option<Place> {
        let path = uri.path();
        let kinds = ["configmaps", "secrets", "leases"];
        if !kinds.iter().any(|it| path.ends_with(it) || path.contains(&format!("/{it}/"))) {
            return None;
        }
        let is_list = method == Method::GET && kinds.iter().any(|it| path.ends_with(it));
        let is_watch = uri.query().is_some_and(|it| it.contains("watch=true"));
        match (is_list, is_watch, method == Method::GET) {
            (true, true, _) => Some(Place::Watch),
            (true, false, _) => Some(Place::FreshList),
            (false, _, true) => None,
            (false, _, false) => Some(Place::Write),
        }
    }

    fn kinds(self) -> Vec<Kind> {
        let more: &[Kind] = match self {
            Place::Other => &[Forbidden],
            Place::List => &[Forbidden, Expired, StaleList],
            Place::Watch | Place::FreshList => &[Forbidden, Expired],
            Place::Merge | Place::Write => {
                &[LostAnswer, BrokenAfter, Conflict, DeathAfter, Forbidden, Invalid]
            }
            Place::Json => {
                &[LostAnswer, BrokenAfter, Conflict, DeathAfter, Outdated, Forbidden, Invalid]
            }
            Place::Line => return vec![Cut, HalfLine, Stall, Twice, LateLine, Expired],
        };
        OF_REQUESTS.iter().chain(more).copied().collect()
    }
}

/// One decision: the name of the place, and the number of earlier decisions there. The same in each run of a seed, even when other faults
/// are left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// A fault.
    Fault(String, u64),
    /// An action of the users or around the operator, by its number.
    Action(u64),
}

impl Part {
    /// Returns whether the name of the place contains this.
    pub(super) fn is_about(&self, text: &str) -> bool {
        matches!(self, Part::Fault(place, _) if place.contains(text))
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Fault(place, number) => write!(f, "{place} #{number}"),
            Part::Action(number) => write!(f, "action {number}"),
        }
    }
}

/// A fault that happened.
#[derive(Clone, Debug)]
pub(super) struct Fired {
    pub(super) at: Duration,
    pub(super) part: Part,
    pub(super) kind: Kind,
}

/// The faults of one run. Clones share them.
#[derive(Clone)]
pub(super) struct Faults(Arc<Mutex<State>>);

struct State {
    dice: Dice,
    start: Instant,
    /// The probability of a fault at each place.
    chance: f64,
    /// The kinds of this seed: few kinds together find other bugs than all at once.
    kinds: BTreeSet<Kind>,
    is_on: bool,
    deaths_left: u32,
    asked: BTreeMap<String, u64>,
    fired: Vec<Fired>,
    only: Option<Arc<BTreeSet<Part>>>,
}

/// Maximum number of processes that faults kill in one run.
const DEATHS_MAX: u32 = 3;

impl Faults {
    /// Returns the faults of a seed; only these parts if there are any.
    pub(super) fn new(dice: Dice, only: Option<Arc<BTreeSet<Part>>>) -> Self {
        let mut random = dice.of("faults", 0);
        let chance = [0.01, 0.03, 0.08, 0.15][random.usize(..4)];
        let share = [0.2, 0.5, 1.0][random.usize(..3)];
        let kinds = Kind::ALL.into_iter().filter(|_| random.f64() < share).collect();
        Faults(Arc::new(Mutex::new(State {
            dice,
            start: Instant::now(),
            chance,
            kinds,
            is_on: true,
            deaths_left: DEATHS_MAX,
            asked: BTreeMap::new(),
            fired: Vec::new(),
            only,
        })))
    }

    /// Returns the fault at this place, if there is one, with random numbers for its details.
    pub(super) fn decide(&self, place: Place, name: &str) -> Option<(Kind, Rng)> {
        let mut state = self.0.lock();
        if !state.is_on {
            return None;
        }
        let asked = state.asked.entry(name.to_owned()).or_default();
        let number = *asked;
        *asked += 1;
        let mut random = state.dice.of(name, number);
        if random.f64() >= state.chance {
            return None;
        }
        let mut kinds = place.kinds();
        kinds.retain(|it| state.kinds.contains(it));
        let kind = *kinds.get(random.usize(..kinds.len().max(1)))?;
        let part = Part::Fault(name.to_owned(), number);
        if state.only.as_ref().is_some_and(|it| !it.contains(&part)) {
            return None;
        }
        if matches!(kind, DeathBefore | DeathAfter) {
            state.deaths_left = state.deaths_left.checked_sub(1)?;
        }
        let at = state.start.elapsed();
        state.fired.push(Fired { at, part, kind });
        Some((kind, random))
    }

    /// Returns random numbers for a place.
    pub(super) fn chance(&self, name: &str) -> Rng {
        let mut state = self.0.lock();
        let asked = state.asked.entry(name.to_owned()).or_default();
        *asked += 1;
        let number = *asked;
        state.dice.of(name, number)
    }

    /// Returns whether faults may happen.
    pub(super) fn is_on(&self) -> bool {
        self.0.lock().is_on
    }

    /// Ends all faults.
    pub(super) fn end(&self) {
        self.0.lock().is_on = false;
    }

    /// Returns the faults so far.
    pub(super) fn fired(&self) -> Vec<Fired> {
        self.0.lock().fired.clone()
    }
}

impl Kind {
    pub(super) const ALL: [Kind; 23] = [
        LostRequest,
        LostAnswer,
        BrokenBefore,
        BrokenAfter,
        LateRequest,
        LateAnswer,
        Conflict,
        Outdated,
        Invalid,
        Forbidden,
        TooMany,
        Internal,
        Unavailable,
        NoRoute,
        Expired,
        StaleList,
        Cut,
        HalfLine,
        Stall,
        Twice,
        LateLine,
        DeathBefore,
        DeathAfter,
    ];
}
