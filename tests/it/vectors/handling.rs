//! The suites about the external effects of handlers and patches: activities and sequences of PATCH requests.

use std::sync::Arc;

use parking_lot::Mutex;

use kopf::{
    call::{Logger, Memo},
    cluster::KubeCluster,
    handling::{
        activities::{self, Activity},
        patching::{PatchError, PatchResponses, Patcher},
        run::HandlerRunner,
    },
    logic::{
        change::patch::{Patch, Transformation},
        object::{Object, resource::Resource},
    },
    ports::{Clock, NativeLogins},
    settings::Settings,
    testing::{self, EXAMPLES, LogCapture, NativeScripts, run_paused},
};
use kopf_apiserver::ApiServer;
use serde_json::{Map, Value, json};
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::{Vector, catalogue, run, same, state::patches, without_uid};

#[test]
fn activities_run_in_rounds() {
    run("activities", |vector| run_paused(check_activity(vector)));
}

async fn check_activity(vector: &Vector) -> Result<(), String> {
    let kind = match vector.input["activity"].as_str().unwrap_or_default() {
        "authentication" => "login",
        other => other,
    };
    let scripts = NativeScripts::default();
    let (start, calls) = (Instant::now(), Arc::new(Mutex::new(Vec::new())));
    let mut handlers = Vec::new();
    for declared in vector.input["handlers"].as_array().into_iter().flatten() {
        let mut declared = catalogue::map(declared);
        let runs = declared.shift_remove("runs").unwrap_or_default();
        declared.insert("on".into(), kind.into());
        let calls = Arc::clone(&calls);
        let function = scripts.handler("fn", move |it| {
            let retry = it.attempt.map_or(0, |it| it.retry);
            let seconds = start.elapsed().as_secs_f64();
            let mut calls = calls.lock();
            let count = calls.iter().filter(|call: &&Value| call[1] == *it.handler.id).count();
            calls.push(json!([seconds, &*it.handler.id, retry]));
            let runs = runs.as_array().cloned().unwrap_or_default();
            let behaviour = runs.get(count).or(runs.last()).cloned().unwrap_or_default();
            Box::pin(async move {
                time::sleep(catalogue::seconds(&behaviour["duration"]).unwrap_or_default()).await;
                catalogue::ended(&behaviour)
            })
        });
        let mut declaration = catalogue::declaration(&Value::Object(declared));
        declaration.function = function;
        handlers.push(Arc::new(
            kopf::logic::handlers::declare::declare(declaration).expect("a declaration"),
        ));
    }
    let settings = Settings::default();
    let activity = Activity {
        kind: catalogue::kind(kind),
        handlers,
        settings: Arc::default(),
        memo: Memo::default(),
        logins: NativeLogins::default(),
        server: None,
        scheduled: None,
    };
    let services = Arc::default();
    let (scripts, settings) = (&scripts, &settings.execution);
    let runner = HandlerRunner { scripts, clock: Clock::system(), settings, services: &services };
    let runner = HandlerRunner { clock: Clock::starting_at(jiff::Timestamp::UNIX_EPOCH), ..runner };
    let until = catalogue::seconds(&vector.input["until"]).unwrap_or_default();
    let ended = time::timeout(until, activities::run(runner, &activity)).await;
    let finished = ended.is_ok().then(|| start.elapsed().as_secs_f64());
    let calls = Value::Array(calls.lock().clone());
    same("calls", &calls, &vector.expected["calls"])?;
    same("finished", &json!(finished), &vector.expected["finished"])?;
    match ended {
        Ok(Ok(results)) => same("results", &json!(results), &vector.expected["results"]),
        Ok(Err(error)) => {
            let expected = vector.expected["cause"][1].as_str().unwrap_or_default();
            let first = error.failures.values().next().cloned().unwrap_or_default();
            if first == expected { Ok(()) } else { Err(format!("failed with {error}")) }
        }
        Err(_elapsed) => Ok(()),
    }
}

#[test]
fn patching_requests() {
    run("patching-requests", |vector| run_paused(check_patching(vector)));
}

async fn check_patching(vector: &Vector) -> Result<(), String> {
    let input = &vector.input;
    let mut definition = testing::examples();
    definition.status_subresource = input["status_subresource"] == true;
    let server = ApiServer::builder().stamps(false).bookmarks(None).resource(definition).build();
    let created =
        server.create(EXAMPLES, complete(&input["body"])).map_err(|it| format!("{it:?}"))?;
    if input["missing"] == true {
        remove(&server, &created);
    }
    server.inject(input["inject"].as_array().into_iter().flatten().filter_map(status));
    let original = if input["original"].is_null() {
        if input["missing"] == true { input["body"].clone() } else { created }
    } else {
        input["original"].clone()
    };
    let (patched, warned) = send(&server, input, &Arc::new(Object::from_value(original))).await;
    compare_requests(&server, vector)?;
    same("inconsistencies", &warned.into(), &vector.expected["inconsistencies"])?;
    let name = input["body"]["metadata"]["name"].as_str().unwrap_or_default();
    let last = server.get(EXAMPLES, "ns1", name);
    let expected = Some(&vector.expected["final"]).filter(|it| !it.is_null()).map(complete);
    same("final", &json!(last), &json!(expected))?;
    match patched {
        Err(_) if vector.expects_error() => Ok(()),
        Err(error) => Err(error.to_string()),
        Ok(_) if vector.expects_error() => Err("an error is expected".into()),
        Ok(patched) => {
            let remaining = vector.expected["remaining"].as_array().map_or(0, Vec::len);
            if patched.left.len() != remaining {
                return Err(format!("left over: {:?}", patched.left));
            }
            same("version", &json!(version(&patched)), &vector.expected["version"])
        }
    }
}

/// Returns a body with a kind: unlike the emulation behind the vectors, the server requires it, as the real one does.
fn complete(body: &Value) -> Value {
    let mut body = body.clone();
    let (version, kind) = (Value::from("kopf.dev/v1"), Value::from("KopfExample"));
    for (key, value) in [("apiVersion", version), ("kind", kind)] {
        body.as_object_mut().expect("a body").entry(key).or_insert(value);
    }
    body
}

/// Deletes an object even if it has finalizers.
fn remove(server: &ApiServer, object: &Value) {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let free = json!({ "metadata": { "finalizers": null } });
    drop(server.merge(EXAMPLES, "ns1", name, free));
    drop(server.delete(EXAMPLES, "ns1", name));
}

fn status(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|it| u16::try_from(it).ok())
}

async fn send(
    server: &ApiServer,
    input: &Value,
    object: &Arc<Object>,
) -> (Result<Sent, PatchError>, bool) {
    let mut settings = Settings::default();
    settings.networking.error_backoffs = Vec::new();
    let cluster = KubeCluster::over(testing::client(server), Arc::new(settings));
    let scripts = NativeScripts::default();
    let resource = Resource {
        subresources: (input["status_subresource"] == true)
            .then(|| "status".to_owned())
            .into_iter()
            .collect(),
        ..catalogue::kopfexamples()
    };
    let transformations = input["fns"].as_array().into_iter().flatten().cloned().map(|declared| {
        Transformation::Scripted(scripts.transformation("fn", move |mut body| {
            patches::call(&mut body, &declared);
            body
        }))
    });
    let mut patch = Patch {
        merge: input["merge"].as_object().cloned().unwrap_or_default(),
        transformations: transformations.collect(),
        is_main_applied: false,
    };
    let log = LogCapture::of("kopf.objects");
    let logger = Logger::of_object(kopf::call::LoggerKind::Local, Arc::default());
    let unedited = CancellationToken::new();
    let patcher = Patcher {
        persistence: &kopf::settings::PersistenceSettings::default(),
        cluster: &cluster,
        scripts: &scripts,
        resource: &resource,
        logger: &logger,
        seen: None,
        events: None,
        edits: &unedited,
    };
    let mut received = PatchResponses::default();
    let sent = patcher.apply_once(object, &mut patch, &mut received).await;
    // The caller fails the handlers whose functions are refused; the reference fails the whole cycle.
    let sent = match (received.refused.pop(), sent) {
        (Some(refused), _) => Err(refused.error),
        // The version of a status did not match: the caller sends it again, the reference fails the whole cycle here, too.
        (None, Ok(it)) if it.is_outdated && !patch.merge.is_empty() => Err(PatchError::Conflict),
        (None, sent) => sent,
    };
    let sent = sent.map(|it| {
        if it.is_gone {
            Sent { object: None, left: Vec::new() }
        } else {
            Sent { object: received.object, left: patch.transformations }
        }
    });
    (sent, log.has("Merge-patching finished with inconsistencies"))
}

/// The result of a patch: the last response, and the transformations that had a conflict.
struct Sent {
    object: Option<Arc<Object>>,
    left: Vec<Transformation>,
}

fn compare_requests(server: &ApiServer, vector: &Vector) -> Result<(), String> {
    let requests = server.requests();
    let requests = requests.iter().filter(|it| it.method == "PATCH").map(|it| {
        let mut request = Map::new();
        let subresource = it.path.ends_with("/status").then_some("status");
        request.insert("subresource".into(), json!(subresource));
        request.insert("content_type".into(), it.content_type.as_str().into());
        request.insert("payload".into(), comparable(&without_uid(it.json())));
        request.insert("status".into(), it.status.into());
        if let Some(version) = &it.version {
            request.insert("response_rv".into(), version.as_str().into());
        }
        Value::Object(request)
    });
    let mut expected = vector.expected["requests"].clone();
    for request in expected.as_array_mut().into_iter().flatten() {
        request["payload"] = comparable(&request["payload"]);
    }
    same("requests", &requests.collect(), &expected)
}

/// Normalizes a payload: operations on lists can be written in several ways; what counts is the guard, the fields, and the final
/// object.
fn comparable(payload: &Value) -> Value {
    let Some(operations) = payload.as_array() else { return payload.clone() };
    let field = |it: &Value| {
        let path = it["path"].as_str().unwrap_or_default();
        path.split('/').take(3).collect::<Vec<_>>().join("/")
    };
    let mut fields = operations.iter().skip(1).map(field).collect::<Vec<_>>();
    fields.sort();
    fields.dedup();
    json!({ "guard": operations.first(), "fields": fields })
}

/// Returns the version to wait for, as the vectors write it.
fn version(patched: &Sent) -> Option<String> {
    let header = patched.object.as_ref()?.header();
    let version = header.resource_version.clone()?;
    Some(if header.is_released() { format!("{version}~which~never~arrives") } else { version })
}
