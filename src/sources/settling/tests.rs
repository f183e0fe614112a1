//! Bursts of events, with simulated times.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

use super::{FsEvent, QUIET, QUIET_API, Settling, WAIT_MAX};

/// Replays events, as (milliseconds, file, event), and returns the millisecond of the read.
fn look(heard: &[(u64, &str, FsEvent)]) -> u64 {
    let start = Instant::now();
    let mut settling = Settling::begin(start);
    for (at, path, sound) in heard {
        let now = start + Duration::from_millis(*at);
        if settling.due() < now {
            break;
        }
        settling.add_events(BTreeMap::from([(path.into(), *sound)]), now);
    }
    u64::try_from((settling.due() - start).as_millis()).expect("it is soon")
}

fn quiet() -> u64 {
    u64::try_from(QUIET.as_millis()).expect("it is short")
}

#[test]
fn a_rename_is_read_after_the_quiet_time() {
    assert_eq!(look(&[(0, "a", FsEvent::Other)]), quiet());
    assert_eq!(look(&[(0, "a", FsEvent::Other), (7, "a", FsEvent::Other)]), 7 + quiet());
}

#[test]
fn a_file_that_is_being_written_is_waited_for() {
    let half = [(0, "a", FsEvent::Written), (100, "a", FsEvent::Written)];
    assert_eq!(look(&half), 500);
    let whole =
        [(0, "a", FsEvent::Written), (100, "a", FsEvent::Written), (101, "a", FsEvent::Other)];
    assert_eq!(look(&whole), 101 + quiet());
    let other = [(0, "a", FsEvent::Written), (101, "b", FsEvent::Other)];
    assert_eq!(look(&other), 500, "another file was closed");
}

#[test]
fn endless_changes_are_read_nevertheless() {
    let endless: Vec<_> = (0..100).map(|it| (it * 10, "a", FsEvent::Other)).collect();
    assert_eq!(u128::from(look(&endless)), WAIT_MAX.as_millis());
}

#[test]
fn an_empty_set_of_events_changes_nothing() {
    let start = Instant::now();
    let mut settling = Settling::begin(start);
    settling.add_events(BTreeMap::new(), start + Duration::from_millis(10));
    assert_eq!(settling.due(), start + QUIET);
}

#[test]
fn objects_of_one_apply_are_one_change() {
    let start = Instant::now();
    let mut settling = Settling::begin(start);
    settling.add_api_change(start);
    let next = start + Duration::from_millis(60);
    assert!(settling.due() > next, "the next object is on its way");
    settling.add_api_change(next);
    assert_eq!(settling.due(), next + QUIET_API);
}
