//! The available credentials: which of them a request uses, and what follows when the server rejects them.
//!
//! Unlike in Kopf, rejected credentials are not banned permanently: if a login returns no others, they are tried again, after
//! increasing pauses. So a token that becomes valid is noticed, and a single spurious 401 does not stop the operator.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::Value;

#[cfg(test)]
mod tests;

/// Number of rejected credentials that are remembered for each login handler.
const REMEMBERED: usize = 3;

/// Maximum pause between logins that return nothing acceptable.
const PAUSE_MAX: Duration = Duration::from_mins(1);

/// The time before its expiration at which a login is renewed; a short one is renewed in its last fifth.
const RENEWAL_LEAD: Duration = Duration::from_mins(1);

/// All credentials of the last login. `T` is what requests need: a connection.
#[derive(Debug)]
pub struct Vault<T> {
    items: Vec<VaultItem<T>>,
    /// The credentials that the server rejected, by login handler; the newest is the last.
    rejected: BTreeMap<Arc<str>, Vec<Value>>,
    /// Logins since the last accepted request.
    logins: u32,
    /// Increases with each login: distinguishes a late 401 for old credentials from one for the current ones.
    generation: u64,
}

/// The result of a login handler.
#[derive(Clone, Debug)]
pub struct LoginResult<T> {
    /// The id of the login handler.
    pub handler: Arc<str>,
    /// Credentials with a higher priority are used first.
    pub priority: i64,
    /// The time from which they must not be used.
    pub expiration: Option<Timestamp>,
    /// The returned value, to recognize it if it is returned again; `None` if it cannot be compared.
    pub returned: Option<Value>,
    /// The connection for requests.
    pub content: T,
}

/// The credentials that one login handler has returned, and what requests have shown about them.
#[derive(Debug)]
struct VaultItem<T> {
    found: LoginResult<T>,
    /// When a new login is due, before the expiration.
    renew_at: Option<Timestamp>,
    /// The server has rejected the same credentials before: used only if there are no others.
    suspect: bool,
    /// The server has rejected them.
    out: bool,
}

/// Identifies the credentials of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultTicket {
    generation: u64,
    handler: Arc<str>,
}

impl VaultTicket {
    /// Returns the login handler that the credentials come from.
    pub fn handler(&self) -> &str {
        &self.handler
    }
}

/// The consequence of a rejection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Those credentials were already replaced.
    Stale,
    /// Other credentials are available.
    OthersLeft,
    /// No others are available: log in again, after this pause.
    NoneLeft(Duration),
}

impl<T> Default for Vault<T> {
    fn default() -> Self {
        Vault { items: Vec::new(), rejected: BTreeMap::new(), logins: 0, generation: 0 }
    }
}

impl<T: Clone> Vault<T> {
    /// Stores the credentials of a login; they replace all others.
    pub fn fill(&mut self, found: Vec<LoginResult<T>>, now: Timestamp) {
        self.generation = self.generation.wrapping_add(1);
        self.logins = self.logins.saturating_add(1);
        let rejected = &self.rejected;
        let item = |found: LoginResult<T>| {
            let known = rejected.get(&found.handler).map(Vec::as_slice).unwrap_or_default();
            let suspect = found.returned.as_ref().is_some_and(|it| known.contains(it));
            let renew_at = found.expiration.map(|it| renewal(now, it));
            VaultItem { found, renew_at, suspect, out: false }
        };
        self.items = found.into_iter().map(item).collect();
    }

    /// Returns credentials for one request: any of those with the highest priority. `random` picks a number below its argument.
    pub fn pick(
        &self,
        now: Timestamp,
        random: impl FnOnce(usize) -> usize,
    ) -> Option<(VaultTicket, T)> {
        let usable: Vec<_> = self.items.iter().filter(|it| it.is_usable(now)).collect();
        let rank = |it: &VaultItem<T>| (!it.suspect, it.found.priority);
        let highest = usable.iter().map(|it| rank(it)).max()?;
        let equals: Vec<_> = usable.into_iter().filter(|it| rank(it) == highest).collect();
        let item = equals.get(random(equals.len())).or(equals.first())?;
        let handler = Arc::clone(&item.found.handler);
        Some((VaultTicket { generation: self.generation, handler }, item.found.content.clone()))
    }

    /// Records that the server has accepted a request. Returns whether it is the first since the last login.
    pub fn accept(&mut self) -> bool {
        std::mem::take(&mut self.logins) > 0
    }

    /// Records that the server has responded to these credentials with 401.
    pub fn reject(&mut self, ticket: &VaultTicket, now: Timestamp) -> Rejection {
        let is_it = |it: &&mut VaultItem<T>| it.found.handler == ticket.handler && !it.out;
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
            // Streams with these credentials end, and continue with the others.
            self.items.retain(|it| !it.out);
            Rejection::OthersLeft
        } else {
            Rejection::NoneLeft(self.pause())
        }
    }

    /// Returns whether a new login is due although the credentials are still valid.
    pub fn is_ageing(&self, now: Timestamp) -> bool {
        let mut usable = self.items.iter().filter(|it| it.is_usable(now)).peekable();
        // One login that is not due yet is enough to keep waiting.
        usable.peek().is_some() && usable.all(|it| it.renew_at.is_some_and(|at| at <= now))
    }

    /// Returns whether nothing indicates that the credentials are invalid: the server may not have seen them yet, but has rejected
    /// none before.
    pub fn is_trusted(&self) -> bool {
        self.logins <= 1
    }

    /// Records that a login has returned nothing. Returns how long to wait for the next.
    pub fn note_failed_login(&mut self) -> Duration {
        self.logins = self.logins.saturating_add(1);
        self.pause()
    }

    /// Returns the pause before the next login: none after the first login since the last accepted request, then increasing ones, so that
    /// the server is not called in a tight loop.
    fn pause(&self) -> Duration {
        match self.logins.checked_sub(2) {
            None => Duration::ZERO,
            Some(more) => Duration::from_secs(2_u64.saturating_pow(more)).min(PAUSE_MAX),
        }
    }
}

impl<T> VaultItem<T> {
    fn is_usable(&self, now: Timestamp) -> bool {
        !self.out && self.found.expiration.is_none_or(|it| now < it)
    }
}

/// Returns the time of the renewal, shortly before the expiration.
fn renewal(now: Timestamp, expiration: Timestamp) -> Timestamp {
    let left = Duration::try_from(expiration.duration_since(now)).unwrap_or_default();
    expiration.saturating_sub(RENEWAL_LEAD.min(left / 5)).unwrap_or(expiration)
}
