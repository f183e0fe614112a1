//! Other operators of the same objects: the records in the peering object, and whether this operator must pause.
//!
//! The objects are Kopf's, so that operators in Python and in scripts pause for each other.

mod identity;
mod known;
mod peer;
mod places;
mod verdict;

#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::logic::handlers::progress;

pub use identity::{PeeringIdentity, ProcessStart, Surroundings, aliases, user};
pub use known::KnownPeers;
pub use peer::Peer;
pub use places::{GROUPS, PeeringScope, is_peering, kind, places, plural, resources};
pub use verdict::{OwnState, PeeringVerdict, judge};

/// The bounds of the random margin, in seconds: a record is renewed this long before it expires.
pub const MARGIN_SECONDS: std::ops::RangeInclusive<u64> = 5..=10;

/// The reason of a pause if the resource of a mandatory peering is missing.
pub const NO_RESOURCE: &str = "peering CRD is missing";

/// Returns the pause between two renewals of the operator's own record. `margin` is a random number within [`MARGIN_SECONDS`].
pub fn period(lifetime: Duration, margin: u64) -> Duration {
    const SHORTEST: Duration = Duration::from_secs(1);
    let early = lifetime.saturating_sub(Duration::from_secs(margin));
    early.max(SHORTEST).min(lifetime).max(SHORTEST)
}

/// Returns the merge-patch that announces an operator, or renews its record.
pub fn announcement(identity: &str, record: &PeeringRecord, now: Timestamp) -> Value {
    let mut entry = Map::new();
    entry.insert("priority".into(), record.priority.into());
    entry.insert("lifetime".into(), whole_seconds(record.lifetime).into());
    entry.insert("lastseen".into(), progress::format_stamp(now).into());
    if let Some(message) = &record.message {
        // Kopf ignores fields that it does not know.
        entry.insert("message".into(), message.as_str().into());
    }
    status(std::iter::once((identity, entry.into())))
}

/// Returns the merge-patch that removes records.
pub fn removal<'a>(identities: impl IntoIterator<Item = &'a str>) -> Value {
    status(identities.into_iter().map(|it| (it, Value::Null)))
}

/// The record of an operator.
#[derive(Clone, Debug, PartialEq)]
pub struct PeeringRecord {
    /// The operator with the highest priority is active; the others pause.
    pub priority: i64,
    /// How long the record is valid.
    pub lifetime: Duration,
    /// A note for humans.
    pub message: Option<String>,
}

/// Returns the name of the pause that one peering object causes.
///
/// Both API groups of a cluster may have the object; their pauses must be distinguishable.
pub fn blocker(name: &str, group: &str, namespace: Option<&str>) -> String {
    let place = namespace.unwrap_or("None");
    let legacy = if group == GROUPS[0] { String::new() } else { format!(" of {group}") };
    format!("{name}@{place}{legacy}")
}

/// Returns `cluster-wide`, or the namespace for messages.
pub fn scope_text(namespace: Option<&str>) -> String {
    namespace.map_or_else(|| "cluster-wide".to_owned(), |it| format!("in '{it}'"))
}

/// Returns whole seconds, rounded up since Kopf cuts fractions; at least one.
fn whole_seconds(lifetime: Duration) -> u64 {
    let up = u64::from(lifetime.subsec_nanos() > 0);
    lifetime.as_secs().saturating_add(up).max(1)
}

fn status<'a>(entries: impl Iterator<Item = (&'a str, Value)>) -> Value {
    let entries: Map<_, _> = entries.map(|(id, entry)| (id.to_owned(), entry)).collect();
    json!({ "status": entries })
}
