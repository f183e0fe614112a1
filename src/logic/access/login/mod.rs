//! The results of login handlers: a connection info with Kopf's fields, or a native login of the operator.
//!
//! Then `logic/access/vault/` keeps the credentials, and `cluster/` creates connections from them.

use std::{collections::BTreeMap, fmt};

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use serde_json::{Map, Value};

use crate::logic::text::nearest::nearest;
use crate::sorted::CollectSorted as _;

#[cfg(test)]
mod tests;

/// The key that marks a native login: scripts refer to it, and cannot read its credentials.
const NATIVE: &str = "login_with";

/// The fields of every login.
const COMMON: &[&str] = &["default_namespace", "priority", "expiration"];

/// All other fields of a connection info.
const FIELDS: &[&str] = &[
    "server",
    "ca_path",
    "ca_data",
    "insecure",
    "username",
    "password",
    "scheme",
    "token",
    "certificate_path",
    "certificate_data",
    "private_key_path",
    "private_key_data",
    "proxy_url",
    "trust_env",
    "headers",
];

/// The result of a login handler.
#[derive(Clone, Debug, PartialEq)]
pub struct Login {
    /// The method of authentication.
    pub method: Method,
    /// Logins with a higher priority are used first.
    pub priority: i64,
    /// The time from which it must not be used.
    pub expiration: Option<Timestamp>,
    /// The namespace of events of cluster-scoped objects; defaults to that of the credentials.
    pub default_namespace: Option<String>,
}

/// A method of authentication.
#[derive(Clone, Debug, PartialEq)]
pub enum Method {
    /// With the connection info of a script.
    Info(Box<ConnectionInfo>),
    /// With the current context of the kubeconfig.
    Kubeconfig,
    /// With the service account of the pod.
    ServiceAccount,
}

/// The address of a cluster and the credentials for it. They are never printed.
#[derive(Clone, Default, PartialEq)]
pub struct ConnectionInfo {
    /// The base URL of the API server.
    pub server: String,
    /// A file with the CA bundle.
    pub ca_path: Option<String>,
    /// The CA bundle: PEM, or base64 of it.
    pub ca_data: Option<String>,
    /// Accept any certificate from the server.
    pub insecure: bool,
    /// The user for HTTP Basic authentication, together with the password; preferred to a token.
    pub username: Option<String>,
    /// The password of the user.
    pub password: Option<String>,
    /// The scheme of the token; defaults to `Bearer`.
    pub scheme: Option<String>,
    /// The token for the header `Authorization`, without its scheme.
    pub token: Option<String>,
    /// A file with the client certificate.
    pub certificate_path: Option<String>,
    /// The client certificate: PEM, or base64 of it.
    pub certificate_data: Option<String>,
    /// A file with the private key.
    pub private_key_path: Option<String>,
    /// The private key: PEM, or base64 of it.
    pub private_key_data: Option<String>,
    /// The URL of an HTTP proxy.
    pub proxy_url: Option<String>,
    /// Whether to use the proxy variables of the environment; defaults to `settings.networking.trust_env`.
    pub trust_env: Option<bool>,
    /// Sent with every request, for example for a gateway in front of the API.
    pub headers: BTreeMap<String, String>,
}

/// Returns the value of `kopf.login_with_kubeconfig()` and the like: a reference to a native login.
pub fn native(method: &Method) -> Value {
    let name = match method {
        Method::Info(_) => return Value::Null,
        Method::Kubeconfig => "kubeconfig",
        Method::ServiceAccount => "service_account",
    };
    Value::Object(Map::from_iter([(NATIVE.to_owned(), name.into())]))
}

impl Login {
    /// Reads the value that a script returned.
    ///
    /// # Errors
    /// Fails with a message for the author of the script: missing, unknown, mistyped or contradictory fields.
    pub fn parse(value: &Value) -> Result<Self, String> {
        let Value::Object(fields) = value else {
            return Err(format!("only a kopf.ConnectionInfo is accepted, got {}", kind_of(value)));
        };
        let fields = LoginFields(fields);
        let method = match fields.text(NATIVE)?.as_deref() {
            None => Method::Info(Box::new(ConnectionInfo::parse(&fields)?)),
            Some("kubeconfig") => Method::Kubeconfig,
            Some("service_account") => Method::ServiceAccount,
            Some(other) => return Err(format!("{NATIVE}: there is no login '{other}'")),
        };
        let usual = match &method {
            Method::Info(_) => 0,
            // As in Kopf: in a pod, the service account is preferred.
            Method::Kubeconfig => 10,
            Method::ServiceAccount => 20,
        };
        if !matches!(method, Method::Info(_)) {
            fields.only(&[COMMON, &[NATIVE]].concat())?;
        }
        Ok(Login {
            method,
            priority: fields.integer("priority")?.unwrap_or(usual),
            expiration: fields.moment("expiration")?,
            default_namespace: fields.text("default_namespace")?,
        })
    }
}

impl ConnectionInfo {
    fn parse(fields: &LoginFields<'_>) -> Result<Self, String> {
        fields.only(&[FIELDS, COMMON].concat())?;
        let info = ConnectionInfo {
            server: fields.text("server")?.unwrap_or_default(),
            ca_path: fields.text("ca_path")?,
            ca_data: fields.text("ca_data")?,
            insecure: fields.truth("insecure")?.unwrap_or(false),
            username: fields.text("username")?,
            password: fields.text("password")?,
            scheme: fields.text("scheme")?,
            token: fields.text("token")?,
            certificate_path: fields.text("certificate_path")?,
            certificate_data: fields.text("certificate_data")?,
            private_key_path: fields.text("private_key_path")?,
            private_key_data: fields.text("private_key_data")?,
            proxy_url: fields.text("proxy_url")?,
            trust_env: fields.truth("trust_env")?,
            headers: fields.texts("headers")?.unwrap_or_default(),
        };
        if info.server.is_empty() {
            return Err(
                "`server` is missing: the base URL of the API, such as https://10.0.0.1:6443"
                    .into(),
            );
        }
        for (what, path, data) in [
            ("CA", &info.ca_path, &info.ca_data),
            ("certificate", &info.certificate_path, &info.certificate_data),
            ("private key", &info.private_key_path, &info.private_key_data),
        ] {
            if path.is_some() && data.is_some() {
                return Err(format!("Both {what} path & data are set. Need only one."));
            }
        }
        Ok(info)
    }

    /// Returns user and password, if both are set.
    pub fn basic(&self) -> Option<(&str, &str)> {
        let username = self.username.as_deref().filter(|it| !it.is_empty())?;
        Some((username, self.password.as_deref().filter(|it| !it.is_empty())?))
    }
}

impl fmt::Debug for ConnectionInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionInfo").field("server", &self.server).finish_non_exhaustive()
    }
}

/// The fields of a table of a script; a null counts as absent.
struct LoginFields<'a>(&'a Map<String, Value>);

impl LoginFields<'_> {
    fn only(&self, known: &[&str]) -> Result<(), String> {
        let Some(unknown) = self.0.keys().find(|it| !known.contains(&it.as_str())) else {
            return Ok(());
        };
        let meant = nearest(unknown, known.iter().copied());
        let meant = meant.map(|it| format!("; did you mean `{it}`?")).unwrap_or_default();
        Err(format!("there is no field `{unknown}`{meant}"))
    }

    fn get<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let Some(value) = self.0.get(name).filter(|it| !it.is_null()) else { return Ok(None) };
        // The value may be a secret: report only its type.
        let refused = || format!("`{name}`: expected {expected}, got {}", kind_of(value));
        read(value).map(Some).ok_or_else(refused)
    }

    fn text(&self, name: &str) -> Result<Option<String>, String> {
        self.get(name, "a string", |it| it.as_str().map(str::to_owned))
    }

    fn texts(&self, name: &str) -> Result<Option<BTreeMap<String, String>>, String> {
        self.get(name, "a table of texts", |it| {
            let text = |(key, value): (&String, &Value)| {
                Ok((key.clone(), value.as_str().ok_or(())?.to_owned()))
            };
            it.as_object()?.iter().map(text).try_collect_map::<_, _, ()>().ok()
        })
    }

    fn truth(&self, name: &str) -> Result<Option<bool>, String> {
        self.get(name, "true or false", Value::as_bool)
    }

    fn integer(&self, name: &str) -> Result<Option<i64>, String> {
        self.get(name, "an integer", Value::as_i64)
    }

    fn moment(&self, name: &str) -> Result<Option<Timestamp>, String> {
        let expected = "a moment such as \"2026-01-31T12:00:00Z\", or seconds since 1970";
        self.get(name, expected, moment)
    }
}

/// Reads a time. Without an offset it is UTC.
fn moment(value: &Value) -> Option<Timestamp> {
    if let Some(seconds) = value.as_f64() {
        // Milliseconds are precise enough for an expiration.
        #[expect(clippy::cast_possible_truncation, reason = "out of range is refused below")]
        return Timestamp::from_millisecond((seconds * 1000.0) as i64).ok();
    }
    let text = value.as_str()?;
    let exact = text.parse::<Timestamp>().ok();
    exact.or_else(|| {
        let naive = text.parse::<DateTime>().ok()?;
        naive.to_zoned(TimeZone::UTC).ok().map(|it| it.timestamp())
    })
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}
