//! The user of the test: creates, changes and deletes objects, and edits the scripts, correctly and wrongly, fast and slowly.

use std::{collections::BTreeMap, time::Duration};

use fastrand::Rng;
use serde_json::json;
use tokio::time::sleep;

use super::{
    operator::{Marks, Watching},
    texts::{Draft, Flaw, LANGUAGES},
};
use crate::reactor::reload::edited::EXAMPLES;

/// The size of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) edits: u64,
    pub(super) objects: usize,
}

/// An object, and what was done to it.
#[derive(Clone, Debug)]
pub(super) struct Thing {
    pub(super) name: String,
    pub(super) language: usize,
    pub(super) created: Duration,
    /// The times of its numbers.
    pub(super) edits: Vec<(Duration, u64)>,
    pub(super) deleted: Option<Duration>,
    /// Whether it has a daemon and a timer.
    pub(super) stays: bool,
    /// The number of attempts of each cause that fail.
    pub(super) fails: u64,
    /// Whether it has two handlers of its creation, and is never changed: which of them sees a change does not matter here.
    extra: bool,
    is_probe: bool,
}

/// The content of the files, from some time on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Content {
    pub(super) at: Duration,
    pub(super) marks: Marks,
    /// Whether both scripts can be loaded.
    pub(super) loads: bool,
    /// Whether, in addition, their start-up handlers do not fail permanently.
    pub(super) is_good: bool,
}

/// The actions of the user.
#[derive(Default)]
pub(super) struct History {
    pub(super) things: Vec<Thing>,
    pub(super) contents: Vec<Content>,
    /// The scripts by language and edit.
    pub(super) drafts: BTreeMap<(usize, u64), Draft>,
}

/// A user who edits.
pub(super) struct User<'a> {
    operator: &'a Watching,
    random: Rng,
    size: Size,
    history: History,
    edit: u64,
    /// The last scripts without a mistake.
    good: [Draft; 2],
    /// The scripts as saved.
    drafts: [Draft; 2],
    texts: [String; 2],
}

impl<'a> User<'a> {
    /// Creates a user who has saved the first scripts.
    pub(super) fn new(operator: &'a Watching, random: Rng, size: Size, drafts: [Draft; 2]) -> Self {
        let mut user = User {
            operator,
            random,
            size,
            history: History::default(),
            edit: 0,
            texts: drafts.clone().map(|it| it.text(&mut Rng::with_seed(0))),
            good: drafts.clone(),
            drafts,
        };
        user.note_drafts();
        user
    }

    /// Acts to the end; returns the history.
    pub(super) async fn play(mut self) -> History {
        for language in 0..LANGUAGES.len() {
            self.create(language, true);
        }
        sleep(Duration::from_secs(1)).await;
        while self.edit < self.size.edits {
            for _ in 0..self.random.u32(0..7) {
                self.act();
            }
            self.change_scripts().await;
            match self.random.u32(0..100) {
                0..20 => self.pause(0..80).await,
                20..88 => self.pause(80..700).await,
                _ => self.settle().await,
            }
        }
        while self.history.things.len() < self.size.objects {
            self.act();
        }
        self.save([0, 1].map(|it| self.good[it].clone()));
        self.settle().await;
        sleep(Duration::from_mins(1)).await;
        for index in 0..LANGUAGES.len() {
            self.change(index);
        }
        sleep(Duration::from_mins(1)).await;
        self.history
    }

    async fn pause(&mut self, milliseconds: std::ops::Range<u64>) {
        let milliseconds = self.random.u64(milliseconds);
        sleep(Duration::from_millis(milliseconds)).await;
    }

    /// Acts on an object.
    fn act(&mut self) {
        if self.history.things.len() < self.size.objects && self.random.bool() {
            let language = self.random.usize(0..LANGUAGES.len());
            self.create(language, false);
            return;
        }
        let index = self.random.usize(0..self.history.things.len());
        let thing = &self.history.things[index];
        // Before its first cycle, an object has no finalizer and can go unnoticed.
        let is_fresh = thing.created == self.operator.record.now();
        if thing.deleted.is_some() || is_fresh {
        } else if self.random.u32(0..5) == 0 && !thing.is_probe {
            self.delete(index);
        } else if !thing.extra {
            self.change(index);
        }
    }

    fn create(&mut self, language: usize, is_probe: bool) {
        let number = self.history.things.len();
        let name = format!("o{number}");
        // In Rhai, each of these takes a thread.
        let others = self.history.things.iter();
        let staying =
            others.filter(|it| it.stays && it.deleted.is_none() && it.language == language);
        let stays = staying.count() < 10 && self.random.u32(0..10) == 0;
        let extra = !is_probe && self.random.u32(0..10) == 0;
        let fails = if is_probe { 0 } else { self.random.u64(0..6).saturating_sub(3) };
        let slow = if self.random.u32(0..4) == 0 { 2 } else { 0 };
        let yes = |it: bool| if it { "yes" } else { "no" };
        let body = json!({
            "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
            "metadata": {
                "namespace": "ns1", "name": name,
                "labels": {
                    "by": LANGUAGES[language], "stays": yes(stays), "extra": yes(extra), "probe": yes(is_probe),
                },
            },
            "spec": { "number": 0, "fails": fails, "slow": slow },
        });
        self.operator.env.server.create(EXAMPLES, body).expect("it is new");
        let created = self.operator.record.now();
        self.history.things.push(Thing {
            name,
            language,
            created,
            edits: vec![(created, 0)],
            deleted: None,
            stays,
            fails,
            extra,
            is_probe,
        });
    }

    fn change(&mut self, index: usize) {
        let thing = &mut self.history.things[index];
        let number = thing.edits.len() as u64;
        let spec = json!({ "spec": { "number": number } });
        self.operator.env.server.merge(EXAMPLES, "ns1", &thing.name, spec).expect("it is there");
        thing.edits.push((self.operator.record.now(), number));
    }

    fn delete(&mut self, index: usize) {
        let thing = &mut self.history.things[index];
        self.operator.env.server.delete(EXAMPLES, "ns1", &thing.name).expect("it is there");
        thing.deleted = Some(self.operator.record.now());
    }

    /// Makes one edit, with all steps of its save.
    async fn change_scripts(&mut self) {
        self.edit += 1;
        let is_bad = |it: &Draft| it.flaw.is_some();
        let bad = self.drafts.iter().position(is_bad).filter(|_| self.random.u32(0..10) < 7);
        let language = bad.unwrap_or_else(|| self.random.usize(0..LANGUAGES.len()));
        if bad.is_some() && self.random.bool() {
            // The mistake is undone.
            return self.save_one(self.good[language].clone(), language);
        }
        let draft = self.good[language].edited(self.edit, &mut self.random);
        match draft.flaw {
            Some(Flaw::Empty) => {
                // A file that is empty for a moment: after more time, it would be taken as intended.
                sleep(Duration::from_secs(1)).await;
                self.save_one(draft, language);
                self.pause(1..300).await;
                self.save_one(self.good[language].clone(), language);
            }
            Some(Flaw::HalfWritten) if self.random.bool() => {
                self.save_one(draft.clone(), language);
                self.pause(1..60).await;
                self.save_one(Draft { flaw: None, ..draft }, language);
            }
            _ => self.save_one(draft, language),
        }
    }

    fn save_one(&mut self, draft: Draft, language: usize) {
        let mut drafts = self.drafts.clone();
        drafts[language] = draft;
        self.save(drafts);
    }

    fn save(&mut self, drafts: [Draft; 2]) {
        for (language, draft) in drafts.iter().enumerate() {
            self.texts[language] = draft.text(&mut self.random);
            if draft.flaw.is_none() {
                self.good[language] = draft.clone();
            }
        }
        self.drafts = drafts;
        self.operator.save(&self.texts);
        self.note_drafts();
    }

    fn note_drafts(&mut self) {
        for (language, draft) in self.drafts.iter().enumerate() {
            // A half-written script is completed under the same number.
            self.history.drafts.insert((language, draft.edit), draft.clone());
        }
        self.history.contents.push(Content {
            at: self.operator.record.now(),
            marks: [0, 1].map(|it| self.drafts[it].edit),
            loads: self.drafts.iter().all(Draft::loads),
            is_good: self.drafts.iter().all(|it| it.flaw.is_none()),
        });
    }

    /// Waits until the edit is accepted or rejected, and checks which generation is live.
    async fn settle(&mut self) {
        sleep(Duration::from_secs(8)).await;
        let content = *self.history.contents.last().expect("there is one");
        let (present, number) = self.operator.record.present();
        let told = self.operator.told();
        assert!(told.starts_with(&format!("generation {number} since ")), "{told}");
        assert_eq!(!told.contains("rejected"), content.is_good, "{content:?}: {told}");
        if content.is_good {
            assert_eq!(present, content.marks, "the last good edit runs: {told}");
        }
    }
}
