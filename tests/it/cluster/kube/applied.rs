//! `kube.apply` of an object that violates its schema: the handler fails at once, with a hint, and nothing is repeated.

use kopf::{
    scripting::{Placement, Source},
    testing::{Environment, LogCapture, RunningOperator, object, pass, run_paused},
};

/// `env` of a container must be a list; an empty Lua table is a map.
const SCRIPT: &str = r#"
    kopf.on_create("kopfexamples", { id = "deploy", errors = "permanent" }, function(ctx)
        local container = { name = "main", image = "nginx", env = {} }
        local labels = { app = "a" }
        kube.apply({
            apiVersion = "apps/v1", kind = "Deployment", metadata = { name = "a", namespace = "ns1" },
            spec = { selector = { matchLabels = labels }, template = { metadata = { labels = labels }, spec = { containers = { container } } } },
        })
    end)
"#;

#[test]
fn an_empty_map_in_the_place_of_a_list_is_refused_once_with_a_hint() {
    run_paused(async {
        let env = Environment::default();
        let log = LogCapture::of("kopf");
        let source = Source::alone("deploy.lua", SCRIPT);
        let (scripts, handlers) = env.load(vec![source], Placement::CurrentRuntime).await;
        let running = RunningOperator::start(env.operator(scripts, handlers));
        env.create(object("ns1", "one"));
        pass(120).await;
        let text = log.text();
        for expected in
            ["failed to create typed patch object", "expected list, got &{map[]}", "kopf.array{}"]
        {
            assert!(text.contains(expected), "{expected:?} is not in the log:\n{text}");
        }
        assert_eq!(env.requests("PATCH", "/deployments").len(), 1, "it is not repeated:\n{text}");
        running.stop().await;
    });
}
