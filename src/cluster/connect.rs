//! Where the cluster is and who we are: a kubeconfig, or the service account of the pod we run in.
//!
//! `kube` reads the files and runs the exec plugins; here we choose between the two sources and say in one line what is wrong.

use std::{error::Error as _, io::ErrorKind, path::PathBuf, sync::Arc, time::Duration};

use kube::{
    Client, Config,
    client::ClientBuilder,
    config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError},
};

use super::{failure::Failure, login::ConnectionInfo, reason::one_line};
use crate::ports::{ApiError, BoxFuture, ErrorClass};
use crate::settings::Settings;

/// The longest time to make a connection, unless settings say otherwise: more than a distant server needs.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest reason of a broken file in a message.
const REASON_CHARS: usize = 300;

/// How to connect.
#[derive(Clone, Default)]
pub struct ConnectOptions {
    /// The settings of requests; see [`super::KubeCluster::configure`] for later changes.
    pub settings: Arc<Settings>,
    /// Asked instead of the kubeconfig and the service account.
    pub login: Option<Login>,
}

/// Gives credentials: at the start, and whenever the server rejects those before.
pub type Login =
    Arc<dyn Fn() -> BoxFuture<'static, Result<ConnectionInfo, ApiError>> + Send + Sync>;

/// Where clients come from: each has the credentials as they are when it is made.
#[derive(Clone)]
pub(super) struct Source {
    login: Option<Login>,
    connect_timeout: Duration,
}

impl Source {
    /// The source that these options describe.
    pub(super) fn new(options: &ConnectOptions) -> Self {
        // Kept for the life of the process: another provider that was installed before us serves as well.
        let _already_installed =
            rustls::crypto::ring::default_provider().install_default().is_err();
        let networking = &options.settings.networking;
        Source {
            login: options.login.clone(),
            connect_timeout: networking.connect_timeout.unwrap_or(CONNECT_TIMEOUT),
        }
    }

    /// A client with the present credentials, and the address of its server.
    pub(super) async fn connect(&self) -> Result<(Client, String), ApiError> {
        let mut config = match &self.login {
            Some(login) => login().await?.configuration().await?,
            None => configuration().await?,
        };
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
        let file = path_of(absent).map(|it| format!(" at {}", it.display())).unwrap_or_default();
        // Without these variables we are surely outside; anything else is a broken pod, and its reason matters.
        let outside = matches!(error, InClusterError::ReadEnvironmentVariable(_));
        let message = if outside {
            format!("no kubeconfig{file}, and not in a cluster")
        } else {
            let reason = one_line(&error.to_string(), REASON_CHARS);
            format!("no kubeconfig{file}, and the service account cannot be used: {reason}")
        };
        refuse(message, Some("set KUBECONFIG to a file, or run in a pod with a service account"))
    })
}

/// Whether the file is simply not there.
fn is_absent(error: &KubeconfigError) -> bool {
    if let KubeconfigError::ReadConfig(error, _) = error {
        return error.kind() == ErrorKind::NotFound;
    }
    matches!(error, KubeconfigError::FindPath)
}

/// A file that cannot be read or parsed.
pub(super) fn broken(error: &KubeconfigError) -> ApiError {
    let unreadable = |it: &PathBuf| Kubeconfig::read_from(it).is_err();
    let path = path_of(error).or_else(|| named_files().into_iter().find(unreadable));
    let file = path.map(|it| format!(" {}", it.display())).unwrap_or_default();
    let reason = if let KubeconfigError::ReadConfig(error, _) = error {
        error.to_string()
    } else {
        chain(error)
    };
    let message = format!("cannot read the kubeconfig{file}: {}", one_line(&reason, REASON_CHARS));
    refuse(message, Some("`kubectl config view` must be able to read it too"))
}

fn path_of(error: &KubeconfigError) -> Option<PathBuf> {
    if let KubeconfigError::ReadConfig(_, path) = error { Some(path.clone()) } else { None }
}

/// The files of `KUBECONFIG`, which `kube` has read already: its errors do not say in which one the mistake is.
fn named_files() -> Vec<PathBuf> {
    let value = std::env::var_os("KUBECONFIG").unwrap_or_default();
    std::env::split_paths(&value).filter(|it| !it.as_os_str().is_empty()).collect()
}

/// A kubeconfig that does not lead to a cluster.
pub(super) fn incomplete(error: &KubeconfigError, contexts: &[String]) -> ApiError {
    let known = if contexts.is_empty() { "none".into() } else { contexts.join(", ") };
    let choose = Some("choose one with `kubectl config use-context NAME`");
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
    refuse(message, Some("`kubectl version` must work with it too"))
}

/// A configuration that no client can be made of.
fn unusable(error: &kube::Error) -> ApiError {
    let failure = Failure::of_client(error);
    let denied = matches!(failure, Failure::Credentials(_));
    let (class, what, hint) = if denied {
        let hint = "run the exec plugin of the current context by hand, or check its token file";
        (ErrorClass::Denied, "cannot log in", hint)
    } else {
        let hint = "check the certificates, the key and the proxy of the current context";
        (ErrorClass::Fatal, "cannot use the kubeconfig", hint)
    };
    let message = format!("{what}: {}", one_line(&failure.to_string(), REASON_CHARS));
    ApiError { class, status: None, message, hint: Some(hint.into()) }
}

/// The texts of `kube` repeat their sources already, except for a few.
pub(super) fn chain(error: &KubeconfigError) -> String {
    let mut text = error.to_string();
    if let Some(source) = error.source().map(ToString::to_string)
        && !text.contains(&source)
    {
        text = format!("{text}: {source}");
    }
    // A YAML error draws the place below its first line, and paths come in two kinds of quotes.
    text.lines().next().unwrap_or_default().replace("'\"", "'").replace("\"'", "'")
}

/// An error before any request.
pub(super) fn refuse(message: String, hint: Option<&str>) -> ApiError {
    ApiError { class: ErrorClass::Fatal, status: None, message, hint: hint.map(str::to_owned) }
}
