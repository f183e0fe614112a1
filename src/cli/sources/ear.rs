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

use super::{settling::Sound, spots::Spots};

/// Maximum number of paths that are kept apart: further ones count as an unnamed path.
const SOUNDS_MAX: usize = 256;

/// Collects events. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Ear(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    heard: Mutex<Heard>,
    bell: Notify,
}

#[derive(Debug, Default)]
struct Heard {
    spots: Spots,
    sounds: BTreeMap<PathBuf, Sound>,
}

impl Ear {
    /// Replaces the paths whose events are collected.
    pub(super) fn listen_for(&self, spots: Spots) {
        self.0.heard.lock().spots = spots;
    }

    /// Returns the current targets.
    pub(super) fn spots(&self) -> Spots {
        self.0.heard.lock().spots.clone()
    }

    /// Takes an event from the system.
    pub(super) fn hear(&self, event: notify::Result<Event>) {
        let mut heard = self.0.heard.lock();
        let before = heard.sounds.len();
        match event {
            Ok(event) => heard.take(&event),
            // Events were lost: anything may have changed.
            Err(_) => heard.note(Path::new(""), Sound::Other),
        }
        let is_news = heard.sounds.len() > before || before > 0;
        drop(heard);
        if is_news {
            self.0.bell.notify_one();
        }
    }

    /// Waits for an event.
    pub(super) async fn ring(&self) {
        self.0.bell.notified().await;
    }

    /// Returns the events since the last call.
    pub(super) fn take(&self) -> BTreeMap<PathBuf, Sound> {
        mem::take(&mut self.0.heard.lock().sounds)
    }
}

impl Heard {
    fn take(&mut self, event: &Event) {
        let Some(sound) = sound(event.kind) else { return };
        if event.need_rescan() || event.paths.is_empty() {
            self.note(Path::new(""), Sound::Other);
        }
        for path in &event.paths {
            if self.spots.concern(path) {
                self.note(path, sound);
            }
        }
    }

    fn note(&mut self, path: &Path, sound: Sound) {
        if self.sounds.len() < SOUNDS_MAX || self.sounds.contains_key(path) {
            self.sounds.insert(path.into(), sound);
        } else {
            self.sounds.insert(PathBuf::new(), Sound::Other);
        }
    }
}

/// Returns the kind of an event. Our own reads are events too, and must not trigger the next read.
fn sound(kind: EventKind) -> Option<Sound> {
    match kind {
        EventKind::Access(kind) => {
            (kind == AccessKind::Close(AccessMode::Write)).then_some(Sound::Other)
        }
        EventKind::Modify(ModifyKind::Data(_)) => Some(Sound::Written),
        EventKind::Modify(
            ModifyKind::Any | ModifyKind::Metadata(_) | ModifyKind::Name(_) | ModifyKind::Other,
        )
        | EventKind::Any
        | EventKind::Create(_)
        | EventKind::Remove(_)
        | EventKind::Other => Some(Sound::Other),
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use notify::{
        Event, EventKind,
        event::{AccessKind, AccessMode, CreateKind, DataChange, Flag, ModifyKind},
    };

    use super::{Ear, SOUNDS_MAX, Sound};
    use crate::cli::sources::spots::{Spots, Thing};

    fn ear() -> Ear {
        let ear = Ear::default();
        let look = |it: &Path| {
            if it.extension().is_some() { Thing::File } else { Thing::Directory }
        };
        ear.listen_for(Spots::on_the_way([Path::new("/scripts")], &look));
        ear
    }

    fn event(kind: EventKind, path: &str) -> Event {
        Event::new(kind).add_path(path.into())
    }

    const CLOSED: EventKind = EventKind::Access(AccessKind::Close(AccessMode::Write));
    const OPENED: EventKind = EventKind::Access(AccessKind::Open(AccessMode::Any));
    const WRITTEN: EventKind = EventKind::Modify(ModifyKind::Data(DataChange::Any));

    #[test]
    fn our_own_reading_is_not_heard() {
        let ear = ear();
        ear.hear(Ok(event(OPENED, "/scripts/a.lua")));
        assert!(ear.take().is_empty());
    }

    #[test]
    fn the_last_sound_of_a_file_counts() {
        let ear = ear();
        ear.hear(Ok(event(WRITTEN, "/scripts/a.lua")));
        assert_eq!(ear.take()[Path::new("/scripts/a.lua")], Sound::Written);
        ear.hear(Ok(event(WRITTEN, "/scripts/a.lua")));
        ear.hear(Ok(event(CLOSED, "/scripts/a.lua")));
        assert_eq!(ear.take()[Path::new("/scripts/a.lua")], Sound::Other);
    }

    #[test]
    fn what_leads_to_no_script_is_not_heard() {
        let ear = ear();
        ear.hear(Ok(event(WRITTEN, "/scripts/data.json")));
        assert!(ear.take().is_empty());
    }

    #[test]
    fn lost_events_are_a_sound() {
        let ear = ear();
        ear.hear(Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)));
        assert_eq!(ear.take().len(), 1);
        ear.hear(Err(notify::Error::generic("overflow")));
        assert_eq!(ear.take().len(), 1);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let ear = ear();
        for number in 0..2 * SOUNDS_MAX {
            ear.hear(Ok(event(
                EventKind::Create(CreateKind::File),
                &format!("/scripts/{number}.lua"),
            )));
        }
        let sounds = ear.take();
        assert_eq!(sounds.len(), SOUNDS_MAX + 1);
        assert!(sounds.contains_key(&PathBuf::new()));
    }
}
