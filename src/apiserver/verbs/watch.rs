//! Watches: streams of changes, one JSON line for each.
//!
//! A watcher is a cursor into the history of its resource, and no events are queued for it. So no event is lost between two polls,
//! a slow reader costs no memory, and a reader that falls behind the bounded history gets an `ERROR` with 410.

use std::{
    cell::{Cell, OnceCell},
    collections::VecDeque,
    convert::Infallible,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures::Stream;
use hyper::body::Frame;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    Shared,
    faults::FaultEffect,
    object,
    refusal::Refusal,
    resource::kind::VersionedKind,
    selector::{Selector, field_text},
    store::{
        Store,
        history::{ChangeKind, ObjectChange},
        stored::Stored,
    },
    table::Presenter,
    verbs::read,
    webhooks::conversion,
};

/// Longer than any test or server runs.
const FOREVER: Duration = Duration::from_hours(10_000);

/// The objects that a list or a watch covers.
#[derive(Clone, Debug)]
pub(crate) struct CollectionScope {
    pub(crate) view: VersionedKind,
    /// `None` for all namespaces.
    pub(crate) namespace: Option<String>,
    pub(crate) selector: Selector,
}

impl CollectionScope {
    pub(crate) fn covers(&self, object: &Stored) -> bool {
        let namespace = self.namespace.as_deref();
        namespace.is_none_or(|it| *it == *object.head.namespace)
            && self.selector.matches_labels(&object.head.labels)
            && self.has_fields(object)
    }

    /// Returns whether the field selector matches. Only fields of native kinds require parsing the body.
    fn has_fields(&self, object: &Stored) -> bool {
        let native = self.view.kind.native.map_or(&[][..], |it| it.fields);
        let missing = |own: &str| {
            let texts = self.view.kind.native.map_or(&[][..], |it| it.fields_missing);
            let text = texts.iter().find(|(name, _)| *name == own).map(|(_, text)| *text);
            text.unwrap_or_default().to_owned()
        };
        let body = OnceCell::new();
        self.selector.matches_fields(|field| match field {
            "metadata.name" => object.head.name.to_string(),
            "metadata.namespace" => object.head.namespace.to_string(),
            own => {
                let path = native.iter().find(|(name, _)| *name == own);
                // Fields of custom objects are named by their paths.
                let path = path
                    .map_or_else(|| format!("/{}", own.replace('.', "/")), |it| it.1.to_owned());
                let body = body.get_or_init(|| self.view.tree(object));
                match body.pointer(&path) {
                    Some(value) => field_text(Some(value)),
                    None => missing(own),
                }
            }
        })
    }
}

/// The parameters of a watch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WatchOptions {
    /// Sends changes after this version; without one, first an event for each existing object.
    pub(crate) after: Option<u64>,
    pub(crate) timeout: Option<Duration>,
    /// Interval of bookmarks while there are no changes.
    pub(crate) bookmarks: Option<Duration>,
    /// Sends a bookmark after the existing objects: `sendInitialEvents`.
    pub(crate) initial_end: bool,
}

/// An open watch of one client.
pub(crate) struct ClientWatch {
    shared: Arc<Shared>,
    /// The epoch of the signal at its start: a new one closes all watches.
    epoch: u64,
    scope: CollectionScope,
    /// The qualified name: `plural.group`.
    resource: String,
    /// The error that is sent as the first line, and ends the watch.
    refusal: Option<Refusal>,
    /// The existing objects at the start.
    initial: VecDeque<Arc<Stored>>,
    /// They have the requested version.
    is_initial_converted: bool,
    /// All changes up to this version have been sent.
    revision: u64,
    options: WatchOptions,
    /// The requested path, with its query; faults are selected by it.
    asked: String,
    /// Converts objects to tables.
    pub(crate) presenter: Option<Presenter>,
    /// The first object has not been sent yet.
    first: Cell<bool>,
    /// No event is sent before this time, after a fault that delays events.
    late: Instant,
    deadline: Option<Instant>,
    next_bookmark: Option<Instant>,
    ended: bool,
}

/// The next step of a watcher.
enum WatchStep {
    /// Sends this line, but not before its time.
    Line(Instant, Bytes),
    /// Sends this object, but not before its time.
    Object(Instant, ChangeKind, Arc<Stored>),
    /// Sends this line, then ends.
    Last(Bytes),
    /// Waits for changes or for a deadline.
    Idle,
    /// Sends no more lines, but stays open.
    Silence,
    /// Ends, because the resource is no longer served.
    Gone,
}

/// The reason why an idle watcher wakes up.
enum Wake {
    News,
    Bookmark,
    End,
}

impl ClientWatch {
    pub(crate) fn open(
        shared: Arc<Shared>,
        scope: CollectionScope,
        options: WatchOptions,
        asked: String,
    ) -> Self {
        let epoch = shared.signals.get().epoch;
        let resource = scope.view.resource();
        let (initial, present, refusal) = {
            let store = shared.store();
            let table = store.tables.get(&resource);
            let oldest = table.map_or(0, |it| read::oldest(it, store.compacted));
            let refusal = options.after.filter(|it| *it < oldest);
            let refusal = refusal.map(|asked| Refusal::too_old(asked, oldest));
            let wanted = table.filter(|_| options.after.is_none());
            let listed = wanted.into_iter().flat_map(|it| read::covered(&it.objects, &scope, None));
            (listed.collect(), store.revision, refusal)
        };
        let now = Instant::now();
        Self {
            epoch,
            shared,
            scope,
            resource,
            initial,
            is_initial_converted: false,
            refusal,
            asked,
            presenter: None,
            first: Cell::new(true),
            late: now,
            revision: options.after.unwrap_or(present),
            // A deadline beyond the range of the clock means none.
            deadline: options.timeout.and_then(|it| now.checked_add(it)),
            next_bookmark: options.bookmarks.map(|it| now + it),
            options,
            ended: false,
        }
    }

    /// Returns the lines as frames of a response body.
    pub(crate) fn frames(self) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> + Send {
        futures::stream::unfold(self, |mut watch| async {
            let line = watch.next().await?;
            Some((Ok(Frame::data(line)), watch))
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.ended || self.shared.signals.get().epoch != self.epoch {
                return None;
            }
            if !std::mem::replace(&mut self.is_initial_converted, true)
                && let Err(refusal) = self.convert_initial().await
            {
                self.refusal = Some(refusal);
            }
            match self.step() {
                WatchStep::Line(due, line) => return self.hold(due).await.then_some(line),
                WatchStep::Object(due, kind, object) => {
                    let line = self.converted_line(kind, object).await;
                    return self.hold(due).await.then_some(line);
                }
                WatchStep::Last(line) => {
                    self.ended = true;
                    return Some(line);
                }
                WatchStep::Gone => return None,
                WatchStep::Silence => {
                    self.hold(Instant::now() + FOREVER).await;
                    return None;
                }
                WatchStep::Idle => {}
            }
            match self.wait().await {
                Wake::News => {}
                Wake::End => return None,
                Wake::Bookmark => {
                    self.next_bookmark = self.options.bookmarks.map(|it| Instant::now() + it);
                    return Some(self.bookmark(false));
                }
            }
        }
    }

    /// Converts the existing objects to the requested version, in few requests to the webhook.
    async fn convert_initial(&mut self) -> Result<(), Refusal> {
        let objects = std::mem::take(&mut self.initial).into();
        self.initial = conversion::shown(&self.shared, &self.scope.view, objects).await?.into();
        Ok(())
    }

    /// Returns the line of a change; an error as the last line if the object cannot be converted.
    async fn converted_line(&mut self, kind: ChangeKind, object: Arc<Stored>) -> Bytes {
        match conversion::one(&self.shared, &self.scope.view, object).await {
            Ok(object) => self.line(kind, &object, &self.shared.store()),
            Err(refusal) => {
                self.ended = true;
                error_line(&refusal)
            }
        }
    }

    async fn wait(&mut self) -> Wake {
        let (epoch, revision) = (self.epoch, self.revision);
        tokio::select! {
            // The end comes before changes: a closed stream sends no more lines.
            biased;
            () = until(self.deadline) => Wake::End,
            () = self.shared.signals.wait_for(|it| it.epoch != epoch || it.revision > revision) => {
                Wake::News
            }
            () = until(self.next_bookmark) => Wake::Bookmark,
        }
    }

    /// Takes the next change, and advances the cursor.
    fn step(&mut self) -> WatchStep {
        if let Some(refusal) = self.refusal.take() {
            return WatchStep::Last(error_line(&refusal));
        }
        if let Some(object) = self.initial.pop_front() {
            let line = self.line(ChangeKind::Added, &object, &self.shared.store());
            return WatchStep::Line(Instant::now(), line);
        }
        if std::mem::take(&mut self.options.initial_end) {
            return WatchStep::Line(Instant::now(), self.bookmark(true));
        }
        let store = self.shared.store();
        let served = store.tables.get(&self.resource).map(|it| &it.history);
        let Some(history) = served.or_else(|| store.removed(&self.resource)) else {
            return WatchStep::Gone;
        };
        let forgotten = history.forgotten();
        if self.revision < forgotten {
            return WatchStep::Last(error_line(&Refusal::too_old(self.revision, forgotten)));
        }
        for change in history.after(self.revision) {
            let Some((kind, object)) = shown(&self.scope, change) else { continue };
            self.revision = change.revision;
            match self.shared.faults.lock().of_event(&self.asked) {
                Some(FaultEffect::LostEvent) => continue,
                Some(FaultEffect::LateEvent(by)) => self.late = self.late.max(Instant::now() + by),
                Some(FaultEffect::Stall) => return WatchStep::Silence,
                Some(FaultEffect::Close) => return WatchStep::Gone,
                // The other effects apply to requests.
                Some(
                    FaultEffect::Pass
                    | FaultEffect::Latency(_)
                    | FaultEffect::Refuse { .. }
                    | FaultEffect::TimeoutAfterwards
                    | FaultEffect::StaleList(_)
                    | FaultEffect::HiddenGroup(_),
                )
                | None => {}
            }
            return WatchStep::Object(change.due.max(self.late), kind, object);
        }
        if served.is_none() {
            return WatchStep::Gone;
        }
        self.revision = self.revision.max(store.revision);
        WatchStep::Idle
    }

    fn line(&self, kind: ChangeKind, object: &Stored, store: &Store) -> Bytes {
        let view = &self.scope.view;
        if let Some(presenter) = &self.presenter {
            let first = self.first.replace(false);
            return line(kind.word(), &presenter.event(&view.tree(object), first, &store.now()));
        }
        let mut line = Vec::with_capacity(object.len() + 128);
        line.extend_from_slice(br#"{"type":""#);
        line.extend_from_slice(kind.word().as_bytes());
        line.extend_from_slice(br#"","object":"#);
        view.write(&mut line, object);
        line.extend_from_slice(b"}\n");
        line.into()
    }

    /// Waits until this time. Returns whether the stream is still open.
    async fn hold(&mut self, due: Instant) -> bool {
        // Timers have a resolution of a millisecond: an event that is due already must not wait for the next one.
        if due <= Instant::now() {
            return true;
        }
        let epoch = self.epoch;
        tokio::select! {
            biased;
            () = until(self.deadline) => false,
            () = self.shared.signals.wait_for(|it| it.epoch != epoch) => false,
            () = tokio::time::sleep_until(due) => true,
        }
    }

    fn bookmark(&self, initial_end: bool) -> Bytes {
        let view = &self.scope.view;
        let mut object = json!({
            "kind": view.kind.def.kind,
            "apiVersion": view.api_version,
            "metadata": { "resourceVersion": self.revision.to_string() },
        });
        if initial_end {
            let mark = json!({ "k8s.io/initial-events-end": "true" });
            object::set_meta(&mut object, "annotations", mark);
        }
        if let Some(presenter) = &self.presenter {
            let now = self.shared.store().now();
            object = presenter.event(&object, self.first.replace(false), &now);
        }
        line("BOOKMARK", &object)
    }
}

/// Returns a change as a selector shows it: an object that no longer matches is deleted, one that begins to match is added.
fn shown(scope: &CollectionScope, change: &ObjectChange) -> Option<(ChangeKind, Arc<Stored>)> {
    let object = Arc::clone(&change.object);
    let matches = scope.covers(&object);
    let Some(before) = change.before.as_ref().filter(|it| scope.covers(it)) else {
        return (matches && change.kind != ChangeKind::Deleted)
            .then_some((ChangeKind::Added, object));
    };
    match change.kind {
        ChangeKind::Modified if !matches => {
            let mut last = before.own_tree();
            object::set_meta(&mut last, "resourceVersion", change.revision.to_string());
            Some((ChangeKind::Deleted, Arc::new(Stored::of(&last))))
        }
        kind @ (ChangeKind::Added | ChangeKind::Modified | ChangeKind::Deleted) => {
            Some((kind, object))
        }
    }
}

/// Returns the line of an error.
fn error_line(refusal: &Refusal) -> Bytes {
    line("ERROR", &refusal.to_json())
}

fn line(kind: &str, object: &Value) -> Bytes {
    let mut line = json!({ "type": kind, "object": object }).to_string();
    line.push('\n');
    line.into()
}

/// Waits until a time; `None` means forever.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
