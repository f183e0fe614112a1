//! Resources and namespaces that are created and deleted while the operator runs.

use std::time::Duration;

use kopf::{
    logic::handlers::handler::Kind,
    reactor::NamespaceScope,
    testing::{Environment, definition, examples, namespace, object, pass},
};
use kopf_apiserver::ApiServer;

use super::heard::{Listener, Listening};

fn start(env: &Environment, scope: NamespaceScope) -> Listening {
    Listener::new(scope).hears_examples("made", Kind::Create, Duration::ZERO).start(env)
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_defined_later_is_served() {
    let env = Environment::new(ApiServer::builder());
    let operator = start(&env, NamespaceScope::Cluster);
    pass(5).await;
    env.create(definition(&examples()));
    pass(5).await;
    env.create(object("ns1", "late"));
    pass(5).await;
    assert_eq!(operator.end_with_names().await, ["late"]);
}

#[tokio::test(start_paused = true)]
async fn namespaces_are_served_while_they_are_there_and_match() {
    let env = Environment::default();
    env.create(namespace("app-1"));
    let operator = start(&env, NamespaceScope::Namespaces(vec!["app-*".into()]));
    pass(5).await;
    for name in ["app-2", "other"] {
        env.create(namespace(name));
    }
    pass(5).await;
    for (place, name) in [("app-1", "one"), ("app-2", "two"), ("other", "never")] {
        env.create(object(place, name));
    }
    pass(5).await;
    env.delete("namespaces", "app-1");
    pass(5).await;
    env.create(object("app-1", "gone"));
    pass(5).await;
    let mut created = operator.end_with_names().await;
    created.sort();
    assert_eq!(created, ["one", "two"]);
}
