//! Each example in both languages, on the embedded server and on a real one: the results for users who follow its README.
//!
//! The steps of an example use a [`Place`]: `embedded.rs` runs them on virtual time in this process, `real.rs` with the built
//! binary on a control plane (see `tests/it/e2e`), if there is one.

mod background;
mod children;
mod course;
mod embedded;
mod operators;
mod ports_templates;
mod real;

use serde_json::Value;

use self::embedded::Embedded;
use self::real::Real;
use crate::e2e::operator::Ended;

/// The object of the examples.
pub(crate) const OBJECT: &str = "kopf-example-1";
/// The resource of the examples.
const EXAMPLES: &str = "kopfexamples.kopf.dev";

/// The way in which an example is run.
#[derive(Clone, Copy)]
struct Part {
    /// Its folder in `examples/`.
    directory: &'static str,
    /// Whether the operator serves all namespaces.
    everywhere: bool,
}

/// Four tests for each example.
macro_rules! examples {
    ($($name:ident: $directory:literal, $everywhere:literal, $course:path;)+) => {
        const PARTS: &[Part] = &[$(Part { directory: $directory, everywhere: $everywhere }),+];

        $(
            mod $name {
                const PART: super::Part =
                    super::Part { directory: $directory, everywhere: $everywhere };

                #[test]
                fn in_lua_on_the_embedded_server() {
                    super::Embedded::run(PART, "lua", async |place| $course(place).await);
                }

                #[test]
                fn in_rhai_on_the_embedded_server() {
                    super::Embedded::run(PART, "rhai", async |place| $course(place).await);
                }

                mod e2e {
                    #[tokio::test]
                    async fn in_lua_on_a_real_server() {
                        if let Some(place) = crate::examples::Real::start(super::PART, "lua").await {
                            $course(place).await;
                        }
                    }

                    #[tokio::test]
                    async fn in_rhai_on_a_real_server() {
                        if let Some(place) = crate::examples::Real::start(super::PART, "rhai").await {
                            $course(place).await;
                        }
                    }
                }
            }
        )+
    };
}

examples! {
    minimal: "01-minimal", false, crate::examples::course::minimal;
    child: "02-children", false, crate::examples::children::children;
    exceptions: "03-exceptions", false, crate::examples::course::exceptions;
    events: "04-events", false, crate::examples::course::events;
    handlers: "05-handlers", false, crate::examples::course::handlers;
    peering: "06-peering", false, crate::examples::course::alone;
    subhandlers: "07-subhandlers", false, crate::examples::course::subhandlers;
    raw_events: "08-events", false, crate::examples::course::raw_events;
    testing: "09-testing", false, crate::examples::course::testing;
    builtins: "10-builtins", false, crate::examples::children::builtins;
    filtering: "11-filtering-handlers", false, crate::examples::course::filtering;
    embedded_operator: "12-embedded", false, crate::examples::course::embedded;
    hooks: "13-hooks", false, crate::examples::course::hooks;
    daemons: "14-daemons", false, crate::examples::background::daemons;
    timers: "15-timers", false, crate::examples::background::timers;
    indexing: "16-indexing", false, crate::examples::background::indexing;
    all_at_once: "99-all-at-once", false, crate::examples::children::all_at_once;
    provisioner: "namespace-provisioner", true, crate::examples::operators::provisioner;
    replicator: "replicator", true, crate::examples::operators::replicator;
    database_claim: "database-claim", false, crate::examples::operators::database_claim;
    ttl_cleaner: "ttl-cleaner", false, crate::examples::operators::ttl_cleaner;
}

/// The environment of an example, with its operator. Resources are named as in `kubectl`: `pods`, `kopfexamples.kopf.dev`. The name of an
/// object in another namespace includes it: `other/name`.
trait Place: Sized {
    /// Whether it is a control plane with a process for the operator, but without kubelets, and maybe without controllers. The
    /// embedded server has both.
    const IS_REAL: bool;

    /// Returns the namespace of the example.
    fn namespace(&self) -> &str;

    /// Waits until the operator has logged this `times` times.
    async fn until_says_times(&self, text: &str, times: usize);

    /// Waits until a script has printed this. Only a process has an output.
    async fn until_prints(&self, text: &str);

    /// Creates an object.
    async fn create(&self, object: &Value);

    /// Returns an object, or the error.
    async fn get(&self, resource: &str, name: &str) -> Result<Value, String>;

    /// Returns all objects of a resource in the namespace.
    async fn list(&self, resource: &str) -> Vec<Value>;

    /// Merges this patch into an object; a status into its status.
    async fn patch(&self, resource: &str, name: &str, patch: &Value);

    /// Deletes an object, and does not wait until it is gone.
    async fn delete(&self, resource: &str, name: &str);

    /// Ends the operator and starts another one. Returns the log and output of the first one.
    async fn restart(&mut self) -> Ended;

    /// Ends the operator.
    async fn stop(self) -> Ended;

    /// Acts as a namespace controller, if there is none: finishes the deletion of a namespace.
    async fn finish_namespace(&self, name: &str);

    /// Acts as a Job controller, if there is none: completes the Job.
    async fn finish_job(&self, name: &str);

    /// Waits until a Job is gone; or is marked for deletion, where nothing deletes the pods that hold it.
    async fn until_job_deleted(&self, name: &str);

    /// Creates an object unless it exists.
    async fn create_or_leave(&self, object: &Value);

    /// Waits until something may have changed.
    async fn pause(&self);

    /// Returns the maximum number of calls of [`Place::pause`].
    fn patience(&self) -> u32;

    /// Fails the test unless a script has printed this `times` times. Only a process has an output.
    fn assert_printed(ended: &Ended, text: &str, times: usize) {
        if Self::IS_REAL {
            ended.assert_count(text, times);
        }
    }

    /// Waits until the operator has logged this.
    async fn until_says(&self, text: &str) {
        self.until_says_times(text, 1).await;
    }

    /// Returns the prefix of lines about the object of the examples.
    fn prefix(&self) -> String {
        format!("[{}/{OBJECT}] ", self.namespace())
    }

    /// Creates the object of the examples.
    async fn create_object(&self) {
        for object in documents("examples/obj.yaml") {
            self.create(&object).await;
        }
    }

    /// Changes the object of the examples.
    async fn patch_object(&self, patch: &Value) {
        self.patch(EXAMPLES, OBJECT, patch).await;
    }

    /// Deletes the object of the examples.
    async fn delete_object(&self) {
        self.delete(EXAMPLES, OBJECT).await;
    }

    /// Returns the object of the examples.
    async fn object(&self) -> Value {
        self.get(EXAMPLES, OBJECT).await.expect("the object is there")
    }

    /// Waits until the object of the examples satisfies `wanted`; returns it.
    async fn until_object(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.until(EXAMPLES, OBJECT, what, wanted).await
    }

    /// Waits until an object satisfies `wanted`; returns it.
    async fn until(
        &self,
        resource: &str,
        name: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        let mut seen = String::new();
        for _ in 0..self.patience() {
            match self.get(resource, name).await {
                Ok(object) if wanted(&object) => return object,
                Ok(object) => seen = format!("{object:#}"),
                Err(told) => seen = told,
            }
            self.pause().await;
        }
        panic!("{what}: {resource} {name}: {seen}");
    }

    /// Waits until an object is gone.
    async fn until_gone(&self, resource: &str, name: &str) {
        for _ in 0..self.patience() {
            if self.get(resource, name).await.is_err_and(|it| it.contains("NotFound")) {
                return;
            }
            self.pause().await;
        }
        panic!("{resource} {name} is still there: {:#?}", self.get(resource, name).await);
    }

    /// Stops the operator and checks what holds for every example.
    async fn end(self) -> Ended {
        let ended = self.stop().await;
        ended.assert_code(0);
        ended.assert_count("panicked", 0);
        ended
    }
}

/// Returns the documents of a YAML file of the project.
fn documents(path: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(crate::e2e::operator::file(path)).expect(path);
    let documents = serde_saphyr::from_multiple::<Value>(&text).expect(path);
    documents.into_iter().filter(|it| !it.is_null()).collect()
}

/// Returns whether an object has a condition with this status and reason.
fn has_condition(object: &Value, kind: &str, status: &str, reason: &str) -> bool {
    let all = object["status"]["conditions"].as_array();
    all.into_iter().flatten().any(|it| {
        it["type"] == kind
            && it["status"] == status
            && it["reason"] == reason
            && it["lastTransitionTime"].is_string()
    })
}

#[test]
fn every_folder_is_played() {
    let folders = std::fs::read_dir(crate::e2e::operator::file("examples")).expect("the examples");
    let folders = folders.flatten().filter(|it| it.path().is_dir());
    let mut folders: Vec<_> = folders.filter_map(|it| it.file_name().into_string().ok()).collect();
    // These have separate tests: the operator of docs/migration.md, those of `tests/it/webhooks/examples.rs`, of
    // `ports_templates.rs` and of `tests/it/reconcile`.
    let others =
        ["migration", "17-admission", "policy", "conversion", "ports", "schedules", "reconcile"];
    folders.retain(|it| !others.contains(&it.as_str()));
    folders.sort();
    let mut played: Vec<_> = PARTS.iter().map(|it| it.directory.to_owned()).collect();
    played.sort();
    assert_eq!(folders, played);
    for folder in folders {
        for name in ["README.md", "handlers.lua", "handlers.rhai"] {
            let path = format!("examples/{folder}/{name}");
            assert!(crate::e2e::operator::file(&path).exists(), "{path} is missing");
        }
    }
}

/// The script of the example runs if `kubectl` is installed; otherwise the test prints that it is skipped.
#[tokio::test]
async fn the_test_of_the_testing_example_passes() {
    use tokio::process::Command;
    if Command::new("kubectl").args(["version", "--client"]).output().await.is_err() {
        crate::vectors::say("examples/09-testing/test.sh: skipped, there is no kubectl");
        return;
    }
    for script in ["handlers.lua", "handlers.rhai"] {
        let test = crate::e2e::operator::file("examples/09-testing/test.sh");
        let mut command = Command::new(test);
        let ended = command.env("KOPF", env!("CARGO_BIN_EXE_kopf")).arg(script).output().await;
        let ended = ended.expect("bash runs");
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!((ended.status.code(), &*ended.stdout), (Some(0), &b"passed\n"[..]), "{told}");
    }
}
