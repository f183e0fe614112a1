//! Other operators of the same objects: tells them that we are there, and pauses us while a stronger one is.
//!
//! One [`Member`] per peering object. What they decide is in `logic/peering/`; they set and lift blockers of
//! [`Pauses`], which streams and daemons obey. No error ends them: each is told once and the request is tried again.

mod command;
mod member;
mod requests;

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::AssertUnwindSafe,
    sync::Arc,
    time::Duration,
};

use futures::FutureExt as _;
use tokio::{sync::watch, task::JoinSet, time};
use tokio_util::sync::CancellationToken;

pub use self::command::{Command, Problem};
use self::member::Member;
use super::leadership::Leadership;
use crate::logic::peering::{self, Place};
use crate::ports::{Clock, Cluster, Health, HealthState, Pauses};
use crate::settings::Settings;

/// The log target of peering.
const TARGET: &str = "kopf.peering";

/// The longest that the start waits for a first look. Where the cluster is slow, there is work to do all the same.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause before a place is watched again after a bug.
const RESTART_PAUSE: Duration = Duration::from_secs(5);

/// What all members share.
#[derive(Clone)]
pub struct Common {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// As they are after start-up.
    pub settings: Arc<Settings>,
    /// The time.
    pub clock: Clock,
    /// Our key among peers.
    pub identity: String,
    /// What holds the operator back.
    pub pauses: Pauses,
    /// A standby looks on, and writes nothing.
    pub leadership: Leadership,
    /// Where members tell how they are.
    pub health: Health,
}

/// The side of the reactor: says where to meet.
pub struct Venues {
    common: Common,
    places: watch::Sender<BTreeSet<Place>>,
    looks: Looks,
}

/// The meetings with other operators.
pub struct Peering {
    common: Common,
    places: watch::Receiver<BTreeSet<Place>>,
    looks: Looks,
}

/// The places where somebody has looked how things stand.
type Looks = Arc<watch::Sender<BTreeSet<Place>>>;

/// Prepares the meetings; nothing is requested before [`Peering::run`].
pub fn prepare(common: Common) -> (Venues, Peering) {
    let (sender, places) = watch::channel(BTreeSet::new());
    let looks = Looks::default();
    let venues = Venues { common: common.clone(), places: sender, looks: Arc::clone(&looks) };
    (venues, Peering { common, places, looks })
}

impl Venues {
    /// Meets at these places from now on. `is_known` says whether the cluster has peering resources at all.
    ///
    /// A mandatory peering holds the operator back from this moment on, before any stream can start.
    pub fn set(&self, places: BTreeSet<Place>, is_known: bool) {
        let Common { settings, pauses, .. } = &self.common;
        if settings.peering.mandatory {
            let is_missing = !is_known;
            if is_missing && !pauses.has(peering::NO_RESOURCE) {
                let kind = peering::kind(settings.peering.clusterwide);
                tracing::warn!(
                    target: TARGET,
                    "The operator is paused: peering is mandatory, and the cluster has no {kind} (kopf.dev/v1). \
                     It goes on when the resource and its object '{}' are created.",
                    settings.peering.name
                );
            }
            pauses.set(peering::NO_RESOURCE, is_missing);
            let known = self.places.borrow();
            for place in places.difference(&known) {
                pauses.set(&self.common.blocker(place), true);
            }
        }
        self.places.send_replace(places);
    }

    /// Waits until somebody has looked at each place, but not for long: an operator that starts beside a stronger one should
    /// see it before its own objects.
    pub async fn looked(&self) {
        let mut looks = self.looks.subscribe();
        let all = looks.wait_for(|it| self.places.borrow().is_subset(it));
        if time::timeout(LOOK_TIMEOUT, all).await.is_err() {
            tracing::warn!(
                target: TARGET,
                "Other operators cannot be seen yet. The work begins without knowing of them."
            );
        }
    }
}

impl Peering {
    /// Meets until told to stop; leaves all places then.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut running: BTreeMap<Place, CancellationToken> = BTreeMap::new();
        let mut members: JoinSet<Place> = JoinSet::new();
        loop {
            let wanted = self.places.borrow_and_update().clone();
            for (place, end) in &running {
                if !wanted.contains(place) {
                    end.cancel();
                }
            }
            for place in wanted {
                running.entry(place.clone()).or_insert_with(|| {
                    let end = CancellationToken::new();
                    members.spawn(meet(
                        self.common.clone(),
                        place,
                        Arc::clone(&self.looks),
                        end.clone(),
                    ));
                    end
                });
            }
            tokio::select! {
                biased; // the end first; then room for a place that comes back
                () = stop.cancelled() => break,
                Some(left) = members.join_next() => if let Ok(place) = left { running.remove(&place); },
                changed = self.places.changed() => if changed.is_err() {
                    stop.cancelled().await;
                    break;
                },
            }
        }
        running.values().for_each(CancellationToken::cancel);
        while members.join_next().await.is_some() {}
    }
}

/// Meets at one place until told to stop, and returns the place. A bug must not end it: two operators would act on the same objects.
async fn meet(common: Common, place: Place, looks: Looks, end: CancellationToken) -> Place {
    loop {
        let member = Member::new(common.clone(), place.clone(), Arc::clone(&looks));
        let Err(_panic) = AssertUnwindSafe(member.run(end.clone())).catch_unwind().await else {
            return place;
        };
        let part = format!("peering/{}", place.0);
        let text = format!(
            "Peering at {} failed unexpectedly, restarting in {} s.",
            place.0,
            RESTART_PAUSE.as_secs()
        );
        tracing::error!(target: TARGET, "{text}");
        common.health.note(&part, HealthState::Unready, &text);
        // Told to stop, it begins once more to leave the place.
        let _is_over = time::timeout(RESTART_PAUSE, end.cancelled()).await;
        common.health.forget(&part);
    }
}

impl Common {
    /// The name of the blocker of a place.
    fn blocker(&self, (resource, namespace): &Place) -> String {
        peering::blocker(&self.settings.peering.name, &resource.group, namespace.as_deref())
    }
}
