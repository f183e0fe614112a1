//! Faults of single lines of a watch.

use std::{collections::VecDeque, io, time::Duration};

use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use kopf_apiserver::ResponseBody;
use serde_json::{Value, json};
use tokio::time::{self, Instant};

use super::{
    faults::{Faults, Kind, Place},
    history::History,
    mutants::Mutant,
    wire::{LineBody, Wire, status},
};

/// Maximum delay of a line: shorter than `settings.persistence.consistency_timeout`.
const DELAY_MAX_MS: u64 = 4000;

/// Maximum delay of a server that lags behind: longer than the consistency timeout.
const LAG_MAX_MS: u64 = 9000;

/// A watch with faults.
struct Watch<S> {
    lines: S,
    /// Lines that precede others.
    next: VecDeque<Bytes>,
    is_ended: bool,
    name: String,
    faults: Faults,
    history: History,
    mutant: Option<Mutant>,
    /// Lines arrive only at multiples of this time after the start: the server lags behind by up to as much.
    lag: Option<(Instant, Duration)>,
}

/// Returns the body of a watch with faults.
pub(super) fn faulty(body: ResponseBody, name: &str, wire: &Wire) -> LineBody {
    let watch = Watch {
        lines: body.into_data_stream().map(|it| it.unwrap_or_else(|never| match never {})).boxed(),
        next: VecDeque::new(),
        is_ended: false,
        name: name.to_owned(),
        faults: wire.faults.clone(),
        history: wire.history.clone(),
        mutant: wire.mutant,
        lag: lag(name, wire),
    };
    let frames = stream::unfold(watch, |mut watch| async {
        let line = watch.line().await?;
        Some((Ok::<_, io::Error>(Frame::data(line)), watch))
    });
    StreamBody::new(frames).boxed_unsync()
}

/// Returns the lag of a watch: every second one is served by a server that lags behind.
fn lag(name: &str, wire: &Wire) -> Option<(Instant, Duration)> {
    if !wire.is_lagging || !wire.faults.is_on() {
        return None;
    }
    let mut random = wire.faults.chance(&format!("lag of {name}"));
    let is_late = random.bool();
    is_late.then(|| (Instant::now(), Duration::from_millis(random.u64(500..LAG_MAX_MS))))
}

impl<S: Stream<Item = Bytes> + Unpin> Watch<S> {
    async fn line(&mut self) -> Option<Bytes> {
        if let Some(line) = self.next.pop_front() {
            return Some(line);
        }
        if self.is_ended {
            return None;
        }
        let mut line = self.lines.next().await?;
        if let Some((start, step)) = self.lag.filter(|_| self.faults.is_on()) {
            let steps = start.elapsed().div_duration_f64(step).ceil();
            time::sleep_until(start + step.mul_f64(steps)).await;
        }
        let place = format!("{} line {}", self.name, name_in(&line));
        if let Some(mutant) = self.mutant {
            while self.faults.is_on() && mutant.drops(&mut self.faults.chance(&place)) {
                self.history.note(format!("{mutant:?} at {place}"));
                line = self.lines.next().await?;
            }
            return Some(mutant.read(&line));
        }
        let Some((kind, mut random)) = self.faults.decide(Place::Line, &place) else {
            return Some(line);
        };
        self.history.note(format!("fault {kind:?} at {place}"));
        match kind {
            Kind::Cut => None,
            Kind::HalfLine => {
                self.is_ended = true;
                Some(line.slice(..line.len() / 2))
            }
            Kind::Stall => std::future::pending().await,
            Kind::Twice => {
                self.next.push_back(line.clone());
                Some(line)
            }
            Kind::LateLine => {
                time::sleep(Duration::from_millis(random.u64(10..DELAY_MAX_MS))).await;
                Some(line)
            }
            Kind::Expired => {
                self.is_ended = true;
                let object = status(410, "Expired", "too old resource version");
                let line = json!({ "type": "ERROR", "object": object });
                Some(format!("{line}\n").into())
            }
            _ => Some(line),
        }
    }
}

/// Returns the name of the object in a line.
fn name_in(line: &[u8]) -> String {
    let line: Value = serde_json::from_slice(line).unwrap_or_default();
    line["object"]["metadata"]["name"].as_str().unwrap_or("-").to_owned()
}
