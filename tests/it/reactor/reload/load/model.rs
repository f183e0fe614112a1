//! The conditions that must hold for everything that has happened.

use std::{collections::BTreeMap, time::Duration};

use kopf::ports::Rejection;

use super::{
    operator::{Happened, Marks},
    texts::Version,
    user::{History, Thing},
};

/// The delay between two attempts, unless the handler is edited.
const DELAY: Duration = Duration::from_secs(5);
/// Maximum duration of everything without an intended delay: batches, settling.
const MOMENT: Duration = Duration::from_secs(1);
/// Maximum time from the save of an edit to its effect, with slow start-up handlers and endless saves.
const EFFECT_MAX: Duration = Duration::from_secs(5);

/// A line of a script.
#[derive(Clone, Debug)]
struct Note<'a> {
    at: Duration,
    what: &'a str,
    version: Version,
    verb: &'a str,
    text: &'a str,
}

/// The number of events of each kind.
#[derive(Debug, Default)]
pub(super) struct Summary {
    pub(super) taken: usize,
    pub(super) refused_by_startup: usize,
    pub(super) withdrawn: usize,
    pub(super) changes: usize,
    pub(super) hurried: usize,
    pub(super) reloaded_daemons: usize,
}

/// All events, in the order of time.
pub(super) struct Model<'a> {
    history: &'a History,
    taken: Vec<(Duration, Marks)>,
    notes: BTreeMap<&'a str, Vec<Note<'a>>>,
    summary: Summary,
}

impl<'a> Note<'a> {
    fn of(at: Duration, text: &'a str) -> Self {
        let mut words = text.split(' ');
        let mut word = || words.next().unwrap_or_else(|| panic!("{text}"));
        let (what, version, verb) = (word(), word(), word());
        let number = |it: &str| it.parse().unwrap_or_else(|_| panic!("{text}"));
        let (code, param) = version.split_once('.').unwrap_or_else(|| panic!("{text}"));
        Note { at, what, version: (number(code), number(param)), verb, text }
    }

    /// Returns a number in it; `None` if there is none.
    fn field(&self, name: &str) -> Option<u64> {
        let mut words = self.text.split(' ');
        words.find_map(|it| it.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
    }

    /// Returns whether it is from a handler of changes.
    fn is_change(&self) -> bool {
        !matches!(self.what, "stay" | "tick" | "seen")
    }
}

impl<'a> Model<'a> {
    /// Reads the record.
    pub(super) fn new(history: &'a History, entries: &'a [(Duration, Happened)]) -> Self {
        let (mut taken, mut notes) = (Vec::new(), BTreeMap::<_, Vec<_>>::new());
        for (at, happened) in entries {
            match happened {
                Happened::Noted { name, text } => {
                    notes.entry(name.as_str()).or_default().push(Note::of(*at, text));
                }
                Happened::Taken(marks) => taken.push((*at, *marks)),
                Happened::Proposed(_) | Happened::Refused(..) => {}
            }
        }
        Model { history, taken, notes, summary: Summary::default() }
    }

    /// Checks everything; `end` is the time at which a stop of the operator was requested.
    pub(super) fn check(mut self, entries: &[(Duration, Happened)], end: Duration) -> Summary {
        self.check_generations(entries);
        for thing in &self.history.things {
            let notes = self.notes.get(thing.name.as_str()).cloned().unwrap_or_default();
            self.check_versions(thing, &notes);
            self.check_attempts(thing, &notes);
            self.check_causes(thing, &notes);
            Self::check_promptness(thing, &notes);
            self.check_daemon(thing, &notes, end);
            self.check_timer(thing, &notes);
            self.check_indexes(thing, &notes);
        }
        self.summary
    }

    /// Returns the generations that may be live at a time: both at the time of a takeover.
    fn in_force(&self, at: Duration) -> impl Iterator<Item = Marks> {
        let before = self.taken.iter().rfind(|it| it.0 < at);
        let now = self.taken.iter().filter(move |it| it.0 == at);
        before.into_iter().chain(now).map(|it| it.1)
    }

    fn version(&self, language: usize, marks: Marks, what: &str) -> Option<Version> {
        let draft = self.history.drafts.get(&(language, marks[language]));
        draft.expect("it was saved").versions.get(what).copied()
    }

    /// Returns the version that is live from a time on, until the next takeover.
    fn version_after(&self, language: usize, at: Duration, what: &str) -> Option<Version> {
        let (_, marks) = self.taken.iter().rfind(|it| it.0 <= at).expect("the first one");
        self.version(language, *marks, what)
    }

    /// Checks that the live generation was saved shortly before, and has no mistakes.
    fn check_generations(&mut self, entries: &[(Duration, Happened)]) {
        let contents = &self.history.contents;
        let was_saved = |at: Duration, marks: Marks, is_good: bool| {
            contents.iter().enumerate().any(|(index, it)| {
                let until = contents.get(index + 1).map_or(Duration::MAX, |it| it.at);
                let is_fit = if is_good { it.is_good } else { it.loads };
                it.marks == marks && is_fit && it.at <= at && until.saturating_add(EFFECT_MAX) >= at
            })
        };
        for (at, happened) in entries {
            match happened {
                Happened::Noted { .. } => {}
                Happened::Proposed(marks) => {
                    assert!(was_saved(*at, *marks, false), "{at:?} {marks:?}");
                }
                Happened::Taken(marks) => {
                    assert!(was_saved(*at, *marks, true), "{at:?} {marks:?}");
                    self.summary.taken += 1;
                }
                Happened::Refused(marks, Rejection::Startup(_)) => {
                    assert!(!was_saved(*at, *marks, true), "{at:?} {marks:?}");
                    self.summary.refused_by_startup += 1;
                }
                Happened::Refused(
                    _,
                    Rejection::Selector(problem) | Rejection::Webhooks(problem),
                ) => {
                    panic!("{problem}");
                }
                Happened::Refused(_, Rejection::Withdrawn) => self.summary.withdrawn += 1,
                Happened::Refused(_, Rejection::Ending) => panic!("it does not end"),
            }
        }
    }

    /// Checks that every call belongs to the generation that is live when it begins.
    fn check_versions(&self, thing: &Thing, notes: &[Note<'_>]) {
        for note in notes.iter().filter(|it| it.verb != "ends") {
            let mut known = self.in_force(note.at);
            let is_known =
                known.any(|it| self.version(thing.language, it, note.what) == Some(note.version));
            let now: Vec<_> = self.in_force(note.at).collect();
            assert!(is_known, "{}: {note:?} while {now:?} serves", thing.name);
        }
    }

    /// Checks that attempts are counted on, memos are kept, and no handler is called too early, unless it was edited.
    fn check_attempts(&mut self, thing: &Thing, notes: &[Note<'_>]) {
        let mut count = 0;
        for note in notes.iter().filter(|it| it.is_change() && it.verb != "ends") {
            count += 1;
            assert_eq!(note.field("count"), Some(count), "{}: {note:?}: the memo", thing.name);
        }
        for what in ["made", "extra", "changed", "gone"] {
            let (mut retry, mut before) = (0, None::<&Note<'_>>);
            for note in notes.iter().filter(|it| it.what == what) {
                let told = || format!("{}: {note:?} after {before:?}", thing.name);
                assert_eq!(note.field("retry"), Some(retry), "{}", told());
                let is_open = before.is_some_and(|it| it.verb == "begins");
                assert_eq!(note.verb == "ends", is_open, "{}", told());
                let is_last = retry >= thing.fails;
                assert_eq!(note.verb == "fails", !is_last, "{}", told());
                if let Some(before) = before.filter(|it| it.verb == "fails") {
                    // One at a time: another one may be running when it is due.
                    let others = notes.iter().filter(|it| it.is_change() && it.what != what);
                    let free = others.map(|it| it.at).filter(|it| *it <= note.at).max();
                    self.check_delay((thing, free.unwrap_or_default()), before, note);
                }
                retry = if note.verb == "ends" {
                    0
                } else if is_last {
                    retry
                } else {
                    retry + 1
                };
                before = Some(note);
            }
            assert!(before.is_none_or(|it| it.verb != "begins"), "{}: {before:?}", thing.name);
        }
    }

    /// Checks that the next attempt comes after the delay, or with an edit of the handler.
    fn check_delay(
        &mut self,
        (thing, free): (&Thing, Duration),
        failed: &Note<'_>,
        next: &Note<'_>,
    ) {
        let edited = self.taken.iter().find(|(at, marks)| {
            let version = self.version(thing.language, *marks, next.what);
            *at >= failed.at && *at < failed.at + DELAY && version != Some(failed.version)
        });
        let due = edited.map_or(failed.at + DELAY, |it| it.0).max(free);
        let waited = next.at.abs_diff(due);
        assert!(waited < MOMENT, "{}: {next:?} after {failed:?}, due at {due:?}", thing.name);
        self.summary.hurried += usize::from(edited.is_some());
    }

    /// Checks that each cause is handled once, and none is missed.
    fn check_causes(&mut self, thing: &Thing, notes: &[Note<'_>]) {
        let ended = |what: &str| {
            let is_end = |it: &&Note<'_>| it.what == what && it.verb == "ends";
            notes.iter().filter(is_end).cloned().collect::<Vec<_>>()
        };
        let (made, gone) = (ended("made"), ended("gone"));
        let name = &thing.name;
        assert!(made.len() <= 1 && ended("extra").len() <= 1, "{name}: {notes:?}");
        assert_eq!(gone.len(), usize::from(thing.deleted.is_some()), "{name}: {notes:?}");
        if thing.deleted.is_none() {
            assert_eq!(made.len(), 1, "{name}: {notes:?}");
        }
        // Each change begins where the previous one has ended.
        let mut number = made.first().and_then(|it| it.field("new"));
        for change in ended("changed") {
            let (old, new) = (change.field("old"), change.field("new"));
            assert_eq!(old, number, "{name}: {change:?}");
            assert!(new > old, "{name}: {change:?}");
            number = new;
            self.summary.changes += 1;
        }
        if thing.deleted.is_none() {
            let last = thing.edits.last().map(|it| it.1);
            assert_eq!(number, last, "{name}: the last change was handled: {notes:?}");
        }
        if let Some(gone) = gone.last() {
            let later = notes.iter().find(|it| it.at > gone.at && it.what != "stay");
            assert!(later.is_none(), "{name}: {later:?} after {gone:?}");
        }
    }

    /// Checks that a generation is always live: an event of an object with nothing to do is handled at once.
    fn check_promptness(thing: &Thing, notes: &[Note<'_>]) {
        let changes = thing.edits.iter().skip(1).map(|it| (it.0, "changed"));
        let all = [(thing.created, "made")].into_iter().chain(changes);
        for (at, what) in all.chain(thing.deleted.map(|it| (it, "gone"))) {
            let before = notes.iter().filter(|it| it.is_change()).rfind(|it| it.at <= at);
            let is_idle =
                before.map_or(what == "made", |it| it.verb == "ends" && it.at + MOMENT < at);
            let is_left = thing.deleted.is_some_and(|it| it > at && it < at + MOMENT);
            if is_idle && !is_left {
                let next = notes.iter().find(|it| it.what == what && it.at >= at);
                let is_prompt = next.is_some_and(|it| it.at <= at + MOMENT);
                assert!(is_prompt, "{}: {what} at {at:?} is met by {next:?}", thing.name);
            }
        }
    }

    /// Checks that there are never two daemons at once; none ends without a reason, and none outlives its edit.
    fn check_daemon(&mut self, thing: &Thing, notes: &[Note<'_>], end: Duration) {
        let mut running: Option<&Note<'_>> = None;
        for note in notes.iter().filter(|it| it.what == "stay") {
            let told = || format!("{}: {note:?} after {running:?}", thing.name);
            if note.verb == "begins" {
                assert!(running.is_none(), "{}", told());
                running = Some(note);
                continue;
            }
            assert_eq!(running.map(|it| it.version), Some(note.version), "{}", told());
            let version = self.version_after(thing.language, note.at, "stay");
            let is_edited = note.text.contains("SCRIPT_RELOADED");
            self.summary.reloaded_daemons += usize::from(is_edited);
            let has_reason = (is_edited && version != Some(note.version))
                || (note.text.contains("RESOURCE_DELETED") && thing.deleted.is_some())
                || (note.text.contains("OPERATOR_EXITING") && note.at >= end);
            assert!(has_reason, "{} while {version:?} serves", told());
            running = None;
        }
        assert!(running.is_none(), "{}: {running:?}", thing.name);
        let is_running_at_the_end = notes.iter().any(|it| it.text.contains("OPERATOR_EXITING"));
        let version = self.version_after(thing.language, end, "stay");
        let is_wanted = thing.stays && thing.deleted.is_none() && version.is_some();
        assert_eq!(is_running_at_the_end, is_wanted, "{}: {notes:?}", thing.name);
    }

    /// Checks that a timer ticks as often as it should.
    fn check_timer(&self, thing: &Thing, notes: &[Note<'_>]) {
        let ticks: Vec<_> = notes.iter().filter(|it| it.what == "tick").collect();
        for pair in ticks.windows(2) {
            let [before, after] = pair else { continue };
            let pause = after.at.saturating_sub(before.at);
            let is_same = before.version == after.version;
            let was_kept =
                self.taken.iter().filter(|it| it.0 >= before.at && it.0 <= after.at).all(
                    |(_, marks)| {
                        self.version(thing.language, *marks, "tick") == Some(after.version)
                    },
                );
            if is_same && was_kept {
                assert_eq!(pause.as_secs(), 20, "{}: {pair:?}", thing.name);
            }
        }
    }

    /// Checks that an index contains all existing objects, and no others.
    fn check_indexes(&self, thing: &Thing, notes: &[Note<'_>]) {
        for note in notes.iter().filter(|it| it.what == "seen") {
            let Some(size) = note.field("index") else { continue };
            let others = || self.history.things.iter().filter(|it| it.language == thing.language);
            let is_gone = |it: &&Thing| {
                let notes = self.notes.get(it.name.as_str()).into_iter().flatten();
                let mut gone =
                    notes.filter(|it| it.what == "gone" && it.verb == "ends").map(|it| it.at);
                gone.next_back().is_some_and(|it| it + MOMENT < note.at)
            };
            let at_least = others()
                .filter(|it| it.created < note.at && it.deleted.is_none_or(|it| it > note.at));
            let at_most = others().filter(|it| it.created <= note.at && !is_gone(it));
            let (at_least, at_most) = (at_least.count() as u64, at_most.count() as u64);
            let is_right = at_least <= size && size <= at_most;
            assert!(is_right, "{}: {note:?}, not {at_least} to {at_most}", thing.name);
        }
    }
}
