//! All sources of scripts together, and how they change.
//!
//! [`Sources::changed`] waits for a sound, lets it settle, and reads the whole set. A set that differs from the last one that
//! was tried counts only when a second look a little later finds the same: so nothing half-written is taken, wherever it
//! comes from.

use std::{collections::BTreeMap, future::pending, path::PathBuf, time::Duration};

use tokio::{
    task,
    time::{Instant, sleep, sleep_until},
};

use super::{Files, Maps, Print, files::FilesLook, settling::Settling};
use crate::cli::{options::Note, report::Report};
use crate::ports::until;
use crate::scripting::{Modules, Source, shown_module};

/// Between two looks that must be alike.
const RECHECK: Duration = Duration::from_millis(8);

/// Between two looks while a text is away or empty.
const RECHECK_HALFWAY: Duration = Duration::from_millis(25);

/// The scripts, wherever they come from.
pub struct Sources {
    files: Option<Files>,
    maps: Option<Maps>,
    /// What runs.
    running: Attempt,
    /// What was tried last, also if it was refused.
    tried: Attempt,
    /// When to look without being told.
    next_look: Option<Instant>,
    /// Something was heard, and nobody was told yet.
    is_unsettled: bool,
}

/// The whole set as it is now.
#[derive(Debug)]
pub struct Look {
    /// The scripts in their order, or why there is no complete set.
    pub scripts: Result<Vec<Source>, Report>,
    /// The same to compare with, modules included.
    pub print: Print,
    /// What the user should know of the watching, once.
    pub notes: Vec<Note>,
    /// When the first of the changes was noticed.
    pub since: Instant,
}

/// A set that somebody tries to load, or has loaded.
#[derive(Clone, Debug, Default)]
pub struct Attempt {
    /// Without modules: those are known when it is loaded, and some even later.
    scripts: Print,
    /// What the scripts take of their modules, by the name of the script.
    modules: BTreeMap<String, Modules>,
}

/// The modules that are in use.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// Their names, by the name of the script.
    names: BTreeMap<String, Vec<PathBuf>>,
    /// Their files.
    pub(super) paths: Vec<PathBuf>,
}

impl Sources {
    /// Files and maps together; files first. They are watched from the first [`Sources::changed`] on.
    pub fn new(files: Option<Files>, maps: Option<Maps>) -> Self {
        let next_look = Some(Instant::now());
        let (running, tried) = (Attempt::default(), Attempt::default());
        Sources { files, maps, running, tried, next_look, is_unsettled: false }
    }

    /// This set has been tried: it is no news any more.
    pub fn tried(&mut self, mut attempt: Attempt) {
        for (script, modules) in &mut attempt.modules {
            // An unchanged script is not loaded again: what it took when it was loaded still holds.
            if let Some(before) = self.running.modules.get(script)
                && modules.taken().is_empty()
                && attempt.scripts.agrees_on(script, &self.running.scripts)
            {
                *modules = before.clone();
            }
        }
        self.tried = attempt;
    }

    /// What was tried last runs now.
    pub fn took(&mut self) {
        self.running = self.tried.clone();
    }

    /// What was tried last does not count: look again at once.
    pub fn forget(&mut self) {
        self.tried = self.running.clone();
        self.next_look = Some(Instant::now());
    }

    /// Whether this is other than what was tried last.
    pub fn is_news(&self, look: &Look) -> bool {
        look.print != self.tried.print()
    }

    /// Whether this is what runs.
    pub fn is_running(&self, look: &Look) -> bool {
        look.print == self.running.print()
    }

    /// What runs, to compare with.
    pub fn running(&self) -> Print {
        self.running.print()
    }

    /// Why changes are not seen at the moment, one line for each reason.
    pub fn troubles(&self) -> Vec<String> {
        self.maps.as_ref().map(Maps::troubles).unwrap_or_default()
    }

    /// Waits until something has happened, and gives the set as it is then. It may be the same as before.
    ///
    /// A call that is not waited for to the end loses nothing but the notes for the user: the next one looks at once.
    pub async fn changed(&mut self) -> Look {
        let mut settling = self.wake().await;
        self.is_unsettled = true;
        let since = Instant::now();
        let (mut before, mut notes) = (None, Vec::new());
        loop {
            self.settle(&mut settling).await;
            let mut look = self.look().await;
            notes.append(&mut look.notes);
            let tried = self.tried.print();
            let is_halfway = look.print.may_be_halfway(&tried);
            let is_sure = before.as_ref() == Some(&look.print) && !is_halfway;
            if look.print == tried || is_sure || Instant::now() >= settling.deadline() {
                self.is_unsettled = false;
                return Look { notes, since, ..look };
            }
            before = Some(look.print);
            sleep(if is_halfway { RECHECK_HALFWAY } else { RECHECK }).await;
        }
    }

    /// Reads everything, as it is.
    pub async fn look(&mut self) -> Look {
        let known = Known::of([&self.running, &self.tried]);
        let (mut scripts, mut notes, mut print) = (Vec::new(), Vec::new(), Print::default());
        let mut problem = None;
        self.next_look = None;
        if let Some(files) = self.files.clone() {
            let known = known.clone();
            let looked = task::spawn_blocking(move || {
                let look = files.look(&known);
                // Modules are files too.
                let print = look.scripts.as_ref().map(|it| known.print(it)).unwrap_or_default();
                (look, print)
            });
            match looked.await {
                Ok((FilesLook { scripts: found, notes: told, again }, printed)) => {
                    self.next_look = Some(Instant::now() + again);
                    (notes, print) = (told, printed);
                    match found {
                        Ok(found) => scripts = found,
                        Err(error) => problem = Some(Report::from(error)),
                    }
                }
                Err(bug) => problem = Some(Report::failure(format!("cannot look: {bug}"))),
            }
        }
        match self.maps.as_ref().map(Maps::read) {
            Some(Ok(found)) => {
                print.extend(known.print(&found));
                scripts.extend(found);
            }
            Some(Err(error)) => problem = problem.or(Some(error.into())),
            None => {}
        }
        if let Some(problem) = &problem {
            print = Print::of_problem(&problem.message);
        }
        Look { scripts: problem.map_or(Ok(scripts), Err), print, notes, since: Instant::now() }
    }

    /// Waits until there is a reason to look.
    async fn wake(&mut self) -> Settling {
        if self.is_unsettled {
            return Settling::begin(Instant::now());
        }
        let (files, maps) = (self.files.as_ref(), self.maps.as_mut());
        let is_api = tokio::select! {
            biased; // those who know something first
            () = ring(files) => false,
            () = changed(maps) => true,
            () = until(self.next_look) => false,
        };
        let now = Instant::now();
        let mut settling = Settling::begin(now);
        if is_api {
            settling.hear_api(now);
        }
        settling
    }

    /// Waits until it is quiet.
    async fn settle(&mut self, settling: &mut Settling) {
        loop {
            if let Some(files) = &self.files {
                settling.hear(files.ear().take(), Instant::now());
            }
            tokio::select! {
                biased; // as long as more comes, the time is not over
                () = ring(self.files.as_ref()) => {}
                () = changed(self.maps.as_mut()) => settling.hear_api(Instant::now()),
                () = sleep_until(settling.due()) => return,
            }
        }
    }
}

impl Attempt {
    /// Of a set that was read.
    pub fn of(scripts: &[Source]) -> Self {
        let mut attempt = Attempt::default();
        for script in scripts {
            attempt.scripts.add(&script.name, &script.text);
            attempt.modules.insert(script.name.clone(), script.modules.clone());
        }
        attempt
    }

    /// Of a set that could not be read.
    pub fn of_problem(problem: &Report) -> Self {
        let scripts = Print::of_problem(&problem.message);
        Attempt { scripts, modules: BTreeMap::new() }
    }

    /// With the modules as they were loaded.
    fn print(&self) -> Print {
        let mut print = self.scripts.clone();
        for (script, modules) in &self.modules {
            for module in modules.taken() {
                print.add_module(shown_module(script, &module.name), script, module.digest);
            }
        }
        print
    }
}

impl Known {
    fn of(attempts: [&Attempt; 2]) -> Self {
        let mut known = Known::default();
        let modules = attempts.into_iter().flat_map(|it| &it.modules);
        for (script, modules) in modules {
            for module in modules.taken() {
                known.names.entry(script.clone()).or_default().push(module.name);
                known.paths.extend(module.path);
            }
        }
        known
    }

    /// Scripts with their modules as they are now.
    fn print(&self, scripts: &[Source]) -> Print {
        let mut print = Print::default();
        for Source { name, text, modules } in scripts {
            print.add(name, text);
            for module in self.names.get(name).into_iter().flatten() {
                print.add_module(shown_module(name, module), name, modules.digest(module));
            }
        }
        print
    }
}

async fn ring(files: Option<&Files>) {
    match files {
        Some(files) => files.ear().ring().await,
        None => pending().await,
    }
}

async fn changed(maps: Option<&mut Maps>) {
    match maps {
        Some(maps) => maps.changed().await,
        None => pending().await,
    }
}
