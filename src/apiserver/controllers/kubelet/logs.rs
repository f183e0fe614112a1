//! Logs of simulated containers, generated from the status of the Pod.

use jiff::Timestamp;
use serde_json::Value;

use super::pods::annotation;
use crate::{
    Refusal,
    object::{self, text},
};

/// The parameters of a request for logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogParams {
    /// The name of the container; optional if there is only one.
    pub container: Option<String>,
    /// The previous run instead of the current one.
    pub previous: bool,
    /// Only lines from this time on, RFC 3339.
    pub since_time: Option<String>,
    /// Only lines of this many last seconds.
    pub since_seconds: Option<i64>,
    /// Only this many last lines.
    pub tail_lines: Option<i64>,
    /// The maximum size of the response.
    pub limit_bytes: Option<i64>,
    /// Every line starts with its time.
    pub timestamps: bool,
}

/// The lines of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logs {
    /// The lines, without line breaks.
    pub lines: Vec<String>,
    /// No lines will follow. Otherwise, a client that follows the log must request it again after a change of the Pod, and skip the
    /// lines that it has received.
    pub complete: bool,
}

/// Returns the log of one container. `now` is the time of the server.
///
/// # Errors
/// Fails if the container does not exist or has not run yet.
pub fn logs(pod: &Value, params: &LogParams, now: &str) -> Result<Logs, Refusal> {
    let (spec, status) = find(pod, params.container.as_deref())?;
    let name = text(spec, "/name");
    let terminated =
        status.pointer(if params.previous { "/lastState/terminated" } else { "/state/terminated" });
    if params.previous && terminated.is_none() {
        let message = format!(
            "previous terminated container {name:?} in pod {:?} not found",
            object::meta(pod, "name")
        );
        return Err(Refusal::bad_request(message));
    }
    let running = status.pointer("/state/running").filter(|_| !params.previous);
    // Between two runs, the log of the last one is shown.
    let last = status.pointer("/lastState/terminated");
    let Some(run) = terminated.or(running).or(last) else {
        let reason = text(status, "/state/waiting/reason");
        let reason = if reason.is_empty() { "ContainerCreating" } else { reason };
        let message = format!(
            "container {name:?} in pod {:?} is waiting to start: {reason}",
            object::meta(pod, "name")
        );
        return Err(Refusal::bad_request(message));
    };
    let lines = lines_of_run(pod, spec, run);
    let ended = matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
    let complete = params.previous || ended || (running.is_none() && object::deleting(pod));
    Ok(Logs { lines: chosen(lines, params, now), complete })
}

/// Returns the requested container and its status.
fn find<'a>(pod: &'a Value, wanted: Option<&str>) -> Result<(&'a Value, &'a Value), Refusal> {
    let all = |pointer: &str| pod.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let names =
        |pointer: &str| all(pointer).map(|it| text(it, "/name").to_owned()).collect::<Vec<_>>();
    let pod_name = object::meta(pod, "name");
    let containers = names("/spec/containers");
    let name = match (wanted.filter(|it| !it.is_empty()), containers.as_slice()) {
        (Some(wanted), _) => wanted.to_owned(),
        (None, [only]) => only.clone(),
        (None, _) => {
            let mut message = format!(
                "a container name must be specified for pod {pod_name}, choose one of: [{}]",
                containers.join(" ")
            );
            let init = names("/spec/initContainers");
            if !init.is_empty() {
                let names = init.join(" ");
                message = format!("{message} or one of the init containers: [{names}]");
            }
            return Err(Refusal::bad_request(message));
        }
    };
    let is_it = |it: &&Value| text(it, "/name") == name;
    let mut specs = all("/spec/containers").chain(all("/spec/initContainers"));
    let Some(spec) = specs.find(is_it) else {
        return Err(Refusal::bad_request(format!(
            "container {name} is not valid for pod {pod_name}"
        )));
    };
    let mut statuses = all("/status/containerStatuses").chain(all("/status/initContainerStatuses"));
    Ok((spec, statuses.find(is_it).unwrap_or(&Value::Null)))
}

/// Returns the lines of one run of a container, with their times.
fn lines_of_run(pod: &Value, spec: &Value, run: &Value) -> Vec<(String, String)> {
    let started = text(run, "/startedAt");
    let at = |line: String| (started.to_owned(), line);
    let list = |field: &str| {
        let words = spec.get(field).and_then(Value::as_array);
        words.into_iter().flatten().map(Value::to_string).collect::<Vec<_>>().join(" ")
    };
    let (command, arguments) = (list("command"), list("args"));
    let command =
        if command.is_empty() { "(the entry point of the image)".into() } else { command };
    let mut lines = vec![
        at(format!(
            "started: image {:?}; kopf only pretends, nothing is executed",
            text(spec, "/image")
        )),
        at(format!("command: {command} {arguments}").trim_end().to_owned()),
    ];
    let more = annotation(pod, "dev.kopf/log").unwrap_or_default();
    lines.extend(more.lines().map(|it| at(it.into())));
    if let Some(code) = run.get("exitCode") {
        lines.push((text(run, "/finishedAt").into(), format!("exited with code {code}")));
    }
    lines
}

fn chosen(lines: Vec<(String, String)>, params: &LogParams, now: &str) -> Vec<String> {
    let time = |text: &str| text.parse::<Timestamp>().ok();
    let since = params.since_time.as_deref().and_then(time).or_else(|| {
        let seconds = time(now)?.as_second().checked_sub(params.since_seconds?)?;
        Timestamp::from_second(seconds).ok()
    });
    let recent = lines.into_iter().filter(|(at, _)| match (since, time(at)) {
        (Some(since), Some(at)) => at >= since,
        _ => true,
    });
    let texts =
        recent.map(|(at, line)| if params.timestamps { format!("{at} {line}") } else { line });
    let mut lines: Vec<String> = texts.collect();
    if let Some(count) = params.tail_lines.and_then(|it| usize::try_from(it).ok()) {
        lines.drain(..lines.len().saturating_sub(count));
    }
    if let Some(limit) = params.limit_bytes.and_then(|it| usize::try_from(it).ok()) {
        let mut used = 0_usize;
        lines.retain(|it| {
            used = used.saturating_add(it.len() + 1);
            used <= limit
        });
    }
    lines
}
