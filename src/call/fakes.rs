//! Fakes: functions of a test that respond in place of servers, containers and Jobs. Only `kopf test` has them.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::Arc,
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{Invocation, Scripts};
use crate::logic::handlers::{function::Function, outcome::Raised};

/// Maximum number of functions of one test.
const FAKES_MAX: usize = 100;
/// Maximum number of stored calls; the oldest are dropped first. Their size as JSON is limited by [`BYTES_MAX`].
const CALLS_MAX: usize = 10_000;
/// Maximum number of stored logs of Jobs; beyond it, all are dropped.
const LOGS_MAX: usize = 1_000;
const BYTES_MAX: usize = 16 << 20;

/// The subject of a fake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Faked {
    /// The servers that `http` calls.
    Http,
    /// The commands and copies of `kube.exec`, `kube.copy_to` and `kube.copy_from`.
    Exec,
    /// The Jobs of `kube.run`.
    Run,
}

impl Faked {
    /// All subjects, for the lookup by name.
    pub const ALL: [Faked; 3] = [Faked::Http, Faked::Exec, Faked::Run];

    /// Returns the name of the function that declares it, below `fake`.
    pub fn name(self) -> &'static str {
        match self {
            Faked::Http => "http",
            Faked::Exec => "exec",
            Faked::Run => "run",
        }
    }
}

/// The fakes of one test, shared by the scripts of the operator and of the test.
#[derive(Clone, Default)]
pub struct Fakes(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    failed: Notify,
}

#[derive(Default)]
struct State {
    /// The scripts of the test; `None` before and after it.
    scripts: Option<Arc<dyn Scripts>>,
    /// In the order of declaration.
    fakes: Vec<Fake>,
    calls: VecDeque<(Faked, Value)>,
    bytes: usize,
    /// The logs of Jobs, by the names of the Jobs in messages.
    logs: BTreeMap<String, String>,
    /// The first error of a fake.
    failure: Option<Raised>,
}

/// One function of a test.
#[derive(Clone, Debug)]
struct Fake {
    what: Faked,
    /// The URLs for which it responds; `*` matches any characters.
    url: String,
    function: Function,
    /// Where it is declared: `FILE:LINE`.
    place: String,
    /// The call of the test.
    invocation: Arc<Invocation>,
}

/// The result of a function of a test.
#[derive(Debug)]
pub struct FakeResponse {
    /// The value that the function has returned.
    pub value: Value,
    what: Faked,
    place: String,
}

impl fmt::Debug for Fakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the fakes of a test")
    }
}

impl Fakes {
    /// Sets the scripts that call the functions of fakes.
    pub fn open(&self, scripts: Arc<dyn Scripts>) {
        self.0.state.lock().scripts = Some(scripts);
    }

    /// Drops all state, because the test is over.
    pub fn close(&self) {
        let state = std::mem::take(&mut *self.0.state.lock());
        // Dropped after the lock is released: functions keep their scripts alive.
        drop(state);
    }

    /// Adds a function that responds to calls; the latest one is called first.
    ///
    /// # Errors
    /// If no test is running, or it has too many fakes.
    pub fn declare(
        &self,
        what: Faked,
        url: &str,
        (function, place): (Function, String),
        invocation: Arc<Invocation>,
    ) -> Result<(), String> {
        let mut state = self.0.state.lock();
        let scripts =
            state.scripts.clone().ok_or("call it inside a test, in the function of `kopf.test`")?;
        if state.fakes.len() >= FAKES_MAX {
            return Err(format!("a test has at most {FAKES_MAX} fakes"));
        }
        let function = scripts.keep(function);
        state.fakes.push(Fake { what, url: url.to_owned(), function, place, invocation });
        Ok(())
    }

    /// Records a call, and returns the first response of a fake; `None` if no fake responds.
    ///
    /// # Errors
    /// If a fake fails, which also fails the test.
    pub async fn respond(
        &self,
        what: Faked,
        url: &str,
        call: Value,
    ) -> Result<Option<FakeResponse>, String> {
        let (scripts, fakes) = self.record(what, url, &call);
        let Some(scripts) = scripts else { return Ok(None) };
        for Fake { function, place, invocation, .. } in fakes {
            let invocation = Arc::new(invocation.again());
            match scripts.compute(function, Some(call.clone()), invocation).await {
                Ok(Value::Null) => {}
                Ok(value) => return Ok(Some(FakeResponse { value, what, place })),
                Err(raised) => return Err(self.fail(what, raised)),
            }
        }
        Ok(None)
    }

    /// Records a call. Returns the fakes that may respond to it, the latest one first.
    fn record(
        &self,
        what: Faked,
        url: &str,
        call: &Value,
    ) -> (Option<Arc<dyn Scripts>>, Vec<Fake>) {
        let size = |it: &Value| it.to_string().len();
        let mut state = self.0.state.lock();
        state.bytes += size(call);
        state.calls.push_back((what, call.clone()));
        while state.calls.len() > CALLS_MAX || state.bytes > BYTES_MAX {
            let Some((_, forgotten)) = state.calls.pop_front() else { break };
            state.bytes -= size(&forgotten);
        }
        let responds = |it: &&Fake| it.what == what && matches(&it.url, url);
        let fakes = state.fakes.iter().rev().filter(responds).cloned().collect();
        (state.scripts.clone(), fakes)
    }

    /// Fails the test because of a fake. Returns the error message for the operator.
    pub fn fail(&self, what: Faked, raised: Raised) -> String {
        let told = format!("the function of fake.{} has failed: {}", what.name(), raised.message);
        let mut state = self.0.state.lock();
        if state.failure.is_none() {
            state.failure = Some(raised);
            self.0.failed.notify_one();
        }
        told
    }

    /// Fails the test because of an invalid response. Returns the error message for the operator.
    pub fn reject(&self, response: &FakeResponse, problem: &str) -> String {
        let FakeResponse { what, place, .. } = response;
        let message =
            format!("{place}: fake.{}: what the function returns: {problem}", what.name());
        self.fail(*what, Raised::of_host(message))
    }

    /// Waits until a fake fails.
    pub async fn failed(&self) -> Raised {
        loop {
            if let Some(failure) = self.0.state.lock().failure.clone() {
                return failure;
            }
            self.0.failed.notified().await;
        }
    }

    /// Returns the recorded calls, in order.
    pub fn calls(&self, what: Faked) -> Vec<Value> {
        let state = self.0.state.lock();
        state.calls.iter().filter(|(it, _)| *it == what).map(|(_, call)| call.clone()).collect()
    }

    /// Stores the log that a fake has returned for a Job.
    pub fn keep_log(&self, job: String, log: String) {
        let mut state = self.0.state.lock();
        if state.logs.len() >= LOGS_MAX {
            state.logs.clear();
        }
        state.logs.insert(job, log);
    }

    /// Returns the log that a fake has returned for a Job.
    pub fn log(&self, job: &str) -> Option<String> {
        self.0.state.lock().logs.get(job).cloned()
    }

    /// Returns the URL patterns of the fakes, for messages.
    pub fn urls(&self) -> Vec<Value> {
        let state = self.0.state.lock();
        let fakes = state.fakes.iter().filter(|it| it.what == Faked::Http);
        fakes.map(|it| json!(it.url)).collect()
    }
}

/// Returns whether a URL matches a pattern: `*` matches any characters. A pattern without a query matches any query.
fn matches(pattern: &str, url: &str) -> bool {
    let url = if pattern.contains('?') { url } else { url.split('?').next().unwrap_or_default() };
    let mut parts = pattern.split('*');
    let Some(mut rest) = url.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts: Vec<_> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(place) = rest.find(part) else { return false };
        rest = rest.get(place + part.len()..).unwrap_or_default();
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_anything_and_no_query_for_any() {
        for (pattern, url, expected) in [
            ("https://a.example/x", "https://a.example/x", true),
            ("https://a.example/x", "https://a.example/x?page=1", true),
            ("https://a.example/x", "https://a.example/xy", false),
            ("https://a.example/x?page=1", "https://a.example/x?page=2", false),
            ("https://a.example/x?*", "https://a.example/x?page=2", true),
            ("https://a.example/*", "https://a.example/x/y?page=2", true),
            ("https://a.example/*", "https://b.example/", false),
            ("https://*/users/*/keys", "https://a.example/users/5/keys", true),
            ("https://*/users/*/keys", "https://a.example/users/5/keys/7", false),
            ("*", "http://a.example/", true),
            ("ab*ab", "ab", false),
            ("", "http://a.example/", false),
        ] {
            assert_eq!(matches(pattern, url), expected, "{pattern} {url}");
        }
    }
}
