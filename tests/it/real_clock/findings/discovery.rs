//! CRDs that are created and deleted, and discovery that lags behind them.

use kopf::testing::{EXAMPLES, definition, examples, namespace};
use kopf_apiserver::{
    Fault, FaultEffect, ResourceDef,
    controllers::{self, Controllers},
};
use tokio::task::JoinSet;

use super::{
    DEFINITIONS, World,
    front::{Fate, Gate},
    said, until, until_says,
};

const SEEN: &str = r#"
kopf.on_event("kopfexamples", function(ctx) ctx.logger:info("seen " .. tostring(ctx.type)) end)
"#;

/// C1: discovery does not show a group for a moment, while its CRD exists.
#[tokio::test]
async fn a_kind_is_served_on_after_discovery_has_hidden_it_for_a_moment() {
    let world = World::new(SEEN).await;
    let operator = world.started("--standalone").await;
    world.create("a");
    until_says(&operator, "[ns1/a] seen ADDED").await;
    let hidden = FaultEffect::HiddenGroup("kopf.dev".into());
    world.server.fault(Fault::always(hidden).on("GET", "/apis"));
    // As after a restart of the API server: the versions of all watches have expired.
    world.server.create("namespaces", namespace("more")).expect("it is new");
    let before = world.front.asked().len();
    world.server.compact();
    world.server.close_watches();
    let reads = || world.front.asked()[before..].iter().filter(|it| it.path == "/apis").count();
    let stops = || said(&operator, "Stopping the watch-stream for kopfexamples");
    until(&operator, "another look at discovery, or an end", || reads() > 1 || stops() > 0).await;
    world.server.clear_faults();
    world.create("b");
    until_says(&operator, "[ns1/b] seen ADDED").await;
    assert_eq!(said(&operator, "DELETED"), 0, "made-up deletions\n{}", operator.output());
}

/// C2: a CRD is deleted while its objects have finalizers, and their handlers need several attempts.
#[tokio::test]
async fn a_crd_is_deleted_with_its_objects_and_their_handlers() {
    const OBJECTS: usize = 10;
    let world = World::new(
        r#"
kopf.on_create("kopfexamples", { id = "made" }, function() end)
kopf.on_delete("kopfexamples", { id = "gone" }, function(ctx)
    if ctx.retry == 0 then kopf.retry("not yet", 1) end
    ctx.logger:info("gone")
end)
"#,
    )
    .await;
    let mut tasks = JoinSet::new();
    tasks.spawn(controllers::run(world.server.clone(), Controllers::ALL));
    let operator = world.started("--standalone").await;
    for number in 0..OBJECTS {
        world.create(&format!("o{number}"));
    }
    let handled = || (0..OBJECTS).filter(|it| world.is_handled(&format!("o{it}"))).count();
    until(&operator, "all creations", || handled() == OBJECTS).await;
    world.server.delete(DEFINITIONS, "", EXAMPLES).expect("it is there");
    let is_gone = || world.server.get(DEFINITIONS, "", EXAMPLES).is_none();
    until(&operator, "the end of the CRD", is_gone).await;
    until(&operator, "all deletions", || said(&operator, "] gone") == OBJECTS).await;
}

/// C3: a CRD is applied while the operator starts: discovery does not show it yet, the first list of CRDs does.
#[tokio::test]
async fn a_crd_that_is_applied_during_the_start_is_served() {
    let world = World::with(&[], SEEN).await;
    let gate = Gate::new();
    world.front.set_fate(Fate::Hold(gate.clone()), |it| it.lists("customresourcedefinitions"));
    let operator = world.start("--standalone");
    let are_read = || {
        let read = |path: &str| world.front.count(|it| it.path == path && it.status.is_some()) > 0;
        read("/api")
            && read("/apis")
            && world.front.count(|it| it.lists("customresourcedefinitions")) > 0
    };
    until(&operator, "discovery", are_read).await;
    let crd = definition(&ResourceDef { status_subresource: true, ..examples() });
    world.server.create(DEFINITIONS, crd).expect("it is new");
    gate.open();
    until(&operator, "the list of CRDs", || {
        world.front.count(|it| it.lists("customresourcedefinitions") && it.status.is_some()) > 0
    })
    .await;
    world.create("a");
    until_says(&operator, "[ns1/a] seen ").await;
}
