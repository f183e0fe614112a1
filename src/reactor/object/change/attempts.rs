//! The attempts of one cycle, and which of them requested which change.
//!
//! A change that the server rejects later fails its attempt, see `reactor/object/delivery.rs`.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::call::SharedPatch;
use crate::logic::{
    change::{
        patch::{Authors, Patch, Transformation},
        registry::ResourceHandlers,
        state::State,
    },
    handlers::{handler::Handler, progress::ProgressRecord},
};

/// One attempt of a handler.
#[derive(Clone, Debug)]
pub(in crate::reactor) struct HandlerAttempt {
    /// The handler that is called.
    pub(in crate::reactor) handler: Arc<Handler>,
    /// Number of earlier attempts.
    pub(in crate::reactor) retries: u64,
    /// When the first attempt was due.
    pub(in crate::reactor) started: Timestamp,
    /// The record before the attempt; `None` for handlers that have none.
    pub(in crate::reactor) before: Option<ProgressRecord>,
    /// The attempt whose sub-handler this is.
    pub(in crate::reactor) parent: Option<usize>,
}

/// All attempts of one cycle, by numbers.
#[derive(Debug, Default)]
pub(in crate::reactor) struct Attempts(Mutex<AttemptsContent>);

#[derive(Debug, Default)]
struct AttemptsContent {
    attempts: Vec<HandlerAttempt>,
    /// The running attempt, which can change the patch.
    running: Option<usize>,
    authors: Authors,
    /// The revision of the patch when its authors were last noted.
    revision: Option<u64>,
    /// The records of all sub-handlers.
    children: State,
}

impl Attempts {
    /// Starts an attempt, and returns its number. The attempt is the author of all later changes of the patch, until it ends.
    pub(in crate::reactor) fn begin(
        &self,
        handler: &Arc<Handler>,
        record: Option<&ProgressRecord>,
        now: Timestamp,
        patch: &SharedPatch,
    ) -> usize {
        let mut content = self.0.lock();
        content.note(patch);
        let parent = content.running;
        content.attempts.push(HandlerAttempt {
            handler: Arc::clone(handler),
            retries: record.map_or(0, |it| it.retries),
            started: record.map_or(now, |it| it.started),
            before: record.cloned(),
            parent,
        });
        let number = content.attempts.len() - 1;
        content.running = Some(number);
        number
    }

    /// Ends an attempt: new changes in the patch are its own, later ones belong to its parent.
    pub(in crate::reactor) fn end(&self, number: usize, patch: &SharedPatch) {
        let mut content = self.0.lock();
        content.note(patch);
        content.running = content.attempts.get(number).and_then(|it| it.parent);
    }

    /// Adds a patch that other handlers have filled meanwhile, with the authors of its parts.
    pub(in crate::reactor) fn absorb(&self, others: Attempts, theirs: Patch, patch: &SharedPatch) {
        if theirs.is_empty() {
            return;
        }
        let AttemptsContent { attempts, authors, children, .. } = others.0.into_inner();
        let mut content = self.0.lock();
        content.note(patch);
        let first = content.attempts.len();
        let mut patch = patch.lock();
        patch.add(theirs);
        content.authors.absorb(authors, first, &patch);
        let parent = |it: &HandlerAttempt| it.parent.map(|it| first + it);
        content
            .attempts
            .extend(attempts.into_iter().map(|it| HandlerAttempt { parent: parent(&it), ..it }));
        content.children.replace(&children);
    }

    /// Stores the present records of sub-handlers.
    pub(super) fn keep_children(&self, state: &State) {
        self.0.lock().children.replace(state);
    }

    /// Returns the records of all sub-handlers.
    pub(super) fn children(&mut self) -> &mut State {
        &mut self.0.get_mut().children
    }

    /// Returns the attempt of this number.
    pub(in crate::reactor) fn get(&self, number: usize) -> Option<HandlerAttempt> {
        self.0.lock().attempts.get(number).cloned()
    }

    /// Returns the attempts among these whose handlers were edited or removed since, with their parents. An edit of a parent
    /// includes its sub-handlers.
    pub(in crate::reactor) fn replaced(
        &self,
        handlers: &ResourceHandlers,
        which: &BTreeSet<usize>,
    ) -> BTreeSet<usize> {
        let is_declared = |handler: &Handler| {
            let mut all = handlers.changing.iter().chain(&*handlers.watching);
            all.any(|it| it.is_same(handler))
        };
        let content = self.0.lock();
        let get = |number: &usize| content.attempts.get(*number);
        let mut replaced = BTreeSet::new();
        for number in which {
            let parents = std::iter::successors(Some(*number), |it| get(it)?.parent);
            let line = parents.collect::<Vec<_>>();
            let top = line.last().and_then(get);
            if top.is_some_and(|it| !is_declared(&it.handler)) {
                replaced.extend(line);
            }
        }
        replaced
    }

    /// Splits a merge-patch by the attempts that requested its parts.
    pub(in crate::reactor) fn split(
        &self,
        merge: &Map<String, Value>,
    ) -> Vec<(Option<usize>, Map<String, Value>)> {
        self.0.lock().authors.split(merge)
    }

    /// Returns the attempt that requested a transformation.
    pub(in crate::reactor) fn author_of(&self, transformation: &Transformation) -> Option<usize> {
        self.0.lock().authors.author_of(transformation)
    }
}

impl AttemptsContent {
    fn note(&mut self, patch: &SharedPatch) {
        let revision = Some(patch.revision());
        if std::mem::replace(&mut self.revision, revision) != revision
            && let Some(patch) = patch.peek()
        {
            self.authors.note(self.running, &patch);
        }
    }
}
