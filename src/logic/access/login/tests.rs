//! Accepted and rejected results of login handlers.

use serde_json::{Value, json};

use super::{ConnectionInfo, Login, Method, native};

fn problem(value: &Value) -> String {
    Login::parse(value).unwrap_err()
}

#[test]
fn all_fields_are_taken() {
    let login = Login::parse(&json!({
        "server": "https://there", "ca_data": "CA", "insecure": true, "username": "u", "password": "p", "scheme": "S",
        "token": "t", "certificate_path": "/c", "private_key_path": "/k", "proxy_url": "http://p", "trust_env": true,
        "default_namespace": "ns1", "priority": 5, "expiration": "2026-01-01T00:00:00+01:00",
        "headers": {"X-Gate": "open"},
    }))
    .unwrap();
    assert_eq!(login.priority, 5);
    assert_eq!(login.expiration.unwrap().to_string(), "2025-12-31T23:00:00Z");
    assert_eq!(login.default_namespace.as_deref(), Some("ns1"));
    let Method::Info(info) = login.method else { panic!("another method") };
    assert_eq!(info.basic(), Some(("u", "p")));
    assert_eq!(info.trust_env, Some(true));
    assert_eq!(info.headers, [("X-Gate".to_owned(), "open".to_owned())].into());
    let value = json!({"server": "x", "headers": {"X-Gate": 7}});
    assert_eq!(problem(&value), "`headers`: expected a table of texts, got a table");
}

#[test]
fn absent_fields_have_the_defaults_of_kopf() {
    let login = Login::parse(&json!({"server": "https://there", "token": null})).unwrap();
    let info = ConnectionInfo { server: "https://there".into(), ..ConnectionInfo::default() };
    assert_eq!(login.method, Method::Info(Box::new(info)));
    assert_eq!((login.priority, login.expiration, login.default_namespace), (0, None, None));
}

#[test]
fn an_expiration_without_an_offset_is_one_of_utc() {
    let moment = |value: Value| {
        let login = Login::parse(&json!({"server": "x", "expiration": value})).unwrap();
        login.expiration.unwrap().to_string()
    };
    assert_eq!(moment(json!("2026-01-01T00:00:00")), "2026-01-01T00:00:00Z");
    assert_eq!(moment(json!("2026-01-01 00:00:00.5")), "2026-01-01T00:00:00.5Z");
    assert_eq!(moment(json!(1_767_225_600)), "2026-01-01T00:00:00Z");
    assert!(
        problem(&json!({"server": "x", "expiration": "soon"}))
            .starts_with("`expiration`: expected a moment")
    );
    assert!(problem(&json!({"server": "x", "expiration": 1e300})).starts_with("`expiration`"));
}

#[test]
fn errors_do_not_contain_the_values() {
    assert_eq!(
        problem(&json!({"server": "x", "tokn": "s"})),
        "there is no field `tokn`; did you mean `token`?"
    );
    assert_eq!(
        problem(&json!({"server": "x", "token": 5})),
        "`token`: expected a string, got a number"
    );
    assert!(problem(&json!({"token": "s"})).starts_with("`server` is missing"));
    assert_eq!(
        problem(&json!({"server": "x", "certificate_path": "a", "certificate_data": "b"})),
        "Both certificate path & data are set. Need only one."
    );
    assert_eq!(problem(&json!("token")), "only a kopf.ConnectionInfo is accepted, got a string");
}

#[test]
fn a_native_login_is_a_name_with_the_priority_of_kopf() {
    for (method, priority) in [(Method::Kubeconfig, 10), (Method::ServiceAccount, 20)] {
        let login = Login::parse(&native(&method)).unwrap();
        assert_eq!((login.method, login.priority), (method, priority));
    }
    let mut chosen = native(&Method::Kubeconfig);
    chosen["priority"] = json!(-1);
    assert_eq!(Login::parse(&chosen).unwrap().priority, -1);
    chosen["token"] = json!("t");
    assert_eq!(problem(&chosen), "there is no field `token`");
}

#[test]
fn credentials_are_not_printed() {
    let login =
        Login::parse(&json!({"server": "x", "token": "secret", "password": "secret"})).unwrap();
    assert!(!format!("{login:?}").contains("secret"));
}
