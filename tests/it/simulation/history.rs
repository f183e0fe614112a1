//! What happened in a run: calls of handlers, what of them reached the server, and the rules that were broken on the way.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    open::{Finding, Open},
    stored::{Stamp, Stored},
};

/// Requests of one run; more mean a loop.
const REQUESTS_MAX: u64 = 30_000;

/// `settings.persistence.consistency_timeout`
const CONSISTENCY_TIMEOUT: Duration = Duration::from_secs(5);

/// The handlers of a creation, by the names of their records.
pub(super) const OF_CREATION: [&str; 6] =
    ["made", "retried", "parent", "parent.one", "parent.two", "marked"];

/// The handlers whose calls follow from a change.
pub(super) const OF_UPDATE: [&str; 2] = ["changed", "also"];

/// The handler of deletions.
pub(super) const OF_DELETION: &str = "gone";

/// The daemon that stays as long as its object.
pub(super) const STAYS: &str = "stays";

/// A call of a handler.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) process: u64,
    /// As its record is named.
    pub(super) id: String,
    pub(super) uid: String,
    /// `spec.x` of the object that it was called with.
    pub(super) x: u64,
    pub(super) retry: u64,
    pub(super) at: Duration,
    /// `None`: it runs, or its process was killed.
    pub(super) ended: Option<Ending>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Done,
    /// It failed temporarily.
    Later,
    /// It was cancelled.
    Cut,
}

impl Call {
    /// Returns a call that begins now.
    pub(super) fn new(process: u64, id: &str, (uid, x): (&str, u64), retry: u64) -> Self {
        let (id, uid) = (id.to_owned(), uid.to_owned());
        Call { process, id, uid, x, retry, at: Duration::ZERO, ended: None }
    }
}

/// Clones share it.
#[derive(Clone)]
pub(super) struct History(Arc<Mutex<Inner>>);

struct Inner {
    is_orderly: bool,
    open: Open,
    start: Instant,
    lines: Vec<(Duration, String)>,
    objects: usize,
    calls: Vec<Call>,
    broken: Vec<String>,
    requests: BTreeMap<u64, u64>,
    /// What the server has stored of each object, by uid.
    stored: BTreeMap<String, Stored>,
    /// Objects that carried the finalizer when they were deleted, until they are gone.
    held: BTreeSet<String>,
    /// Objects that were released.
    gone: BTreeSet<String>,
    /// Processes that may act, and since when.
    alive: BTreeMap<u64, Duration>,
    killed: BTreeSet<u64>,
    /// Objects that are excused from some rules because of an open finding.
    excused: BTreeMap<String, BTreeSet<Finding>>,
    /// When each process made its attempts: handler, uid, number of the cause, number of the attempt.
    attempts: BTreeMap<(u64, String, String, u64, u64), Duration>,
}

impl History {
    /// `is_orderly`: all handlers of a cause see the same object.
    pub(super) fn new(is_orderly: bool, open: Open) -> Self {
        History(Arc::new(Mutex::new(Inner {
            is_orderly,
            open,
            excused: BTreeMap::new(),
            start: Instant::now(),
            lines: Vec::new(),
            objects: 0,
            calls: Vec::new(),
            broken: Vec::new(),
            requests: BTreeMap::new(),
            stored: BTreeMap::new(),
            held: BTreeSet::new(),
            gone: BTreeSet::new(),
            alive: BTreeMap::new(),
            killed: BTreeSet::new(),
            attempts: BTreeMap::new(),
        })))
    }

    /// Adds a line.
    pub(super) fn note(&self, line: impl Into<String>) {
        self.0.lock().note(line.into());
    }

    /// Notes that a rule is broken.
    pub(super) fn complain(&self, rule: impl Into<String>) {
        self.0.lock().complain(rule.into());
    }

    /// A process begins.
    pub(super) fn begin_process(&self, process: u64) {
        let mut inner = self.0.lock();
        let at = inner.start.elapsed();
        inner.alive.insert(process, at);
        inner.note(format!("process {process} starts"));
    }

    /// A process has ended: whatever it still does breaks a rule.
    pub(super) fn end_process(&self, process: u64, how: &str) {
        let mut inner = self.0.lock();
        inner.alive.remove(&process);
        inner.note(format!("process {process} {how}"));
    }

    /// A process is killed. Its scripts may still begin calls that they have got before, in the same moment.
    pub(super) fn kill_process(&self, process: u64, how: &str) {
        self.end_process(process, how);
        self.0.lock().killed.insert(process);
    }

    pub(super) fn is_killed(&self, process: u64) -> bool {
        self.0.lock().killed.contains(&process)
    }

    /// A handler is called. Returns the number of the call.
    pub(super) fn begin(&self, call: Call) -> usize {
        let mut inner = self.0.lock();
        let call = Call { at: inner.start.elapsed(), ..call };
        inner.check(&call);
        let Call { process, id, uid, x, retry, .. } = &call;
        let line = format!("process {process} calls {id} of {uid} (x = {x}, retry {retry})");
        inner.note(line);
        inner.calls.push(call);
        inner.calls.len() - 1
    }

    /// The latest call of a handler by a process has ended; scripts do not know its number.
    pub(super) fn end_latest(&self, process: u64, id: &str, uid: &str, ending: Ending) {
        let is_meant =
            |it: &Call| it.process == process && it.id == id && it.uid == uid && it.ended.is_none();
        let number = self.0.lock().calls.iter().rposition(is_meant);
        if let Some(number) = number {
            self.end(number, ending);
        }
    }

    /// Returns whether a process may act.
    pub(super) fn is_alive(&self, process: u64) -> bool {
        self.0.lock().alive.contains_key(&process)
    }

    /// The call with this number has ended.
    pub(super) fn end(&self, number: usize, ending: Ending) {
        let mut inner = self.0.lock();
        let call = inner.calls.get_mut(number).expect("a call");
        call.ended = Some(ending);
        let line = format!("process {} ends {} of {}: {ending:?}", call.process, call.id, call.uid);
        inner.note(line);
    }

    /// A request was sent.
    pub(super) fn count_request(&self, process: u64) {
        let mut inner = self.0.lock();
        if !inner.alive.contains_key(&process) {
            inner.complain(format!("process {process} sends a request after its end"));
        }
        let count = inner.requests.entry(process).or_default();
        *count += 1;
        if *count == REQUESTS_MAX {
            inner.complain(format!("process {process} sends requests without an end"));
        }
        assert!(inner.requests[&process] <= REQUESTS_MAX, "an endless loop of requests");
    }

    /// A user creates an object.
    pub(super) fn created(&self, uid: &str) {
        let mut inner = self.0.lock();
        inner.objects += 1;
        inner.note(format!("user creates {uid}"));
    }

    /// Returns how many objects there were.
    pub(super) fn objects(&self) -> usize {
        self.0.lock().objects
    }

    /// A user deletes an object.
    pub(super) fn deleted(&self, object: &Value) {
        let stored = Stored::read(object);
        let mut inner = self.0.lock();
        inner.note(format!("user deletes {}", stored.uid));
        if stored.is_held {
            inner.held.insert(stored.uid);
        } else {
            inner.gone.insert(stored.uid);
        }
    }

    /// An object is removed in spite of its finalizers.
    pub(super) fn removed(&self, object: &Value) {
        let stored = Stored::read(object);
        let mut inner = self.0.lock();
        inner.note(format!("{} is removed", stored.uid));
        inner.held.remove(&stored.uid);
        inner.gone.insert(stored.uid);
    }

    /// A request of a process has changed an object; `None` is an object that is not there.
    pub(super) fn observe(&self, process: u64, before: Option<&Value>, after: Option<&Value>) {
        let mut inner = self.0.lock();
        let (before, after) = (before.map(Stored::read), after.map(Stored::read));
        if let Some(before) = &before
            && after.as_ref().is_none_or(|it| it.uid != before.uid)
        {
            inner.released(&before.uid);
        }
        if let Some(after) = after {
            inner.stored(process, after);
        }
    }

    /// Returns all calls.
    pub(super) fn calls(&self) -> Vec<Call> {
        self.0.lock().calls.clone()
    }

    /// Returns the rules that were broken.
    pub(super) fn broken(&self) -> Vec<String> {
        self.0.lock().broken.clone()
    }

    /// Returns all lines, each with its time.
    pub(super) fn lines(&self) -> Vec<String> {
        let inner = self.0.lock();
        let line = |(at, line): &(Duration, String)| format!("{:9.3} {line}", at.as_secs_f64());
        inner.lines.iter().map(line).collect()
    }

    /// Returns the last call of a handler that was done, for an object.
    pub(super) fn last_done(&self, uid: &str, id: &str) -> Option<Call> {
        self.0.lock().last_done(uid, id).cloned()
    }

    /// Returns how many objects are excused because of a finding.
    pub(super) fn excused(&self) -> usize {
        self.0.lock().excused.len()
    }

    /// Returns whether an object is excused because of this finding.
    pub(super) fn is_excused(&self, uid: &str, finding: Finding) -> bool {
        self.0.lock().excused.get(uid).is_some_and(|it| it.contains(&finding))
    }

    /// Returns whether any process ended while this object was known to handlers.
    pub(super) fn was_interrupted(&self, uid: &str) -> bool {
        let inner = self.0.lock();
        let processes: BTreeSet<_> =
            inner.calls.iter().filter(|it| it.uid == uid).map(|it| it.process).collect();
        processes.len() > 1
    }
}

impl Inner {
    fn note(&mut self, line: String) {
        let at = self.start.elapsed();
        self.lines.push((at, line));
    }

    fn complain(&mut self, rule: String) {
        self.note(format!("BROKEN: {rule}"));
        self.broken.push(rule);
    }

    /// Whether a process acts on what it saw before this was stored: it has waited long enough for its own request, or it was a
    /// standby then.
    fn may_be_unseen(&self, process: u64, (at, by): Stamp) -> bool {
        let age = self.start.elapsed().saturating_sub(at);
        let is_standby = self.alive.get(&process).is_some_and(|begun| *begun < at);
        let may_be = if by == process { age >= CONSISTENCY_TIMEOUT } else { is_standby };
        self.open.has(Finding::OlderViews) && may_be
    }

    /// Whether what a process has stored may have been meant for an earlier object of the same name.
    fn may_be_of_another(&self, process: u64, now: &Stored) -> bool {
        let of_name = |it: &&Stored| it.name == now.name && it.uid != now.uid;
        let others: BTreeSet<_> = self.stored.values().filter(of_name).map(|it| &it.uid).collect();
        let mut calls = self.calls.iter().filter(|it| it.process == process);
        self.open.has(Finding::Identity) && calls.any(|it| others.contains(&it.uid))
    }

    fn excuse(&mut self, uid: &str, finding: Finding) {
        if self.excused.entry(uid.to_owned()).or_default().insert(finding) {
            self.note(format!("{uid} is excused from now on: {finding:?}"));
        }
    }

    fn last_done(&self, uid: &str, id: &str) -> Option<&Call> {
        let is_meant = |it: &&Call| it.uid == uid && it.id == id && it.ended == Some(Ending::Done);
        self.calls.iter().rev().find(is_meant)
    }

    /// Checks a call against what the server has stored at this moment.
    fn check(&mut self, call: &Call) {
        let Call { process, id, uid, x, retry, .. } = call;
        if !self.alive.contains_key(process) {
            self.complain(format!("{id} of {uid} is called by process {process} after its end"));
        }
        let is_of_change = |it: &str| OF_CREATION.contains(&it) || OF_UPDATE.contains(&it);
        if (!is_of_change(id) && id != OF_DELETION) || self.excused.contains_key(uid) {
            return;
        }
        let is_elsewhere = |it: &&Call| {
            it.uid == *uid
                && it.process != *process
                && it.ended.is_none()
                && self.alive.contains_key(&it.process)
                && it.id != STAYS
        };
        if let Some(other) = self.calls.iter().find(is_elsewhere) {
            let rule = format!(
                "{id} of {uid} is called while process {} runs {}",
                other.process, other.id
            );
            self.complain(rule);
        }
        if self.gone.contains(uid) && self.open.has(Finding::GoneUnseen) {
            return self.excuse(uid, Finding::GoneUnseen);
        }
        let cause = self.stored.get(uid).map_or(0, |it| it.causes);
        let attempt = (*process, id.clone(), uid.clone(), cause, *retry);
        let recorded = self.stored.get(uid).and_then(|it| it.recorded(id, *x));
        let attempted = self.attempts.get(&attempt).map(|at| (*at, *process));
        if let Some(stamp) = recorded.or(attempted) {
            if self.may_be_unseen(*process, stamp) {
                return self.excuse(uid, Finding::OlderViews);
            }
            let why = if recorded.is_some() { "but is recorded" } else { "for the same attempt" };
            self.complain(format!("{id} of {uid} is called again (x = {x}, retry {retry}), {why}"));
        }
        self.attempts.insert(attempt, self.start.elapsed());
    }

    /// Checks what the server stores now against the calls so far.
    fn stored(&mut self, process: u64, mut now: Stored) {
        let before = self.stored.get(&now.uid);
        now.causes = before.map_or(0, |it| it.causes);
        let earlier = before.and_then(|it| it.handled);
        let stamp = (self.start.elapsed(), process);
        if now.handled == earlier {
            now.keep(before, stamp);
        } else {
            now.causes += 1;
            now.keep(None, stamp);
            // A deletion takes the place of what was begun before.
            if !now.is_deleting && !self.excused.contains_key(&now.uid) {
                self.check_essence(process, &now, earlier);
            }
        }
        if now.is_foreign && self.open.has(Finding::Identity) {
            self.excuse(&now.uid, Finding::Identity);
        }
        if !now.is_deleting && now.has_record(OF_DELETION) {
            if self.may_be_of_another(process, &now) {
                self.excuse(&now.uid, Finding::Identity);
            } else {
                self.complain(format!("{} is recorded as being deleted, but is not", now.uid));
            }
        }
        let unknown = now.finished.keys().find(|it| self.last_done(&now.uid, it).is_none());
        if let Some(id) = unknown
            && !self.excused.contains_key(&now.uid)
        {
            if self.may_be_of_another(process, &now) {
                self.excuse(&now.uid, Finding::Identity);
            } else {
                self.complain(format!("{id} of {} is recorded, but never ended", now.uid));
            }
        }
        self.stored.insert(now.uid.clone(), now);
    }

    /// Checks that what counts as handled was handled.
    fn check_essence(&mut self, process: u64, now: &Stored, earlier: Option<u64>) {
        let uid = &now.uid;
        match (earlier, now.handled) {
            (None, Some(_)) => {
                let missing = OF_CREATION.iter().find(|it| self.last_done(uid, it).is_none());
                if missing.is_some() && self.may_be_of_another(process, now) {
                    self.excuse(uid, Finding::Identity);
                } else if let Some(id) = missing {
                    self.complain(format!("{uid} counts as created without {id}"));
                }
            }
            (Some(earlier), Some(handled)) if handled > earlier => {
                let last = self.last_done(uid, OF_UPDATE[0]).map(|it| it.x);
                if self.is_orderly && last != Some(handled) {
                    self.complain(format!(
                        "x = {handled} of {uid} counts as handled, but {} has seen {last:?}",
                        OF_UPDATE[0]
                    ));
                }
            }
            (Some(_), Some(_)) if self.may_be_unseen(process, self.stored[uid].handled_at) => {
                self.excuse(uid, Finding::OlderViews);
            }
            (Some(_), Some(_)) if self.may_be_of_another(process, now) => {
                self.excuse(uid, Finding::Identity);
            }
            (earlier, handled) => {
                self.complain(format!("{uid} was handled to {earlier:?}, and now to {handled:?}"));
            }
        }
    }

    fn released(&mut self, uid: &str) {
        self.note(format!("{uid} is gone"));
        self.gone.insert(uid.to_owned());
        if self.held.remove(uid) && self.last_done(uid, OF_DELETION).is_none() {
            self.complain(format!("{uid} is released without {OF_DELETION}"));
        }
    }
}
