//! The number of calls that handlers may get: one for each change, and one more for each event that can cost a call.
//!
//! | what | costs a call of | if |
//! |---|---|---|
//! | a failure of its own | the handler, and its parent | always |
//! | the end of a process | any handler of any object | the handler has been called before |
//! | a rejected request | the handlers whose results or records it writes, and their parents | likewise |
//! | an edit of its code | the handler, with its sub-handlers | it is called with the new code: what the server has not accepted of the old one is dropped |
//!
//! Whatever else goes wrong with requests, responses, watches and lists must not cost any.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::history::{Call, OF_CREATION, OF_DELETION, OF_UPDATE};

/// The handler that has sub-handlers.
const PARENT: &str = "parent";

/// An attempt: its process, handler, object, number of the cause, and number.
type Attempt = (u64, String, String, u64, u64);

/// The events that may cost calls, and the number of calls of each handler.
#[derive(Debug, Default)]
pub(super) struct Costs {
    /// Processes that have ended, or are about to.
    ends: BTreeSet<u64>,
    /// The number of rejected requests of each handler, by the name of the object.
    rejections: BTreeMap<(String, String), u64>,
    /// The number of times that each handler of an object fails on purpose.
    planned: BTreeMap<String, Value>,
    attempts: BTreeMap<Attempt, Count>,
    /// By handler, object and number of the cause.
    calls: BTreeMap<(String, String, u64), Count>,
}

/// The number of calls, and of events that may cost calls.
#[derive(Debug)]
struct Count {
    calls: u64,
    /// The number of such events before the first call.
    before: u64,
    /// The number of edits of the code before the last call.
    edits: u64,
    /// The number of calls that were the first ones after an edit.
    edited: u64,
}

impl Count {
    fn new(before: u64, edits: u64) -> Self {
        Count { calls: 0, before, edits, edited: 0 }
    }

    /// Counts one more call after this many edits.
    fn add(&mut self, edits: u64) {
        self.calls += 1;
        self.edited += u64::from(self.edits != edits);
        self.edits = edits;
    }

    /// Returns the events that may have cost calls since the first one.
    fn faults(&self, costs: u64) -> u64 {
        costs - self.before + self.edited
    }
}

impl Costs {
    /// Counts the end of a process, or its announcement.
    pub(super) fn end(&mut self, process: u64) {
        self.ends.insert(process);
    }

    /// Counts a rejected request that writes results or records of these handlers to the object of this name.
    pub(super) fn reject(&mut self, name: &str, handlers: &[&str]) {
        let parents = handlers.iter().map(|it| top(it));
        for id in handlers.iter().copied().chain(parents).collect::<BTreeSet<_>>() {
            *self.rejections.entry((name.to_owned(), id.to_owned())).or_default() += 1;
        }
    }

    /// Adds an object. `failures`: how often each handler fails on purpose.
    pub(super) fn plan(&mut self, uid: &str, failures: &Value) {
        self.planned.insert(uid.to_owned(), failures.clone());
    }

    /// Counts a call for the cause with this number. Returns the rules that it breaks: the same attempt is made again, or there
    /// are too many of them.
    pub(super) fn call(&mut self, call: &Call, cause: u64) -> (bool, Option<String>) {
        let Call { process, id, uid, retry, edits, .. } = call;
        let name = uid.split('.').next().unwrap_or_default().to_owned();
        let rejections = self.rejections.get(&(name, id.clone())).copied().unwrap_or_default();
        let attempt = (*process, id.clone(), uid.clone(), cause, *retry);
        let attempts = self.attempts.entry(attempt).or_insert(Count::new(rejections, *edits));
        attempts.add(*edits);
        let is_repeated = attempts.calls > 1 + attempts.faults(rejections);
        let ends = u64::try_from(self.ends.len()).expect("a small number");
        // A call of a process that ends now: its end may cost this call.
        let is_ending = u64::from(self.ends.contains(process));
        let first = Count::new(rejections + ends - is_ending, *edits);
        let count = self.calls.entry((id.clone(), uid.clone(), cause)).or_insert(first);
        count.add(*edits);
        let planned = planned(&self.planned[uid], id);
        let (calls, faults) = (count.calls, count.faults(rejections + ends));
        let is_too_often = calls > 1 + planned + faults;
        let rule = is_too_often.then(|| {
            format!(
                "{id} of {uid} is called {calls} times, with {planned} failures of its own and {faults} faults"
            )
        });
        (is_repeated, rule)
    }
}

fn planned(failures: &Value, id: &str) -> u64 {
    let failures = |id: &str| failures[id].as_u64().unwrap_or_default();
    match id {
        // It is called again as long as one of its two sub-handlers is left.
        PARENT => 2 + failures("parent.two"),
        _ => failures(id),
    }
}

/// Returns the handler that fails when a request of this one is rejected: its parent, or itself.
fn top(id: &str) -> &str {
    id.split('.').next().unwrap_or_default()
}

/// Returns the handlers whose results or records are in a PATCH.
pub(super) fn written(patch: &str) -> Vec<&'static str> {
    let all = OF_CREATION.into_iter().chain(OF_UPDATE).chain([OF_DELETION]);
    let is_written = |id: &&str| {
        // A key of the status, of the annotations, or a path of a JSON patch; results of sub-handlers have a slash.
        let names =
            [format!("\"{id}\""), format!("/{id}\""), format!("\"{}\"", id.replace('.', "/"))];
        names.iter().any(|it| patch.contains(it))
            || (*id == "marked" && (patch.contains("/status/mark\"") || patch.contains("\"mark\"")))
            // The essence counts for all handlers of the change: their records are removed with it.
            || patch.contains("last-handled-configuration")
    };
    all.filter(is_written).collect()
}
