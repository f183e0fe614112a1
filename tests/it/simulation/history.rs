//! What happened in a run: calls of handlers, what of them reached the server, and the rules that were broken on the way.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use super::stored::Stored;

/// Requests of one run; more mean a loop.
const REQUESTS_MAX: u64 = 30_000;

/// The handlers of a creation, by the names of their records.
pub(super) const OF_CREATION: [&str; 6] =
    ["made", "retried", "parent", "parent.one", "parent.two", "marked"];

/// A handler that has ended so long before a backup is restored may not be recorded yet.
const IN_PROGRESS: Duration = Duration::from_secs(30);

/// The handler that has sub-handlers.
const PARENT: &str = "parent";

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
    /// What came of it was undone: an older backup was restored.
    is_undone: bool,
    ended_at: Duration,
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
        Call {
            process,
            id,
            uid,
            x,
            retry,
            at: Duration::ZERO,
            ended: None,
            is_undone: false,
            ended_at: Duration::ZERO,
        }
    }
}

/// How often a handler was called for one cause.
struct Count {
    calls: u64,
    /// How many faults there had been at the first call.
    faults: u64,
}

/// Clones share it.
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
    /// What the server has stored of each object, by uid.
    stored: BTreeMap<String, Stored>,
    /// Objects that carried the finalizer when they were deleted, until they are gone.
    held: BTreeSet<String>,
    /// Objects that were being handled when a backup was restored.
    overtaken: BTreeSet<String>,
    /// Objects that a backup has brought back to an earlier state.
    restored: BTreeSet<String>,
    /// Processes that may act, and since when.
    alive: BTreeMap<u64, Duration>,
    /// When processes have ended. What they do in that very moment is dropped together with them.
    ended: BTreeMap<u64, Duration>,
    killed: BTreeSet<u64>,
    /// How often each attempt was made, by process, handler, uid, number of the cause, number of the attempt.
    attempts: BTreeMap<(u64, String, String, u64, u64), u64>,
    /// How often the scripts were edited.
    edits: u64,
    /// How often handlers of changes were called.
    counts: BTreeMap<(String, String, u64), Count>,
    /// How often each handler of an object fails by itself.
    planned: BTreeMap<String, Value>,
    /// How often requests that change an object were rejected, by the name of the object.
    rejections: BTreeMap<String, u64>,
    /// Processes that have ended, or are about to.
    ends: BTreeSet<u64>,
}

impl History {
    /// `is_orderly`: all handlers of a cause see the same object.
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
            alive: BTreeMap::new(),
            ended: BTreeMap::new(),
            killed: BTreeSet::new(),
            attempts: BTreeMap::new(),
            edits: 0,
            counts: BTreeMap::new(),
            planned: BTreeMap::new(),
            rejections: BTreeMap::new(),
            ends: BTreeSet::new(),
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
        inner.ends.insert(process);
        let at = inner.start.elapsed();
        inner.ended.insert(process, at);
        inner.note(format!("process {process} {how}"));
    }

    /// A process says that it ends: another one may act at once.
    pub(super) fn fail_process(&self, process: u64, why: &str) {
        let mut inner = self.0.lock();
        inner.ends.insert(process);
        inner.note(format!("process {process} fails: {why}"));
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
        let at = inner.start.elapsed();
        let call = inner.calls.get_mut(number).expect("a call");
        call.ended = Some(ending);
        call.ended_at = at;
        let line = format!("process {} ends {} of {}: {ending:?}", call.process, call.id, call.uid);
        inner.note(line);
    }

    /// A request was sent.
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

    /// The scripts are edited.
    pub(super) fn edit(&self, line: impl Into<String>) {
        let mut inner = self.0.lock();
        inner.edits += 1;
        inner.note(line.into());
    }

    /// A request that changes the object of this name is rejected.
    pub(super) fn reject(&self, name: &str) {
        *self.0.lock().rejections.entry(name.to_owned()).or_default() += 1;
    }

    /// A user creates an object. `failures`: how often each handler fails by itself.
    pub(super) fn created(&self, uid: &str, failures: &Value) {
        let mut inner = self.0.lock();
        inner.objects += 1;
        inner.planned.insert(uid.to_owned(), failures.clone());
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
        }
    }

    /// An object is removed in spite of its finalizers.
    pub(super) fn removed(&self, object: &Value) {
        let stored = Stored::read(object);
        let mut inner = self.0.lock();
        inner.note(format!("{} is removed", stored.uid));
        inner.held.remove(&stored.uid);
    }

    /// A backup of this moment is restored, with these objects: what has happened to them since then counts no more. Their handlers
    /// may be called again, and what they were doing may be stored on the older object; at the end all must be well.
    pub(super) fn restore(&self, moment: Duration, objects: &[Value]) {
        let mut inner = self.0.lock();
        inner.note(format!("the backup of {:.3} is restored", moment.as_secs_f64()));
        for call in inner.calls.iter_mut().filter(|it| it.ended_at > moment) {
            call.is_undone = true;
        }
        let now = inner.start.elapsed();
        let is_busy = |it: &&Call| it.ended.is_none() || it.ended_at + IN_PROGRESS > now;
        let of_change = inner.calls.iter().filter(|it| is_of_change(&it.id));
        let busy: Vec<_> = of_change.filter(is_busy).map(|it| it.uid.clone()).collect();
        inner.overtaken.extend(busy);
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

    /// A request of a process has changed an object; `None` is an object that is not there.
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

    /// Returns whether an object was being handled when a backup was restored: what its handlers had done before may be lost with
    /// the backup, though what they do afterwards is recorded.
    pub(super) fn is_overtaken(&self, uid: &str) -> bool {
        self.0.lock().overtaken.contains(uid)
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
        let is_meant = |it: &&Call| {
            let is_done = it.ended == Some(Ending::Done) && !it.is_undone;
            it.uid == uid && it.id == id && is_done
        };
        self.calls.iter().rev().find(is_meant)
    }

    /// Checks a call against what the server has stored at this moment.
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
        let attempt = (*process, id.clone(), uid.clone(), cause, *retry);
        let times = self.attempts.entry(attempt).or_default();
        *times += 1;
        // What the server has not accepted is not remembered: neither after an edit, nor after a rejection.
        let allowed =
            1 + self.edits + self.rejections.get(name_of(uid)).copied().unwrap_or_default();
        let is_repeated = *times > allowed;
        let is_recorded = self.stored.get(uid).is_some_and(|it| it.is_recorded(id, *x));
        if is_recorded || is_repeated {
            let why = if is_recorded { "but is recorded" } else { "for the same attempt" };
            self.complain(format!("{id} of {uid} is called again (x = {x}, retry {retry}), {why}"));
        }
        // A call of a process that ends at this moment: its end can cost this call.
        let is_ending = u64::from(self.ends.contains(process));
        self.count((id, uid, cause), is_ending);
    }

    /// Counts the calls of a handler for one cause. There may be one, one more for each failure of its own, and one more for each
    /// fault since the first call that can cost a call: the end of a process, a rejected request that changes the object, or an
    /// edit of the scripts, which drops what the server has not accepted of the edited handlers.
    /// Whatever else goes wrong with requests, responses, watches and lists must not cost any.
    fn count(&mut self, (id, uid, cause): (&str, &str, u64), is_ending: u64) {
        let ends = u64::try_from(self.ends.len()).expect("a small number");
        let faults = ends + self.rejections.get(name_of(uid)).copied().unwrap_or_default();
        let key = (id.to_owned(), uid.to_owned(), cause);
        let first = Count { calls: 0, faults: faults - is_ending };
        let count = self.counts.entry(key).or_insert(first);
        count.calls += 1;
        let hits = faults - count.faults + self.edits;
        let failures = |id: &str| self.planned[uid][id].as_u64().unwrap_or_default();
        let planned = match id {
            // It is called again as long as any of its two sub-handlers is left.
            PARENT => 2 + failures("parent.two"),
            _ => failures(id),
        };
        let calls = count.calls;
        if calls > 1 + planned + hits {
            self.complain(format!(
                "{id} of {uid} is called {calls} times, with {planned} failures of its own and {hits} faults"
            ));
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
            // A deletion takes the place of what was begun before.
            if !now.is_deleting && !self.restored.contains(&now.uid) {
                self.check_essence(&now, earlier);
            }
        }
        if now.is_foreign {
            self.complain(format!("{} has a result of another object", now.uid));
        }
        if !now.is_deleting && now.has_record(OF_DELETION) {
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
                let last = self.last_done(uid, OF_UPDATE[0]).map(|it| it.x);
                if self.is_orderly && last != Some(handled) {
                    self.complain(format!(
                        "x = {handled} of {uid} counts as handled, but {} has seen {last:?}",
                        OF_UPDATE[0]
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

/// Returns the name of the object with this uid.
fn name_of(uid: &str) -> &str {
    uid.split('.').next().unwrap_or_default()
}
