//! The processes of the operator: they start, are killed, stop, and load new versions of the scripts.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use kopf::{
    call::Scripts,
    logic::{
        change::registry::Registry,
        generation::Generation,
        handlers::{handler::Handler, lifecycle::Lifecycle},
    },
    ports::Candidate,
    reactor::{Connect, Operator, OperatorFailure},
    scripting::{Placement, Prepared, ScriptHost, Source},
    settings::Settings,
    testing::{self, Environment, LogLine, NativeScripts, RunningOperator},
};
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, oneshot},
    time,
};
use tokio_util::sync::CancellationToken;

use super::{
    faults::Faults,
    history::History,
    levels::{self, Levels},
    mutants::Mutant,
    natives::Natives,
    scripts::{self, Language},
    wire::Wire,
    world::{Plan, Stage},
};

/// The start time of a new process.
pub(super) const START_DELAY: Duration = Duration::from_secs(1);

/// The records and the random numbers of a run.
pub(super) struct Records<'a> {
    pub(super) history: &'a History,
    pub(super) faults: &'a Faults,
    pub(super) levels: Option<&'a Levels>,
}

/// All processes.
pub(super) struct Operators {
    env: Environment,
    history: History,
    faults: Faults,
    scripts: NativeScripts,
    lifecycle: Lifecycle,
    language: Option<Language>,
    mutant: Option<Mutant>,
    is_lagging: bool,
    has_leader: bool,
    levels: Option<Levels>,
    has_children: bool,
    slots: Vec<Slot>,
    ends: Ends,
    /// Whether connections are refused.
    pub(super) is_down: Arc<AtomicBool>,
    /// The number of the last process.
    last: Arc<AtomicU64>,
    code: u64,
}

/// Holds one process after the other.
#[derive(Default)]
struct Slot {
    process: Option<Process>,
    is_cut_off: Arc<AtomicBool>,
}

/// A process.
pub(super) struct Process {
    pub(super) number: u64,
    pub(super) running: RunningOperator,
    host: Option<Arc<ScriptHost>>,
}

/// Processes that were killed, or have failed by themselves.
#[derive(Clone, Default)]
pub(super) struct Ends {
    queue: Arc<Mutex<VecDeque<(u64, &'static str)>>>,
    news: Arc<Notify>,
}

impl Ends {
    pub(super) fn push(&self, process: u64, how: &'static str) {
        self.queue.lock().push_back((process, how));
        self.news.notify_one();
    }

    /// Waits for the next one.
    pub(super) async fn next(&self) -> (u64, &'static str) {
        loop {
            let next = self.queue.lock().pop_front();
            if let Some(next) = next {
                return next;
            }
            self.news.notified().await;
        }
    }
}

/// Extracts the reports of scripts from the log.
pub(super) struct Reporter {
    history: History,
    levels: Option<Levels>,
    process: Arc<AtomicU64>,
}

impl Reporter {
    pub(super) fn hear(&self, line: &LogLine) {
        let process = self.process.load(Ordering::Relaxed);
        if self.history.is_killed(process) {
            return;
        }
        match &self.levels {
            Some(levels) => levels::hear(levels, process, line),
            None => scripts::hear(&self.history, process, line),
        }
    }
}

impl Operators {
    pub(super) fn new(
        plan: &Plan,
        env: &Environment,
        records: &Records<'_>,
        lifecycle: Lifecycle,
    ) -> Self {
        let Records { history, faults, levels } = records;
        let language = plan.stage.language();
        Operators {
            env: env.clone(),
            history: (*history).clone(),
            faults: (*faults).clone(),
            scripts: NativeScripts::default(),
            lifecycle,
            language,
            mutant: plan.mutant,
            is_lagging: plan.stage == Stage::Lagging,
            has_leader: plan.stage.has_leader(),
            levels: levels.cloned(),
            has_children: plan.stage.has_children(),
            slots: (0..=u8::from(plan.stage.has_replicas())).map(|_| Slot::default()).collect(),
            ends: Ends::default(),
            is_down: Arc::default(),
            last: Arc::default(),
            code: 0,
        }
    }

    pub(super) fn ends(&self) -> Ends {
        self.ends.clone()
    }

    pub(super) fn reporter(&self) -> Reporter {
        let (history, levels) = (self.history.clone(), self.levels.clone());
        Reporter { history, levels, process: Arc::clone(&self.last) }
    }

    /// Returns the processes that run.
    pub(super) fn processes(&self) -> impl Iterator<Item = &Process> {
        self.slots.iter().filter_map(|it| it.process.as_ref())
    }

    /// Removes and returns the processes.
    pub(super) fn take(&mut self) -> Vec<Process> {
        self.slots.iter_mut().filter_map(|it| it.process.take()).collect()
    }

    /// Returns the handlers of a process, if they are closures.
    fn handlers(&self, process: u64) -> Vec<Handler> {
        let natives = self.natives(process);
        match &self.levels {
            Some(levels) => levels::handlers(&natives, levels, self.has_children),
            None => natives.handlers(),
        }
    }

    /// Returns the current version of the script.
    fn source(&self, language: Language) -> Source {
        let source = if self.levels.is_some() { levels::source } else { scripts::source };
        source(language, self.code)
    }

    fn natives(&self, process: u64) -> Natives {
        Natives {
            scripts: self.scripts.clone(),
            history: self.history.clone(),
            process,
            version: self.code,
            clock: self.env.clock,
        }
    }

    /// Starts a process in this slot, if there is none.
    pub(super) async fn start(&mut self, slot: usize) {
        if self.slots[slot].process.is_some() {
            return;
        }
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let (scripts, handlers, host) = self.load(number).await;
        self.history.begin_process(number);
        let mut settings = settings();
        settings.leadership.enabled = self.has_leader;
        let operator = Operator {
            settings: Arc::new(Mutex::new(settings)),
            connect: self.connect(slot, number),
            lifecycle: self.lifecycle,
            identity: testing::identity(&format!("process-{number}")),
            ..self.env.operator(scripts, handlers)
        };
        let (ends, history) = (self.ends.clone(), self.history.clone());
        let report = move |failure: &OperatorFailure| {
            history.fail_process(number, &failure.to_string());
            ends.push(number, "has failed");
        };
        let running = RunningOperator::start_reporting(operator, report);
        self.slots[slot].process = Some(Process { number, running, host });
    }

    async fn load(&self, number: u64) -> (Arc<dyn Scripts>, Vec<Handler>, Option<Arc<ScriptHost>>) {
        let Some(language) = self.language else {
            let handlers = self.handlers(number);
            return (Arc::new(self.scripts.clone()), handlers, None);
        };
        let sources = vec![self.source(language)];
        let (host, handlers) = self.env.load(sources, Placement::CurrentRuntime).await;
        (Arc::<ScriptHost>::clone(&host), handlers, Some(host))
    }

    /// Connects a process. Its pauses have no random parts: streams that are woken at the same time would take them in any order.
    fn connect(&self, slot: usize, process: u64) -> Connect {
        let wire = Wire {
            server: self.env.server.clone(),
            faults: self.faults.clone(),
            history: self.history.clone(),
            process,
            prefix: if slot == 0 { "" } else { "second " },
            ends: self.ends.clone(),
            is_down: Arc::clone(&self.is_down),
            is_cut_off: Arc::clone(&self.slots[slot].is_cut_off),
            mutant: self.mutant,
            is_lagging: self.is_lagging,
            levels: self.levels.clone(),
            listed: Arc::default(),
            later: Arc::default(),
        };
        testing::connect(wire.client())
    }

    /// Kills a process. Returns its slot, if it was running.
    pub(super) fn kill(&mut self, process: u64, how: &str) -> Option<usize> {
        let is_meant = |it: &Slot| it.process.as_ref().is_some_and(|it| it.number == process);
        let slot = self.slots.iter().position(is_meant)?;
        Some(self.kill_slot(slot, how))
    }

    /// Kills the process of a slot. Returns the slot.
    pub(super) fn kill_slot(&mut self, slot: usize, how: &str) -> usize {
        let slot = slot % self.slots.len();
        if let Some(process) = self.slots[slot].process.take() {
            self.history.kill_process(process.number, how);
        }
        slot
    }

    /// Stops the process of a slot. Returns the slot.
    pub(super) async fn restart(&mut self, slot: usize) -> usize {
        let slot = slot % self.slots.len();
        if let Some(Process { number, running, host }) = self.slots[slot].process.take() {
            self.history.note(format!("process {number} is asked to stop"));
            running.cancel();
            // It may have failed just now.
            drop(running.end().await);
            drop(host);
            self.history.end_process(number, "has stopped");
        }
        slot
    }

    /// Lets the requests of a slot get lost, or arrive again.
    pub(super) fn cut_off(&self, slot: usize, is_cut_off: bool) {
        let slot = slot % self.slots.len();
        self.slots[slot].is_cut_off.store(is_cut_off, Ordering::Relaxed);
    }

    pub(super) fn reconnect_all(&self) {
        (0..self.slots.len()).for_each(|it| self.cut_off(it, false));
    }

    /// Loads the next version of the scripts in all processes.
    pub(super) async fn reload(&mut self) {
        self.code += 1;
        for slot in 0..self.slots.len() {
            let Some(process) = &self.slots[slot].process else { continue };
            let number = process.number;
            let is_taken = if let (Some(language), Some(host)) = (self.language, &process.host) {
                self.reload_scripts(language, host, process).await
            } else {
                let handlers = self.handlers(number);
                let registry = Registry::new(handlers).expect("unique ids");
                let (candidate, _) = candidate(Generation::new(registry, None));
                process.running.reloads.try_send(candidate).is_ok()
            };
            self.history.note(format!("process {number} loads version {}: {is_taken}", self.code));
            if self.language.is_some() && !is_taken {
                // A user whose script is rejected restarts the operator.
                self.ends.push(number, "is killed");
            }
        }
    }

    async fn reload_scripts(
        &self,
        language: Language,
        host: &ScriptHost,
        process: &Process,
    ) -> bool {
        let prepared = host.prepare(vec![self.source(language)]).await;
        let Ok(Prepared { handlers, lifecycle, scripts }) = prepared else { return false };
        let registry = Registry::new(handlers).expect("unique ids");
        let (candidate, verdict) = candidate(Generation::new(registry, lifecycle));
        if process.running.reloads.try_send(candidate).is_err() {
            return false;
        }
        let is_taken = time::timeout(Duration::from_secs(5), verdict).await;
        let is_taken = matches!(is_taken, Ok(Ok(Ok(_))));
        if is_taken {
            host.take(scripts);
        }
        is_taken
    }
}

fn candidate(generation: Generation) -> (Candidate, oneshot::Receiver<testing::ReloadResult>) {
    let (verdict, answer) = oneshot::channel();
    (Candidate { generation, verdict, withdrawn: CancellationToken::new() }, answer)
}

/// Returns the default settings, with shorter pauses after errors.
fn settings() -> Settings {
    let mut settings = Settings::default();
    let seconds = |all: &[u64]| all.iter().copied().map(Duration::from_secs).collect();
    settings.networking.error_backoffs = seconds(&[1, 1, 2]);
    settings.networking.request_timeout = Duration::from_secs(30);
    settings.queueing.error_delays = seconds(&[1, 1, 2, 3, 5, 8]);
    settings.execution.default_backoff = Duration::from_secs(3);
    settings
}
