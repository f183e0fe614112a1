//! Responses to commands by the annotations of a Pod, for tests without a container.
//!
//! | annotation | meaning | default |
//! |---|---|---|
//! | `dev.kopf/exec-stdout` | the stdout of every command | empty |
//! | `dev.kopf/exec-stderr` | the stderr of every command | empty |
//! | `dev.kopf/exec-code` | the exit code of every command | `0` |

use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncWriteExt as _, copy, sink};

use super::{Exit, PodProcess, ProcessRunner};
use crate::object;

const STDOUT: &str = "dev.kopf/exec-stdout";
const STDERR: &str = "dev.kopf/exec-stderr";
const CODE: &str = "dev.kopf/exec-code";

/// Returns the function that runs commands in a Pod, if it has one of the annotations.
pub(super) fn run(pod: &Value) -> Option<ProcessRunner> {
    let annotation = |name: &str| {
        let all = pod.pointer("/metadata/annotations")?;
        Some(object::text(all, &format!("/{}", name.replace('/', "~1"))).to_owned())
            .filter(|_| all.get(name).is_some())
    };
    let (stdout, stderr, code) = (annotation(STDOUT), annotation(STDERR), annotation(CODE));
    if stdout.is_none() && stderr.is_none() && code.is_none() {
        return None;
    }
    let (stdout, stderr) = (stdout.unwrap_or_default(), stderr.unwrap_or_default());
    let exit = code.map_or(Exit::Code(0), |it| {
        let failed = || Exit::Failed(format!("{CODE}: expected a number, got {it:?}"));
        it.parse().map_or_else(|_problem| failed(), Exit::Code)
    });
    Some(Arc::new(move |process: PodProcess| {
        let (stdout, stderr, exit) = (stdout.clone(), stderr.clone(), exit.clone());
        Box::pin(async move {
            let PodProcess { mut stdin, stdout: mut out, stderr: mut err, .. } = process;
            let written = async {
                copy(&mut stdin, &mut sink()).await?;
                out.write_all(stdout.as_bytes()).await?;
                err.write_all(stderr.as_bytes()).await
            };
            // If the client is gone, nobody reads the exit code.
            written.await.map_or_else(|gone| Exit::Failed(gone.to_string()), |()| exit)
        })
    }))
}
