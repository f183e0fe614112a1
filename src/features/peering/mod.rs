//! Peering with other operators of the same objects: announces this operator, and pauses it while one with a higher priority is
//! active.
//!
//! There is one [`Member`] per peering object. `logic/replicas/peering/` decides; the members add and remove blockers in
//! [`Pauses`](crate::ports::Pauses), which streams and daemons follow. No error ends a member: each error is logged once, and the
//! request is retried.

mod command;
mod common;
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

pub use self::command::{Command, CommandProblem};
pub use self::common::Common;
use self::common::{ReadPlaces, TARGET};
use self::member::Member;
use crate::logic::replicas::peering::{self, PeeringScope};
use crate::telemetry::HealthState;

/// Maximum time that the start waits for the first read. A slow cluster must not delay the work for longer.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause before a member restarts after a bug.
const RESTART_PAUSE: Duration = Duration::from_secs(5);

/// The reactor's side of peering: sets the peering objects.
pub struct PeeringTargets {
    common: Common,
    places: watch::Sender<BTreeSet<PeeringScope>>,
    read_places: ReadPlaces,
}

/// The other side of peering: the task that follows the peering objects.
pub struct Peering {
    common: Common,
    places: watch::Receiver<BTreeSet<PeeringScope>>,
    read_places: ReadPlaces,
}

/// Creates both sides; nothing is requested before [`Peering::run`].
pub fn prepare(common: Common) -> (PeeringTargets, Peering) {
    let (sender, places) = watch::channel(BTreeSet::new());
    let read_places = ReadPlaces::default();
    let peering_targets = PeeringTargets {
        common: common.clone(),
        places: sender,
        read_places: Arc::clone(&read_places),
    };
    (peering_targets, Peering { common, places, read_places })
}

impl PeeringTargets {
    /// Sets the peering objects to follow. `is_known`: whether the cluster has peering resources at all.
    ///
    /// If peering is mandatory, each new object pauses the operator before this returns, so before any stream can start.
    pub fn set(&self, places: BTreeSet<PeeringScope>, is_known: bool) {
        let Common { settings, pauses, .. } = &self.common;
        if settings.peering.mandatory {
            let is_missing = !is_known;
            if is_missing && !pauses.has(peering::NO_RESOURCE) {
                let kind = peering::kind(settings.peering.clusterwide);
                tracing::warn!(
                    target: TARGET,
                    "The operator is paused: peering is mandatory, and the cluster has no {kind} (kopf.dev/v1). \
                     It resumes when the resource and its object '{}' are created.",
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

    /// Waits until each peering object was read, within a time limit: a starting operator should see one with a higher priority
    /// before its own objects.
    pub async fn all_read(&self) {
        let mut read_places = self.read_places.subscribe();
        let all = read_places.wait_for(|it| self.places.borrow().is_subset(it));
        if time::timeout(READ_TIMEOUT, all).await.is_err() {
            tracing::warn!(
                target: TARGET,
                "Cannot read the peering objects yet: starting without knowledge of other operators."
            );
        }
    }
}

impl Peering {
    /// Follows the peering objects until `stop`; then leaves all of them.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut running: BTreeMap<PeeringScope, CancellationToken> = BTreeMap::new();
        let mut members: JoinSet<PeeringScope> = JoinSet::new();
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
                    members.spawn(follow(
                        self.common.clone(),
                        place,
                        Arc::clone(&self.read_places),
                        end.clone(),
                    ));
                    end
                });
            }
            tokio::select! {
                biased; // the end first; then ended members, whose objects may be followed again
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

/// Follows one peering object until `end`, and returns it. A panic must not end this: two operators would handle the same objects.
async fn follow(
    common: Common,
    place: PeeringScope,
    read_places: ReadPlaces,
    end: CancellationToken,
) -> PeeringScope {
    loop {
        let member = Member::new(common.clone(), place.clone(), Arc::clone(&read_places));
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
        // After `end`, the member starts once more to leave the peering object.
        let _is_over = time::timeout(RESTART_PAUSE, end.cancelled()).await;
        common.health.forget(&part);
    }
}
