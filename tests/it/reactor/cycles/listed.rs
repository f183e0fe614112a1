//! Lists of many objects: read in pages, and no faster than the workers take the objects.

use std::time::Duration;

use futures::future::BoxFuture;
use kopf::{
    logic::handlers::{handler::Kind, outcome::CallEnd},
    settings::Settings,
    testing::{EXAMPLES, Environment, Link, handler_of_examples, object, pass},
};
use tokio::time;

use super::script::{Script, name};

const OBJECTS: usize = 3000;

/// Returns how many pages of lists of the examples were requested.
fn pages(env: &Environment) -> usize {
    env.requests("GET", "limit=500").iter().filter(|it| it.path.ends_with("/kopfexamples")).count()
}

#[tokio::test(start_paused = true)]
async fn a_list_is_read_no_faster_than_its_objects_are_handled() {
    let (env, script) = (Environment::default(), Script::default());
    for number in 0..OBJECTS {
        env.create(object("ns1", &format!("o{number}")));
    }
    let calls = script.calls.clone();
    let slow = script.functions.handler("seen", move |invocation| {
        calls.add(name(&invocation));
        Box::pin(async {
            time::sleep(Duration::from_secs(1)).await;
            CallEnd::Returned(None)
        }) as BoxFuture<'static, CallEnd>
    });
    let mut settings = Settings::default();
    settings.queueing.worker_limit = Some(100);
    let handlers = vec![handler_of_examples(Kind::Event, slow)];
    let running = script.start(&env, (&Link::new(&env.server), handlers), settings);
    pass(3).await;
    // At most 1,000 objects wait, and at most 400 were called; the page that fills the queue was read as a whole.
    assert!((2..=4).contains(&pages(&env)), "{} pages", pages(&env));
    let before = script.calls.lines().len();
    assert!((200..=400).contains(&before), "{before} calls");
    pass(60).await;
    assert_eq!(pages(&env), OBJECTS / 500);
    let mut called = script.calls.lines();
    called.sort();
    called.dedup();
    assert_eq!(called.len(), OBJECTS, "each object was seen");
    assert!(env.get(EXAMPLES, "ns1/o0").is_object());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_is_read_to_its_end_also_when_the_workers_are_stuck() {
    let (env, script) = (Environment::default(), Script::default());
    for number in 0..OBJECTS {
        env.create(object("ns1", &format!("o{number}")));
    }
    let stuck = script.functions.handler("stuck", |_| {
        Box::pin(async {
            time::sleep(Duration::from_hours(1)).await;
            CallEnd::Returned(None)
        }) as BoxFuture<'static, CallEnd>
    });
    let mut settings = Settings::default();
    settings.queueing.worker_limit = Some(1);
    let handlers = vec![handler_of_examples(Kind::Create, stuck)];
    let running = script.start(&env, (&Link::new(&env.server), handlers), settings);
    pass(60).await;
    assert!(pages(&env) < 4, "{} pages", pages(&env));
    // Before the server drops the snapshot of the list.
    pass(120).await;
    assert_eq!(pages(&env), OBJECTS / 500);
    running.stop().await;
}
