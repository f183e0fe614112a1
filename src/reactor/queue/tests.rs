//! The queue of one object.

use std::{sync::Arc, time::Duration};

use futures::FutureExt as _;
use serde_json::json;
use tokio::time;

use super::{EVENTS_MAX, Event, Queue};
use crate::logic::{object::Object, reason::EventType};

fn event(version: usize) -> Event {
    let body = json!({ "metadata": { "resourceVersion": version.to_string() } });
    Event {
        event_type: Some(EventType::Modified),
        object: Arc::new(Object::from_value(body)),
        for_indexes: false,
    }
}

fn version(event: &Event) -> usize {
    event.object.header().resource_version.as_deref().unwrap().parse().unwrap()
}

#[test]
fn events_leave_in_the_order_they_came() {
    let queue = Queue::default();
    (0..3).for_each(|it| queue.push(event(it)).unwrap());
    let versions = (0..3).map(|_| version(&queue.next().now_or_never().unwrap().unwrap()));
    assert_eq!(versions.collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn at_the_bound_the_newest_event_replaces_the_one_before_it() {
    let queue = Queue::default();
    (0..EVENTS_MAX + 5).for_each(|it| queue.push(event(it)).unwrap());
    let mut last = 0;
    for _ in 0..EVENTS_MAX {
        last = version(&queue.next().now_or_never().unwrap().unwrap());
    }
    assert_eq!(last, EVENTS_MAX + 4);
    assert!(queue.next().now_or_never().is_none());
}

#[test]
fn a_queue_with_events_does_not_close() {
    let queue = Queue::default();
    queue.push(event(1)).unwrap();
    assert!(!queue.close_if_empty());
    queue.next().now_or_never().unwrap().unwrap();
    assert!(queue.close_if_empty());
    assert!(queue.push(event(2)).is_err(), "nobody would ever see it");
}

#[test]
fn an_ended_queue_still_gives_what_waits() {
    let queue = Queue::default();
    queue.push(event(1)).unwrap();
    queue.end();
    assert!(queue.next().now_or_never().unwrap().is_some());
    assert!(queue.next().now_or_never().unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn pressure_comes_with_a_new_event_and_goes_with_the_last() {
    let queue = Queue::default();
    let pressed =
        async |queue: &Queue| time::timeout(Duration::from_secs(1), queue.pressure()).await.is_ok();
    assert!(!pressed(&queue).await);
    queue.push(event(1)).unwrap();
    assert!(pressed(&queue).await);
    assert!(pressed(&queue).await, "it stays until the event is taken");
    queue.next().await.unwrap();
    assert!(!pressed(&queue).await);
}
