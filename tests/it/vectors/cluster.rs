//! Requests and streams against the golden vectors, with scripted responses on a paused clock.

use std::{sync::Arc, time::Duration};

use futures::StreamExt as _;
use http::Request;
use kopf::{
    cluster::KubeCluster,
    logic::object::reason::EventType,
    ports::{ApiError, Cluster as _, ErrorClass, StreamEvent, StreamTarget},
    settings::{Selectors, Settings},
    testing::{LogCapture, run_paused},
};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout};

use super::catalogue::kopfexamples;
use super::{Vector, run, same};
use crate::cluster::{Chunk, Reply, scripted};

#[test]
fn api_retries() {
    run("api-retries", |vector| run_paused(check_retries(vector)));
}

#[test]
fn watch_streams() {
    run("watch-streams", |vector| run_paused(check_stream(vector)));
}

async fn check_retries(vector: &Vector) -> Result<(), String> {
    let input = &vector.input;
    let mut settings = Settings::default();
    // Kopf's default.
    settings.watching.chunk_size = None;
    let backoffs = input.get("per_call_backoffs").or_else(|| input.get("error_backoffs"));
    if let Some(backoffs) = backoffs {
        let list = backoffs.as_array().cloned().unwrap_or_else(|| vec![backoffs.clone()]);
        settings.networking.error_backoffs = list.iter().filter_map(seconds).collect();
    }
    settings.networking.enforce_retry_after = input["enforce_retry_after"] == true;
    let times = Arc::new(Mutex::new(Vec::new()));
    let (start, seen) = (Instant::now(), Arc::clone(&times));
    let replies = input["responses"].as_array().cloned().unwrap_or_default();
    let client = scripted(move |_request| {
        let mut seen = seen.lock();
        seen.push(start.elapsed());
        reply(&replies[(seen.len() - 1).min(replies.len() - 1)])
    });
    let log = LogCapture::of("kopf.client");
    let result = KubeCluster::over(client, Arc::new(settings)).list(&kopfexamples(), None).await;
    let times = times.lock().clone();
    let sleeps: Vec<_> = times.windows(2).map(|it| it[1].saturating_sub(it[0]).as_secs()).collect();
    let result = result.err().map_or_else(|| "ok".into(), |it| class(&it));
    same("result", &json!(result), &vector.expected["result"])?;
    same("attempts", &json!(times.len()), &vector.expected["attempts"])?;
    same("sleeps", &json!(sleeps), &vector.expected["sleeps"])?;
    same("logs", &json!(request_logs(&log)), &plain_logs(&vector.expected["logs"]))
}

fn seconds(value: &Value) -> Option<Duration> {
    value.as_f64().map(Duration::from_secs_f64)
}

fn reply(response: &Value) -> Reply {
    if let Some(status) = response.as_u64() {
        let status = u16::try_from(status).expect("a status");
        return if status == 200 { Reply::ok(json!({"items": []})) } else { Reply::status(status) };
    }
    match response.as_str() {
        Some("conn") => Reply::Refuse("conn"),
        Some("timeout") => Reply::Refuse("timeout"),
        Some("payload") => Reply::Pieces(vec![(Duration::ZERO, Chunk::Break)]),
        Some(other) => panic!("{other} is not known"),
        None => {
            let status = response["status"].as_u64().and_then(|it| u16::try_from(it).ok());
            let header = response["headers"]["Retry-After"].as_str().map(str::to_owned);
            let headers = header.map(|it| ("Retry-After", it)).into_iter().collect();
            Reply::Whole(status.expect("a status"), headers, response["body"].clone())
        }
    }
}

/// Returns the reference's name of such an error.
fn class(error: &ApiError) -> String {
    let name = match error.status {
        Some(401) => "APIUnauthorizedError",
        Some(403) => "APIForbiddenError",
        Some(404) => "APINotFoundError",
        Some(409) => "APIConflictError",
        Some(422) => "APIUnprocessableEntityError",
        Some(429) => "APITooManyRequestsError",
        Some(400..=499) => "APIClientError",
        Some(500..=599) => "APIServerError",
        Some(_) => "APIError",
        None if error.message.contains("interrupted") => "ClientPayloadError",
        None if error.message.contains("timeout") => "TimeoutError",
        None => "ClientConnectionError",
    };
    let retried = error.class == ErrorClass::Retry;
    let expected =
        matches!(name, "APITooManyRequestsError" | "APIServerError") || error.status.is_none();
    assert_eq!(retried, expected, "the class of {name}");
    name.into()
}

/// Returns the log of requests. Errors are worded differently here, so only the part before them must be equal.
fn request_logs(log: &LogCapture) -> Vec<Value> {
    let lines = log.lines();
    let path = "/apis/kopf.dev/v1/kopfexamples";
    let text = |it: &str| it.split(" -> ").next().unwrap_or_default().replace(path, "URL");
    lines.iter().map(|it| json!([it.python_level(), text(&it.message)])).collect()
}

fn plain_logs(logs: &Value) -> Value {
    let text = |it: &Value| {
        let it = it.as_str().unwrap_or_default().split(" -> ").next().unwrap_or_default();
        it.replace("http://host/path", "URL")
    };
    logs.as_array().into_iter().flatten().map(|it| json!([it[0], text(&it[1])])).collect()
}

async fn check_stream(vector: &Vector) -> Result<(), String> {
    let input = &vector.input;
    let settings = Arc::new(watching(&input["settings"])?);
    let requests = Arc::new(Mutex::new(Vec::new()));
    let client = scripted(stream_script(input, Arc::clone(&requests)));
    let target = StreamTarget {
        extent: kopf::ports::Extent::Whole,
        resource: Arc::new(kopfexamples()),
        namespace: input["namespace"].as_str().map(Into::into),
        settings: Arc::clone(&settings),
        restrictions: None,
    };
    let log = LogCapture::of("kopf.watch");
    let start = Instant::now();
    let mut stream = KubeCluster::over(client, settings).stream(target);
    let (mut events, mut raised) = (Vec::new(), Value::Null);
    let collecting = async {
        while let Some(item) = stream.next().await {
            match item {
                Ok(event) => events.extend(told(start, &event)),
                // The reference ends here; this implementation continues, as a separate test shows.
                Err(error) => {
                    raised = json!(class(&error));
                    return;
                }
            }
        }
    };
    let until = seconds(&input["until"]).unwrap_or_default();
    // Just before the end: events at that very time are not compared.
    let ended = timeout(until.saturating_sub(Duration::from_millis(20)), collecting).await.is_ok();
    if ended {
        drop(stream);
    }
    let requests = requests.lock().clone();
    same("requests", &json!(requests), &vector.expected["requests"])?;
    same("events", &json!(events), &without_bookmarks(&vector.expected["events"]))?;
    same("raised", &raised, &vector.expected["raised"])?;
    let logs = log.lines().into_iter().map(|it| {
        json!([
            tenths(it.at.duration_since(start).as_secs_f64()),
            it.python_level(),
            unquoted(&it.message)
        ])
    });
    let expected = vector.expected["logs"].as_array().into_iter().flatten();
    let expected: Vec<_> = expected
        .map(|it| json!([it[0], it[1], unquoted(it[2].as_str().unwrap_or_default())]))
        .collect();
    same("logs", &logs.collect(), &json!(expected))
}

/// Normalizes quoted events: they are JSON here, and Python there.
fn unquoted(text: &str) -> String {
    text.replace(['\'', '"', ' '], "")
}

fn tenths(seconds: f64) -> f64 {
    (seconds * 10.0).round() / 10.0
}

fn told(start: Instant, event: &StreamEvent) -> Option<Value> {
    let at = tenths(start.elapsed().as_secs_f64());
    match event {
        StreamEvent::Listed => Some(json!([at, "LISTED", null, null])),
        StreamEvent::Object(kind, object) => {
            let header = object.header();
            let kind = kind.map(EventType::as_str);
            Some(json!([at, kind, header.name, header.resource_version]))
        }
        // The reference does not have these.
        StreamEvent::Listing | StreamEvent::Alive => None,
    }
}

/// Removes bookmarks, which the stream handles internally.
fn without_bookmarks(events: &Value) -> Value {
    events.as_array().into_iter().flatten().filter(|it| it[1] != "BOOKMARK").cloned().collect()
}

fn watching(given: &Value) -> Result<Settings, String> {
    let mut settings = Settings::default();
    // Errors of these vectors are those after all attempts.
    settings.networking.error_backoffs.clear();
    // Kopf's default.
    settings.watching.chunk_size = None;
    for (name, value) in given.as_object().into_iter().flatten() {
        match name.as_str() {
            "reconnect_backoff" => {
                settings.watching.reconnect_backoff = seconds(value).unwrap_or_default();
            }
            "inactivity_timeout" => {
                settings.watching.inactivity_timeout = seconds(value).unwrap_or_default();
            }
            "server_timeout" => settings.watching.server_timeout = seconds(value),
            "chunk_size" => {
                settings.watching.chunk_size = value.as_u64().and_then(|it| u32::try_from(it).ok());
            }
            "initial_streaming" => settings.watching.initial_streaming = value == true,
            "connect_timeout" => settings.watching.connect_timeout = seconds(value),
            "client_timeout" => settings.watching.client_timeout = seconds(value),
            "label_selectors" => settings.watching.label_selectors = selectors(value),
            "field_selectors" => settings.watching.field_selectors = selectors(value),
            "shard_selectors" => settings.watching.shard_selectors = selectors(value),
            other => return Err(format!("there is no setting {other}")),
        }
    }
    Ok(settings)
}

/// Reads `[[selector, text], …]`; a selector of several arguments is a list.
fn selectors(value: &Value) -> Selectors {
    let key = |it: &Value| match it.as_array() {
        Some(parts) => parts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("/"),
        None => it.as_str().unwrap_or_default().to_owned(),
    };
    let pair = |it: &Value| (key(&it[0]), it[1].as_str().unwrap_or_default().to_owned());
    value.as_array().into_iter().flatten().map(pair).collect()
}

/// Returns responses: lists and watches each have a separate order; the last response is repeated.
fn stream_script(
    input: &Value,
    requests: Arc<Mutex<Vec<Value>>>,
) -> impl FnMut(&Request<kube::client::Body>) -> Reply + Send + 'static {
    let lists = input["list"].as_array().cloned().unwrap_or_default();
    let watches = input["watch"].as_array().cloned().unwrap_or_default();
    let start = Instant::now();
    let (mut listed, mut watched) = (0, 0);
    move |request| {
        let query: Map<String, Value> = request
            .uri()
            .query()
            .into_iter()
            .flat_map(|it| it.split('&'))
            .filter_map(|it| it.split_once('='))
            .map(|(key, value)| (key.to_owned(), json!(decoded(value))))
            .collect();
        let is_watch = query.contains_key("watch");
        let at = tenths(start.elapsed().as_secs_f64());
        let kind = if is_watch { "watch" } else { "list" };
        requests.lock().push(json!([at, kind, query]));
        let (script, done) =
            if is_watch { (&watches, &mut watched) } else { (&lists, &mut listed) };
        let step = &script[(*done).min(script.len() - 1)];
        *done += 1;
        if is_watch { watch_reply(step) } else { list_reply(step) }
    }
}

/// Decodes what occurs in the selectors of the vectors.
fn decoded(value: &str) -> String {
    [
        ("%2C", ","),
        ("%3D", "="),
        ("%2F", "/"),
        ("%21", "!"),
        ("%20", " "),
        ("%28", "("),
        ("%29", ")"),
    ]
    .into_iter()
    .fold(value.to_owned(), |text, (code, plain)| text.replace(code, plain))
}

fn list_reply(step: &Value) -> Reply {
    match step["error"].as_str() {
        None => {}
        Some("payload") => return Reply::Pieces(vec![(Duration::ZERO, Chunk::Break)]),
        Some(name) => return refusal(name),
    }
    let items = step["items"].as_array().into_iter().flatten();
    let items: Vec<_> = items.map(|it| object(&it[0], &it[1])).collect();
    let metadata = json!({"resourceVersion": step["rv"], "continue": step["continue"]});
    Reply::ok(json!({"kind": "KopfExampleList", "metadata": metadata, "items": items}))
}

fn object(name: &Value, version: &Value) -> Value {
    let mut metadata = json!({"resourceVersion": version});
    if !name.is_null() {
        metadata["name"] = name.clone();
    }
    json!({"metadata": metadata})
}

fn refusal(name: &str) -> Reply {
    match name {
        "conn" => Reply::Refuse("conn"),
        "timeout" => Reply::Refuse("timeout"),
        "APIClientError" => Reply::status(400),
        "APIUnauthorizedError" => Reply::status(401),
        "APIForbiddenError" => Reply::status(403),
        "APINotFoundError" => Reply::status(404),
        "APIConflictError" => Reply::status(409),
        "APIUnprocessableEntityError" => Reply::status(422),
        "APITooManyRequestsError" => Reply::status(429),
        "APIServerError" => Reply::status(500),
        other => panic!("{other} is not known"),
    }
}

fn watch_reply(steps: &Value) -> Reply {
    let mut pieces = Vec::new();
    for step in steps.as_array().into_iter().flatten() {
        let pause = seconds(&step["after"]).unwrap_or_default();
        let piece = if let Some(event) = step["event"].as_array() {
            let mut object = object(&event[1], &event[2]);
            if event[0] == "BOOKMARK" {
                // The reference does not read it, and the vectors omit it; servers write it.
                object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
            }
            let line = json!({"type": event[0], "object": object});
            Chunk::Data(format!("{line}\n"))
        } else if let Some(code) = step["error_event"].as_u64() {
            let line = json!({"type": "ERROR", "object": {"kind": "Status", "code": code}});
            Chunk::Data(format!("{line}\n"))
        } else {
            match step["end"].as_str().unwrap_or_default() {
                "eof" => {
                    pieces.push((pause, Chunk::Data(String::new())));
                    return Reply::Pieces(pieces);
                }
                "hang" => Chunk::Hang,
                "conn" | "payload" | "timeout" => Chunk::Break,
                name => return refusal(name),
            }
        };
        pieces.push((pause, piece));
    }
    pieces.push((Duration::ZERO, Chunk::Hang));
    Reply::Pieces(pieces)
}
