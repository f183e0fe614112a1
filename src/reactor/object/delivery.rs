//! The changes that a cycle sends, and their order.
//!
//! Records come last: a handler is recorded as finished only after the server has accepted its result and its changes. A crash in
//! between repeats a handler, but loses nothing.
//!
//! | request | content |
//! |---|---|
//! | merge-patch of the status | results, `ctx.patch.status`; records that are kept there |
//! | JSON patches | `ctx.patch.fns`, `ctx.conditions`; the operator's finalizer, if it must be added |
//! | merge-patch | `ctx.patch`, the records, the essence; after a deletion without the records |
//! | JSON patch | the operator's finalizer, if it must be removed |
//! | merge-patch | after a deletion: removes the records, if other finalizers hold the object |
//!
//! Each part that comes from a script has an author: the attempt that requested it. A rejected part is dropped, and its attempt
//! fails.
//!
//! Before: `cycle.rs`. After: `handling/patching.rs`, which sends one patch.

use std::{collections::BTreeSet, num::NonZeroU64, sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{
    change::{Attempts, Settling},
    memory::Memory,
};
use crate::call::{Logger, LoggerKind, PatchCharges};
use crate::handling::patching::{PatchError, PatchResponses, Patcher};
use crate::logic::{
    change::{
        patch::{self, Overlay, Patch, Transformation},
        registry::ResourceHandlers,
    },
    handlers::{
        outcome::{LogLevel, Raised},
        progress,
    },
    object::Object,
};
use crate::reactor::object::{context::StreamContext, queue::ObjectQueue};
use crate::sorted::CollectSorted as _;

/// Byte limits on messages, tried in this order when the server rejects the records as too long.
const MESSAGE_BYTES: [usize; 3] = [512, 64, 0];

/// The changes of a cycle. Parts that the server has accepted are removed.
#[derive(Debug, Default)]
pub(in crate::reactor) struct Delivery {
    /// The part from scripts that is sent before the records; also the operator's finalizer, if it must be added.
    first: Patch,
    /// The part from scripts that is sent together with the records.
    main: Map<String, Value>,
    /// The attempts that requested the changes.
    attempts: Attempts,
    /// The records to write.
    settling: Option<Box<Settling>>,
    /// The removal of the operator's finalizer, if necessary.
    release: Option<Transformation>,
    /// Whether an attempt has failed since the records were made.
    has_failed: bool,
    /// What is counted for the part from scripts.
    charges: PatchCharges,
}

/// The result of a cycle.
#[derive(Debug, Default)]
pub(in crate::reactor) struct CycleResult {
    /// The changes that scripts request.
    pub(in crate::reactor) patch: Patch,
    /// The attempts that requested the changes.
    pub(in crate::reactor) attempts: Attempts,
    /// The records to write.
    pub(in crate::reactor) settling: Option<Settling>,
    /// The change of the operator's finalizer, if any.
    pub(in crate::reactor) finalizer: Option<Transformation>,
    /// What is counted for the changes that scripts request.
    pub(in crate::reactor) charges: PatchCharges,
}

impl Delivery {
    /// Puts the result of a cycle into the order in which it is sent.
    pub(in crate::reactor) fn of(wanted: CycleResult, has_status: bool) -> Self {
        let CycleResult { patch, attempts, settling, finalizer, charges } = wanted;
        let (release, added) = match finalizer {
            Some(it @ Transformation::AllowDeletion(_)) => (Some(it), None),
            other => (None, other),
        };
        let Patch { mut merge, mut transformations, is_main_applied } = patch;
        // Functions receive the object after the merge-patch, and nothing is recorded before the operator's finalizer is set.
        let is_function = |it: &Transformation| matches!(it, Transformation::Scripted(_));
        let are_ordered = added.is_some() || transformations.iter().any(is_function);
        transformations.extend(added);
        let main = if are_ordered {
            Map::new()
        } else if has_status {
            let status = merge.shift_remove_entry("status");
            std::mem::replace(&mut merge, status.into_iter().collect())
        } else {
            std::mem::take(&mut merge)
        };
        let first = Patch { merge, transformations, is_main_applied };
        let settling = settling.map(Box::new);
        Delivery { first, main, attempts, settling, release, charges, has_failed: false }
    }

    /// Returns whether there is nothing to send except, perhaps, records.
    fn is_empty(&self) -> bool {
        let Delivery { first, main, release, .. } = self;
        first.is_empty() && main.is_empty() && release.is_none()
    }

    /// Returns the delivery without the parts that the next cycle decides by itself. While an object is being deleted, the removal
    /// of its finalizer stays: its handlers have finished.
    pub(in crate::reactor) fn outdated(mut self, object: &Object) -> Self {
        self.release.take_if(|_| object.header().deletion_timestamp.is_none());
        self.first.transformations.retain(|it| !it.is_own());
        self
    }

    /// Returns the pauses until handlers of the change are due.
    pub(in crate::reactor) fn delays(&self, now: Timestamp) -> Vec<Duration> {
        self.settling.as_ref().map(|it| it.delays(now)).unwrap_or_default()
    }

    /// Returns whether the change is complete.
    fn is_done(&self) -> bool {
        self.settling.as_ref().is_some_and(|it| it.is_done())
    }

    /// Returns the essence that was handled, if the change is complete and everything about it has succeeded and was sent.
    pub(super) fn handled(&self) -> Option<&Value> {
        self.settling.as_ref().filter(|_| self.is_empty() && !self.has_failed)?.handled()
    }

    /// Stops counting the part from scripts, all of which is sent.
    pub(in crate::reactor) fn release_charges(&mut self) {
        self.charges = PatchCharges::default();
    }

    /// Keeps the scripts of the functions loaded: a delivery in the memory can outlive the generation of its scripts.
    pub(in crate::reactor) fn keep(&mut self, serving: &StreamContext) {
        serving.scripts.keep_functions(&mut self.first);
    }
}

impl Delivery {
    /// Returns the attempts with changes whose handlers were edited or removed since.
    fn replaced(&self, handlers: &ResourceHandlers) -> BTreeSet<usize> {
        let Delivery { first, main, attempts, .. } = self;
        let merges = [&first.merge, main].map(|it| attempts.split(it));
        let authors = merges.into_iter().flatten().map(|(author, _)| author);
        let functions = first.transformations.iter().map(|it| attempts.author_of(it));
        let authors = authors.chain(functions).flatten().collect_set();
        attempts.replaced(handlers, &authors)
    }

    /// Returns whether there are changes of handlers that were edited or removed since.
    pub(in crate::reactor) fn has_replaced(&self, handlers: &ResourceHandlers) -> bool {
        !self.replaced(handlers).is_empty()
    }

    /// Returns whether an object shows the records that were to be written to its earlier version.
    pub(in crate::reactor) async fn is_recorded(
        &mut self,
        serving: &StreamContext,
        before: &Object,
        present: &Object,
    ) -> bool {
        let Delivery { settling, attempts, .. } = self;
        let Some(settling) = settling else { return false };
        let own = settling.own(serving, before.body(), attempts).await;
        !own.is_empty() && present.is_known_to_contain(&own)
    }

    /// Drops the changes of handlers that were edited or removed since, as if these had not been called.
    ///
    /// Attempts without remaining changes are recorded nevertheless, so they are not repeated.
    pub(in crate::reactor) fn drop_replaced(&mut self, handlers: &ResourceHandlers) {
        let replaced = self.replaced(handlers);
        if replaced.is_empty() {
            return;
        }
        let Delivery { first, main, attempts, settling, .. } = self;
        let is_kept = |author: Option<usize>| author.is_none_or(|it| !replaced.contains(&it));
        for merge in [&mut first.merge, main] {
            let parts = attempts.split(&std::mem::take(merge)).into_iter();
            parts.filter(|(it, _)| is_kept(*it)).for_each(|(_, part)| patch::compose(merge, part));
        }
        first.transformations.retain(|it| is_kept(attempts.author_of(it)));
        if let Some(settling) = settling {
            settling.forget(&replaced, &handlers.changing, attempts);
        }
    }
}

/// A sender of the changes of one object's cycle.
pub(in crate::reactor) struct Sender<'a> {
    /// The resource and its settings.
    pub(in crate::reactor) serving: &'a StreamContext,
    /// The queue of newer events.
    pub(in crate::reactor) queue: &'a ObjectQueue,
    /// The object's memory.
    pub(in crate::reactor) memory: &'a mut Memory,
    /// The object as the cycle saw it.
    pub(in crate::reactor) object: &'a Arc<Object>,
    /// The logger for the operator's own log lines.
    pub(in crate::reactor) logger: &'a Logger,
    /// The responses of the server so far.
    pub(in crate::reactor) received: PatchResponses,
}

/// The outcome of a delivery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::reactor) struct Sent {
    /// Whether there was something to send.
    pub(in crate::reactor) is_any: bool,
    /// Whether the object is gone.
    pub(in crate::reactor) is_gone: bool,
}

impl Sender<'_> {
    /// Returns whether there is nothing to send.
    pub(in crate::reactor) async fn is_idle(&self, delivery: &mut Delivery) -> bool {
        let own = self.own(delivery).await;
        own.is_empty() && delivery.is_empty()
    }

    /// Sends everything.
    ///
    /// # Errors
    /// If the server did not accept a part but may do so later; the part stays in the delivery.
    pub(in crate::reactor) async fn run(
        &mut self,
        delivery: &mut Delivery,
    ) -> Result<Sent, PatchError> {
        let own = self.own(delivery).await;
        if own.is_empty() && delivery.is_empty() {
            return Ok(Sent::default());
        }
        // After a deletion, the changes have no effect, and another object may have the same name.
        let is_gone = self.queue.has_deletion() || self.steps(delivery, own).await?;
        Ok(Sent { is_any: true, is_gone })
    }

    /// Sends one patch. Returns whether the object is gone.
    pub(in crate::reactor) async fn apply(
        &mut self,
        patch: &mut Patch,
    ) -> Result<bool, PatchError> {
        if patch.is_empty() {
            return Ok(false);
        }
        let patcher = Patcher {
            cluster: &*self.serving.cluster,
            scripts: &*self.serving.scripts,
            resource: &self.serving.resource,
            logger: self.logger,
            seen: self.seen(),
            events: Some(self.queue),
            edits: &self.serving.replaced,
            persistence: &self.serving.settings.persistence,
        };
        let object = Arc::clone(self.received.object.as_ref().unwrap_or(self.object));
        let patched = patcher.apply(&object, patch, &mut self.received).await?;
        Ok(patched.is_gone)
    }

    /// Returns the latest known version of the object: from waiting events and from the operator's own requests.
    fn seen(&self) -> Option<NonZeroU64> {
        let of_background = self.memory.background.as_ref().and_then(|it| it.own_version());
        self.queue.latest_version().max(self.memory.own).max(of_background)
    }

    /// Sends everything in order. Returns whether the object is gone.
    async fn steps(
        &mut self,
        delivery: &mut Delivery,
        mut own: Map<String, Value>,
    ) -> Result<bool, PatchError> {
        self.untouch(&mut own);
        let has_status = self.serving.resource.subresources.contains("status");
        let is_done = delivery.is_done();
        // Records of a deletion stay until the finalizer is removed: otherwise a crash in between would repeat its handlers.
        let is_ending = is_done && delivery.release.is_some();
        // Records must not be removed from the status before the essence is written.
        let is_late = is_ending || (is_done && own.keys().any(|key| key != "status"));
        if has_status
            && !is_late
            && let Some(status) = own.shift_remove_entry("status")
        {
            patch::compose(&mut delivery.first.merge, Map::from_iter([status]));
        }
        if !delivery.first.is_empty() {
            if self.send_first(delivery).await? {
                return Ok(true);
            }
            if self.fail_refused(delivery) {
                own = self.own(delivery).await;
                self.untouch(&mut own);
            }
        }
        if is_ending {
            if self.send_main(delivery, Map::new()).await? || self.release(delivery).await? {
                return Ok(true);
            }
            let latest = self.received.object.as_ref();
            if latest.is_some_and(|it| it.header().is_released()) {
                // The server has deleted the object.
                return Ok(false);
            }
        }
        Ok(self.send_main(delivery, own).await? || self.release(delivery).await?)
    }

    /// Removes the operator's finalizer, if necessary. Returns whether the object is gone.
    async fn release(&mut self, delivery: &mut Delivery) -> Result<bool, PatchError> {
        let transformations = Vec::from_iter(delivery.release.clone());
        let is_gone = self.apply(&mut Patch { transformations, ..Patch::default() }).await?;
        delivery.release = None;
        Ok(is_gone)
    }

    /// Sends the part before the records. Returns whether the object is gone.
    async fn send_first(&mut self, delivery: &mut Delivery) -> Result<bool, PatchError> {
        match self.apply(&mut delivery.first).await {
            Err(error) if !error.is_transient() && !delivery.first.merge.is_empty() => {}
            ended => return ended,
        }
        let merge = std::mem::take(&mut delivery.first.merge);
        if self.send_each(delivery, &merge).await? {
            return Ok(true);
        }
        self.apply(&mut delivery.first).await
    }

    /// Sends the records and the part that goes with them. Returns whether the object is gone.
    async fn send_main(
        &mut self,
        delivery: &mut Delivery,
        mut own: Map<String, Value>,
    ) -> Result<bool, PatchError> {
        let mut lengths = MESSAGE_BYTES.into_iter();
        loop {
            let mut merge = std::mem::take(&mut delivery.main);
            let overlay = Overlay::compose(&mut merge, own);
            let mut both = Patch { merge, ..Patch::default() };
            let ended = self.apply(&mut both).await;
            // The remaining keys were not accepted.
            let is_only_status = both.merge.keys().all(|key| key == "status");
            overlay.revert(&mut both.merge);
            delivery.main = both.merge;
            let error = match ended {
                Err(error) if !error.is_transient() => error,
                ended => return ended,
            };
            if delivery.is_done() && is_only_status {
                // The essence is written, so the old records are never read again.
                self.warn(&format!("Old records could not be removed from the status: {error}"));
                return Ok(false);
            }
            if !delivery.main.is_empty() {
                let main = std::mem::take(&mut delivery.main);
                if self.send_each(delivery, &main).await? {
                    return Ok(true);
                }
            } else if let Some((bytes, settling)) = lengths.next().zip(delivery.settling.as_mut()) {
                settling.shorten(bytes, &mut delivery.attempts);
            } else {
                return Err(error);
            }
            own = self.own(delivery).await;
            self.untouch(&mut own);
        }
    }

    /// Sends the part of each author in a separate request, and fails the authors of rejected parts. Returns whether the object is
    /// gone.
    async fn send_each(
        &mut self,
        delivery: &mut Delivery,
        merge: &Map<String, Value>,
    ) -> Result<bool, PatchError> {
        let mut parts = delivery.attempts.split(merge).into_iter();
        while let Some((author, merge)) = parts.next() {
            let mut alone = Patch { merge, ..Patch::default() };
            match self.apply(&mut alone).await {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) if error.is_transient() => {
                    for (_, rest) in std::iter::once((author, alone.merge)).chain(parts) {
                        patch::compose(&mut delivery.first.merge, rest);
                    }
                    return Err(error);
                }
                Err(error) => {
                    self.fail(delivery, author, Raised::rejected(error));
                    delivery.has_failed = true;
                }
            }
        }
        Ok(false)
    }

    /// Fails the attempts whose transformations were rejected. Returns whether any attempt has failed since the records were made.
    fn fail_refused(&mut self, delivery: &mut Delivery) -> bool {
        for it in std::mem::take(&mut self.received.refused) {
            let author = delivery.attempts.author_of(&it.transformation);
            let trace = match &it.error {
                PatchError::Transformation(raised) => raised.trace.clone(),
                PatchError::Api(_) | PatchError::Conflict => None,
            };
            self.fail(delivery, author, Raised { trace, ..Raised::of_host(it.to_string()) });
            delivery.has_failed = true;
        }
        std::mem::take(&mut delivery.has_failed)
    }

    /// Fails the attempt that requested a rejected change. Only logs the rejection if the author is not retried, or if the object
    /// is being deleted, so that nothing blocks the deletion.
    fn fail(&mut self, delivery: &mut Delivery, author: Option<usize>, raised: Raised) {
        let Delivery { attempts, settling, .. } = delivery;
        let attempt = author.and_then(|it| attempts.get(it));
        let is_going = self.object.header().deletion_timestamp.is_some();
        match (attempt, settling) {
            (Some(attempt), Some(settling)) if attempt.before.is_some() && !is_going => {
                let logger = self.logger.with_kind(LoggerKind::Full);
                settling.fail(&attempt, raised, (self.serving, &logger), attempts);
                settling.note(&mut self.memory.for_change().0, self.serving.clock.now());
            }
            (attempt, _) => {
                let who =
                    attempt.map_or_else(|| "a script".to_owned(), |it| it.handler.to_string());
                self.warn(&format!(
                    "The server rejected the changes of {who}, which are dropped: {}",
                    raised.message
                ));
            }
        }
    }

    fn warn(&self, text: &str) {
        self.logger.with_kind(LoggerKind::Full).log(LogLevel::Warning, text);
    }

    /// Returns the records of the change.
    async fn own(&self, delivery: &mut Delivery) -> Map<String, Value> {
        let Delivery { settling, attempts, .. } = delivery;
        // Most cycles record nothing and need no body: those that follow the operator's own patches.
        let Some(settling) = settling else { return Map::new() };
        settling.own(self.serving, self.object.body(), attempts).await
    }

    /// Removes the annotation that was only added to trigger an event.
    fn untouch(&self, own: &mut Map<String, Value>) {
        let storage = &self.serving.settings.persistence.progress_storage;
        progress::touch(storage, self.object.body(), own, None);
    }
}
