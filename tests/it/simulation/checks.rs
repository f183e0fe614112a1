//! The conditions that must hold when no fault has happened for some time, and after the operator has stopped.

use std::{collections::BTreeMap, time::Duration};

use kopf::{
    telemetry::HealthState,
    testing::{EXAMPLES, RunningOperator, pass},
};
use serde_json::Value;
use tokio::time::{self, Instant};

use super::{
    history::{OF_CREATION, OF_DELETION, OF_UPDATE, STAYS},
    levels,
    natives::{self, CONDITION, INTERVAL},
    operators::Process,
    stored::Stored,
    wire::NAMESPACE,
    world::World,
};

/// Checks the objects, the handlers in the background, and the memory of the operator.
pub(super) async fn settled(world: &mut World) {
    if let Some(levels) = world.levels.clone() {
        check_health(world);
        levels::checks::check_schedules(&levels, world.env.clock.now());
        if world.stage.has_children() {
            levels::checks::check_children(&levels);
        }
        return check_queues(world).await;
    }
    let objects = world.env.server.list(EXAMPLES);
    for object in &objects {
        check_object(world, object);
    }
    let uids: Vec<String> = objects.iter().map(|it| Stored::read(it).uid).collect();
    check_background(world, &uids);
    check_health(world);
    check_memory(world, uids.len()).await;
}

fn check_object(world: &World, object: &Value) {
    let (history, stored) = (&world.history, Stored::read(object));
    let uid = &stored.uid;
    let complain = |rule: String| history.complain(format!("at the end, {uid} {rule}"));
    if object["metadata"].get("deletionTimestamp").is_some() {
        return complain("is still being deleted".into());
    }
    if !stored.is_held {
        complain("has no finalizer".into());
    }
    if stored.handled != object["spec"]["x"].as_u64() {
        complain(format!("has x = {}, handled is {:?}", object["spec"]["x"], stored.handled));
    }
    // Work that was in progress when a backup was restored is recorded on an object that does not show it any more. As in Kopf,
    // handlers that have not finished continue with the next change, and the annotation that triggers an event is removed by the
    // next patch. A handler that has finished would not be called for the next change, so its record must be removed.
    let is_left_over = history.is_overtaken(uid) || history.is_revived(uid);
    let is_harmless = |id: &str| is_left_over && !stored.finished.contains(id);
    let mut records = stored.records.iter().filter(|(id, _)| !is_harmless(id)).peekable();
    if records.peek().is_some() {
        complain(format!("has records of {:?}", records.collect::<Vec<_>>()));
    }
    if history.is_overtaken(uid) {
        return;
    }
    if history.last_done(uid, OF_DELETION).is_some() && !history.is_revived(uid) {
        complain("was handled as deleted".into());
    }
    let status = &object["status"];
    for id in OF_CREATION.iter().chain(&OF_UPDATE).chain(&["tick"]) {
        let expected = history.last_done(uid, id).map(|it| natives::result(uid, it.x));
        let actual = status.get(id.replace('.', "/"));
        if expected.is_none() && !OF_UPDATE.contains(id) {
            complain(format!("was never handled by {id}"));
        }
        if expected.as_ref() != actual {
            complain(format!("has the result {actual:?} of {id} instead of {expected:?}"));
        }
    }
    if status["mark"] != uid.as_str() {
        complain(format!("has the mark {}", status["mark"]));
    }
    let child = world.env.server.get("configmaps", NAMESPACE, &format!("child-{uid}"));
    if world.stage.language().is_some() && child.is_none() {
        complain("has no child".into());
    }
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let condition = conditions.filter(|it| it["type"] == CONDITION).collect::<Vec<_>>();
    // A backup may not have the condition yet that a daemon had set before it ended.
    let is_set = history.last_done(uid, "once").is_some();
    if is_set && (condition.len() != 1 || condition[0]["message"] != uid.as_str()) {
        complain(format!("has the conditions {}", status["conditions"]));
    }
}

/// Checks that the daemon and the timer of each object run once, and those of no other object.
fn check_background(world: &World, uids: &[String]) {
    let calls = world.history.calls();
    let now = world.env.start.elapsed();
    let mut daemons = BTreeMap::<&str, usize>::new();
    let mut ticks = BTreeMap::<&str, usize>::new();
    for call in calls.iter().filter(|it| world.history.is_alive(it.process)) {
        if call.id == STAYS && call.ended.is_none() {
            *daemons.entry(&call.uid).or_default() += 1;
        }
        if call.id == "tick" && now.saturating_sub(call.at) < Duration::from_secs(2 * INTERVAL) {
            *ticks.entry(&call.uid).or_default() += 1;
        }
    }
    for uid in uids {
        if daemons.remove(uid.as_str()) != Some(1) {
            world.history.complain(format!("at the end, the daemon of {uid} does not run once"));
        }
        if !(1..=3).contains(&ticks.remove(uid.as_str()).unwrap_or_default()) {
            world.history.complain(format!("at the end, the timer of {uid} does not run"));
        }
    }
    for uid in daemons.keys().chain(ticks.keys()) {
        world.history.complain(format!("at the end, something runs for {uid}, which is gone"));
    }
}

fn check_health(world: &World) {
    if world.operators.processes().next().is_none() {
        world.history.complain("at the end, no operator runs");
    }
    for process in world.operators.processes() {
        for (part, health) in process.running.health.parts() {
            if health.state != HealthState::Ready {
                world.history.complain(format!("at the end, {part} is not ready: {}", health.text));
            }
        }
    }
}

/// Checks that the operator keeps the memory of as many objects as exist, and no queue. A standby keeps no memory.
async fn check_memory(world: &World, objects: usize) {
    let objects = i64::try_from(objects).expect("a small number");
    let mut seen = Vec::new();
    // A timer may be running at this moment.
    for _ in 0..INTERVAL {
        seen = world.operators.processes().map(|it| memory(&it.running)).collect();
        let leaders = seen.iter().filter(|it| **it == (objects, 0)).count();
        let standbys = seen.iter().filter(|it| **it == (0, 0)).count();
        let is_led = leaders == 1 || (objects == 0 && leaders == seen.len());
        if is_led && (leaders + standbys == seen.len() || objects == 0) {
            return;
        }
        time::sleep(Duration::from_millis(1300)).await;
    }
    let rule =
        format!("at the end, (objects, queues) in memory are {seen:?} for {objects} objects");
    world.history.complain(rule);
}

/// Checks that no queue is left.
async fn check_queues(world: &World) {
    for _ in 0..INTERVAL {
        if world.operators.processes().all(|it| memory(&it.running).1 == 0) {
            return;
        }
        time::sleep(Duration::from_millis(1300)).await;
    }
    world.history.complain("at the end, there are queues of objects");
}

fn memory(running: &RunningOperator) -> (i64, i64) {
    let metrics = running.health.metrics();
    let samples = metrics.samples();
    let known = samples.iter().find(|(name, ..)| *name == "kopf_objects_known");
    (known.map_or(-1, |it| it.2), metrics.queues.get())
}

/// Stops all processes, and checks that nothing happens afterwards.
pub(super) async fn stopped(world: &mut World) {
    for Process { number, running, .. } in world.operators.take() {
        let began = Instant::now();
        running.cancel();
        if let Err(failure) = running.end().await {
            world.history.complain(format!("the operator does not stop well: {failure}"));
        }
        let took = began.elapsed();
        if took > Duration::from_secs(20) {
            world.history.complain(format!("it takes {took:?} to stop"));
        }
        world.history.end_process(number, "has stopped");
        let calls = world.history.calls();
        let of_process = calls.iter().filter(|it| it.process == number);
        for call in of_process.filter(|it| it.ended.is_none() && it.id == STAYS) {
            let uid = &call.uid;
            world.history.complain(format!("the daemon of {uid} does not end with the operator"));
        }
    }
    // The history records whatever a process does after its end.
    pass(60).await;
}
