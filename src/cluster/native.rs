//! Logins that need no script: the kubeconfig, and the service account of the pod.
//!
//! This module chooses between the two and reports errors in one line.

use std::{
    ffi::OsStr,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use kube::{
    Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};

use super::{
    kubeconfig::{Unreadable, chain, read},
    reason::one_line,
    refusal::{REASON_CHARS, refuse},
    service_account::{self, TOKEN},
};
use crate::logic::access::login::Method;
use crate::ports::{ApiError, NativeLogins};

/// The kubeconfig, its context, and the impersonated user and groups: the options of kubectl.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigOverrides {
    /// The file; `None`: those of `KUBECONFIG`, else `~/.kube/config`.
    pub kubeconfig: Option<PathBuf>,
    /// The context; `None`: the current one of the file.
    pub context: Option<String>,
    /// The user to impersonate.
    pub user: Option<String>,
    /// The groups to impersonate.
    pub groups: Vec<String>,
}

impl ConfigOverrides {
    /// Returns whether a kubeconfig must be used: a context is one of a file.
    fn is_kubeconfig(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    /// Adds the user and the groups, which the server checks against the right to impersonate them.
    pub(super) fn impersonate(&self, config: &mut Config) {
        if let Some(user) = &self.user {
            config.auth_info.impersonate = Some(user.clone());
            config.auth_info.impersonate_groups =
                Some(self.groups.clone()).filter(|it| !it.is_empty());
        }
    }

    /// Returns the name of the context that is used; `None` if there is none, or the service account of the pod is used.
    pub fn context_name(&self) -> Option<String> {
        if self.context.is_some() {
            return self.context.clone();
        }
        let (Method::Kubeconfig, _) = first(self) else { return None };
        // The current context is that of the first file that has one. An invalid file is reported by the login.
        let files = self.files();
        files.iter().find_map(|it| read(it).ok()?.current_context)
    }

    /// Returns the context that is used and its files, if several files of `KUBECONFIG` define it: the first one would be used.
    pub fn ambiguous_context(&self) -> Option<(String, Vec<PathBuf>)> {
        let name = self.context_name()?;
        let defines =
            |it: &PathBuf| read(it).is_ok_and(|it| it.contexts.iter().any(|it| it.name == name));
        let mut files: Vec<_> = self.files().into_iter().filter(defines).collect();
        files.dedup();
        (files.len() > 1).then_some((name, files))
    }

    /// Returns the files to read, in order.
    fn files(&self) -> Vec<PathBuf> {
        self.kubeconfig.clone().map_or_else(files, |it| vec![it])
    }
}

/// Returns the available logins.
pub(super) fn present(overrides: &ConfigOverrides) -> NativeLogins {
    let kubeconfig =
        overrides.is_kubeconfig() || is_named() || default_file().is_some_and(|it| it.exists());
    NativeLogins { kubeconfig, service_account: service_account::is_there() }
}

/// Returns the login of operators whose scripts have none, and its name.
///
/// A kubeconfig was created on purpose, so it takes precedence over the service account, which every pod has.
pub(super) fn first(overrides: &ConfigOverrides) -> (Method, &'static str) {
    let files = files();
    let all_missing =
        !overrides.is_kubeconfig() && !files.is_empty() && files.iter().all(|it| !it.exists());
    if all_missing && service_account::is_there() {
        (Method::ServiceAccount, "login_with_service_account")
    } else {
        (Method::Kubeconfig, "login_with_kubeconfig")
    }
}

/// Returns the configuration of the context, and its proxy.
pub(super) async fn kubeconfig(
    overrides: &ConfigOverrides,
) -> Result<(Config, Option<String>), ApiError> {
    let files = overrides.files();
    let mut kubeconfig = Kubeconfig::default();
    for file in &files {
        let next = read(file).map_err(|error| {
            if is_absent(&error) { absent(file, overrides) } else { broken(&error, Some(file)) }
        })?;
        let merged = kubeconfig.merge(next).map_err(Unreadable::Content);
        kubeconfig = merged.map_err(|error| broken(&error, Some(file)))?;
    }
    if files.is_empty() {
        let hint = "set KUBECONFIG to a file, or run in a pod with a service account";
        return Err(refuse("no kubeconfig: there is no home directory".into(), Some(hint)));
    }
    let contexts = kubeconfig.contexts.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
    let context = overrides.context.clone().or_else(|| kubeconfig.current_context.clone());
    let proxy = context.as_deref().and_then(|it| proxy(&kubeconfig, it));
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    let found = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    Ok((found.map_err(|error| incomplete(&error, &contexts))?, proxy))
}

/// Returns `proxy-url` of the cluster of the context.
fn proxy(kubeconfig: &Kubeconfig, context: &str) -> Option<String> {
    let context = kubeconfig.contexts.iter().find(|it| it.name == context)?.context.as_ref()?;
    let cluster = kubeconfig.clusters.iter().find(|it| it.name == context.cluster)?;
    cluster.cluster.as_ref()?.proxy_url.clone()
}

/// Returns the files to read, in order.
fn files() -> Vec<PathBuf> {
    let home = std::env::home_dir();
    let named = named_files(std::env::var_os("KUBECONFIG").as_deref(), home.as_deref());
    if named.is_empty() { default_file().into_iter().collect() } else { named }
}

fn is_named() -> bool {
    !named_files(std::env::var_os("KUBECONFIG").as_deref(), None).is_empty()
}

fn default_file() -> Option<PathBuf> {
    std::env::home_dir().map(|it| it.join(".kube/config"))
}

/// Returns the entries of `KUBECONFIG`. Nothing else expands a `~` in the manifest of a pod.
pub(super) fn named_files(value: Option<&OsStr>, home: Option<&Path>) -> Vec<PathBuf> {
    let entries = std::env::split_paths(value.unwrap_or_default());
    let trimmed = entries.map(|it| match it.to_str() {
        Some(text) => PathBuf::from(text.trim()),
        None => it,
    });
    let expanded = trimmed.map(|it| match (it.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        (Ok(_), None) | (Err(_), _) => it,
    });
    expanded.filter(|it| !it.as_os_str().is_empty()).collect()
}

fn absent(file: &Path, overrides: &ConfigOverrides) -> ApiError {
    let file = file.display();
    if overrides.kubeconfig.is_some() {
        let hint = "correct --kubeconfig, or omit it to use KUBECONFIG or ~/.kube/config";
        return refuse(format!("no kubeconfig at {file}"), Some(hint));
    }
    let in_pod = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
    let rest = if in_pod {
        format!("the service account of this pod has no token at {TOKEN}")
    } else {
        "not in a cluster".to_owned()
    };
    let message = format!("no kubeconfig at {file}, and {rest}");
    let hint = if std::env::var_os("KUBECONFIG").is_some_and(|it| !it.is_empty()) {
        "KUBECONFIG refers to a missing file: correct it, or unset it to use ~/.kube/config"
    } else {
        "set KUBECONFIG to a file, or run in a pod with a service account"
    };
    refuse(message, Some(hint))
}

/// Returns whether the file does not exist.
fn is_absent(error: &Unreadable) -> bool {
    matches!(error, Unreadable::File(it) if it.kind() == ErrorKind::NotFound)
}

/// Returns the error for a file that cannot be read or parsed.
pub(super) fn broken(error: &Unreadable, file: Option<&Path>) -> ApiError {
    let file = file.map(|it| format!(" {}", it.display())).unwrap_or_default();
    let reason = one_line(&error.to_string(), REASON_CHARS);
    let message = format!("cannot read the kubeconfig{file}: {reason}");
    refuse(message, Some("check it with `kubectl config view`"))
}

/// Returns the error for a kubeconfig that does not lead to a cluster.
pub(super) fn incomplete(error: &KubeconfigError, contexts: &[String]) -> ApiError {
    let known = if contexts.is_empty() { "none".into() } else { contexts.join(", ") };
    let choose = Some("choose one with --context NAME, or with `kubectl config use-context NAME`");
    if let KubeconfigError::CurrentContextNotSet = error {
        let message = format!("the kubeconfig has no current context; contexts in it: {known}");
        return refuse(message, choose);
    }
    if let KubeconfigError::LoadContext(name) = error {
        let message = format!("the kubeconfig has no context '{name}'; contexts in it: {known}");
        return refuse(message, choose);
    }
    if let KubeconfigError::LoadClusterOfContext(name) = error {
        let message = format!("the kubeconfig has no cluster '{name}', which its context names");
        let repair = "repair it with `kubectl config set-context --current --cluster=NAME`";
        return refuse(message, Some(repair));
    }
    let reason = one_line(&chain(error), REASON_CHARS);
    let message = format!("the kubeconfig cannot be used: {reason}");
    refuse(message, Some("check it with `kubectl version`"))
}
