//! Fake containers: a few programs, one file, and a log.

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use kopf_apiserver::streaming::{Exit, PodProcess, PodStreams};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Returns containers with `cat`, `say WORDS`, `fail CODE`, `hang`, `flood`, and `tar` as `kube.copy_to` and `kube.copy_from` call
/// it: with one file.
pub(super) fn containers() -> PodStreams {
    let file: Arc<Mutex<Vec<u8>>> = Arc::default();
    let exec = move |process: PodProcess| run(process, Arc::clone(&file));
    let line = || stream::iter([Bytes::from_static(b"2 findings\n")]).boxed();
    PodStreams::default().exec(exec).logs(move |_request| Some(line()))
}

async fn run(mut process: PodProcess, file: Arc<Mutex<Vec<u8>>>) -> Exit {
    let words: Vec<&str> = process.command.iter().map(String::as_str).collect();
    let (stdin, stdout) = (&mut process.stdin, &mut process.stdout);
    let written = match words.as_slice() {
        ["cat"] => tokio::io::copy(stdin, stdout).await.map(drop),
        ["say", rest @ ..] => {
            let line = format!("{}: {}\n", process.target.container, rest.join("|"));
            stdout.write_all(line.as_bytes()).await
        }
        ["fail", code] => {
            process.stderr.write_all(b"no\n").await.expect("an open channel");
            return Exit::Code(code.parse().expect("a number"));
        }
        ["hang"] => std::future::pending().await,
        ["flood"] => loop {
            if let Err(closed) = stdout.write_all(&[b'x'; 8 << 10]).await {
                break Err(closed);
            }
        },
        ["tar", "-xmf", "-", "-C", "/etc/app"] => {
            let mut sent = Vec::new();
            let read = stdin.read_to_end(&mut sent).await;
            *file.lock() = sent;
            read.map(drop)
        }
        ["tar", "-cf", "-", "-C", "/etc/app", _name] => {
            let kept = file.lock().clone();
            stdout.write_all(&kept).await
        }
        _ => return Exit::Failed(format!("executable file not found: {}", words.join(" "))),
    };
    written.map_or_else(|it| Exit::Failed(it.to_string()), |()| Exit::Code(0))
}
