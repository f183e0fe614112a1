//! `kopf dev` as users see it: the built binary, its files, and its server over HTTP. No cluster is needed.

mod bad_input;
mod data;
mod deploying;
mod ending;
mod files;
mod planning;
mod running;
mod serving;
mod upgrade;
mod verbs;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::process::Command;

use crate::e2e::operator::Operator;

/// Maximum time of any step, because the machine may be busy.
const DEADLINE: Duration = Duration::from_mins(1);

/// A script that logs its calls.
const SCRIPT: &str = "
kopf.on_create('kopfexamples', function(ctx) ctx.logger:info('created with ' .. tostring(ctx.spec.duration)) end)
kopf.on_update('kopfexamples', function(ctx) ctx.logger:info('updated to ' .. tostring(ctx.spec.duration)) end)
kopf.on_resume('kopfexamples', function(ctx) ctx.logger:info('resumed') end)
";

/// An object for the script.
const OBJECT: &str = "\
apiVersion: kopf.dev/v1
kind: KopfExample
metadata:
  name: one
spec:
  duration: 1m
";

/// A directory with the files of a test, which is removed with this value.
struct Desk(PathBuf);

impl Desk {
    /// Creates an empty directory.
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kopf-dev-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        Desk(path)
    }

    /// Writes a file.
    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("a file can be written");
        path
    }

    /// Returns the path of a file.
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns the content of a file.
    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("a file can be read")
    }

    /// Returns `kopf dev` in this directory. Its kubeconfig is there, too.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kopf"));
        command.env_clear().env("XDG_RUNTIME_DIR", &self.0).current_dir(&self.0);
        command.arg("dev").args(args);
        command
    }

    /// Starts it with these arguments, separated by spaces, and waits until the operator runs.
    async fn start(&self, args: &str) -> Operator {
        let args: Vec<&str> = args.split_whitespace().collect();
        let operator = Operator::start(&mut self.command(&args));
        operator.until_says("Initial authentication has finished").await;
        operator
    }

    /// Returns the path of the kubeconfig of the first server of this directory.
    fn kubeconfig(&self) -> PathBuf {
        self.path("kopf/dev.kubeconfig")
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // Remaining temporary files do no harm.
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Returns a client over HTTP.
async fn client(kubeconfig: &Path) -> Client {
    let config = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("a whole kubeconfig")).expect("a client")
}
