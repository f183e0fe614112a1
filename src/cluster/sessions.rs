//! The available connections, one for each credentials, and the logins that create new ones.
//!
//! `logic/access/vault/` decides which connection is used and when to log in again; this module does it, once for all waiting
//! requests.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::HeaderValue;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{
    certificate::ServerAddress, failure::RequestFailure, http_client::HttpClient,
    token_file::TokenFile,
};
use crate::logic::access::vault::{LoginResult, Rejection, Vault, VaultTicket};
use crate::ports::{ApiError, BoxFuture, Clock};
use crate::telemetry::{Health, HealthState, Pulse};

/// The log target of logins.
const TARGET: &str = "kopf.client";

/// The name of the part in the health report.
const PART: &str = "login";

/// A connection with credentials. Once its credentials are retired, its streams end and continue with others.
pub(super) struct ClientSession {
    client: HttpClient,
    token: Option<TokenFile>,
    /// The address, for messages; empty if unknown.
    server: String,
    /// The address for reading the certificate of the server; `None` if unknown.
    place: Option<ServerAddress>,
    retired: CancellationToken,
}

/// A function that logs in. It returns credentials, each with its connection.
pub(super) type LogIn = Box<
    dyn Fn() -> BoxFuture<'static, Result<Vec<LoginResult<Arc<ClientSession>>>, ApiError>>
        + Send
        + Sync,
>;

/// The sessions of one cluster: they choose credentials for each request, and log in again.
pub(super) struct Sessions {
    vault: Mutex<Vault<Arc<ClientSession>>>,
    /// `None` for a client from the caller, which cannot be renewed.
    log_in: Option<LogIn>,
    /// Only one login at a time; all others wait for its result.
    login_lock: tokio::sync::Mutex<()>,
    /// Whether the server has ever accepted a request.
    was_accepted: AtomicBool,
    /// The earliest time of the next login.
    next_login: Mutex<Instant>,
    clock: Clock,
    pulse: Pulse,
}

/// The next step of a request after its 401.
pub(super) enum Advice {
    /// Retry at once, with other credentials.
    Again,
    /// Retry if attempts are left: these credentials were accepted until now.
    Attempt,
    /// No other credentials can be requested.
    Final,
}

impl ClientSession {
    /// Creates a connection; `token` is one that the client does not add itself.
    pub(super) fn new(
        client: impl Into<HttpClient>,
        token: Option<TokenFile>,
        server: String,
    ) -> Self {
        let client = client.into();
        ClientSession { client, token, server, place: None, retired: CancellationToken::new() }
    }

    /// Returns the connection with this address of its server.
    pub(super) fn at(mut self, place: Option<ServerAddress>) -> Self {
        self.place = place;
        self
    }

    /// Returns the address of the server, if known.
    pub(super) fn place(&self) -> Option<&ServerAddress> {
        self.place.as_ref()
    }

    /// Returns the client that sends requests.
    pub(super) fn client(&self) -> &HttpClient {
        &self.client
    }

    /// Returns the header that authorizes a request, unless the client adds it itself.
    pub(super) fn authorization(&self) -> Option<HeaderValue> {
        self.token.as_ref().map(TokenFile::authorization)
    }

    /// Returns a token that is cancelled when the credentials are retired.
    pub(super) fn retired(&self) -> CancellationToken {
        self.retired.clone()
    }
}

impl Drop for ClientSession {
    fn drop(&mut self) {
        self.retired.cancel();
    }
}

impl Sessions {
    /// Uses a single client permanently.
    pub(super) fn only(client: impl Into<HttpClient>) -> Self {
        let sessions = Sessions::empty(None, Clock::system(), Pulse::default());
        let found = LoginResult {
            handler: "client".into(),
            priority: 0,
            expiration: None,
            returned: None,
            content: Arc::new(ClientSession::new(client, None, String::new())),
        };
        sessions.lock().fill(vec![found], sessions.clock.now());
        sessions
    }

    /// Logs in for the first time.
    ///
    /// # Errors
    /// Fails if the login fails: only later failures are retried.
    pub(super) async fn start(
        log_in: LogIn,
        clock: Clock,
        health: &Health,
    ) -> Result<Self, ApiError> {
        let found = log_in().await?;
        let sessions = Sessions::empty(Some(log_in), clock, health.pulse(PART, None));
        sessions.pulse.set(HealthState::Ready, &login_text(&found));
        sessions.lock().fill(found, clock.now());
        Ok(sessions)
    }

    fn empty(log_in: Option<LogIn>, clock: Clock, pulse: Pulse) -> Self {
        Sessions {
            vault: Mutex::default(),
            log_in,
            login_lock: tokio::sync::Mutex::new(()),
            was_accepted: AtomicBool::new(false),
            next_login: Mutex::new(Instant::now()),
            clock,
            pulse,
        }
    }

    /// Returns credentials for a request. Waits while there are none, without a limit: dropping the future ends the wait.
    pub(super) async fn acquire(&self) -> (VaultTicket, Arc<ClientSession>) {
        loop {
            self.renew_early().await;
            if let Some(picked) = self.pick() {
                return picked;
            }
            let _login_lock = self.login_lock.lock().await;
            // The previous holder of the lock may have logged in.
            if let Some(picked) = self.pick() {
                return picked;
            }
            let next = *self.next_login.lock();
            sleep_until(next).await;
            self.log_in_again().await;
        }
    }

    /// Returns the address of the server and the namespace of the credentials.
    pub(super) fn place(&self) -> (String, String) {
        let place =
            |it: &ClientSession| (it.server.clone(), it.client.default_namespace().to_owned());
        self.pick().map(|it| place(&it.1)).unwrap_or_default()
    }

    /// Records that the server has accepted a request with these credentials.
    pub(super) fn accepted(&self, ticket: &VaultTicket) {
        self.was_accepted.store(true, Ordering::Relaxed);
        if self.lock().accept() {
            let text = format!("the server accepts '{}'", ticket.handler());
            self.pulse.set(HealthState::Ready, &text);
        }
    }

    /// Returns whether a new login could help: the server was trusted before, and its certificate authority may have changed since.
    pub(super) fn may_be_outdated(&self, failure: &RequestFailure) -> bool {
        let was_trusted = self.was_accepted.load(Ordering::Relaxed);
        matches!(failure, RequestFailure::Untrusted(_)) && was_trusted && self.log_in.is_some()
    }

    /// Handles a 401, or a certificate that is no longer accepted.
    pub(super) fn rejected(&self, ticket: &VaultTicket, failure: &RequestFailure) -> Advice {
        if self.log_in.is_none() {
            return Advice::Final;
        }
        let rejection = self.lock().reject(ticket, self.clock.now());
        let handler = ticket.handler();
        match rejection {
            Rejection::Stale => Advice::Again,
            Rejection::OthersLeft => {
                info!(target: TARGET, "The server rejects the credentials of '{handler}' ({failure}); using others.");
                Advice::Again
            }
            Rejection::NoneLeft(pause) => {
                let story = if failure.is_rejection() {
                    format!("the server rejects the credentials of '{handler}': {failure}")
                } else {
                    format!("the login of '{handler}' does not trust the server: {failure}")
                };
                self.pulse.set(HealthState::Unready, &story);
                self.postpone(pause);
                if pause.is_zero() {
                    return Advice::Attempt;
                }
                let seconds = pause.as_secs();
                if !failure.is_rejection() {
                    warn!(
                        target: TARGET,
                        "The login of '{handler}' does not trust the server ({failure}). Logging in again in {seconds} seconds. \
                         hint: check `certificate-authority` of the current context"
                    );
                    return Advice::Again;
                }
                warn!(
                    target: TARGET,
                    "The server rejects the credentials of '{handler}' ({failure}). Trying again in {seconds} seconds, and \
                     until it accepts them. hint: log in again, or check the user of the current context"
                );
                Advice::Again
            }
        }
    }

    /// Logs in again before the credentials expire: one request does it, all others continue with the current credentials.
    async fn renew_early(&self) {
        let is_due = || {
            let next = *self.next_login.lock();
            self.lock().is_ageing(self.clock.now()) && next <= Instant::now()
        };
        if !is_due() {
            return;
        }
        let Ok(_login_lock) = self.login_lock.try_lock() else { return };
        if is_due() {
            self.log_in_again().await;
        }
    }

    /// Logs in again. The caller must hold `login_lock`.
    async fn log_in_again(&self) {
        let Some(log_in) = &self.log_in else { return };
        info!(target: TARGET, "Re-authentication has been initiated.");
        match log_in().await {
            Ok(found) => {
                let names = login_text(&found);
                let mut vault = self.lock();
                vault.fill(found, self.clock.now());
                let is_first = vault.is_trusted();
                drop(vault);
                if is_first {
                    self.pulse.set(HealthState::Ready, &names);
                }
                info!(target: TARGET, "Re-authentication has finished.");
            }
            Err(problem) => {
                let pause = self.lock().note_failed_login().max(Duration::from_secs(1));
                self.postpone(pause);
                if self.pick().is_none() {
                    self.pulse.set(HealthState::Unready, &format!("login failed: {problem}"));
                }
                let hint = problem.hint.as_deref().map(|it| format!(" hint: {it}"));
                let (seconds, hint) = (pause.as_secs(), hint.unwrap_or_default());
                warn!(
                    target: TARGET,
                    "Re-authentication has failed: {problem}. Trying again in {seconds} seconds.{hint}"
                );
            }
        }
    }

    fn postpone(&self, pause: Duration) {
        *self.next_login.lock() = Instant::now() + pause;
    }

    fn pick(&self) -> Option<(VaultTicket, Arc<ClientSession>)> {
        self.lock().pick(self.clock.now(), |below| fastrand::usize(..below))
    }

    fn lock(&self) -> MutexGuard<'_, Vault<Arc<ClientSession>>> {
        // All changes are single steps: a panic cannot leave it inconsistent.
        self.vault.lock()
    }
}

/// Returns the login handlers, for messages.
fn login_text(found: &[LoginResult<Arc<ClientSession>>]) -> String {
    let names: Vec<_> = found.iter().map(|it| format!("'{}'", it.handler)).collect();
    format!("logged in by {}", names.join(", "))
}

impl fmt::Debug for ClientSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}
