//! The records of one peering object, and the validity of each.
//!
//! Only the local clock is trusted: a peer is alive until its record has not changed for its lifetime. Moments are times since some
//! start; the stamp in a record is used only when the record is first seen, so that an operator does not wait for old records when
//! it starts.

use std::time::Duration;

use indexmap::IndexMap;
use jiff::Timestamp;
use serde_json::Value;

use super::Peer;

/// The records as last seen.
#[derive(Debug, Default)]
pub struct KnownPeers(IndexMap<String, KnownPeer>);

/// One record, and when its operator counts as dead.
#[derive(Debug)]
struct KnownPeer {
    /// The record in its raw form.
    entry: Value,
    peer: Peer,
    /// Whether the object still has the record. A removed record is kept for its lifetime: if it is written again, its writer is alive.
    is_present: bool,
    /// The peer is considered dead from this time on, unless the record changes before.
    dead_at: Duration,
    /// When the record will not have been renewed for its lifetime. Differs from `dead_at` only before the first change.
    abandoned_at: Duration,
}

impl KnownPeers {
    /// Updates the records from an object that was read now; `wall` is compared with the stamps of new records.
    pub fn update(&mut self, body: &Value, wall: Timestamp, now: Duration) {
        self.0.retain(|_, it| now < it.abandoned_at || it.is_present);
        self.0.values_mut().for_each(|it| it.is_present = false);
        let entry = |identity: &str| body.get("status").and_then(|it| it.get(identity)).cloned();
        for peer in Peer::all_of(body, wall) {
            let entry = entry(&peer.identity).unwrap_or_default();
            let lifetime = peer.lifetime();
            let abandoned_at = now.saturating_add(lifetime);
            let dead_at = match self.0.get_mut(&peer.identity) {
                Some(known) if known.entry == entry => {
                    known.is_present = true;
                    continue;
                }
                Some(_changed) => abandoned_at,
                None => now.saturating_add(peer.time_left(wall).min(lifetime)),
            };
            let identity = peer.identity.clone();
            let known = KnownPeer { entry, peer, is_present: true, dead_at, abandoned_at };
            self.0.insert(identity, known);
        }
    }

    /// Removes the records of peers that are dead now.
    pub fn forget_dead(&mut self, now: Duration) {
        self.0.retain(|_, it| now < it.dead_at);
    }

    /// Returns all records, in the order of the object.
    pub fn all(&self) -> impl Iterator<Item = &Peer> {
        self.present().map(|it| &it.peer)
    }

    /// Returns the valid records, each with the time of its expiration.
    pub fn live(&self, now: Duration) -> impl Iterator<Item = (&Peer, Duration)> {
        let live = self.present().filter(move |it| now < it.dead_at);
        live.map(|it| (&it.peer, it.dead_at))
    }

    /// Returns the records that were not renewed for their lifetime.
    pub fn abandoned(&self, now: Duration) -> impl Iterator<Item = &Peer> {
        let abandoned = self.present().filter(move |it| it.abandoned_at <= now);
        abandoned.map(|it| &it.peer)
    }

    fn present(&self) -> impl Iterator<Item = &KnownPeer> {
        self.0.values().filter(|it| it.is_present)
    }
}
