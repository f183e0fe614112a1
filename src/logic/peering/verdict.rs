//! What the records of a peering object mean for us.

use jiff::Timestamp;

use super::Peer;
use crate::logic::outcome::{LogLevel, LogLine};

/// How we stand among the others.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
    /// Our own key.
    pub identity: &'a str,
    /// Our own priority.
    pub priority: i64,
    /// Whether others of the same priority share the work with us, as shards.
    pub shares: bool,
    /// Whether we are paused because of this peering object.
    pub is_paused: bool,
}

/// What follows from the records.
#[derive(Debug, PartialEq)]
pub struct Verdict {
    /// Records to remove.
    pub dead: Vec<String>,
    /// Whether to be paused from now on.
    pub pause: bool,
    /// For the log.
    pub lines: Vec<LogLine>,
    /// When the first of those we pause for is dead, unless it is heard of before.
    pub look_again: Option<Timestamp>,
    /// Whether our own record is there.
    pub is_announced: bool,
}

/// Judges the records as they are now.
pub fn judge(peers: &[Peer], own: Standing<'_>, now: Timestamp) -> Verdict {
    let is_own = |it: &&Peer| it.identity == own.identity;
    let (dead, live): (Vec<&Peer>, Vec<&Peer>) = peers.iter().partition(|it| it.is_dead(now));
    let is_announced = live.iter().any(is_own);
    let others = || live.iter().copied().filter(|it| !is_own(it));
    let stronger: Vec<_> = others().filter(|it| it.priority > own.priority).collect();
    let equal: Vec<_> = if own.shares {
        Vec::new()
    } else {
        others().filter(|it| it.priority == own.priority).collect()
    };
    let mut lines = Vec::new();
    let mut say = |level, text| lines.push(LogLine { level, text, with_trace: false });
    let pause = !stronger.is_empty() || !equal.is_empty();
    if !stronger.is_empty() {
        if !own.is_paused {
            let text = format!("Pausing operations in favour of {}.", list(&stronger));
            say(LogLevel::Info, text);
        }
    } else if !equal.is_empty() {
        let names = list(&equal);
        let text = format!("Possibly conflicting operators with the same priority: {names}.");
        say(LogLevel::Warning, text);
        if !own.is_paused {
            let all = list(&peers.iter().collect::<Vec<_>>());
            say(LogLevel::Warning, format!("Pausing all operators, including self: {all}"));
        }
    } else if own.is_paused {
        let text = "Resuming operations after the pause. \
                    Conflicting operators with the same priority are gone.";
        say(LogLevel::Info, text.to_owned());
    }
    Verdict {
        dead: dead.iter().map(|it| it.identity.clone()).collect(),
        pause,
        lines,
        look_again: stronger.iter().chain(&equal).map(|it| it.deadline()).min(),
        is_announced,
    }
}

fn list(peers: &[&Peer]) -> String {
    let texts: Vec<_> = peers.iter().map(ToString::to_string).collect();
    format!("[{}]", texts.join(", "))
}
