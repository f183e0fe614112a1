//! Admission webhooks over real HTTPS, with a certificate that only the configuration trusts.

use std::{convert::Infallible, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_rustls::TlsAcceptor;

use super::*;

/// Serves a webhook over HTTPS that refuses everything. Returns its port and its certificate.
async fn webhook(tasks: &mut JoinSet<()>) -> (u16, String) {
    let key = rcgen::generate_simple_self_signed(vec!["localhost".into()]).expect("a certificate");
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.signing_key.serialize_der()));
    let config =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![key.cert.der().clone()], private)
            .expect("a key for the certificate");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tasks.spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.expect("a connection");
            // A client that does not trust the certificate fails here.
            let Ok(stream) = acceptor.accept(socket).await else { continue };
            let refuse = service_fn(|request: Request<Incoming>| async {
                let body = request.into_body().collect().await.expect("a body").to_bytes();
                let review: Value = serde_json::from_slice(&body).expect("a review");
                let uid = &review["request"]["uid"];
                let response =
                    json!({ "uid": uid, "allowed": false, "status": { "message": "no" } });
                let body = json!({ "response": response }).to_string();
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(body))))
            });
            drop(http1::Builder::new().serve_connection(TokioIo::new(stream), refuse).await);
        }
    });
    (port, key.cert.pem())
}

async fn refusal_with(bundle: &str, port: u16) -> (u16, String) {
    let cluster = Cluster::stamping();
    let configuration = json!({
        "metadata": { "name": "far" },
        "webhooks": [{
            "name": "far",
            "clientConfig": {
                "url": format!("https://localhost:{port}/check"),
                "caBundle": BASE64_STANDARD.encode(bundle),
            },
            "rules": [{
                "operations": ["CREATE"], "apiGroups": ["kopf.dev"], "apiVersions": ["v1"],
                "resources": ["kopfexamples"],
            }],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }],
    });
    let resource = "validatingwebhookconfigurations.admissionregistration.k8s.io";
    cluster.server.create(resource, configuration).expect("it is new");
    let (status, refusal) = cluster.post(OBJECTS, object("n1")).await;
    (status, refusal["message"].as_str().expect("a message").to_owned())
}

#[tokio::test]
async fn a_webhook_is_called_over_https_and_must_be_trusted() {
    let mut tasks = JoinSet::new();
    let (port, certificate) = webhook(&mut tasks).await;
    let (_, other) = webhook(&mut tasks).await;
    let expected = r#"admission webhook "far" denied the request: no"#;
    assert_eq!(refusal_with(&certificate, port).await, (400, expected.into()));
    let (status, message) = refusal_with(&other, port).await;
    assert_eq!(status, 500, "{message}");
    assert!(message.contains("certificate"), "{message}");
}
