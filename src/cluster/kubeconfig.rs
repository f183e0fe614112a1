//! Reads kubeconfigs.
//!
//! `kube` can read them, too, but its code that reads YAML into these types is 0.65 MB of the binary. Here, YAML becomes JSON values, as
//! in other places of the program, and the types are filled by hand with the fields that `kube` uses to connect.

use std::{
    error::Error as _,
    fmt, fs, io,
    path::{MAIN_SEPARATOR, Path},
};

use kube::config::{
    AuthInfo, AuthProviderConfig, Cluster, Context, ExecConfig, ExecInteractiveMode, Kubeconfig,
    KubeconfigError, NamedAuthInfo, NamedCluster, NamedContext, NamedExtension,
};
use serde_json::{Map, Value};

type KubeconfigFields = Map<String, Value>;

/// The reason why a kubeconfig could not be read.
#[derive(Debug)]
pub(super) enum Unreadable {
    File(io::Error),
    /// Invalid YAML, or documents that contradict each other.
    Content(KubeconfigError),
    /// A field with a value of another type; the text names the field.
    Field(String),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::File(error) => error.fmt(formatter),
            Unreadable::Content(error) => chain(error).fmt(formatter),
            Unreadable::Field(message) => message.fmt(formatter),
        }
    }
}

/// Reads a file. Relative paths in it are those of its directory.
pub(super) fn read(file: &Path) -> Result<Kubeconfig, Unreadable> {
    let text = decoded(fs::read(file).map_err(Unreadable::File)?).map_err(Unreadable::File)?;
    let mut kubeconfig = parse(&text)?;
    if let Some(directory) = file.parent() {
        resolve_paths(&mut kubeconfig, directory);
    }
    Ok(kubeconfig)
}

/// Parses a kubeconfig. Several documents are merged, as several files are.
pub(super) fn parse(text: &str) -> Result<Kubeconfig, Unreadable> {
    let options = serde_saphyr::options! { strict_booleans: true };
    let documents: Vec<Value> = serde_saphyr::from_str_multiple_with_options(text, options)
        .map_err(|it| Unreadable::Content(KubeconfigError::Parse(Box::new(it))))?;
    documents.into_iter().filter(|it| !it.is_null()).try_fold(
        Kubeconfig::default(),
        |merged, next| {
            let next = from_value(next).map_err(Unreadable::Field)?;
            merged.merge(next).map_err(Unreadable::Content)
        },
    )
}

/// Converts the fields of a kubeconfig. The error names the field that has another type.
pub(super) fn from_value(value: Value) -> Result<Kubeconfig, String> {
    let Value::Object(mut fields) = value else { return Err("it is not a map".into()) };
    let it = &mut fields;
    Ok(Kubeconfig {
        kind: text(it, "kind")?,
        api_version: text(it, "apiVersion")?,
        current_context: text(it, "current-context")?,
        clusters: list(it, "clusters", |it| {
            Ok(NamedCluster {
                name: name(it)?,
                cluster: map(it, "cluster", cluster)?,
                ..NamedCluster::default()
            })
        })?,
        contexts: list(it, "contexts", |it| {
            Ok(NamedContext {
                name: name(it)?,
                context: map(it, "context", context)?,
                ..NamedContext::default()
            })
        })?,
        auth_infos: list(it, "users", |it| {
            Ok(NamedAuthInfo {
                name: name(it)?,
                auth_info: map(it, "user", user)?,
                ..NamedAuthInfo::default()
            })
        })?,
        ..Kubeconfig::default()
    })
}

fn cluster(it: &mut KubeconfigFields) -> Result<Cluster, String> {
    Ok(Cluster {
        server: text(it, "server")?,
        insecure_skip_tls_verify: flag(it, "insecure-skip-tls-verify")?,
        certificate_authority: text(it, "certificate-authority")?,
        certificate_authority_data: text(it, "certificate-authority-data")?,
        proxy_url: text(it, "proxy-url")?,
        disable_compression: flag(it, "disable-compression")?,
        tls_server_name: text(it, "tls-server-name")?,
        // Exec plugins can request one of them.
        extensions: Some(list(it, "extensions", |it| {
            let extension = it.remove("extension").unwrap_or_default();
            Ok(NamedExtension { name: name(it)?, extension })
        })?),
        ..Cluster::default()
    })
}

fn context(it: &mut KubeconfigFields) -> Result<Context, String> {
    Ok(Context {
        cluster: text(it, "cluster")?.ok_or("`cluster` is missing")?,
        user: text(it, "user")?,
        namespace: text(it, "namespace")?,
        ..Context::default()
    })
}

fn user(it: &mut KubeconfigFields) -> Result<AuthInfo, String> {
    let extra = pairs(it, "as-user-extra", texts)?;
    Ok(AuthInfo {
        username: text(it, "username")?,
        password: text(it, "password")?.map(Into::into),
        token: text(it, "token")?.map(Into::into),
        token_file: text(it, "tokenFile")?,
        client_certificate: text(it, "client-certificate")?,
        client_certificate_data: text(it, "client-certificate-data")?,
        client_key: text(it, "client-key")?,
        client_key_data: text(it, "client-key-data")?.map(Into::into),
        impersonate: text(it, "as")?,
        impersonate_uid: text(it, "as-uid")?,
        impersonate_groups: optional(it, "as-groups", texts)?,
        impersonate_user_extra: extra.map(|it| it.into_iter().collect()),
        auth_provider: map(it, "auth-provider", auth_provider)?,
        exec: map(it, "exec", exec)?,
        ..AuthInfo::default()
    })
}

fn auth_provider(it: &mut KubeconfigFields) -> Result<AuthProviderConfig, String> {
    let config = pairs(it, "config", string)?;
    Ok(AuthProviderConfig {
        name: name(it)?,
        config: config.into_iter().flatten().collect(),
        ..AuthProviderConfig::default()
    })
}

fn exec(it: &mut KubeconfigFields) -> Result<ExecConfig, String> {
    let interactive_mode = match text(it, "interactiveMode")?.as_deref() {
        None => None,
        Some("Never") => Some(ExecInteractiveMode::Never),
        Some("IfAvailable") => Some(ExecInteractiveMode::IfAvailable),
        Some("Always") => Some(ExecInteractiveMode::Always),
        Some(other) => return Err(format!("`interactiveMode` cannot be '{other}'")),
    };
    let env = list(it, "env", |it| {
        let variable = std::mem::take(it).into_iter();
        variable.map(|(key, value)| Ok((key, string(value)?))).collect()
    })?;
    Ok(ExecConfig {
        api_version: text(it, "apiVersion")?,
        command: text(it, "command")?,
        args: optional(it, "args", texts)?,
        env: Some(env),
        install_hint: text(it, "installHint")?,
        interactive_mode,
        provide_cluster_info: flag(it, "provideClusterInfo")?.unwrap_or_default(),
        ..ExecConfig::default()
    })
}

/// Takes a field, unless it is missing or null. Errors name it.
fn optional<T>(
    fields: &mut KubeconfigFields,
    key: &str,
    convert: impl FnOnce(Value) -> Result<T, String>,
) -> Result<Option<T>, String> {
    let value = fields.remove(key).filter(|it| !it.is_null());
    value.map(convert).transpose().map_err(|it| format!("`{key}`: {it}"))
}

fn text(fields: &mut KubeconfigFields, key: &str) -> Result<Option<String>, String> {
    optional(fields, key, string)
}

fn name(fields: &mut KubeconfigFields) -> Result<String, String> {
    text(fields, "name")?.ok_or_else(|| "`name` is missing".to_owned())
}

fn flag(fields: &mut KubeconfigFields, key: &str) -> Result<Option<bool>, String> {
    let truth = |value: Value| {
        value.as_bool().ok_or_else(|| format!("expected true or false, not {}", kind(&value)))
    };
    optional(fields, key, truth)
}

fn map<T>(
    fields: &mut KubeconfigFields,
    key: &str,
    convert: fn(&mut KubeconfigFields) -> Result<T, String>,
) -> Result<Option<T>, String> {
    optional(fields, key, |value| entries(value).and_then(|mut it| convert(&mut it)))
}

fn list<T>(
    fields: &mut KubeconfigFields,
    key: &str,
    convert: fn(&mut KubeconfigFields) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let found = optional(fields, key, |value| {
        let items = items(value)?.into_iter().enumerate();
        let converted = items.map(|(index, item)| {
            let converted = entries(item).and_then(|mut it| convert(&mut it));
            converted.map_err(|it| format!("[{index}]: {it}"))
        });
        converted.collect()
    });
    found.map(Option::unwrap_or_default)
}

fn pairs<T>(
    fields: &mut KubeconfigFields,
    key: &str,
    convert: fn(Value) -> Result<T, String>,
) -> Result<Option<Vec<(String, T)>>, String> {
    optional(fields, key, |value| {
        entries(value)?.into_iter().map(|(key, value)| Ok((key, convert(value)?))).collect()
    })
}

fn texts(value: Value) -> Result<Vec<String>, String> {
    items(value)?.into_iter().map(string).collect()
}

fn items(value: Value) -> Result<Vec<Value>, String> {
    let Value::Array(items) = value else {
        return Err(format!("expected a list, not {}", kind(&value)));
    };
    Ok(items)
}

fn entries(value: Value) -> Result<KubeconfigFields, String> {
    let Value::Object(fields) = value else {
        return Err(format!("expected a map, not {}", kind(&value)));
    };
    Ok(fields)
}

/// Returns a string. As for kubectl, integers and booleans need no quotes; a float is an error, because its text is not known.
fn string(value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Bool(it) => Ok(it.to_string()),
        Value::Number(it) if !it.is_f64() => Ok(it.to_string()),
        Value::Number(_) => Err("expected a string, not a float: put it in quotes".into()),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(format!("expected a string, not {}", kind(&value)))
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// Returns the text of a file, which editors of Windows write as UTF-16 or with a byte order mark.
fn decoded(bytes: Vec<u8>) -> io::Result<String> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what);
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = bytes.as_chunks().0.iter().map(|it| unit(*it)).collect::<Vec<_>>();
        String::from_utf16(&units).map_err(|_invalid| invalid("invalid UTF-16"))
    };
    match bytes.as_slice() {
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes),
        _ => {
            let text = String::from_utf8(bytes).map_err(|_invalid| invalid("invalid UTF-8"))?;
            Ok(text.strip_prefix('\u{feff}').map_or(text.clone(), str::to_owned))
        }
    }
}

/// Makes the paths of files absolute, and that of an exec plugin unless it is searched in `PATH`.
fn resolve_paths(kubeconfig: &mut Kubeconfig, directory: &Path) {
    let resolve = |path: &mut Option<String>| {
        // An absolute path replaces the directory.
        if let Some(found) =
            path.as_ref().and_then(|it| directory.join(it).into_os_string().into_string().ok())
        {
            *path = Some(found);
        }
    };
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|it| it.cluster.as_mut()) {
        resolve(&mut cluster.certificate_authority);
    }
    for user in kubeconfig.auth_infos.iter_mut().filter_map(|it| it.auth_info.as_mut()) {
        resolve(&mut user.client_certificate);
        resolve(&mut user.client_key);
        resolve(&mut user.token_file);
        let exec = user.exec.as_mut().map(|it| &mut it.command);
        if let Some(command) =
            exec.filter(|it| it.as_ref().is_some_and(|it| it.contains(MAIN_SEPARATOR)))
        {
            resolve(command);
        }
    }
}

/// Returns an error with its source: most messages of `kube` already contain it.
pub(super) fn chain(error: &KubeconfigError) -> String {
    let mut text = error.to_string();
    if let Some(source) = error.source().map(ToString::to_string)
        && !text.contains(&source)
    {
        text = format!("{text}: {source}");
    }
    // A YAML error shows its location below the first line, and paths have two kinds of quotes.
    text.lines().next().unwrap_or_default().replace("'\"", "'").replace("\"'", "'")
}
