//! All sources of scripts together, and their changes.
//!
//! [`Sources::changed`] waits for an event, lets the files settle, and reads the whole set. A set that differs from the last
//! attempted one is used only if a second read shortly afterwards finds the same: so no half-written script is loaded, whatever its
//! source.

use std::{future::pending, time::Duration};

use tokio::{
    task,
    time::{Instant, sleep, sleep_until},
};

use super::{
    Fingerprint, Maps, ScriptFiles,
    attempt::{LoadAttempt, ModulePaths},
    error::Error,
    problem::{Notice, SourceProblem},
    settling::Settling,
};
use crate::ports::until;
use crate::scripting::Source;

/// The time between two reads that must be equal.
const RECHECK: Duration = Duration::from_millis(8);

/// The same while a file is missing or empty.
const RECHECK_HALFWAY: Duration = Duration::from_millis(25);

/// The sources of all scripts.
pub struct Sources {
    files: Option<ScriptFiles>,
    maps: Option<Maps>,
    /// The set of the current generation.
    running: LoadAttempt,
    /// The set of the last attempt, even if it was rejected.
    tried: LoadAttempt,
    /// When to check without an event.
    next_check: Option<Instant>,
    /// An event has not been returned by [`Sources::changed`] yet.
    is_unsettled: bool,
}

/// The whole set at one moment.
#[derive(Debug)]
pub struct Snapshot {
    /// The scripts in their order, or why there is no complete set.
    pub scripts: Result<Vec<Source>, SourceProblem>,
    /// Fingerprints of the set, modules included.
    pub fingerprint: Fingerprint,
    /// New messages for the user about watching.
    pub notes: Vec<Notice>,
    /// When the first of the changes was noticed.
    pub since: Instant,
}

impl Sources {
    /// Combines files and maps; files come first. They are watched from the first [`Sources::changed`] on.
    pub fn new(files: Option<ScriptFiles>, maps: Option<Maps>) -> Self {
        let next_check = Some(Instant::now());
        let (running, tried) = (LoadAttempt::default(), LoadAttempt::default());
        Sources { files, maps, running, tried, next_check, is_unsettled: false }
    }

    /// Records that this set was attempted: it is not new any more.
    pub fn tried(&mut self, mut attempt: LoadAttempt) {
        for (script, modules) in &mut attempt.modules {
            // An unchanged script is not loaded again: its modules are those of the current generation.
            if let Some(before) = self.running.modules.get(script)
                && modules.taken().is_empty()
                && attempt.scripts.agrees_on(script, &self.running.scripts)
            {
                *modules = before.clone();
            }
        }
        self.tried = attempt;
    }

    /// Records that the last attempted set is the current one.
    pub fn took(&mut self) {
        self.running = self.tried.clone();
    }

    /// Discards the last attempt, and checks again at once.
    pub fn forget(&mut self) {
        self.tried = self.running.clone();
        self.next_check = Some(Instant::now());
    }

    /// Returns whether this set differs from the last attempt.
    pub fn is_new(&self, snapshot: &Snapshot) -> bool {
        snapshot.fingerprint != self.tried.fingerprint()
    }

    /// Returns whether this set is the current one.
    pub fn is_running(&self, snapshot: &Snapshot) -> bool {
        snapshot.fingerprint == self.running.fingerprint()
    }

    /// Returns the fingerprints of the current set.
    pub fn running(&self) -> Fingerprint {
        self.running.fingerprint()
    }

    /// Returns why changes cannot be detected at the moment, one line for each reason.
    pub fn troubles(&self) -> Vec<String> {
        self.maps.as_ref().map(Maps::troubles).unwrap_or_default()
    }

    /// Waits for an event, and returns the set after it, which may be unchanged.
    ///
    /// Cancelling a call loses only the messages for the user: the next one checks at once.
    pub async fn changed(&mut self) -> Snapshot {
        let mut settling = self.wake().await;
        self.is_unsettled = true;
        let since = Instant::now();
        let (mut before, mut notes) = (None, Vec::new());
        loop {
            self.settle(&mut settling).await;
            let mut snapshot = self.snapshot().await;
            notes.append(&mut snapshot.notes);
            let tried = self.tried.fingerprint();
            let is_halfway = snapshot.fingerprint.may_be_halfway(&tried);
            let is_sure = before.as_ref() == Some(&snapshot.fingerprint) && !is_halfway;
            if snapshot.fingerprint == tried || is_sure || Instant::now() >= settling.deadline() {
                self.is_unsettled = false;
                return Snapshot { notes, since, ..snapshot };
            }
            before = Some(snapshot.fingerprint);
            sleep(if is_halfway { RECHECK_HALFWAY } else { RECHECK }).await;
        }
    }

    /// Reads all sources once, without a check that an edit is complete.
    pub async fn snapshot(&mut self) -> Snapshot {
        let known = ModulePaths::of([&self.running, &self.tried]);
        let (files, maps) = (self.files.clone(), self.maps.as_ref().map(Maps::read));
        // On another thread: it reads files, and takes time that grows with the sources.
        let read = task::spawn_blocking(move || read(files, maps, &known)).await;
        let (snapshot, next_check) = read.unwrap_or_else(|bug| {
            let problem = SourceProblem::new(format!("cannot read the scripts: {bug}"));
            (Snapshot::of(Err(problem), &ModulePaths::default()), None)
        });
        self.next_check = next_check;
        snapshot
    }

    /// Waits until there is a reason to check.
    async fn wake(&mut self) -> Settling {
        if self.is_unsettled {
            return Settling::begin(Instant::now());
        }
        let (files, maps) = (self.files.as_ref(), self.maps.as_mut());
        let is_api = tokio::select! {
            biased; // events before the timer
            () = ring(files) => false,
            () = changed(maps) => true,
            () = until(self.next_check) => false,
        };
        let now = Instant::now();
        let mut settling = Settling::begin(now);
        if is_api {
            settling.add_api_change(now);
        }
        settling
    }

    /// Waits until the files have settled.
    async fn settle(&mut self, settling: &mut Settling) {
        loop {
            if let Some(files) = &self.files {
                settling.add_events(files.fs_events().take(), Instant::now());
            }
            tokio::select! {
                biased; // events before the deadline: they extend it
                () = ring(self.files.as_ref()) => {}
                () = changed(self.maps.as_mut()) => settling.add_api_change(Instant::now()),
                () = sleep_until(settling.due()) => return,
            }
        }
    }
}

impl Snapshot {
    fn of(scripts: Result<Vec<Source>, SourceProblem>, known: &ModulePaths) -> Self {
        let fingerprint = match &scripts {
            Ok(scripts) => known.fingerprint(scripts),
            Err(problem) => Fingerprint::of_problem(&problem.message),
        };
        Snapshot { scripts, fingerprint, notes: Vec::new(), since: Instant::now() }
    }

    /// Returns the attempt to load this set.
    pub fn attempt(&self) -> LoadAttempt {
        match &self.scripts {
            Ok(scripts) => LoadAttempt::new(scripts, self.fingerprint.of_scripts()),
            Err(problem) => LoadAttempt::of_problem(problem),
        }
    }
}

/// Reads all sources. Returns when to check the files again.
fn read(
    files: Option<ScriptFiles>,
    maps: Option<Result<Vec<Source>, Error>>,
    known: &ModulePaths,
) -> (Snapshot, Option<Instant>) {
    let files = files.map(|it| it.snapshot(known));
    let next_check = files.as_ref().map(|it| Instant::now() + it.again);
    let (found, notes) = files.map(|it| (it.scripts, it.notes)).unzip();
    let parts: Result<Vec<_>, _> = found.into_iter().chain(maps).collect();
    let scripts = parts.map(|it| it.into_iter().flatten().collect()).map_err(SourceProblem::from);
    (Snapshot { notes: notes.unwrap_or_default(), ..Snapshot::of(scripts, known) }, next_check)
}

async fn ring(files: Option<&ScriptFiles>) {
    match files {
        Some(files) => files.fs_events().wait().await,
        None => pending().await,
    }
}

async fn changed(maps: Option<&mut Maps>) {
    match maps {
        Some(maps) => maps.changed().await,
        None => pending().await,
    }
}
