//! Streams of Pods, as far as tests and `kopf dev` provide them: `exec`, `attach`, `port-forward` and logs.
//!
//! Nothing runs here by itself. [`PodStreams`] has functions that stand in for containers; requests without a function are refused.
//! Clients connect by WebSocket, as kubectl does since 1.31.
//!
//! | file | job |
//! |---|---|
//! | `upgrade.rs` | the upgrade of connections; runs sessions |
//! | `commands.rs` | `exec` and `attach`: `v5.channel.k8s.io`, `v4.channel.k8s.io` |
//! | `forward.rs` | `port-forward`: connections inside SPDY inside a WebSocket |
//! | `annotated.rs` | responses to commands by annotations of a Pod |
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

use crate::{object, rbac, refusal::Refusal, reply::Reply, request::query::Query, verbs::ApiCall};

/// The Pod and container of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodTarget {
    /// The namespace of the Pod.
    pub namespace: String,
    /// The name of the Pod.
    pub pod: String,
    /// The container; empty for port-forward.
    pub container: String,
}

/// A command to run, or the running process for `attach`.
pub struct PodProcess {
    /// The Pod in which it runs.
    pub target: PodTarget,
    /// The program and its arguments; empty for `attach`.
    pub command: Vec<String>,
    /// The process has a terminal: then stderr is part of stdout.
    pub tty: bool,
    /// The input from the client; ends at once if the client sends none.
    pub stdin: Box<dyn AsyncRead + Send + Unpin>,
    /// The output to the client.
    pub stdout: Box<dyn AsyncWrite + Send + Unpin>,
    /// The error output to the client.
    pub stderr: Box<dyn AsyncWrite + Send + Unpin>,
    /// The sizes of the terminal: columns and rows.
    pub sizes: Receiver<(u16, u16)>,
}

/// The end of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The command has exited with this code; 0 means success.
    Code(i32),
    /// The command could not be run, for this reason.
    Failed(String),
}

/// A connection to a port of a Pod.
#[derive(Debug)]
pub struct PortConnection {
    /// The Pod of the port.
    pub target: PodTarget,
    /// The number of the port.
    pub port: u16,
    /// Both directions of the connection.
    pub stream: DuplexStream,
}

/// A request for the log of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogRequest {
    /// The container of the log.
    pub target: PodTarget,
    /// The client also requests later lines.
    pub follow: bool,
}

type ProcessRunner = Arc<dyn Fn(PodProcess) -> BoxFuture<'static, Exit> + Send + Sync>;
type Forward = Arc<dyn Fn(PortConnection) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;
type Log = Arc<dyn Fn(LogRequest) -> Option<BoxStream<'static, Bytes>> + Send + Sync>;

/// The functions that stand in for containers.
#[derive(Clone, Default)]
pub struct PodStreams {
    exec: Option<ProcessRunner>,
    attach: Option<ProcessRunner>,
    forward: Option<Forward>,
    log: Option<Log>,
}

impl PodStreams {
    /// Sets the function that runs commands, except in Pods with annotations for them.
    #[must_use]
    pub fn exec<F>(self, run: impl Fn(PodProcess) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Exit> + Send + 'static,
    {
        Self { exec: Some(Arc::new(move |it| Box::pin(run(it)))), ..self }
    }

    /// Sets the function that connects clients to running processes.
    #[must_use]
    pub fn attach<F>(self, run: impl Fn(PodProcess) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Exit> + Send + 'static,
    {
        Self { attach: Some(Arc::new(move |it| Box::pin(run(it)))), ..self }
    }

    /// Sets the function that serves connections to ports. Its error is shown to the client.
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

    /// Sets the function that returns logs; if it returns `None`, the log of the simulated kubelet is used.
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

/// Processes `exec`, `attach` and `portforward` of a Pod.
pub(crate) fn respond(call: &ApiCall<'_>, name: &str, subresource: &str) -> Result<Reply, Refusal> {
    rbac::authorize_upgrade(call, name)?;
    let pods = &call.shared.pods;
    let refused = || Refusal::not_implemented(&format!("pods/{subresource}"));
    if subresource == "portforward" {
        let forward = pods.forward.clone().ok_or_else(refused)?;
        return forward::answer(call.request, running(call, name, None)?, forward);
    }
    let run = if subresource == "exec" {
        let by_itself = || call.shared.store().get(&call.key(name)).map(|it| call.view.tree(&it));
        by_itself().and_then(|it| annotated::run(&it)).or_else(|| pods.exec.clone())
    } else {
        pods.attach.clone()
    };
    commands::answer(call, running(call, name, Some(&call.query))?, run.ok_or_else(refused)?)
}

/// Returns the log from the function for logs, if it has one for this Pod.
pub(crate) fn log(call: &ApiCall<'_>, name: &str) -> Result<Option<Reply>, Refusal> {
    let Some(log) = &call.shared.pods.log else { return Ok(None) };
    let target = running(call, name, Some(&call.query))?;
    let lines = log(LogRequest { target, follow: call.query.flag("follow") });
    Ok(lines.map(|it| Reply::Stream("text/plain", it)))
}

/// Returns the running Pod, and the container that the query selects in it.
fn running(call: &ApiCall<'_>, name: &str, query: Option<&Query>) -> Result<PodTarget, Refusal> {
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
