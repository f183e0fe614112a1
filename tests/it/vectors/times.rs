//! Decisions about time, on simulated time: background handlers and throttling.

use std::time::Duration;

use kopf::logic::{
    background::{
        schedule::{BackgroundSchedule, ScheduleMoment, ScheduleStep},
        throttle::Throttle,
    },
    handlers::{
        handler::{Handler, InitialDelay},
        outcome::{self, Effort, LogLevel},
    },
};
use serde_json::{Map, Value, json};

use super::{catalogue, run, same};

#[test]
fn timers() {
    run("timers", |vector| {
        let mut options = catalogue::map(&vector.input["options"]);
        options.insert("on".to_owned(), vector.input["kind"].clone());
        let handler = catalogue::handler(&Value::Object(options)).map_err(|it| it.to_string())?;
        let mut simulation = Simulation::new(&vector.input, &handler);
        simulation.run();
        same("schedule", &simulation.told(), &vector.expected)
    });
}

/// One background handler of one object, in isolation.
struct Simulation<'a> {
    input: &'a Value,
    handler: &'a Handler,
    now: Duration,
    until: Duration,
    stop: Option<Duration>,
    calls: Vec<Value>,
    patches: Vec<Value>,
    exited: Option<(Duration, bool)>,
}

impl<'a> Simulation<'a> {
    fn new(input: &'a Value, handler: &'a Handler) -> Self {
        Simulation {
            input,
            handler,
            now: Duration::ZERO,
            until: catalogue::seconds(&input["until"]).expect("an end"),
            stop: catalogue::seconds(&input["stop"]),
            calls: Vec::new(),
            patches: Vec::new(),
            exited: None,
        }
    }

    fn run(&mut self) {
        let delay = match &self.handler.background.initial_delay {
            None => None,
            Some(InitialDelay::Fixed(delay)) => Some(*delay),
            Some(InitialDelay::Computed(it)) => {
                let field = it.name.strip_prefix("spec.").expect("a field of the spec");
                catalogue::seconds(&self.input["spec"][field])
            }
        };
        let mut schedule = BackgroundSchedule::new(self.handler, delay, self.now);
        while self.now < self.until {
            match schedule.next(self.moment()) {
                ScheduleStep::Sleep(pause) => {
                    let end = self.now + pause;
                    // The stop flag ends a sleep early.
                    let stop = self.stop.filter(|it| *it > self.now);
                    self.now = stop.map_or(end, |it| it.min(end));
                }
                ScheduleStep::Plan(_) => schedule.planned(None, (self.now, self.now)),
                ScheduleStep::Call(effort) => self.call(&mut schedule, effort),
                ScheduleStep::Exit { forever } => {
                    self.exited = Some((self.now, forever));
                    return;
                }
            }
        }
    }

    fn moment(&self) -> ScheduleMoment {
        let resets = self.input["resets"].as_array().into_iter().flatten();
        let resets = resets.filter_map(catalogue::seconds).filter(|it| *it <= self.now);
        ScheduleMoment {
            now: self.now,
            changed: resets.max().unwrap_or_default(),
            stopped: self.stop.is_some_and(|it| it <= self.now),
        }
    }

    fn call(&mut self, schedule: &mut BackgroundSchedule, effort: Effort) {
        if let Some((outcome, _)) = outcome::before(self.handler, effort) {
            return schedule.ended(&outcome, self.now);
        }
        let runs = self.input["runs"].as_array().expect("runs");
        let run = runs.get(self.calls.len()).or(runs.last()).expect("a run");
        let start = self.now;
        if run["wait_stopped"] == true {
            self.now = self.now.max(self.stop.unwrap_or(Duration::MAX));
        }
        let lasts = catalogue::seconds(&run["duration"]).unwrap_or_default();
        self.now = self.now.saturating_add(lasts);
        let end = (self.now < self.until).then_some(self.now.as_secs_f64());
        self.calls.push(json!([
            start.as_secs_f64(),
            end,
            effort.retries,
            effort.runtime.as_secs_f64()
        ]));
        let lasted = self.now.saturating_sub(start);
        let effort = Effort { runtime: effort.runtime.saturating_add(lasted), ..effort };
        let ended = catalogue::ended(run);
        let (outcome, _) = outcome::after(self.handler, ended, effort, catalogue::DEFAULT_BACKOFF);
        if self.now < self.until {
            self.deliver(catalogue::map(&run["patch"]), outcome.result.as_ref());
        }
        schedule.ended(&outcome, self.now);
    }

    /// Applies what the function wrote, and its result in the status.
    fn deliver(&mut self, mut patch: Map<String, Value>, result: Option<&Value>) {
        if let Some(result) = result {
            let status = patch.entry("status").or_insert_with(|| json!({}));
            status[&*self.handler.id] = result.clone();
        }
        if !patch.is_empty() {
            self.patches.push(json!([self.now.as_secs_f64(), patch]));
        }
    }

    fn told(&self) -> Value {
        json!({
            "calls": self.calls,
            "exited": self.exited.map(|(moment, _)| moment.as_secs_f64()),
            "forever": self.exited.is_some_and(|(_, forever)| forever),
            "patches": self.patches,
        })
    }
}

#[test]
fn throttling() {
    run("throttling", |vector| {
        let delays: Vec<_> = vector.input["delays"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(catalogue::seconds)
            .collect();
        let mut worker = Worker { now: Duration::ZERO, throttle: Throttle::default(), delays };
        let steps = vector.input["steps"].as_array().into_iter().flatten();
        let told: Vec<_> = steps.map(|it| worker.step(it)).collect();
        same("throttling", &json!(told), &vector.expected)
    });
}

/// The worker of one object, as far as throttling is concerned.
struct Worker {
    now: Duration,
    throttle: Throttle,
    delays: Vec<Duration>,
}

impl Worker {
    fn step(&mut self, step: &Value) -> Value {
        self.now += catalogue::seconds(&step["gap"]).unwrap_or_default();
        let began = self.now;
        let interrupt = catalogue::seconds(&step["interrupt_after"]);
        let mut lines = Vec::new();
        let mut should_run = true;
        if self.throttle.remaining(self.now).is_some() {
            should_run = self.sleep(interrupt, &mut lines);
        }
        if should_run && step["error"] == true {
            let error = "ValueError('boo!')";
            if let Some(line) = self.throttle.failed(&self.delays, self.now, error) {
                lines.push(line);
                self.sleep(interrupt, &mut lines);
            }
        } else if should_run {
            self.throttle.succeeded();
        }
        let logs: Vec<_> = lines
            .iter()
            .map(|it| json!([if it.level == LogLevel::Error { "ERROR" } else { "INFO" }, it.text]))
            .collect();
        json!({
            "should_run": should_run,
            "slept": self.now.saturating_sub(began).as_secs_f64(),
            "time": self.now.as_secs_f64(),
            "active": self.throttle.pause().map(|it| it.as_secs_f64()),
            "logs": logs,
        })
    }

    /// Sleeps for the rest of the pause, or until a newer event. Returns whether the pause is over.
    fn sleep(&mut self, interrupt: Option<Duration>, lines: &mut Vec<outcome::LogLine>) -> bool {
        let remaining = self.throttle.remaining(self.now).unwrap_or_default();
        self.now += interrupt.map_or(remaining, |it| it.min(remaining));
        let line = self.throttle.rested(self.now);
        let is_over = line.is_some();
        lines.extend(line);
        is_over
    }
}
