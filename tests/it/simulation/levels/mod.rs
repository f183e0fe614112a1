//! Worlds with reconcile handlers and schedules: the actions of their calls, and the rules that hold at any time.
//!
//! Each object has children: `NAME-0`, `NAME-1`, … in its namespace, as many as its spec says, and `far-UID` in another one, which
//! only the finalization deletes. All of them show `spec.x` and a number of a watched secret. Users edit and delete children,
//! create objects of the same names, and edit the secret. `natives.rs` and the scripts have the same handlers; `checks.rs` checks
//! the end.

pub(super) mod checks;
mod natives;
mod scripts;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kopf_apiserver::ApiServer;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{actions::Action, history::History, stored::Stored, wire::NAMESPACE};

pub(super) use natives::handlers;
pub(super) use scripts::{hear, source};

/// The first seed of these worlds: those of the other worlds keep their meaning.
pub(super) const FIRST_SEED: u64 = 1_000_000;

/// The namespace of children that cannot have an owner reference.
pub(super) const FAR: &str = "ns2";

const CHILDREN: &str = "configmaps";

/// The watched object.
const TUNE: (&str, &str) = ("secrets", "tune");

/// The label with the uid of the parent.
const PARENT: &str = "kopf.dev/parent";

/// Maximum number of children of one object in its namespace.
const NEAR_MAX: u64 = 4;

/// The kinds of schedules, by their ids, and the seconds between their slots.
const SCHEDULES: [(&str, u64); 2] = [("often", 15), ("minute", 60)];

/// A running call. Two for one object by one process, or by two live ones, are one too many.
#[derive(Debug)]
struct Running {
    process: u64,
    uid: String,
}

/// The history of these worlds. Clones share it.
#[derive(Clone)]
pub(super) struct Levels {
    history: History,
    server: ApiServer,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    calls: u64,
    running: BTreeMap<u64, Running>,
    /// The objects whose finalization has succeeded.
    finalized: BTreeSet<String>,
    /// The objects that were removed although they had finalizers.
    removed: BTreeSet<String>,
    /// The processes that have run a slot, by schedule and slot.
    slots: BTreeMap<(String, String), u64>,
}

/// The object of a request, and the children of other owners.
pub(super) struct Looked {
    object: Option<Value>,
    children: Vec<Value>,
}

impl Levels {
    pub(super) fn new(history: &History, server: &ApiServer) -> Self {
        let state = Arc::default();
        Levels { history: history.clone(), server: server.clone(), state }
    }

    /// Records a call of the handler's function. Returns its number.
    fn begin(&self, process: u64, what: &str, uid: &str) -> u64 {
        self.check_process(process, what, uid);
        self.history.note(format!("process {process} calls {what} of {uid}"));
        let mut state = self.state.lock();
        let is_twice = |it: &&Running| it.uid == uid && self.history.is_alive(it.process);
        if let Some(other) = state.running.values().find(is_twice) {
            let rule = format!("{what} of {uid} is called while process {} runs it", other.process);
            self.history.complain(rule);
        }
        state.calls += 1;
        let number = state.calls;
        state.running.insert(number, Running { process, uid: uid.to_owned() });
        number
    }

    /// Ends a call.
    fn end(&self, number: u64, how: &str) {
        if let Some(Running { process, uid }) = self.state.lock().running.remove(&number) {
            self.history.note(format!("process {process} ends a call of {uid}: {how}"));
        }
    }

    /// Ends the calls of a process for an object: a script does not have their numbers.
    fn end_all(&self, process: u64, uid: &str) {
        let is_meant = |it: &Running| it.process == process && it.uid == uid;
        self.state.lock().running.retain(|_, it| !is_meant(it));
    }

    /// Records that the function `finalize` has succeeded.
    fn finalized(&self, uid: &str) {
        self.state.lock().finalized.insert(uid.to_owned());
    }

    /// Records that an object was removed although it has finalizers.
    pub(super) fn removed(&self, object: &Value) {
        self.state.lock().removed.insert(Stored::read(object).uid);
    }

    /// Records that a process runs a slot of a schedule.
    fn slot(&self, process: u64, id: &str, slot: &str) {
        self.check_process(process, id, slot);
        self.history.note(format!("process {process} runs the slot {slot} of {id}"));
        let before = self.state.lock().slots.insert((id.to_owned(), slot.to_owned()), process);
        if let Some(before) = before {
            self.history.complain(format!(
                "the slot {slot} of {id} is run by process {process}, and was run by process {before}"
            ));
        }
    }

    fn check_process(&self, process: u64, what: &str, of: &str) {
        if self.history.has_ended(process) {
            let rule = format!("{what} of {of} is called by process {process} after its end");
            self.history.complain(rule);
        }
    }

    /// Acts on children, or on the watched object.
    pub(super) fn act(&self, action: &Action) {
        let (name, is_edit) = match action {
            Action::Tune(number) => {
                self.history.note(format!("{action:?}"));
                let metadata = json!({ "metadata": tune(*number)["metadata"] });
                return drop(self.server.merge(TUNE.0, NAMESPACE, TUNE.1, metadata));
            }
            Action::Occupy(object, number) => {
                let name = child_name(*object, *number);
                if self.server.create(CHILDREN, foreign(&name)).is_ok() {
                    self.history.note(format!("somebody creates {name}"));
                }
                return;
            }
            Action::EditChild(object, number) => (child_name(*object, *number), true),
            Action::DeleteChild(object, number) => (child_name(*object, *number), false),
            other => return self.history.complain(format!("not about children: {other:?}")),
        };
        let Some(child) = self.server.get(CHILDREN, NAMESPACE, &name) else { return };
        if !is_edit {
            self.history.note(format!("somebody deletes {name}"));
            drop(self.server.delete(CHILDREN, NAMESPACE, &name));
        } else if !is_foreign(&child) {
            self.history.note(format!("somebody edits {name}"));
            let edit = json!({ "data": { "x": "edited", "more": "of others" } });
            drop(self.server.merge(CHILDREN, NAMESPACE, &name, edit));
        }
    }

    /// Returns the current object of a request, and the children of other owners, which no request may change.
    pub(super) fn look(&self, name: Option<&String>, of: &str) -> Looked {
        let object = name.and_then(|it| self.server.get(of, NAMESPACE, it));
        let children = self.server.list(CHILDREN).into_iter().filter(is_foreign).collect();
        Looked { object, children }
    }

    /// Checks an executed request: nothing of others has changed, and no object was released too early.
    pub(super) fn check(&self, before: &Looked, after: &Looked) {
        if before.children != after.children {
            let text = json!([before.children, after.children]);
            self.history.complain(format!("a child of somebody else is changed: {text}"));
        }
        let Some(object) = before.object.as_ref().map(Stored::read).filter(|it| it.is_held) else {
            return;
        };
        let now = after.object.as_ref().map(Stored::read);
        if now.is_some_and(|it| it.uid == object.uid && it.is_held) {
            return;
        }
        self.history.note(format!("{} is released", object.uid));
        if !object.is_deleting {
            self.history.complain(format!("{} is released, but not deleted", object.uid));
        } else if !self.state.lock().finalized.contains(&object.uid) {
            self.history.complain(format!("{} is released without finalize", object.uid));
        }
    }
}

/// Returns whether an object with the name of a child belongs to another owner.
fn is_foreign(child: &Value) -> bool {
    child["data"]["owner"] == "somebody"
}

/// Returns an object of another owner with the name of a child.
fn foreign(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": { "of": "somebody" } },
        "data": { "owner": "somebody", "x": "foreign" },
    })
}

/// Returns the watched object with this number.
pub(super) fn tune(number: u64) -> Value {
    let (_, name) = TUNE;
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": { "v": number.to_string() } },
    })
}

/// Returns the number of the watched object.
fn tuned(server: &ApiServer) -> String {
    let found = server.get(TUNE.0, NAMESPACE, TUNE.1);
    let number = found.and_then(|it| it["metadata"]["labels"]["v"].as_str().map(str::to_owned));
    number.unwrap_or_default()
}

/// Returns how many children are in the namespace of the object.
fn near(x: u64) -> u64 {
    x % NEAR_MAX
}

/// Returns the children that an object must have, by namespace and name, with their data.
fn wanted((name, uid, x): (&str, &str, u64), tune: &str) -> BTreeMap<(String, String), Value> {
    let data = json!({ "x": x.to_string(), "tune": tune });
    let near = (0..near(x)).map(|it| (NAMESPACE.to_owned(), format!("{name}-{it}")));
    near.chain([(FAR.to_owned(), format!("far-{uid}"))]).map(|it| (it, data.clone())).collect()
}

/// Returns the name of the child of an object with this number.
fn child_name(object: usize, number: u64) -> String {
    format!("o{object}-{}", number % NEAR_MAX)
}
