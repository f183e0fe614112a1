//! The limits on the values that scripts pass to the operator: hostile scripts in a whole operator, next to a script that must still be
//! served.

use std::{sync::Arc, time::Duration};

use kopf::{
    ports::Clock,
    reactor::Operator,
    scripting::{Placement, Source, Terms},
    settings::Settings,
    testing::{self, EXAMPLES, Environment, LogCapture, RunningOperator, object},
};
use kopf_apiserver::ApiServer;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

/// After this time, the test has failed. Nothing is measured.
const PATIENCE: Duration = Duration::from_mins(2);

const NEIGHBOUR: &str = r#"
    kopf.on_create("kopfexamples", { id = "neighbour", labels = { role = "neighbour" } }, function(ctx)
        return "served"
    end)
"#;

/// A hostile script in one of the languages, and the log line that reports its mistake.
struct Hostile {
    name: &'static str,
    text: &'static str,
    line: &'static str,
}

/// Runs the script next to the neighbour, and waits for the line and for the neighbour.
async fn in_an_operator(hostile: Hostile) {
    let log = LogCapture::of("");
    let builder = ApiServer::builder().resource(testing::examples());
    let env = Environment::with_clock(builder, Clock::system());
    let settings = Settings::default();
    let terms = Terms::of(Placement::Threads, &settings);
    let sources =
        vec![Source::alone(hostile.name, hostile.text), Source::alone("neighbour.lua", NEIGHBOUR)];
    let (scripts, handlers) = env.load(sources, terms).await;
    let settings = Arc::new(Mutex::new(settings));
    let running = RunningOperator::start(Operator { settings, ..env.operator(scripts, handlers) });
    create(&env, "bad", "hostile");
    until(hostile.line, || log.lines().iter().any(|it| it.message.contains(hostile.line))).await;
    create(&env, "good", "neighbour");
    until("the neighbour is served", || result(&env, "good") == Some(json!("served"))).await;
    running.stop().await;
}

fn create(env: &Environment, name: &str, role: &str) {
    let mut object = object("default", name);
    object["metadata"]["labels"] = json!({ "role": role });
    env.create(object);
}

fn result(env: &Environment, name: &str) -> Option<Value> {
    env.server.get(EXAMPLES, "default", name)?["status"].get("neighbour").cloned()
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("not in {PATIENCE:?}: {what}"));
}

const LEVELS: &str = "sub-handlers are nested deeper than 16 levels";

#[tokio::test]
async fn a_subhandler_in_lua_that_declares_itself_fails_alone() {
    let text = r#"
        local function again(ctx)
            kopf.subhandler({ id = "s" }, again)
            kopf.execute()
        end
        kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, again)
    "#;
    in_an_operator(Hostile { name: "hostile.lua", text, line: LEVELS }).await;
}

#[tokio::test]
async fn a_subhandler_in_rhai_that_declares_itself_fails_alone() {
    let text = r#"
        fn again(ctx) {
            kopf.subhandler(#{ id: "s" }, again);
            kopf.execute();
        }
        kopf::on_create("kopfexamples", #{ id: "hostile", labels: #{ role: "hostile" } }, again);
    "#;
    in_an_operator(Hostile { name: "hostile.rhai", text, line: LEVELS }).await;
}

#[tokio::test]
async fn patches_of_great_depth_never_reach_the_operator() {
    let text = r#"
        kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
            ctx.memo.a = {}
            for turn = 1, 200 do
                local inner = { x = ctx.memo.a }
                for level = 1, 100 do inner = { x = inner } end
                ctx.memo.a = inner
            end
            ctx.patch.status.deep = ctx.memo.a
        end)
    "#;
    let line = "nested deeper than 128 levels";
    in_an_operator(Hostile { name: "hostile.lua", text, line }).await;
    let text = r#"
        kopf::on_create("kopfexamples", #{ id: "hostile", labels: #{ role: "hostile" } }, |ctx| {
            ctx.memo.a = #{};
            for turn in 0..200 {
                let inner = #{ x: ctx.memo.a };
                for level in 0..100 { inner = #{ x: inner }; }
                ctx.memo.a = inner;
            }
            ctx.patch.status.deep = ctx.memo.a;
        });
    "#;
    in_an_operator(Hostile { name: "hostile.rhai", text, line }).await;
}
