//! Collects file system events until they are requested.
//!
//! `notify` calls from its own thread; this module collects the paths, and wakes the waiting task. Paths that do not lead to a
//! script are ignored, so that a busy directory does not delay a reload.

use std::{
    collections::BTreeMap,
    mem,
    path::{Path, PathBuf},
    sync::Arc,
};

use notify::{
    Event, EventKind,
    event::{AccessKind, AccessMode, ModifyKind},
};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{settling::FsEvent, watch_targets::WatchTargets};

/// Maximum number of paths that are stored separately: further ones count as an unnamed path.
const EVENTS_MAX: usize = 256;

/// Collects events. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct FsEvents(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    pending: Mutex<Pending>,
    notify: Notify,
}

#[derive(Debug, Default)]
struct Pending {
    targets: WatchTargets,
    events: BTreeMap<PathBuf, FsEvent>,
}

impl FsEvents {
    /// Replaces the paths whose events are collected.
    pub(super) fn set_targets(&self, targets: WatchTargets) {
        self.0.pending.lock().targets = targets;
    }

    /// Returns the current targets.
    pub(super) fn targets(&self) -> WatchTargets {
        self.0.pending.lock().targets.clone()
    }

    /// Records an event of the system.
    pub(super) fn add(&self, event: notify::Result<Event>) {
        let mut pending = self.0.pending.lock();
        let before = pending.events.len();
        match event {
            Ok(event) => pending.take(&event),
            // Events were lost: anything may have changed.
            Err(_) => pending.note(Path::new(""), FsEvent::Other),
        }
        let is_new = pending.events.len() > before || before > 0;
        drop(pending);
        if is_new {
            self.0.notify.notify_one();
        }
    }

    /// Waits for an event.
    pub(super) async fn wait(&self) {
        self.0.notify.notified().await;
    }

    /// Returns the events since the last call.
    pub(super) fn take(&self) -> BTreeMap<PathBuf, FsEvent> {
        mem::take(&mut self.0.pending.lock().events)
    }
}

impl Pending {
    fn take(&mut self, event: &Event) {
        let Some(kind) = kind_of(event.kind) else { return };
        if event.need_rescan() || event.paths.is_empty() {
            self.note(Path::new(""), FsEvent::Other);
        }
        for path in &event.paths {
            if self.targets.concern(path) {
                self.note(path, kind);
            }
        }
    }

    fn note(&mut self, path: &Path, kind: FsEvent) {
        if self.events.len() < EVENTS_MAX || self.events.contains_key(path) {
            self.events.insert(path.into(), kind);
        } else {
            self.events.insert(PathBuf::new(), FsEvent::Other);
        }
    }
}

/// Returns the kind of an event. Reads by this process are events too, and must not trigger the next read.
fn kind_of(kind: EventKind) -> Option<FsEvent> {
    match kind {
        EventKind::Access(kind) => {
            (kind == AccessKind::Close(AccessMode::Write)).then_some(FsEvent::Other)
        }
        EventKind::Modify(ModifyKind::Data(_)) => Some(FsEvent::Written),
        EventKind::Modify(
            ModifyKind::Any | ModifyKind::Metadata(_) | ModifyKind::Name(_) | ModifyKind::Other,
        )
        | EventKind::Any
        | EventKind::Create(_)
        | EventKind::Remove(_)
        | EventKind::Other => Some(FsEvent::Other),
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use notify::{
        Event, EventKind,
        event::{AccessKind, AccessMode, CreateKind, DataChange, Flag, ModifyKind},
    };

    use super::{EVENTS_MAX, FsEvent, FsEvents};
    use crate::sources::watch_targets::{PathKind, WatchTargets};

    fn fs_events() -> FsEvents {
        let fs_events = FsEvents::default();
        let inspect = |it: &Path| {
            if it.extension().is_some() { PathKind::File } else { PathKind::Directory }
        };
        fs_events.set_targets(WatchTargets::resolving([Path::new("/scripts")], &inspect));
        fs_events
    }

    fn event(kind: EventKind, path: &str) -> Event {
        Event::new(kind).add_path(path.into())
    }

    const CLOSED: EventKind = EventKind::Access(AccessKind::Close(AccessMode::Write));
    const OPENED: EventKind = EventKind::Access(AccessKind::Open(AccessMode::Any));
    const WRITTEN: EventKind = EventKind::Modify(ModifyKind::Data(DataChange::Any));

    #[test]
    fn our_own_reads_are_ignored() {
        let fs_events = fs_events();
        fs_events.add(Ok(event(OPENED, "/scripts/a.lua")));
        assert!(fs_events.take().is_empty());
    }

    #[test]
    fn the_last_event_of_a_file_counts() {
        let fs_events = fs_events();
        fs_events.add(Ok(event(WRITTEN, "/scripts/a.lua")));
        assert_eq!(fs_events.take()[Path::new("/scripts/a.lua")], FsEvent::Written);
        fs_events.add(Ok(event(WRITTEN, "/scripts/a.lua")));
        fs_events.add(Ok(event(CLOSED, "/scripts/a.lua")));
        assert_eq!(fs_events.take()[Path::new("/scripts/a.lua")], FsEvent::Other);
    }

    #[test]
    fn paths_that_lead_to_no_script_are_ignored() {
        let fs_events = fs_events();
        fs_events.add(Ok(event(WRITTEN, "/scripts/data.json")));
        assert!(fs_events.take().is_empty());
    }

    #[test]
    fn lost_events_count_as_an_event() {
        let fs_events = fs_events();
        fs_events.add(Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)));
        assert_eq!(fs_events.take().len(), 1);
        fs_events.add(Err(notify::Error::generic("overflow")));
        assert_eq!(fs_events.take().len(), 1);
    }

    #[test]
    fn the_number_of_kept_paths_is_bounded() {
        let fs_events = fs_events();
        for number in 0..2 * EVENTS_MAX {
            fs_events.add(Ok(event(
                EventKind::Create(CreateKind::File),
                &format!("/scripts/{number}.lua"),
            )));
        }
        let events = fs_events.take();
        assert_eq!(events.len(), EVENTS_MAX + 1);
        assert!(events.contains_key(&PathBuf::new()));
    }
}
