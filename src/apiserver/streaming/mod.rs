//! What runs in Pods, as far as tests and `kopf dev` provide it: `exec`, `attach`, `port-forward` and logs.
//!
//! Nothing runs here by itself. [`PodStreams`] holds functions that answer in the place of containers; what has no function is
//! refused. Clients connect by WebSocket, as kubectl does since 1.31.
//!
//! | file | job |
//! |---|---|
//! | `upgrade.rs` | the change of the protocol; who runs a session |
//! | `commands.rs` | `exec` and `attach`: `v5.channel.k8s.io`, `v4.channel.k8s.io` |
//! | `forward.rs` | `port-forward`: connections inside SPDY inside a WebSocket |
//! | `annotated.rs` | commands that a Pod answers by its annotations |
//! | `inside.rs` | connections of clients in the same process |
//! | `spdy/` | frames of SPDY/3.1 |

mod annotated;
mod commands;
mod forward;
pub(crate) mod inside;
mod spdy;
#[cfg(test)]
mod tests;
pub(crate) mod upgrade;

use std::{fmt, sync::Arc};

use bytes::Bytes;
use futures::{future::BoxFuture, stream::BoxStream};
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream},
    sync::mpsc::Receiver,
};

use crate::{object, rbac, refusal::Refusal, reply::Reply, request::query::Query, verbs::Call};

/// Where a request leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodTarget {
    /// Of the Pod.
    pub namespace: String,
    /// The name of the Pod.
    pub pod: String,
    /// The container; empty for port-forward.
    pub container: String,
}

/// A command, or the running process if there is none.
pub struct Process {
    /// Where it runs.
    pub target: PodTarget,
    /// The program and its arguments; empty for `attach`.
    pub command: Vec<String>,
    /// Whether there is a terminal: then stderr is part of stdout.
    pub tty: bool,
    /// What the client sends; at its end at once if it sends nothing.
    pub stdin: Box<dyn AsyncRead + Send + Unpin>,
    /// What the client gets.
    pub stdout: Box<dyn AsyncWrite + Send + Unpin>,
    /// What the client gets as errors.
    pub stderr: Box<dyn AsyncWrite + Send + Unpin>,
    /// The sizes of the terminal: columns and rows.
    pub sizes: Receiver<(u16, u16)>,
}

/// How a command has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code; 0 means success.
    Code(i32),
    /// It could not be run, for this reason.
    Failed(String),
}

/// A connection to a port of a Pod.
#[derive(Debug)]
pub struct PortConnection {
    /// Where it leads to.
    pub target: PodTarget,
    /// The port.
    pub port: u16,
    /// Both directions.
    pub stream: DuplexStream,
}

/// A request for the log of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogRequest {
    /// Whose log.
    pub target: PodTarget,
    /// Whether the client wants what is added later, too.
    pub follow: bool,
}

type Run = Arc<dyn Fn(Process) -> BoxFuture<'static, Exit> + Send + Sync>;
type Forward = Arc<dyn Fn(PortConnection) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;
type Log = Arc<dyn Fn(LogRequest) -> Option<BoxStream<'static, Bytes>> + Send + Sync>;

/// The functions that answer in the place of containers.
#[derive(Clone, Default)]
pub struct PodStreams {
    exec: Option<Run>,
    attach: Option<Run>,
    forward: Option<Forward>,
    log: Option<Log>,
}

impl PodStreams {
    /// Runs commands by this function, except in Pods that answer by their annotations.
    #[must_use]
    pub fn exec<F>(self, run: impl Fn(Process) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Exit> + Send + 'static,
    {
        Self { exec: Some(Arc::new(move |it| Box::pin(run(it)))), ..self }
    }

    /// Connects clients to running processes by this function.
    #[must_use]
    pub fn attach<F>(self, run: impl Fn(Process) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Exit> + Send + 'static,
    {
        Self { attach: Some(Arc::new(move |it| Box::pin(run(it)))), ..self }
    }

    /// Serves connections to ports by this function. Its error is shown to the client.
    #[must_use]
    pub fn port_forward<F>(
        self,
        serve: impl Fn(PortConnection) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        Self { forward: Some(Arc::new(move |it| Box::pin(serve(it)))), ..self }
    }

    /// Returns logs by this function; if it returns `None`, the lines of the simulated kubelet follow.
    #[must_use]
    pub fn logs(
        self,
        log: impl Fn(LogRequest) -> Option<BoxStream<'static, Bytes>> + Send + Sync + 'static,
    ) -> Self {
        Self { log: Some(Arc::new(log)), ..self }
    }
}

impl fmt::Debug for PodStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PodStreams")
            .field("exec", &self.exec.is_some())
            .field("attach", &self.attach.is_some())
            .field("port_forward", &self.forward.is_some())
            .field("logs", &self.log.is_some())
            .finish()
    }
}

/// `exec`, `attach` and `portforward` of a Pod.
pub(crate) fn answer(call: &Call<'_>, name: &str, subresource: &str) -> Result<Reply, Refusal> {
    rbac::authorize_upgrade(call, name)?;
    let pods = &call.shared.pods;
    let refused = || Refusal::not_implemented(&format!("pods/{subresource}"));
    if subresource == "portforward" {
        let forward = pods.forward.clone().ok_or_else(refused)?;
        return forward::answer(call.ask, running(call, name, None)?, forward);
    }
    let run = if subresource == "exec" {
        let by_itself = || call.shared.store().get(&call.key(name)).map(|it| call.view.tree(&it));
        by_itself().and_then(|it| annotated::run(&it)).or_else(|| pods.exec.clone())
    } else {
        pods.attach.clone()
    };
    commands::answer(call, running(call, name, Some(&call.query))?, run.ok_or_else(refused)?)
}

/// Returns the log that a function provides for a Pod.
pub(crate) fn log(call: &Call<'_>, name: &str) -> Result<Option<Reply>, Refusal> {
    let Some(log) = &call.shared.pods.log else { return Ok(None) };
    let target = running(call, name, Some(&call.query))?;
    let lines = log(LogRequest { target, follow: call.query.flag("follow") });
    Ok(lines.map(|it| Reply::Stream("text/plain", it)))
}

/// Returns where a Pod runs, and the container that the query selects in it.
fn running(call: &Call<'_>, name: &str, query: Option<&Query>) -> Result<PodTarget, Refusal> {
    let key = call.key(name);
    let pod = call.shared.store().get(&key).map(|it| call.view.tree(&it));
    let pod = pod.ok_or_else(|| Refusal::not_found(&call.view.kind.def, name))?;
    let mut target = PodTarget {
        namespace: key.place.namespace,
        pod: name.to_owned(),
        container: String::new(),
    };
    if let Some(query) = query {
        target.container = container(&pod, query.text("container").unwrap_or_default())?;
    }
    if object::text(&pod, "/spec/nodeName").is_empty() {
        return Err(Refusal::bad_request(format!("pod {name} does not have a host assigned")));
    }
    Ok(target)
}

fn container(pod: &Value, wanted: &str) -> Result<String, Refusal> {
    let pod_name = object::meta(pod, "name");
    let names = |field: &str| {
        let containers = object::list(pod, &format!("/spec/{field}"));
        containers.iter().map(|it| object::text(it, "/name").to_owned()).collect::<Vec<_>>()
    };
    let main = names("containers");
    if wanted.is_empty() {
        return match main.as_slice() {
            [only] => Ok(only.clone()),
            several => Err(Refusal::bad_request(format!(
                "a container name must be specified for pod {pod_name}, choose one of: [{}]",
                several.join(" ")
            ))),
        };
    }
    let others = [names("initContainers"), names("ephemeralContainers")];
    let is_known = main.iter().chain(others.iter().flatten()).any(|it| it == wanted);
    is_known.then(|| wanted.to_owned()).ok_or_else(|| {
        Refusal::bad_request(format!("container {wanted} is not valid for pod {pod_name}"))
    })
}
