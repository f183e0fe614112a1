//! Locks: their order, their limits, and how they are freed.

use futures::FutureExt as _;

use super::*;

const LONG: Duration = Duration::from_secs(30);

fn call(call: CallId) -> Wanting {
    Wanting { call, name: format!("call {call}") }
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_passed_on_in_the_order_of_arrival() {
    let locks = Locks::default();
    let first = locks.enter("x", call(1)).expect("free");
    let second = locks.enter("x", call(2)).expect("queued");
    let third = locks.enter("x", call(3)).expect("queued");
    let (one, two) = (first.number, second.number);
    assert_eq!(locks.wait(first, LONG).now_or_never(), Some(Ok(())));
    let mut second = Box::pin(locks.wait(second, LONG));
    let mut third = Box::pin(locks.wait(third, LONG));
    assert_eq!((&mut second).now_or_never(), None);
    locks.free(one);
    assert_eq!((&mut third).now_or_never(), None);
    assert_eq!((&mut second).now_or_never(), Some(Ok(())));
    locks.free(two);
    assert_eq!(third.await, Ok(()));
    locks.free_all(3);
    assert_eq!(locks.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_names_the_holder_and_leaves_the_queue() {
    let locks = Locks::default();
    let _held = locks.enter("x", call(1)).expect("free");
    let ticket = locks.enter("x", call(2)).expect("queued");
    let problem = locks.wait(ticket, LONG).await.expect_err("it is held");
    assert_eq!(problem, "the lock 'x' is still held by call 1 after 30 s");
    locks.free_all(1);
    assert_eq!(locks.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_call_frees_its_locks_and_its_places() {
    let locks = Locks::default();
    let _held: Vec<_> = ["x", "y"].map(|it| locks.enter(it, call(1)).expect("free")).into();
    let waits = locks.enter("x", call(2)).expect("queued");
    locks.free_all(1);
    assert_eq!(locks.wait(waits, LONG).now_or_never(), Some(Ok(())));
    assert_eq!(locks.count(), 1);
}

#[test]
fn nested_use_and_deadlocks_are_errors() {
    let locks = Locks::default();
    let _a = locks.enter("a", call(1)).expect("free");
    let _b = locks.enter("b", call(2)).expect("free");
    let _c = locks.enter("c", call(3)).expect("free");
    let problem = locks.enter("a", call(1)).expect_err("it is held by the same call");
    assert!(problem.starts_with("this call holds the lock 'a' already"), "{problem}");
    let _one = locks.enter("b", call(1)).expect("queued");
    let _two = locks.enter("c", call(2)).expect("queued");
    let problem = locks.enter("a", call(3)).expect_err("a cycle of three");
    assert!(problem.starts_with("a deadlock: call 2 waits for the lock 'c'"), "{problem}");
    assert!(locks.enter("a", call(4)).is_ok(), "no part of the cycle");
}

#[test]
fn a_call_holds_a_limited_number_of_locks() {
    let locks = Locks::default();
    let taken = (0..10_000).map(|it| locks.enter(&format!("lock {it}"), call(1)));
    assert_eq!(taken.flatten().count(), HELD_MAX);
    locks.free_all(1);
    assert_eq!(locks.count(), 0);
}
