//! Where the cluster is and who we are: a kubeconfig, or the service account of the pod we run in.
//!
//! `kube` reads the files and runs the exec plugins; here we choose between the two sources and say in one line what is wrong.

use std::{
    error::Error as _,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use kube::{
    Client, Config,
    client::ClientBuilder,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};

use super::failure::{Failure, one_line, reason};
use crate::{
    ports::{ApiError, ErrorClass},
    settings::Settings,
};

/// The longest time to make a connection, unless settings say otherwise: more than a distant server needs.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest reason of a broken file in a message.
const REASON_CHARS: usize = 300;

/// How to connect.
#[derive(Clone, Debug, Default)]
pub struct ConnectOptions {
    /// The settings of requests; see [`super::KubeCluster::configure`] for later changes.
    pub settings: Arc<Settings>,
}

/// Where clients come from: each has the credentials as they are when it is made.
#[derive(Clone, Debug)]
pub(super) struct Source {
    connect_timeout: Duration,
}

impl Source {
    /// The source that these options describe.
    pub(super) fn new(options: &ConnectOptions) -> Self {
        // Kept for the life of the process: another provider that was installed before us serves as well.
        let _already_installed =
            rustls::crypto::ring::default_provider().install_default().is_err();
        let networking = &options.settings.networking;
        Source { connect_timeout: networking.connect_timeout.unwrap_or(CONNECT_TIMEOUT) }
    }

    /// A client with the present credentials, for renewals.
    pub(super) async fn client(&self) -> Result<Client, ApiError> {
        Ok(self.connect().await?.0)
    }

    /// A client and the address of its server.
    pub(super) async fn connect(&self) -> Result<(Client, String), ApiError> {
        let mut config = configuration().await?;
        // The one policy of repeating is ours.
        config.default_retry = false;
        config.connect_timeout = Some(self.connect_timeout);
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        // An exec plugin runs in here and may ask a user: not on a thread that others wait for.
        let built = tokio::task::spawn_blocking(move || {
            ClientBuilder::try_from(config).map(ClientBuilder::build)
        });
        match built.await {
            Ok(Ok(client)) => Ok((client, server)),
            Ok(Err(error)) => Err(unusable(&error)),
            Err(error) => Err(refuse(format!("cannot make a client: {error}"), None)),
        }
    }
}

/// The configuration of the first source that is there.
async fn configuration() -> Result<Config, ApiError> {
    let kubeconfig = match Kubeconfig::read() {
        Ok(found) => found,
        Err(error) if is_absent(&error) => return in_cluster(&error),
        Err(error) => return Err(broken(&error)),
    };
    let contexts = kubeconfig.contexts.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
    let options = KubeConfigOptions::default();
    let found = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    found.map_err(|error| incomplete(&error, &contexts))
}

fn in_cluster(absent: &KubeconfigError) -> Result<Config, ApiError> {
    Config::incluster().map_err(|error| {
        let path = match absent {
            KubeconfigError::ReadConfig(_, path) => format!(" at {}", path.display()),
            _ => String::new(),
        };
        let mut message = format!("no kubeconfig{path}, and not in a cluster");
        // Without these variables we are surely outside; anything else is a broken pod, and its reason matters.
        if !matches!(error, kube::config::InClusterError::ReadEnvironmentVariable(_)) {
            message = format!(
                "no kubeconfig{path}, and the service account cannot be used: {}",
                reason(&error)
            );
        }
        refuse(message, Some("set KUBECONFIG to a file, or run in a pod with a service account"))
    })
}

/// Whether the file is simply not there.
fn is_absent(error: &KubeconfigError) -> bool {
    match error {
        KubeconfigError::FindPath => true,
        KubeconfigError::ReadConfig(error, _) => error.kind() == ErrorKind::NotFound,
        _ => false,
    }
}

/// A file that cannot be read or parsed.
fn broken(error: &KubeconfigError) -> ApiError {
    let path = match error {
        KubeconfigError::ReadConfig(_, path) => Some(path.clone()),
        _ => named_files().into_iter().find(|it| Kubeconfig::read_from(it).is_err()),
    };
    let file = path.as_deref().map(Path::display).map(|it| format!(" {it}")).unwrap_or_default();
    let reason = match error {
        KubeconfigError::ReadConfig(error, _) => error.to_string(),
        KubeconfigError::Parse(error) => error.to_string(),
        _ => error.to_string(),
    };
    let message = format!("cannot read the kubeconfig{file}: {}", one_line(&reason, REASON_CHARS));
    refuse(message, Some("`kubectl config view` must be able to read it too"))
}

/// The files of `KUBECONFIG`, which `kube` has read already: its errors do not say in which one the mistake is.
fn named_files() -> Vec<PathBuf> {
    let value = std::env::var_os("KUBECONFIG").unwrap_or_default();
    std::env::split_paths(&value).filter(|it| !it.as_os_str().is_empty()).collect()
}

/// A kubeconfig that does not lead to a cluster.
fn incomplete(error: &KubeconfigError, contexts: &[String]) -> ApiError {
    let known = if contexts.is_empty() { "none".into() } else { contexts.join(", ") };
    match error {
        KubeconfigError::CurrentContextNotSet => refuse(
            format!("the kubeconfig has no current context; contexts in it: {known}"),
            Some("choose one with `kubectl config use-context NAME`"),
        ),
        KubeconfigError::LoadContext(name) => refuse(
            format!("the kubeconfig has no context '{name}'; contexts in it: {known}"),
            Some("choose one with `kubectl config use-context NAME`"),
        ),
        KubeconfigError::LoadClusterOfContext(name) => refuse(
            format!("the kubeconfig has no cluster '{name}', which its current context names"),
            Some("repair the context with `kubectl config set-context --current --cluster=NAME`"),
        ),
        _ => refuse(
            format!(
                "the kubeconfig cannot be used: {}",
                one_line(&error_chain(error), REASON_CHARS)
            ),
            Some("`kubectl version` must work with it too"),
        ),
    }
}

/// A configuration that no client can be made of.
fn unusable(error: &kube::Error) -> ApiError {
    let failure = Failure::of_client(error);
    let class = match failure {
        Failure::Credentials(_) => ErrorClass::Denied,
        _ => ErrorClass::Fatal,
    };
    let message = match failure {
        Failure::Credentials(reason) => {
            format!("cannot log in: {}", one_line(&reason, REASON_CHARS))
        }
        other => format!("cannot make a client of the kubeconfig: {other}"),
    };
    let hint = "run the exec plugin of the current context by hand, or check its certificates and token file";
    ApiError { class, status: None, message, hint: Some(hint.into()) }
}

/// The texts of `kube` repeat their sources already, except for a few.
fn error_chain(error: &KubeconfigError) -> String {
    let text = error.to_string();
    match error.source() {
        Some(source) if !text.contains(&source.to_string()) => format!("{text}: {source}"),
        Some(_) | None => text,
    }
}

fn refuse(message: String, hint: Option<&str>) -> ApiError {
    ApiError { class: ErrorClass::Fatal, status: None, message, hint: hint.map(str::to_owned) }
}
