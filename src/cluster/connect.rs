//! Creates connections from logins: those of the scripts, else the kubeconfig, else the service account of the pod.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use hyper_util::client::proxy::matcher::Matcher;
use kube::Config;
use serde_json::Value;

use super::{
    certificate::ServerAddress,
    dial,
    failure::RequestFailure,
    http_client::HttpClient,
    in_flight::MutatingRequests,
    login,
    native::{self, ConfigOverrides},
    proxy,
    reason::one_line,
    refusal::{REASON_CHARS, refuse},
    service_account,
    sessions::{ClientSession, LogIn, Sessions},
    token_file::TokenFile,
};
use crate::logic::access::{
    login::{Login, Method},
    vault::LoginResult,
};
use crate::ports::{ApiError, AskLogin, Clock, ErrorClass};
use crate::settings::Settings;
use crate::telemetry::Health;

/// Maximum time to connect, unless the settings define another: more than a distant server needs.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The options of a connection.
#[derive(Clone)]
pub struct ConnectOptions {
    /// The settings of requests. `KubeCluster::configure` passes later changes on.
    pub settings: Arc<Settings>,
    /// Called instead of reading the kubeconfig and the service account.
    pub login: Option<AskLogin>,
    /// The options that select the kubeconfig, the context and the impersonated user.
    pub overrides: ConfigOverrides,
    /// Where logins and requests are reported and counted.
    pub health: Health,
    /// Where mutating requests in flight are counted.
    pub mutating: MutatingRequests,
    /// The clock for expirations.
    pub clock: Clock,
    /// Creates clients from configurations; usually [`dial`].
    pub dial: Dial,
}

/// A function that creates a client from a configuration. It may run an exec plugin, which may prompt a user: never call it on a thread
/// that other tasks need.
pub type Dial = Arc<dyn Fn(Config) -> kube::Result<HttpClient> + Send + Sync>;

impl Default for ConnectOptions {
    fn default() -> Self {
        ConnectOptions {
            settings: Arc::default(),
            login: None,
            overrides: ConfigOverrides::default(),
            health: Health::default(),
            mutating: MutatingRequests::default(),
            clock: Clock::system(),
            dial: Arc::new(dial),
        }
    }
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectOptions").finish_non_exhaustive()
    }
}

/// The source of credentials. Each login reads their current state.
#[derive(Clone)]
struct CredentialSource {
    ask: Option<AskLogin>,
    dial: Dial,
    overrides: ConfigOverrides,
    connect_timeout: Duration,
    trust_env: bool,
}

/// Logs in. The sessions log in again when needed.
pub(super) async fn connect(options: &ConnectOptions) -> Result<Sessions, ApiError> {
    // The provider is global to the process: one that was installed earlier works, too.
    let _already_installed = rustls::crypto::ring::default_provider().install_default().is_err();
    let networking = &options.settings.networking;
    let source = CredentialSource {
        ask: options.login.clone(),
        dial: Arc::clone(&options.dial),
        overrides: options.overrides.clone(),
        connect_timeout: networking.connect_timeout.unwrap_or(CONNECT_TIMEOUT),
        trust_env: networking.trust_env,
    };
    let log_in: LogIn = Box::new(move || {
        let source = source.clone();
        Box::pin(async move { source.log_in().await })
    });
    Sessions::start(log_in, options.clock, &options.health).await
}

impl CredentialSource {
    async fn log_in(&self) -> Result<Vec<LoginResult<Arc<ClientSession>>>, ApiError> {
        let Some(ask) = &self.ask else {
            let (method, name) = native::first(&self.overrides);
            let login = Login { method, priority: 0, expiration: None, default_namespace: None };
            return Ok(vec![self.found(name.into(), &login, None).await?]);
        };
        let returned = ask(native::present(&self.overrides)).await.map_err(|problem| ApiError {
            class: ErrorClass::Denied,
            ..refuse(problem, Some("see the errors of the login handlers above"))
        })?;
        let mut all = Vec::new();
        for (handler, value) in returned {
            let refused =
                |it| refuse(format!("the login handler '{handler}': {it}"), Some(RETURNS));
            let login = Login::parse(&value).map_err(refused)?;
            // The files that the operator reads may have changed although the script returns the same.
            let is_told = matches!(login.method, Method::Info(_));
            all.push(self.found(handler, &login, is_told.then_some(value)).await?);
        }
        if all.is_empty() {
            let message = "no credentials were retrieved from the login handlers";
            return Err(refuse(message.to_owned(), Some(RETURNS)));
        }
        Ok(all)
    }

    async fn found(
        &self,
        handler: Arc<str>,
        login: &Login,
        returned: Option<Value>,
    ) -> Result<LoginResult<Arc<ClientSession>>, ApiError> {
        let mut config = self.configuration(login).await?;
        // Retries follow the policy of `retry.rs`.
        config.default_retry = false;
        config.connect_timeout = Some(self.connect_timeout);
        if let Some(namespace) = &login.default_namespace {
            config.default_namespace.clone_from(namespace);
        }
        let session = session(config, Arc::clone(&self.dial)).await?;
        Ok(LoginResult {
            handler,
            priority: login.priority,
            expiration: login.expiration,
            returned,
            content: Arc::new(session),
        })
    }

    async fn configuration(&self, login: &Login) -> Result<Config, ApiError> {
        let (mut config, wanted, trust_env) = match &login.method {
            Method::Info(info) => {
                let config = login::configuration(info).await?;
                (config, info.proxy_url.clone(), info.trust_env.unwrap_or(self.trust_env))
            }
            Method::Kubeconfig => {
                let (config, proxy) = native::kubeconfig(&self.overrides).await?;
                (config, proxy, self.trust_env)
            }
            Method::ServiceAccount => {
                (service_account::configuration().await?, None, self.trust_env)
            }
        };
        self.overrides.impersonate(&mut config);
        let environment = trust_env.then(Matcher::from_env);
        proxy::choose(&mut config, wanted.as_deref(), environment.as_ref())?;
        Ok(config)
    }
}

/// Creates a connection from a configuration. This may run an exec plugin.
pub(super) async fn session(mut config: Config, dial: Dial) -> Result<ClientSession, ApiError> {
    // As in client-go, the file takes precedence over a token next to it. `kube` would also send its line breaks.
    let token = match config.auth_info.token_file.take().map(PathBuf::from) {
        None => None,
        Some(path) => {
            let shown = path.display().to_string();
            config.auth_info.token = None;
            Some(TokenFile::open(path).map_err(|it| unreadable_token(&shown, &it))?)
        }
    };
    let server = shown(&config.cluster_url);
    let place = ServerAddress::of(&config);
    match tokio::task::spawn_blocking(move || dial(config)).await {
        Ok(Ok(client)) => Ok(ClientSession::new(client, token, server).at(place)),
        Ok(Err(error)) => Err(unusable(&error)),
        Err(error) => Err(refuse(format!("cannot create a client: {error}"), None)),
    }
}

/// The expected results of login handlers.
const RETURNS: &str = "return a kopf.ConnectionInfo, or kopf.login_with_kubeconfig(), or kopf.login_with_service_account()";

fn unreadable_token(path: &str, problem: &std::io::Error) -> ApiError {
    let message = format!("cannot log in: the token file {path} cannot be read: {problem}");
    let hint = "check `tokenFile` of the current context; in a pod, check that the service account token is mounted";
    ApiError { class: ErrorClass::Denied, ..refuse(message, Some(hint)) }
}

/// Returns the error of a configuration that no client can be created from.
fn unusable(error: &kube::Error) -> ApiError {
    let failure = RequestFailure::of_client(error);
    let denied = matches!(failure, RequestFailure::Credentials(_));
    let (class, what, hint) = if denied {
        let hint = "run the exec plugin of the current context by hand, or check its token file";
        (ErrorClass::Denied, "cannot log in", hint)
    } else {
        let hint = "check the certificates, the key and the proxy of the current context";
        (ErrorClass::Fatal, "cannot use the kubeconfig", hint)
    };
    let message = format!("{what}: {}", one_line(&failure.to_string(), REASON_CHARS));
    ApiError { class, status: None, message, hint: Some(hint.into()), answer: None }
}

/// Returns the address of a server for messages, without the credentials that it may contain.
fn shown(url: &http::Uri) -> String {
    let authority = url.authority().map_or("", |it| it.as_str());
    let host = authority.rsplit_once('@').map_or(authority, |it| it.1);
    let scheme = url.scheme_str().unwrap_or("https");
    format!("{scheme}://{host}{}", url.path().trim_end_matches('/'))
}
