//! Decides the consequences of the records of a peering object for this operator.

use std::time::Duration;

use super::{KnownPeers, Peer};
use crate::logic::handlers::outcome::{LogLevel, LogLine};

/// The state of this operator among its peers.
#[derive(Clone, Copy, Debug)]
pub struct OwnState<'a> {
    /// The operator's own key.
    pub identity: &'a str,
    /// The operator's own priority.
    pub priority: i64,
    /// Whether operators of the same priority share the objects, as shards.
    pub shares: bool,
    /// Whether this operator is paused because of this peering object.
    pub is_paused: bool,
}

/// The consequences of the records.
#[derive(Debug, PartialEq)]
pub struct PeeringVerdict {
    /// Records to remove: they were not renewed for their lifetime.
    pub dead: Vec<String>,
    /// Whether to pause from now on.
    pub pause: bool,
    /// Log lines to write now, such as about the start and the end of a pause.
    pub lines: Vec<LogLine>,
    /// When the first of the peers that cause the pause will be dead, unless its record changes before.
    pub look_again: Option<Duration>,
    /// Whether the object has the operator's own record.
    pub is_announced: bool,
}

/// Decides from the records as they are now.
pub fn judge(known: &KnownPeers, own: OwnState<'_>, now: Duration) -> PeeringVerdict {
    let is_own = |it: &Peer| it.identity == own.identity;
    let is_announced = known.live(now).any(|(it, _)| is_own(it));
    let others = || known.live(now).filter(|(it, _)| !is_own(it));
    let stronger: Vec<_> = others().filter(|(it, _)| it.priority > own.priority).collect();
    let equal: Vec<_> = if own.shares {
        Vec::new()
    } else {
        others().filter(|(it, _)| it.priority == own.priority).collect()
    };
    let mut lines = Vec::new();
    let mut say = |level, text| lines.push(LogLine { level, text, with_trace: false });
    let pause = !stronger.is_empty() || !equal.is_empty();
    if !stronger.is_empty() {
        if !own.is_paused {
            let text = format!("Pausing operations in favour of {}.", list(peers(&stronger)));
            say(LogLevel::Info, text);
        }
    } else if !equal.is_empty() {
        let names = list(peers(&equal));
        let text = format!("Possibly conflicting operators with the same priority: {names}.");
        say(LogLevel::Warning, text);
        if !own.is_paused {
            let all = list(known.all());
            say(LogLevel::Warning, format!("Pausing all operators, including self: {all}"));
        }
    } else if own.is_paused {
        let text = "Resuming operations after the pause. \
                    Conflicting operators with the same priority are gone.";
        say(LogLevel::Info, text.to_owned());
    }
    PeeringVerdict {
        dead: known.abandoned(now).map(|it| it.identity.clone()).collect(),
        pause,
        lines,
        look_again: stronger.iter().chain(&equal).map(|(_, dead_at)| *dead_at).min(),
        is_announced,
    }
}

fn peers<'a>(found: &[(&'a Peer, Duration)]) -> impl Iterator<Item = &'a Peer> {
    found.iter().map(|(peer, _)| *peer)
}

fn list<'a>(peers: impl Iterator<Item = &'a Peer>) -> String {
    let texts: Vec<_> = peers.map(ToString::to_string).collect();
    format!("[{}]", texts.join(", "))
}
