//! The golden cycles as a contract of the server: it must respond to their recorded patches and actions as recorded.

use super::*;

const CYCLES: &str = include_str!("../../../../tests/vectors/cycles.json");

#[tokio::test(start_paused = true)]
async fn recorded_requests_get_the_recorded_responses() {
    let suite: Value = serde_json::from_str(CYCLES).expect("a suite is JSON");
    let mut repeated = 0;
    let mut failures = Vec::new();
    for vector in suite["vectors"].as_array().expect("vectors") {
        if is_repeatable(vector) {
            repeated += 1;
            if let Err(problem) = repeat(vector).await {
                failures.push(format!("{}: {problem}", vector["id"]));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(repeated > 50, "only {repeated} cycles");
}

/// Returns whether a cycle can be replayed. Records do not contain the object of a patch, and edits from inside of handlers; nobody
/// watches a stopped operator.
fn is_repeatable(vector: &Value) -> bool {
    let input = &vector["input"];
    let objects = items(&input["objects"]).count();
    let created = items(&input["actions"]).filter(|it| it[1] == "create").count();
    let stopped = items(&input["actions"]).any(|it| it[1] == "stop");
    let edited = input["handlers"].to_string().contains("\"edit\"");
    objects <= 1 && (objects == 0 || created == 0) && !stopped && !edited
}

async fn repeat(vector: &Value) -> Result<(), String> {
    let input = &vector["input"];
    let status_subresource = input["status_subresource"] == true;
    let def = ResourceDef { status_subresource, ..kex() };
    let cluster = Cluster::new(ApiServer::builder().stamps(false), def);
    let server = &cluster.server;
    for object in items(&input["objects"]) {
        server.create(KEX, object.clone()).map_err(|it| it.to_string())?;
    }
    let statuses = items(&input["inject"]).filter_map(Value::as_u64);
    server.inject(statuses.filter_map(|it| u16::try_from(it).ok()));
    let mut watch = cluster.watch(&format!("&resourceVersion={}", server.revision())).await;
    let mut seen = Vec::new();
    for record in items(&vector["expected"]["trace"]) {
        let moment = Duration::from_secs_f64(record["t"].as_f64().unwrap_or_default());
        tokio::time::advance(moment.saturating_sub(cluster.start.elapsed())).await;
        if let Some(action) = record.get("action") {
            act(server, action)?;
        } else if let Some(patch) = record.get("patch") {
            same(&send_again(&cluster, patch).await, patch)?;
        } else if let Some(event) = record.get("watch") {
            seen.push(event.clone());
        }
    }
    for expected in seen {
        let event = watch.event().await.unwrap_or_default();
        let metadata = &event["object"]["metadata"];
        same(&json!([event["type"], metadata["name"], metadata["resourceVersion"]]), &expected)?;
    }
    same(&server.list(KEX).into(), &vector["expected"]["objects"])
}

fn act(server: &ApiServer, action: &Value) -> Result<(), String> {
    let name = action[1].as_str().unwrap_or_default();
    let acted = match action[0].as_str() {
        Some("create") => server.create(KEX, action[1].clone()).map(drop),
        Some("edit") => server.merge(KEX, "ns1", name, action[2].clone()).map(drop),
        Some("delete") => server.delete(KEX, "ns1", name),
        _ => return Err(format!("unknown action {action}")),
    };
    acted.map_err(|it| it.to_string())
}

/// Sends a recorded patch again. Returns the record of its response.
async fn send_again(cluster: &Cluster, patch: &Value) -> Value {
    let path = match patch["subresource"].as_str() {
        Some(subresource) => format!("{N1}/{subresource}"),
        None => N1.to_owned(),
    };
    let kind = patch["content_type"].as_str().unwrap_or_default();
    let (status, answer) = cluster.patch(&path, kind, patch["payload"].clone()).await;
    let mut record = patch.clone();
    record["status"] = json!(status);
    if status == 200 {
        record["response_rv"] = json!(version(&answer));
    }
    record
}

fn same(actual: &Value, expected: &Value) -> Result<(), String> {
    if actual == expected { Ok(()) } else { Err(format!("got {actual}, expected {expected}")) }
}

fn items(array: &Value) -> impl Iterator<Item = &Value> {
    array.as_array().into_iter().flatten()
}
