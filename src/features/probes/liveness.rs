//! Runs the probe handlers, but not more often than needed: one run serves all requests that arrive meanwhile and shortly after.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value};
use tokio::{sync::Mutex, time::Instant};

use crate::handling::activities::{ActivityError, RepeatedActivity};

/// Time for which a result is reused; the same as in Kopf.
const FRESH: Duration = Duration::from_secs(10);

/// The probe handlers of an operator and their last results.
pub struct Liveness {
    probe: RepeatedActivity,
    /// Locked during a run: other requests wait for its result.
    last: Mutex<Option<(Instant, Bytes)>>,
}

impl Liveness {
    /// Creates the state without results.
    pub fn new(probe: RepeatedActivity) -> Self {
        Liveness { probe, last: Mutex::new(None) }
    }

    /// Returns the results by handler id, as JSON. Waits for the scripts, including their retries.
    ///
    /// # Errors
    /// If handlers failed permanently; the next request runs them again.
    pub async fn ask(&self) -> Result<Bytes, ActivityError> {
        let mut last = self.last.lock().await;
        if let Some((when, results)) = &*last
            && when.elapsed() < FRESH
        {
            return Ok(results.clone());
        }
        let results = self.probe.run().await?;
        let results = results.into_iter().map(|(id, result)| (id.to_string(), result));
        let results = Bytes::from(Value::Object(results.collect::<Map<_, _>>()).to_string());
        *last = Some((Instant::now(), results.clone()));
        Ok(results)
    }
}
