//! The operator of a benchmark: the binary as a process of its own, against an embedded API server, and what Linux knows of it.

use std::{
    env, fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
};

use kopf_apiserver::{
    ApiServer,
    serve::{Listener, Options},
};
use serde_json::json;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

/// Another binary to measure than the one that was just built, such as the released one.
const BINARY: &str = "KOPF_BINARY";

/// The binary that is measured.
#[expect(clippy::disallowed_methods, reason = "a benchmark is the outermost layer")]
pub(crate) fn binary() -> String {
    env::var(BINARY).unwrap_or_else(|_| env!("CARGO_BIN_EXE_kopf").to_owned())
}

/// A server and the directory of its operator, which goes with this value.
pub(crate) struct Site {
    pub(crate) server: ApiServer,
    pub(crate) directory: PathBuf,
}

impl Site {
    /// A site of the benchmark of this name.
    pub(crate) fn new(name: &str, server: ApiServer) -> Self {
        let directory = env::temp_dir().join(format!("kopf-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        Site { server, directory }
    }

    /// As an editor does: a new file over the old one.
    pub(crate) fn save(&self, script: &str) {
        let new = self.directory.join("handlers.lua.new");
        fs::write(&new, script).expect("the script");
        fs::rename(new, self.directory.join("handlers.lua")).expect("the script");
    }

    /// Runs the operator until the acts are over. Its scripts are `handlers.lua` in the directory, or wherever the arguments say.
    pub(crate) async fn run<T>(
        &self,
        arguments: &[&str],
        acts: impl AsyncFnOnce(&Child) -> T,
    ) -> T {
        let address = (Ipv4Addr::LOCALHOST, 0).into();
        let listener = Listener::bind(Options { address, beyond_loopback: false }).await;
        let listener = listener.expect("a port");
        let mut operator = start(&self.directory, arguments, &listener.url());
        let stop = CancellationToken::new();
        let acts = async {
            let result = acts(&operator).await;
            stop.cancel();
            result
        };
        let ((), result) = tokio::join!(listener.serve(self.server.clone(), stop.clone()), acts);
        operator.kill().await.expect("the operator ends");
        result
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // What is left in the directory for temporary files disturbs nobody.
        drop(fs::remove_dir_all(&self.directory));
    }
}

fn start(directory: &Path, arguments: &[&str], url: &str) -> Child {
    let kubeconfig = directory.join("kubeconfig");
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "bench",
        "clusters": [{ "name": "bench", "cluster": { "server": url } }],
        "users": [{ "name": "bench", "user": {} }],
        "contexts": [{ "name": "bench", "context": { "cluster": "bench", "user": "bench" } }],
    });
    fs::write(&kubeconfig, config.to_string()).expect("the kubeconfig");
    let mut command = Command::new(binary());
    command.args(["run", "-A", "--standalone", "--quiet"]).args(arguments).current_dir(directory);
    command.env("KUBECONFIG", kubeconfig).kill_on_drop(true).spawn().expect("the operator")
}

/// Seconds of CPU, in all threads.
pub(crate) fn cpu(operator: &Child) -> f64 {
    /// Clock ticks per second in `/proc`, on all usual systems.
    const TICKS: f64 = 100.0;
    let stat = proc(operator, "stat");
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|it| it.parse::<f64>().ok()).sum::<f64>() / TICKS
}

/// A size in KiB, as the kernel counts it: `VmRSS` is the resident memory, `VmHWM` the most there ever was.
pub(crate) fn memory(operator: &Child, what: &str) -> u64 {
    let status = proc(operator, "status");
    let size = status.lines().find_map(|it| it.strip_prefix(what)?.strip_prefix(':'));
    size.and_then(|it| it.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

fn proc(operator: &Child, file: &str) -> String {
    let id = operator.id().expect("the operator runs");
    fs::read_to_string(format!("/proc/{id}/{file}")).expect("a file of Linux")
}
