//! Determines whether the operator's finalizer holds an object.
//!
//! Before: `cycle.rs`, which determines whether handlers require the finalizer. The remembered state: `logic/change/claim.rs`.

use std::{sync::Arc, time::Duration};

use kopf_json::values;
use serde_json::{Map, Value};

use super::cycle::Cycle;
use crate::logic::{
    change::{
        claim::{Claim, Quiet},
        patch::Transformation,
        plan::Hold,
        selection::Certainty,
    },
    handlers::{outcome::LogLevel, progress},
    object::reason::EventType,
};
use crate::settings::ProgressStorage;

/// The state of an object's finalizer.
#[derive(Clone, Copy, Debug)]
pub(in crate::reactor) struct FinalizerState {
    /// The object has the finalizer, and the finalizer is that of this operator.
    pub(in crate::reactor) blocked: bool,
    /// The time that the deletion still waits for another operator, to which the finalizer seems to belong.
    pub(in crate::reactor) wait: Option<Duration>,
}

impl Cycle<'_> {
    /// Determines the owner of the finalizer. `blocked`: the object has the finalizer. `is_ending`: the object is being deleted and has the
    /// finalizer.
    pub(in crate::reactor) fn held(
        &mut self,
        required: Certainty,
        blocked: bool,
        is_ending: bool,
    ) -> FinalizerState {
        if required != Certainty::Unknown {
            self.claim(required == Certainty::Yes, blocked);
        }
        if required == Certainty::Yes {
            self.tell_ignored_finalizer();
        }
        let is_asked = is_ending && required != Certainty::Unknown;
        let wait = if is_asked { self.remaining_wait() } else { None };
        let is_abandoned = wait.is_some_and(|it| it.is_zero());
        let is_ours = required == Certainty::Yes || self.memory.claim.is_ours() || is_abandoned;
        FinalizerState { blocked: blocked && is_ours, wait }
    }

    /// Updates the owner of the finalizer; logs once when it turns out to be another operator.
    fn claim(&mut self, required: bool, blocked: bool) {
        let before = self.memory.claim;
        self.memory.claim = before.seen(required, blocked);
        if before.is_ours() && !self.memory.claim.is_ours() {
            let text = format!(
                "The finalizer {} came back after it was removed: another operator may need it, so it is not removed again until \
                 the object is deleted. Give each operator its own finalizer and annotations (settings.persistence).",
                self.serving.settings.persistence.finalizer
            );
            self.logger.log(LogLevel::Warning, &text);
        }
    }

    /// Logs if the server has removed the object although it had the operator's finalizer. API servers do so if the finalizer is added
    /// while they delete the object: <https://github.com/kubernetes/kubernetes/issues/77988>.
    fn tell_ignored_finalizer(&self) {
        let header = self.event.object.header();
        let finalizer = &self.serving.settings.persistence.finalizer;
        let is_removed = self.event.event_type == Some(EventType::Deleted);
        if is_removed
            && header.deletion_timestamp.is_none()
            && header.finalizers.contains(finalizer)
        {
            let text = format!(
                "The API server has removed the object although it had the finalizer {finalizer}, so its deletion handlers cannot \
                 be called. This happens if an object is deleted while the finalizer is added (kubernetes/kubernetes#77988). Clean \
                 up what its handlers have created."
            );
            self.logger.log(LogLevel::Warning, &text);
        }
    }

    /// Returns how long a deletion still waits for the other operator to which the finalizer seems to belong, while nothing happens to the
    /// object; `None` if the finalizer is that of this operator.
    fn remaining_wait(&mut self) -> Option<Duration> {
        if self.memory.claim.is_ours() {
            self.memory.quiet = None;
            return None;
        }
        let persistence = &self.serving.settings.persistence;
        let body = self.event.object.body();
        let in_progress = progress::any(&persistence.progress_storage, body);
        let now = self.serving.uptime();
        let before = self.memory.quiet.take().map(|it| *it);
        let quiet =
            Quiet::seen(before, state_of(body, &persistence.progress_storage), in_progress, now);
        let remaining = quiet.remaining(now);
        if !remaining.is_zero() {
            self.memory.quiet = Some(Box::new(quiet));
            return Some(remaining);
        }
        let text = format!(
            "The finalizer {} was added again after its removal, and nothing has happened to the object since its deletion: \
             removing it.",
            persistence.finalizer
        );
        self.logger.log(LogLevel::Warning, &text);
        Some(remaining)
    }

    /// Returns the change of the operator's finalizer that is sent before everything else, if any.
    pub(in crate::reactor) fn hold(&mut self, hold: Hold) -> Option<Transformation> {
        let finalizer: Arc<str> = self.serving.settings.persistence.finalizer.as_str().into();
        let (line, transformation) = match hold {
            Hold::Keep => return None,
            Hold::Block => (
                "Adding the finalizer, thus preventing the actual deletion.",
                Transformation::BlockDeletion(finalizer),
            ),
            Hold::Release => (
                "Removing the finalizer, as there are no handlers requiring it.",
                Transformation::AllowDeletion(finalizer),
            ),
        };
        self.memory.claim = if hold == Hold::Release { Claim::Releasing } else { Claim::Ours };
        self.logger.log(LogLevel::Debug, line);
        Some(transformation)
    }
}

/// Returns a fingerprint of an object's state. Changes that only trigger an event do not affect it.
fn state_of(body: &Value, storage: &ProgressStorage) -> u64 {
    let mut untouched = Map::new();
    progress::touch(storage, body, &mut untouched, None);
    let mut body = body.clone();
    json_patch::merge(&mut body, &Value::Object(untouched));
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("resourceVersion");
    }
    values::fingerprint(&body)
}
