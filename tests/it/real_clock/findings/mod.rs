//! The findings about 0.1.0 (`ebca146`) as users of the binary see them: each test starts the program, and checks only its
//! requests, its output and the objects. The comment of a test begins with the number of the finding in docs/compatibility.md.
//!
//! `KOPF_BINARY` names another binary. `scripts/verify-findings` runs the tests with any binary and prints a table.

mod conflicts;
mod discovery;
mod front;
mod leaders;
mod pauses;
mod refused;
mod views;

use std::{
    fs,
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use kopf::testing::{EXAMPLES, definition, examples};
use kopf_apiserver::{ApiServer, ResourceDef};
use serde_json::{Value, json};
use tokio::{
    process::Command,
    time::{Instant, sleep},
};

use self::front::{Asked, Front};
use crate::e2e::{operator::Operator, server::variable};

/// Maximum time of any step. An operator with the bug does not recover within it.
const DEADLINE: Duration = Duration::from_mins(1);

/// The interval of checking a condition.
const POLL: Duration = Duration::from_millis(20);

/// Errors of requests and of objects end after a moment, not after minutes.
const IMPATIENT: &str =
    "--standalone --set networking.error_backoffs=[0.1] --set queueing.error_delays=[0.2]";

const HANDLED: &str = "kopf.zalando.org/last-handled-configuration";

/// A server with a separate socket, and the files of an operator.
struct World {
    server: ApiServer,
    front: Front,
    directory: PathBuf,
}

impl World {
    /// Creates a cluster with the CRD of examples, which accepts any object and has a separate status.
    async fn new(script: &str) -> Self {
        Self::with(&[ResourceDef { status_subresource: true, ..examples() }], script).await
    }

    /// Creates a cluster with these CRDs.
    async fn with(resources: &[ResourceDef], script: &str) -> Self {
        let server = ApiServer::builder().clock(now).build();
        for resource in resources {
            let mut crd = definition(resource);
            if resource.status_subresource {
                crd["spec"]["versions"][0]["subresources"] = json!({ "status": {} });
            }
            server.create(DEFINITIONS, crd).expect("it is new");
        }
        Self::over(server, script).await
    }

    /// Returns the same cluster for another operator, with a separate socket.
    async fn again(&self, script: &str) -> Self {
        Self::over(self.server.clone(), script).await
    }

    async fn over(server: ApiServer, script: &str) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory =
            std::env::temp_dir().join(format!("kopf-findings-{}-{number}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        let front = Front::new(&server).await;
        let world = World { server, front, directory };
        world.save(script);
        world.kubeconfig(&json!({ "server": format!("http://{}", world.front.address()) }));
        world
    }

    /// Replaces the script, as an editor does.
    fn save(&self, script: &str) {
        let (new, path) = (self.directory.join(".new"), self.directory.join("handlers.lua"));
        fs::write(&new, script).expect("a file can be written");
        fs::rename(new, path).expect("a file can be replaced");
    }

    fn kubeconfig(&self, cluster: &Value) {
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{ "name": "it", "cluster": cluster }],
            "users": [{ "name": "it", "user": {} }],
            "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it", "namespace": "default" } }],
        });
        fs::write(self.directory.join("config"), config.to_string())
            .expect("a file can be written");
    }

    /// Starts the binary with these arguments, separated by spaces.
    fn start(&self, args: &str) -> Operator {
        let ours = || env!("CARGO_BIN_EXE_kopf").to_owned();
        let mut command = Command::new(variable("KOPF_BINARY").unwrap_or_else(ours));
        command.env_clear().env("KUBECONFIG", self.directory.join("config"));
        command.current_dir(&self.directory).args(["run", "-A", "--verbose"]);
        command.args(["--set", "posting.enabled=false"]).args(args.split_whitespace());
        Operator::start(command.arg("handlers.lua"))
    }

    /// Starts the binary, and waits until the operator watches examples.
    async fn started(&self, args: &str) -> Operator {
        let operator = self.start(args);
        let watches = |it: &Asked| it.watches("kopfexamples?");
        let before = self.front.count(watches);
        until(&operator, "a watch", || self.front.count(watches) > before).await;
        operator
    }

    /// Creates an example with an empty spec.
    fn create(&self, name: &str) -> Value {
        let body = json!({
            "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
            "metadata": { "namespace": "ns1", "name": name }, "spec": {},
        });
        self.server.create(EXAMPLES, body).expect("it is new")
    }

    /// Changes an example.
    fn edit(&self, name: &str, patch: Value) {
        self.server.merge(EXAMPLES, "ns1", name, patch).expect("it can be changed");
    }

    fn delete(&self, name: &str) {
        self.server.delete(EXAMPLES, "ns1", name).expect("it is there");
    }

    /// Returns the current example; null if it is gone.
    fn get(&self, name: &str) -> Value {
        self.server.get(EXAMPLES, "ns1", name).unwrap_or_default()
    }

    fn is_gone(&self, name: &str) -> bool {
        self.get(name).is_null()
    }

    /// Returns whether all change handlers of the current example are done.
    fn is_handled(&self, name: &str) -> bool {
        self.get(name)["metadata"]["annotations"][HANDLED].is_string()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Remaining temporary files do no harm.
        drop(fs::remove_dir_all(&self.directory));
    }
}

const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// Waits until a condition is true; panics with the output of the operator at the deadline.
async fn until(operator: &Operator, what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain for {what}:\n{}", operator.output());
        sleep(POLL).await;
    }
}

/// Waits until the operator has logged this.
async fn until_says(operator: &Operator, text: &str) {
    until(operator, text, || said(operator, text) > 0).await;
}

/// Returns how many lines of the operator contain this.
fn said(operator: &Operator, text: &str) -> usize {
    operator.output().lines().filter(|it| it.contains(text)).count()
}

/// Returns the current time in the format of objects.
#[expect(clippy::disallowed_methods, reason = "the operator of the test runs on the real clock")]
fn now() -> String {
    let now = jiff::Timestamp::now();
    now.round(jiff::Unit::Second).expect("a second").to_string()
}
