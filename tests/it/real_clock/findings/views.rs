//! Older views, lists that end too early, repeated creations, new certificates, and lines of the log.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use kopf::testing::EXAMPLES;
use kopf_apiserver::{Fault, FaultEffect};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use serde_json::json;
use tokio_rustls::TlsAcceptor;

use super::{
    IMPATIENT, World,
    front::{Fate, Front, Gate, Line},
    said, until, until_says,
};

/// M1: a watch lags behind the operator's own PATCH for longer than the operator waits for it.
#[tokio::test]
async fn an_event_that_is_older_than_our_own_request_repeats_no_handler() {
    let world = World::new(
        r#"
kopf.timer("kopfexamples", { id = "ticks", interval = 0.2, labels = { clock = "yes" } }, function(ctx)
    ctx.logger:info("ticks")
end)
kopf.on_event("kopfexamples", function(ctx)
    ctx.logger:info("seen " .. tostring(ctx.labels.edited))
end)
kopf.on_create("kopfexamples", { id = "made", labels = { clock = kopf.ABSENT } }, function(ctx)
    ctx.logger:info("made")
    kube.get("v1", "ConfigMap", { name = "gate", namespace = "ns1" })
end)
"#,
    )
    .await;
    let (call, edit, rest) = (Gate::new(), Gate::new(), Gate::new());
    world.front.set_fate(Fate::Hold(call.clone()), |it| it.is("GET", "/configmaps/gate"));
    let (edited, later) = (edit.clone(), rest.clone());
    world.front.set_lines(move |it, line| {
        let meta = &line["object"]["metadata"];
        if !it.watches("kopfexamples?") || meta["name"] != "a" {
            Line::Pass
        } else if meta["annotations"].is_object() {
            Line::Hold(later.clone())
        } else if meta["labels"].is_object() {
            Line::Hold(edited.clone())
        } else {
            Line::Pass
        }
    });
    let quick =
        "--standalone --set persistence.consistency_timeout=0.3 --set queueing.idle_timeout=0.2";
    let operator = world.started(quick).await;
    let clock = json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": { "namespace": "ns1", "name": "clock", "labels": { "clock": "yes" } },
    });
    world.server.create(EXAMPLES, clock).expect("it is new");
    until_says(&operator, "ticks").await;
    world.create("a");
    until(&operator, "the gate", || world.front.count(|it| it.path.contains("/gate")) > 0).await;
    world.edit("a", json!({ "metadata": { "labels": { "edited": "yes" } } }));
    call.open();
    until(&operator, "the record", || world.is_handled("a")).await;
    // The worker of the object waits for its own request for 0.3 s, and ends 0.2 s later: within a few ticks of another object.
    let ticks = || said(&operator, "[ns1/clock] ticks");
    let before = ticks();
    until(&operator, "ten ticks", || ticks() >= before + 10).await;
    edit.open();
    until_says(&operator, "[ns1/a] seen yes").await;
    rest.open();
    world.edit("a", json!({ "metadata": { "labels": { "edited": "twice" } } }));
    until_says(&operator, "[ns1/a] seen twice").await;
    assert_eq!(said(&operator, "[ns1/a] made"), 1, "calls\n{}", operator.output());
}

/// M6: the response to a creation is lost.
#[tokio::test]
async fn a_child_is_created_once_although_the_response_is_lost() {
    let world = World::new(
        r#"
kopf.on_create("kopfexamples", { id = "made" }, function(ctx)
    pcall(kube.create, {
        apiVersion = "v1", kind = "ConfigMap",
        metadata = { generateName = "child-", namespace = ctx.namespace },
    })
    ctx.logger:info("tried")
end)
"#,
    )
    .await;
    let is_first = AtomicBool::new(true);
    world.front.set_rule(move |it| {
        let is_lost = it.is("POST", "/configmaps") && is_first.swap(false, Ordering::Relaxed);
        if is_lost { Fate::LoseResponse } else { Fate::Pass }
    });
    let operator = world.started(IMPATIENT).await;
    world.create("a");
    until_says(&operator, "[ns1/a] tried").await;
    assert_eq!(world.server.list("configmaps").len(), 1, "children\n{}", operator.output());
}

/// L5: a bookmark without the annotation comes before the objects of a streamed list.
#[tokio::test]
async fn only_the_bookmark_with_the_annotation_ends_a_streamed_list() {
    let world = World::new(
        r#"
kopf.on_event("kopfexamples", function(ctx) ctx.logger:info("seen " .. tostring(ctx.type)) end)
"#,
    )
    .await;
    for name in ["a", "b"] {
        world.create(name);
    }
    let operator = world.started("--standalone --set watching.initial_streaming=true").await;
    until(&operator, "both objects", || said(&operator, "seen ") >= 2).await;
    let is_first = Arc::new(AtomicBool::new(true));
    world.front.set_lines(move |it, _| {
        let is_streamed = it.watches("kopfexamples?") && it.path.contains("sendInitialEvents");
        if !is_streamed || !is_first.swap(false, Ordering::Relaxed) {
            return Line::Pass;
        }
        let metadata = json!({ "resourceVersion": "1", "creationTimestamp": null });
        Line::After(json!({ "type": "BOOKMARK", "object": {
            "apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": metadata,
        } }))
    });
    // The next watch meets a 410, and a list follows.
    let expired = FaultEffect::Refuse { code: 410, retry_after_seconds: None };
    world.server.fault(Fault::always(expired).on("GET", "kopfexamples?watch=true").times(1));
    let lists = || {
        world.front.count(|it| it.path.contains("sendInitialEvents") && it.watches("kopfexamples?"))
    };
    let before = lists();
    world.server.close_watches();
    until(&operator, "another list", || lists() > before).await;
    world.create("c");
    until_says(&operator, "[ns1/c] seen ADDED").await;
    assert_eq!(said(&operator, "seen DELETED"), 0, "made-up deletions\n{}", operator.output());
}

/// L6: a script logs a line feed.
#[tokio::test]
async fn a_message_with_a_line_feed_cannot_forge_a_line() {
    let world = World::new(
        r#"
kopf.on_create("kopfexamples", { id = "made" }, function(ctx)
    ctx.logger:info("true\nFORGED")
    ctx.logger:info("made")
end)
"#,
    )
    .await;
    let operator = world.started("--standalone").await;
    world.create("a");
    until_says(&operator, "[ns1/a] made").await;
    let output = operator.output();
    assert!(!output.lines().any(|it| it.starts_with("FORGED")), "a forged line\n{output}");
}

/// Lets new connections use the certificate of a new authority, and returns that of the authority as PEM.
fn rotate(front: &Front) -> String {
    let mut ca = CertificateParams::default();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().expect("a key")).expect("a CA");
    let key = KeyPair::generate().expect("a key");
    let leaf = CertificateParams::new(["127.0.0.1".to_owned()]).expect("a name");
    let leaf = leaf.signed_by(&key, &ca).expect("a certificate").pem();
    let certificate = CertificateDer::from_pem_slice(leaf.as_bytes()).expect("PEM");
    let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider);
    let tls = tls.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
    let tls = tls.with_single_cert(vec![certificate], key).expect("a certificate and its key");
    front.set_tls(TlsAcceptor::from(Arc::new(tls)));
    ca.pem()
}

/// M5: the certificate authority of the server is replaced, and the file of the kubeconfig with it.
#[tokio::test]
async fn a_new_certificate_authority_needs_no_restart() {
    let world = World::new(
        r#"
kopf.on_create("kopfexamples", { id = "made" }, function(ctx) ctx.logger:info("made") end)
"#,
    )
    .await;
    let ca = world.directory.join("ca.crt");
    fs::write(&ca, rotate(&world.front)).expect("a file can be written");
    world.kubeconfig(&json!({
        "server": format!("https://{}", world.front.address()), "certificate-authority": ca,
    }));
    let operator = world.started(IMPATIENT).await;
    fs::write(&ca, rotate(&world.front)).expect("a file can be written");
    world.front.cut();
    world.create("a");
    until_says(&operator, "[ns1/a] made").await;
}
