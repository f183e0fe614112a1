//! Credentials of scripts.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kube::Config;
use serde_json::{Value, json};

use crate::cluster::login;
use crate::logic::access::login::{Login, Method};
use crate::ports::ApiError;

async fn configuration(mut info: Value) -> Result<Config, ApiError> {
    info["server"] = json!("https://there:6443");
    match Login::parse(&info).expect("a connection info").method {
        Method::Info(info) => login::configuration(&info).await,
        Method::Kubeconfig | Method::ServiceAccount => panic!("no connection info"),
    }
}

fn headers(config: &Config) -> Vec<&str> {
    config.headers.iter().map(|it| it.1.to_str().unwrap()).collect()
}

#[tokio::test]
async fn a_token_alone_is_a_bearer_token() {
    let config = configuration(json!({"token": "t"})).await.unwrap();
    assert!(config.auth_info.token.is_some());
    assert!(headers(&config).is_empty());
    assert_eq!(config.cluster_url.to_string(), "https://there:6443/");
}

#[tokio::test]
async fn another_scheme_is_sent_unchanged() {
    let config = configuration(json!({"scheme": "Digest", "token": "t"})).await.unwrap();
    assert_eq!(headers(&config), ["Digest t"]);
    assert!(config.auth_info.token.is_none());
    let config = configuration(json!({"scheme": "Lonely"})).await.unwrap();
    assert_eq!(headers(&config), ["Lonely"]);
}

#[tokio::test]
async fn a_user_with_a_password_wins_over_a_token() {
    let info = json!({"username": "u", "password": "p", "scheme": "S", "token": "t"});
    let config = configuration(info).await.unwrap();
    assert_eq!(config.auth_info.username.as_deref(), Some("u"));
    assert!(config.auth_info.token.is_none());
    assert!(headers(&config).is_empty());
    let config =
        configuration(json!({"username": "u", "password": "", "token": "t"})).await.unwrap();
    assert!(config.auth_info.username.is_none());
    assert!(config.auth_info.token.is_some());
}

#[tokio::test]
async fn certificates_are_pem_or_base64_of_it() {
    let pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for data in [pem.to_owned(), STANDARD.encode(pem)] {
        let config = configuration(json!({"ca_data": data, "insecure": true})).await.unwrap();
        assert_eq!(config.root_cert, Some(vec![vec![0, 0, 0]]));
        assert!(config.accept_invalid_certs);
    }
}

#[tokio::test]
async fn the_error_of_an_invalid_token_does_not_contain_it() {
    let error = configuration(json!({"scheme": "a", "token": "b\nc"})).await.unwrap_err();
    assert_eq!(error.message, "the token cannot be sent: failed to parse header value");
}

#[tokio::test]
async fn headers_of_a_gateway_are_sent_too() {
    let info = json!({"token": "t", "headers": {"X-Gate": "open"}});
    let config = configuration(info).await.unwrap();
    let name = config.headers[0].0.as_str();
    assert_eq!((name, headers(&config)), ("x-gate", vec!["open"]));
    let told = [json!({"X Gate": "open"}), json!({"X-Gate": "o\npen"})]
        .map(async |headers| configuration(json!({"headers": headers})).await.unwrap_err().message);
    assert_eq!(
        futures::future::join_all(told).await,
        [
            "the header 'X Gate' cannot be sent: invalid HTTP header name",
            "the header 'X-Gate' cannot be sent: failed to parse header value",
        ]
    );
}

#[tokio::test]
async fn a_client_certificate_comes_with_its_key() {
    let info = json!({"certificate_data": "Y2VydA==", "private_key_path": "/k"});
    let config = configuration(info).await.unwrap();
    assert_eq!(config.auth_info.client_certificate_data.as_deref(), Some("Y2VydA=="));
    assert_eq!(config.auth_info.client_key.as_deref(), Some("/k"));
}
