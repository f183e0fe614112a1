//! Tests of the queue of one object.

use std::{sync::Arc, time::Duration};

use futures::FutureExt as _;
use serde_json::json;
use tokio::time;

use super::{CHANGES_MAX, Event, ObjectQueue, STEPS_MAX};
use crate::logic::object::{Object, reason::EventType};

fn event(version: usize) -> Event {
    let body = json!({ "metadata": { "resourceVersion": version.to_string() } });
    Event::new(Some(EventType::Modified), Arc::new(Object::from_value(body)))
}

fn version(event: &Event) -> usize {
    event.object.header().resource_version.as_deref().unwrap().parse().unwrap()
}

#[test]
fn events_are_returned_in_order() {
    let queue = ObjectQueue::new(false, Arc::default());
    (0..3).for_each(|it| queue.push(event(it)).unwrap());
    let versions = (0..3).map(|_| version(&queue.next().now_or_never().unwrap().unwrap()));
    assert_eq!(versions.collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn at_the_limit_the_newest_change_replaces_the_previous_one() {
    for (keeps_steps, max) in [(true, STEPS_MAX), (false, CHANGES_MAX)] {
        let queue = ObjectQueue::new(keeps_steps, Arc::default());
        (0..max + 5).for_each(|it| queue.push(event(it)).unwrap());
        let events = std::iter::from_fn(|| queue.next().now_or_never().flatten());
        let events = events.collect::<Vec<_>>();
        assert_eq!(events.len(), max);
        let last = events.last().unwrap();
        assert_eq!(version(last), max + 4);
        assert!(last.replaced.contains(&(max + 3).to_string()), "may be our own patch");
    }
}

#[test]
fn deletions_neither_replace_nor_are_replaced() {
    let queue = ObjectQueue::new(false, Arc::default());
    (0..CHANGES_MAX).for_each(|it| queue.push(event(it)).unwrap());
    let deleted = Event { event_type: Some(EventType::Deleted), ..event(90) };
    let created = Event { event_type: Some(EventType::Added), ..event(91) };
    for it in [deleted, created, event(92), event(93)] {
        queue.push(it).unwrap();
    }
    let events = std::iter::from_fn(|| queue.next().now_or_never().flatten());
    let versions = events.skip(CHANGES_MAX).map(|it| version(&it)).collect::<Vec<_>>();
    assert_eq!(versions, [90, 91, 93]);
}

#[test]
fn a_queue_with_events_does_not_close() {
    let queue = ObjectQueue::new(false, Arc::default());
    queue.push(event(1)).unwrap();
    assert!(!queue.close_if_empty());
    queue.next().now_or_never().unwrap().unwrap();
    assert!(queue.close_if_empty());
    assert!(queue.push(event(2)).is_err(), "a closed queue has no worker");
}

#[test]
fn an_ended_queue_still_returns_its_events() {
    let queue = ObjectQueue::new(false, Arc::default());
    queue.push(event(1)).unwrap();
    queue.end();
    assert!(queue.next().now_or_never().unwrap().is_some());
    assert!(queue.next().now_or_never().unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn pressure_comes_with_a_new_event_and_goes_with_the_last() {
    let queue = ObjectQueue::new(false, Arc::default());
    let pressed = async |queue: &ObjectQueue| {
        time::timeout(Duration::from_secs(1), queue.pressure()).await.is_ok()
    };
    assert!(!pressed(&queue).await);
    queue.push(event(1)).unwrap();
    assert!(pressed(&queue).await);
    assert!(pressed(&queue).await, "pressure stays until the event is taken");
    queue.next().await.unwrap();
    assert!(!pressed(&queue).await);
}
