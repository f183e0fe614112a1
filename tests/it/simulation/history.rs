//! The history of a run: calls of handlers, what reached the server, and the rules that were broken.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use super::{costs::Costs, stored::Stored};

/// Maximum number of requests in one run; more mean a loop.
const REQUESTS_MAX: u64 = 30_000;

/// The handlers of a creation, by the names of their records.
pub(super) const OF_CREATION: [&str; 6] =
    ["made", "retried", "parent", "parent.one", "parent.two", "marked"];

/// A handler that has ended this long before a backup is restored may not be recorded yet.
const IN_PROGRESS: Duration = Duration::from_secs(30);

/// The handlers whose calls follow from a change.
pub(super) const OF_UPDATE: [&str; 2] = ["changed", "also"];

/// The handler of deletions.
pub(super) const OF_DELETION: &str = "gone";

/// The daemon that stays as long as its object.
pub(super) const STAYS: &str = "stays";

/// One call of a handler.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) process: u64,
    /// The name of its record.
    pub(super) id: String,
    pub(super) uid: String,
    /// `spec.x` of the object that it was called with.
    pub(super) x: u64,
    pub(super) retry: u64,
    /// The number of edits of the handler's code before the call. Scripts only have edits of a daemon.
    pub(super) edits: u64,
    pub(super) at: Duration,
    /// `None`: it is running, or its process was killed.
    pub(super) ended: Option<Ending>,
    /// Whether its result was undone: an older backup was restored.
    is_undone: bool,
    ended_at: Duration,
}

/// The end of a call.
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
        Call {
            process,
            id,
            uid,
            x,
            retry,
            edits: 0,
            at: Duration::ZERO,
            ended: None,
            is_undone: false,
            ended_at: Duration::ZERO,
        }
    }
}

/// The history of a run. Clones share it.
#[derive(Clone)]
pub(super) struct History(Arc<Mutex<Inner>>);

struct Inner {
    is_orderly: bool,
    start: Instant,
    lines: Vec<(Duration, String)>,
    objects: usize,
    calls: Vec<Call>,
    broken: Vec<String>,
    requests: BTreeMap<u64, u64>,
    /// The state of each object that the server has stored, by uid.
    stored: BTreeMap<String, Stored>,
    /// Objects that had the finalizer when they were deleted, until they are gone.
    held: BTreeSet<String>,
    /// Objects that were being handled when a backup was restored.
    overtaken: BTreeSet<String>,
    /// Objects whose deletion was being handled when a backup was restored.
    revived: BTreeSet<String>,
    /// Objects that a backup has brought back to an earlier state.
    restored: BTreeSet<String>,
    /// The version of the last change of an object by each process.
    written: BTreeMap<u64, u64>,
    /// Processes that may act, and their start times.
    alive: BTreeMap<u64, Duration>,
    /// The end times of processes. What they do at that very time is dropped together with them.
    ended: BTreeMap<u64, Duration>,
    killed: BTreeSet<u64>,
    costs: Costs,
}

impl History {
    /// Creates a history. `is_orderly`: all handlers of a cause see the same object.
    pub(super) fn new(is_orderly: bool) -> Self {
        History(Arc::new(Mutex::new(Inner {
            is_orderly,
            start: Instant::now(),
            lines: Vec::new(),
            objects: 0,
            calls: Vec::new(),
            broken: Vec::new(),
            requests: BTreeMap::new(),
            stored: BTreeMap::new(),
            held: BTreeSet::new(),
            restored: BTreeSet::new(),
            overtaken: BTreeSet::new(),
            revived: BTreeSet::new(),
            written: BTreeMap::new(),
            alive: BTreeMap::new(),
            ended: BTreeMap::new(),
            killed: BTreeSet::new(),
            costs: Costs::default(),
        })))
    }

    /// Adds a line.
    pub(super) fn note(&self, line: impl Into<String>) {
        self.0.lock().note(line.into());
    }

    /// Records a broken rule.
    pub(super) fn complain(&self, rule: impl Into<String>) {
        self.0.lock().complain(rule.into());
    }

    /// Adds a process.
    pub(super) fn begin_process(&self, process: u64) {
        let mut inner = self.0.lock();
        let at = inner.start.elapsed();
        inner.alive.insert(process, at);
        inner.note(format!("process {process} starts"));
    }

    /// Ends a process: whatever it does afterwards breaks a rule.
    pub(super) fn end_process(&self, process: u64, how: &str) {
        let mut inner = self.0.lock();
        inner.alive.remove(&process);
        inner.costs.end(process);
        let at = inner.start.elapsed();
        inner.ended.insert(process, at);
        inner.note(format!("process {process} {how}"));
    }

    /// Records that a process announces its end: another one may act at once.
    pub(super) fn fail_process(&self, process: u64, why: &str) {
        let mut inner = self.0.lock();
        inner.costs.end(process);
        inner.note(format!("process {process} fails: {why}"));
    }

    /// Kills a process. Its scripts may still begin calls that they have received before, at the same time.
    pub(super) fn kill_process(&self, process: u64, how: &str) {
        self.end_process(process, how);
        self.0.lock().killed.insert(process);
    }

    pub(super) fn is_killed(&self, process: u64) -> bool {
        self.0.lock().killed.contains(&process)
    }

    /// Records a call. Returns its number.
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

    /// Ends the latest call of a handler by a process; scripts do not have its number.
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

    /// Returns whether a process may not act any more.
    pub(super) fn has_ended(&self, process: u64) -> bool {
        self.0.lock().has_ended(process)
    }

    /// Ends the call with this number.
    pub(super) fn end(&self, number: usize, ending: Ending) {
        let mut inner = self.0.lock();
        let at = inner.start.elapsed();
        let call = inner.calls.get_mut(number).expect("a call");
        call.ended = Some(ending);
        call.ended_at = at;
        let line = format!("process {} ends {} of {}: {ending:?}", call.process, call.id, call.uid);
        inner.note(line);
    }

    /// Counts a request.
    pub(super) fn count_request(&self, process: u64) {
        let mut inner = self.0.lock();
        if inner.has_ended(process) {
            inner.complain(format!("process {process} sends a request after its end"));
        }
        let count = inner.requests.entry(process).or_default();
        *count += 1;
        if *count == REQUESTS_MAX {
            inner.complain(format!("process {process} sends requests without an end"));
        }
        assert!(inner.requests[&process] <= REQUESTS_MAX, "an endless loop of requests");
    }

    /// Records a rejected request that writes results or records of these handlers to the object of this name.
    pub(super) fn reject(&self, name: &str, handlers: &[&str]) {
        self.0.lock().costs.reject(name, handlers);
    }

    /// Records that a user creates an object. `failures`: how often each handler fails on purpose.
    pub(super) fn created(&self, uid: &str, failures: &Value) {
        let mut inner = self.0.lock();
        inner.objects += 1;
        inner.costs.plan(uid, failures);
        inner.note(format!("user creates {uid}"));
    }

    /// Returns how many objects were created.
    pub(super) fn objects(&self) -> usize {
        self.0.lock().objects
    }

    /// Records that a user deletes an object.
    pub(super) fn deleted(&self, object: &Value) {
        let stored = Stored::read(object);
        let mut inner = self.0.lock();
        inner.note(format!("user deletes {}", stored.uid));
        if stored.is_held {
            inner.held.insert(stored.uid);
        }
    }

    /// Records that an object is removed although it has finalizers.
    pub(super) fn removed(&self, object: &Value) {
        let stored = Stored::read(object);
        let mut inner = self.0.lock();
        inner.note(format!("{} is removed", stored.uid));
        inner.held.remove(&stored.uid);
    }

    /// Restores a backup of this time, with these objects: what has happened to them since then does not count any more. Their
    /// handlers may be called again, and their current work may be stored on the older object; at the end, everything must be
    /// right.
    pub(super) fn restore(&self, moment: Duration, objects: &[Value]) {
        let mut inner = self.0.lock();
        inner.note(format!("the backup of {:.3} is restored", moment.as_secs_f64()));
        for call in inner.calls.iter_mut().filter(|it| it.ended_at > moment) {
            call.is_undone = true;
        }
        let now = inner.start.elapsed();
        let is_busy = |it: &&Call| it.ended.is_none() || it.ended_at + IN_PROGRESS > now;
        let busy = inner.calls.iter().filter(is_busy);
        let busy: Vec<_> = busy.map(|it| (it.id.clone(), it.uid.clone())).collect();
        for (id, uid) in busy {
            if is_of_change(&id) {
                inner.overtaken.insert(uid);
            } else if id == OF_DELETION {
                inner.revived.insert(uid);
            }
        }
        let before = std::mem::take(&mut inner.stored);
        inner.held.clear();
        for object in objects {
            let mut stored = Stored::read(object);
            stored.causes = before.get(&stored.uid).map_or(0, |it| it.causes) + 1;
            inner.restored.insert(stored.uid.clone());
            if stored.is_deleting && stored.is_held {
                inner.held.insert(stored.uid.clone());
            }
            inner.stored.insert(stored.uid.clone(), stored);
        }
    }

    /// Records that a request of a process has changed an object; `None` is a missing object.
    pub(super) fn observe(&self, before: Option<&Value>, after: Option<&Value>) {
        let mut inner = self.0.lock();
        let (before, after) = (before.map(Stored::read), after.map(Stored::read));
        if let Some(before) = &before
            && after.as_ref().is_none_or(|it| it.uid != before.uid)
        {
            inner.released(&before.uid);
        }
        if let Some(after) = after {
            inner.stored(after);
        }
    }

    /// Records that a request of a process has created this version.
    pub(super) fn write(&self, process: u64, version: u64) {
        self.0.lock().written.insert(process, version);
    }

    /// Returns the last version that another process has created; zero if there is none.
    pub(super) fn written_by_others(&self, process: u64) -> u64 {
        let inner = self.0.lock();
        let others = inner.written.iter().filter(|(it, _)| **it != process);
        others.map(|(_, version)| *version).max().unwrap_or_default()
    }

    /// Returns whether an object was being handled when a backup was restored: what its handlers had done before may be lost with
    /// the backup, but what they do afterwards is recorded.
    pub(super) fn is_overtaken(&self, uid: &str) -> bool {
        self.0.lock().overtaken.contains(uid)
    }

    /// Returns whether the deletion of an object was being handled when a backup was restored.
    pub(super) fn is_revived(&self, uid: &str) -> bool {
        self.0.lock().revived.contains(uid)
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
}

fn is_of_change(id: &str) -> bool {
    OF_CREATION.contains(&id) || OF_UPDATE.contains(&id)
}

impl Inner {
    fn has_ended(&self, process: u64) -> bool {
        let is_now = self.ended.get(&process) == Some(&self.start.elapsed());
        !self.alive.contains_key(&process) && !is_now
    }

    fn note(&mut self, line: String) {
        let at = self.start.elapsed();
        self.lines.push((at, line));
    }

    fn complain(&mut self, rule: String) {
        self.note(format!("BROKEN: {rule}"));
        self.broken.push(rule);
    }

    fn last_done(&self, uid: &str, id: &str) -> Option<&Call> {
        self.last_done_of(uid, &[id])
    }

    fn last_done_of(&self, uid: &str, ids: &[&str]) -> Option<&Call> {
        let is_meant = |it: &&Call| {
            let is_done = it.ended == Some(Ending::Done) && !it.is_undone;
            it.uid == uid && ids.contains(&it.id.as_str()) && is_done
        };
        self.calls.iter().rev().find(is_meant)
    }

    /// Checks a call against what the server stores now.
    fn check(&mut self, call: &Call) {
        let Call { process, id, uid, x, retry, .. } = call;
        if self.has_ended(*process) {
            self.complain(format!("{id} of {uid} is called by process {process} after its end"));
        }
        if !is_of_change(id) && id != OF_DELETION {
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
        if self.restored.contains(uid) {
            return;
        }
        let cause = self.stored.get(uid).map_or(0, |it| it.causes);
        let (is_repeated, rule) = self.costs.call(call, cause);
        let is_recorded = self.stored.get(uid).is_some_and(|it| it.is_recorded(id, *x));
        if is_recorded || is_repeated {
            let why = if is_recorded { "but is recorded" } else { "for the same attempt" };
            self.complain(format!("{id} of {uid} is called again (x = {x}, retry {retry}), {why}"));
        }
        if let Some(rule) = rule {
            self.complain(rule);
        }
    }

    /// Checks what the server stores now against the calls so far.
    fn stored(&mut self, mut now: Stored) {
        let before = self.stored.get(&now.uid);
        now.causes = before.map_or(0, |it| it.causes);
        let earlier = before.and_then(|it| it.handled);
        if now.handled == earlier {
            if let Some(before) = before {
                now.keep(before);
            }
        } else {
            now.causes += 1;
            // A deletion replaces what was begun before.
            if !now.is_deleting && !self.restored.contains(&now.uid) {
                self.check_essence(&now, earlier);
            }
        }
        if now.is_foreign {
            self.complain(format!("{} has a result of another object", now.uid));
        }
        if !now.is_deleting && now.has_record(OF_DELETION) && !self.revived.contains(&now.uid) {
            self.complain(format!("{} is recorded as being deleted, but is not", now.uid));
        }
        if self.restored.contains(&now.uid) {
            self.stored.insert(now.uid.clone(), now);
            return;
        }
        let unknown = now.finished.iter().find(|it| self.last_done(&now.uid, it).is_none());
        if let Some(id) = unknown {
            self.complain(format!("{id} of {} is recorded, but never ended", now.uid));
        }
        self.stored.insert(now.uid.clone(), now);
    }

    /// Checks that what counts as handled was handled.
    fn check_essence(&mut self, now: &Stored, earlier: Option<u64>) {
        let uid = &now.uid;
        match (earlier, now.handled) {
            (None, Some(_)) => {
                let missing = OF_CREATION.iter().find(|it| self.last_done(uid, it).is_none());
                if let Some(id) = missing {
                    self.complain(format!("{uid} counts as created without {id}"));
                }
            }
            (Some(earlier), Some(handled)) if handled > earlier => {
                // As in Kopf, the essence is that of the last call: a handler that has finished before, while another one had to be
                // called again, has not seen it.
                let last = self.last_done_of(uid, &OF_UPDATE).map(|it| it.x);
                if self.is_orderly && last != Some(handled) {
                    self.complain(format!(
                        "x = {handled} of {uid} counts as handled, but the last call has seen {last:?}"
                    ));
                }
            }
            (earlier, handled) => {
                self.complain(format!("{uid} was handled to {earlier:?}, and now to {handled:?}"));
            }
        }
    }

    fn released(&mut self, uid: &str) {
        self.note(format!("{uid} is gone"));
        if self.held.remove(uid) && self.last_done(uid, OF_DELETION).is_none() {
            self.complain(format!("{uid} is released without {OF_DELETION}"));
        }
    }
}
