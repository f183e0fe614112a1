//! The credentials at hand: which of them a request uses, and what follows when the server rejects them.
//!
//! Unlike the reference, credentials that were rejected are not banned for ever: when a login brings nothing else they are
//! tried again, after pauses that grow. So a token that becomes valid is noticed, and one spurious 401 is no end.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::Value;

#[cfg(test)]
mod tests;

/// Rejected credentials that are remembered for each login handler.
const REMEMBERED: usize = 3;

/// The longest pause between logins that bring nothing acceptable.
const PAUSE_MAX: Duration = Duration::from_mins(1);

/// A login is renewed this long before it expires, or in its last fifth if it is a short one.
const RENEWAL_LEAD: Duration = Duration::from_mins(1);

/// All credentials of the last login. `T` is what requests need: a connection.
#[derive(Debug)]
pub struct Vault<T> {
    items: Vec<Item<T>>,
    /// What the server rejected, by login handler; the last is the newest.
    rejected: BTreeMap<Arc<str>, Vec<Value>>,
    /// Logins since the last accepted request.
    logins: u32,
    /// Grows with each login: tells a late 401 of old credentials from one of the present ones.
    generation: u64,
}

/// What a login handler brought.
#[derive(Clone, Debug)]
pub struct Found<T> {
    /// The login handler.
    pub handler: Arc<str>,
    /// Higher ones go first.
    pub priority: i64,
    /// Not to be used from this moment on.
    pub expiration: Option<Timestamp>,
    /// What it returned, to recognise the same again; `None` if that cannot be told.
    pub returned: Option<Value>,
    /// What requests need.
    pub content: T,
}

/// One of them, at work.
#[derive(Debug)]
struct Item<T> {
    found: Found<T>,
    /// When a new login should come before the expiration.
    renew_at: Option<Timestamp>,
    /// The server rejected the same before: only used when there is nothing else.
    suspect: bool,
    /// The server has rejected it.
    out: bool,
}

/// Names the credentials of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    generation: u64,
    handler: Arc<str>,
}

impl Ticket {
    /// The login handler they came from.
    pub fn handler(&self) -> &str {
        &self.handler
    }
}

/// What follows from a rejection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Those credentials are gone already.
    Stale,
    /// There are others.
    OthersLeft,
    /// There are none: log in again, after this pause.
    NoneLeft(Duration),
}

impl<T> Default for Vault<T> {
    fn default() -> Self {
        Vault { items: Vec::new(), rejected: BTreeMap::new(), logins: 0, generation: 0 }
    }
}

impl<T: Clone> Vault<T> {
    /// A login has brought these; they replace all others.
    pub fn fill(&mut self, found: Vec<Found<T>>, now: Timestamp) {
        self.generation = self.generation.wrapping_add(1);
        self.logins = self.logins.saturating_add(1);
        let rejected = &self.rejected;
        let item = |found: Found<T>| {
            let known = rejected.get(&found.handler).map(Vec::as_slice).unwrap_or_default();
            let suspect = found.returned.as_ref().is_some_and(|it| known.contains(it));
            let renew_at = found.expiration.map(|it| renewal(now, it));
            Item { found, renew_at, suspect, out: false }
        };
        self.items = found.into_iter().map(item).collect();
    }

    /// Credentials for one request: any of those with the highest priority. `random` picks a number below its argument.
    pub fn pick(&self, now: Timestamp, random: impl FnOnce(usize) -> usize) -> Option<(Ticket, T)> {
        let usable: Vec<_> = self.items.iter().filter(|it| it.is_usable(now)).collect();
        let rank = |it: &Item<T>| (!it.suspect, it.found.priority);
        let highest = usable.iter().map(|it| rank(it)).max()?;
        let equals: Vec<_> = usable.into_iter().filter(|it| rank(it) == highest).collect();
        let item = equals.get(random(equals.len())).or(equals.first())?;
        let handler = Arc::clone(&item.found.handler);
        Some((Ticket { generation: self.generation, handler }, item.found.content.clone()))
    }

    /// The server has accepted a request. Tells whether that is news since the last login.
    pub fn accept(&mut self) -> bool {
        std::mem::take(&mut self.logins) > 0
    }

    /// The server has answered 401 to these credentials.
    pub fn reject(&mut self, ticket: &Ticket, now: Timestamp) -> Rejection {
        let is_it = |it: &&mut Item<T>| it.found.handler == ticket.handler && !it.out;
        let item = self.items.iter_mut().find(is_it);
        let Some(item) = item.filter(|_| ticket.generation == self.generation) else {
            return Rejection::Stale;
        };
        item.out = true;
        if let Some(returned) = &item.found.returned {
            let known = self.rejected.entry(Arc::clone(&ticket.handler)).or_default();
            known.retain(|it| it != returned);
            known.push(returned.clone());
            let surplus = known.len().saturating_sub(REMEMBERED);
            known.drain(..surplus);
        }
        if self.items.iter().any(|it| it.is_usable(now)) {
            // Streams with these credentials end, and go on with the others.
            self.items.retain(|it| !it.out);
            Rejection::OthersLeft
        } else {
            Rejection::NoneLeft(self.pause())
        }
    }

    /// Whether it is time for a new login though the credentials still hold.
    pub fn is_ageing(&self, now: Timestamp) -> bool {
        let mut usable = self.items.iter().filter(|it| it.is_usable(now)).peekable();
        // One that lasts is enough to wait for the expiration of the others.
        usable.peek().is_some() && usable.all(|it| it.renew_at.is_some_and(|at| at <= now))
    }

    /// Whether nothing speaks against the credentials yet: they may be new to the server, but none were rejected before.
    pub fn is_trusted(&self) -> bool {
        self.logins <= 1
    }

    /// A login has brought nothing: how long to wait for the next.
    pub fn note_failed_login(&mut self) -> Duration {
        self.logins = self.logins.saturating_add(1);
        self.pause()
    }

    /// None after the first login since all was well, then growing: a server must not be asked in a tight loop.
    fn pause(&self) -> Duration {
        match self.logins.checked_sub(2) {
            None => Duration::ZERO,
            Some(more) => Duration::from_secs(2_u64.saturating_pow(more)).min(PAUSE_MAX),
        }
    }
}

impl<T> Item<T> {
    fn is_usable(&self, now: Timestamp) -> bool {
        !self.out && self.found.expiration.is_none_or(|it| now < it)
    }
}

/// Short before the expiration.
fn renewal(now: Timestamp, expiration: Timestamp) -> Timestamp {
    let left = Duration::try_from(expiration.duration_since(now)).unwrap_or_default();
    expiration.saturating_sub(RENEWAL_LEAD.min(left / 5)).unwrap_or(expiration)
}
