//! The settings of the webhook server, as users write them.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{
    SettingShape,
    value::{Plain, unfit},
};
use crate::logic::text::nearest::unknown_option;
use crate::settings::{LocalCluster, VerifyMode, WebhookServer, WebhookService};

/// One option of the server.
struct ServerOption {
    name: &'static str,
    get: fn(&WebhookServer) -> Value,
    set: fn(&mut WebhookServer, &Value) -> Result<(), String>,
}

macro_rules! options {
    ($($name:ident),* $(,)?) => {
        const OPTIONS: &[ServerOption] = &[$(ServerOption {
            name: stringify!($name),
            get: |it| it.$name.to_json(),
            set: |it, value| {
                it.$name = Plain::from_json(value)?;
                Ok(())
            },
        }),*];
    };
}

options! {
    addr, port, path, host, cluster, url, certfile, pkeyfile, cadata, cafile, cadump, extra_sans, insecure, verify_mode, verify_cafile,
    verify_cadata, file_check_interval,
}

impl Plain for WebhookServer {
    const TAKES: &'static str = "a map with options of the server: addr, port, path, host, cluster, url, certfile, \
        pkeyfile, cadata, cafile, cadump, extra_sans, insecure, verify_mode, verify_cafile, verify_cadata, file_check_interval";

    fn to_json(&self) -> Value {
        let default = WebhookServer::default();
        let is_set = |it: &&ServerOption| (it.get)(self) != (it.get)(&default);
        let set = OPTIONS.iter().filter(is_set).map(|it| (it.name.to_owned(), (it.get)(self)));
        Value::Object(set.collect())
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        let none = Map::new();
        let fields = match value {
            Value::Object(fields) => fields,
            // An empty table of a script does not show whether it is a list.
            Value::Array(items) if items.is_empty() => &none,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => return Err(unfit::<Self>(value)),
        };
        let mut server = WebhookServer::default();
        for (name, value) in fields {
            let Some(option) = OPTIONS.iter().find(|it| it.name == name) else {
                let known = OPTIONS.iter().map(|it| it.name).collect::<Vec<_>>();
                return Err(unknown_option(name, &known));
            };
            (option.set)(&mut server, value).map_err(|problem| format!("{name}: {problem}"))?;
        }
        check(&server)?;
        Ok(server)
    }
}

/// Checks combinations of options.
fn check(server: &WebhookServer) -> Result<(), String> {
    if server.certfile.is_some() != server.pkeyfile.is_some() {
        return Err("`certfile` and `pkeyfile` need each other".to_owned());
    }
    if server.insecure && server.certfile.is_some() {
        return Err("an `insecure` server has no certificate: remove `certfile`".to_owned());
    }
    let has_clients = server.verify_cafile.is_some() || server.verify_cadata.is_some();
    let verifies = !matches!(server.verify_mode, None | Some(VerifyMode::None));
    if verifies && !has_clients {
        return Err("`verify_mode` needs `verify_cafile` or `verify_cadata`".to_owned());
    }
    if server.insecure && (verifies || has_clients) {
        return Err("an `insecure` server cannot verify certificates of clients".to_owned());
    }
    if server.file_check_interval < Duration::from_secs(1) {
        return Err("`file_check_interval` must be at least 1 s".to_owned());
    }
    if server.cluster.is_some() && (server.host.is_some() || server.url.is_some()) {
        return Err("`cluster` determines the host: remove it, or `host` and `url`".to_owned());
    }
    match &server.url {
        Some(url) if !url.starts_with("https://") => {
            Err(format!("`url` must begin with https://, got {url:?}: API servers call no others"))
        }
        Some(_) | None => Ok(()),
    }
}

impl Plain for WebhookService {
    const TAKES: &'static str = "a service such as \"NAMESPACE/NAME\" or \"NAMESPACE/NAME:PORT\"";
    const SHAPE: SettingShape = SettingShape::Text;

    fn to_json(&self) -> Value {
        let WebhookService { namespace, name, port } = self;
        match port {
            Some(port) => format!("{namespace}/{name}:{port}").into(),
            None => format!("{namespace}/{name}").into(),
        }
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        let read = || {
            let (namespace, rest) = value.as_str()?.split_once('/')?;
            let (name, port) = match rest.split_once(':') {
                Some((name, port)) => (name, Some(port.parse().ok().filter(|it| *it > 0)?)),
                None => (rest, None),
            };
            let is_name = |it: &str| {
                let is_plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit();
                it.starts_with(is_plain)
                    && it.ends_with(is_plain)
                    && it.chars().all(|it| is_plain(it) || it == '-')
            };
            (is_name(namespace) && is_name(name)).then(|| WebhookService {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                port,
            })
        };
        read().ok_or_else(|| unfit::<Self>(value))
    }
}

/// The names of local clusters.
pub const LOCAL_CLUSTERS: [(&str, LocalCluster); 5] = [
    ("auto", LocalCluster::Auto),
    ("docker-desktop", LocalCluster::DockerDesktop),
    ("k3d", LocalCluster::K3d),
    ("kind", LocalCluster::Kind),
    ("minikube", LocalCluster::Minikube),
];

impl Plain for LocalCluster {
    const TAKES: &'static str =
        "a local cluster: \"auto\", \"docker-desktop\", \"k3d\", \"kind\" or \"minikube\"";

    fn to_json(&self) -> Value {
        let found = LOCAL_CLUSTERS.iter().find(|(_, it)| it == self);
        found.map_or(Value::Null, |(name, _)| (*name).into())
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        let found = LOCAL_CLUSTERS.iter().find(|(name, _)| value.as_str() == Some(name));
        found.map(|(_, it)| *it).ok_or_else(|| unfit::<Self>(value))
    }
}

impl Plain for VerifyMode {
    const TAKES: &'static str = "\"none\", \"optional\" or \"required\"";

    fn to_json(&self) -> Value {
        match self {
            VerifyMode::None => "none".into(),
            VerifyMode::Optional => "optional".into(),
            VerifyMode::Required => "required".into(),
        }
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        match value.as_str() {
            Some("none") => Ok(VerifyMode::None),
            Some("optional") => Ok(VerifyMode::Optional),
            Some("required") => Ok(VerifyMode::Required),
            Some(_) | None => Err(unfit::<Self>(value)),
        }
    }
}

impl Plain for u16 {
    const TAKES: &'static str = "a port from 1 to 65535";

    fn to_json(&self) -> Value {
        (*self).into()
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        let port = super::value::whole(value).and_then(|it| u16::try_from(it).ok());
        port.filter(|it| *it > 0).ok_or_else(|| unfit::<Self>(value))
    }
}

impl Plain for Vec<String> {
    const TAKES: &'static str = "a list of strings";

    fn to_json(&self) -> Value {
        self.clone().into()
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        let read = match value {
            Value::Array(items) => items.iter().map(|it| it.as_str().map(str::to_owned)).collect(),
            Value::Object(fields) if fields.is_empty() => Some(Vec::new()),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => None,
        };
        read.ok_or_else(|| unfit::<Self>(value))
    }
}
