//! The log of an outage of the API server: only its beginning, its length and its end.

use std::sync::Arc;

use kopf::{
    logic::handlers::{handler::Kind, outcome::CallEnd},
    reactor::Operator,
    testing::{
        self, Environment, Link, LogCapture, NativeScripts, RunningOperator, handler_of_examples,
        object,
    },
};

/// Runs an operator whose server is unreachable from the 10th second on, for this long. Returns the warnings of this program's own formats.
async fn lines_of_an_outage(seconds: u64) -> Vec<String> {
    let env = Environment::default();
    let link = Link::new(&env.server);
    let scripts = NativeScripts::default();
    let function = scripts.handler("made", |_| Box::pin(async { CallEnd::Returned(None) }));
    let operator =
        env.operator(Arc::new(scripts), vec![handler_of_examples(Kind::Create, function)]);
    let connect = testing::connect(link.client("ns1"));
    let log = LogCapture::of("kopf");
    let running = RunningOperator::start(Operator { connect, ..operator });
    env.create(object("ns1", "a"));
    env.until(10).await;
    let server = link.replace(None);
    env.server.close_watches();
    env.until(10 + seconds).await;
    link.replace(server);
    env.until(15 + seconds).await;
    env.create(object("ns1", "b"));
    env.until(20 + seconds).await;
    running.stop().await;
    let lines = log.lines().into_iter().filter(|it| {
        let level = it.field("call.level").and_then(|it| it.parse::<u64>().ok());
        level.map_or(it.level <= tracing::Level::WARN, |it| it >= 30)
    });
    lines.map(|it| it.message).collect()
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_logged_at_its_beginning_every_30_s_and_at_its_end() {
    let lines = lines_of_an_outage(75).await;
    let of = |text: &str| lines.iter().filter(|it| it.contains(text)).count();
    assert_eq!(of("The API server is unreachable"), 1, "{lines:#?}");
    assert_eq!(of("The API server has been unreachable for"), 2, "{lines:#?}");
    assert_eq!(of("The API server is back after"), 1, "{lines:#?}");
    assert_eq!(of("Request attempt"), 0, "{lines:#?}");
    assert!(lines.len() <= 6, "{lines:#?}");
}
