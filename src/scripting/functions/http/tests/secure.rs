//! Requests over TLS: which certificates a script trusts, and the errors of those it does not trust.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, date_time_ymd,
};
use rustls::{
    RootCertStore,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    server::WebPkiClientVerifier,
};

use super::*;

/// A certificate authority that only clients with its certificate trust.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Authority(CertifiedIssuer::self_signed(params, key).expect("an authority"))
    }

    /// Serves over TLS with a certificate of this authority. Returns the port.
    fn serve(&self, names: &[&str], change: impl Fn(&mut CertificateParams)) -> u16 {
        self.serve_to(names, change, None)
    }

    /// Serves only clients with a certificate of this authority.
    fn serve_to(
        &self,
        names: &[&str],
        change: impl Fn(&mut CertificateParams),
        clients: Option<&Authority>,
    ) -> u16 {
        let names: Vec<_> = names.iter().map(|&it| it.to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("versions");
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(clients) => {
                let mut roots = RootCertStore::empty();
                roots.add(clients.0.der().clone()).expect("an authority");
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
            }
        };
        let config = builder
            .with_single_cert(vec![certificate.der().clone()], private)
            .expect("a key for the certificate");
        serve(Some(Arc::new(config)))
    }

    /// Returns a client certificate with its key, in PEM.
    fn client(&self) -> (String, String) {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(DnType::CommonName, "client");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }

    /// Returns options that trust this authority, together with others.
    fn trusted(&self, mut others: Value) -> Value {
        others["ca"] = self.0.pem().into();
        others
    }
}

/// The names of a server on this machine.
const NAMES: &[&str] = &["localhost", "127.0.0.1"];
const GRANTED: &[&str] = &["localhost:PORT", "127.0.0.1:PORT"];

/// Returns a call of a path of the server by its name.
fn secure(path: &str, options: &Value) -> String {
    call("get", &format!("https://localhost:PORT{path}"), options)
}

#[test]
fn a_server_is_trusted_if_its_authority_is_passed() {
    let authority = Authority::new("one");
    let port = authority.serve(NAMES, |_| {});
    let with = |others| authority.trusted(others);
    let two = format!("{}{}", Authority::new("two").0.pem(), authority.0.pem());
    let auth = json!({ "headers": { "authorization": "secret" } });
    let by_address = |path: &str, options: &Value| {
        secure(path, options).replace("https://localhost", "https://127.0.0.1")
    };
    let post =
        secure("/echo", &with(json!({ "json": { "a": 1 } }))).replace("http.get", "http.post");
    check_at(
        port,
        GRANTED,
        &[
            (secure("/echo", &with(json!({}))), Ok(("status", json!(200)))),
            (by_address("/echo", &with(json!({}))), Ok(("json.path", json!("/echo")))),
            (secure("/echo", &json!({ "ca": two })), Ok(("ok", json!(true)))),
            (post, Ok(("json.body", json!("{\"a\":1}")))),
            (secure("/missing", &with(json!({}))), Ok(("body", json!("gone")))),
            (secure("/found", &with(json!({}))), Ok(("json.path", json!("/echo")))),
            // From one name of the host to the other, without the secret.
            (by_address("/echo", &with(auth.clone())), Ok(("json.auth", json!(true)))),
            (by_address("/other", &with(auth)), Ok(("json.auth", json!(false)))),
            (secure("/large", &with(json!({}))), Ok(("body", json!("x".repeat(2000))))),
            (
                secure("/packed", &with(json!({}))),
                Ok(("body_base64", json!(STANDARD.encode(PACKED)))),
            ),
        ],
    );
}

#[test]
fn untrusted_certificates_are_explained_with_a_remedy() {
    let (authority, other) = (Authority::new("one"), Authority::new("two"));
    let renewed = Authority::new("one");
    let port = authority.serve(NAMES, |_| {});
    let unknown = "https://localhost:PORT/echo: the certificate of localhost was issued by an unknown authority; pass the \
                   certificate of that authority in PEM as the option `ca`";
    let insecure = secure("/echo", &json!({ "insecure": true }));
    check_at(
        port,
        GRANTED,
        &[
            (secure("/echo", &json!({})), Err(unknown)),
            (secure("/echo", &other.trusted(json!({}))), Err(unknown)),
            (
                secure("/echo", &renewed.trusted(json!({}))),
                Err(
                    "the certificate of localhost was not signed with the key of the authority in `ca`; check whether one of \
                     them was renewed",
                ),
            ),
            // A certificate that was trusted in one call is not trusted in the next one.
            (secure("/echo", &authority.trusted(json!({}))), Ok(("ok", json!(true)))),
            (secure("/echo", &json!({})), Err(unknown)),
            (
                insecure,
                Err(
                    "`insecure` for the connection to localhost:PORT is not granted to this script; \
                     --allow-insecure=localhost:PORT would allow it",
                ),
            ),
            (
                secure("/echo", &authority.trusted(json!({}))).replace("https:", "http:"),
                Err("http://localhost:PORT/echo: "),
            ),
        ],
    );
}

#[test]
fn a_certificate_for_another_name_or_another_time_is_rejected() {
    let authority = Authority::new("one");
    let ask = || secure("/echo", &authority.trusted(json!({})));
    let refused = |port: u16, error: &str| check_at(port, GRANTED, &[(ask(), Err(error))]);
    refused(
        authority.serve(&["a.example", "10.0.0.1"], |_| {}),
        "https://localhost:PORT/echo: the certificate of the server is not for localhost but for a.example, 10.0.0.1; \
         use one of these names",
    );
    refused(authority.serve(&[], |_| {}), "is not for localhost but for no name at all");
    refused(
        authority.serve(NAMES, |it| it.not_after = date_time_ymd(2020, 2, 3)),
        "https://localhost:PORT/echo: the certificate of localhost has expired at 2020-02-03T00:00:00Z; \
         it must be renewed on the server",
    );
    refused(
        authority.serve(NAMES, |it| it.not_before = date_time_ymd(4000, 1, 1)),
        "the certificate of localhost is not valid before 4000-01-01T00:00:00Z; check the clock of this machine",
    );
    refused(
        authority.serve(NAMES, |it| it.is_ca = IsCa::Ca(BasicConstraints::Unconstrained)),
        "the certificate of localhost is that of a certificate authority; a server needs a separate one",
    );
    refused(
        authority.serve(NAMES, |it| {
            it.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        }),
        "the certificate of localhost is not trusted: ",
    );
}

#[test]
fn any_certificate_is_accepted_if_that_is_granted() {
    let authority = Authority::new("one");
    let insecure = |path: &str| secure(path, &json!({ "insecure": true }));
    let refused = "--allow-insecure=127.0.0.1:PORT would allow it";
    for port in [
        authority.serve(NAMES, |_| {}),
        authority.serve(&["a.example"], |_| {}),
        authority.serve(NAMES, |it| it.not_after = date_time_ymd(2020, 2, 3)),
    ] {
        check_at(
            port,
            &["localhost:PORT", "127.0.0.1:PORT", "insecure localhost:PORT"],
            &[
                (insecure("/echo"), Ok(("status", json!(200)))),
                (insecure("/echo").replace("localhost", "127.0.0.1"), Err(refused)),
                // What was accepted in one call is not accepted in the next one.
                (secure("/echo", &json!({})), Err("the certificate of ")),
                (insecure("/found"), Ok(("json.path", json!("/echo")))),
                (insecure("/naked"), Err("which is not encrypted")),
                (
                    secure("/echo", &authority.trusted(json!({ "insecure": true }))),
                    Err(
                        "`ca` and `insecure` cannot be combined: `insecure` disables the check of the certificate",
                    ),
                ),
                (
                    secure("/echo", &json!({ "insecure": "yes" })),
                    Err("`insecure`: expected true or false"),
                ),
            ],
        );
    }
    // To another name, and without a grant of connections.
    let port = authority.serve(NAMES, |_| {});
    let granted = ["localhost:PORT", "127.0.0.1:PORT", "insecure 127.0.0.1:PORT"];
    let by_address = insecure("/other").replace("localhost", "127.0.0.1");
    check_at(
        port,
        &granted,
        &[(by_address, Err("--allow-insecure=localhost:PORT would allow it"))],
    );
    let error = "the connection to localhost:PORT is not granted";
    check_at(port, &["insecure localhost:PORT"], &[(insecure("/echo"), Err(error))]);
}

#[test]
fn a_server_that_requests_a_certificate_gets_that_of_the_script() {
    let (authority, clients) = (Authority::new("one"), Authority::new("clients"));
    let port = authority.serve_to(NAMES, |_| {}, Some(&clients));
    let (cert, key) = clients.client();
    let (stranger, its_key) = authority.client();
    let ask = |others| secure("/echo", &authority.trusted(others));
    check_at(
        port,
        GRANTED,
        &[
            (ask(json!({ "cert": cert, "key": key })), Ok(("status", json!(200)))),
            (ask(json!({})), Err("https://localhost:PORT/echo: ")),
            (
                ask(json!({ "cert": stranger, "key": its_key })),
                Err("https://localhost:PORT/echo: "),
            ),
            // Not that of the previous call.
            (ask(json!({ "cert": cert, "key": key })), Ok(("ok", json!(true)))),
            (ask(json!({})), Err("https://localhost:PORT/echo: ")),
            (ask(json!({ "cert": cert, "key": its_key })), Err("`cert` and `key`: ")),
            (ask(json!({ "cert": cert })), Err("`cert` needs `key`")),
            (ask(json!({ "key": key })), Err("`key` needs `cert`")),
            (ask(json!({ "cert": "x", "key": key })), Err("`cert`: contains no certificate")),
        ],
    );
}

#[test]
fn redirects_from_https_to_http_are_rejected() {
    let authority = Authority::new("one");
    let port = authority.serve(NAMES, |_| {});
    let ask = |path: &str, others| secure(path, &authority.trusted(others));
    check_at(
        port,
        GRANTED,
        &[
            (
                ask("/naked", json!({})),
                Err(
                    "https://localhost:PORT/naked redirects to http://localhost:PORT/, which is not encrypted",
                ),
            ),
            (
                ask("/stranger", json!({})),
                Err(
                    "redirects to https://a.example:PORT/echo: the connection to a.example:PORT is not granted to this \
                     script; --allow-net=a.example:PORT would allow it",
                ),
            ),
            (ask("/metadata", json!({})), Err("which is not encrypted")),
        ],
    );
}

#[test]
fn an_encrypted_response_has_the_same_limits() {
    let authority = Authority::new("one");
    let port = authority.serve(NAMES, |_| {});
    let ask = |path: &str, others| secure(path, &authority.trusted(others));
    let large = Err("the response is larger than 100 bytes; increase the option `size`");
    let late = Err("no complete response within 0.3 s; increase the option `timeout`");
    check_at(
        port,
        GRANTED,
        &[
            (ask("/large", json!({ "size": 100 })), large.clone()),
            (ask("/endless", json!({ "size": 100 })), large),
            (ask("/slow", json!({ "timeout": "300ms" })), late.clone()),
            (ask("/half", json!({ "timeout": "300ms" })), late),
            (ask("/cut", json!({})), Err("https://localhost:PORT/cut: ")),
        ],
    );
}
