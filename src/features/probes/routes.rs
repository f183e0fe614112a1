//! The responses to requests, without HTTP connections.

use std::sync::Arc;

use bytes::Bytes;
use http::{
    HeaderValue, Method, Response, StatusCode, Uri,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE},
};
use http_body_util::Full;
use tokio::time::Instant;

use super::{
    exposition,
    liveness::Liveness,
    report::{Check, CheckOptions, parameter, report},
};
use crate::telemetry::{Health, LogControl, LogLevels};

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json; charset=utf-8";

/// The response to a probe or to a request for metrics, complete in memory.
pub type ProbeResponse = Response<Full<Bytes>>;

/// The routes of a listener.
pub struct Routes {
    health: Health,
    /// The path of the liveness endpoint and its handlers; it takes precedence over all other paths.
    liveness: Option<(String, Liveness)>,
    /// The levels of the log.
    log: Option<Arc<dyn LogControl>>,
}

/// The path of the levels of the log.
pub(super) const LOG: &str = "/debug/log";

impl Routes {
    /// Serves health and metrics.
    pub fn new(health: Health) -> Self {
        Routes { health, liveness: None, log: None }
    }

    /// Adds the probe handlers, on exactly this path.
    #[must_use]
    pub fn with_liveness(self, path: String, liveness: Liveness) -> Self {
        Routes { liveness: Some((path, liveness)), ..self }
    }

    /// Adds the levels of the log, for clients on this machine.
    #[must_use]
    pub fn with_log(self, log: Arc<dyn LogControl>) -> Self {
        Routes { log: Some(log), ..self }
    }

    /// Returns the response to a request for the levels of the log; PUT changes them first.
    pub fn levels(&self, method: &Method, uri: &Uri, is_local: bool) -> ProbeResponse {
        let Some(log) = &self.log else {
            return answer(StatusCode::NOT_FOUND, TEXT, self.contents());
        };
        if !is_local {
            let text = "only from this machine: use kubectl port-forward\n";
            return answer(StatusCode::FORBIDDEN, TEXT, text);
        }
        match *method {
            Method::GET | Method::HEAD => {}
            Method::PUT => {
                let query = uri.query().unwrap_or_default();
                let script = parameter(query, "script");
                let level = parameter(query, "level").unwrap_or_default();
                if let Err(problem) = log.set_level(script.as_deref(), &level) {
                    return answer(StatusCode::BAD_REQUEST, TEXT, format!("{problem}\n"));
                }
                let of = script.map(|it| format!(" of {}", it.escape_debug())).unwrap_or_default();
                tracing::info!(target: "kopf.probes", "The level of log lines{of} was set to {level}.");
            }
            _ => {
                let mut refused =
                    answer(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET, HEAD and PUT\n");
                refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, PUT"));
                return refused;
            }
        }
        let LogLevels { level, scripts } = log.levels();
        let levels = serde_json::json!({ "level": level, "scripts": scripts });
        answer(StatusCode::OK, JSON, format!("{levels}\n"))
    }

    /// Returns the response to a request.
    pub async fn answer(&self, method: &Method, uri: &Uri) -> ProbeResponse {
        let liveness = self.liveness.as_ref().filter(|(path, _)| path == uri.path());
        let check = match uri.path() {
            "/healthz" => Some(Check::Alive("healthz")),
            "/livez" => Some(Check::Alive("livez")),
            "/readyz" => Some(Check::Ready),
            _ => None,
        };
        let is_known = liveness.is_some() || check.is_some() || uri.path() == "/metrics";
        if !is_known {
            return answer(StatusCode::NOT_FOUND, TEXT, self.contents());
        }
        if method != Method::GET && method != Method::HEAD {
            let mut refused = answer(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET and HEAD\n");
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refused;
        }
        match (liveness, check) {
            (Some((_, liveness)), _) => live(liveness).await,
            (None, Some(check)) => self.judge(check, uri.query().unwrap_or_default()),
            (None, None) => {
                let text = exposition::expose(&self.health, Instant::now());
                answer(StatusCode::OK, exposition::CONTENT_TYPE, text)
            }
        }
    }

    fn judge(&self, check: Check, query: &str) -> ProbeResponse {
        let report =
            report(check, &self.health.parts(), &CheckOptions::parse(query), Instant::now());
        let status = if report.is_fine { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        answer(status, TEXT, report.text)
    }

    fn contents(&self) -> String {
        let own = self.liveness.as_ref().map(|(path, _)| format!("{path}, ")).unwrap_or_default();
        format!("not found; available: {own}/healthz, /livez, /readyz, /metrics\n")
    }
}

async fn live(liveness: &Liveness) -> ProbeResponse {
    match liveness.ask().await {
        Ok(results) => answer(StatusCode::OK, JSON, results),
        Err(error) => {
            tracing::error!(target: "kopf.probes", "The liveness probe failed: {error}");
            answer(StatusCode::INTERNAL_SERVER_ERROR, TEXT, format!("{error}\n"))
        }
    }
}

fn answer(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> ProbeResponse {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
