//! The steps that stop daemons, on simulated time.

use std::time::Duration;

use kopf::{
    logic::{
        background::stopping::{self, StopReason, StopReasons, StopTimeouts, StoppingStage},
        handlers::{
            handler::Handler,
            outcome::{LogLevel, LogLine},
        },
    },
    settings::BackgroundSettings,
};
use serde_json::{Value, json};

use super::{catalogue, run, same};

#[test]
fn daemon_stopping() {
    run("daemon-stopping", |vector| {
        let mut options = catalogue::map(&vector.input["options"]);
        options.insert("on".to_owned(), vector.input["kind"].clone());
        options.insert("fn".to_owned(), "fn".into());
        let handler = catalogue::handler(&Value::Object(options)).map_err(|it| it.to_string())?;
        let told = Stopping::new(&vector.input, &handler).run(&vector.input);
        same("stopping", &told, &vector.expected)
    });
}

/// One daemon whose stop was requested.
struct Stopping<'a> {
    handler: &'a Handler,
    timeouts: StopTimeouts,
    settings: BackgroundSettings,
    /// The time that it takes to exit after the flag, and after the cancellation.
    exits: [Option<Duration>; 2],
    now: Duration,
    flagged: Option<Duration>,
    cancelled: Option<Duration>,
    /// Whether it had a chance to run since the last action on it.
    has_run: bool,
    reasons: StopReasons,
    logs: Vec<Value>,
}

impl<'a> Stopping<'a> {
    fn new(input: &Value, handler: &'a Handler) -> Self {
        let given = &input["settings"];
        let mut settings =
            BackgroundSettings { instant_exit_timeout: None, ..BackgroundSettings::default() };
        if let Some(polling) = catalogue::seconds(&given["cancellation_polling"]) {
            settings.cancellation_polling = polling;
        }
        settings.instant_exit_timeout = catalogue::seconds(&given["instant_exit_timeout"]);
        if let Some(cycles) = given.get("instant_exit_zero_time_cycles") {
            settings.instant_exit_zero_time_cycles =
                cycles.as_u64().and_then(|it| u32::try_from(it).ok()).unwrap_or_default();
        }
        let daemon = &input["daemon"];
        Stopping {
            handler,
            timeouts: StopTimeouts::with(handler, &settings),
            settings,
            exits: ["exits_on_flag", "exits_on_cancel"].map(|it| catalogue::seconds(&daemon[it])),
            now: Duration::ZERO,
            flagged: None,
            cancelled: None,
            has_run: false,
            reasons: StopReasons::default(),
            logs: Vec::new(),
        }
    }

    fn run(mut self, input: &Value) -> Value {
        if input["mode"] == "steps" {
            let steps = input["steps"].as_array().into_iter().flatten();
            return steps.map(|it| self.step(catalogue::seconds(it).unwrap_or_default())).collect();
        }
        let reason = match input["reason"].as_str() {
            Some("OPERATOR_PAUSING") => StopReason::OperatorPausing,
            _ => StopReason::OperatorExiting,
        };
        self.linear(reason);
        json!({
            "duration": self.now.as_secs_f64(),
            "reasons": self.names(),
            "done": self.has_ended(),
            "logs": self.logs,
        })
    }

    fn step(&mut self, moment: Duration) -> Value {
        if moment > self.now {
            self.wait(moment.saturating_sub(self.now), false);
        }
        let delay = self.delay_of_step();
        json!({
            "delays": delay.into_iter().map(|it| it.as_secs_f64()).collect::<Vec<_>>(),
            "reasons": self.names(),
            "done": self.has_ended(),
            "logs": std::mem::take(&mut self.logs),
        })
    }

    fn delay_of_step(&mut self) -> Option<Duration> {
        let age = self.flagged.map_or(Duration::ZERO, |it| self.now.saturating_sub(it));
        if !self.reasons.contains(StopReason::ResourceDeleted) {
            self.mark(StopReason::ResourceDeleted);
            self.instant_exit();
        }
        if self.has_ended() {
            return None;
        }
        let stage = stopping::step(self.handler, self.timeouts, self.reasons, age);
        self.apply(&stage);
        if stage.mark.is_some() {
            self.instant_exit();
        }
        stage.delay.filter(|_| !self.has_ended())
    }

    fn linear(&mut self, reason: StopReason) {
        self.mark(reason);
        self.instant_exit();
        if self.has_ended() {
            self.log(&stopping::graceful(self.handler));
            return;
        }
        for stage in stopping::linear(self.handler, self.timeouts) {
            self.apply(&stage);
            if let Some(delay) = stage.delay {
                self.wait(delay, true);
            }
            if self.has_ended() {
                return;
            }
        }
    }

    fn apply(&mut self, stage: &StoppingStage) {
        if let Some(mark) = stage.mark {
            self.mark(mark);
        }
        if let Some(line) = &stage.line {
            self.log(line);
        }
    }

    fn mark(&mut self, reason: StopReason) {
        self.reasons = self.reasons.with(reason);
        self.flagged.get_or_insert(self.now);
        if reason == StopReason::DaemonCancelled {
            self.cancelled = Some(self.now);
        }
        self.has_run = false;
    }

    fn instant_exit(&mut self) {
        if let Some(timeout) = self.settings.instant_exit_timeout {
            self.wait(timeout, true);
        } else if self.settings.instant_exit_zero_time_cycles > 0 {
            self.has_run = true;
        }
    }

    /// Lets time pass; if `ends_early`, only until it has ended.
    fn wait(&mut self, pause: Duration, ends_early: bool) {
        let end = self.now + pause;
        let exit = self.ends().filter(|_| ends_early).map_or(end, |it| it.max(self.now));
        self.now = end.min(exit);
        self.has_run = true;
    }

    fn ends(&self) -> Option<Duration> {
        let [flag, cancel] = self.exits;
        let by = |moment: Option<Duration>, takes: Option<Duration>| Some(moment? + takes?);
        let ends = [by(self.flagged, flag), by(self.cancelled, cancel)];
        ends.into_iter().flatten().min()
    }

    fn has_ended(&self) -> bool {
        self.ends().is_some_and(|it| it < self.now || (it == self.now && self.has_run))
    }

    fn names(&self) -> Vec<&'static str> {
        self.reasons.iter().map(StopReason::as_str).collect()
    }

    fn log(&mut self, line: &LogLine) {
        let level = if line.level == LogLevel::Debug { "DEBUG" } else { "WARNING" };
        self.logs.push(json!([level, line.text]));
    }
}
